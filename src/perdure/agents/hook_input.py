"""What an agent sends to a hook: the session, the prompt, and the tool call it is about."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.patterns import later

if TYPE_CHECKING:
    from perdure.engine.tool_calls import AgentAction

INPUT_BYTES = 4 * 1024 * 1024
_READ_BYTES = 65536
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
"""Tools that neither run nor change anything."""
_PATCHED = later(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_TEXT_CHARACTERS = 40_000
_STATUS = later(r"(?:Error: )?Exit code (\d{1,3})\b")
_EXIT_LINE = later(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
"""Gemini CLI writes it after the output of a command, unless the status is 0."""
_TAIL_BYTES = 262_144
"""The end of a rollout, in which Codex writes the status of the last command."""


@dataclass(frozen=True, slots=True)
class HookInput:
    """What an agent sends to a hook; a field that is missing, or of another type, is empty."""

    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    """Why a session starts: startup, resume, clear, compact."""
    tool: str = ""
    """The tool that is called, by the agent's own name for it."""
    tool_input: Mapping[str, object] = field(default_factory=dict)
    subagent: str = ""
    """The id of the subagent that calls; empty for the agent itself."""
    raw: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def event(self) -> str:
        return _text(self.raw, "hook_event_name")

    @classmethod
    def parse(cls, data: bytes) -> "HookInput":
        """Parse the input; raises `InvalidValueError` if it is not a JSON object."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidValueError(
                f"a hook was given {len(data):,} bytes that are not JSON. Fix: let the agent call."
            ) from error
        if not isinstance(found, dict):
            raise InvalidValueError(
                f"a hook was given a JSON {type(found).__name__}. Fix: give it an object."
            )
        tool_input, roots = found.get("tool_input"), found.get("workspace_roots")
        root = roots[0] if isinstance(roots, list) and roots else ""
        return cls(
            session_id=_text(found, "session_id", "conversation_id"),
            transcript=_text(found, "transcript_path"),
            cwd=_text(found, "cwd") or (root if isinstance(root, str) else ""),
            prompt=_text(found, "prompt"),
            source=_text(found, "source"),
            tool=_text(found, "tool_name"),
            tool_input=tool_input if isinstance(tool_input, dict) else {},
            subagent=_text(found, "agent_id"),
            raw=found,
        )


def read_all(descriptor: int) -> bytes:
    """Read a hook's input; a terminal counts as empty. Raises `InvalidValueError` if too long."""
    if os.isatty(descriptor):
        return b"{}"
    found = bytearray()
    while data := os.read(descriptor, _READ_BYTES):
        found += data
        if len(found) > INPUT_BYTES:
            raise InvalidValueError(
                f"a hook was given more than {INPUT_BYTES:,} bytes. Fix: let the agent call it."
            )
    return bytes(found)


def _text(found: Mapping[str, object], *names: str) -> str:
    values = (found.get(name) for name in names)
    return next((each for each in values if isinstance(each, str) and each), "")


# ---------------------------------------------------------------- a tool call before it runs
def action_of(given: HookInput) -> "AgentAction | None":
    """Return what a tool call is about to do; None if it runs nothing and changes nothing."""
    from perdure.engine.tool_calls import AgentAction

    arguments, tool = given.tool_input, given.tool
    if tool in _READING or (tool.startswith("mcp__") and not arguments):
        return None
    command = command_of(arguments)
    if tool == "apply_patch" or command.lstrip().startswith("*** Begin Patch"):
        lines = command.splitlines()
        added = "\n".join(line[1:] for line in lines if line.startswith("+"))
        removed = "\n".join(line[1:] for line in lines if line.startswith("-"))
        paths = tuple(within(path, given.cwd) for path in _PATCHED.findall(command))
        return AgentAction(tool, "", paths, added, removed)
    paths = tuple(within(path, given.cwd) for path in _texts(arguments, _PATHS))
    if not command and not paths and not tool:
        return None
    added, removed = ("\n".join(_texts(arguments, names)) for names in (_ADDED, _REMOVED))
    return AgentAction(tool, command, paths, added[:_TEXT_CHARACTERS], removed[:_TEXT_CHARACTERS])


def command_of(arguments: Mapping[str, object]) -> str:
    """Return the shell command of a call, given as text or as words; empty if it has none."""
    for name in _COMMANDS:
        found = arguments.get(name)
        if isinstance(found, str):
            return found[:_TEXT_CHARACTERS]
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            command = found[-1] if found[0].endswith("sh") else " ".join(found)
            return str(command)[:_TEXT_CHARACTERS]
    return ""


def _texts(arguments: Mapping[str, object], names: tuple[str, ...]) -> Iterator[str]:
    edits = arguments.get("edits")
    for each in (arguments, *(edits if isinstance(edits, list) else ())):
        if isinstance(each, Mapping):
            for name in names:
                if isinstance(value := each.get(name), str) and value:
                    yield value


def within(path: str, cwd: str) -> str:
    """Return a path inside the agent's folder relative to that folder; any other path as it is."""
    root = cwd.rstrip("/") + "/"
    return path.removeprefix(root) if cwd else path


# ---------------------------------------------------------------- a tool call that failed
class FailedCall(NamedTuple):
    command: str
    output: str


def failed_call(agent: str, given: HookInput) -> FailedCall | None:
    """Return the shell command that just failed by its exit status; None if none did.

    A command that the user refused or interrupted, or that a signal ended, did not fail.
    """
    from perdure.engine.tool_calls import SHELLS

    command = command_of(given.tool_input)
    if given.tool not in SHELLS or not command:
        return None
    from perdure.engine.tool_calls import is_failure

    read = {"codex": _of_codex, "gemini-cli": _of_gemini}.get(agent, _of_claude)
    found = read(given)
    if found is None or not is_failure(found[0]):
        return None
    return FailedCall(command, found[1])


def _of_claude(given: HookInput) -> tuple[int, str] | None:
    """Return status and output: Claude Code has an event of its own for failed commands."""
    error = given.raw.get("error")
    if given.raw.get("is_interrupt") is True or not isinstance(error, str):
        return None
    exited = _STATUS.match(error)
    return (int(exited[1]), error) if exited else None


def _of_gemini(given: HookInput) -> tuple[int, str] | None:
    """Return status and output; the last line that matches has the status."""
    match given.raw.get("tool_response"):
        case {"llmContent": str(content), "returnDisplay": str(shown)}:
            exited = _EXIT_LINE.findall(content)
            return (int(exited[-1]), shown) if exited else None
    return None


def _of_codex(given: HookInput) -> tuple[int, str] | None:
    """Return status and output of the last command, from the rollout."""
    name = given.raw.get("tool_use_id")
    if not isinstance(name, str) or not name:
        return None
    tail = b""
    with suppress(OSError, ValueError), Path(given.transcript).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
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
