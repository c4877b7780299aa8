"""The real agents: how each is set up, started once with a prompt, and what it keeps where."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.agents.clients import COMMANDS
from perdure.agents.hooks import home_of
from perdure.agents.pending_sessions import PendingSessions, capture_lock
from tests.clients.models import Call, Model, Turn, serving

PERDURE = str(Path(sys.executable).with_name("perdure"))
_SECONDS = 120
_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "IS_SANDBOX": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


_TRACER = """\
#!/bin/sh
[ "$1" = hook ] && echo "$2" >> "{log}"
exec "{real}" "$@"
"""


_SPEAKER = """\
#!{python}
import sys
from perdure.agents import hooks, moments

given = {{"pre-tool-use": "RULE-LINE", "post-tool-use": "FIX-LINE", "subagent-start": "SUB-LINE"}}
event = sys.argv[2] if len(sys.argv) > 2 else ""
if sys.argv[1] == "hook" and event in given:
    with open("{log}", "a") as log:
        print(event, file=log)
    blocks = event == "pre-tool-use" and {blocks}
    line = moments.Emission(given[event], blocks=blocks)
    moments.MOMENTS[event] = lambda moment: (
        moments.NOTHING if moment.may_only_block and not blocks else line
    )
    hooks.run(sys.argv[2:])
    sys.exit()
if sys.argv[1] == "private":
    print("PRIVATE-IS", sys.argv[2])
    sys.exit()
import os

os.execv("{real}", ["{real}", *sys.argv[1:]])
"""
"""Gives a line at each moment of a tool call, in the shape in which memory would."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the agents."""

    name: str
    program: str
    arguments: Callable[[str, bool], Sequence[str]]
    """The words that start it with a prompt; True goes on with the last session."""
    files: Callable[[int], Mapping[str, str]]
    """Its config as its user has it, by path below the home; a model is at a port."""
    environ: Callable[[int], Mapping[str, str]]
    events: frozenset[str]
    """The hooks that a session calls."""
    shell: Callable[[str], Call]
    """The call of its tool that runs a command."""
    small: tuple[str, str] = ("", "")
    """What to replace in its config, and by what, so that it compacts its context early."""
    compact: str = ""
    """The prompt that compacts the context, if a prompt can."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What an agent did."""

    model: Model
    code: int
    output: str

    @property
    def shown(self) -> str:
        """All that the model was shown in the end."""
        return self.model.turns[-1].text if self.model.turns else ""


@dataclass(frozen=True, slots=True)
class Client:
    """An agent of one user, in one project."""

    kind: Kind
    programs: Path
    """Where npm installed it."""
    home: Path
    project: Path

    def set_up(self, *, small: bool = False) -> None:
        """Write its config as a user may have it, and make a project.

        With a small context, it compacts after a few turns. These tests run agents without a
        person, so that is allowed to contribute.
        """
        self.configure("[agents]\nheadless = true\n")
        for name, text in self.kind.files(0).items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            new = text.replace(*self.kind.small) if small else text
            path.write_text(new, encoding="utf-8")
        self.project.mkdir(parents=True, exist_ok=True)
        (self.project / "README.md").write_text("# Harbour\n", encoding="utf-8")
        for words in (
            ("init", "-q"),
            ("add", "."),
            ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin"),
        ):
            self._run(("git", *words), {})

    def configure(self, text: str) -> None:
        """Write the config of memory."""
        path = self.home / ".perdure" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def files_with(self, word: str) -> list[Path]:
        """Return the files of memory that have a word."""
        files = [path for path in (self.home / ".perdure").rglob("*") if path.is_file()]
        return [path for path in files if word.lower().encode() in path.read_bytes().lower()]

    def configured(self) -> dict[str, bytes]:
        """Return its config files that there are, ours and its own."""
        names = [*self.kind.files(0), *INSTALLED[self.kind.name]]
        paths = {name: self.home / name for name in names}
        return {name: path.read_bytes() for name, path in paths.items() if path.exists()}

    def perdure(self, *words: str) -> str:
        done = self._run((PERDURE, *words), {})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *options: str) -> None:
        self.perdure("install", self.kind.name, "--yes", *options)

    def trace(self) -> None:
        """Let what was installed note each call, with the input and the answer of each hook."""
        self._replace(_TRACER.format(real=PERDURE, log=self._trace))

    def speak(self, *, blocks: bool = False) -> None:
        """Let what was installed give a line at each tool call, or refuse it."""
        values = {"python": sys.executable, "real": PERDURE, "log": self._trace, "blocks": blocks}
        self._replace(_SPEAKER.format(**values))

    def _replace(self, script: str) -> None:
        """Put a script in the place of our program, wherever it was installed."""
        tracer = self.home / "traced" / "perdure"
        tracer.parent.mkdir()
        tracer.write_text(script, encoding="utf-8")
        tracer.chmod(0o755)
        for name in self.configured():
            path = self.home / name
            path.write_text(path.read_text().replace(PERDURE, str(tracer)), encoding="utf-8")

    @property
    def traced(self) -> list[str]:
        """The events of all hooks that were called."""
        return self._trace.read_text(encoding="utf-8").split() if self._trace.exists() else []

    @property
    def _trace(self) -> Path:
        return self.home / "trace"

    def uninstall(self) -> None:
        self.perdure("install", self.kind.name, "--yes", "--uninstall")

    def run(self, prompt: str, *script: Turn, goes_on: bool = False, aside: str = "ok") -> Ran:
        """Run a session of one prompt, or go on with the last, until it is captured."""
        with serving(script, aside) as (model, port):
            self._point_at(port)
            words = (self.kind.program, *self.kind.arguments(prompt, goes_on))
            done = self._run(words, self.kind.environ(port))
            self._point_at(0)
            self.settle()
        return Ran(model, done.returncode, done.stdout + done.stderr)

    def settle(self) -> None:
        """Wait until no session is pending, and no model is asked in the background."""
        home = home_of(self._environ({}))
        assert home is not None
        until = time.time() + _SECONDS
        time.sleep(0.5)  # a hook that the agent does not wait for begins
        while time.time() < until:
            with capture_lock(home) as is_free:
                if is_free and not PendingSessions(home) and not self._drains():
                    return
            time.sleep(0.2)
        raise AssertionError(f"sessions still wait to be kept: {list(PendingSessions(home))}")

    def _drains(self) -> bool:
        """Whether a process of this user keeps sessions, or asks a model about them."""
        mark = f"HOME={self.home}".encode()
        return any(
            b"drain" in _bytes(process.with_name("cmdline"))
            for process in Path("/proc").glob("[0-9]*/environ")
            if mark in _bytes(process).split(b"\0")
        )

    def _point_at(self, port: int) -> None:
        """Let its config name a port of a model; all else in it stays."""
        for path in (self.home / name for name in self.kind.files(0)):
            text = path.read_bytes().decode()
            new = re.sub(r"(?<=http://127\.0\.0\.1:)\d+", str(port), text)
            path.write_bytes(new.encode())

    def _environ(self, more: Mapping[str, str]) -> dict[str, str]:
        bin_ = self.programs / "node_modules" / ".bin"
        path = os.pathsep.join([str(Path(PERDURE).parent), str(bin_), "/usr/local/bin", "/usr/bin"])
        own = {"HOME": str(self.home), "USER": "ana", "LANG": "C.UTF-8", "TERM": "dumb"}
        return {**_QUIET, **own, "SHELL": "/bin/bash", "PATH": f"{path}:/bin", **more}

    def _run(
        self, words: Sequence[str], more: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.project,
            env=self._environ(more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# ---------------------------------------------------------------- the four
_EVENTS = frozenset({"session-start", "user-prompt-submit", "stop"})
_CODEX = """\
# mine
model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
"""


def _gemini_settings(_: int) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "gemini-2.5-flash"},
    }
    return {".gemini/settings.json": json.dumps(settings, indent=2) + "\n"}


def _opencode_settings(port: int) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "made-up"},
        "models": {"scripted": {"name": "scripted"}},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "model": "scripted/scripted",
        "provider": {"scripted": provider},
    }
    return {".config/opencode/opencode.json": json.dumps(settings, indent=2)}


def _claude_arguments(prompt: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - one of two
    more = ["--continue"] if goes_on else []
    return ["-p", prompt, "--output-format", "json", "--dangerously-skip-permissions", *more]


def _codex_arguments(prompt: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - one of two
    options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    options.append("--dangerously-bypass-approvals-and-sandbox")
    return ["exec", *options, *(["resume", "--last"] if goes_on else []), prompt]


def _gemini_arguments(prompt: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - one of two
    return ["--yolo", "--skip-trust", *(["--resume", "latest"] if goes_on else []), "-p", prompt]


def _opencode_arguments(prompt: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - one of two
    return ["run", *(["--continue"] if goes_on else []), prompt]


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "claude-code",
            "claude",
            _claude_arguments,
            lambda _: {".claude/settings.json": '{\n    "includeCoAuthoredBy": false\n}\n'},
            lambda port: {
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
                "ANTHROPIC_API_KEY": "made-up",
            },
            _EVENTS | {"session-end"},
            lambda command: Call("Bash", {"command": command, "description": "run it"}),
            compact="/compact",
        ),
        Kind(
            "codex",
            "codex",
            _codex_arguments,
            lambda port: {".codex/config.toml": _CODEX.format(port=port)},
            lambda _: {"SCRIPTED_KEY": "made-up"},
            _EVENTS,
            lambda command: Call("exec_command", {"cmd": command}),
            small=("# mine\n", "# mine\nmodel_auto_compact_token_limit = 1000\n"),
        ),
        Kind(
            "gemini-cli",
            "gemini",
            _gemini_arguments,
            _gemini_settings,
            lambda port: {
                "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
                "GEMINI_API_KEY": "made-up",
            },
            _EVENTS | {"session-end"},
            lambda command: Call("run_shell_command", {"command": command}),
            small=('2.5-flash"\n', '2.5-flash",\n    "compressionThreshold": 0.01\n'),
        ),
        Kind(
            "opencode",
            "opencode",
            _opencode_arguments,
            _opencode_settings,
            lambda _: {},
            _EVENTS,
            lambda command: Call("bash", {"command": command, "description": "run it"}),
            small=('"name": "scripted"\n', '"limit": {"context": 90000, "output": 1000}\n'),
        ),
    )
}
INSTALLED = {
    "claude-code": (".claude.json", *(f".claude/commands/{name}.md" for name in COMMANDS)),
    "codex": (".codex/hooks.json",),
    "gemini-cli": tuple(f".gemini/commands/{name}.toml" for name in COMMANDS),
    "opencode": (
        ".config/opencode/plugins/perdure.js",
        *(f".config/opencode/commands/{name}.md" for name in COMMANDS),
    ),
}
"""What `perdure install` adds where there was nothing."""


def clients(*names: str) -> pytest.MarkDecorator:
    """Let a test run with each agent, or with those that are named."""
    return pytest.mark.parametrize("client", names or tuple(KINDS), indirect=True)
