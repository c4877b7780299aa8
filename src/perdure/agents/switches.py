"""Whether a session may use memory, and whether it may contribute to it: decided before all else.

In this order: `PERDURE_OFF`, excluded folders, private mode, then `use` and `contribute` of the
environment, of the folder and of the config. Headless and CI runs use memory, and contribute only
if that is allowed.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.engine.session_notes import SessionNotes
from perdure.model.private import switch_in
from perdure.model.trust import AgentSettings, Reason

if TYPE_CHECKING:
    from perdure.agents.hooks import HookInput

OFF, USE, CONTRIBUTE = "PERDURE_OFF", "PERDURE_USE", "PERDURE_CONTRIBUTE"
_NO = frozenset({"", "0", "false", "no", "off"})
_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"
_MOST_CONFIG = 1 << 20


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether memory is switched off for this process and all that it starts."""
    return _says(environ, OFF) is True


def use_refusal(home: Path, environ: Mapping[str, str], given: "HookInput") -> Reason | None:
    """Return why a session may not use memory; None if it may."""
    settings, folders = settings_at(home, environ), _folders(given.cwd)
    if refusal := _refusal(home, environ, given, settings):
        return refusal
    said = _says(environ, USE)
    is_used = all(map(settings.uses, folders)) if said is None else said
    return None if is_used else Reason.NO_USE


def contribute_refusal(home: Path, environ: Mapping[str, str], given: "HookInput") -> Reason | None:
    """Return why a session may not contribute to memory; None if it may.

    Private mode is no such reason: a session may have public parts, and the reader of its
    transcript leaves out the others.
    """
    settings = settings_at(home, environ)
    if is_off(environ):
        return Reason.OFF
    said = _says(environ, CONTRIBUTE)
    if said is False:
        return Reason.NO_CONTRIBUTION
    found = (
        settings.refusal(each, is_headless=is_headless(environ), is_named=said is True)
        for each in _folders(given.cwd)
    )
    return next(filter(None, found), None)


def is_allowed(environ: Mapping[str, str]) -> bool:
    """Whether the run itself allows that it contributes, headless or not."""
    return _says(environ, CONTRIBUTE) is True


def is_headless(environ: Mapping[str, str]) -> bool:
    """Whether no person takes part, as far as the environment tells.

    Claude Code tells; of other agents, what they record does, and the reader looks at that.
    """
    return _says(environ, "CI") is True or environ.get(_ENTRYPOINT, "").startswith("sdk")


def note_prompt(home: Path, given: "HookInput") -> bool:
    """Note what a prompt switches; return whether it was a switch."""
    switched = switch_in(given.prompt)
    if switched is not None and given.session_id:
        notes = SessionNotes(home)
        if notes.get(given.session_id).is_private is not switched:
            notes.switch(given.session_id, is_on=switched)
    return switched is not None


def settings_at(home: Path, environ: Mapping[str, str]) -> AgentSettings:
    """Return what the config says of agents; nothing is parsed where it says nothing of them."""
    with suppress(OSError), (home / "config.toml").open("rb") as file:
        if b"agents" in file.read(_MOST_CONFIG):
            from perdure.config import load_config

            return load_config(environ).agents
    return AgentSettings()


def _refusal(
    home: Path, environ: Mapping[str, str], given: "HookInput", settings: AgentSettings
) -> Reason | None:
    if is_off(environ):
        return Reason.OFF
    if any(map(settings.excludes, _folders(given.cwd))):
        return Reason.EXCLUDED
    if given.session_id and SessionNotes(home).get(given.session_id).is_private:
        return Reason.PRIVATE
    return None


def _folders(cwd: str) -> tuple[str, ...]:
    """Return the names of a folder: as given and, where it is a link, as it is."""
    return tuple({cwd: None, os.path.realpath(cwd): None}) if cwd else ("",)


def _says(environ: Mapping[str, str], name: str) -> bool | None:
    """Return whether a variable is set to yes; None if it is not set."""
    value = environ.get(name)
    return None if value is None or value == "" else value.strip().lower() not in _NO
