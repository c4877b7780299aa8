"""The coding agents that Perdure installs into: their config files, and what each file gets.

To add an agent, write a function that returns its files, and add it to `_CLIENTS`. What a past
session of it looks like is in `past_sessions`, which files it loads in `instruction_files`.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from perdure.agents.entries import (
    NAME,
    AgentFile,
    HookEntry,
    JsonFile,
    MarkdownSection,
    Setting,
    TomlFile,
    WholeFile,
)
from perdure.dataclass import dataclass

BUILTIN_MEMORY, STATUS_LINE = "builtin-memory", "statusline"
"""The choices of `Setting.choice`."""
AGENTS_MD = "agents-md"
COMMANDS = ("forget", "private", "recall", "remember")
"""The slash commands, for agents that have them."""
_MEMORY_VARIABLES = ("PERDURE_HOME", "MEMORY_VAULT_PATH")
_SECONDS = 10
"""How long an agent waits for a hook; the hook itself ends earlier."""
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
"""The client's name of an event, ours, and a regular expression for the tools."""
_CODEX_EVENTS = (
    ("SessionStart", "session-start", ""),
    ("UserPromptSubmit", "user-prompt-submit", ""),
    ("PreToolUse", "pre-tool-use", "Bash|apply_patch"),
    ("PostToolUse", "post-tool-use", "Bash|mcp__.*"),
    ("SubagentStart", "subagent-start", ""),
    ("PreCompact", "pre-compact", ""),
    ("Stop", "stop", ""),
)
"""Its regular expressions have no lookahead: the hook itself ignores our own tools."""
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

PreCompress is not used: it comes before every request, whether anything is compacted or not.
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent starts this program, so that it uses the memory that is chosen now."""

    program: str
    environ: Mapping[str, str]
    """The variables that choose the memory; an agent may not have them."""

    @property
    def server(self) -> dict[str, object]:
        server: dict[str, object] = {"command": self.program, "args": ["mcp"]}
        return {**server, "env": self.environ} if self.environ else server

    def run(self, words: str) -> str:
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in self.environ.items())
        return f"{variables}{shlex.quote(self.program)} {words}"

    def hooks(
        self, events: Sequence[tuple[str, str, str]], options: str = "", timeout: int = _SECONDS
    ) -> tuple[HookEntry, ...]:
        return tuple(
            HookEntry(
                name,
                {
                    **({"matcher": matcher} if matcher else {}),
                    "hooks": [
                        {
                            "type": "command",
                            "command": self.run(f"hook {event}{options}"),
                            "timeout": timeout,
                        }
                    ],
                },
            )
            for name, event, matcher in events
        )


def files_for(agent: str, environ: Mapping[str, str], program: str) -> tuple[AgentFile, ...]:
    """Return the config files of an agent, each with the entries that it gets."""
    home = Path(environ.get("HOME", "~")).expanduser()
    chosen = {name: environ[name] for name in _MEMORY_VARIABLES if environ.get(name)}
    return _CLIENTS[agent](home, environ, Launch(program, chosen))


def program() -> str:
    """Return the path of this command, so that an agent with another PATH finds it too."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.exists() else NAME


# ---------------------------------------------------------------- one function per agent
def _claude_code(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(given).expanduser() if given else home / ".claude"
    line = {"type": "command", "command": launch.run("statusline")}
    offers = (
        Setting(BUILTIN_MEMORY, "autoMemoryEnabled", value=False, default=True),
        Setting(STATUS_LINE, "statusLine", value=line, replaces=False),
    )
    server = {"type": "stdio", **launch.server}
    return (
        JsonFile(folder / "settings.json", hooks=launch.hooks(_CLAUDE_EVENTS), offers=offers),
        JsonFile((folder if given else home) / ".claude.json", server=server),
        *_slash_commands("claude-code", folder, ".md", launch),
    )


def _codex(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("CODEX_HOME")
    folder = Path(given).expanduser() if given else home / ".codex"
    memory = Setting(BUILTIN_MEMORY, "features.memories", value=False, default=False)
    return (
        TomlFile(folder / "config.toml", launch.server, offers=(memory,)),
        JsonFile(folder / "hooks.json", hooks=launch.hooks(_CODEX_EVENTS, " --agent codex")),
    )


def _cursor(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    del environ
    hook = HookEntry("sessionStart", {"command": launch.run("hook session-start --agent cursor")})
    return (
        JsonFile(home / ".cursor" / "mcp.json", server=launch.server),
        JsonFile(home / ".cursor" / "hooks.json", hooks=(hook,), members={"version": 1}),
    )


def _gemini_cli(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("GEMINI_CLI_HOME")
    folder = (Path(given).expanduser() if given else home) / ".gemini"
    hooks = launch.hooks(_GEMINI_EVENTS, " --agent gemini-cli", _SECONDS * 1000)
    return (
        JsonFile(folder / "settings.json", server=launch.server, hooks=hooks),
        *_slash_commands("gemini-cli", folder, ".toml", launch),
    )


def _opencode(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    given = environ.get("XDG_CONFIG_HOME")
    folder = (Path(given).expanduser() if given else home / ".config") / "opencode"
    paths = (folder / "opencode.jsonc", folder / "opencode.json")
    file = next((path for path in paths if path.exists()), paths[-1])
    server: dict[str, object] = {"type": "local", "command": [launch.program, "mcp"]}
    if launch.environ:
        server["environment"] = launch.environ
    plugin = _resource("opencode.js").replace('"@program@"', json.dumps(launch.program))
    plugin = plugin.replace("{} // @chosen@", json.dumps(dict(launch.environ)))
    return (
        JsonFile(file, server=server, section="mcp"),
        WholeFile(folder / "plugins" / "perdure.js", plugin),
        *_slash_commands("opencode", folder, ".md", launch),
    )


def _agents_md(home: Path, environ: Mapping[str, str], launch: Launch) -> tuple[AgentFile, ...]:
    """Return the project's own AGENTS.md, for agents that read nothing else."""
    del home, environ, launch
    return (MarkdownSection(Path.cwd() / "AGENTS.md", _resource("agents.md")),)


_CLIENTS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "cursor": _cursor,
    AGENTS_MD: _agents_md,
}
AGENTS = tuple(_CLIENTS)


def _slash_commands(agent: str, folder: Path, suffix: str, launch: Launch) -> Iterator[WholeFile]:
    """Yield the slash commands of an agent, as Markdown or, for Gemini CLI, as TOML."""
    for name in COMMANDS:
        text = _resource(f"commands/{name}{suffix}").replace("@agent@", agent)
        text = text.replace("@private@", launch.run("private"))
        yield WholeFile(folder / "commands" / f"{name}{suffix}", text, yields=True)


def _resource(name: str) -> str:
    return files("perdure.agents").joinpath(name).read_text(encoding="utf-8")
