"""The entries that each agent gets in its config files, and these files with and without them."""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import cast

from perdure import toml
from perdure.agents.jsonc import at, with_item, with_member, with_value, without, without_member
from perdure.config import value_at
from perdure.dataclass import dataclass, replace
from perdure.errors import InvalidValueError

NAME = "perdure"
BUILTIN_MEMORY, STATUS_LINE = "builtin-memory", "statusline"
COMMANDS = ("forget", "private", "recall", "remember")
"""The slash commands, for agents that have such."""
_MARKED_LINES = 3
AGENTS_MD = "agents-md"
_SERVERS, _HOOKS = "mcpServers", "hooks"
TOML_SERVER = ("mcp_servers", NAME)
_OURS = re.compile(r"(?:^|[/\s])perdure['\"]? hook(?:\s+([a-z-]*)|$)")
_CHOOSING = ("PERDURE_HOME", "MEMORY_VAULT_PATH")
_SECONDS = 10
"""How long an agent waits for a hook; the hook itself ends sooner."""
_CLAUDE_EDITS = "Bash|Edit|MultiEdit|NotebookEdit|Write"
_CLAUDE_SOURCES = "Bash|WebFetch|WebSearch|mcp__(?!(plugin_perdure_)?perdure__).*"
_GEMINI_EDITS = "run_shell_command|replace|write_file"
_GEMINI_SOURCES = "run_shell_command|web_fetch|google_web_search|mcp_(?!perdure_).*"
_CLAUDE_EVENTS = (
    ("SessionStart", "session-start", ""),
    ("UserPromptSubmit", "user-prompt-submit", ""),
    ("PreToolUse", "pre-tool-use", _CLAUDE_EDITS),
    ("PostToolUse", "post-tool-use", _CLAUDE_SOURCES),
    ("PostToolUseFailure", "post-tool-use", "Bash"),
    ("SubagentStart", "subagent-start", ""),
    ("PreCompact", "pre-compact", ""),
    ("Stop", "stop", ""),
    ("SessionEnd", "session-end", ""),
)
"""Its name of an event, ours, and which tools are meant: a regular expression."""
_CODEX_EVENTS = (
    ("SessionStart", "session-start", ""),
    ("UserPromptSubmit", "user-prompt-submit", ""),
    ("PreToolUse", "pre-tool-use", "Bash|apply_patch"),
    ("PostToolUse", "post-tool-use", "Bash|mcp__.*"),
    ("SubagentStart", "subagent-start", ""),
    ("PreCompact", "pre-compact", ""),
    ("Stop", "stop", ""),
)
"""Its regular expressions have no lookahead: the hook itself passes over our own tools."""
_GEMINI_EVENTS = (
    ("SessionStart", "session-start", ""),
    ("BeforeAgent", "user-prompt-submit", ""),
    ("BeforeTool", "pre-tool-use", _GEMINI_EDITS),
    ("AfterTool", "pre-tool-use", _GEMINI_EDITS),
    ("AfterTool", "post-tool-use", _GEMINI_SOURCES),
    ("AfterAgent", "stop", ""),
    ("SessionEnd", "session-end", ""),
)
"""BeforeTool can refuse a call, but gives its model no text; AfterTool gives it with the result.

Not PreCompress: it comes before every request, whether anything is compacted or not.
"""
_BEGIN, _END = "<!-- perdure: begin -->", "<!-- perdure: end -->"
_BLOCK = re.compile(rf"(?:(?<=\n)\r?\n)?{_BEGIN}.*?{_END}\r?\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HookEntry:
    event: str
    entry: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    choice: str
    """The question that decides: `BUILTIN_MEMORY` or `STATUS_LINE`."""
    name: str
    """A member of the JSON file, or `table.key` in TOML."""
    value: object
    default: object = None
    """What the agent does if it is not set."""
    replaces: bool = True
    """Whether it replaces a value that its user has set."""


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that was changed, from what to what; `was` is empty if it was not there."""

    name: str
    value: object
    was: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonFile:
    """What is wanted in a JSON file: a server, hooks, and what has to stand beside them."""

    path: Path
    servers: Mapping[str, object] | None = None
    section: str = _SERVERS
    hooks: tuple[HookEntry, ...] = ()
    beside: Mapping[str, object] | None = None
    offers: tuple[Setting, ...] = ()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class TomlFile:
    path: Path
    server: Mapping[str, object]
    offers: tuple[Setting, ...] = ()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is ours; one of its first lines says so."""

    path: Path
    text: str
    yields: bool = False
    """Whether a file of the user with the same name stays, and this one is not written."""

    def is_ours(self, text: str) -> bool:
        mark = next(line for line in self.text.splitlines() if "--uninstall" in line)
        return mark in text.splitlines()[:_MARKED_LINES]


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """A section that is wanted in a Markdown file, between two comments."""

    path: Path
    text: str


AgentFile = JsonFile | TomlFile | WholeFile | MarkdownSection


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent starts this program, so that it finds the memory that you use now."""

    program: str
    chosen: Mapping[str, str]
    """The variables by which memory is chosen here; an agent may not have them."""

    @property
    def server(self) -> dict[str, object]:
        started: dict[str, object] = {"command": self.program, "args": ["mcp"]}
        return {**started, "env": self.chosen} if self.chosen else started

    def hook(self, event: str, more: str = "") -> str:
        return self.run(f"hook {event}{more}")

    def run(self, words: str) -> str:
        chosen = "".join(f"{name}={shlex.quote(value)} " for name, value in self.chosen.items())
        return f"{chosen}{shlex.quote(self.program)} {words}"


def files_for(agent: str, environ: Mapping[str, str], program: str) -> tuple[AgentFile, ...]:
    home = Path(environ.get("HOME", "~")).expanduser()
    chosen = {name: environ[name] for name in _CHOOSING if environ.get(name)}
    return _AGENTS[agent](home, environ, Launch(program, chosen))


def program() -> str:
    """Return the command that this is, so that an agent with another PATH finds it too."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.exists() else NAME


def _claude_code(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(given).expanduser() if given else home / ".claude"
    servers = (folder if given else home) / ".claude.json"
    server = {"type": "stdio", **started.server}
    hooks = _hooks(_CLAUDE_EVENTS, started)
    return (
        JsonFile(folder / "settings.json", hooks=hooks, offers=_claude_settings(started)),
        JsonFile(servers, servers=server),
        *_commands_in("claude-code", folder, ".md", started),
    )


def _claude_settings(started: Launch) -> tuple[Setting, ...]:
    line = {"type": "command", "command": started.run("statusline")}
    return (
        Setting(BUILTIN_MEMORY, "autoMemoryEnabled", value=False, default=True),
        Setting(STATUS_LINE, "statusLine", value=line, replaces=False),
    )


def _codex(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("CODEX_HOME")
    folder = Path(given).expanduser() if given else home / ".codex"
    hooks = _hooks(_CODEX_EVENTS, started, " --agent codex")
    memory = Setting(BUILTIN_MEMORY, "features.memories", value=False, default=False)
    return (
        TomlFile(folder / "config.toml", started.server, offers=(memory,)),
        JsonFile(folder / "hooks.json", hooks=hooks),
    )


def _cursor(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    del environ
    folder = home / ".cursor"
    command = started.hook("session-start", " --agent cursor")
    return (
        JsonFile(folder / "mcp.json", servers=started.server),
        JsonFile(
            folder / "hooks.json",
            hooks=(HookEntry("sessionStart", {"command": command}),),
            beside={"version": 1},
        ),
    )


def _gemini_cli(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("GEMINI_CLI_HOME")
    folder = (Path(given).expanduser() if given else home) / ".gemini"
    hooks = _hooks(_GEMINI_EVENTS, started, " --agent gemini-cli", _SECONDS * 1000)
    return (
        JsonFile(folder / "settings.json", servers=started.server, hooks=hooks),
        *_commands_in("gemini-cli", folder, ".toml", started),
    )


def _opencode(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("XDG_CONFIG_HOME")
    folder = (Path(given).expanduser() if given else home / ".config") / "opencode"
    names = ("opencode.jsonc", "opencode.json")
    file = next((path for path in (folder / name for name in names) if path.exists()), None)
    server: dict[str, object] = {"type": "local", "command": [started.program, "mcp"]}
    if started.chosen:
        server["environment"] = started.chosen
    plugin = _text("opencode.js").replace('"@program@"', json.dumps(started.program))
    plugin = plugin.replace("{} // @chosen@", json.dumps(dict(started.chosen)))
    return (
        JsonFile(file or folder / names[-1], servers=server, section="mcp"),
        WholeFile(folder / "plugins" / "perdure.js", plugin),
        *_commands_in("opencode", folder, ".md", started),
    )


def _agents_md(home: Path, environ: Mapping[str, str], started: Launch) -> tuple[AgentFile, ...]:
    """Return the project's own file, for agents that read nothing else."""
    del home, environ, started
    return (MarkdownSection(Path.cwd() / "AGENTS.md", _text("agents.md")),)


def _commands_in(agent: str, folder: Path, suffix: str, started: Launch) -> Iterator[WholeFile]:
    """Yield the slash commands of an agent, as Markdown or, for Gemini CLI, as TOML."""
    for name in COMMANDS:
        text = _text(f"commands/{name}{suffix}").replace("@agent@", agent)
        text = text.replace("@private@", started.run("private"))
        yield WholeFile(folder / "commands" / f"{name}{suffix}", text, yields=True)


def _text(name: str) -> str:
    return files("perdure.agents").joinpath(name).read_text(encoding="utf-8")


def _hooks(
    events: Sequence[tuple[str, str, str]],
    started: Launch,
    more: str = "",
    timeout: int = _SECONDS,
) -> tuple[HookEntry, ...]:
    return tuple(
        HookEntry(name, _group(started.hook(event, more), matcher, timeout))
        for name, event, matcher in events
    )


def _group(command: str, matcher: str, timeout: int) -> dict[str, object]:
    named = {"matcher": matcher} if matcher else {}
    return {**named, "hooks": [{"type": "command", "command": command, "timeout": timeout}]}


_AGENTS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "cursor": _cursor,
    AGENTS_MD: _agents_md,
}
AGENTS = tuple(_AGENTS)


# ---------------------------------------------------------------- whose an entry is
def is_our_hook(entry: object) -> bool:
    """Whether an entry of a list of hooks runs this program."""
    command = cast("dict[str, object]", entry).get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def is_our_server(entry: object) -> bool:
    """Whether an entry among servers starts this program, with whatever options."""
    match entry:
        case {"command": str(command), "args": ["mcp", *_]} | {
            "command": [str(command), "mcp", *_]
        }:
            return Path(command).name == NAME
    return False


def _event_of(command: str) -> str:
    found = _OURS.search(command)
    return found[1] or "" if found else ""


# ---------------------------------------------------------------- with our entries, and without
@dataclass(frozen=True, slots=True)
class EditedText:
    """A text with our entries, and which objects and lists were made for them."""

    text: str
    made: tuple[tuple[str, ...], ...] = ()
    was_partly_there: bool = False
    replaced: tuple[ChangedSetting, ...] = ()
    left: str = ""
    """What of the user's is in the place of ours, and stays."""


def with_entries(text: str, wanted: AgentFile) -> EditedText:
    """Return a text with what is wanted; `InvalidValueError` if it is broken, or our name taken."""
    match wanted:
        case TomlFile():
            return _with_settings(_with_table(text, wanted), wanted)
        case WholeFile():
            return _with_whole(text, wanted)
        case MarkdownSection():
            return _with_section(text, wanted)
    return _with_settings(_with_members(text, wanted), wanted)


def without_entries(text: str, wanted: AgentFile, made: Sequence[tuple[str, ...]]) -> str:
    """Return a text without our entries, nor what was made for them and is empty now."""
    match wanted:
        case TomlFile():
            entry = value_at(toml.parse(text), TOML_SERVER)
            ours = is_our_server(entry)
            return toml.without(text, TOML_SERVER) if ours else text
        case WholeFile():
            return "" if wanted.is_ours(text) else text
        case MarkdownSection():
            return _BLOCK.sub("", text, count=1)
    if _is_blank(text):
        return text
    if is_our_server(_members(text, (wanted.section,)).get(NAME)):
        text = without_member(text, (wanted.section,), NAME)
    for event in _members(text, (_HOOKS,)):
        text = _without_hooks(text, event)
    for path in sorted(made, key=len, reverse=True):
        text = _without_empty(text, path)
    return text


def is_stale(text: str, wanted: AgentFile) -> bool:
    """Whether a text has entries of ours that are not those of this version, program and memory."""
    match wanted:
        case TomlFile():
            entry = value_at(toml.parse(text), TOML_SERVER)
            return is_our_server(entry) and not _starts_as(entry, wanted.server)
        case WholeFile():
            return wanted.is_ours(text) and text != wanted.text
        case MarkdownSection():
            found = _BLOCK.search(text)
            return found is not None and _block(wanted, _newline(text)) not in found[0]
    if _is_blank(text):
        return False
    server = _members(text, (wanted.section,)).get(NAME)
    other = is_our_server(server) and not _starts_as(server, wanted.servers or {})
    return other or _has_other_hooks(text, wanted)


def _has_other_hooks(text: str, wanted: JsonFile) -> bool:
    """Whether hooks of ours are there, and some are missing, or run something else."""
    there: set[tuple[str, str, str]] = set()
    for event, entries in _members(text, (_HOOKS,)).items():
        for entry in entries if isinstance(entries, list) else ():
            there.update((event, *each) for each in calls_of(entry))
    return bool(there) and there != {
        (hook.event, *each) for hook in wanted.hooks for each in calls_of(hook.entry)
    }


def calls_of(entry: object) -> Iterator[tuple[str, str]]:
    """Yield the matcher and the command of each hook of ours in an entry, or in its group."""
    group = cast("dict[str, object]", entry) if isinstance(entry, Mapping) else {}
    hooks = group.get("hooks")
    for each in [group, *(hooks if isinstance(hooks, list) else [])]:
        if is_our_hook(each):
            yield str(group.get("matcher", "")), str(cast("dict[str, object]", each)["command"])


def _is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def _starts_as(entry: object, server: Mapping[str, object]) -> bool:
    data = cast("dict[str, object]", entry)
    return all(
        data.get(name) == server.get(name) for name in ("command", "args", "env", "environment")
    )


def _with_members(text: str, wanted: JsonFile) -> EditedText:
    new = "{}\n" if _is_blank(text) else text
    had_ours = without_entries(text, wanted, ()) != text
    made: list[tuple[str, ...]] = []
    for key, value in (wanted.beside or {}).items():
        if key not in _members(new, ()):
            new = with_member(new, (), key, value)
            made.append((key,))
    if wanted.servers is not None:
        new = _with_server(new, wanted.section, wanted.servers, made)
    for hook in wanted.hooks:
        new = _with_hook(new, hook, made)
    return EditedText(text if new == "{}\n" else new, tuple(made), had_ours and new != text)


# ---------------------------------------------------------------- settings of the agent
def _with_settings(added: EditedText, wanted: JsonFile | TomlFile) -> EditedText:
    text, left, replaced = added.text, "", list(added.replaced)
    for setting in wanted.settings:
        was = setting_in(text, wanted, setting.name)
        if was == (setting.value,):
            continue
        if was and not setting.replaces:
            left = f"{setting.name} in {wanted.path}"
            continue
        text = _with_setting(text, wanted, setting.name, (setting.value,))
        replaced.append(ChangedSetting(setting.name, setting.value, was))
    return replace(added, text=text, replaced=tuple(replaced), left=left)


def without_setting(text: str, wanted: AgentFile, changed: ChangedSetting) -> str:
    if not isinstance(wanted, JsonFile | TomlFile) or _is_blank(text):
        return text
    if setting_in(text, wanted, changed.name) != (changed.value,):
        return text
    return _with_setting(text, wanted, changed.name, changed.was)


def setting_in(text: str, wanted: AgentFile, name: str) -> tuple[object, ...]:
    if isinstance(wanted, TomlFile):
        found = value_at(toml.parse(text), name.split("."))
        return () if found is None else (found,)
    members = {} if _is_blank(text) else _members(text, ())
    return (members[name],) if name in members else ()


def _with_setting(
    text: str, wanted: JsonFile | TomlFile, name: str, value: tuple[object, ...]
) -> str:
    if isinstance(wanted, TomlFile):
        place = name.split(".")
        return toml.with_value(text, place, value[0]) if value else toml.without(text, place)
    text = "{}\n" if _is_blank(text) else text
    if not value:
        return without_member(text, (), name)
    if name in _members(text, ()):
        return with_value(text, name, value[0])
    return with_member(text, (), name, value[0])


# ---------------------------------------------------------------- one kind of file each
def _with_table(text: str, wanted: TomlFile) -> EditedText:
    entry = value_at(toml.parse(text), TOML_SERVER)
    if entry is None:
        return EditedText(toml.with_value(text, TOML_SERVER, wanted.server))
    if not is_our_server(entry):
        raise _taken(f"[{'.'.join(TOML_SERVER)}]")
    return EditedText(text)


def _with_whole(text: str, wanted: WholeFile) -> EditedText:
    if not text.strip() or wanted.is_ours(text):
        return EditedText(wanted.text)
    if wanted.yields:
        return EditedText(text, left=str(wanted.path))
    raise _taken(wanted.path.name)


def _with_section(text: str, wanted: MarkdownSection) -> EditedText:
    if _BLOCK.search(text):
        return EditedText(text)
    newline = _newline(text)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return EditedText(text + gap + _block(wanted, newline) + newline)


def _block(wanted: MarkdownSection, newline: str) -> str:
    return f"{_BEGIN}\n{wanted.text}{_END}".replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _taken(where: str) -> InvalidValueError:
    return InvalidValueError(f"{where} is there already, and starts something else")


def _members(text: str, path: tuple[str, ...]) -> dict[str, object]:
    found = at(text, path)
    if found is None:
        return {}
    if not isinstance(found.plain, dict):
        raise InvalidValueError(f"{'.'.join(path) or 'the whole'} is no object")
    return cast("dict[str, object]", found.plain)


def _with_server(text: str, section: str, server: object, made: list[tuple[str, ...]]) -> str:
    text = _with_container(text, (section,), {}, made)
    there = _members(text, (section,))
    if NAME not in there:
        return with_member(text, (section,), NAME, server)
    if not is_our_server(there[NAME]):
        raise _taken(f"{section}.{NAME}")
    return text


def _with_hook(text: str, hook: HookEntry, made: list[tuple[str, ...]]) -> str:
    text = _with_container(text, (_HOOKS,), {}, made)
    path = (_HOOKS, hook.event)
    text = _with_container(text, path, [], made)
    there = at(text, path)
    if there is None or not isinstance(there.plain, list):
        raise InvalidValueError(f"{'.'.join(path)} is no list")
    ours = {_event_of(command) for _, command in calls_of(hook.entry)}
    if any(_event_of(command) in ours for entry in there.plain for _, command in calls_of(entry)):
        return text
    return with_item(text, path, hook.entry)


def _with_container(
    text: str, path: tuple[str, ...], empty: object, made: list[tuple[str, ...]]
) -> str:
    if at(text, path) is not None:
        return text
    made.append(path)
    return with_member(text, path[:-1], path[-1], empty)


# ---------------------------------------------------------------- ours among theirs
def _our_parts(entry: object) -> list[int]:
    """Return which hooks of a group are ours; of an entry that is no group, itself."""
    if is_our_hook(entry):
        return [0]
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return (
        [n for n, each in enumerate(hooks) if is_our_hook(each)] if isinstance(hooks, list) else []
    )


def _without_hooks(text: str, event: str) -> str:
    """Take our hooks of an event away, and a group if nothing else is in it."""
    path = (_HOOKS, event)
    found = at(text, path)
    entries = found.plain if found is not None and isinstance(found.plain, list) else []
    whole: list[int] = []
    for number, entry in reversed(list(enumerate(entries))):
        ours = _our_parts(entry)
        if ours and (is_our_hook(entry) or len(ours) == len(entry["hooks"])):
            whole.append(number)
        elif ours:
            text = _without_parts(text, path, number, ours)
    return without(text, path, whole) if whole else text


def _without_parts(text: str, path: tuple[str, ...], number: int, ours: Sequence[int]) -> str:
    events = at(text, path)
    assert events is not None  # noqa: S101 - it was just found
    group = events.elements[number].value
    inner = without(text[group.start : group.end], ("hooks",), ours)
    return text[: group.start] + inner + text[group.end :]


def _without_empty(text: str, path: tuple[str, ...]) -> str:
    parent = at(text, path[:-1])
    if parent is None or not isinstance(parent.plain, dict):
        return text
    if parent.plain.get(path[-1]) in ({}, []):
        return without_member(text, path[:-1], path[-1])
    return text
