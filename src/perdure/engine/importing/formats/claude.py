"""Claude's data export: `conversations.json`, alone or in the archive that one downloads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from perdure.engine.importing.contract import Conversation, Finding, Item, Said
from perdure.engine.importing.reading import (
    begins_with,
    conversations_in,
    cut,
    each_file,
    each_object,
    elements,
    list_of,
    mapping_of,
    said_in,
    time_of,
    with_branches,
)
from perdure.engine.importing.sources import Entry, Source
from perdure.errors import InvalidValueError
from perdure.model.messages import text_of

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_MOST_OF_AN_ATTACHMENT = 20_000

Messages = Sequence[Mapping[str, object]]


class Claude:
    name = "claude"
    kind = "sessions"

    def detect(self, source: Source) -> bool:
        return begins_with(source, (".json",), b'"chat_messages"')

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_file(source, conversations_in(source), self._read)

    def _read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        found = elements(stream, keys=("conversations",))
        return each_object(entry, "conversation", found, self._conversation)

    def _conversation(
        self, entry: Entry, where: str, said: Mapping[str, object]
    ) -> Iterator[Item | Finding]:
        source_id, every = text_of(said.get("uuid")), said.get("chat_messages")
        if not source_id or not isinstance(every, list):
            raise InvalidValueError("it has no uuid, or no list chat_messages")
        known = [mapping_of(each) for each in every]
        branch = _branch(known, said.get("current_leaf_message_uuid"))
        one = Conversation(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=source_id,
            title=text_of(said.get("name")),
            messages=tuple(m for each in branch for m in _messages(each)),
            created_at=time_of(said.get("created_at")),
            updated_at=time_of(said.get("updated_at")),
        )
        yield from with_branches(one, len(known) - len(branch))


def _branch(messages: Messages, leaf: object) -> Messages:
    """Return the messages that lead to the current one; all, if they don't say what they follow."""
    named = {uuid: each for each in messages if (uuid := text_of(each.get("uuid")))}
    at = text_of(leaf) or (text_of(messages[-1].get("uuid")) if messages else "")
    if not all("parent_message_uuid" in each for each in messages) or at not in named:
        return messages
    found: dict[str, Mapping[str, object]] = {}
    while at in named and at not in found:
        found[at] = named[at]
        at = text_of(named[at].get("parent_message_uuid"))
    first = text_of(messages[0].get("parent_message_uuid"))
    return messages if at in found or at != first else [*reversed(found.values())]


def _messages(said: Mapping[str, object]) -> Iterator[Said]:
    role = _ROLES.get(text_of(said.get("sender")))
    if role is None:
        return
    content = said.get("content") or said.get("text")
    attached = "\n\n".join(_attachments(said))
    if attached:
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        content = [*blocks, {"type": "text", "text": attached}]
    yield from said_in(role, content, said.get("created_at"))


def _attachments(said: Mapping[str, object]) -> Iterator[str]:
    for kind in ("attachments", "files"):
        for each in map(mapping_of, list_of(said.get(kind))):
            name = text_of(each.get("file_name"))
            text = cut(text_of(each.get("extracted_content")), _MOST_OF_AN_ATTACHMENT)
            if name or text:
                yield f"[attached {name or 'a text'}]" + (f"\n{text}" if text else "")
