"""An export of mem0: what `get_all` returns, as JSON; a list, or an object with `results`.

With a graph, the object has `relations` too, which name the entities that they are between.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model import slugify
from perdure.model.messages import text_of
from perdure.model.values import JSON
from perdure.transfer import parsing
from perdure.transfer.contract import ImportFinding, ImportItem, RelationItem, StatementItem
from perdure.transfer.parsing import each_file, each_object, list_of, mapping_of, time_of
from perdure.transfer.source import ImportSource, SourceFile

_LISTS = ("results", "memories", "data", "relations")
_OTHERWISE = "entity"
_PREFERENCES = (
    "preference preferences user_preferences food music fashion entertainment hobbies sports "
    "technology"
)
CATEGORIES = {
    **dict.fromkeys(_PREFERENCES.split(), "preference"),
    **dict.fromkeys(["event", "events", "milestones", "travel"], "event"),
}
"""mem0's categories in ours; what is in none of these is an entity."""
_MOST = 2**53
_KEPT = ("agent_id", "run_id", "app_id", "hash")


class Mem0Format:
    name = "mem0"
    kind = "memories"

    def detect(self, source: ImportSource) -> bool:
        return any(
            b'"memory"' in head and b'"id"' in head for head in parsing.file_heads(source, ".json")
        )

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return each_file(source, source.selected(".json"), self._read)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        return each_object(entry, "memory", parsing.json_elements(stream, keys=_LISTS), self._item)

    def _item(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> Iterator[ImportItem | ImportFinding]:
        is_relation = "relationship" in said and "memory" not in said
        return (self._relation if is_relation else self._statement)(entry, where, said)

    def _relation(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> Iterator[ImportItem | ImportFinding]:
        start, kind = text_of(said.get("source")), text_of(said.get("relationship"))
        target = text_of(said.get("target")) or text_of(said.get("destination"))
        if not (start.strip() and kind.strip() and target.strip()):
            raise InvalidValueError("it is a relation that lacks source, relationship or target")
        yield RelationItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=f"{start} {kind} {target}",
            start=start,
            target=target,
            kind=kind.strip(),
            owner=text_of(said.get("user_id")),
            creates_entities=True,
        )

    def _statement(
        self, entry: SourceFile, where: str, said: Mapping[str, object]
    ) -> Iterator[ImportItem | ImportFinding]:
        source_id, content = text_of(said.get("id")), text_of(said.get("memory"))
        if not source_id or not content.strip():
            raise InvalidValueError("it has no id, or no text in memory")
        yield StatementItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=source_id,
            content=content,
            category=_category(said),
            owner=text_of(said.get("user_id")),
            metadata=_metadata(said),
        )


def _category(said: Mapping[str, object]) -> str:
    """Return ours for the first category that has one; the owner's own metadata comes first."""
    own = mapping_of(said.get("metadata"))
    told = [own.get("category"), own.get("type"), *list_of(said.get("categories"))]
    names = (slugify(text_of(each)[:100]).replace("-", "_") for each in told)
    return next((CATEGORIES[name] for name in names if name in CATEGORIES), _OTHERWISE)


def _metadata(said: Mapping[str, object]) -> dict[str, JSON]:
    """Return what else the source says: times, categories, ids, and its own metadata as text."""
    created, updated = time_of(said.get("created_at")), time_of(said.get("updated_at"))
    categories = [text for each in list_of(said.get("categories")) if (text := text_of(each))]
    own = mapping_of(said.get("metadata"))
    told: dict[str, JSON] = {
        "date": created,
        "source_created_at": created,
        "source_updated_at": updated,
        "source_user": text_of(said.get("user_id")),
        "source_categories": ", ".join(categories),
        **{f"source_{name}": text_of(said.get(name)) for name in _KEPT},
        **{f"mem0_{text_of(name)}": _plain(each) for name, each in own.items()},
    }
    return {name: value for name, value in told.items() if value not in {"", None}}


def _plain(value: object) -> JSON:
    """Return a text, a number or a truth; nothing of what is none, or too large to be kept."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < _MOST:
        return value
    return text_of(value)
