"""The entry point of hooks: what agents call during a session. A hook never stops its agent.

`perdure.agents.moments` handles each event; here are the input, the answer and the deadline.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.hook_input import HookInput, read_all
from perdure.agents.hook_log import CAPTURE_EVENTS, Stopwatch, log_error
from perdure.agents.pending_sessions import PendingSession, PendingSessions, start_draining
from perdure.agents.switches import admitted_call, contribute_refusal, is_allowed, is_off
from perdure.dataclass import dataclass
from perdure.engine.session_notes import SessionNotes
from perdure.errors import InvalidValueError
from perdure.model.trust import INTERNAL
from perdure.patterns import later

if TYPE_CHECKING:
    from perdure.agents.moments import Emission, Moment

SECONDS = 5.0
"""The time limit of a hook, for which its agent waits."""
CAPTURE_SECONDS = 600.0
"""The time limit of a process that captures sessions; the next one continues."""
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
"""How clients name the tools of our own server; opencode has no prefix."""
MOST_TEXT = 9_000
"""The bytes that a hook may return. Claude Code passes on 10,000 characters and Codex 10,000
bytes; of a longer text, the model gets a part, and the client writes all of it to a file."""
_LAST_LOG_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The arguments of a hook. Invalid ones are ignored: an agent must not be stopped."""

    event: str = ""
    agent: str = "claude-code"
    strict: bool = False
    foreground: bool = False
    seconds: float = SECONDS

    @classmethod
    def parse(cls, words: Sequence[str]) -> "HookOptions":
        named = dict(zip(words, [*words[1:], ""], strict=False))
        return cls(
            event=words[0] if words else "",
            agent=named.get("--agent") or cls().agent,
            strict="--strict" in words,
            foreground="--foreground" in words,
            seconds=_seconds(named.get("--seconds", ""), "--foreground" in words),
        )


def _seconds(text: str, foreground: bool) -> float:  # noqa: FBT001 - called once
    try:
        return min(max(float(text), 0.01), CAPTURE_SECONDS)
    except ValueError:
        return CAPTURE_SECONDS if foreground else SECONDS


def run(words: Sequence[str]) -> None:
    """Run a hook: the agent's JSON is read from stdin, and the answer written to stdout.

    The words are the event, then `--agent NAME`, `--strict` (raise errors), `--foreground` (capture
    the session before returning) and `--seconds N`.
    """
    if os.environ.get(INTERNAL) or is_off(os.environ):
        return
    options, home = HookOptions.parse(words), home_of(os.environ)
    if home is None:  # there is no memory
        return
    try:
        _run(options, home)
    except Exception as error:  # an error must not stop the agent
        if options.strict:
            raise
        log_error(home, f"{options.agent} {options.event}: {type(error).__name__}: {error}")


def home_of(environ: Mapping[str, str]) -> Path | None:
    """Return Perdure's home, also if its config is invalid; None if the environment names none."""
    user = environ.get("HOME", "")
    given = environ.get("PERDURE_HOME") or (f"{user}/.perdure" if user else "")
    home = Path(given.replace("~", user, 1) if given.startswith("~/") else given)
    return home if home.is_absolute() else None


def _run(options: HookOptions, home: Path) -> None:
    if options.event == DRAIN:
        with deadline(CAPTURE_SECONDS, lambda: log_error(home, "capturing sessions took too long")):
            _drain(home)
        return
    if options.event not in _NAMES:
        raise InvalidValueError(
            f"there is no event {options.event[:80]!a}. Fix: use one of {', '.join(EVENTS)}."
        )
    name = f"{options.agent} {options.event}"
    watch = Stopwatch(home, options.agent, options.event)

    def give_up() -> None:
        watch.end(late=True)
        log_error(home, f"{name}: it took more than {options.seconds:g} s, and was ended")

    with deadline(options.seconds, give_up):
        try:
            given = HookInput.parse(read_all(sys.stdin.fileno()))
            watch.session = given.session_id
            answer = _answer(options, home, given)
            if answer:
                os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
                watch.bytes = _size(answer)
        finally:
            watch.end()


def _answer(options: HookOptions, home: Path, given: HookInput) -> dict[str, object]:
    """Return the JSON for the agent, and log what it is shown; empty if there is nothing."""
    if options.event in CAPTURE_EVENTS:
        _capture(options, home, given)
        return {}
    if _OWN_TOOL.match(given.tool):  # Codex can't exclude them in its matcher
        return {}
    admitted = admitted_call(options.event, home, os.environ, given)
    if admitted is None:
        return {}
    from perdure.agents.moments import MOMENTS, Moment

    moment = Moment(options.agent, home, admitted)
    emission = MOMENTS[options.event](moment)
    if not emission.text:
        return {}
    answer = _as_json(options, given, emission)
    _log(options.event, moment, emission, _size(answer))
    return answer


def _size(answer: Mapping[str, object]) -> int:
    inner = answer.get("hookSpecificOutput", answer)
    texts = inner.values() if isinstance(inner, Mapping) else ()
    return max(len(str(each).encode(errors="replace")) for each in texts)


def truncate_lines(text: str) -> str:
    """Return as many whole lines of a text as a hook may return."""
    data = text.encode(errors="replace")
    if len(data) <= MOST_TEXT:
        return text
    whole, _, rest = data[: MOST_TEXT + 1].rpartition(b"\n")
    return (whole or rest[:MOST_TEXT]).decode(errors="ignore")


def _log(event: str, moment: "Moment", emission: "Emission", size: int) -> None:
    from perdure.engine.emissions import EmissionRecord, append_emission
    from perdure.engine.recall.result import tokens_in

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


def _as_json(options: HookOptions, given: HookInput, emission: "Emission") -> dict[str, object]:
    from perdure.model.speech import marked

    text = marked(
        truncate_lines(emission.text)
    )  # so that nothing is learned from it in a transcript
    if options.agent == CURSOR:
        return {"additional_context": text}
    if emission.blocks and options.agent == GEMINI_CLI:
        return {"decision": "deny", "reason": text}
    # One of our events serves several of a client, and each expects its own name.
    named: dict[str, object] = {"hookEventName": given.event or _NAMES[options.event]}
    if emission.blocks:
        refusal = {"permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": {**named, **refusal}}
    return {"hookSpecificOutput": {**named, "additionalContext": text}}


def _capture(options: HookOptions, home: Path, given: HookInput) -> None:
    """Note that a session is to be captured, and start the process that does it."""
    if not given.session_id:
        raise InvalidValueError(
            "the agent did not name its session. Fix: none needed; nothing was captured."
        )
    if not given.transcript or given.subagent:  # a subagent's prompts are not the user's
        return
    if options.event == "session-end":
        SessionNotes(home).leave(given.session_id)
    if contribute_refusal(home, os.environ, given.cwd):
        return
    session = given.session_id, given.transcript, given.cwd
    allowed = "yes" if is_allowed(os.environ) else ""
    PendingSessions(home).add(
        PendingSession(options.agent, *session, event=options.event, allowed=allowed)
    )
    if options.foreground:
        _drain(home)
    else:
        start_draining(home, os.environ)


def _drain(home: Path) -> None:
    from perdure.agents.capture import drain

    drain(home, os.environ)


# ---------------------------------------------------------------- the deadline
@contextmanager
def deadline(seconds: float, on_expiry: Callable[[], None]) -> Iterator[None]:
    """End the process with code 0 if the `with` takes longer; files stay whole or absent.

    An exception would have to wait for a lock or a disk.
    """
    done = threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            last = threading.Thread(target=on_expiry, daemon=True)
            last.start()
            last.join(_LAST_LOG_SECONDS)  # a blocked disk may block it too
            os._exit(0)

    threading.Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield
    finally:
        done.set()
