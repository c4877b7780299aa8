"""Sessions of Codex: `~/.codex/sessions/**/rollout-*.jsonl`, one file for each.

Each line has a type and a payload. `response_item` is what was said; `event_msg` says it again, for
a screen. Older files have the payloads alone.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.engine.importing.contract import Conversation, Finding, Item, Said
from perdure.engine.importing.reading import (
    call,
    compact,
    each_file,
    each_object,
    heads,
    lines,
    list_of,
    mapping_of,
    message,
    time_of,
)
from perdure.engine.importing.sources import Entry, Source
from perdure.errors import InvalidValueError
from perdure.model.messages import text_of

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_NOT_SAID = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How texts begin that the program puts before what its user says."""
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


class Codex:
    name = "codex"
    kind = "sessions"

    def detect(self, source: Source) -> bool:
        marks = (b'"session_meta"', b'"response_item"')
        found = heads(source, ".jsonl")
        return any(any(mark in head for mark in marks) or _is_old(head) for head in found)

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_file(source, source.meant(".jsonl"), self._read)

    def _read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        session = _Session()
        yield from each_object(entry, "line", lines(stream), session.take)
        if not session.id and session.messages:
            what = "it has messages, but nothing says which session it is"
            yield Finding(entry.name, "", what, "keep its first line, session_meta")
        elif session.id:
            yield Conversation(
                file=entry.name,
                where="",
                source=self.name,
                source_id=session.id,
                messages=tuple(session.messages),
                created_at=session.began,
                updated_at=session.last,
            )


class _Session:
    """What the lines of a file say."""

    def __init__(self) -> None:
        self.id = self.began = self.last = ""
        self.messages: list[Said] = []
        self._tools: dict[str, str] = {}

    def take(
        self, _entry: Entry, _where: str, line: Mapping[str, object]
    ) -> Iterator[Item | Finding]:
        """Take one line in; it gives no item of its own."""
        kind, payload, time = _unwrapped(line)
        if kind not in {"session_meta", "response_item"}:
            return iter(())
        if not isinstance(payload, dict):
            raise InvalidValueError("it has no payload that is an object")
        if kind == "session_meta":
            # A session that went on from another has the other's first line after its own.
            self.id = self.id or text_of(payload.get("id"))
            self.began = self.began or time_of(payload.get("timestamp") or time)
        elif (said := self._said(payload, time)) is not None:
            self.messages.append(said)
            self.last = said.get("time", self.last)
        return iter(())

    def _said(self, item: Mapping[str, object], time: object) -> Said | None:
        kind = text_of(item.get("type"))
        if kind == "message":
            role = _ROLES.get(text_of(item.get("role")))
            text = _text(item.get("content"))
            silent = role is None or text.lstrip().startswith(_NOT_SAID)
            return None if silent or role is None else message(role, text, time=time)
        called = text_of(item.get("call_id"))
        if kind in _CALLS:
            name = text_of(item.get("name")) or "shell"
            self._tools[called] = name
            given = item.get("arguments") or item.get("input") or item.get("action")
            return message("assistant", call(name, given), time=time)
        if kind in _RESULTS:
            given = item.get("output")
            output = mapping_of(given).get("content", given)
            text = compact(_text(output) if isinstance(output, list) else output)
            return message("tool", text, name=self._tools.get(called, ""), time=time)
        return None


def _unwrapped(line: Mapping[str, object]) -> tuple[str, object, object]:
    """Return the type, the payload and the time of a line; older ones are their own payload."""
    kind = text_of(line.get("type"))
    if "payload" in line or kind in {"session_meta", "response_item", "event_msg"}:
        return kind, line.get("payload"), line.get("timestamp")
    if not kind and "id" in line and "timestamp" in line:
        return "session_meta", line, line.get("timestamp")
    return ("response_item" if kind else "other"), line, None


def _text(content: object) -> str:
    if isinstance(content, str):
        return text_of(content)
    blocks = map(mapping_of, list_of(content))
    return "\n\n".join(filter(None, (_block(block) for block in blocks)))


def _block(block: Mapping[str, object]) -> str:
    kind = text_of(block.get("type"))
    return "[image]" if kind.endswith("image") else text_of(block.get("text"))


def _is_old(head: bytes) -> bool:
    first = head.partition(b"\n")[0]
    return b'"instructions"' in first and b'"id"' in first
