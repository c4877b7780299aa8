"""The one wrapper of SQLite: how a file is opened, who may change it, and what its errors mean.

A connection to a file with a write-ahead log holds locks while it rests. A process that forks and
goes on with the same file would believe that it has them too, and could lose what it writes. So
all connections are closed before a fork, and opened again, by both sides, when they are needed.
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
"""What SQLite says where it can't write the log that it reads with."""
_AS_IT_IS = ("mode=ro", "immutable=1")
"""How to open what can't be written: with the log that others have, or as if nobody wrote."""

Answer = TypeVar("Answer")


class Schema(NamedTuple):
    name: str
    """What it is called in errors: 'the outbox'."""
    version: int
    statements: tuple[str, ...]
    """They make the tables, and set `user_version`."""
    loss: str
    """The end of the error about a damaged file: what moving it away costs."""


class SqliteFile:
    """A connection to the file, for one thread at a time; the others wait.

    Where it can't be written it is read as it is; without a file, as one that holds nothing. Who
    wants to change it gets an error that names the reason, until it can.
    """

    journal = "WAL"
    levels = _NORMAL, _FULL
    """How much is synced by a change that may be lost with the power, and by one that may not."""

    def __init__(self, path: str, tables: Schema, patience: float = PATIENCE_SECONDS) -> None:
        self.path = Path(path or os.sep).absolute()  # in memory, also where no folder is left
        self._place = str(self.path)
        self._tables = tables
        self._name = f"{tables.name} {self._place!a}"
        self._patience = patience
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._identity: tuple[int, int] | None = None
        self._synchronous: int | None = None
        self._refused: PerdureError | None = None
        """Why it can't be changed."""
        self._lock = threading.Lock()
        _close_before_forks(self)
        with self.connection():
            pass  # an unusable file is reported when it is opened

    def close(self) -> None:
        if not self._lock.acquire(timeout=self._patience):
            raise self._kept_busy()
        try:
            self._closed = True
            self.disconnect()
        finally:
            self._lock.release()

    # ------------------------------------------------------------ use
    @contextmanager
    def connection(self, before: str = "") -> Iterator[sqlite3.Connection]:
        """Give the connection; `before` is what an error begins with."""
        if not self._lock.acquire(timeout=self._patience):
            raise self._kept_busy()
        try:
            try:  # most often the file is as it was
                found = os.stat(self._place)  # noqa: PTH116 - each question asks it
                is_same = (found.st_dev, found.st_ino) == self._identity
            except OSError:
                is_same = False
            db = self._connection if is_same and self._pid == os.getpid() else None
            yield self._connected() if db is None else db
        except sqlite3.Error as error:
            raise self._explain(error, before) from error
        except UnicodeDecodeError as error:
            raise self._undecodable(before) from error
        except PerdureError:
            raise
        except OSError as error:
            raise self._unopened(error) from error
        finally:
            self._lock.release()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Change the file wholly or not at all; durably, unless it may be lost with the power."""
        with self.connection() as connected:
            db = self._writable(connected)
            self._synchronize(db, self.levels[durable])
            with immediate_transaction(db):
                yield db

    @property
    def is_consistent(self) -> bool:
        """Whether what was read in one go was of one moment; SQLite sees to it."""
        return True

    @property
    def is_in_place(self) -> bool:
        """Whether the file that is open is the one at the path."""
        return self.identity() == self._identity

    def identity(self) -> tuple[int, int] | None:
        """Tell the file at the path from any other; None if none is there."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def wipe(self) -> None:
        """Rewrite the file and empty its log, so that no byte of what was deleted is left.

        `secure_delete` overwrites deleted rows, but not the copies that stay behind in a page
        when SQLite moves rows to another.
        """
        with self.connection("what was deleted is not yet overwritten; ") as connected:
            db = self._writable(connected)
            self._synchronize(db, self.levels[1])
            db.execute("VACUUM")
            ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if busy:
                raise LockTimeout(
                    f"{self._name} still holds the bytes of what was deleted: another process has "
                    f"read it for {self._patience:g} s. Fix: delete it again."
                )

    def _kept_busy(self) -> LockTimeout:
        return LockTimeout(
            f"another thread has used {str(self.path)!a} for over {self._patience:g} s. "
            "Fix: look for what keeps it busy."
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
                f"{self._name} was moved, or this process forked unseen by "
                "Python. Fix: open it again, in a process that was not forked while it was open."
            )
        return self._connection

    def _writable(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection that can change the file; where there was none, look again."""
        if self._refused is not None:
            self.disconnect()
            db = self._connected()
        if self._refused is not None:
            raise self._refused
        return db

    def _open(self) -> sqlite3.Connection:
        self._refused = None
        with self._explained():
            try:
                return self._open_to_change()
            except OSError as error:
                if error.errno not in _UNWRITABLE:
                    raise
                self._refused = self._unopened(error)
            except sqlite3.Error as error:
                if _code(error) not in _UNOPENED:
                    raise
                self._refused = self._explain(error, "")
            return self._open_to_read(self._refused)

    def _open_to_change(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.path.lexists(self.path) and not self.path.is_file():
            raise self.damage("it is a folder" if self.path.is_dir() else "it is no file")
        if not self.path.exists():
            self.path.touch(mode=0o600)
        elif not os.access(self.path, os.W_OK):  # to touch it would look to readers like a write
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.path))
        return self._connection_to(str(self.path), self._prepare)

    def _open_to_read(self, refused: PerdureError) -> sqlite3.Connection:
        if self._is_empty():
            return self._connection_to(":memory:", self._settle)
        for how in _AS_IT_IS:
            with suppress(sqlite3.OperationalError):
                return self._connection_to(self._uri(how), self._check)
        raise refused

    def _is_empty(self) -> bool:
        """Whether it has no tables, as when the disk was full before they could be created."""
        if not self.path.exists() or not self.path.stat().st_size:
            return True
        for how in _AS_IT_IS:
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
        if version > self._tables.version:
            raise self._too_new(version)
        if version != self._tables.version:
            raise self.damage("it holds tables of something else")
        self._refuse_cut(db)

    def _refuse_cut(self, db: sqlite3.Connection) -> None:
        """Refuse a file that ends within a page, which SQLite would read as zeros."""
        (page,) = db.execute("PRAGMA page_size").fetchone()
        with suppress(FileNotFoundError):
            if self.path.stat().st_size % page and not self._has_log():
                raise self.damage("its end is missing")

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
        if version_of(db) != self._tables.version:
            self._settle(db)
        self._refuse_cut(db)

    def _settle(self, db: sqlite3.Connection) -> None:
        """Create the tables, unless another process has; refuse a file that is not ours."""
        with immediate_transaction(db):
            version = version_of(db)
            if version > self._tables.version:
                raise self._too_new(version)
            if version == self._tables.version:
                return
            if db.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise self.damage("it holds tables of something else")
            for statement in self._tables.statements:
                db.execute(statement)

    def _patiently(self, action: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Try again while others are at it; SQLite itself does not wait to switch to a log."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def disconnect(self) -> None:
        """Close the connection, if there is one. The caller holds the lock."""
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = self._synchronous = None

    # ------------------------------------------------------------ errors
    @contextmanager
    def _explained(self, before: str = "") -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error, before) from error
        except UnicodeDecodeError as error:
            raise self._undecodable(before) from error
        except PerdureError:
            raise
        except OSError as error:
            raise self._unopened(error) from error

    def _undecodable(self, before: str) -> DamageError:
        """SQLite quotes a schema that is not text, and Python can't decode the message."""
        return self.damage(f"{before}its schema is not UTF-8")

    def _unopened(self, error: OSError) -> PerdureError:
        what = f"can't open {self._name}: {error.strerror}. Fix: "
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StorageFullError(f"{what}make room on its disk.")
        kind = AccessRefusedError if error.errno in _UNWRITABLE else StorageUnavailableError
        return kind(f"{what}make its folder writable, or set PERDURE_HOME to one that is.")

    def _too_new(self, version: int) -> PerdureError:
        return StorageUnavailableError(
            f"{self._name} has schema {version}; this Perdure knows {self._tables.version}. "
            "Fix: use the newer Perdure that made it."
        )

    def _explain(self, error: sqlite3.Error, before: str) -> PerdureError:
        code = _code(error)
        if code is None or code in {
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_NOTADB,
            sqlite3.SQLITE_ERROR,
        }:
            return self.damage(f"{before}{error}")
        where = f"{before}{self._name}"
        if code in _BUSY:
            return LockTimeout(
                f"{where} has been in use by another process for over {self._patience:g} s. "
                "Fix: let that process finish, or end it; then do it again."
            )
        if code == sqlite3.SQLITE_FULL:
            return StorageFullError(f"no space is left for {where}. Fix: make room on its disk.")
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
            return AccessRefusedError(
                f"{where} can't be written. Fix: give its file and folder back to their owner."
            )
        return StorageFaultError(f"{where} can't be used: {error}. Fix: check its disk.")

    def damage(self, what: str) -> DamageError:
        return DamageError(
            f"{self._name} is damaged: {what}. Fix: stop what uses it and move it away; "
            f"{self._tables.loss}."
        )


class UnsyncedDatabase(SqliteFile):
    """A file that nobody else knows yet, and that is synced when they do: no change of it is."""

    def _prepare(self, db: sqlite3.Connection) -> None:
        super()._prepare(db)
        db.execute("PRAGMA secure_delete = OFF")

    def _synchronize(self, db: sqlite3.Connection, level: int) -> None:
        del level
        super()._synchronize(db, 0)


class ReadOnlyDatabase(SqliteFile):
    """A file that is only read, while others may use it: its log and its locks are not touched.

    Where others have a log, it is read with theirs. Without one, the file is read as if nobody
    wrote; `is_undisturbed` says whether that was so.
    """

    _looked_at: tuple[int, ...] | None = None

    @property
    def is_undisturbed(self) -> bool:
        return self._looked_at is None or self._looked_at == self._state()

    def _open(self) -> sqlite3.Connection:
        with self._explained():
            self._refused = AccessRefusedError(
                f"{self._name} was opened to be read only. Fix: open it to be changed."
            )
            if not self.path.is_file() or not self.path.stat().st_size:
                return self._connection_to(":memory:", self._settle)
            logs = [self._beside(log).exists() for log in ("-wal", "-shm")]
            shared = all(logs)
            self._looked_at = None if shared else self._state()
            if logs == [True, False] and self._has_log():
                raise StorageUnavailableError(
                    f"{self._name} has a log that only a writer can take in. "
                    "Fix: run `perdure recall` or `perdure worker --once`."
                )
            how = "mode=ro&readonly_shm=1" if shared else "immutable=1"
            return self._connection_to(f"{self.path.as_uri()}?{how}", self._check)

    def _state(self) -> tuple[int, ...] | None:
        """Return what changes with the file; nothing equals it while a log has pages of it."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        logged = time.monotonic_ns() if self._has_log() else 0
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, logged


class InMemoryDatabase(SqliteFile):
    """A database without a file, until it is closed. In a fork each side goes on with its own."""

    def identity(self) -> tuple[int, int]:
        return 0, 0

    def _connected(self) -> sqlite3.Connection:
        if self._closed or self._connection is None:
            return super()._connected()
        self._pid = os.getpid()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        db = self._connection_to(":memory:", self._settle)
        db.execute("PRAGMA temp_store = MEMORY")
        return db

    def disconnect(self) -> None:
        if self._closed:  # and not before a fork
            super().disconnect()


class DerivedDatabase:
    """A file that can be rebuilt: if it is damaged, missing or not ours, an empty one replaces it.

    One thread asks at a time.
    """

    def __init__(
        self, path: str, tables: Schema, check: Callable[[SqliteFile], None] = lambda _: None
    ) -> None:
        self._path = path
        self._tables = tables
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
            file = kind(self._path, self._tables)
            self._check(file)
            self._file = file
        return self._file


def discard(path: Path) -> None:
    """Remove a file that can be made again, with its logs; what is not a file is put aside."""
    set_aside(path, unless=Path.is_file)
    for log in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + log).unlink(missing_ok=True)


def read_snapshot(
    path: Path, tables: Schema, question: Callable[[sqlite3.Connection], Answer]
) -> Answer | None:
    """Ask a file that nothing is done to; None if nobody can tell, as while it is being made."""
    for _ in range(_LOOKS):
        with suppress(DamageError, StorageError, ValueError, TypeError):  # of half a change
            file = ReadOnlyDatabase(str(path), tables, _LOOKING_SECONDS)
            try:
                with file.connection() as db:
                    answer = question(db)
                if file.is_undisturbed:
                    return answer
            finally:
                file.close()
    return None


@contextmanager
def open_read_only(path: Path, patience: float = 5.0) -> Iterator[sqlite3.Connection]:
    """Yield a connection to another program's file; what can't be read is a `StorageError`."""
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


def _close_before_forks(file: SqliteFile) -> None:
    with _forking:
        _watch()
        _files.add(file)


@cache
def _watch() -> None:
    os.register_at_fork(before=_stop, after_in_parent=_go_on, after_in_child=_go_on)


def _stop() -> None:
    _forking.acquire()
    for file in tuple(_files):
        file._lock.acquire()  # noqa: SLF001 - of this module
        file.disconnect()
        _stopped.append(file)


def _go_on() -> None:
    if not _forking.locked():
        return  # forked by something that does not tell Python before
    while _stopped:
        _stopped.pop()._lock.release()  # noqa: SLF001 - of this module
    _forking.release()
