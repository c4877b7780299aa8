"""Transactions on an account's index, its duplicate, and proof that it is what was written."""

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from zlib import crc32

from perdure.files import sync_path
from perdure.index.account import schema
from perdure.index.account.file import AccountFile, finished_copies, remove_copies
from perdure.index.account.rows import (
    Names,
    Prepared,
    Row,
    add,
    changes_from,
    last_change,
    named_in,
    note,
    noted_in,
    read,
    rows_of,
)
from perdure.index.filters import stamp_of
from perdure.model.record import NOTED


class Edit:
    """What is taken away and added, until `finish` stamps it; whoever calls has a transaction."""

    def __init__(self, db: sqlite3.Connection, account: str) -> None:
        self._db = db
        self._account = account
        self._names = Names(db)
        self._last = last_change(db, account)
        self._added = 0
        self._gone: list[int] = []
        self._touched: set[int] = set()
        self._removed: set[int] = set()
        """The URIs of which nothing is left."""

    @property
    def cursor(self) -> int:
        return self._last.cursor

    def remove_ids(self, ids: Iterable[str]) -> None:
        self._remove(rows_of(self._db, self._names, ids))

    def remove_uris(self, uris: Iterable[str]) -> None:
        known = self._names.find_all(list(uris))
        self._removed |= known
        self._remove(self._db.execute(schema.ROWS_OF_URIS, (json.dumps([*known]),)).fetchall())

    def remove_owner(self, owner_space: str) -> int:
        name = self._names.find(owner_space)
        rows = self._db.execute(schema.ROWS_OF_OWNER, (name,)).fetchall()
        self._remove(rows)
        return len(rows)

    def mark(self, uris: Iterable[str], unlogged: Collection[str]) -> None:
        """Let of these URIs only some be marked as not what the log says."""
        if self._db.execute(schema.ANY_UNLOGGED).fetchone():
            known = [(name,) for name in self._names.find_all(list(uris))]
            self._db.executemany(schema.DROP_UNLOGGED, known)
        if unlogged:
            self._names.give(unlogged)
            marked = [(name,) for name in self._names.numbers(unlogged)]
            self._db.executemany(schema.MARK_UNLOGGED, marked)

    def add(self, records: Iterable[Prepared]) -> None:
        """Add records, in place of those with the same ids; of one id the last counts."""
        fresh = {each.record.id: each for each in records}
        self._remove(rows_of(self._db, self._names, fresh, self._removed))
        first = self._last.rows + self._added + 1
        add(self._db, self._names, fresh.values(), first)
        self._added += len(fresh)
        uris = set(self._names.numbers(each.record.uri for each in fresh.values()))
        self._touched |= uris
        self._removed -= uris

    def finish(self, cursor: int | None = None) -> None:
        """Stamp what was touched, and write down that it was."""
        cursor = self._last.cursor if cursor is None else cursor
        if not self._touched and cursor == self._last.cursor:
            return
        digests: dict[int, dict[str, bytes]] = {uri: {} for uri in self._touched}
        asked = (json.dumps(list(digests)),)
        for uri, id_, digest in self._db.execute(schema.DIGESTS_OF_URIS, asked):
            digests[uri][id_] = digest
        stamps = [(uri, bytes.fromhex(stamp_of(found))) for uri, found in digests.items() if found]
        self._db.executemany(schema.PUT_STAMP, stamps)
        gone = [(uri,) for uri, found in digests.items() if not found]
        self._db.executemany(schema.DROP_STAMP, gone)
        change = self._last.next(added=self._added, gone=self._gone, cursor=cursor)
        note(self._db, self._account, change)

    def _remove(self, rows: list[tuple[int, int]]) -> None:
        if not rows:
            return
        numbers = {"rows": json.dumps([row for row, _ in rows])}
        for statement in schema.REMOVE:
            self._db.execute(statement, numbers)
        self._gone += [row for row, _ in rows]
        self._touched |= {uri for _, uri in rows}


def duplicate(file: AccountFile, target: Path) -> None:
    """Write the file of an account, as it is at one moment, where no file is."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600, exist_ok=False)
    # By SQLite alone: to open its file besides, and close it, would end the locks of this process.
    with file.reading() as db, closing(sqlite3.connect(target, isolation_level=None)) as fresh:
        last_change(db, file.account)
        for setting in ("journal_mode = OFF", "synchronous = OFF"):
            fresh.execute(f"PRAGMA {setting}")
        db.backup(fresh)
    _link_copies(file.path, target)


def publish(made: Path, target: Path) -> bool:
    """Give a synced file that nobody has open a second name; False if that name is taken."""
    sync_path(made)
    if any(Path(f"{path}-wal").exists() for path in (made, target)):
        return False
    try:
        os.link(made, target)
    except OSError:
        return False
    _link_copies(made, target)
    return True


def _link_copies(database: Path, target: Path) -> None:
    """Let the other file have the same copies; none is ever changed, so they can be shared."""
    for copy in finished_copies(database):
        with suppress(OSError):  # then it is made again when it is needed
            os.link(copy, target.with_name(copy.name))


def damaged_uris(file: AccountFile) -> list[str]:
    """Look at every byte; return the URIs whose records are not what their stamp says."""
    with file.changing(outlasts_power=False) as db:
        file.matrices.clear()
        remove_copies(file.path)
        _check_tables(file, db)
        _check_log(file, db)
        _check_notes(file, db)
        return sorted(_differing(file, db))


def _check_tables(file: AccountFile, db: sqlite3.Connection) -> None:
    """Refuse tables that are not as we make them, or can't be read, or not be searched."""
    if _made(db) != _expected():
        raise file.damage("its tables are not as they were made")
    found = db.execute(schema.CHECK_FILE).fetchone()
    if found != ("ok",):
        raise file.damage(f"SQLite finds {str(found)[:200]!a}")
    for statement in schema.CHECK_WORDS:
        db.execute(statement)


def _made(db: sqlite3.Connection) -> list[Row]:
    return [*db.execute(schema.TABLES_MADE), *db.execute(schema.SETTINGS_OF_WORDS)]


@cache
def _expected() -> list[Row]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in schema.TABLES.statements:
            db.execute(statement)
        return _made(db)


def _check_log(file: AccountFile, db: sqlite3.Connection) -> None:
    changes_from(db, file.account, 0)
    if any(crc32(value.encode()) != found for found, value in db.execute(schema.SUMS)):
        raise file.damage("a name has the sum of another")
    last = last_change(db, file.account)
    ((row,),) = db.execute(schema.LAST_ROW)
    if (row or 0) > last.rows:
        raise file.damage(f"there is a row {row}, but only {last.rows} were ever made")


def _check_notes(file: AccountFile, db: sqlite3.Connection) -> None:
    """Refuse if what is shown unasked is not found as the records say."""
    told: list[tuple[object, ...]] = []
    named: set[tuple[int, str, str]] = set()
    for row, text, payload in db.execute(schema.NOTES_TOLD):
        with suppress(ValueError, TypeError, LookupError):  # then its digest tells
            found = json.loads(schema.unpacked(payload, text))
            if NOTED in found:
                told.append((row, *noted_in(found)))
            named |= {(row, *each) for each in named_in(found)}
    kept = {(row, name, noted) for name, noted, row in db.execute(schema.NAMED_KEPT)}
    if told != db.execute(schema.NOTES_KEPT).fetchall() or named != kept:
        raise file.damage("its notes are not those of its records")


def _differing(file: AccountFile, db: sqlite3.Connection) -> Iterator[str]:
    """Return where records and stamps differ. A record that can't be read has no digest."""
    digests: dict[str, dict[str, bytes]] = {}
    for row in db.execute(schema.WHOLE):
        uri, id_ = row[schema.URI_OF_WHOLE], row[schema.ID_OF_WHOLE]
        if not isinstance(uri, str):
            raise file.damage("a record is of no URI")
        digests.setdefault(uri, {})[str(id_)] = _digest(file.account, row)
    stamps = dict(db.execute(schema.STAMPS))
    for uri in digests.keys() | stamps.keys():
        if stamp_of(digests.get(uri, {})) != stamps.get(uri):
            yield uri


def _digest(account: str, row: Row) -> bytes:
    with suppress(ValueError, TypeError, LookupError, OverflowError):
        found = read(account, row)
        if found.is_true:
            return found.digest
    return b""
