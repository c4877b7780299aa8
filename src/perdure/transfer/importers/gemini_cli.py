"""Sessions of Gemini CLI: `~/.gemini/tmp/*/chats/session-*`, one file for each.

A file is one JSON object with its messages or, since 2026, lines: messages, of which a later one
replaces an earlier one with the same id, settings of the session (`$set`), and the message from
which on the user went back (`$rewindTo`).
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from perdure.dataclass import replace
from perdure.model.messages import text_of
from perdure.model.trust import MCP
from perdure.transfer import json_records
from perdure.transfer.contract import MessageFields, SessionItem, ToolOutput
from perdure.transfer.json_records import (
    Items,
    Record,
    ShellCalls,
    call_line,
    json_lines,
    tool_output,
)
from perdure.transfer.source import ImportSource, SourceFile

_ROLES = {"user": "user", "gemini": "assistant"}
_FAILED = frozenset({"error", "failed"})
_EXIT = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
"""A line that Gemini CLI writes after the output of a command."""
_LOOKED_AT = 500
_WORKSPACE = re.compile(
    r"\A\s*<session_context>.*?^- \*\*Workspace Directories:\*\*\n +- (/[^\n]+)$",
    re.DOTALL | re.MULTILINE,
)
"""The working directory, as it is given to the model at the start."""


class GeminiCliFormat:
    name = "gemini-cli"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        return json_records.begins_with(source, (".json", ".jsonl"), b'"projectHash"')

    def items(self, source: ImportSource) -> Items:
        return json_records.each_file(source, source.selected(".json", ".jsonl"), self.read)

    def read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        chat = _Chat()
        found = (
            json_lines(stream)
            if entry.base.endswith(".jsonl")
            else json_records.json_elements(stream)
        )
        yield from json_records.each_object(entry, "line", found, chat.add)
        if chat.of_subagent:
            yield json_records.subagent_finding(entry)
        elif chat.id and chat.messages:
            messages: list[MessageFields] = []
            outputs: list[ToolOutput] = []
            calls = ShellCalls()
            for each in chat.messages.values():
                outputs += _outputs(each, len(messages))
                messages += _messages(each, calls)
            yield SessionItem(
                file=entry.name,
                source=self.name,
                source_id=chat.id,
                title=chat.title,
                messages=tuple(messages),
                created_at=chat.began,
                updated_at=chat.last,
                cwd=chat.cwd,
                tool_outputs=tuple(outputs),
                commands=tuple(calls.finished),
            )


class _Chat:
    def __init__(self) -> None:
        self.id = self.title = self.began = self.last = self.cwd = ""
        self.of_subagent = False
        self.messages: dict[str, Record] = {}

    def add(self, _entry: SourceFile, _where: str, line: Record) -> Items:
        back, name = line.text("$rewindTo"), line.text("id")
        if back:
            names = list(self.messages)
            gone = names[names.index(back) :] if back in names else names
            for each in gone:
                del self.messages[each]
        elif name:
            self.messages[name] = line
        else:
            self._set(line.object("$set") or line)
        return iter(())

    def _set(self, known: Record) -> None:
        self.of_subagent = self.of_subagent or known.get("kind") == "subagent"
        self.id = known.text("sessionId") or self.id
        self.title = known.text("summary") or self.title
        self.began = known.time("startTime") or self.began
        self.last = known.time("lastUpdated") or self.last
        self.cwd = next(map(text_of, known.array("directories")), "") or self.cwd
        every = known.array("messages")
        if every:
            self.messages = {
                one.text("id") or str(at): one for at, one in enumerate(map(Record.of, every))
            }
            first = _WORKSPACE.match(_text(Record.of(every[0]).get("content")))
            self.cwd = self.cwd or (first[1] if first else "")


def _messages(given: Record, calls: ShellCalls) -> Iterator[MessageFields]:
    role, time = _ROLES.get(given.text("type")), given.get("timestamp")
    if role is None:
        return
    one = json_records.speech_message(role, _text(given.get("content")), time)
    if one is not None:
        yield one
    for tool in given.objects("toolCalls"):
        name = tool.text("name")
        yield from filter(
            None, [json_records.message("assistant", call_line(name, tool.get("args")), time=time)]
        )
        calls.start(name, name, tool.get("args"))
        yield from filter(None, [_ended(tool, name, calls, time)])


def _ended(tool: Record, name: str, calls: ShellCalls, time: object) -> MessageFields | None:
    """Return the message of a result; to Gemini, a command with an exit status succeeded."""
    output = _text(tool.get("resultDisplay")) or _text(tool.get("result"))
    exited = _EXIT.search(_text(tool.get("result"))[-_LOOKED_AT:])
    status = int(exited[1]) if exited else None
    if tool.text("status") in _FAILED or status:
        return calls.finish(name, status, output, name=name, time=time)
    is_done = tool.text("status") == "success"
    return calls.finish(name, 0, "", time=time) if is_done else None


def _outputs(given: Record, at: int) -> Iterator[ToolOutput]:
    for tool in given.objects("toolCalls"):
        output = _text(tool.get("resultDisplay")) or _text(tool.get("result"))
        one = tool_output(tool.text("name"), tool.get("args"), output, at)
        is_other = tool.text("displayName").endswith("MCP Server)")
        yield replace(one, origin=MCP) if is_other and not one.origin else one


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n\n".join(filter(None, map(_text, content)))
    part = Record.of(content)
    answer = part.object("functionResponse").object("response")
    output = answer.get("error") or answer.get("output")
    return text_of(content if isinstance(content, str) else part.get("text") or output)
