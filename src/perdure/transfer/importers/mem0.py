"""An export of mem0: what `get_all` returns, as JSON; a list, or an object with `results`.

With a graph, the object has `relations` too, which name the entities that they are between.
"""

from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model import slugify
from perdure.model.messages import text_of
from perdure.model.values import JSON
from perdure.transfer import json_records
from perdure.transfer.contract import RelationItem, StatementItem
from perdure.transfer.json_records import Items, Record, each_file, each_object
from perdure.transfer.source import ImportSource, SourceFile

_LISTS = ("results", "memories", "data", "relations")
_DEFAULT = "entity"
_PREFERENCES = (
    "preference preferences user_preferences food music fashion entertainment hobbies sports "
    "technology"
)
CATEGORIES = {
    **dict.fromkeys(_PREFERENCES.split(), "preference"),
    **dict.fromkeys(["event", "events", "milestones", "travel"], "event"),
}
"""Our categories for those of mem0; the default is an entity."""
_MAX_NUMBER = 2**53
_IDS = ("agent_id", "run_id", "app_id", "hash")


class Mem0Format:
    name = "mem0"
    kind = "memories"

    def detect(self, source: ImportSource) -> bool:
        return any(
            b'"memory"' in head and b'"id"' in head
            for head in json_records.file_heads(source, ".json")
        )

    def items(self, source: ImportSource) -> Items:
        return each_file(source, source.selected(".json"), self._read)

    def _read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        return each_object(
            entry, "memory", json_records.json_elements(stream, keys=_LISTS), self._item
        )

    def _item(self, entry: SourceFile, where: str, record: Record) -> Items:
        is_relation = "relationship" in record and "memory" not in record
        return (self._relation if is_relation else self._statement)(entry, where, record)

    def _relation(self, entry: SourceFile, where: str, record: Record) -> Items:
        start, kind = record.text("source"), record.text("relationship")
        target = record.text("target") or record.text("destination")
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
            owner=record.text("user_id"),
            creates_entities=True,
        )

    def _statement(self, entry: SourceFile, where: str, record: Record) -> Items:
        source_id, content = record.text("id"), record.text("memory")
        if not source_id or not content.strip():
            raise InvalidValueError("it has no id, or no text in memory")
        yield StatementItem(
            file=entry.name,
            where=where,
            source=self.name,
            source_id=source_id,
            content=content,
            category=_category(record),
            owner=record.text("user_id"),
            metadata=_metadata(record),
        )


def _category(record: Record) -> str:
    """Return our category for the first that has one; the user's own metadata comes first."""
    own = record.object("metadata")
    given = [own.get("category"), own.get("type"), *record.array("categories")]
    names = (slugify(text_of(each)[:100]).replace("-", "_") for each in given)
    return next((CATEGORIES[name] for name in names if name in CATEGORIES), _DEFAULT)


def _metadata(record: Record) -> dict[str, JSON]:
    """Return times, categories, ids and the user's own metadata."""
    created, updated = record.time("created_at"), record.time("updated_at")
    categories = [text for each in record.array("categories") if (text := text_of(each))]
    own = record.object("metadata")
    metadata: dict[str, JSON] = {
        "date": created,
        "source_created_at": created,
        "source_updated_at": updated,
        "source_user": record.text("user_id"),
        "source_categories": ", ".join(categories),
        **{f"source_{name}": record.text(name) for name in _IDS},
        **{f"mem0_{text_of(name)}": _plain(each) for name, each in own.items()},
    }
    return {name: value for name, value in metadata.items() if value not in {"", None}}


def _plain(value: object) -> JSON:
    """Return a text, a number or a boolean; as text what is another type, or too large."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < _MAX_NUMBER:
        return value
    return text_of(value)
