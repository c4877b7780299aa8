"""ChatGPT's data export: `conversations.json`, alone or in the archive that one downloads.

A conversation is a tree of messages; `current_node` is the end of the branch that its owner sees.
What ChatGPT remembers is in messages too: what it tells its tool `bio`, the custom instructions
(`user_editable_context`), and the list of memories that it was given (`model_editable_context`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.values import shown, words_key
from perdure.transfer import parsing
from perdure.transfer.contract import (
    ImportFinding,
    ImportItem,
    MessageFields,
    SessionItem,
    StatementItem,
)
from perdure.transfer.parsing import each_file, each_object, mapping_of, message, time_of
from perdure.transfer.source import ImportSource, SourceFile

_SILENT = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"}
)
"""What the model thinks, and what its owner told it once for all conversations."""
_BIO = "bio"
"""The tool that ChatGPT keeps its memories with."""
_INSTRUCTIONS = {
    "about-you": ("user_profile", "about_user_message"),
    "how-to-respond": ("user_instructions", "about_model_message"),
}
"""The custom instructions, and the fields that have them."""
_FENCED = re.compile(r"```(?:\w*\n)?(.*?)```", re.DOTALL)
_NOW = "9999"
"""The time of what is as it was when the export was made."""
_NUMBERED = re.compile(r"\d+\.\s*(?:\[[^\]\n]{0,40}\]\.?\s*)?")
_FORGET = re.compile(r"(?:forget|delete|remove|ignore)\b", re.IGNORECASE)
"""How ChatGPT tells its tool to forget something."""


class ChatGptFormat:
    name = "chatgpt"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        return parsing.begins_with(source, (".json",), b'"mapping"')

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return _ChatGptExport().items(source)


class _SourcedText(NamedTuple):
    """A text that ChatGPT was given with a conversation, and the place and time of that."""

    time: str
    file: str
    where: str
    text: str


class _ChatGptExport:
    """One export: what is remembered is known when all conversations are read."""

    def __init__(self) -> None:
        self._instructions: dict[str, dict[str, _SourcedText]] = {}
        """By name and text, where each was last given."""
        self._memories = _SourcedText("", "", "", "")
        self._known: set[str] = set()
        self._left: Counter[str] = Counter()

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        yield from each_file(source, parsing.conversation_files(source), self._read)
        users = [entry for entry in source.entries if entry.base == "user.json"]
        yield from each_file(source, users, self._user)
        for name, found in self._instructions.items():
            *older, last = sorted(found.values())
            self._left["older custom instructions"] += len(older)
            yield self._statement(last, f"custom-instructions/{name}", last.text, "preference")
        for line in self._memories.text.splitlines():
            yield from self._fact(self._memories, _NUMBERED.sub("", line.strip(), count=1))
        for what, count in (+self._left).items():
            yield ImportFinding(
                "", "", f"{what} were left out: {count:,}", "nothing", refused=False
            )

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        return each_object(entry, "conversation", parsing.json_elements(stream), self._conversation)

    def _user(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        def take(
            _entry: SourceFile, where: str, user: Mapping[str, object]
        ) -> Iterator[ImportItem | ImportFinding]:
            given = {**user, **mapping_of(user.get("custom_instructions"))}
            self._instruct(_SourcedText(_NOW, entry.name, where, ""), given)
            return iter(())

        return each_object(entry, "user", parsing.json_elements(stream), take)

    def _conversation(
        self, entry: SourceFile, where: str, given: Mapping[str, object]
    ) -> Iterator[ImportItem | ImportFinding]:
        source_id = text_of(given.get("conversation_id")) or text_of(given.get("id"))
        nodes = given.get("mapping")
        if not source_id or not isinstance(nodes, dict):
            raise InvalidValueError("it has no id, or no mapping of messages")
        branch = _branch(nodes, given.get("current_node"))
        one = SessionItem(
            file=entry.name,
            where=where,
            source=ChatGptFormat.name,
            source_id=source_id,
            title=text_of(given.get("title")),
            messages=tuple(m for node in branch if (m := _message(nodes[node])) is not None),
            created_at=time_of(given.get("create_time")),
            updated_at=time_of(given.get("update_time")),
        )
        others = (node for name, node in nodes.items() if name not in branch)
        yield from parsing.with_branches(one, sum(_message(node) is not None for node in others))
        kept = _SourcedText(one.updated_at or one.created_at, entry.name, where, "")
        for name in branch:
            yield from self._remembered(mapping_of(mapping_of(nodes[name]).get("message")), one)
            self._note(mapping_of(mapping_of(nodes[name]).get("message")), kept)

    # ------------------------------------------------------------ what it remembers
    def _remembered(
        self, given: Mapping[str, object], one: SessionItem
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what ChatGPT kept in a message; each fact once."""
        if not _is_kept(given):
            return
        kept = _SourcedText(time_of(given.get("create_time")), one.file, one.where, "")
        for line in _content(mapping_of(given.get("content"))).splitlines():
            yield from self._fact(kept, line.strip(), one.source_id)

    def _fact(
        self, kept: _SourcedText, text: str, conversation: str = ""
    ) -> Iterator[ImportItem | ImportFinding]:
        key = words_key(text)
        if not key or key in self._known or text.startswith("#"):
            return
        self._known.add(key)
        if _FORGET.match(text):
            self._left["things that ChatGPT was told to forget"] += 1
            return
        quoted = (conversation, text) if conversation else None
        yield self._statement(kept, f"memory/{parsing.digest(key)[:24]}", text, "entity", quoted)

    def _statement(
        self,
        kept: _SourcedText,
        source_id: str,
        content: str,
        category: str,
        quoted: tuple[str, str] | None = None,
    ) -> StatementItem:
        return StatementItem(
            file=kept.file,
            where=kept.where,
            source=ChatGptFormat.name,
            source_id=source_id,
            content=content,
            category=category,
            metadata={"source_updated_at": kept.time} if kept.time not in {"", _NOW} else {},
            project="",
            quote=quoted,
        )

    def _note(self, given: Mapping[str, object], kept: _SourcedText) -> None:
        """Note what a message is that nobody sees: the newest instructions, or a list of facts."""
        content, metadata = mapping_of(given.get("content")), mapping_of(given.get("metadata"))
        self._instruct(kept, {**mapping_of(metadata.get("user_context_message_data")), **content})
        listed = text_of(content.get("model_set_context")).strip()
        if listed and kept.time >= self._memories.time:
            self._memories = kept._replace(text=listed)
        role = text_of(mapping_of(given.get("author")).get("role"))
        kind = text_of(content.get("content_type"))
        if role in {"tool", "system"} and _content(content).strip():
            self._left[f"messages of the role {role}"] += 1
        elif kind in {"thoughts", "reasoning_recap"}:
            self._left["thoughts of the model"] += 1
        elif metadata.get("is_visually_hidden_from_conversation") is True and kind not in _SILENT:
            self._left["messages that were never shown"] += 1

    def _instruct(self, kept: _SourcedText, given: Mapping[str, object]) -> None:
        for name, fields in _INSTRUCTIONS.items():
            text = next(filter(None, (text_of(given.get(field)) for field in fields)), "")
            fenced = _FENCED.search(text)
            if text := (fenced[1] if fenced else text).strip():
                found = self._instructions.setdefault(name, {})
                found[text] = max(found.get(text, kept), kept._replace(text=text))


def _branch(nodes: Mapping[str, object], current: object) -> dict[str, None]:
    at = current if isinstance(current, str) and current in nodes else _last_leaf(nodes)
    found: dict[str, None] = {}
    while at is not None:
        if at in found or at not in nodes:
            what = "lead in a circle" if at in found else "lack one that others follow"
            raise InvalidValueError(f"its messages {what}: {shown(at)}")
        found[at] = None
        parent = mapping_of(nodes[at]).get("parent")
        at = parent if isinstance(parent, str) else None
    return dict.fromkeys(reversed(found))


def _last_leaf(nodes: Mapping[str, object]) -> str | None:
    leaves = [
        name
        for name, node in nodes.items()
        if not parsing.list_of(mapping_of(node).get("children"))
    ]
    return leaves[-1] if leaves else None


def _message(node: object) -> MessageFields | None:
    """Return what a node says; None if nobody said it, or it was never shown to anybody."""
    given = mapping_of(mapping_of(node).get("message"))
    hidden = mapping_of(given.get("metadata")).get("is_visually_hidden_from_conversation")
    role = text_of(mapping_of(given.get("author")).get("role"))
    if role not in {"user", "assistant"} or (hidden is True and not _is_kept(given)):
        return None
    content = _content(mapping_of(given.get("content")))
    to = text_of(given.get("recipient")) or "all"
    if _is_kept(given):  # whole, so that what is remembered can be found in it
        lines = (line.strip() for line in content.splitlines())
        content = "\n".join(f"[called {_BIO}: {line}]" for line in lines if line)
        return message(role, content, time=given.get("create_time"))
    if role == "assistant" and to != "all" and content.strip():
        content = parsing.call_line(to, content)
    return parsing.speech_message(role, content, given.get("create_time"))


def _is_kept(given: Mapping[str, object]) -> bool:
    role = text_of(mapping_of(given.get("author")).get("role"))
    return role == "assistant" and text_of(given.get("recipient")) == _BIO


def _content(content: Mapping[str, object]) -> str:
    if text_of(content.get("content_type")) in _SILENT:
        return ""
    parts = [_part(part) for part in parsing.list_of(content.get("parts"))]
    return "\n\n".join(filter(None, parts)) or text_of(content.get("text") or content.get("result"))


def _part(part: object) -> str:
    """Return a text, or that there was something else: a picture, a recording."""
    if isinstance(part, str):
        return text_of(part)
    known = mapping_of(part)
    if text := text_of(known.get("text")):
        return text
    kind = text_of(known.get("content_type"))
    return f"[{kind.partition('_')[0]}]" if kind else ""
