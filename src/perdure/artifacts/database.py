"""The SQLite file of a catalogue: whole or thrown away, and changed by one process at a time.

It is never synced. A process that ends, in whatever way, leaves it right; only a power cut can
spoil it. So it is checked whole when it is first opened after a start of the machine.

There is no write-ahead log: with one, a connection holds locks while it rests, and a process that
forks and opens the file for itself believes that it has them too, and loses what it writes.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from hashlib import sha256
from typing import Any, NamedTuple

from perdure.artifacts import canonical
from perdure.artifacts.artifact import literal_structure
from perdure.artifacts.canonical import Value
from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.disk import FolderLock, boot_name, take_in_time
from perdure.artifacts.entry import Bind, Lift, Put, Register, Result, Sweep, Tombstone
from perdure.artifacts.named import VERSION
from perdure.artifacts.state import Logged
from perdure.errors import DamageError, LockTimeout
from perdure.sqlite import InMemoryDatabase, Schema, SqliteFile, discard, immediate_transaction

_TABLES = Schema(
    name="the catalogue",
    version=VERSION,
    statements=(
        # A name is in two: its last two segments, and the folder that they are in.
        "CREATE TABLE folders (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
        """CREATE TABLE binds (folder INTEGER, name TEXT, position INTEGER, "commit" INTEGER,
       cid BLOB, circumstances INTEGER, PRIMARY KEY (folder, name, position)) WITHOUT ROWID""",
        # For the names bound since a position; without it every name is read.
        "CREATE INDEX binds_by_position ON binds (position)",
        # By the first bytes of their hash; most binds say the same.
        "CREATE TABLE circumstances (id INTEGER PRIMARY KEY, encoded BLOB)",
        """CREATE TABLE structures (sid BLOB, position INTEGER, encoded BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
        # By the first bytes of the SID. Without a CID, a bind of the same commit has it.
        """CREATE TABLE literals (sid INTEGER, position INTEGER, cid BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
        """CREATE TABLE results (sid BLOB, position INTEGER, cid BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
        "CREATE TABLE commits (position INTEGER PRIMARY KEY, time INTEGER)",
        "CREATE TABLE hidings (position INTEGER PRIMARY KEY)",
        """CREATE TABLE facts (history BLOB, cursor INTEGER, time INTEGER, bound INTEGER,
       rows INTEGER, total INTEGER, seen_on TEXT)""",
        "INSERT INTO facts VALUES (x'', 0, 0, 0, 0, 0, '')",
        f"PRAGMA user_version = {VERSION}",
    ),
    loss="it is made again from the log",
)
_INSERTS = {
    "binds": 'INSERT INTO binds (position, folder, name, "commit", cid, circumstances) '
    "VALUES (?, (SELECT id FROM folders WHERE name = ?), ?, ?, ?, ?)",
    "literals": "INSERT INTO literals (position, sid, cid) VALUES (?, ?, ?)",
    "structures": "INSERT INTO structures (position, sid, encoded) VALUES (?, ?, ?)",
    "results": "INSERT INTO results (position, sid, cid) VALUES (?, ?, ?)",
    "commits": "INSERT INTO commits (position, time) VALUES (?, ?)",
    "hidings": "INSERT INTO hidings (position) VALUES (?)",
}
_TOTALS = """SELECT sum(rows), sum(total) FROM (
    SELECT count("commit") AS rows, coalesce(sum(position), 0) AS total FROM binds
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM structures
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM literals
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM results
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM commits
    UNION ALL SELECT count(*), coalesce(sum(position), 0) FROM hidings)"""
# What the index has not is counted in the table.
_STORED = 'SELECT count("commit"), sum(position) FROM binds'
_INDEXED = "SELECT count(*), sum(position) FROM binds INDEXED BY binds_by_position"
_OFF = 0
_LONGEST_PAUSE = 0.01

Row = tuple[Any, ...]
"""Of some table; first the position."""


class Facts(NamedTuple):
    history: bytes
    cursor: int
    """The last position that was taken in."""
    time: int
    """That of the last commit."""
    bound: int
    """The last position at which a name was bound."""
    rows: int
    total: int
    """The sum of all positions. Rows are only ever added, so the two show if one is missing."""
    seen_on: str
    """The start of the machine, and the file, for which it was found whole."""


class Database(SqliteFile):
    """The file. Where it can't be changed, it is read as it is."""

    journal, levels = "TRUNCATE", (_OFF, _OFF)

    def __init__(self, path: str, patience: float) -> None:
        self.followed: Facts | None = None
        """How far the log was followed through this connection."""
        super().__init__(path, _TABLES, patience)

    def _open(self) -> sqlite3.Connection:
        self.followed = None  # it may be another file
        return super()._open()

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Make sure that the tables are there, and whole."""
        super()._prepare(db)
        db.execute("PRAGMA cell_size_check = ON")
        here = f"{_boot()} {self.identity()}"
        if self._facts(db).seen_on != here:
            with self._locked(), immediate_transaction(db):
                self._check_whole(db)
                db.execute("UPDATE facts SET seen_on = ?", (here,))

    def _create_tables(self, db: sqlite3.Connection) -> None:
        with self._locked():
            super()._create_tables(db)

    def _too_new(self, version: int) -> DamageError:
        return self.damage_error(f"it is of version {version}")

    def _check_whole(self, db: sqlite3.Connection) -> None:
        facts = self._facts(db)
        if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise self.damage_error("it is not whole")
        # `quick_check` does not compare an index with its table.
        same = db.execute(_INDEXED).fetchall() == db.execute(_STORED).fetchall()
        if not same or db.execute(_TOTALS).fetchall() != [(facts.rows, facts.total)]:
            raise self.damage_error("rows are missing")

    def _facts(self, db: sqlite3.Connection) -> Facts:
        rows = db.execute("SELECT * FROM facts").fetchall()
        if len(rows) != 1:
            raise self.damage_error("it does not tell how far it goes")
        return Facts(*rows[0])

    def facts(self) -> Facts:
        with self.connection() as db:
            return self._facts(db)

    def ask(self, query: str, parameters: Mapping[str, object] | tuple[object, ...]) -> list[Any]:
        with self.connection() as db:
            return db.execute(query, parameters).fetchall()

    # ------------------------------------------------------------ changing
    def take_in(self, batch: Iterable[Logged], history: bytes) -> Facts:
        """Add what follows on the cursor; what another process has added is passed over."""
        with self._errors_explained(), self._locked(), self.transaction() as db:
            facts = self._facts(db)
            if facts.history != history and facts.cursor:
                raise self.damage_error("it is of another history")
            fresh = []
            for logged in batch:
                if logged.position > facts.cursor:
                    fresh.append(logged)
                elif logged.position == facts.cursor and logged.time != facts.time:
                    raise self.damage_error("it is of another log")
            if not fresh or fresh[-1].position != facts.cursor + len(fresh):  # some are left out
                return facts
            return _add(db, fresh, facts._replace(history=history))

    def remove(self) -> None:
        """Remove the file, unless another one has taken its place."""
        with suppress(LockTimeout), self._locked():
            if self.is_in_place:
                discard(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others from changing the file, or one that takes its place: its journal is named."""
        take = partial(FolderLock.take, f"{self.path}-lock")
        lock = take_in_time(take, self._patience, _LONGEST_PAUSE)
        if lock is None:
            raise LockTimeout(f"{self._name} is in use by another process. Fix: wait for it.")
        try:
            yield
        finally:
            lock.release()


class MemoryDatabase(InMemoryDatabase, Database):
    """The same in memory."""

    def __init__(self) -> None:
        super().__init__("", 0)

    def remove(self) -> None: ...

    @contextmanager
    def _locked(self) -> Iterator[None]:
        yield


def halves(name: str) -> tuple[str, str]:
    """Return the folder of a name, with a slash at its end, and its last two segments."""
    at = name.rfind("/", 0, max(name.rfind("/"), 0)) + 1
    return name[:at], name[at:]


def _add(db: sqlite3.Connection, entries: list[Logged], facts: Facts) -> Facts:
    circumstances: dict[int, bytes] = {}
    rows = _rows(entries, circumstances)
    folders = {(folder,) for _, folder, *_ in rows.get("binds", ())}
    db.executemany("INSERT OR IGNORE INTO folders (name) VALUES (?)", folders)
    db.executemany("INSERT OR IGNORE INTO circumstances VALUES (?, ?)", circumstances.items())
    for table, values in rows.items():
        db.executemany(_INSERTS[table], values)
    added = [row[0] for values in rows.values() for row in values]
    now = facts._replace(
        cursor=entries[-1].position,
        time=entries[-1].time,
        bound=rows["binds"][-1][0] if "binds" in rows else facts.bound,
        rows=facts.rows + len(added),
        total=facts.total + sum(added),
    )
    db.execute(
        "UPDATE facts SET history = ?, cursor = ?, time = ?, bound = ?, rows = ?, total = ?, "
        "seen_on = ?",
        now,
    )
    return now


@cache
def _boot() -> str:
    """Name this start of the machine; where nothing does, every process is a start of its own."""
    return boot_name() or os.urandom(16).hex()


def short(digest: bytes) -> int:
    """Return the number that the last bytes of a hash, or of what ends with it, are."""
    return int.from_bytes(digest[-8:], "big", signed=True)


def _packed(circumstances: Mapping[str, Value]) -> tuple[int, bytes]:
    """Return the number of some circumstances, and how they are encoded."""
    items = tuple(circumstances.items())
    is_plain = all(type(each) is str for _, each in items)  # else some that are equal may differ
    return _encoded(items) if is_plain else _encoded.__wrapped__(items)


@lru_cache(maxsize=256)
def _encoded(items: tuple[tuple[str, Value], ...]) -> tuple[int, bytes]:
    encoded = canonical.encode(dict(items))
    return short(sha256(encoded).digest()), encoded


def literal_sid(algorithm: Hash, content: bytes) -> bytes:
    """Return what `literal_structure` says, many times as fast."""
    named, encoded = _literal_beginning(algorithm)
    return named + algorithm.digest(encoded + content)


@cache
def _literal_beginning(algorithm: Hash) -> tuple[bytes, bytes]:
    """Return how the SID of a literal begins, and how what is encoded does: its CID comes last."""
    content = CID(bytes(32), algorithm)
    literal = literal_structure(content)
    return bytes(literal.sid)[:-32], literal.encoded[: -len(bytes(content))]


def _rows(entries: Sequence[Logged], packed: dict[int, bytes]) -> dict[str, list[Row]]:
    """Return what to add to the tables that get anything, and put circumstances into `packed`."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    bound = {(each.commit, each.entry.cid) for each in entries if isinstance(each.entry, Bind)}
    for logged in entries:
        position = logged.position
        match logged.entry:
            case Bind(name, cid, circumstances):
                content = None if cid is None else bytes(cid)
                number, packed[number] = _packed(circumstances)
                rows["binds"].append((position, *halves(name), logged.commit, content, number))
            case Put(cid, _, _, _):  # which registers the literal of that content
                content = bytes(cid)
                sid = short(literal_sid(cid.hash, content))
                is_bound = (logged.commit, cid) in bound
                rows["literals"].append((position, sid, None if is_bound else content))
            case Register(sid, encoded):
                rows["structures"].append((position, bytes(sid), encoded))
            case Result(sid, cid):
                rows["results"].append((position, bytes(sid), bytes(cid)))
            case Tombstone() | Lift() | Sweep():
                rows["hidings"].append((position,))
        if position == logged.commit:
            rows["commits"].append((position, logged.time))
    return rows
