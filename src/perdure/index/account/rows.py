"""From records to the rows of an account's tables, and back."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from perdure.index.account import schema
from perdure.index.filters import NAMED, Filing, above, bounds, filing
from perdure.index.stamp import digest_of
from perdure.index.vectors import quantised, whole
from perdure.model import IndexRecord, Level, SeedHit
from perdure.model.record import ACCOUNT, VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON

Row = tuple[Any, ...]
Scored = list[tuple[int, float]]
"""Rows, and how well they fit."""

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode


class Names:
    """The numbers that stand for texts. Those that were asked for are remembered."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[str, int] = {}

    def find(self, value: str) -> int | None:
        """Return the number of a text; None if no record ever said it."""
        known = self._known.get(value)
        if known is None:
            row = self._db.execute(schema.NAME_OF, (value,)).fetchone()
            if row is None:
                return None
            known = self._known[value] = int(row[0])
        return known

    def number(self, value: str) -> int:
        """Return the number of a text, a new one if it has none."""
        known = self.find(value)
        if known is None:
            made = self._db.execute(schema.ADD_NAME, (value,)).lastrowid
            known = self._known[value] = int(made or 0)
        return known


class Prepared(NamedTuple):
    """A record, and all of its rows that can be made without looking into the file."""

    record: IndexRecord
    filed: Filing
    below: str
    text: Row
    vector: bytes


def prepare(record: IndexRecord) -> Prepared:
    """Understand a record; `InvalidValueError` if it can't be put."""
    id_, text, context, filters = record.id, record.text, record.context, record.filters
    vector = quantised(record.vector)
    digest = digest_of((id_, int(record.level), text, context, filters, record.payload), vector)
    since, until = filters.get(VALID_FROM), filters.get(VALID_UNTIL)
    said = (id_, text, context, _encoded(record.payload), since, until, digest)
    return Prepared(record, filing(record), above(record.uri, record.level), said, vector)


def add(db: sqlite3.Connection, names: Names, records: Iterable[Prepared], first: int) -> None:
    """Write records into all tables, from the row `first` on."""
    fresh = list(enumerate(records, first))
    db.executemany(schema.ADD_RECORD, [(row, *_filed(each, names)) for row, each in fresh])
    db.executemany(schema.ADD_TEXT, [(row, *each.text) for row, each in fresh])
    db.executemany(schema.ADD_VECTOR, [(row, each.vector) for row, each in fresh if each.vector])
    notes = [(row, *noted) for row, each in fresh if (noted := noted_in(each.record.payload))]
    db.executemany(schema.ADD_NOTE, notes)
    for kind, levels in schema.KINDS.items():
        said = [
            (row, each.record.text, each.record.context)
            for row, each in fresh
            if each.record.level in levels
        ]
        db.executemany(schema.ADD_WORDS.format(kind), said)


def noted_in(payload: Mapping[str, JSON]) -> tuple[str, int, str] | None:
    """Return what a note is found by that is shown unasked: project, whether always, and when."""
    if "noted" not in payload:
        return None
    always, updated = bool(payload.get("always")), payload.get("updated_at", "")
    return str(payload["noted"]), int(always), str(updated)


def _filed(fresh: Prepared, names: Names) -> Row:
    texts = fresh.filed.texts
    return (
        int(fresh.record.level),
        names.number(fresh.record.uri),
        names.number(fresh.below) if fresh.below else 0,
        *(names.number(texts[name]) if name in texts else 0 for name in NAMED),
        fresh.filed.since,
        fresh.filed.until,
    )


# ---------------------------------------------------------------- back
class Whole(NamedTuple):
    """All that was written of a record. It is not looked at whether it makes sense."""

    id: str
    uri: str
    level: int
    text: str
    context: str
    filters: dict[str, JSON]
    payload: dict[str, JSON]
    vector: bytes
    below: str
    since: int
    until: int
    digest: bytes

    @property
    def record(self) -> IndexRecord:
        return IndexRecord(
            id=self.id,
            uri=self.uri,
            level=Level(self.level),
            text=self.text,
            context=self.context,
            vector=whole(self.vector),
            filters=self.filters,
            payload=self.payload,
        )

    @property
    def is_true(self) -> bool:
        """Whether all that was written says the same."""
        said = (self.id, self.level, self.text, self.context, self.filters, self.payload)
        return (
            digest_of(said, self.vector) == self.digest
            and above(self.uri, Level(self.level)) == self.below
            and bounds(self.filters) == (self.since, self.until)
        )


def read(account: str, row: Row) -> Whole:
    """Take one row of `schema.WHOLE` apart."""
    _, id_, text, context, payload, valid_from, valid_until, digest, level, *rest = row
    uri, below, *named, since, until, vector = rest
    told = {ACCOUNT: account, **dict(zip(NAMED, named, strict=True))}
    told |= {VALID_FROM: valid_from, VALID_UNTIL: valid_until}
    filters = {name: value for name, value in told.items() if value is not None}
    return Whole(
        id_,
        uri,
        level,
        text,
        context,
        filters,
        json.loads(payload),
        vector or b"",
        below or "",
        since,
        until,
        digest,
    )


def hits(db: sqlite3.Connection, scored: Scored) -> list[SeedHit]:
    """Return hits for rows and their scores, the best first, equal ones by their ids."""
    scores = dict(scored)
    found = db.execute(schema.HITS, {"rows": json.dumps(list(scores))}).fetchall()
    if len(found) != len(scores):
        raise LookupError("rows that were found are not there")
    found.sort(key=lambda each: (-scores[each[0]], each[1]))
    return hits_of(found, [scores[row[0]] for row in found])


def matches(db: sqlite3.Connection, scored: Scored) -> dict[str, float]:
    """Return the URIs of rows, each with its best score, in the order of `hits`."""
    scores = dict(scored)
    found = db.execute(schema.URIS, {"rows": json.dumps(list(scores))}).fetchall()
    if len(found) != len(scores):
        raise LookupError("rows that were found are not there")
    best: dict[str, float] = {}
    for row, _, uri in sorted(found, key=lambda each: (-scores[each[0]], each[1])):
        best.setdefault(uri, scores[row])
    return best


def hits_of(rows: Sequence[Row], scores: Iterable[float]) -> list[SeedHit]:
    """Make hits of rows of `schema.HITS`; their payloads are read all at once, which is quicker."""
    payloads = json.loads(f"[{','.join(row[-1] for row in rows)}]")
    return [
        SeedHit.of_record(id_, uri, Level(level), score, (text, payload))
        for (_, id_, uri, level, text, _), score, payload in zip(
            rows, scores, payloads, strict=True
        )
    ]


def best(db: sqlite3.Connection, scored: Scored, most: int) -> Scored:
    """Return the best of what was found, which has all that are as good as the last of them.

    Of those that are as good as the last, the first by their ids.
    """
    if len(scored) <= most:
        return scored
    least = sorted(score for _, score in scored)[-most]
    better = [each for each in scored if each[1] > least]
    equal = [row for row, score in scored if score == least]
    asked = {"rows": json.dumps(equal), "most": most - len(better)}
    return [*better, *((row, least) for (row,) in db.execute(schema.FIRST_BY_ID, asked))]
