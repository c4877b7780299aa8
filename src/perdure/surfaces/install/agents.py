"""What each agent is told, and in which of its files."""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

NAME = "perdure"
_OURS = re.compile(r"(?:^|[/\s])perdure['\"]? hook(?:\s|$)")
_CHOOSING = ("PERDURE_HOME", "MEMORY_VAULT_PATH")
_SECONDS = 10
"""How long an agent waits for a hook; the hook itself ends sooner."""
_CLAUDE_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PreCompact": "pre-compact",
    "Stop": "stop",
    "SessionEnd": "session-end",
}
_CODEX_EVENTS = {name: _CLAUDE_EVENTS[name] for name in list(_CLAUDE_EVENTS)[:4]}


@dataclass(frozen=True, slots=True)
class Hook:
    """An entry in a list of hooks of one event."""

    event: str
    entry: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JsonFile:
    """What is wanted in a JSON file: a server, hooks, and what has to stand beside them."""

    path: Path
    servers: Mapping[str, object] | None = None
    hooks: tuple[Hook, ...] = ()
    beside: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A server that is wanted in a TOML file."""

    path: Path
    server: Mapping[str, object]


Wanted = JsonFile | TomlFile


@dataclass(frozen=True, slots=True)
class Started:
    """How an agent starts this program, so that it finds the memory that you use now."""

    program: str
    chosen: Mapping[str, str]
    """The variables by which memory is chosen here; an agent may not have them."""

    @property
    def server(self) -> dict[str, object]:
        started: dict[str, object] = {"command": self.program, "args": ["mcp"]}
        return {**started, "env": self.chosen} if self.chosen else started

    def hook(self, event: str, more: str = "") -> str:
        said = "".join(f"{name}={shlex.quote(value)} " for name, value in self.chosen.items())
        return f"{said}{shlex.quote(self.program)} hook {event}{more}"


def wanted_by(agent: str, environ: Mapping[str, str], program: str) -> tuple[Wanted, ...]:
    """Return the files of an agent, and what is wanted in each."""
    home = Path(environ.get("HOME", "~")).expanduser()
    chosen = {name: environ[name] for name in _CHOOSING if environ.get(name)}
    return _AGENTS[agent](home, environ, Started(program, chosen))


def program() -> str:
    """Return the command that this is, so that an agent with another PATH finds it too."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.exists() else NAME


def _claude_code(home: Path, environ: Mapping[str, str], started: Started) -> tuple[Wanted, ...]:
    given = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(given).expanduser() if given else home / ".claude"
    servers = (folder if given else home) / ".claude.json"
    server = {"type": "stdio", **started.server}
    hooks = tuple(Hook(name, _group(started.hook(event))) for name, event in _CLAUDE_EVENTS.items())
    return JsonFile(folder / "settings.json", hooks=hooks), JsonFile(servers, servers=server)


def _codex(home: Path, environ: Mapping[str, str], started: Started) -> tuple[Wanted, ...]:
    given = environ.get("CODEX_HOME")
    folder = Path(given).expanduser() if given else home / ".codex"
    hooks = tuple(
        Hook(name, _group(started.hook(event, " --agent codex")))
        for name, event in _CODEX_EVENTS.items()
    )
    return (
        TomlFile(folder / "config.toml", started.server),
        JsonFile(folder / "hooks.json", hooks=hooks),
    )


def _cursor(home: Path, environ: Mapping[str, str], started: Started) -> tuple[Wanted, ...]:
    del environ
    folder = home / ".cursor"
    command = started.hook("session-start", " --agent cursor")
    return (
        JsonFile(folder / "mcp.json", servers=started.server),
        JsonFile(
            folder / "hooks.json",
            hooks=(Hook("sessionStart", {"command": command}),),
            beside={"version": 1},
        ),
    )


def _group(command: str) -> dict[str, object]:
    return {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}


_AGENTS = {"claude-code": _claude_code, "codex": _codex, "cursor": _cursor}
AGENTS = tuple(_AGENTS)


# ---------------------------------------------------------------- whose an entry is
def is_our_hook(entry: object) -> bool:
    """Whether an entry of a list of hooks runs this program."""
    command = cast("dict[str, object]", entry).get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def is_our_server(entry: object) -> bool:
    """Whether an entry among servers starts this program, with whatever options."""
    match entry:
        case {"command": str(command), "args": ["mcp", *_]}:
            return Path(command).name == NAME
    return False
