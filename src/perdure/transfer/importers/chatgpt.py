"""ChatGPT's data export: `conversations.json`, alone or in the downloaded archive.

A conversation is a tree of messages; `current_node` is the end of the branch that its owner sees.
Memories are in messages too: in calls of the tool `bio`, in the custom instructions
(`user_editable_context`), and in the list of memories for the model (`model_editable_context`).
"""

import re
from collections import Counter
from typing import BinaryIO, NamedTuple

from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.values import comparison_key, shown
from perdure.transfer import json_records
from perdure.transfer.contract import MessageFields, SessionItem, StatementItem
from perdure.transfer.json_records import Items, Record, each_file, each_object, message
from perdure.transfer.source import ImportSource, SourceFile

_SILENT = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"}
)
"""Thoughts of the model, and what is given to it with every conversation."""
_BIO = "bio"
"""The tool with which ChatGPT stores memories."""
_INSTRUCTIONS = {
    "about-you": ("user_profile", "about_user_message"),
    "how-to-respond": ("user_instructions", "about_model_message"),
}
"""The fields of the custom instructions."""
_FENCED = re.compile(r"```(?:\w*\n)?(.*?)```", re.DOTALL)
_NOW = "9999"
"""The time of the state at the export: later than all others."""
_NUMBERED = re.compile(r"\d+\.\s*(?:\[[^\]\n]{0,40}\]\.?\s*)?")
_FORGET = re.compile(r"(?:forget|delete|remove|ignore)\b", re.IGNORECASE)
"""How a call of the tool `bio` asks to forget something."""


class ChatGptFormat:
    name = "chatgpt"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        return json_records.begins_with(source, (".json",), b'"mapping"')

    def items(self, source: ImportSource) -> Items:
        return _ChatGptExport().items(source)


class _SourcedText(NamedTuple):
    """A text that was given to the model with a conversation, where and when."""

    time: str
    file: str
    where: str
    text: str


class _ChatGptExport:
    """One export. Its memories are known when all conversations have been read."""

    def __init__(self) -> None:
        self._instructions: dict[str, dict[str, _SourcedText]] = {}
        """By name and text: where each was given last."""
        self._memories = _SourcedText("", "", "", "")
        self._known: set[str] = set()
        self._left: Counter[str] = Counter()

    def items(self, source: ImportSource) -> Items:
        yield from each_file(source, json_records.conversation_files(source), self._read)
        users = [entry for entry in source.entries if entry.base == "user.json"]
        yield from each_file(source, users, self._user)
        for name, found in self._instructions.items():
            *older, last = sorted(found.values())
            self._left["older custom instructions"] += len(older)
            yield self._statement(last, f"custom-instructions/{name}", last.text, "preference")
        for line in self._memories.text.splitlines():
            yield from self._fact(self._memories, _NUMBERED.sub("", line.strip(), count=1))
        yield from json_records.counted_findings("", self._left)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        return each_object(
            entry, "conversation", json_records.json_elements(stream), self._conversation
        )

    def _user(self, entry: SourceFile, stream: BinaryIO) -> Items:
        def read(_entry: SourceFile, where: str, user: Record) -> Items:
            given = {**user, **user.object("custom_instructions")}
            self._instruct(_SourcedText(_NOW, entry.name, where, ""), Record(given))
            return iter(())

        return each_object(entry, "user", json_records.json_elements(stream), read)

    def _conversation(self, entry: SourceFile, where: str, given: Record) -> Items:
        source_id = given.text("conversation_id") or given.text("id")
        nodes = given.object("mapping")
        if not source_id or not isinstance(given.get("mapping"), dict):
            raise InvalidValueError("it has no id, or no mapping of messages")
        branch = _branch(nodes, given.get("current_node"))
        one = SessionItem(
            file=entry.name,
            where=where,
            source=ChatGptFormat.name,
            source_id=source_id,
            title=given.text("title"),
            messages=tuple(m for node in branch if (m := _message(nodes[node])) is not None),
            created_at=given.time("create_time"),
            updated_at=given.time("update_time"),
        )
        others = (node for name, node in nodes.items() if name not in branch)
        yield from json_records.with_branches(
            one, sum(_message(node) is not None for node in others)
        )
        origin = _SourcedText(one.updated_at or one.created_at, entry.name, where, "")
        for name in branch:
            given = Record.of(nodes[name]).object("message")
            if _is_memory(given):
                called = origin._replace(time=given.time("create_time"))
                for line in _content(given.object("content")).splitlines():
                    yield from self._fact(called, line.strip(), source_id)
            self._note(given, origin)

    # ------------------------------------------------------------ memories
    def _fact(self, origin: _SourcedText, text: str, conversation: str = "") -> Items:
        """Yield a fact, unless it was yielded before."""
        key = comparison_key(text)
        if not key or key in self._known or text.startswith("#"):
            return
        self._known.add(key)
        if _FORGET.match(text):
            self._left["facts that ChatGPT was asked to forget"] += 1
            return
        quote = (conversation, text) if conversation else None
        yield self._statement(
            origin, f"memory/{json_records.digest(key)[:24]}", text, "entity", quote
        )

    def _statement(
        self,
        origin: _SourcedText,
        source_id: str,
        content: str,
        category: str,
        quote: tuple[str, str] | None = None,
    ) -> StatementItem:
        return StatementItem(
            file=origin.file,
            where=origin.where,
            source=ChatGptFormat.name,
            source_id=source_id,
            content=content,
            category=category,
            metadata={"source_updated_at": origin.time} if origin.time not in {"", _NOW} else {},
            project="",
            quote=quote,
        )

    def _note(self, given: Record, origin: _SourcedText) -> None:
        """Note instructions, memories, and the other messages that the user does not see."""
        content, metadata = given.object("content"), given.object("metadata")
        self._instruct(origin, Record({**metadata.object("user_context_message_data"), **content}))
        listed = content.text("model_set_context").strip()
        if listed and origin.time >= self._memories.time:
            self._memories = origin._replace(text=listed)
        role = given.object("author").text("role")
        kind = content.text("content_type")
        if role in {"tool", "system"} and _content(content).strip():
            self._left[f"messages of the role {role}"] += 1
        elif kind in {"thoughts", "reasoning_recap"}:
            self._left["thoughts of the model"] += 1
        elif metadata.get("is_visually_hidden_from_conversation") is True and kind not in _SILENT:
            self._left["messages that were never shown"] += 1

    def _instruct(self, origin: _SourcedText, given: Record) -> None:
        for name, fields in _INSTRUCTIONS.items():
            text = next(filter(None, (given.text(field) for field in fields)), "")
            fenced = _FENCED.search(text)
            if text := (fenced[1] if fenced else text).strip():
                found = self._instructions.setdefault(name, {})
                found[text] = max(found.get(text, origin), origin._replace(text=text))


def _branch(nodes: Record, current: object) -> dict[str, None]:
    at = current if isinstance(current, str) and current in nodes else _last_leaf(nodes)
    found: dict[str, None] = {}
    while at is not None:
        if at in found or at not in nodes:
            what = "form a cycle" if at in found else "lack one that others follow"
            raise InvalidValueError(f"its messages {what}: {shown(at)}")
        found[at] = None
        parent = Record.of(nodes[at]).get("parent")
        at = parent if isinstance(parent, str) else None
    return dict.fromkeys(reversed(found))


def _last_leaf(nodes: Record) -> str | None:
    leaves = [name for name, node in nodes.items() if not Record.of(node).array("children")]
    return leaves[-1] if leaves else None


def _message(node: object) -> MessageFields | None:
    """Return the message of a node; None if it is not speech, or was never shown."""
    given = Record.of(node).object("message")
    hidden = given.object("metadata").get("is_visually_hidden_from_conversation")
    role = given.object("author").text("role")
    if role not in {"user", "assistant"} or (hidden is True and not _is_memory(given)):
        return None
    content = _content(given.object("content"))
    to = given.text("recipient") or "all"
    if _is_memory(given):  # whole, because it is the evidence of statements
        lines = (line.strip() for line in content.splitlines())
        content = "\n".join(f"[called {_BIO}: {line}]" for line in lines if line)
        return message(role, content, time=given.get("create_time"))
    if role == "assistant" and to != "all" and content.strip():
        content = json_records.call_line(to, content)
    return json_records.speech_message(role, content, given.get("create_time"))


def _is_memory(given: Record) -> bool:
    role = given.object("author").text("role")
    return role == "assistant" and given.text("recipient") == _BIO


def _content(content: Record) -> str:
    if content.text("content_type") in _SILENT:
        return ""
    texts = [_part(part) for part in content.array("parts")]
    return "\n\n".join(filter(None, texts)) or text_of(content.get("text") or content.get("result"))


def _part(part: object) -> str:
    """Return a text, or a placeholder for an image or a recording."""
    if isinstance(part, str):
        return text_of(part)
    known = Record.of(part)
    if text := known.text("text"):
        return text
    kind = known.text("content_type")
    return f"[{kind.partition('_')[0]}]" if kind else ""
