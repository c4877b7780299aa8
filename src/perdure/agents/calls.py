"""Tool calls as agents describe them to hooks: what is about to be run and changed, what failed."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.engine.actions import Action
from perdure.engine.commands import SHELLS
from perdure.patterns import later

if TYPE_CHECKING:
    from perdure.agents.hook_input import HookInput

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path")
_ADDED = ("new_string", "newString", "content", "new_source", "replacement", "text")
_REMOVED = ("old_string", "oldString", "old_source")
_READING = frozenset(
    {
        *("Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoWrite", "Task", "Agent"),
        *("read_file", "read", "list_directory", "glob", "grep", "search_file_content"),
    }
)
PATCHED = later(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_MOST_LETTERS = 40_000


def action_of(given: "HookInput") -> Action | None:
    """Return what a tool call is about to do; None if it runs nothing and changes nothing."""
    asked, tool = given.tool_input, given.tool
    if tool in _READING or (tool.startswith("mcp__") and not asked):
        return None
    command = command_of(asked)
    if tool == "apply_patch" or command.lstrip().startswith("*** Begin Patch"):
        return _patch(tool, command, given.cwd)
    paths = tuple(within(path, given.cwd) for path in _texts(asked, _PATHS))
    if not command and not paths and not tool:
        return None
    added, removed = ("\n".join(_texts(asked, names)) for names in (_ADDED, _REMOVED))
    return Action(tool, command, paths, added[:_MOST_LETTERS], removed[:_MOST_LETTERS])


def command_of(asked: Mapping[str, object]) -> str:
    """Return the shell command of a call, given as a text or as words; empty if it has none."""
    for name in _COMMANDS:
        found = asked.get(name)
        if isinstance(found, str):
            return found[:_MOST_LETTERS]
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            return str(found[-1] if found[0].endswith("sh") else " ".join(found))[:_MOST_LETTERS]
    return ""


def _patch(tool: str, patch: str, cwd: str) -> Action:
    paths = tuple(within(path, cwd) for path in PATCHED.findall(patch))
    lines = patch.splitlines()
    added = "\n".join(line[1:] for line in lines if line.startswith("+"))
    removed = "\n".join(line[1:] for line in lines if line.startswith("-"))
    return Action(tool, "", paths, added, removed)


def _texts(asked: Mapping[str, object], names: tuple[str, ...]) -> Iterator[str]:
    edits = asked.get("edits")
    every = [asked, *(edits if isinstance(edits, list) else ())]
    for each in every:
        if isinstance(each, Mapping):
            for name in names:
                if isinstance(value := each.get(name), str) and value:
                    yield value


def within(path: str, cwd: str) -> str:
    """Return a path relative to the folder that the agent works in, if it is in it."""
    root = cwd.rstrip("/") + "/"
    return path.removeprefix(root) if cwd else path


# ---------------------------------------------------------------- what failed
class FailedCall(NamedTuple):
    command: str
    output: str


_STATUS = later(r"(?:Error: )?Exit code (\d{1,3})\b")
_TAIL = 262_144
"""Bytes at the end of a rollout in which Codex notes the status of the last command."""
CODEX, GEMINI_CLI = "codex", "gemini-cli"
_EXIT_LINE = later(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
"""Gemini CLI puts it behind what a command printed, unless the status is 0."""


def failed_call(agent: str, given: "HookInput") -> FailedCall | None:
    """Return the shell command that just failed by its exit status; None if none did.

    What the user refused or interrupted, and what a signal ended, did not fail.
    """
    command = command_of(given.tool_input)
    if given.tool not in SHELLS or not command:
        return None
    from perdure.engine.shell_failures import is_failure

    read = {CODEX: _of_codex, GEMINI_CLI: _of_gemini}.get(agent, _of_claude)
    found = read(given)
    if found is None or not is_failure(found[0]):
        return None
    return FailedCall(command, found[1])


def _of_claude(given: "HookInput") -> tuple[int, str] | None:
    """Return status and output: Claude Code calls another hook if a command failed."""
    error = given.raw.get("error")
    if given.raw.get("is_interrupt") is True or not isinstance(error, str):
        return None
    exited = _STATUS.match(error)
    return (int(exited[1]), error) if exited else None


def _of_gemini(given: "HookInput") -> tuple[int, str] | None:
    """Return status and output, of which the last line of its kind has the status."""
    match given.raw.get("tool_response"):
        case {"llmContent": str(content), "returnDisplay": str(shown)}:
            exited = _EXIT_LINE.findall(content)
            return (int(exited[-1]), shown) if exited else None
    return None


def _of_codex(given: "HookInput") -> tuple[int, str] | None:
    """Return status and output of the last command, as the rollout has them."""
    name = given.raw.get("tool_use_id")
    if not isinstance(name, str) or not name:
        return None
    tail = b""
    with suppress(OSError, ValueError), Path(given.transcript).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        tail = file.read(_TAIL)
    for line in reversed(tail.splitlines()):
        if name.encode() in line and b'"exit_code"' in line:
            item = _item(line)
            status, output = item.get("exit_code"), item.get("aggregated_output")
            if item.get("id") == name and isinstance(status, int):
                return status, output if isinstance(output, str) else ""
    return None


def _item(line: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    for name in ("payload", "item"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
