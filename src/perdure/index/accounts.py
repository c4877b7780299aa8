"""The databases of accounts, one file each: opened on demand, duplicated, checked, removed."""

import fcntl
import json
import os
import re
import sqlite3
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from perdure.errors import (
    ClosedError,
    DamageError,
    InvalidValueError,
    PerdureError,
    StorageUnavailableError,
    storage_error,
)
from perdure.files import Quarantine, set_aside, sync_path
from perdure.index import sql
from perdure.index.filters import stamp_of
from perdure.index.rows import (
    IndexChange,
    Row,
    RowCache,
    changes_from,
    last_change,
    name_rows,
    note_row,
    read_record,
)
from perdure.model.node import NOTED
from perdure.model.uri import name_of, segment_of
from perdure.sqlite import InMemoryDatabase, SqliteFile

LOCK_SUFFIX = ".making"
UNFINISHED = ".unfinished"
_COPY = ".vectors"
_SUFFIX = ".sqlite"
_HOUR = 3600
MAX_OPEN = 32
_CACHE_KIB = 32_768
_ATTEMPTS = 5
_RETIRED = b"perdure: retired"
_UNREADABLE = (ValueError, TypeError, LookupError, OverflowError)
"""What reading a damaged row may raise."""
Answer = TypeVar("Answer")


class AccountDatabase:
    """The database of one account, and what this process has cached of it.

    One thread reads at a time, so a reader may change the caches.
    """

    def __init__(self, path: Path, account: str, kind: type[SqliteFile] = SqliteFile) -> None:
        self.account = account
        self.path = path
        self.matrices: dict[int, Any] = {}
        """Each a `matrix.Matrix`, by dimension; that module imports this one."""
        self.row_cache = RowCache()
        self.passage_count: tuple[IndexChange, int] | None = None
        """The number of passages as of a change."""
        self._file = kind(str(path), sql.TABLES)
        self._identity = self._file.identity()
        self._tuned: sqlite3.Connection | None = None
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._file.close()

    @property
    def is_in_place(self) -> bool:
        return not self._closed and self._file.identity() == self._identity is not None

    @property
    def is_undisturbed(self) -> bool:
        return self._file.is_consistent

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self.snapshot() as db, self.damage_detected():
            yield db

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Like `reading`, for a caller that wraps each of its queries in `damage_detected`."""
        with self._file.connection() as db:
            self._tune(db)
            db.execute("BEGIN")
            try:
                yield db
            finally:
                with suppress(sqlite3.Error):  # an error has ended the transaction
                    db.execute("ROLLBACK")

    @contextmanager
    def changing(self, *, outlasts_power: bool = True) -> Iterator[sqlite3.Connection]:
        """Run a write transaction, during which no other process can remove the file."""
        with self._file.transaction(durable=outlasts_power) as db, self.damage_detected():
            self._tune(db)
            if not self.is_in_place:
                raise ClosedError(f"{str(self.path)!a} was deleted. Fix: do it again.")
            yield db

    @contextmanager
    def damage_detected(self) -> Iterator[None]:
        """Raise `DamageError` for rows that are not valid."""
        try:
            yield
        except InvalidValueError as error:
            raise self.damage(f"a record is not valid ({error})") from error
        except PerdureError:
            raise
        except _UNREADABLE as error:
            raise self.damage(f"a row can't be read ({error})") from error

    def wipe(self) -> None:
        self._file.wipe()

    def damage(self, what: str) -> DamageError:
        return self._file.damage_error(what)

    def retire(self) -> None:
        """Remove the file, unless another process has it open and would keep writing to it."""
        with self._file.connection() as db:
            with suppress(sqlite3.OperationalError):  # another process has it open
                db.execute("PRAGMA journal_mode = DELETE")
                db.execute("BEGIN EXCLUSIVE")
                if db.execute("PRAGMA journal_mode").fetchone() == ("delete",):
                    _remove(self.path)
            with suppress(sqlite3.Error):  # no transaction may be open
                db.execute("ROLLBACK")
        self.close()

    def _tune(self, db: sqlite3.Connection) -> None:
        if db is not self._tuned:
            db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._tuned = db


class AccountDatabases:
    """The databases of all accounts in a folder. An account without records has none."""

    def __init__(
        self,
        folder: str,
        max_open: int = MAX_OPEN,
        *,
        quarantine: Quarantine | None = None,
        kind: type[SqliteFile] = SqliteFile,
    ) -> None:
        self._kind = kind
        self._folder = Path(folder).absolute()
        self._quarantine = quarantine
        self._max_open = max_open
        self._open: OrderedDict[str, AccountDatabase] = OrderedDict()
        self._lock = threading.RLock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            databases = list(self._open.values())
            self._open.clear()
        for each in databases:
            each.close()

    def path_of(self, account: str) -> Path:
        return self._folder / f"{segment_of(account)}{_SUFFIX}"

    def size_of(self, account: str) -> int:
        """Return the bytes of an account's files: database, write-ahead log, copies of vectors."""
        path = self.path_of(account)
        return sum(map(_size, (path, path.with_name(f"{path.name}-wal"), *_copies(path))))

    def accounts(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        found = [name_of(path.stem) for path in self._folder.iterdir() if path.suffix == _SUFFIX]
        return sorted(account for account in found if account is not None)

    def ask(
        self, account: str, question: Callable[[AccountDatabase], Answer], absent: Answer
    ) -> Answer:
        """Return what `question` returns for an account's database; `absent` if it has none."""
        if not os.path.lexists(self.path_of(account)):
            self._refuse_if_closed()
            self.clear_folder()
            self._forget(account)
            return absent
        return self.use(account, question)

    def use(self, account: str, action: Callable[[AccountDatabase], Answer]) -> Answer:
        """Run an action on an account's database, created if absent.

        If another process replaced the file meanwhile, the action runs again on the new one.
        """
        for _ in range(_ATTEMPTS):
            database = self._opened(account)
            try:
                return action(database)
            except (ClosedError, DamageError, StorageUnavailableError):
                if self._is_current(account, database):
                    raise
                self._forget(account)
        return action(self._opened(account))

    def clear_folder(self) -> None:
        """Move away a foreign file at the path of the folder, where that is allowed."""
        if self._quarantine is not None:
            self._quarantine.clear_folder(self._folder)

    def discard(self, account: str) -> None:
        """Remove a file that is too damaged to be emptied, even while others have it open."""
        self._forget(account)
        path = self.path_of(account)
        set_aside(path, unless=Path.is_file)
        _remove(path)
        for log in ("-wal", "-shm"):
            path.with_name(path.name + log).unlink(missing_ok=True)

    def _forget(self, account: str) -> None:
        with self._lock:
            database = self._open.pop(account, None)
        if database is not None:
            database.close()

    def _is_current(self, account: str, database: AccountDatabase) -> bool:
        with self._lock:
            return self._open.get(account) is database and database.is_in_place

    def _opened(self, account: str) -> AccountDatabase:
        with self._lock:
            self._refuse_if_closed()
            database = self._open.get(account)
            if database is None:
                database = self._open[account] = self._create(account)
            self._open.move_to_end(account)
            idle = list(self._open.values())[: -self._max_open]
            for each in idle:
                del self._open[each.account]
        for each in idle:
            each.close()
        return database

    def _create(self, account: str) -> AccountDatabase:
        self.clear_folder()
        path = self.path_of(account)
        try:
            return AccountDatabase(path, account, self._kind)
        except DamageError:  # it may be half removed; a damaged file fails again
            return AccountDatabase(path, account, self._kind)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError(f"the index {str(self._folder)!a} was closed. Fix: open it again.")


class MemoryDatabases(AccountDatabases):
    """Databases of accounts in memory; all stay open until `close`."""

    def __init__(self) -> None:
        super().__init__(os.devnull, sys.maxsize, kind=InMemoryDatabase)

    def accounts(self) -> list[str]:
        with self._lock:
            return sorted(self._open)

    def ask(
        self, account: str, question: Callable[[AccountDatabase], Answer], absent: Answer
    ) -> Answer:
        self._refuse_if_closed()
        return self.use(account, question) if account in self.accounts() else absent


def _remove(path: Path) -> None:
    """Delete a file; its first bytes are overwritten, so a process that opens it now rejects it."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, _RETIRED, 0)
            path.unlink()
        finally:
            os.close(descriptor)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


# ---------------------------------------------------------------- the lock of a build
@contextmanager
def build_lock(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock of a build, with `wait` as soon as it is free; yield whether it is held."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _acquire(path, wait=wait)
    except OSError as error:
        raise storage_error(error, str(path.parent), path.name) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # before the release, so that a waiting process sees it
        os.close(descriptor)


def remove_stale_lock(path: Path) -> None:
    """Remove the lock file of a process that died, unless another one holds the lock now."""
    if path.exists():
        with build_lock(path, wait=False):
            pass


def _acquire(path: Path, *, wait: bool) -> int | None:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


# ---------------------------------------------------------------- copies of vectors
def copy_of(database: Path, dimension: int) -> Path:
    return database.with_name(f"{database.stem}.{dimension}{_COPY}")


def remove_copies(database: Path) -> None:
    """Remove all copies of a database's vectors, also unfinished ones."""
    for path in _copies(database):
        path.unlink(missing_ok=True)


def remove_unfinished(database: Path) -> None:
    """Remove copies that no process can be writing any more."""
    for path in _copies(database):
        with suppress(OSError):
            if path.suffix == UNFINISHED and time.time() - path.stat().st_mtime > _HOUR:
                path.unlink(missing_ok=True)


def _copies(database: Path) -> list[Path]:
    """Return the copies of this database, but not of one whose name starts with this name."""
    name = re.compile(
        rf"{re.escape(database.stem)}\.\d+{re.escape(_COPY)}(\.[0-9a-f]+{re.escape(UNFINISHED)})?"
    )
    if not database.parent.is_dir():
        return []
    return [path for path in database.parent.iterdir() if name.fullmatch(path.name)]


# ---------------------------------------------------------------- duplicates
def duplicate(database: AccountDatabase, target: Path) -> None:
    """Write a consistent copy of a database to a path where no file exists."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600, exist_ok=False)
    # Copied by SQLite: opening and closing the file here would drop the locks of this process.
    with database.reading() as db, closing(sqlite3.connect(target, isolation_level=None)) as fresh:
        last_change(db, database.account)
        for setting in ("journal_mode = OFF", "synchronous = OFF"):
            fresh.execute(f"PRAGMA {setting}")
        db.backup(fresh)
    _link_copies(database.path, target)


def publish(source: Path, target: Path) -> bool:
    """Sync a file that no process has open and link it to `target`; False if that exists."""
    sync_path(source)
    if any(Path(f"{path}-wal").exists() for path in (source, target)):
        return False
    try:
        os.link(source, target)
    except OSError:
        return False
    _link_copies(source, target)
    return True


def _link_copies(database: Path, target: Path) -> None:
    """Link the finished copies of vectors to another database; copies never change."""
    for copy in _copies(database):
        if copy.suffix == _COPY:
            with suppress(OSError):  # without a link, the copy is written again on demand
                os.link(copy, target.with_name(copy.name))


# ---------------------------------------------------------------- checks
def damaged_uris(database: AccountDatabase) -> list[str]:
    """Read every byte; return the URIs whose records do not match their stamp."""
    with database.changing(outlasts_power=False) as db:
        database.matrices.clear()
        remove_copies(database.path)
        _check_tables(database, db)
        _check_log(database, db)
        _check_notes(database, db)
        return sorted(_differing(database, db))


def _check_tables(database: AccountDatabase, db: sqlite3.Connection) -> None:
    if _schema_of(db) != _expected_schema():
        raise database.damage("its tables differ from the schema")
    found = db.execute(sql.CHECK_FILE).fetchone()
    if found != ("ok",):
        raise database.damage(f"SQLite finds {str(found)[:200]!a}")
    for statement in sql.CHECK_WORDS:
        db.execute(statement)


def _schema_of(db: sqlite3.Connection) -> list[Row]:
    return [*db.execute(sql.SCHEMA_ROWS), *db.execute(sql.SETTINGS_OF_WORDS)]


@cache
def _expected_schema() -> list[Row]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in sql.TABLES.statements:
            db.execute(statement)
        return _schema_of(db)


def _check_log(database: AccountDatabase, db: sqlite3.Connection) -> None:
    changes_from(db, database.account, 0)
    if any(crc32(value.encode()) != found for found, value in db.execute(sql.SUMS)):
        raise database.damage("a name has the checksum of another")
    last = last_change(db, database.account)
    ((row,),) = db.execute(sql.LAST_ROW)
    if (row or 0) > last.rows:
        raise database.damage(f"row {row} exists, but only {last.rows} rows were ever added")


def _check_notes(database: AccountDatabase, db: sqlite3.Connection) -> None:
    """Compare the tables `notes` and `named` with the payloads of the records."""
    notes: list[tuple[object, ...]] = []
    names: set[tuple[object, ...]] = set()
    for row, text, packed in db.execute(sql.PAYLOADS):
        with suppress(ValueError, TypeError, LookupError):  # its digest reveals that damage
            payload = json.loads(sql.unpack_payload(packed, text))
            if NOTED in payload:
                notes.append((row, *note_row(payload)))
            names |= {(row, *each) for each in name_rows(payload)}
    stored = {(row, name, noted) for name, noted, row in db.execute(sql.NAMED_ROWS)}
    if notes != db.execute(sql.NOTE_ROWS).fetchall() or names != stored:
        raise database.damage("its notes are not those of its records")


def _differing(database: AccountDatabase, db: sqlite3.Connection) -> Iterator[str]:
    """Yield the URIs whose records and stamp differ; an unreadable record has no digest."""
    digests: dict[str, dict[str, bytes]] = {}
    for row in db.execute(sql.STORED_RECORDS):
        uri, id_ = row[sql.URI_COLUMN], row[sql.ID_COLUMN]
        if not isinstance(uri, str):
            raise database.damage("a record has no URI")
        digests.setdefault(uri, {})[str(id_)] = _digest(database.account, row)
    stamps = dict(db.execute(sql.STAMPS))
    for uri in digests.keys() | stamps.keys():
        if stamp_of(digests.get(uri, {})) != stamps.get(uri):
            yield uri


def _digest(account: str, row: Row) -> bytes:
    with suppress(*_UNREADABLE):
        record = read_record(account, row)
        if record.is_consistent:
            return record.digest
    return b""
