"""An index in SQLite files, one for each account, for any number of threads and processes."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Self, TypeVar

from perdure.errors import DamageError, PackageMissingError
from perdure.files import Closeable, Quarantine
from perdure.index import sql
from perdure.index.accounts import (
    LOCK_SUFFIX,
    AccountDatabase,
    AccountDatabases,
    MemoryDatabases,
    build_lock,
    damaged_uris,
    duplicate,
    publish,
    remove_copies,
    remove_stale_lock,
)
from perdure.index.contract import Filters, check_weight, check_words
from perdure.index.filters import (
    LEVEL,
    URI,
    ParsedFilters,
    check_cursor,
    check_nodes,
    check_unlogged,
    parse_filters,
)
from perdure.index.rows import (
    IndexChange,
    IndexEdit,
    NameTable,
    NewRow,
    RowCache,
    RowFilter,
    ScoredRows,
    best_rows,
    hit_of,
    last_change,
    owners,
    prepare,
    read_record,
    row_filter,
    rows_of,
)
from perdure.index.sql import idf, match_expression, stems
from perdure.index.vectors import quantise
from perdure.model import IndexRecord, SeedHit, Uri, check_owner_space
from perdure.model.node import ACCOUNT
from perdure.model.uri import check_id
from perdure.model.values import count
from perdure.sqlite import InMemoryDatabase, SqliteFile, UnsyncedDatabase

_EXTRA = 256
"""Rows that are fetched beyond the limit, because the last of them may have equal scores."""
_MAX_LIMIT = 2**31

Answer = TypeVar("Answer")


class Snapshot(NamedTuple):
    """A read transaction on an account's database."""

    database: AccountDatabase
    db: sqlite3.Connection
    last: IndexChange


class SqliteIndex(Closeable):
    """A `NodeIndex` on disk.

    A power cut may undo the newest changes, each with its cursor, so that they are made again from
    the log; deletions of an account or an owner are durable. A change that affects several accounts
    is atomic in each of them.
    """

    def __init__(
        self, folder: str, quarantine: Quarantine | None = None, kind: type[SqliteFile] = SqliteFile
    ) -> None:
        self._databases = AccountDatabases(folder, quarantine=quarantine, kind=kind)
        self._copies_vectors = kind is SqliteFile
        self._thread = threading.local()
        """Its `snapshot` is the one that the queries of a thread read, within `read_snapshot`."""

    @classmethod
    def in_memory(cls) -> Self:
        """Return an empty index that touches no disk and ends with `close`."""
        index = cls(os.devnull, kind=InMemoryDatabase)
        index._databases = MemoryDatabases()
        return index

    def close(self) -> None:
        """Close all files; after this, every other method raises `ClosedError`."""
        self._databases.close()

    # ------------------------------------------------------------ changes
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        by_account: dict[str, list[NewRow]] = {}
        for record in records:
            by_account.setdefault(str(record.filters[ACCOUNT]), []).append(prepare(record))
        for account, rows in by_account.items():
            self._edit(account, partial(IndexEdit.add, records=rows))

    def delete(self, ids: Sequence[str]) -> None:
        gone = list(ids)
        for account in self._databases.accounts() if gone else ():
            self._edit(account, lambda edit: edit.remove_ids(gone))

    def replace(
        self,
        account_id: str,
        nodes: Mapping[str, Sequence[IndexRecord]],
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        account = check_id(account_id, "account")
        check_unlogged(unlogged, nodes)
        rows = [prepare(record) for record in check_nodes(account, nodes)]
        if cursor is not None:
            count(cursor, "cursor")

        def put(edit: IndexEdit) -> None:
            check_cursor(edit.cursor, expect)
            edit.remove_uris(nodes)
            edit.add(rows)
            edit.mark(nodes, unlogged)

        self._edit(account, put, cursor)

    def _edit(
        self, account: str, action: Callable[[IndexEdit], object], cursor: int | None = None
    ) -> None:
        def change(database: AccountDatabase) -> None:
            with database.changing(outlasts_power=False) as db:
                edit = IndexEdit(db, account)
                action(edit)
                edit.finish(cursor)

        self._databases.use(account, change)

    # ------------------------------------------------------------ events
    def read_events(
        self, account_id: str, question: Callable[[sqlite3.Connection], Answer], absent: Answer
    ) -> Answer:
        return self._ask(account_id, lambda at: question(at.db), absent)

    def change_events(
        self,
        account_id: str,
        action: Callable[[sqlite3.Connection], Answer],
        *,
        outlasts_power: bool = False,
    ) -> Answer:
        def change(database: AccountDatabase) -> Answer:
            with database.changing(outlasts_power=outlasts_power) as db:
                return action(db)

        return self._databases.use(check_id(account_id, "account"), change)

    def wipe_events(self, account_id: str) -> None:
        self._databases.ask(check_id(account_id, "account"), AccountDatabase.wipe, None)

    def build_lock(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Hold the lock for building an account's index; yields whether it is held."""
        self._databases.clear_folder()
        return build_lock(self._lock_of(check_id(account_id, "account")), wait=wait)

    def _lock_of(self, account: str) -> Path:
        return self._databases.path_of(account).with_suffix(LOCK_SUFFIX)

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        """Delete an account's records, and leave no byte of them in a file.

        The file is removed, unless another process has it open; then it stays, empty. A file that
        is too damaged to be emptied is removed in any case, and counts as 0 records.
        """
        account = check_id(account_id, "account")
        try:
            return self._databases.ask(account, _delete_account, 0)
        except DamageError:
            self._databases.discard(account)
            return 0
        finally:
            remove_copies(self._databases.path_of(account))
            remove_stale_lock(self._lock_of(account))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Delete an owner's records; no byte of them, or deleted earlier, is left in a file."""
        account, owner = check_id(account_id, "account"), check_owner_space(owner_space)
        return self._databases.ask(account, lambda database: _delete_owner(database, owner), 0)

    def scrub(self, account_id: str) -> None:
        """Leave no byte of deleted records in a file."""
        self._databases.ask(check_id(account_id, "account"), _scrub, None)

    # ------------------------------------------------------------ duplicates
    def duplicate(self, account_id: str, folder: str) -> "SqliteIndex":
        """Return an index in another folder with a copy of an account's records.

        It is not durable until an index adopts it.
        """
        account = check_id(account_id, "account")
        other = SqliteIndex(folder, kind=UnsyncedDatabase)
        target = other.path_of(account)
        self._databases.ask(account, lambda database: duplicate(database, target), None)
        return other

    def adopt(self, account_id: str, other: "SqliteIndex") -> bool:
        """Take over an account's file from a closed index; False if this index has one."""
        account = check_id(account_id, "account")
        return publish(other.path_of(account), self.path_of(account))

    def path_of(self, account_id: str) -> Path:
        return self._databases.path_of(account_id)

    # ------------------------------------------------------------ searches
    def search_by_vector(
        self, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        return self._nearest(query_vector, parse_filters(filters), top_k, None)

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        parent = str(Uri.parse(parent_uri))
        return self._nearest(query_vector, parse_filters(filters), top_k, parent)

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> list[SeedHit]:
        return (
            self._by_words(words, filters, top_k, check_weight(context_weight), RowCache.hits) or []
        )

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        return self._by_words(words, filters, top_k, 1.0, RowCache.matches) or {}

    def _by_words(
        self,
        words: Sequence[str],
        filters: Filters,
        top_k: int,
        weight: float,
        convert: Callable[[RowCache, sqlite3.Connection, ScoredRows], Answer],
    ) -> Answer | None:
        """Return the best rows by words, converted; None without words, hits or a database."""
        wanted, limit = parse_filters(filters), count(top_k, "number of hits")
        expression = match_expression(check_words(words))
        if not expression or not limit:
            return None

        def find(at: Snapshot) -> Answer | None:
            values = {"words": expression, "weight": weight}
            at.database.row_cache.follow(at.db, at.last)
            scored = _best_by_words(at.db, values, row_filter(at.db, wanted), limit)
            return convert(at.database.row_cache, at.db, scored)

        return self._ask(wanted.account, find, None)

    def _nearest(
        self, query_vector: Sequence[float], wanted: ParsedFilters, top_k: int, parent: str | None
    ) -> list[SeedHit]:
        query, limit = quantise(query_vector), count(top_k, "number of hits")
        if not query or not limit:
            return []
        matrix = _matrix()

        def find(database: AccountDatabase) -> list[SeedHit]:
            with database.reading() as db:
                admitted = row_filter(db, wanted, parent)
                scored = matrix.nearest_rows(database, db, query, admitted, limit)
                database.row_cache.follow(db, last_change(db, database.account))
                found = database.row_cache.hits(db, scored)
            if self._copies_vectors:
                matrix.update_copy(database, len(query))
            return found

        return self._databases.ask(wanted.account, find, [])

    # ------------------------------------------------------------ reading
    def _ask(
        self, account_id: str, question: Callable[[Snapshot], Answer], absent: Answer
    ) -> Answer:
        """Query an account's database in the snapshot of this thread, or in a new one."""
        snapshot: Snapshot | None = getattr(self._thread, "snapshot", None)
        if snapshot is not None and snapshot.database.account == account_id:
            with snapshot.database.damage_detected():
                return question(snapshot)

        def answer(database: AccountDatabase) -> Answer:
            with database.reading() as db:
                return question(Snapshot(database, db, last_change(db, database.account)))

        return self._databases.ask(check_id(account_id, "account"), answer, absent)

    def read_snapshot(self, account_id: str, question: Callable[[], Answer]) -> Answer:
        def answer(database: AccountDatabase) -> list[Answer]:
            with database.snapshot() as db:
                last = last_change(db, database.account)
                self._thread.snapshot = Snapshot(database, db, last)
                try:
                    return [question()]
                finally:
                    self._thread.snapshot = None

        if getattr(self._thread, "snapshot", None) is not None:
            return question()
        none: list[Answer] = []
        found = self._databases.ask(check_id(account_id, "account"), answer, none)
        return found[0] if found else question()

    def cursor(self, account_id: str) -> int:
        return self._ask(account_id, lambda at: at.last.cursor, 0)

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        def names(at: Snapshot) -> frozenset[str]:
            found = [at.db.execute(sql.NAME, (owner,)).fetchone() for owner in owners(at.db)]
            return frozenset(value for (value,) in found)

        return self._ask(account_id, names, frozenset())

    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        given = [word for word in check_words(words) if stems(word)]

        def total(at: Snapshot) -> float:
            count = _passages(at)
            hits = [_number(at.db, sql.PASSAGES_WITH, match_expression([word])) for word in given]
            return sum(idf(count, each) for each in hits) if count else 0.0

        return self._ask(account_id, total, 0.0)

    def hits_by_id(self, ids: Sequence[str], filters: Filters) -> list[SeedHit]:
        wanted = parse_filters(filters)

        def find(at: Snapshot) -> list[SeedHit]:
            cache = at.database.row_cache
            cache.follow(at.db, at.last)
            return cache.by_id(at.db, ids, row_filter(at.db, wanted).condition or "1")

        return self._ask(wanted.account, find, [])

    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> list[SeedHit]:
        wanted = parse_filters(filters)
        query = sql.BRIEFING_HITS
        values: dict[str, object] = {"most": top_k}
        if names is not None:
            query = query.replace("{0}", f"{{0}} AND {sql.NAMING}")
            values["names"] = json.dumps(sorted(names))

        def find(at: Snapshot) -> list[SeedHit]:
            condition = row_filter(at.db, wanted).condition or "1"
            return [hit_of(row) for row in at.db.execute(query.format(condition), values)]

        return self._ask(wanted.account, find, [])

    def uris_linking_to(self, account_id: str, names: Collection[str]) -> list[str]:
        def linking(at: Snapshot) -> list[str]:
            # A link that is missed stays broken in the owner's text, so the table is checked first.
            ((found,), *_) = at.db.execute("PRAGMA integrity_check(named)")
            if found != "ok":
                raise at.database.damage(f"SQLite finds {found[:200]!a}")
            return [uri for (uri,) in at.db.execute(sql.LINKING_URIS, (json.dumps(sorted(names)),))]

        return self._ask(account_id, linking, [])

    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        def records(database: AccountDatabase) -> dict[str, IndexRecord]:
            with database.reading() as db:
                rows = json.dumps([row for row, _ in rows_of(db, NameTable(db), ids)])
                found = db.execute(sql.STORED_RECORDS_OF_ROWS, {"rows": rows})
                records = [read_record(database.account, row).record for row in found]
            return {record.id: record for record in records}

        return self._databases.ask(check_id(account_id, "account"), records, {})

    def vectors(self, account_id: str, owner_space: str) -> list[tuple[IndexRecord, bytes]]:
        """Return the records with vectors of an owner space, or of what an account shares."""

        def records(database: AccountDatabase) -> list[tuple[IndexRecord, bytes]]:
            with database.reading() as db:
                owner = NameTable(db).find(owner_space)
                found = db.execute(sql.STORED_RECORDS_OF_OWNER, (owner,))
                stored = [read_record(database.account, row) for row in found]
                return [(each.record, each.vector) for each in stored if each.vector]

        return self._databases.ask(check_id(account_id, "account"), records, [])

    def stamps(self, account_id: str) -> dict[str, str]:
        return self._ask(account_id, lambda at: dict(at.db.execute(sql.STAMPS)), {})

    def folder_stamps(self, account_id: str) -> dict[str, str]:
        """Return the stamps of folders, each of which has an overview."""

        def stamps(at: Snapshot) -> dict[str, str]:
            found = at.db.execute(sql.STAMPS_WITH_OVERVIEW)
            return {uri: stamp for uri, stamp in found if not Uri.parse(uri).is_node}

        return self._ask(account_id, stamps, {})

    def count_uris(self, account_id: str) -> int:
        return self._ask(account_id, lambda at: _number(at.db, sql.COUNT_STAMPS), 0)

    def size(self, account_id: str) -> int:
        return self._databases.size_of(check_id(account_id, "account"))

    def unlogged(self, account_id: str) -> frozenset[str] | None:
        none: dict[int, str] = {}
        marked = self._ask(account_id, lambda at: dict(at.db.execute(sql.UNLOGGED)), none)
        return None if 0 in marked else frozenset(marked.values())

    def is_undisturbed(self, account_id: str) -> bool:
        """Whether all reads so far were consistent, also where the file is not locked."""
        account = check_id(account_id, "account")
        return self._databases.ask(account, lambda each: each.is_undisturbed, absent=True)

    def check(self, account_id: str) -> list[str]:
        """Check an account's file as the contract says; without a file, nothing is damaged."""
        return self._databases.ask(check_id(account_id, "account"), damaged_uris, [])


def _best_by_words(
    db: sqlite3.Connection, values: Mapping[str, object], admitted: RowFilter, limit: int
) -> ScoredRows:
    """Return the admitted rows with one of the words, by BM25 among rows of their level."""
    found: ScoredRows = []
    wanted = admitted.numbers.get(LEVEL)
    for kind, levels in sql.KINDS.items():
        if wanted is None or not wanted.isdisjoint(levels):
            condition = admitted.among(levels).condition
            query = sql.BEST_BY_WORDS_OF if condition else sql.BEST_BY_WORDS
            if URI in admitted.numbers:  # finding the rows of few URIs is faster than all matches
                few = db.execute(sql.ROWS_OF_LEVEL.format(condition), levels[:1])
                query = sql.BEST_BY_WORDS_AMONG
                condition = ", ".join([str(row) for (row,) in few])
                if not condition:
                    continue
            found += _best_of_kind(db, query.format(kind=kind, condition=condition), values, limit)
    return best_rows(db, found, limit) if len(found) > limit else found


def _best_of_kind(
    db: sqlite3.Connection, query: str, values: Mapping[str, object], limit: int
) -> ScoredRows:
    """Return the best rows of one kind, and all whose scores equal the last of them."""
    fetched = min(limit, _MAX_LIMIT) + _EXTRA
    found = db.execute(query, {**values, "most": fetched}).fetchall()
    if len(found) == fetched and found[-1][1] == found[limit - 1][1]:
        found = db.execute(query, {**values, "most": -1}).fetchall()
    return [(row, -score) for row, score in found]


def _passages(at: Snapshot) -> int:
    """Return the number of passages; it is counted once per change."""
    counted_at = at.database.passage_count
    if counted_at is None or not at.last.is_same(counted_at[0]):
        counted_at = at.database.passage_count = at.last, _number(at.db, sql.COUNT_PASSAGES)
    return counted_at[1]


def _number(db: sqlite3.Connection, query: str, *values: str) -> int:
    ((count,),) = db.execute(query, values)
    return int(count)


def _matrix() -> ModuleType:
    try:
        from perdure.index import matrix  # noqa: PLC0415 - numpy is an optional dependency
    except ImportError as error:
        raise PackageMissingError(
            f"vectors can't be searched: {error.name} is not installed. "
            "Fix: pip install '.[vectors]' from a checkout, or search by text."
        ) from error
    return matrix


# ---------------------------------------------------------------- deletion
def _delete_account(database: AccountDatabase) -> int:
    with database.changing() as db:
        count = _number(db, sql.COUNT)
        for statement in sql.REMOVE_ALL:
            db.execute(statement)
    remove_copies(database.path)
    database.wipe()
    database.retire()
    return count


def _delete_owner(database: AccountDatabase, owner_space: str) -> int:
    """Delete an owner's rows, and the log, so that caches of vectors are read again."""
    with database.changing() as db:
        edit = IndexEdit(db, database.account)
        count = edit.remove_owner(owner_space)
        edit.finish()
        for statement in sql.FORGET_UNLOGGED:
            db.execute(statement)
        values = {"account": database.account, "owner": owner_space}
        db.execute(sql.DELETE_EVENTS_OF_OWNER, values)
    _scrub(database)
    return count


def _scrub(database: AccountDatabase) -> None:
    with database.changing() as db:
        db.execute(sql.DROP_CHANGES, (last_change(db, database.account).seq - 1,))
        db.execute(sql.DROP_UNUSED_NAMES)
        for statement in sql.MERGE_WORDS:
            db.execute(statement)
    remove_copies(database.path)
    database.wipe()
