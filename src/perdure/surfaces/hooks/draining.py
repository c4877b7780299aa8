"""Keeping the sessions that wait, by one process at a time, until none is left."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from perdure.app import Context, open_context
from perdure.engine.importing.choosing import FORMATS
from perdure.engine.importing.contract import Conversation, Finding
from perdure.engine.importing.sessions import SessionImporter
from perdure.engine.importing.sources import Source
from perdure.errors import AbsentError, InvalidValueError, NodeExistsError, PerdureError
from perdure.surfaces.hooks.starting import locked
from perdure.surfaces.hooks.trouble import note
from perdure.surfaces.hooks.waiting import Pending, Waiting

_MOST_BRANCHES = 20
_GIVEN_UP_SECONDS = 7 * 24 * 3600.0


def drain(home: Path, environ: Mapping[str, str]) -> None:
    """Keep what waits, until nothing does but what failed; what fails is told in the log."""
    failed: set[str] = set()
    while True:
        with locked(home) as is_ours:
            if not is_ours:
                return
            _drain_once(home, environ, failed)
        if all(waiting.mark in failed for waiting in Pending(home)):
            return


def _drain_once(home: Path, environ: Mapping[str, str], failed: set[str]) -> None:
    pending = Pending(home)
    with open_context(environ) as context:
        for waiting in pending:
            if waiting.mark in failed:
                continue
            try:
                keep(context, waiting)
            except (PerdureError, OSError) as error:
                note(home, f"{waiting.agent} session {waiting.session_id}: {error}")
                if _may_go_better(error, pending, waiting):
                    failed.add(waiting.mark)
                else:
                    pending.done(waiting)
            else:
                pending.done(waiting)
        context.memory.settle()


def _may_go_better(error: Exception, pending: Pending, waiting: Waiting) -> bool:
    """Whether it is worth another try: not if the transcript is what is wrong, nor for ever."""
    is_its_fault = isinstance(error, InvalidValueError | AbsentError)
    return not is_its_fault and not pending.is_older(waiting, _GIVEN_UP_SECONDS)


def keep(context: Context, waiting: Waiting) -> None:
    """Keep what a transcript says, and learn from it; what is known already changes nothing."""
    if waiting.agent not in FORMATS:
        raise InvalidValueError(f"nobody reads transcripts of {waiting.agent!a}. Fix: none needed.")
    importer = SessionImporter(context.memory, context.nodes, learn=True)
    with closing(Source(Path(waiting.transcript))) as source:
        for item in FORMATS[waiting.agent].items(source):
            if isinstance(item, Conversation) and item.messages:
                _refuse_another(waiting, item)
                _put(importer, item)
            elif isinstance(item, Finding) and item.refused:
                note(context.config.home, f"{waiting.agent}: {item}")


def _refuse_another(waiting: Waiting, item: Conversation) -> None:
    """Refuse a file that is not of the session: then something else was meant to be read."""
    if waiting.session_id not in {item.source_id, Path(waiting.transcript).stem[-36:]}:
        raise InvalidValueError(
            f"the transcript is of the session {item.source_id[:80]!a}, not of "
            f"{waiting.session_id[:80]!a}. Fix: none needed; it was left alone."
        )


def _put(importer: SessionImporter, item: Conversation) -> None:
    """Keep a conversation; who went back in it and took another way has it under another name."""
    for number in range(1, _MOST_BRANCHES + 1):
        named = item.source_id if number == 1 else f"{item.source_id}.{number}"
        try:
            importer.put(replace(item, source_id=named), dry_run=False)
        except NodeExistsError:
            if number == _MOST_BRANCHES:
                raise
        else:
            return
