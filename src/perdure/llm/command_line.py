"""The user's own command-line clients, run headless: Claude Code and Codex.

Every run has its own folder with an empty working folder, a home and a config home, and removes it
afterwards. The client reads nothing of the user's config: no hooks, plug-ins, MCP servers, skills
or instructions, and can use no tool. `PERDURE_INTERNAL` switches our own hooks off. The prompt is
passed in an unnamed file, never in arguments.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ClassVar

from perdure.dataclass import dataclass, field
from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    LanguageModelError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.files import locked
from perdure.llm import supervisor
from perdure.llm.contract import (
    Answer,
    Refusal,
    Reply,
    Request,
    Truncation,
    Usage,
    is_closed,
    refuse_constant,
)
from perdure.llm.http_services import (
    INPUT_COUNTS,
    MAX_ANSWER,
    parse_usage,
    schema_prompt,
    strip_fence,
)
from perdure.model.trust import INTERNAL
from perdure.model.values import JSON, plain, shortened, visible

MOST_SECONDS = 120.0
"""The limit of one run, even if the caller allows more."""
_SYSTEM = "You answer one question in writing. You have no tools and need none."
_FOLDERS = ("work", "home", "config", "tmp")
_ALONE = ("-I", "-S", supervisor.__file__)
_GRACE_SECONDS = 5.0
_PAUSE_SECONDS = 0.01
_PIECE = 65536
_LONGEST_MESSAGE = 200
_NO_SERVERS = '{"mcpServers":{}}'
_CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CODEX_OFF = (
    *("apps", "browser_use", "code_mode_host", "computer_use", "daemon_auto_start", "goals"),
    *("hooks", "image_generation", "memories", "multi_agent", "plugins", "remote_plugin"),
    *("shell_snapshot", "shell_tool", "skill_search", "sleep_tool", "tool_suggest"),
    *("unified_exec", "view_image", "workspace_dependencies", "api_key_model_discovery"),
)
"""Features that offer tools, start processes, or call other services."""
_CODEX_CONFIG: dict[str, JSON] = {
    "analytics.enabled": False,
    "approval_policy": "never",
    "check_for_update_on_startup": False,
    "history.persistence": "none",
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "model_reasoning_effort": "low",
    "project_doc_max_bytes": 0,
    "skills.bundled.enabled": False,
    "skills.include_instructions": False,
    "web_search": "disabled",
    **{f"features.{name}": False for name in _CODEX_OFF},
}
_NOT_ALLOWED = frozenset({400, 401, 403, 404})
_PASSED_ON = (
    frozenset({"PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"})
    | frozenset({"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"})
    | frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
    | frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where a client may write, its environment, and the model."""

    folder: Path
    """The folder of runs, one at a time."""
    environ: Mapping[str, str] = field(repr=False)
    """The user's environment, of which the client gets only what it needs."""
    model: str = ""
    """Empty for the client's default."""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    """Empty to use the login of the user's client."""
    max_output_tokens: int = 4_096


class CommandLineCompleter(ABC):
    """A `Completer` that runs a client for each request. It does not retry."""

    protocol: ClassVar[str]
    program: ClassVar[str]
    needed: ClassVar[frozenset[str]]
    """Further variables that this client gets, by name."""
    needed_prefixes: ClassVar[tuple[str, ...]]

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.model = settings.model or self.protocol
        self.max_output_tokens = settings.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        if request.tools or any(each.role == "assistant" for each in request.messages):
            raise InvalidValueError(
                f"{self.protocol} answers a single prompt, and can't call tools. "
                "Fix: use the provider openai or anthropic."
            )
        until = time.monotonic() + min(seconds, MOST_SECONDS)
        with locked(self._settings.folder / "run.lock", until - time.monotonic()) as lock:
            if lock is None:
                raise self._unreachable("another run used all of the time", billed=False)
            reply = self._reply(self._run(request, until, lock))
        return (
            Answer(strip_fence(reply.text), (), reply.usage) if isinstance(reply, Answer) else reply
        )

    def _run(self, request: Request, until: float, lock: int) -> bytes:
        """Return what the client printed, and remove the folder of the run."""
        folder = self._settings.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)  # left by a run whose supervisor was killed
        try:
            for name in _FOLDERS:
                (folder / name).mkdir(mode=0o700, parents=True)
            command = [self._path(), *self._arguments(request, folder)]
            environ = self._environ(folder, until - time.monotonic())
            with _started(command, _prompt(request), environ, folder, (until, lock)) as process:
                return self._output(process, until)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self) -> str:
        found = shutil.which(self.program, path=self._settings.environ.get("PATH", ""))
        if found is None or not Path(found).is_absolute():
            fix = f"install {self.program}, or choose another provider in [llm]"
            raise self._unreachable(f"{self.program} is not in PATH", fix, billed=False)
        return found

    def _output(self, process: "subprocess.Popen[bytes]", until: float) -> bytes:
        """Return the output of a client, within limits of time and size."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        pieces: list[bytes] = []
        size = 0
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise self._unreachable("it did not answer in time, and was killed")
            piece = os.read(process.stdout.fileno(), _PIECE)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
            if size > MAX_ANSWER:
                raise self._malformed(f"it is longer than {MAX_ANSWER // 1_000_000} MB")

    def _environ(self, folder: Path, seconds: float) -> dict[str, str]:
        """Return the environment of a run: variables to reach the service, and its own folders."""
        given = self._settings.environ
        passed = {
            name: value
            for name, value in given.items()
            if name in _PASSED_ON or name in self.needed or name.startswith(self.needed_prefixes)
        }
        own = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), INTERNAL: "1"}
        return {**passed, **own, **self._login(folder, seconds)}

    # ------------------------------------------------------------ errors
    def _malformed(self, what: str) -> AnswerMalformedError:
        return AnswerMalformedError(
            f"the output of {self.program} is not valid: {what}. "
            f"Fix: run {self.program} once by hand, or update it."
        )

    def _unreachable(
        self, what: str, fix: str = "try again later", *, billed: bool = True
    ) -> ServiceUnreachableError:
        return ServiceUnreachableError(
            f"{self.protocol}: {what}. Fix: {fix}.", may_be_billed=billed
        )

    def _failed(self, message: object, usage: Usage | None, status: object) -> LanguageModelError:
        """Return the error for a failure that the client reports; billed if it used tokens."""
        what = shortened(visible(" ".join(str(message).split())).rstrip("."), _LONGEST_MESSAGE)
        fix = f"run {self.program} once by hand"
        if status in _NOT_ALLOWED:
            return RequestRefusedError(f"{self.protocol}: {what}. Fix: {fix}.")
        return self._unreachable(what, fix, billed=usage is not None and usage.tokens > 0)

    # ------------------------------------------------------------ the client
    @abstractmethod
    def _arguments(self, request: Request, folder: Path) -> list[str]:
        """Return the arguments of a run, and write files for it into its folder."""

    @abstractmethod
    def _login(self, folder: Path, seconds: float) -> dict[str, str]:
        """Return variables with which the client can use the user's login for this many seconds."""

    @abstractmethod
    def _reply(self, output: bytes) -> Reply: ...


class ClaudeCode(CommandLineCompleter):
    """`claude -p`. It gets the user's access token without the refresh token.

    Refreshing the login here would end the user's own.
    """

    protocol = "claude-code"
    program = "claude"
    needed = frozenset({"CLAUDE_CODE_OAUTH_TOKEN", "CLOUD_ML_REGION"})
    needed_prefixes = ("ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_", "AWS_", "GOOGLE_")

    def _arguments(self, request: Request, folder: Path) -> list[str]:
        del request, folder
        words = ["-p", "--output-format", "json", "--no-session-persistence", "--safe-mode"]
        words += ["--setting-sources", "", "--strict-mcp-config", "--mcp-config", _NO_SERVERS]
        words += ["--tools", "", "--disable-slash-commands", "--no-chrome", "--max-turns", "1"]
        words += ["--system-prompt", _SYSTEM]
        return [*words, *(["--model", self._settings.model] if self._settings.model else [])]

    def _login(self, folder: Path, seconds: float) -> dict[str, str]:
        settings = self._settings
        found = {
            "CLAUDE_CONFIG_DIR": str(folder / "config"),
            "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(settings.max_output_tokens),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MAX_THINKING_TOKENS": "0",
        }
        if settings.base_url:
            found["ANTHROPIC_BASE_URL"] = settings.base_url
        if settings.api_key:
            return {**found, "ANTHROPIC_API_KEY": settings.api_key}
        if any(settings.environ.get(name) for name in _CLAUDE_KEYS):
            return found
        return found | self._token(time.time() + seconds)

    def _token(self, until: float) -> dict[str, str]:
        folder = _users_folder(self._settings.environ, "CLAUDE_CONFIG_DIR", ".claude")
        match _json_file(folder / ".credentials.json"):
            case {"claudeAiOauth": {"accessToken": str(token), "expiresAt": int(expires)}}:
                if expires / 1000 < until:
                    raise RequestRefusedError(
                        "claude-code: the login needs to be renewed. Fix: run claude once by hand."
                    )
                return {"CLAUDE_CODE_OAUTH_TOKEN": token}
        given = self._settings.environ.get("CLAUDE_CONFIG_DIR")
        match _json_file((folder if given else folder.parent) / ".claude.json"):
            case {"primaryApiKey": str(key)}:
                return {"ANTHROPIC_API_KEY": key}
        return {}

    def _reply(self, output: bytes) -> Reply:
        result = _object(output)
        if result.get("type") != "result" or not isinstance(text := result.get("result"), str):
            raise self._malformed("it is not the JSON of a result")
        usage, stop = (
            parse_usage(result.get("usage"), INPUT_COUNTS, "output_tokens"),
            result.get("stop_reason"),
        )
        if stop == "max_tokens" or "output token maximum" in text:
            return Truncation(usage)
        if stop == "refusal":
            return Refusal(usage)
        if result.get("is_error"):
            raise self._failed(text, usage, result.get("api_error_status"))
        return Answer(text, usage=usage)


class Codex(CommandLineCompleter):
    """`codex exec`. It uses a link to the user's login, so that a refreshed login is the user's."""

    protocol = "codex"
    program = "codex"
    needed = frozenset({"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE"})
    needed_prefixes = ("OPENAI_",)

    def _arguments(self, request: Request, folder: Path) -> list[str]:
        instructions = folder / "instructions.md"
        instructions.write_text(_SYSTEM, encoding="utf-8")
        words = ["exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules"]
        words += ["--skip-git-repo-check", "--sandbox", "read-only"]
        config = {**_CODEX_CONFIG, "model_instructions_file": str(instructions)}
        if self._settings.base_url:
            config |= self._provider()
        for name, value in config.items():
            words += ["-c", f"{name}={json.dumps(value)}"]
        if request.schema is not None and is_closed(request.schema):
            schema = folder / "schema.json"
            schema.write_text(json.dumps(plain(request.schema)), encoding="utf-8")
            words += ["--output-schema", str(schema)]
        model = ["--model", self._settings.model] if self._settings.model else []
        return [*words, *model, "-"]

    def _provider(self) -> dict[str, JSON]:
        key: dict[str, JSON] = (
            {"env_key": "CODEX_API_KEY"}
            if self._settings.api_key
            else {"requires_openai_auth": True}
        )
        named = {"name": "perdure", "base_url": self._settings.base_url, "wire_api": "responses"}
        each = {f"model_providers.perdure.{name}": value for name, value in (named | key).items()}
        return {"model_provider": "perdure", **each}

    def _login(self, folder: Path, seconds: float) -> dict[str, str]:
        del seconds
        settings, home = self._settings, folder / "config"
        login = _users_folder(settings.environ, "CODEX_HOME", ".codex") / "auth.json"
        if not settings.api_key and login.is_file():
            (home / "auth.json").symlink_to(login.resolve())
        key = {"CODEX_API_KEY": settings.api_key} if settings.api_key else {}
        return {"CODEX_HOME": str(home), **key}

    def _reply(self, output: bytes) -> Reply:
        events = [_object(line) for line in output.splitlines() if line.strip()]
        usage, texts, failure = None, [""], "it ended without an answer"
        for event in events:
            match event:
                case {
                    "type": "item.completed",
                    "item": {"type": "agent_message", "text": str(text)},
                }:
                    texts.append(text)
                case {"type": "item.completed", "item": {"type": "reasoning" | "error"}}:
                    pass
                case {"type": "item.completed" | "item.started"}:
                    raise self._malformed("it used a tool")
                case {"type": "turn.completed", "usage": used}:
                    usage, failure = parse_usage(used, ["input_tokens"], "output_tokens"), ""
                case {"type": "turn.failed", "error": {"message": str(message)}}:
                    failure = message
        if not events:
            raise self._malformed("it is not JSON")
        if failure:
            raise self._failed(failure, usage, None)
        return Answer(texts[-1], usage=usage)


# ---------------------------------------------------------------- processes
@contextmanager
def _started(
    command: list[str],
    prompt: bytes,
    environ: Mapping[str, str],
    folder: Path,
    limits: tuple[float, int],
) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a client under its supervisor, and end all its processes at exit.

    `limits` are the time at which it must end, and the lock, which the supervisor holds on to.
    """
    until, lock = limits
    lifeline, ours = os.pipe()
    try:
        seconds = str(max(0.0, until - time.monotonic()) + 1.0)  # our own limit is earlier
        with TemporaryFile(dir=folder) as stdin:
            stdin.write(prompt)
            stdin.seek(0)
            process = subprocess.Popen(  # noqa: S603 - the user's own client, by an absolute path
                [sys.executable, *_ALONE, str(lifeline), seconds, str(folder), *command],
                cwd=folder / "work",
                env=environ,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(lifeline, lock),
                start_new_session=True,
            )
        try:
            yield process
        finally:
            os.close(ours)
            ours = -1
            _end(process)
    finally:
        for each in (lifeline, ours):
            with suppress(OSError):
                os.close(each)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a supervisor to end, and kill the rest of its process group."""
    until = time.monotonic() + _GRACE_SECONDS
    over = os.WEXITED | os.WNOWAIT | os.WNOHANG  # its id is not reused before `wait`
    while os.waitid(os.P_PID, process.pid, over) is None and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _prompt(request: Request) -> bytes:
    texts = [each.content for each in request.messages]
    if request.schema is not None:
        texts.append(schema_prompt(plain(request.schema)))
    return "\n\n".join(texts).encode()


def _object(text: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        found = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _json_file(path: Path) -> dict[str, Any]:
    try:
        return _object(path.read_bytes())
    except OSError:
        return {}


def _users_folder(environ: Mapping[str, str], variable: str, name: str) -> Path:
    return Path(environ.get(variable) or Path(environ.get("HOME", "/"), name))
