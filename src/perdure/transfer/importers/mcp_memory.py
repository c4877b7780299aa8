"""The graph of MCP's reference server for memory: `memory.json`, one entity or relation a line."""

from collections.abc import Iterator
from typing import BinaryIO

from perdure.model.messages import text_of
from perdure.transfer import json_records
from perdure.transfer.contract import EntityItem, ImportFinding, ImportItem, RelationItem
from perdure.transfer.json_records import (
    CORRECT_IT,
    Items,
    Record,
    each_object,
    json_lines,
    list_of,
)
from perdure.transfer.source import ImportSource, SourceFile


class McpMemoryFormat:
    name = "mcp-memory"
    kind = "entities"

    def detect(self, source: ImportSource) -> bool:
        return json_records.begins_with(
            source, (".json", ".jsonl"), b'"entityType"', b'"relationType"'
        )

    def items(self, source: ImportSource) -> Items:
        return json_records.each_file(source, source.selected(".json", ".jsonl"), self._read)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        return each_object(entry, "line", json_lines(stream), self._items)

    def _items(self, entry: SourceFile, where: str, record: Record) -> Items:
        for each in _records(record):
            match each.get("type"):
                case "entity":
                    yield self._entity(entry, where, each)
                case "relation":
                    yield self._relation(entry, where, each)
                case _:
                    what = "it is neither an entity nor a relation"
                    yield ImportFinding(entry.name, where, what, CORRECT_IT)

    def _entity(self, entry: SourceFile, where: str, record: Record) -> ImportItem | ImportFinding:
        name, observations = record.text("name"), record.get("observations")
        if not name.strip() or not isinstance(observations, list):
            return ImportFinding(
                entry.name, where, "it has no name, or no list observations", CORRECT_IT
            )
        texts = tuple(text for each in observations if (text := text_of(each).strip()))
        return EntityItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=name,
            kind=record.text("entityType").strip(),
            observations=texts,
        )

    def _relation(
        self, entry: SourceFile, where: str, record: Record
    ) -> ImportItem | ImportFinding:
        start, target = record.text("from"), record.text("to")
        kind = record.text("relationType").strip()
        if not (start.strip() and target.strip() and kind):
            return ImportFinding(entry.name, where, "it lacks from, to or relationType", CORRECT_IT)
        return RelationItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=f"{start} {kind} {target}",
            start=start,
            target=target,
            kind=kind,
        )


def _records(record: Record) -> Iterator[Record]:
    """Yield the records of a line: one, or many of a graph, as `read_graph` returns it."""
    graph = {"entity": record.get("entities"), "relation": record.get("relations")}
    if not any(isinstance(each, list) for each in graph.values()):
        yield record
    for kind, records in graph.items():
        for each in list_of(records):
            yield Record({**each, "type": kind}) if isinstance(each, dict) else Record()
