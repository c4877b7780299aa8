"""What agents call at the turns of a session. It never breaks or blocks them."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.hook_input import HookInput, read_all
from perdure.agents.pending import Pending, Waiting, drain, note, start_draining
from perdure.agents.runs import KEEPING, Stopwatch
from perdure.agents.switches import admitted_call, contribute_refusal, is_allowed, is_off
from perdure.dataclass import dataclass
from perdure.engine.session_notes import SessionNotes
from perdure.errors import InvalidValueError
from perdure.model.trust import INTERNAL
from perdure.patterns import later

if TYPE_CHECKING:
    from perdure.agents.moments import Emission, Moment

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
EVENTS = tuple(_NAMES)
DRAIN = "drain"
CURSOR = "cursor"
GEMINI_CLI = "gemini-cli"
_OWN_TOOL = later(r"mcp_{1,2}(?:plugin_perdure_)?perdure_|perdure_")
"""How the clients call the tools of our own server; opencode has no prefix before it."""
MOST_TEXT = 9_000
"""Bytes that an agent is given to read at once. Claude Code keeps 10,000 characters whole and
Codex 10,000 bytes; of more, the model sees a part, and all of it goes to a file of the client."""
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
    if os.environ.get(INTERNAL) or is_off(os.environ):
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
    watch = Stopwatch(home, wishes.agent, wishes.event)

    def give_up() -> None:
        watch.end(late=True)
        note(home, lapsed)

    with ending_after(wishes.seconds, give_up):
        try:
            given = HookInput.parse(read_all(sys.stdin.fileno()))
            watch.session = given.session_id
            answer = _answered(wishes, home, given)
            if answer:
                os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
                watch.bytes = _size(answer)
        finally:
            watch.end()


def _answered(wishes: Wishes, home: Path, given: HookInput) -> dict[str, object]:
    """Return the JSON that the agent gets, and log what it is shown; empty if that is nothing."""
    if wishes.event in KEEPING:
        _keep(wishes, home, given)
        return {}
    if _OWN_TOOL.match(given.tool):  # Codex has no matcher that leaves them out
        return {}
    admitted = admitted_call(wishes.event, home, os.environ, given)
    if admitted is None:
        return {}
    from perdure.agents.moments import MOMENTS, Moment

    moment = Moment(wishes.agent, home, admitted)
    emission = MOMENTS[wishes.event](moment)
    if not emission.text:
        return {}
    answer = _as_json(wishes, given, emission)
    _log(wishes.event, moment, emission, _size(answer))
    return answer


def _size(answer: Mapping[str, object]) -> int:
    inner = answer.get("hookSpecificOutput", answer)
    texts = inner.values() if isinstance(inner, Mapping) else ()
    return max(len(str(each).encode(errors="replace")) for each in texts)


def bounded(text: str) -> str:
    """Return as many whole lines of a text as an agent may be given at once."""
    data = text.encode(errors="replace")
    if len(data) <= MOST_TEXT:
        return text
    whole, _, rest = data[: MOST_TEXT + 1].rpartition(b"\n")
    return (whole or rest[:MOST_TEXT]).decode(errors="ignore")


def _log(event: str, moment: "Moment", emission: "Emission", size: int) -> None:
    from perdure.engine.emissions import EmissionRecord, append_emission
    from perdure.engine.recall.token_budget import tokens_in

    given, seen = moment.given, moment.seen
    record = EmissionRecord(
        agent=moment.agent,
        session=given.session_id,
        moment=event,
        reason=emission.reason,
        tokens=tokens_in(emission.text),
        bytes=size,
        items=emission.items,
        account=seen.account,
        user=seen.user,
        project=seen.project,
        position=seen.position,
        blocked=emission.blocks,
        behind=seen.behind,
    )
    append_emission(moment.home, record)


def _as_json(wishes: Wishes, given: HookInput, emission: "Emission") -> dict[str, object]:
    from perdure.model.speech import marked

    text = marked(bounded(emission.text))  # what comes back in a transcript is not learned from
    if wishes.agent == CURSOR:
        return {"additional_context": text}
    if emission.blocks and wishes.agent == GEMINI_CLI:
        return {"decision": "deny", "reason": text}
    # One of our events stands for several of a client, and each wants to read its own name.
    named: dict[str, object] = {"hookEventName": given.event or _NAMES[wishes.event]}
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
    if wishes.event == "session-end":
        SessionNotes(home).leave(given.session_id)
    if contribute_refusal(home, os.environ, given.cwd):
        return
    session = given.session_id, given.transcript, given.cwd
    allowed = "yes" if is_allowed(os.environ) else ""
    Pending(home).add(Waiting(wishes.agent, *session, event=wishes.event, allowed=allowed))
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
