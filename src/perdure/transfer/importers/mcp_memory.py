"""The graph of MCP's reference server for memory: `memory.json`, an entity or relation a line."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.model.messages import text_of
from perdure.transfer.contract import EntityItem, ImportFinding, ImportItem, RelationItem
from perdure.transfer.parsing import CORRECT_IT, begins_with, each_file, each_object, json_lines
from perdure.transfer.source import ImportSource, SourceFile


class McpMemoryFormat:
    name = "mcp-memory"
    kind = "entities"

    def detect(self, source: ImportSource) -> bool:
        return begins_with(source, (".json", ".jsonl"), b'"entityType"', b'"relationType"')

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return each_file(source, source.selected(".json", ".jsonl"), self._read)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        return each_object(entry, "line", json_lines(stream), self._items)

    def _items(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> Iterator[ImportItem | ImportFinding]:
        for each in _records(said):
            match each.get("type"):
                case "entity":
                    yield self._entity(entry, where, each)
                case "relation":
                    yield self._relation(entry, where, each)
                case _:
                    what = "it is neither an entity nor a relation"
                    yield ImportFinding(entry.name, where, what, CORRECT_IT)

    def _entity(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> ImportItem | ImportFinding:
        name, observations = text_of(said.get("name")), said.get("observations")
        if not name.strip() or not isinstance(observations, list):
            return ImportFinding(
                entry.name, where, "it has no name, or no list observations", CORRECT_IT
            )
        told = tuple(text for each in observations if (text := text_of(each).strip()))
        return EntityItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=name,
            kind=text_of(said.get("entityType")).strip(),
            observations=told,
        )

    def _relation(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> ImportItem | ImportFinding:
        start, target = text_of(said.get("from")), text_of(said.get("to"))
        kind = text_of(said.get("relationType")).strip()
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


def _records(said: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the records of a line; a whole graph, as `read_graph` returns it, is many."""
    graph = {"entity": said.get("entities"), "relation": said.get("relations")}
    if not any(isinstance(each, list) for each in graph.values()):
        yield said
        return
    for kind, records in graph.items():
        for each in records if isinstance(records, list) else []:
            yield {**each, "type": kind} if isinstance(each, dict) else {}
