"""ChatGPT's data export: `conversations.json`, alone or in the archive that one downloads.

A conversation is a tree of messages; `current_node` is the end of the branch that its owner sees.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.engine.importing.contract import Conversation, Finding, Item, Said
from perdure.engine.importing.reading import (
    begins_with,
    call,
    conversations_in,
    each_file,
    each_object,
    elements,
    list_of,
    mapping_of,
    said,
    time_of,
    with_branches,
)
from perdure.engine.importing.sources import Entry, Source
from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.values import shown

_SILENT = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"}
)
"""What the model thinks, and what its owner told it once for all conversations."""


class ChatGpt:
    name = "chatgpt"
    kind = "sessions"

    def detect(self, source: Source) -> bool:
        return begins_with(source, (".json",), b'"mapping"')

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_file(source, conversations_in(source), self._read)

    def _read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        return each_object(entry, "conversation", elements(stream), self._conversation)

    def _conversation(
        self, entry: Entry, where: str, given: Mapping[str, object]
    ) -> Iterator[Item | Finding]:
        source_id = text_of(given.get("conversation_id")) or text_of(given.get("id"))
        nodes = given.get("mapping")
        if not source_id or not isinstance(nodes, dict):
            raise InvalidValueError("it has no id, or no mapping of messages")
        branch = _branch(nodes, given.get("current_node"))
        one = Conversation(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=source_id,
            title=text_of(given.get("title")),
            messages=tuple(m for node in branch if (m := _message(nodes[node])) is not None),
            created_at=time_of(given.get("create_time")),
            updated_at=time_of(given.get("update_time")),
        )
        others = (node for name, node in nodes.items() if name not in branch)
        yield from with_branches(one, sum(_message(node) is not None for node in others))


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
    leaves = [name for name, node in nodes.items() if not list_of(mapping_of(node).get("children"))]
    return leaves[-1] if leaves else None


def _message(node: object) -> Said | None:
    """Return what a node says; None if nobody said it, or it was never shown to anybody."""
    given = mapping_of(mapping_of(node).get("message"))
    hidden = mapping_of(given.get("metadata")).get("is_visually_hidden_from_conversation")
    role = text_of(mapping_of(given.get("author")).get("role"))
    if hidden is True or role not in {"user", "assistant"}:
        return None
    content = _content(mapping_of(given.get("content")))
    to = text_of(given.get("recipient")) or "all"
    if role == "assistant" and to != "all" and content.strip():
        content = call(to, content)
    return said(role, content, given.get("create_time"))


def _content(content: Mapping[str, object]) -> str:
    if text_of(content.get("content_type")) in _SILENT:
        return ""
    parts = [_part(part) for part in list_of(content.get("parts"))]
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
