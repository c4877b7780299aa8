"""The switches of a session: whether it may use memory, and whether it may contribute to it.

They are checked before everything else, in this order: `PERDURE_OFF`, excluded folders, private
mode, then `use` and `contribute` of the environment, of the folder and of the config. Headless and
CI runs use memory, and contribute only if that is allowed.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.dataclass import dataclass, replace
from perdure.engine.session_notes import SessionNotes
from perdure.model.trust import PASTED, AgentSettings, OptOut, origin_of, resolved_folder

if TYPE_CHECKING:
    from perdure.agents.hook_input import HookInput

OFF, USE, CONTRIBUTE = "PERDURE_OFF", "PERDURE_USE", "PERDURE_CONTRIBUTE"
_PROMPT = "user-prompt-submit"
_NO = frozenset({"", "0", "false", "no", "off"})
_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"
_READ_BYTES = 1 << 20


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether memory is off for this process and its children."""
    return _flag(environ, OFF) is True


def use_refusal(
    home: Path, environ: Mapping[str, str], cwd: str, session_id: str = ""
) -> OptOut | None:
    """Return why a session in a folder may not use memory; None if it may."""
    if is_off(environ):
        return OptOut.OFF
    settings, folders = settings_at(home, environ), _folders(cwd)
    if any(map(settings.excludes, folders)):
        return OptOut.EXCLUDED
    if session_id and SessionNotes(home).get(session_id).is_private:
        return OptOut.PRIVATE
    choice = _flag(environ, USE)
    is_used = all(map(settings.uses, folders)) if choice is None else choice
    return None if is_used else OptOut.NO_USE


def contribute_refusal(home: Path, environ: Mapping[str, str], cwd: str) -> OptOut | None:
    """Return why a session in a folder may not contribute to memory; None if it may.

    Private mode is not a reason: a session may have public parts, and the reader of its transcript
    leaves out the private ones.
    """
    if is_off(environ):
        return OptOut.OFF
    choice = _flag(environ, CONTRIBUTE)
    if choice is False:
        return OptOut.NO_CONTRIBUTION
    settings = settings_at(home, environ)
    found = (
        settings.refusal(each, is_headless=is_headless(environ), is_named=choice is True)
        for each in _folders(cwd)
    )
    return next(filter(None, found), None)


def tool_refusal(
    home: Path, environ: Mapping[str, str], cwd: str, *, writes: bool
) -> OptOut | None:
    """Return why an agent in a folder may not call a tool; None if it may.

    A server knows its folder only, so a private session there applies to all that run there.
    """
    refusal = use_refusal(home, environ, cwd)
    if writes and refusal in {None, OptOut.NO_USE}:
        refusal = contribute_refusal(home, environ, cwd)
    if refusal is not None:
        return refusal
    recent = SessionNotes(home).recent(cwd)
    if any(each.is_private and not each.ended for each in recent):
        return OptOut.PRIVATE
    is_headless_now = bool(recent) and recent[-1].headless and not is_allowed(environ)
    allowed = settings_at(home, environ).contributes_headless(cwd)
    return OptOut.HEADLESS if writes and is_headless_now and not allowed else None


def foreign_origins(home: Path, cwd: str, text: str, *, is_fact: bool) -> tuple[str, ...]:
    """Return the foreign origins that a statement of an agent may have.

    Empty if no session in the folder read foreign text in the last hours, if the user typed these
    words, or if it is a fact that gives no order.
    """
    recent = SessionNotes(home).recent(cwd)
    origins = {origin for note in recent for origin in note.origins}
    if not origins:
        return ()
    from perdure.engine.learn.extractors import rule_for
    from perdure.engine.learn.prose import is_typed

    if is_fact and rule_for(" ".join(text.split())) is None:
        return ()
    typed = {key for note in recent for key in note.typed}
    return () if is_typed(text, typed) else tuple(sorted(origins))


def is_allowed(environ: Mapping[str, str]) -> bool:
    """Whether the environment allows this run to contribute, headless or not."""
    return _flag(environ, CONTRIBUTE) is True


def is_headless(environ: Mapping[str, str]) -> bool:
    """Whether the environment shows that no person takes part.

    Claude Code sets a variable. Other agents record it in the transcript, which its reader checks.
    """
    return _flag(environ, "CI") is True or environ.get(_ENTRYPOINT, "").startswith("sdk")


def admitted_call(
    event: str, home: Path, environ: Mapping[str, str], given: "HookInput"
) -> "HookInput | None":
    """Return the input of a hook without private parts; None if the session may not use memory.

    The session's folder and the origins of what it read are recorded.
    """
    refusal = use_refusal(home, environ, given.cwd, given.session_id)
    if refusal in {OptOut.OFF, OptOut.EXCLUDED}:
        return None
    is_prompt = event == _PROMPT
    if is_prompt and note_prompt(home, given):
        return None
    with suppress(OSError):  # on a read-only disk nothing is recorded
        if given.session_id and home.is_dir():
            _note(event, home, environ, given, is_private=refusal is OptOut.PRIVATE)
    if refusal is not None:
        return None
    if not is_prompt:
        return given
    from perdure.model.privacy import without_private

    prompt = without_private(given.prompt)
    return replace(given, prompt=prompt, raw={**given.raw, "prompt": prompt})


def _note(
    event: str, home: Path, environ: Mapping[str, str], given: "HookInput", *, is_private: bool
) -> None:
    notes = SessionNotes(home)
    if event in {"session-start", _PROMPT} and not given.subagent:
        is_run = is_headless(environ) or is_headless_transcript(given.transcript)
        notes.enter(given.session_id, given.cwd, is_headless=is_run)
    if is_private:
        return
    if event == _PROMPT and not given.subagent:
        from perdure.engine.learn.prose import is_paste, pasted_in, typed_keys
        from perdure.model.privacy import without_private
        from perdure.model.speech import speech_of

        prompt = speech_of("user", without_private(given.prompt)).text
        origins = [PASTED] if is_paste(pasted_in(prompt)) else []
        notes.mark(given.session_id, *origins, typed=typed_keys(prompt))
    elif event == "post-tool-use":
        command = given.tool_input.get("command")
        origin = origin_of(given.tool, command if isinstance(command, str) else "")
        notes.mark(given.session_id, *([origin] if origin else []))


def is_headless_transcript(path: str) -> bool:
    """Whether the first line of a transcript shows that Codex runs without a person."""
    with suppress(OSError, ValueError), Path(path).open("rb") as file:
        first = file.readline(_READ_BYTES)
        return b'"session_meta"' in first and b'"codex_exec"' in first
    return False


def note_prompt(home: Path, given: "HookInput") -> bool:
    """Record what a prompt switches; return whether it is a switch."""
    from perdure.model.privacy import switch_in

    switched = None if given.subagent else switch_in(given.prompt)
    if switched is not None and given.session_id:
        notes = SessionNotes(home)
        if notes.get(given.session_id).is_private is not switched:
            notes.switch(given.session_id, is_on=switched)
    return switched is not None


# ---------------------------------------------------------------- from a terminal
def terminal_session(environ: Mapping[str, str]) -> str:
    """Return the session in which a command runs; empty if the environment names none."""
    return environ.get("CLAUDE_CODE_SESSION_ID", "")


def set_private(home: Path, folder: str, session_id: str, *, is_on: bool) -> bool:
    """Make a session, or the newest of a folder, private or public; False if there is none."""
    notes = SessionNotes(home)
    if not session_id:
        return notes.switch_newest(folder, is_on=is_on)
    notes.switch(session_id, is_on=is_on)
    notes.enter(session_id, folder)
    return True


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches of a session; `use` and `contribute` are None if allowed, else the reason."""

    private: bool
    use: OptOut | None
    contribute: OptOut | None


def switches_at(home: Path, environ: Mapping[str, str], folder: str, session_id: str) -> Switches:
    """Return the switches of a session, or of the newest one in a folder."""
    notes = SessionNotes(home)
    note = notes.get(session_id) if session_id else notes.newest(folder)
    is_private = note is not None and note.is_private
    use = OptOut.PRIVATE if is_private else use_refusal(home, environ, folder)
    contribute = OptOut.PRIVATE if is_private else contribute_refusal(home, environ, folder)
    return Switches(is_private, use, contribute)


def settings_at(home: Path, environ: Mapping[str, str]) -> AgentSettings:
    """Return the settings of agents; a config that does not mention agents is not parsed."""
    with suppress(OSError), (home / "config.toml").open("rb") as file:
        if b"agents" in file.read(_READ_BYTES):
            from perdure.config import load_config

            return load_config(environ).agents
    return AgentSettings()


def _folders(cwd: str) -> tuple[str, ...]:
    """Return the paths of a folder: as given and, for a link, the real one."""
    return tuple({cwd: None, resolved_folder(cwd): None})


def _flag(environ: Mapping[str, str], name: str) -> bool | None:
    """Return whether a variable is set and not to no; None if it is not set."""
    value = environ.get(name)
    return None if value is None or value == "" else value.strip().lower() not in _NO
