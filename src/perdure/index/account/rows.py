"""The rows of an account's tables: made of records and back, searched, and the log of changes."""

import json
import os
import sqlite3
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

from perdure.errors import DamageError
from perdure.index.account import schema
from perdure.index.filters import LEVEL, NAMED, Sought, above, bounds, digest_of, filing
from perdure.index.vectors import quantised, whole
from perdure.model import IndexRecord, Level, SeedHit
from perdure.model.record import ACCOUNT, LINKS, NOTED, OWNER_SPACE, VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON

KEPT = 1024
"""Transactions that are remembered. Who has not looked for longer must look at everything."""
MUCH = 100_000
"""Characters that tell which rows went: then it is as well to look at everything."""
_TOKEN_BITS = 62
Row = tuple[Any, ...]
Scored = list[tuple[int, float]]
"""Rows, and how well they fit."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
BELOW = "below"
_LEVELS = {each.value: each for each in Level}
_FEW_NAMES = 4
"""So many are looked up one by one, which is quicker."""
_MOST_KNOWN = 16_384
"""So many rows are remembered; of the benchmark's messages, these are 14 MB."""


class Change(NamedTuple):
    """A transaction. Two that have the same token are the same, and so is all before them."""

    seq: int = 0
    token: int = 0
    rows: int = 0
    """How many rows there ever were; their numbers are from 1 to this."""
    cursor: int = 0
    gone: str = "[]"
    """The numbers of the rows that it took away, as JSON."""

    def next(self, *, added: int, gone: Sequence[int], cursor: int) -> "Change":
        return Change(
            self.seq + 1,
            int.from_bytes(os.urandom(8)) >> (64 - _TOKEN_BITS),
            self.rows + added,
            cursor,
            json.dumps(gone, separators=(",", ":")),
        )

    def is_same(self, other: "Change") -> bool:
        return (self.seq, self.token) == (other.seq, other.token)

    def seal(self, account: str) -> bytes:
        """Return a digest: another account's file, or one with a bit flipped, has another."""
        said = (account, self.seq, self.token, self.rows, self.cursor, self.gone)
        return sha256(json.dumps(said).encode()).digest()[:16]


def last_change(db: sqlite3.Connection, account: str) -> Change:
    """Return how things stand; `DamageError` if it is not what was written for this account."""
    row = db.execute(schema.LAST_CHANGE).fetchone()
    return Change() if row is None else _sealed(row, account)


def changes_from(db: sqlite3.Connection, account: str, seq: int) -> list[Change]:
    return [_sealed(row, account) for row in db.execute(schema.CHANGES_FROM, (seq,))]


def note(db: sqlite3.Connection, account: str, change: Change) -> None:
    """Write down a transaction, and forget those that nobody needs to be told of any more."""
    is_much = len(change.gone) > MUCH
    db.execute(schema.DROP_CHANGES, (change.seq - (1 if is_much else KEPT),))
    values = (change.seq, change.token, change.rows, change.cursor, change.gone)
    db.execute(schema.ADD_CHANGE, (*values, change.seal(account)))


def _sealed(row: tuple[Any, ...], account: str) -> Change:
    *values, seal = row
    change = Change(*values)
    if change.seal(account) != seal:
        raise DamageError(
            f"the index of account {account[:80]!a} is damaged: its log is not what was written "
            "for it. Fix: `perdure index rebuild` makes it again."
        )
    return change


class Names:
    """The numbers that stand for texts, as of one transaction. What was asked for is remembered."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[str, int | None] = {}

    def find(self, value: str) -> int | None:
        """Return the number of a text; None if no record ever said it."""
        if value not in self._known:
            row = self._db.execute(schema.NAME_OF, (crc32(value.encode()), value)).fetchone()
            self._known[value] = None if row is None else int(row[0])
        return self._known[value]

    def find_all(self, values: Collection[str]) -> frozenset[int]:
        """Return the numbers of those texts that some record ever said."""
        known = self._known
        asked = [each for each in dict.fromkeys(values) if each not in known]
        if len(asked) > _FEW_NAMES:
            known |= dict.fromkeys(asked)
            sums = json.dumps([crc32(each.encode()) for each in asked])
            found = self._db.execute(schema.NAMES_OF, (sums, json.dumps(asked)))
            known |= {value: number for number, value in found}
        numbers = [known[each] if each in known else self.find(each) for each in values]
        return frozenset([number for number in numbers if number is not None])

    def give(self, values: Collection[str]) -> None:
        """See to it that each of these texts has a number."""
        self.find_all(values)
        known = self._known
        if new := [each for each in dict.fromkeys(values) if known[each] is None]:
            (last,) = self._db.execute(schema.LAST_NAME).fetchone()
            known |= {value: number for number, value in enumerate(new, (last or 0) + 1)}
            rows = [(known[value], crc32(value.encode()), value) for value in new]
            self._db.executemany(schema.ADD_NAME, rows)

    def numbers(self, values: Iterable[str | None]) -> list[int]:
        """Return the numbers of texts that were given one; 0 for none."""
        known = self._known
        return [0 if each is None else known[each] or 0 for each in values]


class Prepared(NamedTuple):
    """A record, and all of its rows that can be made without looking into the file."""

    record: IndexRecord
    names: Sequence[str | None]
    """Its URI, below which place it is, and what else it is filed under."""
    times: tuple[int, int]
    text: Row
    vector: bytes


def prepare(record: IndexRecord) -> Prepared:
    """Understand a record; `InvalidValueError` if it can't be put."""
    id_, text, context, filters = record.id, record.text, record.context, record.filters
    vector = quantised(record.vector)
    digest = digest_of((id_, int(record.level), text, context, filters, record.payload), vector)
    since, until = filters.get(VALID_FROM), filters.get(VALID_UNTIL)
    told = _encoded(record.payload)
    payload = told if NOTED in record.payload else schema.packed(told, text)
    said = (_kept_id(id_, record.uri), text, context, payload, since, until, digest)
    filed, below = filing(record), above(record.uri, record.level)
    names = (record.uri, below or None, *map(filed.texts.get, NAMED))
    return Prepared(record, names, (filed.since, filed.until), said, vector)


def _kept_id(id_: str, uri: str) -> str:
    rest = id_.removeprefix(uri)
    return rest if rest != id_ and rest.startswith("#") else f"={id_}"


def rows_of(
    db: sqlite3.Connection, names: Names, ids: Iterable[str], without: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return the rows with these ids, each with the number of its URI; some URIs have none."""
    every = list(ids)
    parts = (id_.rpartition("#") for id_ in every)
    wanted = {(names.find(uri), f"#{rest}") for uri, _, rest in parts}
    uris = [uri for uri in {uri for uri, _ in wanted} if uri is not None and uri not in without]
    found = db.execute(schema.IDS_OF_URIS, (json.dumps(uris),)).fetchall() if uris else []
    rows = [(row, uri) for row, uri, id_ in found if (uri, id_) in wanted]
    others = json.dumps([f"={id_}" for id_ in every])
    return [*rows, *db.execute(schema.ROWS_OF_OTHERS, (others,)).fetchall()]


def add(db: sqlite3.Connection, names: Names, records: Iterable[Prepared], first: int) -> None:
    fresh = list(enumerate(records, first))
    names.give([text for _, each in fresh for text in each.names if text is not None])
    filed = [
        (row, int(each.record.level), *names.numbers(each.names), *each.times)
        for row, each in fresh
    ]
    db.executemany(schema.ADD_RECORD, filed)
    db.executemany(schema.ADD_TEXT, [(row, *each.text) for row, each in fresh])
    db.executemany(schema.ADD_VECTOR, [(row, each.vector) for row, each in fresh if each.vector])
    notes = [(row, each.record.payload) for row, each in fresh if NOTED in each.record.payload]
    db.executemany(schema.ADD_NOTE, [(row, *noted_in(payload)) for row, payload in notes])
    notes += [(row, each.record.payload) for row, each in fresh if LINKS in each.record.payload]
    named = [(*each, row) for row, payload in notes for each in named_in(payload)]
    db.executemany(schema.ADD_NAMED, named)
    for kind, levels in schema.KINDS.items():
        said = [
            (row, each.record.text, each.record.context)
            for row, each in fresh
            if each.record.level in levels
        ]
        db.executemany(schema.ADD_WORDS.format(kind), said)


def noted_in(payload: Mapping[str, JSON]) -> tuple[str, int, str]:
    """Return what is shown unasked is found by: project, whether always, and when."""
    always, updated = payload.get("always"), payload.get("updated_at", "")
    return str(payload[NOTED]), always if isinstance(always, int) else 0, str(updated)


def named_in(payload: Mapping[str, JSON]) -> list[tuple[str, str]]:
    """Return the names that a note or a node with links is found by, each with which it is."""
    noted = [("names", str(payload[NOTED]))] if NOTED in payload else []
    found = ((payload.get(key), kind) for key, kind in (*noted, (LINKS, schema.LINK)))
    lists = ((names, kind) for names, kind in found if isinstance(names, list | tuple))
    return [(name, kind) for names, kind in lists for name in names if isinstance(name, str)]


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
        json.loads(schema.unpacked(payload, text)),
        vector or b"",
        below or "",
        since,
        until,
        digest,
    )


class Payload(Mapping[str, JSON]):
    """What a payload says, read when asked for: that takes as long as all else about a hit."""

    __slots__ = ("_packed", "_said", "_text", "derived")

    def __init__(self, packed: bytes | str, text: str) -> None:
        self._packed = packed
        self._text = text
        self._said: dict[str, JSON] | None = None
        self.derived: object = None
        """What its reader derived from it, and need not derive again."""

    def items(self) -> ItemsView[str, JSON]:
        """Return all that it says, which is not remembered."""
        said = dict(json.loads(schema.unpacked(self._packed, self._text))).items()
        return {name: tuple(v) if type(v) is list else v for name, v in said}.items()

    def __getitem__(self, name: str) -> JSON:
        if self._said is None:
            self._said = dict(self.items())
        return self._said[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())


class KnownRows:
    """Rows that were read before: a row never changes, and its number is never used again.

    All is forgotten where the file does not know of the transaction that was last seen in it.
    """

    def __init__(self) -> None:
        self._seen = Change()
        self._hits: dict[int, SeedHit] = {}
        self._rows: dict[str, int] = {}
        self._names: dict[int, tuple[str, str]] = {}

    def follow(self, db: sqlite3.Connection, last: Change) -> None:
        """Forget what may not be so any more; whoever asks has done this first."""
        if not last.is_same(self._seen):
            seen, self._seen = self._seen, last
            if db.execute(schema.CHANGE_AT, (seen.seq,)).fetchone() != (seen.token,):
                self._clear()
        if max(len(self._hits), len(self._names)) > _MOST_KNOWN:
            self._clear()

    def hits(self, db: sqlite3.Connection, scored: Scored) -> list[SeedHit]:
        """Return hits for rows and their scores, the best first, equal ones by their ids."""
        known = self._hits
        if missing := [row for row, _ in scored if row not in known]:
            self._add(db.execute(schema.HITS, {"rows": json.dumps(missing)}))
        best = sorted([(-score, known[row].id, row) for row, score in scored])
        return [known[row].scored(-score) for score, _, row in best]

    def matches(self, db: sqlite3.Connection, scored: Scored) -> dict[str, float]:
        """Return the URIs of rows, each with its best score, in the order of `hits`."""
        names = self._names
        if missing := [row for row, _ in scored if row not in names]:
            found = db.execute(schema.URIS, {"rows": json.dumps(missing)})
            names |= {row: (id_, uri) for row, id_, uri in found}
        best = dict[str, float]()
        for score, (_, uri) in sorted([(-score, names[row]) for row, score in scored]):
            best.setdefault(uri, -score)
        return best

    def look(self, db: sqlite3.Connection, ids: Sequence[str], condition: str) -> list[SeedHit]:
        """Return the records with these ids to which a condition applies, by id."""
        known, rows = self._hits, self._rows
        asked = json.dumps([rows[id_] for id_ in ids if id_ in rows])
        there = db.execute(schema.THERE.format(condition), {"rows": asked})
        found = {hit.id: hit for hit in [known[row] for (row,) in there]}
        if missing := [id_ for id_ in ids if id_ not in found]:
            asked = json.dumps([row for row, _ in rows_of(db, Names(db), missing)])
            more = db.execute(schema.LOOK.format(condition), {"rows": asked})
            found |= {hit.id: hit for hit in self._add(more)}
        return [found[id_] for id_ in sorted(found)]

    def _add(self, rows: Iterable[Row]) -> list[SeedHit]:
        found = [(row[0], hit_of(row)) for row in rows]
        self._hits |= dict(found)
        self._rows |= {hit.id: row for row, hit in found}
        return [hit for _, hit in found]

    def _clear(self) -> None:
        for each in (self._hits, self._rows, self._names):
            each.clear()


def hit_of(row: Row) -> SeedHit:
    """Make a hit without a score of a row of `schema.HITS`."""
    _, id_, uri, level, text, payload = row
    return SeedHit.of_record(id_, uri, _LEVELS[level], text, Payload(payload, text))


def best(db: sqlite3.Connection, scored: Scored, most: int) -> Scored:
    """Return the best, of equal ones the first by id; `scored` has all equal to its last."""
    if len(scored) <= most:
        return scored
    least = sorted(score for _, score in scored)[-most]
    better = [each for each in scored if each[1] > least]
    equal = [row for row, score in scored if score == least]
    asked = {"rows": json.dumps(equal), "most": most - len(better)}
    return [*better, *((row, least) for row, *_ in db.execute(schema.FIRST_BY_ID, asked))]


class Wanted(NamedTuple):
    """Which numbers each column of a row may have. No times let all through."""

    numbers: Mapping[str, frozenset[int]]
    times: frozenset[tuple[int, int]] | None = None

    def among(self, levels: tuple[int, ...]) -> "Wanted":
        """Return the same, to be asked of records of these levels."""
        wanted = self.numbers.get(LEVEL)
        if wanted is None or not wanted.issuperset(levels):
            return self
        less = {name: each for name, each in self.numbers.items() if name != LEVEL}
        return Wanted(less, self.times)

    @property
    def condition(self) -> str:
        """The same in SQL, on `records`; empty if all are let through."""
        parts = [
            f"{column} IN ({', '.join(map(str, sorted(each)))})"
            for column, each in self.numbers.items()
        ]
        if self.times is not None:
            held = [f"(since <= {last} AND {first} < until)" for first, last in sorted(self.times)]
            parts.append(f"({' OR '.join(held) or 0}) AND since < until")
        return " AND ".join(parts)


def wanted_in(db: sqlite3.Connection, wanted: Sought, below: str | None = None) -> Wanted:
    """Look the filters up; what no record ever said has no number, and lets nothing through."""
    names = Names(db)
    texts = dict(wanted.texts) | ({} if below is None else {BELOW: frozenset({below})})
    numbers = {column: names.find_all(values) for column, values in texts.items()}
    if set(owners(db, len(numbers[OWNER_SPACE]))) <= numbers[OWNER_SPACE]:
        del numbers[OWNER_SPACE]  # nobody is left out
    if wanted.levels is not None:
        numbers[LEVEL] = wanted.levels
    return Wanted(numbers, wanted.times)


def owners(db: sqlite3.Connection, most: int | None = None) -> Iterator[int]:
    """Return the numbers of those who have records; of many, one more than is asked for."""
    owner, count = 0, 0
    while most is None or count <= most:
        ((owner,),) = db.execute(schema.OWNER_AFTER, (owner,))
        if owner is None:
            return
        yield owner
        count += 1
