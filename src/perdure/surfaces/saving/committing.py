"""`commit`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypedDict, Unpack

import click

from perdure.engine.saving.outcome import SessionCommit
from perdure.errors import AccessDeniedError, InvalidValueError, NodeExistsError
from perdure.model.values import shown as briefly
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.ending import INTERRUPTED
from perdure.surfaces.nodes.given import STDIN
from perdure.surfaces.nodes.opening import Memory, with_memory
from perdure.surfaces.saving import outcomes
from perdure.surfaces.saving.conversation import (
    Conversation,
    Fault,
    bytes_of,
    conversation,
    session_of,
)
from perdure.surfaces.telling import counted, mention, progress, shown, tell_json

_FAILED = "what was said is kept. Fix: mend what stands in the way, then commit it --again."
_MOST_FAULTS = 20
_LONG = 200
"""Messages; so many are learned from at a time."""


class Options(TypedDict):
    no_extract: bool
    dry_run: bool
    again: bool
    min_confidence: float | None
    lenient: bool


@click.command("commit")
@click.argument("session_file", metavar="SESSION.jsonl")
@click.option("--no-extract", is_flag=True, help="Keep what was said, and learn nothing from it.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--again", is_flag=True, help="Learn from all messages, not only from new ones.")
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Learn only what is at least so sure; 0.6.",
)
@click.option("--lenient", is_flag=True, help="Pass over what no message can hold.")
@as_json(ONE_OBJECT)
@with_memory
def commit_command(
    memory: Memory, session_file: str, *, as_json: bool, **options: Unpack[Options]
) -> None:
    """Keep a conversation, and learn from it.

    SESSION.jsonl has a message on each line, {"role": "user", "content": "..."}, perhaps with name
    and time, or as OpenAI and Anthropic have it; or it is one JSON list of them. If it is -, that
    is read from stdin. The id of the session is that of --session, else the name of the file. The
    same again changes nothing, more messages are added, and a last answer that differs is replaced.
    """
    session = memory.request.session_id or _named(session_file)
    talk = conversation(bytes_of(session_file), session_file, lenient=options["lenient"])
    _refuse_holes(talk)
    if talk.left_out:
        names = ", ".join(map(briefly, talk.left_out[:_MOST_FAULTS]))
        mention(f"passed over, for no message has it: {names}")
    done = _committed(memory, session, talk, options)
    if as_json:
        tell_json(outcomes.as_json(done, talk.left_out, dry_run=options["dry_run"]))
    elif options["dry_run"]:
        outcomes.tell_plan(memory, done)
    else:
        outcomes.tell_commit(memory, done)
    if done.failed:
        mention(_FAILED)
        raise click.exceptions.Exit(1)


def _named(session_file: str) -> str:
    if session_file == STDIN:
        raise click.UsageError("what comes on stdin has no name. Fix: add --session ID.")
    return session_of(session_file)


def _refuse_holes(talk: Conversation) -> None:
    """Refuse a conversation of which something is missing: it would be taken for whole."""
    _mention(talk.faults)
    if talk.faults:
        raise InvalidValueError(
            f"{counted(len(talk.faults), 'message')} can't be read; nothing was committed. "
            "Fix: see above, then commit again."
        )
    if not talk.messages:
        raise InvalidValueError(
            'there are no messages. Fix: write one on each line: {"role": "user", "content": '
            '"..."}.'
        )


def _mention(faults: Sequence[Fault]) -> None:
    for fault in faults[:_MOST_FAULTS]:
        mention(f"refused: {shown(str(fault))}")
    if len(faults) > _MOST_FAULTS:
        mention(f"and {len(faults) - _MOST_FAULTS:,} more")


def _committed(memory: Memory, session: str, talk: Conversation, options: Options) -> SessionCommit:
    dry_run = options["dry_run"]
    try:
        with _shown(len(talk.messages)) as progressed:
            return memory.context.memory.for_caller(memory.request).commit_session(
                talk.messages,
                session_id=session,
                extract=not options["no_extract"],
                min_confidence=options["min_confidence"],
                dry_run=dry_run,
                again=options["again"],
                progress=progressed,
            )
    except NodeExistsError as error:
        raise NodeExistsError(str(error).replace("under another id", "with --session ID")) from None
    except AccessDeniedError as error:
        fix = "Fix: if it is another conversation, name it with --session ID."
        raise AccessDeniedError(f"{str(error).partition(' Fix: ')[0]} {fix}") from None
    except KeyboardInterrupt:
        mention(
            "stopped; nothing was written"
            if dry_run
            else "stopped; what is done is kept. Fix: run the same command again, and it goes on."
        )
        raise click.exceptions.Exit(INTERRUPTED) from None


def _shown(messages: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """Return what shows on stderr how much was learned from, if that takes long."""
    return progress("learning") if messages > _LONG else nullcontext(lambda _done, _all: None)
