"""Our entries in the config files of agents: texts with them, and without them.

Each kind of file is a class: `add` returns a text with our entries, `remove` a text without them,
`is_stale` tells whether a text has entries of another version, program or memory.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from perdure import toml
from perdure.agents.jsonc import at, with_item, with_member, with_value, without, without_member
from perdure.config import value_at
from perdure.dataclass import dataclass, replace
from perdure.errors import InvalidValueError

NAME = "perdure"
TOML_SERVER = ("mcp_servers", NAME)
_HOOKS = "hooks"
_MARKED_LINES = 3
_OUR_COMMAND = re.compile(r"(?:^|[/\s])perdure['\"]? hook(?:\s+([a-z-]*)|$)")
_BEGIN, _END = "<!-- perdure: begin -->", "<!-- perdure: end -->"
_BLOCK = re.compile(rf"(?:(?<=\n)\r?\n)?{_BEGIN}.*?{_END}\r?\n?", re.DOTALL)
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookEntry:
    event: str
    entry: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the agent that is changed if its user chooses so."""

    choice: str
    """The question that decides: `BUILTIN_MEMORY` or `STATUS_LINE` of `clients`."""
    name: str
    """A member of the JSON file, or `table.key` in TOML."""
    value: object
    default: object = None
    """What the agent does if it is not set."""
    replaces: bool = True
    """Whether it replaces a value that the user has set."""


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that was changed; `was` is empty if it was not set."""

    name: str
    value: object
    was: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text with our entries, and the objects and lists that were created for them."""

    text: str
    created: tuple[Keys, ...] = ()
    was_partly_there: bool = False
    replaced: tuple[ChangedSetting, ...] = ()
    left: str = ""
    """What of the user's has the place of an entry, and stays."""


class AgentFile:
    path: Path
    offers: tuple[Setting, ...] = ()
    """The settings of the agent that the user may choose to change."""
    settings: tuple[Setting, ...] = ()
    """The settings that the user chose."""

    def add(self, text: str) -> EditedText:
        """Add our entries; raises `InvalidValueError` if the text is broken or our name taken."""
        raise NotImplementedError

    def remove(self, text: str, created: Sequence[Keys] = ()) -> str:
        """Remove our entries, and what was created for them if it is empty."""
        raise NotImplementedError

    def is_stale(self, text: str) -> bool:
        """Whether a text has entries of ours that differ from those of this file."""
        raise NotImplementedError

    def setting(self, text: str, name: str) -> tuple[object, ...]:
        """Return the value of a setting; empty if it is not set."""
        raise NotImplementedError

    def with_setting(self, text: str, name: str, value: tuple[object, ...]) -> str:
        """Change a setting; an empty value removes it."""
        raise NotImplementedError

    def restore(self, text: str, changed: ChangedSetting) -> str:
        """Restore a setting that was changed, unless the user has changed it since."""
        if is_blank(text) or self.setting(text, changed.name) != (changed.value,):
            return text
        return self.with_setting(text, changed.name, changed.was)

    def _with_settings(self, edited: EditedText) -> EditedText:
        text, left, replaced = edited.text, "", list(edited.replaced)
        for setting in self.settings:
            was = self.setting(text, setting.name)
            if was == (setting.value,):
                continue
            if was and not setting.replaces:
                left = f"{setting.name} in {self.path}"
                continue
            text = self.with_setting(text, setting.name, (setting.value,))
            replaced.append(ChangedSetting(setting.name, setting.value, was))
        return replace(edited, text=text, replaced=tuple(replaced), left=left)


@dataclass(frozen=True, slots=True)
class TomlFile(AgentFile):
    path: Path
    server: Mapping[str, object]
    offers: tuple[Setting, ...] = ()
    settings: tuple[Setting, ...] = ()

    def add(self, text: str) -> EditedText:
        entry = value_at(toml.parse(text), TOML_SERVER)
        if entry is None:
            text = toml.with_value(text, TOML_SERVER, self.server)
        elif not is_our_server(entry):
            raise _taken(f"[{'.'.join(TOML_SERVER)}]")
        return self._with_settings(EditedText(text))

    def remove(self, text: str, created: Sequence[Keys] = ()) -> str:
        del created
        is_ours = is_our_server(value_at(toml.parse(text), TOML_SERVER))
        return toml.without(text, TOML_SERVER) if is_ours else text

    def is_stale(self, text: str) -> bool:
        entry = value_at(toml.parse(text), TOML_SERVER)
        return is_our_server(entry) and not _is_same_server(entry, self.server)

    def setting(self, text: str, name: str) -> tuple[object, ...]:
        found = value_at(toml.parse(text), name.split("."))
        return () if found is None else (found,)

    def with_setting(self, text: str, name: str, value: tuple[object, ...]) -> str:
        keys = name.split(".")
        return toml.with_value(text, keys, value[0]) if value else toml.without(text, keys)


@dataclass(frozen=True, slots=True)
class WholeFile(AgentFile):
    """A file that is ours; one of its first lines marks it."""

    path: Path
    text: str
    yields: bool = False
    """Whether a file of the user with the same name stays, and this one is not written."""

    def is_ours(self, text: str) -> bool:
        mark = next(line for line in self.text.splitlines() if "--uninstall" in line)
        return mark in text.splitlines()[:_MARKED_LINES]

    def add(self, text: str) -> EditedText:
        if not text.strip() or self.is_ours(text):
            return EditedText(self.text)
        if self.yields:
            return EditedText(text, left=str(self.path))
        raise _taken(self.path.name)

    def remove(self, text: str, created: Sequence[Keys] = ()) -> str:
        del created
        return "" if self.is_ours(text) else text

    def is_stale(self, text: str) -> bool:
        return self.is_ours(text) and text != self.text


@dataclass(frozen=True, slots=True)
class MarkdownSection(AgentFile):
    """A section of a Markdown file, between two comments."""

    path: Path
    text: str

    def add(self, text: str) -> EditedText:
        if _BLOCK.search(text):
            return EditedText(text)
        newline = _newline(text)
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return EditedText(text + gap + self._block(newline) + newline)

    def remove(self, text: str, created: Sequence[Keys] = ()) -> str:
        del created
        return _BLOCK.sub("", text, count=1)

    def is_stale(self, text: str) -> bool:
        found = _BLOCK.search(text)
        return found is not None and self._block(_newline(text)) not in found[0]

    def _block(self, newline: str) -> str:
        return f"{_BEGIN}\n{self.text}{_END}".replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


@dataclass(frozen=True, slots=True)
class JsonFile(AgentFile):
    """A JSON file with a server, hooks, and members that they need."""

    path: Path
    server: Mapping[str, object] | None = None
    section: str = "mcpServers"
    hooks: tuple[HookEntry, ...] = ()
    members: Mapping[str, object] | None = None
    offers: tuple[Setting, ...] = ()
    settings: tuple[Setting, ...] = ()

    def add(self, text: str) -> EditedText:
        new = "{}\n" if is_blank(text) else text
        had_ours = self.remove(text) != text
        created: list[Keys] = []
        for key, value in (self.members or {}).items():
            if key not in _members(new, ()):
                new = with_member(new, (), key, value)
                created.append((key,))
        if self.server is not None:
            new = self._with_server(new, self.server, created)
        for hook in self.hooks:
            new = _with_hook(new, hook, created)
        new_text = text if new == "{}\n" else new
        return self._with_settings(EditedText(new_text, tuple(created), had_ours and new != text))

    def remove(self, text: str, created: Sequence[Keys] = ()) -> str:
        if is_blank(text):
            return text
        if is_our_server(_members(text, (self.section,)).get(NAME)):
            text = without_member(text, (self.section,), NAME)
        for event in _members(text, (_HOOKS,)):
            text = _without_hooks(text, event)
        for path in sorted(created, key=len, reverse=True):
            text = _without_empty(text, path)
        return text

    def is_stale(self, text: str) -> bool:
        if is_blank(text):
            return False
        server = _members(text, (self.section,)).get(NAME)
        if is_our_server(server) and not _is_same_server(server, self.server or {}):
            return True
        there: set[tuple[str, str, str]] = set()
        for event, entries in _members(text, (_HOOKS,)).items():
            for entry in entries if isinstance(entries, list) else ():
                there.update((event, *each) for each in calls_of(entry))
        wanted = {(hook.event, *each) for hook in self.hooks for each in calls_of(hook.entry)}
        return bool(there) and there != wanted

    def setting(self, text: str, name: str) -> tuple[object, ...]:
        members = {} if is_blank(text) else _members(text, ())
        return (members[name],) if name in members else ()

    def with_setting(self, text: str, name: str, value: tuple[object, ...]) -> str:
        text = "{}\n" if is_blank(text) else text
        if not value:
            return without_member(text, (), name)
        if name in _members(text, ()):
            return with_value(text, name, value[0])
        return with_member(text, (), name, value[0])

    def _with_server(self, text: str, server: object, created: list[Keys]) -> str:
        text = _with_container(text, (self.section,), {}, created)
        there = _members(text, (self.section,))
        if NAME not in there:
            return with_member(text, (self.section,), NAME, server)
        if not is_our_server(there[NAME]):
            raise _taken(f"{self.section}.{NAME}")
        return text


def is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def _taken(where: str) -> InvalidValueError:
    return InvalidValueError(f"{where} is there already, and starts something else")


# ---------------------------------------------------------------- which entries are ours
def is_our_hook(entry: object) -> bool:
    """Whether an entry of a list of hooks runs this program."""
    command = cast("dict[str, object]", entry).get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and bool(_OUR_COMMAND.search(command))


def is_our_server(entry: object) -> bool:
    """Whether an entry among servers starts this program, with any options."""
    match entry:
        case {"command": str(command), "args": ["mcp", *_]} | {
            "command": [str(command), "mcp", *_]
        }:
            return Path(command).name == NAME
    return False


def _is_same_server(entry: object, server: Mapping[str, object]) -> bool:
    data = cast("dict[str, object]", entry)
    names = ("command", "args", "env", "environment")
    return all(data.get(name) == server.get(name) for name in names)


def calls_of(entry: object) -> Iterator[tuple[str, str]]:
    """Yield the matcher and the command of each hook of ours in an entry, or in its group."""
    group = cast("dict[str, object]", entry) if isinstance(entry, Mapping) else {}
    hooks = group.get("hooks")
    for each in [group, *(hooks if isinstance(hooks, list) else [])]:
        if is_our_hook(each):
            yield str(group.get("matcher", "")), str(cast("dict[str, object]", each)["command"])


def _event_of(command: str) -> str:
    found = _OUR_COMMAND.search(command)
    return found[1] or "" if found else ""


# ---------------------------------------------------------------- JSON texts
def _members(text: str, path: Keys) -> dict[str, object]:
    found = at(text, path)
    if found is None:
        return {}
    if not isinstance(found.plain, dict):
        raise InvalidValueError(f"{'.'.join(path) or 'the file'} is not an object")
    return cast("dict[str, object]", found.plain)


def _with_hook(text: str, hook: HookEntry, created: list[Keys]) -> str:
    text = _with_container(text, (_HOOKS,), {}, created)
    path = (_HOOKS, hook.event)
    text = _with_container(text, path, [], created)
    there = at(text, path)
    if there is None or not isinstance(there.plain, list):
        raise InvalidValueError(f"{'.'.join(path)} is not a list")
    ours = {_event_of(command) for _, command in calls_of(hook.entry)}
    if any(_event_of(command) in ours for entry in there.plain for _, command in calls_of(entry)):
        return text
    return with_item(text, path, hook.entry)


def _with_container(text: str, path: Keys, empty: object, created: list[Keys]) -> str:
    if at(text, path) is not None:
        return text
    created.append(path)
    return with_member(text, path[:-1], path[-1], empty)


def _our_positions(entry: object) -> list[int]:
    """Return which hooks of a group are ours; 0 for an entry that is itself a hook of ours."""
    if is_our_hook(entry):
        return [0]
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    listed = hooks if isinstance(hooks, list) else []
    return [number for number, each in enumerate(listed) if is_our_hook(each)]


def _without_hooks(text: str, event: str) -> str:
    """Remove our hooks of an event, and a group if nothing else is in it."""
    path = (_HOOKS, event)
    found = at(text, path)
    entries = found.plain if found is not None and isinstance(found.plain, list) else []
    whole: list[int] = []
    for number, entry in reversed(list(enumerate(entries))):
        ours = _our_positions(entry)
        if ours and (is_our_hook(entry) or len(ours) == len(entry["hooks"])):
            whole.append(number)
        elif ours:
            events = at(text, path)
            assert events is not None  # noqa: S101 - it was just found
            group = events.elements[number].value
            inner = without(text[group.start : group.end], ("hooks",), ours)
            text = text[: group.start] + inner + text[group.end :]
    return without(text, path, whole) if whole else text


def _without_empty(text: str, path: Keys) -> str:
    parent = at(text, path[:-1])
    if parent is None or not isinstance(parent.plain, dict):
        return text
    if parent.plain.get(path[-1]) in ({}, []):
        return without_member(text, path[:-1], path[-1])
    return text
