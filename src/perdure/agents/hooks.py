"""What agents call at the turns of a session. It never breaks or blocks them."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.pending import Pending, Waiting, drain, note, start_draining
from perdure.agents.shown import Shown
from perdure.errors import InvalidValueError, StorageError

if TYPE_CHECKING:
    from perdure import Hit

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
MOST_BYTES = 4 * 1024 * 1024
_AT_ONCE = 65536
_LONGEST_PROMPT = 2_000
_FEWEST_WORDS = 2
_INSTRUCTIONS = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules")
"""What agents load by themselves."""
_MOST_INSTRUCTIONS = 200_000
_MOST_LOOKED_AT = 24
_LAST_WORDS_SECONDS = 0.5
_OPENING_PROMPTS = 2
"""After so many prompts of a session, memory speaks only if it is sure to matter."""


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
        said = Said.parse(read_all(sys.stdin.fileno()))
        answer = _answered(wishes, home, said)
        if answer:
            os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def _answered(wishes: Wishes, home: Path, said: "Said") -> dict[str, object]:
    """Return what the agent is to be told; nothing if there is nothing to tell."""
    if wishes.event in KEEPING:
        _keep(wishes, home, said)
        return {}
    text = _recalled(wishes, home, said)
    if not text:
        return {}
    from perdure.model.speech import marked

    text = marked(text)  # what comes back in a transcript is not learned from
    if wishes.agent == CURSOR:
        return {"additional_context": text}
    return {
        "hookSpecificOutput": {"hookEventName": _NAMES[wishes.event], "additionalContext": text}
    }


def _recalled(wishes: Wishes, home: Path, said: "Said") -> str:
    has_memory = (home / "histories").is_dir()
    is_prompt = wishes.event == "user-prompt-submit"
    if not has_memory and not (is_prompt and home.is_dir()):  # nothing was ever remembered
        return ""
    session = said.session_id or "unnamed"
    if not is_prompt:
        with suppress(StorageError, OSError):  # on a read-only disk there is nothing to go on with
            if Pending(home):  # a process before was killed over these
                start_draining(home, os.environ)
        shown = Shown(home / "hooks" / "shown", wishes.agent, session)
        if said.source == "resume" and shown.has_briefing:  # its context has it already
            return ""
        return recalled_at_start(said.cwd, shown)
    from perdure.model.speech import speech_of

    prompt = speech_of("user", said.prompt).text  # Gemini CLI puts the briefing before it
    if not is_worth_asking(prompt):
        return ""
    from perdure.engine.importing.reading import stable_name

    shown = Shown(home / "hooks" / "shown", wishes.agent, session)
    if not has_memory:  # its first session may state what lasts
        return hint_for(prompt, shown)
    known = stable_name(wishes.agent, said.session_id) if said.session_id else ""
    return recalled_for(prompt, said.cwd, known, shown)


def _keep(wishes: Wishes, home: Path, said: "Said") -> None:
    """Note that a session is to be kept, and let that be done."""
    if not said.session_id:
        raise InvalidValueError(
            "the agent did not say which session it is. Fix: none needed; nothing was kept."
        )
    if not said.transcript:  # it keeps none itself
        return
    Pending(home).add(Waiting(wishes.agent, said.session_id, said.transcript, said.cwd))
    if not wishes.foreground:
        start_draining(home, os.environ)
        return
    drain(home, os.environ)


# ---------------------------------------------------------------- what an agent says
@dataclass(frozen=True, slots=True)
class Said:
    """What is of interest in it; whatever is missing, or of another kind, is empty."""

    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    """Why a session starts: startup, resume, clear, compact."""

    @classmethod
    def parse(cls, data: bytes) -> "Said":
        """Read what was sent; `InvalidValueError` if it is no JSON object."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidValueError(
                f"a hook was given what is no JSON: {data[:60]!a}. Fix: let the agent call it."
            ) from error
        if not isinstance(found, dict):
            raise InvalidValueError(
                f"a hook was given a JSON {type(found).__name__}. Fix: give it an object."
            )
        return cls(
            session_id=_text(found, "session_id", "conversation_id"),
            transcript=_text(found, "transcript_path"),
            cwd=_text(found, "cwd") or _first(found.get("workspace_roots")),
            prompt=_text(found, "prompt"),
            source=_text(found, "source"),
        )


def read_all(descriptor: int) -> bytes:
    """Return all that is sent; from a terminal, nothing. Too much is `InvalidValueError`."""
    if os.isatty(descriptor):
        return b"{}"
    parts: list[bytes] = []
    size = 0
    while data := os.read(descriptor, _AT_ONCE):
        parts.append(data)
        size += len(data)
        if size > MOST_BYTES:
            raise InvalidValueError(
                f"a hook was given more than {MOST_BYTES:,} bytes. Fix: let the agent call it."
            )
    return b"".join(parts)


def _text(found: Mapping[str, object], *names: str) -> str:
    values = (found.get(name) for name in names)
    return next((each for each in values if isinstance(each, str) and each), "")


def _first(values: object) -> str:
    if isinstance(values, list) and values and isinstance(values[0], str):
        return values[0]
    return ""


# ---------------------------------------------------------------- what it is told
def recalled_at_start(cwd: str, shown: Shown) -> str:
    """Return the briefing for a folder; empty if there is none.

    What the project's own instructions say is left out. What it has is not shown again later.
    """
    from perdure.app import caller_for, open_memory
    from perdure.harness.projects import identity_at

    project = identity_at(cwd) if cwd else ""
    caller = caller_for(os.environ, role="member")
    with open_memory(os.environ, caller, project=project) as memory:
        found = memory.briefing(known=instructions_at(cwd))
    shown.brief(text for text in (*(item.text for item in found.items), found.last) if text)
    return found.text


def instructions_at(cwd: str) -> str:
    """Return what the files of a folder tell every agent that works there."""
    texts = []
    for name in _INSTRUCTIONS:
        with suppress(OSError, ValueError), Path(cwd, name).open("rb") as file:
            texts.append(file.read(_MOST_INSTRUCTIONS).decode(errors="replace"))
    return "\n".join(texts)


def recalled_for(prompt: str, cwd: str, known: str, shown: Shown) -> str:
    """Return what memory has to say to a prompt, in a few lines; empty if nothing.

    What the session `known`, the prompt itself or the instructions of the folder say, and what was
    shown, is left out: the agent has it. If the user may have stated something lasting, one line
    asks about it. An agent reaches what its user owns, and no more.
    """
    from perdure.app import caller_for, open_memory
    from perdure.engine.briefing import Instructions, relevant_lines
    from perdure.engine.learn.prose import words_key
    from perdure.harness.projects import identity_at

    project = identity_at(cwd) if cwd else ""
    caller = caller_for(os.environ, role="member")
    with open_memory(os.environ, caller, project=project) as memory:
        result = memory.recall(prompt[:_LONGEST_PROMPT], top_k=_MOST_LOOKED_AT, projects="own")
    news = [hit for hit in result.hits if not known or not _is_of(hit, known)]
    goes_on = shown.prompted() >= _OPENING_PROMPTS
    asked = f" {words_key(prompt)} "
    instructions = cache(lambda: Instructions(instructions_at(cwd) if cwd else ""))

    def is_known(text: str) -> bool:
        return text in shown or f" {words_key(text)} " in asked or instructions().say(text)

    lines = relevant_lines(news, result.words, is_known, goes_on=goes_on)
    shown.add(line.key for line in lines)
    hint = "" if result.says_forgotten else hint_for(prompt, shown)
    return "\n".join([*(line.text for line in lines), *([hint] if hint else [])])


def hint_for(prompt: str, shown: Shown) -> str:
    """Return one line if a prompt may state something lasting; empty if not, or shown before."""
    from perdure.engine.learn.net import prompt_hint
    from perdure.engine.learn.prose import words_key

    hint = prompt_hint(prompt)
    return hint if hint and shown.may_hint(words_key(hint)) else ""


def _is_of(hit: "Hit", session: str) -> bool:
    """Whether a hit is of a session, or rests on nothing else."""
    return session == hit.session_id or {session} == {name for name, _ in hit.evidence}


def is_worth_asking(prompt: str) -> bool:
    """Whether a prompt is a question or a task; not a command of the agent, nor a mere yes."""
    words = prompt.split()
    return len(words) >= _FEWEST_WORDS and not words[0].startswith(("/", "!", "#"))


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
