"""The wrapper of SQLite: opens a file, changes it in transactions, and translates errors.

A connection to a file with a write-ahead log holds locks while it is idle. A forked process that
used the same connection would assume that it has them too, and could lose what it writes. So all
connections are closed before a fork, and both processes open them again when they need them.
"""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar
from weakref import WeakSet

from perdure.errors import (
    AccessRefusedError,
    ClosedError,
    DamageError,
    LockTimeout,
    PerdureError,
    StorageError,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
    storage_error,
)
from perdure.files import set_aside

PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.005
_LOOKS = 5
_LOOKING_SECONDS = 2.0
_FULL = 2
_NORMAL = 1
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT})
_UNOPENED = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
    }
)
"""The errors of SQLite where it can't write its log."""
_READ_ONLY_MODES = ("mode=ro", "immutable=1")
"""How to open a file that can't be written: with the log of other processes, or without one."""

Answer = TypeVar("Answer")


class Schema(NamedTuple):
    name: str
    """Names the database in errors: 'the outbox'."""
    version: int
    statements: tuple[str, ...]
    """They create the tables, and set `user_version`."""
    loss: str
    """The end of the error about a damaged file: what is lost by moving it away."""


class SqliteFile:
    """A database file, used by one thread at a time; the others wait.

    A file that can't be written is opened read-only, and one that can't be created is empty. A
    transaction then raises the reason, until the file can be written.
    """

    journal = "WAL"
    levels = _NORMAL, _FULL
    """The level of `synchronous` for a transaction that need not be durable, and one that must."""

    def __init__(self, path: str, schema: Schema, patience: float = PATIENCE_SECONDS) -> None:
        self.path = Path(path or os.sep).absolute()  # "" is in memory, and needs no current folder
        self._place = str(self.path)
        self._schema = schema
        self._name = f"{schema.name} {self._place!a}"
        self._patience = patience
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._identity: tuple[int, int] | None = None
        self._synchronous: int | None = None
        self._refused: PerdureError | None = None
        """Why it can't be changed."""
        self._lock = threading.Lock()
        _register(self)
        with self.connection():
            pass  # an unusable file is reported when it is opened

    def close(self) -> None:
        if not self._lock.acquire(timeout=self._patience):
            raise self._busy_error()
        try:
            self._closed = True
            self.disconnect()
        finally:
            self._lock.release()

    # ------------------------------------------------------------ use
    @contextmanager
    def connection(self, before: str = "") -> Iterator[sqlite3.Connection]:
        """Yield the connection; `before` is the beginning of an error's message."""
        if not self._lock.acquire(timeout=self._patience):
            raise self._busy_error()
        try:
            try:  # usually the file is the same
                found = os.stat(self._place)  # noqa: PTH116 - faster, and done by every query
                is_same = (found.st_dev, found.st_ino) == self._identity
            except OSError:
                is_same = False
            db = self._connection if is_same and self._pid == os.getpid() else None
            yield self._connected() if db is None else db
        except PerdureError:
            raise
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise self._translated(error, before) from error
        finally:
            self._lock.release()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction; without `durable`, a power cut may lose it."""
        with self.connection() as connected:
            db = self._writable(connected)
            self._synchronize(db, self.levels[durable])
            with immediate_transaction(db):
                yield db

    @property
    def is_consistent(self) -> bool:
        """Whether what was read is of one state; with its locks, SQLite guarantees it."""
        return True

    @property
    def is_in_place(self) -> bool:
        """Whether the file that is open is the one at the path."""
        return self.identity() == self._identity

    def identity(self) -> tuple[int, int] | None:
        """Return what identifies the file at the path; None if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def wipe(self) -> None:
        """Rewrite the file and empty its log, so that no byte of deleted rows is left.

        `secure_delete` overwrites deleted rows, but not the copies that stay in a page when SQLite
        moves rows to another page.
        """
        with self.connection("what was deleted is not yet overwritten; ") as connected:
            db = self._writable(connected)
            self._synchronize(db, self.levels[1])
            db.execute("VACUUM")
            ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if busy:
                raise LockTimeout(
                    f"{self._name} still holds deleted bytes: another process has been reading it "
                    f"for {self._patience:g} s. Fix: delete again."
                )

    def _busy_error(self) -> LockTimeout:
        return LockTimeout(
            f"another thread has used {str(self.path)!a} for over {self._patience:g} s. "
            "Fix: find out what keeps it busy."
        )

    def _synchronize(self, db: sqlite3.Connection, level: int) -> None:
        if self._synchronous != level:
            db.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    # ------------------------------------------------------------ opening
    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise ClosedError(f"{self._name} was closed. Fix: open it again.")
        if self._connection is None:
            self._connection = self._open()
            self._pid, self._identity = os.getpid(), self.identity()
        elif self._pid != os.getpid() or not self.is_in_place:
            raise StorageUnavailableError(
                f"{self._name} was moved, or this process was forked without Python's knowledge. "
                "Fix: open it again, in a process that was not forked while it was open."
            )
        return self._connection

    def _writable(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection that can write; if the last attempt was refused, try again."""
        if self._refused is not None:
            self.disconnect()
            db = self._connected()
        if self._refused is not None:
            raise self._refused
        return db

    def _open(self) -> sqlite3.Connection:
        self._refused = None
        try:
            return self._open_to_write()
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            self._refused = self._open_error(error)
        except sqlite3.Error as error:
            if _code(error) not in _UNOPENED:
                raise
            self._refused = self._error(error, "")
        return self._open_to_read(self._refused)

    def _open_to_write(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.path.lexists(self.path) and not self.path.is_file():
            raise self.damage_error("it is a folder" if self.path.is_dir() else "it is not a file")
        if not self.path.exists():
            self.path.touch(mode=0o600)
        elif not os.access(self.path, os.W_OK):  # touching it would look like a write to readers
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.path))
        return self._connection_to(str(self.path), self._prepare)

    def _open_to_read(self, refused: PerdureError) -> sqlite3.Connection:
        if self._is_empty():
            return self._connection_to(":memory:", self._create_tables)
        for how in _READ_ONLY_MODES:
            with suppress(sqlite3.OperationalError):
                return self._connection_to(self._uri(how), self._check)
        raise refused

    def _is_empty(self) -> bool:
        """Whether there are no tables, as when the disk was full before they were created."""
        if not self.path.exists() or not self.path.stat().st_size:
            return True
        for how in _READ_ONLY_MODES:
            with suppress(sqlite3.Error), closing(sqlite3.connect(self._uri(how), uri=True)) as db:
                return bool(db.execute("PRAGMA schema_version").fetchone() == (0,))
        return False

    def _uri(self, how: str) -> str:
        return f"{self.path.as_uri()}?{how}"

    def _connection_to(
        self, where: str, prepare: Callable[[sqlite3.Connection], None]
    ) -> sqlite3.Connection:
        db = sqlite3.connect(
            where,
            self._patience,
            isolation_level=None,
            check_same_thread=False,
            uri=where.startswith("file:"),
        )
        try:
            prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _check(self, db: sqlite3.Connection) -> None:
        version = version_of(db)
        if version > self._schema.version:
            raise self._version_error(version)
        if version != self._schema.version:
            raise self.damage_error("it has the tables of another program")
        self._refuse_truncated(db)

    def _refuse_truncated(self, db: sqlite3.Connection) -> None:
        """Refuse a file that ends within a page, whose rest SQLite would read as zeros."""
        (page,) = db.execute("PRAGMA page_size").fetchone()
        with suppress(FileNotFoundError):
            if self.path.stat().st_size % page and not self._has_log():
                raise self.damage_error("its end is missing")

    def _has_log(self) -> bool:
        """Whether some pages are only in the log."""
        try:
            return self._beside("-wal").stat().st_size > 0
        except OSError:
            return False

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _prepare(self, db: sqlite3.Connection) -> None:
        self._synchronize(db, self.levels[1])
        log = f"PRAGMA journal_mode = {self.journal}"
        (mode,) = self._patiently(lambda: db.execute(log)).fetchone()
        if mode != self.journal.lower():
            raise StorageFaultError(
                f"the disk of {str(self.path)!a} can't share a log between processes. "
                "Fix: put it on a disk of this machine, with PERDURE_HOME."
            )
        db.execute("PRAGMA secure_delete = ON")
        if version_of(db) != self._schema.version:
            self._create_tables(db)
        self._refuse_truncated(db)

    def _create_tables(self, db: sqlite3.Connection) -> None:
        """Create the tables, unless another process did; refuse a foreign file."""
        with immediate_transaction(db):
            version = version_of(db)
            if version > self._schema.version:
                raise self._version_error(version)
            if version == self._schema.version:
                return
            if db.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise self.damage_error("it has the tables of another program")
            for statement in self._schema.statements:
                db.execute(statement)

    def _patiently(self, action: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Retry while the file is busy; SQLite itself does not wait when it switches to a log."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def disconnect(self) -> None:
        """Close the connection, if it is open. The caller holds the lock."""
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = self._synchronous = None

    # ------------------------------------------------------------ errors
    @contextmanager
    def _errors_explained(self, before: str = "") -> Iterator[None]:
        try:
            yield
        except PerdureError:
            raise
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise self._translated(error, before) from error

    def _translated(self, error: Exception, before: str) -> PerdureError:
        if isinstance(error, sqlite3.Error):
            return self._error(error, before)
        if isinstance(error, OSError):
            return self._open_error(error)
        # SQLite quotes a schema that is not text, and Python can't decode the message.
        return self.damage_error(f"{before}its schema is not UTF-8")

    def _open_error(self, error: OSError) -> PerdureError:
        what = f"can't open {self._name}: {error.strerror}. Fix: "
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StorageFullError(f"{what}free some space on its disk.")
        kind = AccessRefusedError if error.errno in _UNWRITABLE else StorageUnavailableError
        return kind(f"{what}make its folder writable, or set PERDURE_HOME to one that is.")

    def _version_error(self, version: int) -> PerdureError:
        return StorageUnavailableError(
            f"{self._name} has schema {version}; this Perdure knows {self._schema.version}. "
            "Fix: use the newer Perdure that created it."
        )

    def _error(self, error: sqlite3.Error, before: str) -> PerdureError:
        code = _code(error)
        if code is None or code in {
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_NOTADB,
            sqlite3.SQLITE_ERROR,
        }:
            return self.damage_error(f"{before}{error}")
        where = f"{before}{self._name}"
        if code in _BUSY:
            return LockTimeout(
                f"{where} has been in use by another process for over {self._patience:g} s. "
                "Fix: let that process finish, or end it; then try again."
            )
        if code == sqlite3.SQLITE_FULL:
            return StorageFullError(f"no space is left for {where}. Fix: free some on its disk.")
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
            return AccessRefusedError(
                f"{where} can't be written. Fix: give its file and folder back to their owner."
            )
        return StorageFaultError(f"{where} can't be used: {error}. Fix: check its disk.")

    def damage_error(self, what: str) -> DamageError:
        return DamageError(
            f"{self._name} is damaged: {what}. Fix: stop what uses it, and move it away; "
            f"{self._schema.loss}."
        )


class UnsyncedDatabase(SqliteFile):
    """A file that no other process knows yet: it is synced when it is published, not before."""

    def _prepare(self, db: sqlite3.Connection) -> None:
        super()._prepare(db)
        db.execute("PRAGMA secure_delete = OFF")

    def _synchronize(self, db: sqlite3.Connection, level: int) -> None:
        del level
        super()._synchronize(db, 0)


class ReadOnlyDatabase(SqliteFile):
    """A file that is only read, while others may use it: its log and its locks are not touched.

    If other processes have a log, it is read too. Without one, the file is read as immutable;
    `is_consistent` returns whether it was not changed meanwhile.
    """

    _looked_at: tuple[int, ...] | None = None

    @property
    def is_consistent(self) -> bool:
        return self._looked_at is None or self._looked_at == self._state()

    def _open(self) -> sqlite3.Connection:
        self._refused = AccessRefusedError(
            f"{self._name} was opened read-only. Fix: open it for writing."
        )
        if not self.path.is_file() or not self.path.stat().st_size:
            return self._connection_to(":memory:", self._create_tables)
        logs = [self._beside(log).exists() for log in ("-wal", "-shm")]
        shared = all(logs)
        self._looked_at = None if shared else self._state()
        if logs == [True, False] and self._has_log():
            raise StorageUnavailableError(
                f"{self._name} has a log that only a writer can apply. "
                "Fix: run `perdure recall` or `perdure worker --once`."
            )
        return self._connection_to(
            self._uri("mode=ro&readonly_shm=1" if shared else "immutable=1"), self._check
        )

    def _state(self) -> tuple[int, ...] | None:
        """Return what changes with the file; it never compares equal while a log has pages."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        logged = time.monotonic_ns() if self._has_log() else 0
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, logged


class InMemoryDatabase(SqliteFile):
    """A database without a file. After a fork, each process continues with its own copy."""

    def identity(self) -> tuple[int, int]:
        return 0, 0

    def _connected(self) -> sqlite3.Connection:
        if self._closed or self._connection is None:
            return super()._connected()
        self._pid = os.getpid()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        db = self._connection_to(":memory:", self._create_tables)
        db.execute("PRAGMA temp_store = MEMORY")
        return db

    def disconnect(self) -> None:
        if self._closed:  # and not before a fork
            super().disconnect()


class DerivedDatabase:
    """A file that can be rebuilt: if it is damaged, missing or foreign, an empty one replaces it.

    One thread uses it at a time.
    """

    def __init__(
        self, path: str, schema: Schema, check: Callable[[SqliteFile], None] = lambda _: None
    ) -> None:
        self._path = path
        self._schema = schema
        self._check = check
        self._lock = threading.RLock()
        self._file: SqliteFile | None = None

    def run(self, question: Callable[[SqliteFile], Answer]) -> Answer:
        with self._lock:
            try:
                return question(self._file or self._opened())
            except (DamageError, StorageUnavailableError):
                self.discard()
                return question(self._opened())

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def discard(self) -> None:
        with self._lock:
            self.close()
            if self._path:
                discard(Path(self._path))

    def _opened(self) -> SqliteFile:
        if self._file is None:
            kind = SqliteFile if self._path else InMemoryDatabase
            file = kind(self._path, self._schema)
            self._check(file)
            self._file = file
        return self._file


def discard(path: Path) -> None:
    """Remove a derived file with its logs; what is not a file is renamed."""
    set_aside(path, unless=Path.is_file)
    for log in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + log).unlink(missing_ok=True)


def read_snapshot(
    path: Path, schema: Schema, question: Callable[[sqlite3.Connection], Answer]
) -> Answer | None:
    """Query a file read-only; None if it can't be read, as while it is being created."""
    for _ in range(_LOOKS):
        with suppress(DamageError, StorageError, ValueError, TypeError):  # during a change
            file = ReadOnlyDatabase(str(path), schema, _LOOKING_SECONDS)
            try:
                with file.connection() as db:
                    answer = question(db)
                if file.is_consistent:
                    return answer
            finally:
                file.close()
    return None


@contextmanager
def open_read_only(path: Path, patience: float = 5.0) -> Iterator[sqlite3.Connection]:
    """Yield a read-only connection to another program's file; errors are a `StorageError`."""
    try:
        uri = f"{path.resolve(strict=True).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, patience, uri=True)) as db:
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise StorageFaultError(
            f"{str(path)!a} can't be read as a database: {error}. Fix: check the file."
        ) from error
    except PerdureError:
        raise
    except OSError as error:
        raise storage_error(error, str(path.parent), path.name) from error


@contextmanager
def immediate_transaction(db: sqlite3.Connection) -> Iterator[None]:
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # it may have been rolled back already
            db.execute("ROLLBACK")
        raise


def _code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def version_of(db: sqlite3.Connection) -> int:
    ((version,),) = db.execute("PRAGMA user_version")
    return int(version)


# ---------------------------------------------------------------- forks
_files: "WeakSet[SqliteFile]" = WeakSet()
_stopped: list[SqliteFile] = []
_forking = threading.Lock()
_hook_forks = cache(os.register_at_fork)  # once


def _register(file: SqliteFile) -> None:
    with _forking:
        _hook_forks(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
        _files.add(file)


def _before_fork() -> None:
    _forking.acquire()
    for file in tuple(_files):
        file._lock.acquire()  # noqa: SLF001 - of this module
        file.disconnect()
        _stopped.append(file)


def _after_fork() -> None:
    if not _forking.locked():
        return  # forked without a call of `_before_fork`
    while _stopped:
        _stopped.pop()._lock.release()  # noqa: SLF001 - of this module
    _forking.release()
