"""What agents call at the turns of a session. It never breaks or blocks them."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.hook_input import HookInput, read_all
from perdure.agents.pending import Pending, Waiting, drain, note, start_draining
from perdure.errors import InvalidValueError

if TYPE_CHECKING:
    from perdure.agents.moments import Emission

INTERNAL = "PERDURE_INTERNAL"
"""Set for processes that Perdure starts itself: their hooks do nothing."""
SECONDS = 5.0
"""So long a hook may take; agents wait for it."""
KEEPING_SECONDS = 600.0
"""So long a process may take that keeps sessions; the next goes on."""
_NAMES = {
    "session-start": "SessionStart",
    "user-prompt-submit": "UserPromptSubmit",
    "pre-tool-use": "PreToolUse",
    "post-tool-use": "PostToolUse",
    "subagent-start": "SubagentStart",
    "pre-compact": "PreCompact",
    "stop": "Stop",
    "session-end": "SessionEnd",
}
KEEPING = frozenset({"pre-compact", "stop", "session-end"})
EVENTS = tuple(_NAMES)
DRAIN = "drain"
CURSOR = "cursor"
_LAST_WORDS_SECONDS = 0.5


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


def run(words: Sequence[str]) -> None:
    """Answer an agent that called with some words: its JSON is on stdin, the answer on stdout.

    The words are the event, then `--agent NAME`, `--strict` (raise what goes wrong), `--foreground`
    (keep the session before it ends) and `--seconds N`.
    """
    if os.environ.get(INTERNAL):
        return
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
        with ending_after(KEEPING_SECONDS, lambda: note(home, "keeping sessions took too long")):
            drain(home, os.environ)
        return
    if wishes.event not in _NAMES:
        raise InvalidValueError(
            f"there is no event {wishes.event[:80]!a}. Fix: use one of {', '.join(EVENTS)}."
        )
    lapsed = f"{wishes.agent} {wishes.event}: it took more than {wishes.seconds:g} s, and was left"
    with ending_after(wishes.seconds, lambda: note(home, lapsed)):
        given = HookInput.parse(read_all(sys.stdin.fileno()))
        answer = _answered(wishes, home, given)
        if answer:
            os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def _answered(wishes: Wishes, home: Path, given: HookInput) -> dict[str, object]:
    """Return the JSON that the agent gets; empty if there is nothing to give."""
    if wishes.event in KEEPING:
        _keep(wishes, home, given)
        return {}
    from perdure.agents.moments import MOMENTS, Moment

    emission = MOMENTS[wishes.event](Moment(wishes.agent, home, given))
    return _as_json(wishes, emission) if emission.text else {}


def _as_json(wishes: Wishes, emission: "Emission") -> dict[str, object]:
    from perdure.model.speech import marked

    text = marked(emission.text)  # what comes back in a transcript is not learned from
    if wishes.agent == CURSOR:
        return {"additional_context": text}
    named: dict[str, object] = {"hookEventName": _NAMES[wishes.event]}
    if emission.blocks:
        refusal = {"permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": {**named, **refusal}}
    return {"hookSpecificOutput": {**named, "additionalContext": text}}


def _keep(wishes: Wishes, home: Path, given: HookInput) -> None:
    """Note that a session is to be kept, and let that be done."""
    if not given.session_id:
        raise InvalidValueError(
            "the agent did not say which session it is. Fix: none needed; nothing was kept."
        )
    if not given.transcript or given.subagent:  # its words are not the user's
        return
    session = given.session_id, given.transcript, given.cwd
    Pending(home).add(Waiting(wishes.agent, *session, event=wishes.event))
    if not wishes.foreground:
        start_draining(home, os.environ)
        return
    drain(home, os.environ)


# ---------------------------------------------------------------- the end
@contextmanager
def ending_after(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """End the process with code 0 if the `with` takes longer; what it writes is whole or not there.

    An exception would have to wait until a lock or a disk lets go.
    """
    done = threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            telling = threading.Thread(target=tell, daemon=True)
            telling.start()
            telling.join(_LAST_WORDS_SECONDS)  # what holds us up may hold that up, too
            os._exit(0)

    threading.Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield
    finally:
        done.set()
