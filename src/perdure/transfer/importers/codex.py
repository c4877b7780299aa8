"""Sessions of Codex: `~/.codex/sessions/**/rollout-*.jsonl`, one file for each.

Each line has a type and a payload. `response_item` is a message or a tool call; `event_msg` repeats
it for a screen. Older files have only the payloads.
"""

import re
from collections.abc import Mapping
from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.trust import WEB
from perdure.model.values import JSON
from perdure.transfer import json_records
from perdure.transfer.contract import ImportFinding, MessageFields, SessionItem, ToolOutput
from perdure.transfer.json_records import (
    Items,
    Record,
    ShellCalls,
    message,
    parsed_json,
    speech_message,
)
from perdure.transfer.source import ImportSource, SourceFile

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_EXIT = re.compile(r"(?:Exit code|exited with code|exit_code)\W{1,4}(\d+)", re.IGNORECASE)
_LOOKED_AT = 500
_OUTPUT = "\nOutput:\n"
"""Ends the header that Codex writes above the output of a command."""
_MOST_CALLS = 64


class CodexFormat:
    name = "codex"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        marks = (b'"session_meta"', b'"response_item"')
        found = json_records.file_heads(source, ".jsonl")
        return any(any(mark in head for mark in marks) or _is_old(head) for head in found)

    def items(self, source: ImportSource) -> Items:
        return json_records.each_file(source, source.selected(".jsonl"), self.read)

    def read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        return self._read(entry, stream, _CodexSession(Record()))

    def resume(self, entry: SourceFile, stream: BinaryIO, state: Mapping[str, JSON]) -> Items:
        return self._read(entry, stream, _CodexSession(Record(state)))

    def _read(self, entry: SourceFile, stream: BinaryIO, session: "_CodexSession") -> Items:
        yield from json_records.each_object(
            entry, "line", json_records.json_lines(stream), session.add
        )
        if session.of_subagent:
            yield json_records.subagent_finding(entry)
        elif not session.id and session.messages:
            what = "it has messages, but no session id"
            yield ImportFinding(entry.name, "", what, "keep its first line, session_meta")
        elif session.id:
            yield SessionItem(
                file=entry.name,
                source=self.name,
                source_id=session.id,
                messages=tuple(session.messages),
                created_at=session.began,
                updated_at=session.last,
                cwd=session.cwd,
                branch=session.branch,
                commit=session.commit,
                headless=session.headless,
                tool_outputs=tuple(session.outputs),
                commands=tuple(session.calls.finished),
                state=session.state,
            )


class _CodexSession:
    def __init__(self, state: Record) -> None:
        self.id, self.began = state.text("id"), state.text("began")
        self.cwd, self.branch = state.text("cwd"), state.text("branch")
        self.last = self.commit = ""
        self.headless = state.get("headless") is True
        self.of_subagent = False
        self.messages: list[MessageFields] = []
        self.outputs: list[ToolOutput] = []
        self._tools = {id_: text_of(name) for id_, name in state.object("tools").items()}
        self._asked: dict[str, object] = {}
        self.calls = ShellCalls(state.get("calls"))

    @property
    def state(self) -> dict[str, JSON]:
        tools: dict[str, JSON] = dict([*self._tools.items()][-_MOST_CALLS:])
        return {
            "id": self.id,
            "began": self.began,
            "cwd": self.cwd,
            "branch": self.branch,
            "tools": tools,
            "headless": self.headless,
            "calls": self.calls.state,
        }

    def add(self, _entry: SourceFile, _where: str, line: Record) -> Items:
        kind, value, time = _unwrapped(line)
        payload = Record.of(value)
        ran = payload.object("item")
        if ran.get("type") == "CommandExecution" and isinstance(ran.get("exit_code"), int):
            self.calls.finished.append(
                (json_records.argument_of(ran.get("command")), ran["exit_code"] == 0)
            )
        if kind not in {"session_meta", "response_item"}:
            return iter(())
        if not isinstance(value, dict):
            raise InvalidValueError("it has no payload that is an object")
        if kind == "session_meta":
            # A session that continues another has the other's first line after its own.
            self.headless = self.headless or (not self.id and _is_headless(payload))
            self.of_subagent = self.of_subagent or (not self.id and _is_of_subagent(payload))
            self.id = self.id or payload.text("id")
            self.began = self.began or json_records.time_of(payload.get("timestamp") or time)
            self.cwd = self.cwd or payload.text("cwd")
            git = payload.object("git")
            self.branch = self.branch or git.text("branch")
            self.commit = self.commit or git.text("commit_hash")
        elif (one := self._message(payload, time)) is not None:
            self.messages.append(one)
            self.last = one.get("time", self.last)
        return iter(())

    def _message(self, item: Record, time: object) -> MessageFields | None:
        kind = item.text("type")
        if kind == "message":
            return speech_message(item.text("role"), _text(item.get("content")), time)
        if kind in {"compaction", "compacted", "context_compaction"}:
            summary = text_of(item.get("message") or item.get("summary"))
            return speech_message("system", f"[summary]\n{summary}", time) if summary else None
        called = item.text("call_id")
        if kind.startswith("web_search"):
            self.outputs.append(ToolOutput(len(self.messages), WEB, ""))
        if kind in _RESULTS:
            name, asked = self._tools.get(called, ""), self._asked.pop(called, "")
            self.outputs.append(
                json_records.tool_output(
                    name, asked, _output(item.get("output"))[1], len(self.messages)
                )
            )
        if kind in _CALLS:
            name = item.text("name") or "shell"
            self._tools[called] = name
            given = item.get("arguments") or item.get("input") or item.get("action")
            self._asked[called] = given
            self.calls.start(called, name, parsed_json(given))
            return message("assistant", json_records.call_line(name, given), time=time)
        if kind in _RESULTS:
            has_failed, status, output = _ended(item.get("output"))
            if has_failed or status == 0:
                tool = self._tools.get(called, "")
                return self.calls.finish(called, status, output, name=tool, time=time)
        return None


def _is_headless(meta: Record) -> bool:
    return meta.text("originator") == "codex_exec" or meta.get("source") == "exec"


def _is_of_subagent(meta: Record) -> bool:
    is_one = "subagent" in meta.object("source")
    return is_one or meta.get("thread_source") == "subagent" or bool(meta.get("parent_thread_id"))


def _output(output: object) -> tuple[Record, str]:
    """Return the object that a tool returned, if it is one, and the text."""
    known = Record.of(parsed_json(output))
    text = known.get("output", known.get("content", output))
    return known, _text(text) if isinstance(text, list) else text_of(text)


def _ended(output: object) -> tuple[bool, int | None, str]:
    """Return whether a call failed, its exit status if it has one, and its output."""
    known, text = _output(output)
    code = known.object("metadata").get("exit_code")
    head, mark, printed = text[:_LOOKED_AT].partition(_OUTPUT)
    exited = _EXIT.search(head)
    status = code if isinstance(code, int) else int(exited[1][:9]) if exited else None
    has_failed = known.get("success") is False or status not in {None, 0}
    return has_failed, status, f"{printed}{text[_LOOKED_AT:]}" if mark and status else text


def _unwrapped(line: Record) -> tuple[str, object, object]:
    """Return the type, the payload and the time of a line; older ones are their own payload."""
    kind = line.text("type")
    if kind == "compacted":
        return (
            "response_item",
            {"type": kind, **line.object("payload")},
            line.get("timestamp"),
        )
    if "payload" in line or kind in {"session_meta", "response_item", "event_msg"}:
        return kind, line.get("payload"), line.get("timestamp")
    if not kind and "id" in line and "timestamp" in line:
        return "session_meta", line, line.get("timestamp")
    return ("response_item" if kind else "other"), line, None


def _text(content: object) -> str:
    if isinstance(content, str):
        return text_of(content)
    blocks = map(Record.of, json_records.list_of(content))
    return "\n\n".join(filter(None, (_block(block) for block in blocks)))


def _block(block: Record) -> str:
    kind = block.text("type")
    return "[image]" if kind.endswith("image") else block.text("text")


def _is_old(head: bytes) -> bool:
    first = head.partition(b"\n")[0]
    return b'"instructions"' in first and b'"id"' in first
