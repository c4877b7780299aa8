"""The files of the accounts: opened when they are needed, and a few dozen kept open."""

import fcntl
import os
import re
import sqlite3
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perdure.errors import (
    ClosedError,
    DamageError,
    InvalidValueError,
    PerdureError,
    StorageUnavailableError,
    storage_error,
)
from perdure.files import Quarantine, set_aside
from perdure.index.account import schema
from perdure.index.account.rows import KnownRows
from perdure.model.uri import name_of, segment_of
from perdure.sqlite import InMemoryDatabase, SqliteFile

if TYPE_CHECKING:
    from perdure.index.account.matrix import Matrix
    from perdure.index.account.rows import Change


TURN = ".making"
_COPY = ".vectors"
UNFINISHED = ".unfinished"
_AN_HOUR = 3600
Answer = TypeVar("Answer")
SUFFIX = ".sqlite"
MOST_OPEN = 32
_CACHE_KIB = 32_768
_ATTEMPTS = 5
_RETIRED = b"perdure: retired"


@contextmanager
def turn(path: Path, *, wait: bool) -> Iterator[bool]:
    """Take the turn, if told to after whoever has it; say whether it is ours."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _taken(path, wait=wait)
    except OSError as error:
        raise storage_error(error, str(path.parent), path.name) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # before it is let go: who waits sees that it is another file
        os.close(descriptor)


def clear(path: Path) -> None:
    """Remove what somebody left who died, unless another one has the turn by now."""
    if path.exists():
        with turn(path, wait=False):
            pass


def _taken(path: Path, *, wait: bool) -> int | None:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


def copy_of(database: Path, dimension: int) -> Path:
    return database.with_name(f"{database.stem}.{dimension}{_COPY}")


def remove_copies(database: Path) -> None:
    """Remove all copies of a database, also those that somebody is about to finish."""
    for path in copies(database):
        path.unlink(missing_ok=True)


def remove_unfinished(database: Path) -> None:
    for path in copies(database):
        if path.suffix == UNFINISHED and _age(path) > _AN_HOUR:
            path.unlink(missing_ok=True)


def finished_copies(database: Path) -> list[Path]:
    return [path for path in copies(database) if path.suffix == _COPY]


def copies(database: Path) -> list[Path]:
    """Return the copies of this database, and not those of one whose name begins like its own."""
    name = re.compile(
        rf"{re.escape(database.stem)}\.\d+{re.escape(_COPY)}(\.[0-9a-f]+{re.escape(UNFINISHED)})?"
    )
    if not database.parent.is_dir():
        return []
    return [path for path in database.parent.iterdir() if name.fullmatch(path.name)]


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


class AccountFile:
    """The database of one account, and what this process knows of its vectors."""

    def __init__(self, path: Path, account: str, kind: type[SqliteFile] = SqliteFile) -> None:
        self.account = account
        self.path = path
        self.matrices: dict[int, Matrix] = {}
        """By dimension. Whoever reads may change it: there is one reader at a time."""
        self.known = KnownRows()
        self.passages: tuple[Change, int] | None = None
        """How many there were, as of a change."""
        self._file = kind(str(path), schema.TABLES)
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
        with self.at_once() as db, self.understood():
            yield db

    @contextmanager
    def at_once(self) -> Iterator[sqlite3.Connection]:
        """As `reading`; who asks several questions sees to it that each answer is understood."""
        with self._file.connection() as db:
            if db is not self._tuned:
                self._tune(db)
            db.execute("BEGIN")
            try:
                yield db
            finally:
                with suppress(sqlite3.Error):  # it was ended by an error
                    db.execute("ROLLBACK")

    @contextmanager
    def changing(self, *, outlasts_power: bool = True) -> Iterator[sqlite3.Connection]:
        """Change the file; while this lasts nobody can take it away."""
        with self._file.transaction(durable=outlasts_power) as db, self.understood():
            if db is not self._tuned:
                self._tune(db)
            if not self.is_in_place:
                raise ClosedError(f"{str(self.path)!a} was deleted. Fix: do it again.")
            yield db

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Tell of rows that make no sense as of damage."""
        try:
            yield
        except InvalidValueError as error:
            raise self.damage(f"a record can't be ({error})") from error
        except PerdureError:
            raise
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise self.damage(f"something can't be understood ({error})") from error

    def wipe(self) -> None:
        self._file.wipe()

    def damage(self, what: str) -> DamageError:
        return self._file.damage_error(what)

    def retire(self) -> None:
        """Remove the file, if nobody else has it open; who has it would go on with no name to it.

        The first bytes are overwritten, so that one who was about to open it sees that it is none.
        """
        with self._file.connection() as db:
            with suppress(sqlite3.OperationalError):  # somebody has it open
                db.execute("PRAGMA journal_mode = DELETE")
                db.execute("BEGIN EXCLUSIVE")
                if db.execute("PRAGMA journal_mode").fetchone() == ("delete",):
                    retire(self.path)
            with suppress(sqlite3.Error):  # there may be nothing left to end
                db.execute("ROLLBACK")
        self.close()

    def _tune(self, db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._tuned = db


def retire(path: Path) -> None:
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


class AccountFiles:
    """The files of all accounts in a folder. An account that nothing was put into has none."""

    def __init__(
        self,
        folder: str,
        most_open: int = MOST_OPEN,
        *,
        way: Quarantine | None = None,
        kind: type[SqliteFile] = SqliteFile,
    ) -> None:
        self._kind = kind
        self._folder = Path(folder).absolute()
        self._way = way
        self._most = most_open
        self._open: OrderedDict[str, AccountFile] = OrderedDict()
        self._lock = threading.RLock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            files = list(self._open.values())
            self._open.clear()
        for file in files:
            file.close()

    def path_of(self, account: str) -> Path:
        return self._folder / f"{segment_of(account)}{SUFFIX}"

    def size_of(self, account: str) -> int:
        """Return how many bytes the files of an account have: the database, its log and copies."""
        path = self.path_of(account)
        return sum(map(_size, (path, path.with_name(f"{path.name}-wal"), *copies(path))))

    def accounts(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        found = [name_of(path.stem) for path in self._folder.iterdir() if path.suffix == SUFFIX]
        return sorted(account for account in found if account is not None)

    # ------------------------------------------------------------ use
    def ask(
        self, account: str, question: Callable[[AccountFile], Answer], absent: Answer
    ) -> Answer:
        """Ask an account's file; if there is none, the answer is that of an empty one."""
        if not os.path.lexists(self.path_of(account)):
            self._refuse_if_closed()
            self.free_way()
            self._let_go(account)
            return absent
        return self.use(account, question)

    def use(self, account: str, action: Callable[[AccountFile], Answer]) -> Answer:
        """Do something with an account's file, or its successor; it is made if there is none."""
        for _ in range(_ATTEMPTS):
            file = self._opened(account)
            try:
                return action(file)
            except (ClosedError, DamageError, StorageUnavailableError):
                if self._is_current(account, file):
                    raise
                self._let_go(account)
        return action(self._opened(account))

    def free_way(self) -> None:
        """Put aside what stands where the folder is to be, if it is ours to put aside."""
        if self._way is not None:
            self._way.clear_folder(self._folder)

    def discard(self, account: str) -> None:
        """Remove a file that can't be emptied, with all that is in it, whoever has it open."""
        self._let_go(account)
        path = self.path_of(account)
        set_aside(path, unless=Path.is_file)
        retire(path)
        for log in ("-wal", "-shm"):
            path.with_name(path.name + log).unlink(missing_ok=True)

    def _let_go(self, account: str) -> None:
        with self._lock:
            file = self._open.pop(account, None)
        if file is not None:
            file.close()

    def _is_current(self, account: str, file: AccountFile) -> bool:
        with self._lock:
            return self._open.get(account) is file and file.is_in_place

    def _opened(self, account: str) -> AccountFile:
        with self._lock:
            if self._closed:
                self._refuse_if_closed()
            file = self._open.get(account)
            if file is None:
                file = self._open[account] = self._open_anew(account)
            self._open.move_to_end(account)
            idle = list(self._open.values())[: -self._most]
            for each in idle:
                del self._open[each.account]
        for each in idle:
            each.close()
        return file

    def _open_anew(self, account: str) -> AccountFile:
        self.free_way()
        path = self.path_of(account)
        try:
            return AccountFile(path, account, self._kind)
        except DamageError:  # unless it is just being removed, it is damaged the next time too
            return AccountFile(path, account, self._kind)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError(f"the index {str(self._folder)!a} was closed. Fix: open it again.")


class AccountsInMemory(AccountFiles):
    """The databases of accounts without a file, until they are closed. All stay open."""

    def __init__(self) -> None:
        super().__init__(os.devnull, sys.maxsize, kind=InMemoryDatabase)

    def accounts(self) -> list[str]:
        with self._lock:
            return sorted(self._open)

    def ask(
        self, account: str, question: Callable[[AccountFile], Answer], absent: Answer
    ) -> Answer:
        self._refuse_if_closed()
        return self.use(account, question) if account in self.accounts() else absent
