"""`hook`: what agents call. It ends with code 0, whatever happens, unless it is to be strict."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from perdure.errors import InvalidValueError, StorageError
from perdure.surfaces.hooks.deadline import ending_after
from perdure.surfaces.hooks.said import Said, read_all
from perdure.surfaces.hooks.starting import start_draining
from perdure.surfaces.hooks.trouble import note
from perdure.surfaces.hooks.waiting import Pending, Waiting

SECONDS = 5.0
"""So long a hook may take; agents wait for it."""
KEEPING_SECONDS = 600.0
"""So long a process may take that keeps sessions; the next goes on."""
_NAMES = {
    "session-start": "SessionStart",
    "user-prompt-submit": "UserPromptSubmit",
    "pre-compact": "PreCompact",
    "stop": "Stop",
    "session-end": "SessionEnd",
}
KEEPING = frozenset({"pre-compact", "stop", "session-end"})
EVENTS = tuple(_NAMES)
DRAIN = "drain"
CURSOR = "cursor"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a hook was called. What can't be understood is left out: an agent must not be stopped."""

    event: str = ""
    agent: str = "claude-code"
    strict: bool = False
    foreground: bool = False
    seconds: float = SECONDS

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Wishes":
        named = dict(zip(words, [*words[1:], ""], strict=False))
        return cls(
            event=words[0] if words else "",
            agent=named.get("--agent") or cls().agent,
            strict="--strict" in words,
            foreground="--foreground" in words,
            seconds=_seconds(named.get("--seconds", ""), "--foreground" in words),
        )


def _seconds(text: str, is_waited_for: bool) -> float:  # noqa: FBT001 - it is one of two
    try:
        return min(max(float(text), 0.01), KEEPING_SECONDS)
    except ValueError:
        return KEEPING_SECONDS if is_waited_for else SECONDS


@click.command(
    "hook",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def hook_command(words: tuple[str, ...]) -> None:
    """Answer an agent at a turn of its session.

    WORDS are the event, such as session-start, then --agent NAME, --strict (tell what goes wrong,
    and how), --foreground (keep the session before it ends) and --seconds N. The agent's JSON is
    read from stdin.
    """
    wishes, home = Wishes.parse(words), home_of(os.environ)
    if home is None:  # then there is no memory either
        return
    try:
        _run(wishes, home)
    except Exception as error:  # an agent is never stopped by its memory
        if wishes.strict:
            raise
        note(home, f"{wishes.agent} {wishes.event}: {type(error).__name__}: {error}")


def home_of(environ: Mapping[str, str]) -> Path | None:
    """Return Perdure's home, also if its config is broken; None if nobody says where it is."""
    user = environ.get("HOME", "")
    given = environ.get("PERDURE_HOME") or (f"{user}/.perdure" if user else "")
    home = Path(given.replace("~", user, 1) if given.startswith("~/") else given)
    return home if home.is_absolute() else None


def _run(wishes: Wishes, home: Path) -> None:
    if wishes.event == DRAIN:
        from perdure.surfaces.hooks.draining import drain

        with ending_after(KEEPING_SECONDS, lambda: note(home, "keeping sessions took too long")):
            drain(home, os.environ)
        return
    if wishes.event not in _NAMES:
        raise InvalidValueError(
            f"there is no event {wishes.event[:80]!a}. Fix: use one of {', '.join(EVENTS)}."
        )
    with ending_after(wishes.seconds, lambda: _lapsed(wishes, home)):
        said = Said.parse(read_all(sys.stdin.fileno()))
        answer = _answered(wishes, home, said)
        if answer:
            os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def _lapsed(wishes: Wishes, home: Path) -> None:
    note(
        home, f"{wishes.agent} {wishes.event}: it took more than {wishes.seconds:g} s, and was left"
    )


def _answered(wishes: Wishes, home: Path, said: Said) -> dict[str, object]:
    """Return what the agent is to be told; nothing if there is nothing to tell."""
    if wishes.event in KEEPING:
        _keep(wishes, home, said)
        return {}
    text = _recalled(wishes, home, said)
    if not text:
        return {}
    if wishes.agent == CURSOR:
        return {"additional_context": text}
    return {
        "hookSpecificOutput": {"hookEventName": _NAMES[wishes.event], "additionalContext": text}
    }


def _recalled(wishes: Wishes, home: Path, said: Said) -> str:
    if not (home / "histories").is_dir():  # nothing was ever remembered
        return ""
    from perdure.surfaces.hooks import recalling

    if wishes.event != "user-prompt-submit":
        with suppress(StorageError, OSError):  # on a read-only disk there is nothing to go on with
            _go_on_keeping(home)
        return recalling.recalled_at_start(said.cwd)
    if not recalling.is_worth_asking(said.prompt):
        return ""
    from perdure.app import open_context
    from perdure.engine.importing.texts import stable_name

    known = stable_name(wishes.agent, said.session_id) if said.session_id else ""
    with open_context(os.environ) as context:
        return recalling.recalled_for(said.prompt, context, known)


def _go_on_keeping(home: Path) -> None:
    """Let sessions be kept that a process before was killed over."""
    if Pending(home):
        start_draining(home, os.environ)


def _keep(wishes: Wishes, home: Path, said: Said) -> None:
    """Note that a session is to be kept, and let that be done."""
    if not said.session_id:
        raise InvalidValueError(
            "the agent did not say which session it is. Fix: none needed; nothing was kept."
        )
    if not said.transcript:  # it keeps none itself
        return
    Pending(home).add(Waiting(wishes.agent, said.session_id, said.transcript))
    if not wishes.foreground:
        start_draining(home, os.environ)
        return
    from perdure.surfaces.hooks.draining import drain

    drain(home, os.environ)
