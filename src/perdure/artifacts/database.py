"""The SQLite file of a catalogue: whole or thrown away, and changed by one process at a time.

It is never synced. A process that ends, in whatever way, leaves it right; only a power cut can
spoil it. So it is checked whole when it is first opened after a start of the machine.

There is no write-ahead log: with one, a connection holds locks while it rests, and a process that
forks and opens the file for itself believes that it has them too, and loses what it writes.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from perdure.artifacts import canonical
from perdure.artifacts.artifact import literal_structure
from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.disk import FolderLock, boot_name, take_in_time
from perdure.artifacts.entry import Bind, Lift, Put, Register, Result, Sweep, Tombstone
from perdure.artifacts.state import Logged
from perdure.database import transaction, version_of

_VERSION = 3
_SCHEMA = (
    """CREATE TABLE binds (name TEXT, position INTEGER, "commit" INTEGER, time INTEGER, cid BLOB,
       circumstances BLOB, PRIMARY KEY (name, position)) WITHOUT ROWID""",
    # For what was said since a position; otherwise every name is looked at.
    "CREATE INDEX binds_by_position ON binds (position)",
    # Of a literal, the CID instead of what is encoded.
    """CREATE TABLE structures (sid BLOB, position INTEGER, encoded BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
    """CREATE TABLE results (sid BLOB, position INTEGER, cid BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
    "CREATE TABLE commits (position INTEGER PRIMARY KEY, time INTEGER)",
    "CREATE TABLE hidings (position INTEGER PRIMARY KEY)",
    """CREATE TABLE facts (history BLOB, cursor INTEGER, time INTEGER, bound INTEGER,
       rows INTEGER, total INTEGER, seen_on TEXT)""",
    "INSERT INTO facts VALUES (x'', 0, 0, 0, 0, 0, '')",
    f"PRAGMA user_version = {_VERSION}",
)
_INSERTS = {
    "binds": 'INSERT INTO binds (position, name, "commit", time, cid, circumstances) '
    "VALUES (?, ?, ?, ?, ?, ?)",
    "structures": "INSERT INTO structures (position, sid, encoded) VALUES (?, ?, ?)",
    "results": "INSERT INTO results (position, sid, cid) VALUES (?, ?, ?)",
    "commits": "INSERT INTO commits (position, time) VALUES (?, ?)",
    "hidings": "INSERT INTO hidings (position) VALUES (?)",
}
_TOTALS = """SELECT sum(rows), sum(total) FROM (
    SELECT count("commit") AS rows, coalesce(sum(position), 0) AS total FROM binds
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM structures
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM results
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM commits
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM hidings)"""
# What the index has not is counted in the table.
_STORED = 'SELECT count("commit"), sum(position) FROM binds'
_INDEXED = "SELECT count(*), sum(position) FROM binds INDEXED BY binds_by_position"
_DAMAGED = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LONGEST_PAUSE = 0.01

Row = tuple[Any, ...]
"""Of some table; first the position."""


class WrongFileError(Exception):
    """The file is not whole, or of another version or history."""


class NoFileError(Exception):
    """The file can't be had for changing it, or is no longer in its place."""


def tells_of_damage(error: Exception) -> bool:
    """Whether the file should be thrown away; if not, it can't be had, and should be left."""
    if isinstance(error, sqlite3.DatabaseError):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
    return isinstance(error, WrongFileError | UnicodeDecodeError)  # SQLite quotes its schema


class Facts(NamedTuple):
    history: bytes
    cursor: int
    """The last position that was taken in."""
    time: int
    """That of the last commit."""
    bound: int
    """The last position at which something was said of a name."""
    rows: int
    total: int
    """The sum of all positions. Rows are only ever added, so the two show if one is missing."""
    seen_on: str
    """The start of the machine, and the file, for which it was found whole."""


class Database:
    """A connection to the file, or without a path to memory."""

    def __init__(self, path: str | None, patience: float) -> None:
        self.followed: Facts | None = None
        """How far whoever uses this connection has followed the log."""
        self._file = None if path is None else Path(path)
        self._patience = patience
        if self._file is not None:
            with suppress(OSError):  # if it matters, SQLite will say so
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600)
        self.connection = sqlite3.connect(
            path or ":memory:", patience, isolation_level=None, check_same_thread=False
        )
        self._identity = self._identify()

    def prepare(self) -> None:
        """Make sure that the tables are there, and whole."""
        for pragma in ("journal_mode = TRUNCATE", "synchronous = OFF", "cell_size_check = ON"):
            self.connection.execute(f"PRAGMA {pragma}")
        here = f"{_boot()} {self._identity}"
        if version_of(self.connection) == _VERSION and self.facts().seen_on == here:
            return
        with self.changing():
            if version_of(self.connection) == _VERSION:
                self._check()
            else:
                self._create()
            self.connection.execute("UPDATE facts SET seen_on = ?", (here,))

    def _create(self) -> None:
        if self.connection.execute("SELECT * FROM sqlite_master").fetchall():
            raise WrongFileError
        for statement in _SCHEMA:
            self.connection.execute(statement)

    def _check(self) -> None:
        facts = self.facts()
        if self.connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise WrongFileError
        if self.connection.execute(_TOTALS).fetchall() != [(facts.rows, facts.total)]:
            raise WrongFileError
        # `quick_check` does not compare an index with its table.
        if self.ask(_INDEXED, ()) != self.ask(_STORED, ()):
            raise WrongFileError

    def facts(self) -> Facts:
        rows = self.connection.execute("SELECT * FROM facts").fetchall()
        if len(rows) != 1:
            raise WrongFileError
        return Facts(*rows[0])

    def ask(self, query: str, parameters: Mapping[str, object] | tuple[object, ...]) -> list[Any]:
        return self.connection.execute(query, parameters).fetchall()

    # ------------------------------------------------------------ changing
    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change the file as one who is alone with it, wholly or not at all."""
        with self._locked():
            self.refuse_unless_in_place()  # we would share a journal with another file
            with transaction(self.connection):
                yield

    def take_in(self, batch: Iterable[Logged], history: bytes) -> Facts:
        """Add what follows on the cursor; what another process has added is passed over."""
        facts = self.facts()
        if facts.history != history and facts.cursor:
            raise WrongFileError
        fresh = []
        for logged in batch:
            if logged.position > facts.cursor:
                fresh.append(logged)
            elif logged.position == facts.cursor and logged.time != facts.time:
                raise WrongFileError
        if not fresh or fresh[-1].position != facts.cursor + len(fresh):  # some are left out
            return facts
        return self._add(fresh, facts._replace(history=history))

    def _add(self, entries: list[Logged], facts: Facts) -> Facts:
        rows = _rows(entries)
        for table, values in rows.items():
            self.connection.executemany(_INSERTS[table], values)
        added = [row[0] for values in rows.values() for row in values]
        now = facts._replace(
            cursor=entries[-1].position,
            time=entries[-1].time,
            bound=rows["binds"][-1][0] if "binds" in rows else facts.bound,
            rows=facts.rows + len(added),
            total=facts.total + sum(added),
        )
        self.connection.execute(
            "UPDATE facts SET history = ?, cursor = ?, time = ?, bound = ?, rows = ?, total = ?, "
            "seen_on = ?",
            now,
        )
        return now

    def remove(self) -> None:
        """Remove the file, unless another one has taken its place."""
        if self._file is None:
            return
        with suppress(NoFileError), self._locked():
            if self.is_in_place():
                self._file.unlink(missing_ok=True)
                Path(f"{self._file}-journal").unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        take = partial(FolderLock.take, f"{self._file}-lock")
        try:
            lock = take_in_time(take, self._patience, _LONGEST_PAUSE)
        except OSError as error:
            raise NoFileError from error
        if lock is None:
            raise NoFileError
        try:
            yield
        finally:
            lock.release()

    # ------------------------------------------------------------ which file it is
    def is_in_place(self) -> bool:
        """Whether the file that we have open is the one that others would open."""
        return self._identify() == self._identity

    def refuse_unless_in_place(self) -> None:
        if not self.is_in_place():
            raise NoFileError

    def _identify(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


@cache
def _boot() -> str:
    """Name this start of the machine; where nothing does, every process is a start of its own."""
    return boot_name() or os.urandom(16).hex()


def _literal_sid(algorithm: Hash, content: bytes) -> bytes:
    """Return what `literal_structure` says, many times as fast."""
    named, encoded = _literal_beginning(algorithm)
    return named + algorithm.digest(encoded + content)


@cache
def _literal_beginning(algorithm: Hash) -> tuple[bytes, bytes]:
    """Return how the SID of a literal begins, and how what is encoded does: its CID comes last."""
    content = CID(bytes(32), algorithm)
    literal = literal_structure(content)
    return bytes(literal.sid)[:-32], literal.encoded[: -len(bytes(content))]


def _rows(entries: Iterable[Logged]) -> dict[str, list[Row]]:
    """Return what to add to the tables that get anything."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for logged in entries:
        position = logged.position
        match logged.entry:
            case Bind(name, cid, circumstances):
                content = None if cid is None else bytes(cid)
                encoded = canonical.encode(circumstances)
                row = (position, name, logged.commit, logged.time, content, encoded)
                rows["binds"].append(row)
            case Put(cid, _, _, _):  # which registers the literal of that content
                content = bytes(cid)
                rows["structures"].append((position, _literal_sid(cid.hash, content), content))
            case Register(sid, encoded):
                rows["structures"].append((position, bytes(sid), encoded))
            case Result(sid, cid):
                rows["results"].append((position, bytes(sid), bytes(cid)))
            case Tombstone() | Lift() | Sweep():
                rows["hidings"].append((position,))
        if position == logged.commit:
            rows["commits"].append((position, logged.time))
    return rows
