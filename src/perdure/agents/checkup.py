"""Whether memory works in each coding agent: its entries, their trust, and how hooks ran."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path

from perdure import toml
from perdure.agents.clients import AGENTS, AGENTS_MD, files_for, program
from perdure.agents.entries import (
    NAME,
    TOML_SERVER,
    AgentFile,
    JsonFile,
    MarkdownSection,
    TomlFile,
    WholeFile,
    calls_of,
    is_our_hook,
    is_our_server,
)
from perdure.agents.hook_log import CAPTURED, HookRun, hooks_folder, last_run, runs_of
from perdure.agents.hooks import EVENTS, MOST_TEXT
from perdure.agents.jsonc import at
from perdure.agents.pending_sessions import DAY, PROMPT, stopped_capture
from perdure.agents.status_line import age
from perdure.config import load_config, value_at
from perdure.dataclass import dataclass
from perdure.engine.services import Check, Severity
from perdure.errors import InvalidValueError
from perdure.model.trust import INTERNAL

CAPS = {"claude-code": "10,000 characters", "codex": "10,000 bytes"}
"""The longest text that a client passes on to its model in full, as measured."""
CPU_BUDGET = 150.0
"""Milliseconds of CPU that 95 of 100 runs of a hook should not exceed."""
_STARTING_SECONDS = 20.0
_EVENT = re.compile(r"\shook\s+([a-z-]+)")
_TRUSTLESS_MATCHER = frozenset({"user_prompt_submit", "stop"})
"""Events of Codex whose matcher is not part of the trusted hash."""


@dataclass(frozen=True, slots=True)
class AgentCheckup:
    agent: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.level is not Severity.FAIL for check in self.checks)


def check_agents(environ: Mapping[str, str]) -> tuple[AgentCheckup, ...]:
    """Check every agent that has entries of ours, or has called a hook. Changes nothing."""
    home = load_config(environ).home
    agents = (each for each in AGENTS if each != AGENTS_MD)
    found = (_AgentCheck(each, environ, home) for each in agents)
    return tuple(AgentCheckup(each.agent, tuple(each.checks())) for each in found if each.is_used)


class _AgentCheck:
    def __init__(self, agent: str, environ: Mapping[str, str], home: Path) -> None:
        self.agent, self._home = agent, home
        self._files = files_for(agent, environ, program())
        self._runs = {event: runs_of(home, agent, event) for event in EVENTS}

    @property
    def is_used(self) -> bool:
        return any(self._runs.values()) or any(map(_has_entries, self._files))

    @property
    def _fix(self) -> str:
        return f"Fix: `perdure install {self.agent}`."

    def checks(self) -> Iterator[Check]:
        for file in self._files:
            yield from self._entries(file)
        if self.agent == "codex":
            yield from self._trust()
        for event in EVENTS:
            if self._runs[event]:
                yield self._timing(event, self._runs[event])
        yield from self._capture()
        yield from self._errors()

    # ------------------------------------------------------------ entries
    def _entries(self, file: AgentFile) -> Iterator[Check]:
        try:
            text = _text_at(file.path)
            match file:
                case TomlFile():
                    yield self._server(value_at(toml.parse(text), TOML_SERVER), file.path)
                case WholeFile(yields=False):
                    yield self._plugin(text, file)
                case (
                    WholeFile() | MarkdownSection()
                ):  # a slash command that the user may have replaced
                    return
                case JsonFile():
                    if file.hooks:
                        found = self._hooks(text, file)
                        yield found
                        if found.level is Severity.FAIL:  # more precise than that it is stale
                            return
                    if file.server is not None:
                        yield self._server(_member(text, (file.section, NAME)), file.path)
            if file.is_stale(text):
                message = f"{file.path} starts another program or memory than this. {self._fix}"
                yield Check("entries", Severity.WARN, message)
        except (InvalidValueError, OSError) as error:
            message = f"{file.path} can't be read: {error}. Fix: correct that file."
            yield Check("entries", Severity.FAIL, message)

    def _hooks(self, text: str, file: JsonFile) -> Check:
        present = {hook.event: list(_commands(text, hook.event)) for hook in file.hooks}
        absent = [event for event, commands in present.items() if not commands]
        elsewhere = [event for event in absent if self._fired_lately(file, event)]
        missing = [event for event in absent if event not in elsewhere]
        if missing:
            what = f"{file.path} has none for {', '.join(missing)}. {self._fix}"
            return Check("hooks", Severity.FAIL, what)
        commands = (each for found in present.values() for each in found)
        if broken := next(filter(None, map(_broken, map(_program_of, commands))), ""):
            return Check("hooks", Severity.FAIL, f"{broken}. {self._fix}")
        more = f"; {', '.join(elsewhere)} from elsewhere" if elsewhere else ""
        return Check("hooks", Severity.OK, f"{', '.join(present)} in {file.path}{more}")

    def _fired_lately(self, file: JsonFile, event: str) -> bool:
        """Whether an event without an entry ran lately: a plug-in has entries of its own."""
        entry = next(hook.entry for hook in file.hooks if hook.event == event)
        named = _EVENT.search(json.dumps(entry))
        last = last_run(self._home, self.agent, named[1]) if named else 0.0
        return time.time() - last < 7 * DAY

    def _server(self, entry: object, path: Path) -> Check:
        if not is_our_server(entry):
            return Check("server", Severity.FAIL, f"{path} has no server of ours. {self._fix}")
        command = entry.get("command") if isinstance(entry, Mapping) else None
        started = command[0] if isinstance(command, list) else command
        if broken := _broken(str(started)) or _unstarted(str(started)):
            return Check("server", Severity.FAIL, f"{broken}. {self._fix}")
        return Check("server", Severity.OK, f"{started} mcp, in {path}")

    def _plugin(self, text: str, file: WholeFile) -> Check:
        if file.is_ours(text):
            return Check("hooks", Severity.OK, f"the plug-in is {file.path}")
        return Check("hooks", Severity.FAIL, f"there is no plug-in at {file.path}. {self._fix}")

    # ------------------------------------------------------------ trust
    def _trust(self) -> Iterator[Check]:
        """Check that Codex runs our hooks: they must be trusted by hash, and not disabled."""
        hooks = next(each for each in self._files if isinstance(each, JsonFile))
        config = next(each.path for each in self._files if isinstance(each, TomlFile))
        try:
            state = _table(value_at(toml.parse(_text_at(config)), ("hooks", "state")))
            trusted = dict(_codex_trust(_text_at(hooks.path), hooks, state))
        except (InvalidValueError, OSError):  # the check of the entries reports it
            return
        refused = [event for event, is_trusted in trusted.items() if not is_trusted]
        if refused:
            what = f"Codex does not run {', '.join(refused)}: not trusted, or switched off"
            fix = "Fix: start `codex`, type `/hooks`, and trust them."
            yield Check("trust", Severity.FAIL, f"{what}. {fix}")
        elif trusted:
            yield Check("trust", Severity.OK, f"{', '.join(trusted)} are trusted")

    # ------------------------------------------------------------ runs
    def _timing(self, event: str, runs: list[HookRun]) -> Check:
        cpu, wall = sorted(run.cpu for run in runs), sorted(run.wall for run in runs)
        most = max(run.bytes for run in runs)
        late = sum(run.late for run in runs)
        cap = f" of {MOST_TEXT:,}, cap {CAPS[self.agent]}" if self.agent in CAPS else ""
        message = (
            f"last {age(runs[-1].time)}; runs {len(runs)}: CPU p50 {_percentile(cpu, 50):.0f} ms, "
            f"p95 {_percentile(cpu, 95):.0f} ms; wall p50 {_percentile(wall, 50):.0f} ms, "
            f"p95 {_percentile(wall, 95):.0f} ms; at most {most:,} bytes{cap}"
        )
        if late:
            fix = f"Fix: see {hooks_folder(self._home) / 'log'}, and run `perdure doctor`."
            return Check(event, Severity.WARN, f"{message}; {late} exceeded the limit. {fix}")
        if _percentile(cpu, 95) > CPU_BUDGET:
            fix = f"Fix: none needed; over {CPU_BUDGET:.0f} ms of CPU is slow."
            return Check(event, Severity.NOTE, f"{message}. {fix}")
        return Check(event, Severity.OK, message)

    def _capture(self) -> Iterator[Check]:
        last = last_run(self._home, self.agent, CAPTURED)
        stopped = stopped_capture(self._home, self.agent)
        if stopped:
            yield Check("capture", Severity.FAIL, f"{stopped}. {_FIXES}")
        elif last:
            yield Check("capture", Severity.OK, f"a session was last captured {age(last)}")
        elif self._runs[PROMPT]:
            message = "no session was captured yet. Fix: none needed if this is the first."
            yield Check("capture", Severity.NOTE, message)

    def _errors(self) -> Iterator[Check]:
        """Report the errors since a session of this agent was last captured."""
        log, since = hooks_folder(self._home) / "log", last_run(self._home, self.agent, CAPTURED)
        with suppress(OSError):
            lines = log.read_text(errors="replace").splitlines()
            own = [line for line in lines if _is_since(line, since, self.agent)]
            if own:
                what = f"{len(own)} since, the last: {own[-1]}"
                yield Check("errors", Severity.WARN, f"{what}. Fix: see {log}.")


_FIXES = "Fix: see the other checks; then `perdure hook drain --strict` captures what waits."


# ---------------------------------------------------------------- files
def _text_at(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InvalidValueError("not UTF-8") from error


def _has_entries(file: AgentFile) -> bool:
    """Whether a file has an entry of ours; False if it is broken."""
    with suppress(OSError, InvalidValueError):
        text = _text_at(file.path)
        return file.remove(text) != text
    return False


def _member(text: str, path: tuple[str, ...]) -> object:
    found = at(text, path) if text.strip() else None
    return None if found is None else found.plain


def _commands(text: str, event: str) -> Iterator[str]:
    entries = _member(text, ("hooks", event))
    for entry in entries if isinstance(entries, list) else ():
        yield from (command for _, command in calls_of(entry))


def _program_of(command: str) -> str:
    with suppress(ValueError):
        words = shlex.split(command)
        if "hook" in words[1:]:
            return words[words.index("hook", 1) - 1]
    return command


def _broken(started: str) -> str:
    """Return why a program can't be started; empty if it can."""
    return "" if shutil.which(started) else f"{started} is absent, or can't be run"


@cache
def _unstarted(started: str) -> str:
    """Start a program to see whether it is ours; return the problem, empty without one."""
    environ = {**os.environ, INTERNAL: "1"}
    try:
        done = subprocess.run(  # noqa: S603 - what the agent itself would start
            [started, "--version"],
            capture_output=True,
            timeout=_STARTING_SECONDS,
            check=True,
            env=environ,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{started} does not start: {error}"
    is_ours = done.stdout.startswith(NAME.encode())
    return "" if is_ours else f"{started} is another program"


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _codex_trust(
    text: str, file: JsonFile, state: Mapping[str, object]
) -> Iterator[tuple[str, bool]]:
    """Yield each event with a hook of ours, and whether Codex runs it."""
    for hook in file.hooks:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", hook.event).lower()
        groups = _member(text, ("hooks", hook.event))
        for number, group in enumerate(groups if isinstance(groups, list) else []):
            inner = _table(group).get("hooks")
            hooks = inner if isinstance(inner, list) else [group]
            for index, each in enumerate(map(_table, hooks)):
                if is_our_hook(each):
                    entry = _table(state.get(f"{file.path}:{name}:{number}:{index}"))
                    expected = trusted_hash(name, each, _table(group).get("matcher"))
                    is_same = entry.get("trusted_hash") == expected
                    yield hook.event, is_same and entry.get("enabled") is not False


def trusted_hash(event: str, hook: Mapping[str, object], matcher: object = None) -> str:
    """Return the hash that Codex stores for a trusted hook, as measured on 0.166."""
    stored = {
        "type": "command",
        "command": hook.get("command"),
        "timeout": hook.get("timeout") or 600,
        "async": False,
    }
    if "statusMessage" in hook:
        stored["statusMessage"] = hook["statusMessage"]
    identity: dict[str, object] = {"event_name": event, "hooks": [stored]}
    if isinstance(matcher, str) and event not in _TRUSTLESS_MATCHER:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + sha256(text.encode(errors="replace")).hexdigest()


# ---------------------------------------------------------------- numbers
def _percentile(numbers: list[float], percent: int) -> float:
    """Return the value that this many percent of sorted numbers do not exceed."""
    return numbers[max(0, ceil(len(numbers) * percent / 100) - 1)]


def _is_since(line: str, since: float, agent: str) -> bool:
    stamp, _, rest = line.partition(" ")
    try:
        is_late = datetime.fromisoformat(stamp).timestamp() > since
    except ValueError:
        return False
    return is_late and (rest.startswith(f"{agent} ") or not rest.startswith(AGENTS))
