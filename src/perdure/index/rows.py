"""The rows of an account's tables: written from records, read back, filtered, cached, logged."""

import json
import os
import sqlite3
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

from perdure.errors import DamageError
from perdure.index import sql
from perdure.index.filters import (
    LEVEL,
    TEXT_FILTERS,
    ParsedFilters,
    digest_of,
    parent_uri,
    parse_record_filters,
    stamp_of,
    validity,
)
from perdure.index.vectors import components, quantise
from perdure.model import IndexRecord, Level, SeedHit
from perdure.model.node import ACCOUNT, LINKS, NOTED, OWNER_SPACE, VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON

RETAINED_CHANGES = 1024
"""Changes that the log retains. A reader that is further behind reads all rows."""
LONG_CHANGE = 100_000
"""A change that removes rows whose numbers take this many characters empties the log."""
BELOW = "below"
_TOKEN_BITS = 62
_LEVELS = {each.value: each for each in Level}
_FEW_NAMES = 4
"""Up to this many names are looked up one by one, which is faster."""
_MAX_CACHED = 16_384
"""Rows in the cache; with the benchmark's messages, 14 MB."""
Row = tuple[Any, ...]
ScoredRows = list[tuple[int, float]]
"""Numbers of rows, each with its score."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


# ---------------------------------------------------------------- the log of changes
class IndexChange(NamedTuple):
    """A transaction. Two with the same number and token are one, with the same history."""

    seq: int = 0
    token: int = 0
    rows: int = 0
    """The number of rows ever added; they are numbered from 1."""
    cursor: int = 0
    gone: str = "[]"
    """The numbers of the rows that it removed, as JSON."""

    def next(self, *, added: int, gone: Sequence[int], cursor: int) -> "IndexChange":
        return IndexChange(
            self.seq + 1,
            int.from_bytes(os.urandom(8)) >> (64 - _TOKEN_BITS),
            self.rows + added,
            cursor,
            json.dumps(gone, separators=(",", ":")),
        )

    def is_same(self, other: "IndexChange") -> bool:
        return (self.seq, self.token) == (other.seq, other.token)

    def seal(self, account: str) -> bytes:
        """Return a digest that differs for another account's file or a flipped bit."""
        return sha256(json.dumps((account, *self)).encode()).digest()[:16]


def last_change(db: sqlite3.Connection, account: str) -> IndexChange:
    """Return the newest change; `DamageError` if it was not written for this account."""
    row = db.execute(sql.LAST_CHANGE).fetchone()
    return IndexChange() if row is None else _checked(row, account)


def changes_from(db: sqlite3.Connection, account: str, seq: int) -> list[IndexChange]:
    return [_checked(row, account) for row in db.execute(sql.CHANGES_FROM, (seq,))]


def _checked(row: Row, account: str) -> IndexChange:
    *values, seal = row
    change = IndexChange(*values)
    if change.seal(account) != seal:
        raise DamageError(
            f"the index of account {account[:80]!a} is damaged: its log is not what was written "
            "for it. Fix: run `perdure index rebuild`."
        )
    return change


# ---------------------------------------------------------------- names
class NameTable:
    """The numbers that stand for texts, as of one transaction; lookups are cached."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._cached: dict[str, int | None] = {}

    def find(self, value: str) -> int | None:
        """Return the number of a text; None if no record ever used it."""
        if value not in self._cached:
            row = self._db.execute(sql.NAME_OF, (crc32(value.encode()), value)).fetchone()
            self._cached[value] = None if row is None else int(row[0])
        return self._cached[value]

    def find_all(self, values: Collection[str]) -> frozenset[int]:
        """Return the numbers of those texts that a record ever used."""
        cached = self._cached
        missing = [each for each in dict.fromkeys(values) if each not in cached]
        if len(missing) > _FEW_NAMES:
            cached |= dict.fromkeys(missing)
            sums = json.dumps([crc32(each.encode()) for each in missing])
            found = self._db.execute(sql.NAMES_OF, (sums, json.dumps(missing)))
            cached |= {value: number for number, value in found}
        numbers = [cached[each] if each in cached else self.find(each) for each in values]
        return frozenset([number for number in numbers if number is not None])

    def add_all(self, values: Collection[str]) -> None:
        """Give a number to each text that has none."""
        self.find_all(values)
        cached = self._cached
        if new := [each for each in dict.fromkeys(values) if cached[each] is None]:
            (last,) = self._db.execute(sql.LAST_NAME).fetchone()
            cached |= {value: number for number, value in enumerate(new, (last or 0) + 1)}
            rows = [(cached[value], crc32(value.encode()), value) for value in new]
            self._db.executemany(sql.ADD_NAME, rows)

    def numbers(self, values: Iterable[str | None]) -> list[int]:
        """Return the numbers of texts that `add_all` has seen; 0 for None."""
        cached = self._cached
        return [0 if each is None else cached[each] or 0 for each in values]


# ---------------------------------------------------------------- from records to rows
class NewRow(NamedTuple):
    """A record with all columns that can be computed without the database."""

    record: IndexRecord
    names: Sequence[str | None]
    """Its URI, its parent, and the other filters that are texts."""
    times: tuple[int, int]
    text: Row
    vector: bytes


def prepare(record: IndexRecord) -> NewRow:
    """Compute the columns of a record; `InvalidValueError` if it can't be indexed."""
    id_, text, context, filters = record.id, record.text, record.context, record.filters
    vector = quantise(record.vector)
    digest = digest_of((id_, int(record.level), text, context, filters, record.payload), vector)
    since, until = filters.get(VALID_FROM), filters.get(VALID_UNTIL)
    plain = _encoded(record.payload)
    payload = plain if NOTED in record.payload else sql.pack_payload(plain, text)
    columns = (_short_id(id_, record.uri), text, context, payload, since, until, digest)
    filed, below = parse_record_filters(record), parent_uri(record.uri, record.level)
    names = (record.uri, below or None, *map(filed.texts.get, TEXT_FILTERS))
    return NewRow(record, names, (filed.since, filed.until), columns, vector)


def _short_id(id_: str, uri: str) -> str:
    rest = id_.removeprefix(uri)
    return rest if rest != id_ and rest.startswith("#") else f"={id_}"


def rows_of(
    db: sqlite3.Connection, names: NameTable, ids: Iterable[str], without: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return the rows with these ids, each with the number of its URI.

    `without` names URIs that have no rows.
    """
    every = list(ids)
    split = (id_.rpartition("#") for id_ in every)
    wanted = {(names.find(uri), f"#{rest}") for uri, _, rest in split}
    uris = [uri for uri in {uri for uri, _ in wanted} if uri is not None and uri not in without]
    found = db.execute(sql.IDS_OF_URIS, (json.dumps(uris),)).fetchall() if uris else []
    rows = [(row, uri) for row, uri, id_ in found if (uri, id_) in wanted]
    others = json.dumps([f"={id_}" for id_ in every])
    return [*rows, *db.execute(sql.ROWS_OF_OTHERS, (others,)).fetchall()]


def note_row(payload: Mapping[str, JSON]) -> tuple[str, int, str]:
    """Return the columns of `notes`: project, whether it is always shown, and when it changed."""
    always, updated = payload.get("always"), payload.get("updated_at", "")
    return str(payload[NOTED]), always if isinstance(always, int) else 0, str(updated)


def name_rows(payload: Mapping[str, JSON]) -> list[tuple[str, str]]:
    """Return what `named` has of a record: names with its project, links with `schema.LINK`."""
    noted = [("names", str(payload[NOTED]))] if NOTED in payload else []
    found = ((payload.get(key), kind) for key, kind in (*noted, (LINKS, sql.LINK)))
    lists = ((names, kind) for names, kind in found if isinstance(names, list | tuple))
    return [(name, kind) for names, kind in lists for name in names if isinstance(name, str)]


class IndexEdit:
    """Rows that one transaction removes and adds; `finish` updates stamps and log.

    The caller opens the transaction.
    """

    def __init__(self, db: sqlite3.Connection, account: str) -> None:
        self._db = db
        self._account = account
        self._names = NameTable(db)
        self._last = last_change(db, account)
        self._added = 0
        self._gone: list[int] = []
        self._touched: set[int] = set()
        self._removed: set[int] = set()
        """URIs without any row left."""

    @property
    def cursor(self) -> int:
        return self._last.cursor

    def remove_ids(self, ids: Iterable[str]) -> None:
        self._remove(rows_of(self._db, self._names, ids))

    def remove_uris(self, uris: Iterable[str]) -> None:
        known = self._names.find_all(list(uris))
        self._removed |= known
        self._remove(self._db.execute(sql.ROWS_OF_URIS, (json.dumps([*known]),)).fetchall())

    def remove_owner(self, owner_space: str) -> int:
        name = self._names.find(owner_space)
        rows = self._db.execute(sql.ROWS_OF_OWNER, (name,)).fetchall()
        self._remove(rows)
        return len(rows)

    def mark(self, uris: Iterable[str], unlogged: Collection[str]) -> None:
        """Mark some of these URIs as differing from the log, and no others of them."""
        if self._db.execute(sql.ANY_UNLOGGED).fetchone():
            known = [(name,) for name in self._names.find_all(list(uris))]
            self._db.executemany(sql.DROP_UNLOGGED, known)
        if unlogged:
            self._names.add_all(unlogged)
            marked = [(name,) for name in self._names.numbers(unlogged)]
            self._db.executemany(sql.MARK_UNLOGGED, marked)

    def add(self, records: Iterable[NewRow]) -> None:
        """Add records, replacing those with the same ids; of one id the last is used."""
        by_id = {each.record.id: each for each in records}
        self._remove(rows_of(self._db, self._names, by_id, self._removed))
        self._insert(list(enumerate(by_id.values(), self._last.rows + self._added + 1)))
        self._added += len(by_id)
        uris = set(self._names.numbers(each.record.uri for each in by_id.values()))
        self._touched |= uris
        self._removed -= uris

    def _insert(self, fresh: list[tuple[int, NewRow]]) -> None:
        db, names = self._db, self._names
        names.add_all([text for _, each in fresh for text in each.names if text is not None])
        filed = [
            (row, int(each.record.level), *names.numbers(each.names), *each.times)
            for row, each in fresh
        ]
        db.executemany(sql.ADD_RECORD, filed)
        db.executemany(sql.ADD_TEXT, [(row, *each.text) for row, each in fresh])
        vectors = [(row, each.vector) for row, each in fresh if each.vector]
        db.executemany(sql.ADD_VECTOR, vectors)
        notes = [(row, each.record.payload) for row, each in fresh if NOTED in each.record.payload]
        db.executemany(sql.ADD_NOTE, [(row, *note_row(payload)) for row, payload in notes])
        notes += [(row, each.record.payload) for row, each in fresh if LINKS in each.record.payload]
        named = [(*each, row) for row, payload in notes for each in name_rows(payload)]
        db.executemany(sql.ADD_NAMED, named)
        for kind, levels in sql.KINDS.items():
            of_kind = [(row, each.record) for row, each in fresh if each.record.level in levels]
            texts = [(row, record.text, record.context) for row, record in of_kind]
            db.executemany(sql.ADD_WORDS.format(kind), texts)

    def finish(self, cursor: int | None = None) -> None:
        """Update the stamps of what changed, and append the change to the log."""
        cursor = self._last.cursor if cursor is None else cursor
        if not self._touched and cursor == self._last.cursor:
            return
        digests: dict[int, dict[str, bytes]] = {uri: {} for uri in self._touched}
        uris = (json.dumps(list(digests)),)
        for uri, id_, digest in self._db.execute(sql.DIGESTS_OF_URIS, uris):
            digests[uri][id_] = digest
        stamps = [(uri, bytes.fromhex(stamp_of(found))) for uri, found in digests.items() if found]
        self._db.executemany(sql.PUT_STAMP, stamps)
        gone = [(uri,) for uri, found in digests.items() if not found]
        self._db.executemany(sql.DROP_STAMP, gone)
        change = self._last.next(added=self._added, gone=self._gone, cursor=cursor)
        retained = 1 if len(change.gone) > LONG_CHANGE else RETAINED_CHANGES
        self._db.execute(sql.DROP_CHANGES, (change.seq - retained,))
        self._db.execute(sql.ADD_CHANGE, (*change, change.seal(self._account)))

    def _remove(self, rows: list[tuple[int, int]]) -> None:
        if not rows:
            return
        numbers = {"rows": json.dumps([row for row, _ in rows])}
        for statement in sql.REMOVE:
            self._db.execute(statement, numbers)
        self._gone += [row for row, _ in rows]
        self._touched |= {uri for _, uri in rows}


# ---------------------------------------------------------------- from rows to records
class StoredRecord(NamedTuple):
    """All columns of a record, unchecked."""

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
            vector=components(self.vector),
            filters=self.filters,
            payload=self.payload,
        )

    @property
    def is_consistent(self) -> bool:
        """Whether the digest and the derived columns match the others."""
        fields = (self.id, self.level, self.text, self.context, self.filters, self.payload)
        return (
            digest_of(fields, self.vector) == self.digest
            and parent_uri(self.uri, Level(self.level)) == self.below
            and validity(self.filters) == (self.since, self.until)
        )


def read_record(account: str, row: Row) -> StoredRecord:
    _, id_, text, context, payload, valid_from, valid_until, digest, level, *rest = row
    uri, below, *named, since, until, vector = rest
    filters = {ACCOUNT: account, **dict(zip(TEXT_FILTERS, named, strict=True))}
    filters |= {VALID_FROM: valid_from, VALID_UNTIL: valid_until}
    return StoredRecord(
        id_,
        uri,
        level,
        text,
        context,
        {name: value for name, value in filters.items() if value is not None},
        json.loads(sql.unpack_payload(payload, text)),
        vector or b"",
        below or "",
        since,
        until,
        digest,
    )


class LazyPayload(Mapping[str, JSON]):
    """A payload that is parsed on access: parsing takes as long as all else about a hit."""

    __slots__ = ("_packed", "_parsed", "_text", "derived")

    def __init__(self, packed: bytes | str, text: str) -> None:
        self._packed = packed
        self._text = text
        self._parsed: dict[str, JSON] | None = None
        self.derived: object = None
        """What its reader computed from it and stores here."""

    def items(self) -> ItemsView[str, JSON]:
        """Parse and return all items; nothing is cached."""
        parsed = dict(json.loads(sql.unpack_payload(self._packed, self._text))).items()
        return {name: tuple(v) if type(v) is list else v for name, v in parsed}.items()

    def __getitem__(self, name: str) -> JSON:
        if self._parsed is None:
            self._parsed = dict(self.items())
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())


class RowCache:
    """Hits of rows that were read before: a row never changes, and no number is used twice.

    The cache is emptied if the file does not have the change that was last seen in it.
    """

    def __init__(self) -> None:
        self._seen = IndexChange()
        self._hits: dict[int, SeedHit] = {}
        self._rows: dict[str, int] = {}
        self._names: dict[int, tuple[str, str]] = {}

    def follow(self, db: sqlite3.Connection, last: IndexChange) -> None:
        """Drop what may be outdated; each caller does this first."""
        if not last.is_same(self._seen):
            seen, self._seen = self._seen, last
            if db.execute(sql.CHANGE_AT, (seen.seq,)).fetchone() != (seen.token,):
                self._clear()
        if max(len(self._hits), len(self._names)) > _MAX_CACHED:
            self._clear()

    def hits(self, db: sqlite3.Connection, scored: ScoredRows) -> list[SeedHit]:
        """Return the hits of scored rows, best first, equal scores by id."""
        cached = self._hits
        if missing := [row for row, _ in scored if row not in cached]:
            self._add(db.execute(sql.HITS, {"rows": json.dumps(missing)}))
        ordered = sorted([(-score, cached[row].id, row) for row, score in scored])
        return [cached[row].scored(-score) for score, _, row in ordered]

    def matches(self, db: sqlite3.Connection, scored: ScoredRows) -> dict[str, float]:
        """Return the URIs of scored rows, each with its best score, in the order of `hits`."""
        names = self._names
        if missing := [row for row, _ in scored if row not in names]:
            found = db.execute(sql.URIS, {"rows": json.dumps(missing)})
            names |= {row: (id_, uri) for row, id_, uri in found}
        best = dict[str, float]()
        for score, (_, uri) in sorted([(-score, names[row]) for row, score in scored]):
            best.setdefault(uri, -score)
        return best

    def by_id(self, db: sqlite3.Connection, ids: Sequence[str], condition: str) -> list[SeedHit]:
        """Return the hits with these ids that meet an SQL condition, by id."""
        cached, rows = self._hits, self._rows
        numbers = json.dumps([rows[id_] for id_ in ids if id_ in rows])
        present = db.execute(sql.ROWS_MATCHING.format(condition), {"rows": numbers})
        found = {hit.id: hit for hit in [cached[row] for (row,) in present]}
        if missing := [id_ for id_ in ids if id_ not in found]:
            numbers = json.dumps([row for row, _ in rows_of(db, NameTable(db), missing)])
            more = db.execute(sql.HITS_MATCHING.format(condition), {"rows": numbers})
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
    """Return the hit of a row of `schema.HITS`, without a score."""
    _, id_, uri, level, text, payload = row
    return SeedHit.of_record(id_, uri, _LEVELS[level], text, LazyPayload(payload, text))


def best_rows(db: sqlite3.Connection, scored: ScoredRows, limit: int) -> ScoredRows:
    """Return the best rows, equal scores by id; `scored` has all rows that equal its last."""
    if len(scored) <= limit:
        return scored
    least = sorted(score for _, score in scored)[-limit]
    better = [each for each in scored if each[1] > least]
    equal = [row for row, score in scored if score == least]
    values = {"rows": json.dumps(equal), "most": limit - len(better)}
    return [*better, *((row, least) for row, *_ in db.execute(sql.FIRST_BY_ID, values))]


# ---------------------------------------------------------------- filters
class RowFilter(NamedTuple):
    """The numbers that each column of a row may have, and times of which one must be valid."""

    numbers: Mapping[str, frozenset[int]]
    times: frozenset[tuple[int, int]] | None = None
    """None admits every time."""

    def among(self, levels: tuple[int, ...]) -> "RowFilter":
        """Return the same filter for rows that all have these levels."""
        wanted = self.numbers.get(LEVEL)
        if wanted is None or not wanted.issuperset(levels):
            return self
        less = {name: each for name, each in self.numbers.items() if name != LEVEL}
        return RowFilter(less, self.times)

    @property
    def condition(self) -> str:
        """The filter as SQL on `records`; empty if it admits all rows."""
        terms = [
            f"{column} IN ({', '.join(map(str, sorted(each)))})"
            for column, each in self.numbers.items()
        ]
        if self.times is not None:
            valid = [f"(since <= {last} AND {first} < until)" for first, last in sorted(self.times)]
            terms.append(f"({' OR '.join(valid) or 0}) AND since < until")
        return " AND ".join(terms)


def row_filter(
    db: sqlite3.Connection, wanted: ParsedFilters, below: str | None = None
) -> RowFilter:
    """Look up the numbers of filters; a text that no record ever used admits nothing."""
    names = NameTable(db)
    texts = dict(wanted.texts) | ({} if below is None else {BELOW: frozenset({below})})
    numbers = {column: names.find_all(values) for column, values in texts.items()}
    if set(owners(db, len(numbers[OWNER_SPACE]))) <= numbers[OWNER_SPACE]:
        del numbers[OWNER_SPACE]  # it excludes nobody
    if wanted.levels is not None:
        numbers[LEVEL] = wanted.levels
    return RowFilter(numbers, wanted.times)


def owners(db: sqlite3.Connection, limit: int | None = None) -> Iterator[int]:
    """Yield the numbers of owner spaces with records; at most one more than `limit`."""
    owner, count = 0, 0
    while limit is None or count <= limit:
        ((owner,),) = db.execute(sql.OWNER_AFTER, (owner,))
        if owner is None:
            return
        yield owner
        count += 1
