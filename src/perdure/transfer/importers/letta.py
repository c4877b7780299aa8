"""Exports of Letta: agent files (`.af`), which are JSON, and lists of archival passages.

An agent file has agents with their messages, and blocks of memory. An older one is one agent, with
its blocks in `core_memory`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.uri import stable_slug
from perdure.model.values import JSON
from perdure.transfer import json_records
from perdure.transfer.contract import (
    DocumentItem,
    ImportFinding,
    ImportItem,
    MessageFields,
    SessionItem,
    StatementItem,
)
from perdure.transfer.json_records import (
    Items,
    Record,
    each_file,
    list_of,
    parsed_json,
    speech_message,
)
from perdure.transfer.source import ImportSource, SourceFile

_SUFFIXES = (".af", ".json")
_PASSAGES = ("passages", "archival_memory", "archival_passages")
_PASSED_OVER = ("tools", "groups", "sources", "mcp_servers", "skills")
_CATEGORIES = {"human": "preference"}
"""Categories by label of a block: facts about the user are always loaded, as in Letta."""
_SPEAK = "send_message"
"""The tool by which an older agent speaks to its user; its other text is a thought."""


class LettaFormat:
    name = "letta"
    kind = "memories"

    def detect(self, source: ImportSource) -> bool:
        return any(map(_is_letta, json_records.file_heads(source, *_SUFFIXES)))

    def items(self, source: ImportSource) -> Items:
        return each_file(source, source.selected(*_SUFFIXES), self._read)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        return json_records.each_object(
            entry, "record", json_records.json_elements(stream, keys=_PASSAGES[:1]), self._item
        )

    def _item(self, entry: SourceFile, where: str, given: Record) -> Items:
        if "agents" in given or "core_memory" in given or "agent_type" in given:
            yield from self._file(entry, given)
        else:
            yield self._passage(entry, where, given)

    def _passage(self, entry: SourceFile, where: str, given: Record) -> ImportItem:
        source_id, content = given.text("id"), given.text("text")
        if not source_id or not content.strip():
            raise InvalidValueError("it is neither an agent nor a passage with an id and a text")
        tags = ", ".join(filter(None, map(text_of, given.array("tags"))))
        metadata = {"date": given.time("created_at"), "source_tags": tags}
        return self._statement(entry, where, source_id, content, "entity", metadata)

    def _statement(  # noqa: PLR0913, PLR0917 - the fields of an item
        self,
        entry: SourceFile,
        where: str,
        source_id: str,
        content: str,
        category: str,
        metadata: Mapping[str, JSON],
    ) -> StatementItem:
        return StatementItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=source_id,
            content=content.strip(),
            category=category,
            project="",
            metadata={name: value for name, value in metadata.items() if value},
        )

    # ------------------------------------------------------------ an agent file
    def _file(self, entry: SourceFile, given: Record) -> Items:
        agents = given.objects("agents") or [given]
        blocks = given.objects("blocks")
        left: Counter[str] = Counter()
        for key in _PASSED_OVER:
            left[key.replace("_", " ")] += len(given.array(key))
        for agent in agents:
            name = agent.text("name").strip() or entry.base.rpartition(".")[0]
            ids = {text_of(each) for each in agent.array("block_ids")}
            held = [each for each in blocks if each.text("id") in ids]
            for key in ("core_memory", "memory_blocks"):
                held += agent.objects(key)
            blocks = [each for each in blocks if each not in held]
            yield from self._blocks(entry, name, held, left)
            yield from self._conversation(entry, name, agent, left)
            left["system prompts"] += bool(agent.text("system"))
        yield from self._blocks(entry, "shared", blocks, left)
        for key in _PASSAGES:
            for number, each in enumerate(given.objects(key), start=1):
                where = f"passage {number}"
                try:
                    yield self._passage(entry, where, each)
                except InvalidValueError as error:
                    yield ImportFinding(entry.name, where, str(error), json_records.CORRECT_IT)
        for each in given.objects("files"):
            yield from self._document(entry, each, left)
        yield from json_records.counted_findings(entry.name, left)

    def _blocks(
        self, entry: SourceFile, agent: str, blocks: list[Record], left: Counter[str]
    ) -> Iterator[ImportItem]:
        for block in blocks:
            label, value = block.text("label").strip(), block.text("value")
            if not label or not value.strip():
                left["empty blocks"] += 1
                continue
            metadata = {"letta_label": label, "letta_agent": agent}
            category = _CATEGORIES.get(label, "entity")
            where = f"block {label[:80]}"
            yield self._statement(entry, where, f"{agent}/{label}", value, category, metadata)

    def _document(
        self, entry: SourceFile, file: Record, left: Counter[str]
    ) -> Iterator[ImportItem]:
        text, name = file.text("content"), file.text("file_name").strip()
        if not text.strip() or not name:
            left["files without a text"] += 1
            return
        yield DocumentItem(
            file=entry.name,
            where=f"file {name[:80]}",
            source=self.name,
            source_id=stable_slug(name),
            text=text,
        )

    def _conversation(
        self, entry: SourceFile, name: str, agent: Record, left: Counter[str]
    ) -> Iterator[ImportItem]:
        messages: list[MessageFields] = []
        every = agent.objects("messages")
        for each in every:
            found = [*_messages(each)]
            messages += found
            if not found:
                role = each.text("role") or "none"
                left[f"messages of the role {role[:20]} without a text for the user"] += 1
        if every:
            times = [time for each in every if (time := each.time("created_at"))]
            yield SessionItem(
                file=entry.name,
                where=f"agent {name[:80]}",
                source=self.name,
                source_id=name,
                title=name,
                messages=tuple(messages),
                created_at=min(times, default=""),
                updated_at=max(times, default=""),
            )


def _is_letta(head: bytes) -> bool:
    if b'"core_memory"' in head or (b'"agents"' in head and b'"block_ids"' in head):
        return True
    return b'"embedding_config"' in head or (b'"text"' in head and b'"passage-' in head)


def _messages(message: Record) -> Iterator[MessageFields]:
    """Yield what an agent or user writes to the other or to a tool, without thoughts and events."""
    role, time = message.text("role"), message.get("created_at")
    calls = [Record.of(e).object("function") for e in message.array("tool_calls")]
    speaks = any(each.get("name") == _SPEAK for each in calls)
    text = _text(message.get("content")) or message.text("text")
    if role == "user":
        text = _unwrapped(text)
    if role in {"user", "assistant"} and not speaks:
        yield from filter(None, [speech_message(role, text, time)])
    for each in calls if role == "assistant" else ():
        name, given = each.text("name"), each.get("arguments")
        content = text_of(Record.of(parsed_json(given)).get("message")) if name == _SPEAK else ""
        yield from filter(
            None, [speech_message(role, content or json_records.call_line(name, given), time)]
        )


def _text(content: object) -> str:
    if isinstance(content, str):
        return text_of(content)
    texts = (Record.of(each).text("text") for each in list_of(content))
    return "\n\n".join(filter(None, texts))


def _unwrapped(text: str) -> str:
    """Return the text of a user; "" for an event, which Letta writes in the same form, as JSON."""
    event = Record.of(parsed_json(text))
    if "type" not in event:
        return text
    return event.text("message") if event.get("type") == "user_message" else ""
