"""The SQLite file of a catalogue, written by one process at a time.

It is never synced. A process that ends, in whatever way, leaves it intact; only a power cut can
damage it. It is checked completely when it is first opened after the machine started.

It does not use SQLite's write-ahead log: with one, an idle connection holds locks, and a process
that forks and opens the file itself would inherit them, and lose its writes.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from hashlib import sha256
from typing import Any, NamedTuple

from perdure.artifacts.artifact import Value, encode_canonical, literal_structure
from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.disk import FolderLock, acquire_within, boot_id
from perdure.artifacts.entry import Bind, Lift, LogEntry, Put, Register, Result, Sweep, Tombstone
from perdure.artifacts.recent_names import VERSION
from perdure.errors import DamageError, LockTimeout
from perdure.sqlite import InMemoryDatabase, Schema, SqliteFile, discard, immediate_transaction

_TABLES = Schema(
    name="the catalogue",
    version=VERSION,
    statements=(
        # A name is split into its last two segments and the folder of these.
        "CREATE TABLE folders (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
        """CREATE TABLE binds (folder INTEGER, name TEXT, position INTEGER, "commit" INTEGER,
       cid BLOB, circumstances INTEGER, PRIMARY KEY (folder, name, position)) WITHOUT ROWID""",
        # For names bound since a position; without it every name is read.
        "CREATE INDEX binds_by_position ON binds (position)",
        # By the last bytes of their hash; most binds have the same.
        "CREATE TABLE circumstances (id INTEGER PRIMARY KEY, encoded BLOB)",
        """CREATE TABLE structures (sid BLOB, position INTEGER, encoded BLOB,
       PRIMARY KEY (sid, position)) WITHOUT ROWID""",
        # By the last bytes of the SID. Without a CID, a bind of the same commit has it.
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
    loss="it is built again from the log",
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
# The first counts the table, the second its index.
_STORED = 'SELECT count("commit"), sum(position) FROM binds'
_INDEXED = "SELECT count(*), sum(position) FROM binds INDEXED BY binds_by_position"
_OFF = 0
_LONGEST_PAUSE = 0.01

Row = tuple[Any, ...]
"""A row of any table; the position comes first."""


class CatalogueHeader(NamedTuple):
    """The one row of the table `facts`."""

    history: bytes
    cursor: int
    """The last position that was added."""
    time: int
    """The time of the last commit."""
    bound: int
    """The last position at which a name was bound."""
    rows: int
    total: int
    """The sum of all positions. Rows are only added, so these two show if one is missing."""
    seen_on: str
    """The boot of the machine, and the file, for which it was checked."""


class CatalogueFile(SqliteFile):
    """The database file. If it can't be written, it is read as it is."""

    journal, levels = "TRUNCATE", (_OFF, _OFF)

    def __init__(self, path: str, patience: float) -> None:
        self.followed: CatalogueHeader | None = None
        """The header when this connection last followed the log to its end."""
        super().__init__(path, _TABLES, patience)

    def _open(self) -> sqlite3.Connection:
        self.followed = None  # it may be another file
        return super()._open()

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Create the tables if necessary, and check the file once for each boot of the machine."""
        super()._prepare(db)
        db.execute("PRAGMA cell_size_check = ON")
        here = f"{_boot()} {self.identity()}"
        if self._header(db).seen_on != here:
            with self._locked(), immediate_transaction(db):
                self._check_whole(db)
                db.execute("UPDATE facts SET seen_on = ?", (here,))

    def _create_tables(self, db: sqlite3.Connection) -> None:
        with self._locked():
            super()._create_tables(db)

    def _version_error(self, version: int) -> DamageError:
        return self.damage_error(f"it is of version {version}")

    def _check_whole(self, db: sqlite3.Connection) -> None:
        header = self._header(db)
        if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise self.damage_error("it fails the check of SQLite")
        # `quick_check` does not compare an index with its table.
        same = db.execute(_INDEXED).fetchall() == db.execute(_STORED).fetchall()
        if not same or db.execute(_TOTALS).fetchall() != [(header.rows, header.total)]:
            raise self.damage_error("rows are missing")

    def _header(self, db: sqlite3.Connection) -> CatalogueHeader:
        rows = db.execute("SELECT * FROM facts").fetchall()
        if len(rows) != 1:
            raise self.damage_error("its header is missing")
        return CatalogueHeader(*rows[0])

    def header(self) -> CatalogueHeader:
        with self.connection() as db:
            return self._header(db)

    def ask(self, query: str, parameters: Mapping[str, object] | tuple[object, ...]) -> list[Any]:
        with self.connection() as db:
            return db.execute(query, parameters).fetchall()

    # ------------------------------------------------------------ changing
    def append(self, batch: Iterable[LogEntry], history: bytes) -> CatalogueHeader:
        """Add the entries after the cursor; those that another process has added are skipped."""
        with self._errors_explained(), self._locked(), self.transaction() as db:
            header = self._header(db)
            if header.history != history and header.cursor:
                raise self.damage_error("it is of another history")
            fresh = []
            for logged in batch:
                if logged.position > header.cursor:
                    fresh.append(logged)
                elif logged.position == header.cursor and logged.time != header.time:
                    raise self.damage_error("it is of another log")
            if not fresh or fresh[-1].position != header.cursor + len(fresh):  # some are missing
                return header
            return _add(db, fresh, header._replace(history=history))

    def remove(self) -> None:
        """Remove the file, unless it was replaced."""
        with suppress(LockTimeout), self._locked():
            if self.is_in_place:
                discard(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other writers of this path: SQLite's journal is found by its name."""
        take = partial(FolderLock.take, f"{self.path}-lock")
        lock = acquire_within(take, self._patience, _LONGEST_PAUSE)
        if lock is None:
            raise LockTimeout(f"{self._name} is in use by another process. Fix: wait for it.")
        try:
            yield
        finally:
            lock.release()


class CatalogueInMemory(InMemoryDatabase, CatalogueFile):
    """A catalogue in memory."""

    def __init__(self) -> None:
        super().__init__("", 0)

    def remove(self) -> None: ...

    @contextmanager
    def _locked(self) -> Iterator[None]:
        yield


def split_name(name: str) -> tuple[str, str]:
    """Return the folder of a name, with a trailing slash, and its last two segments."""
    at = name.rfind("/", 0, max(name.rfind("/"), 0)) + 1
    return name[:at], name[at:]


def _add(
    db: sqlite3.Connection, entries: list[LogEntry], header: CatalogueHeader
) -> CatalogueHeader:
    circumstances: dict[int, bytes] = {}
    rows = _rows(entries, circumstances)
    folders = {(folder,) for _, folder, *_ in rows.get("binds", ())}
    db.executemany("INSERT OR IGNORE INTO folders (name) VALUES (?)", folders)
    db.executemany("INSERT OR IGNORE INTO circumstances VALUES (?, ?)", circumstances.items())
    for table, values in rows.items():
        db.executemany(_INSERTS[table], values)
    added = [row[0] for values in rows.values() for row in values]
    now = header._replace(
        cursor=entries[-1].position,
        time=entries[-1].time,
        bound=rows["binds"][-1][0] if "binds" in rows else header.bound,
        rows=header.rows + len(added),
        total=header.total + sum(added),
    )
    db.execute(
        "UPDATE facts SET history = ?, cursor = ?, time = ?, bound = ?, rows = ?, total = ?, "
        "seen_on = ?",
        now,
    )
    return now


@cache
def _boot() -> str:
    """Return an id of this boot of the machine; if there is none, of this process."""
    return boot_id() or os.urandom(16).hex()


def short_hash(digest: bytes) -> int:
    """Return the last bytes of a hash, or of a CID, as a number."""
    return int.from_bytes(digest[-8:], "big", signed=True)


def _packed(circumstances: Mapping[str, Value]) -> tuple[int, bytes]:
    """Return the id of some circumstances, and their encoding."""
    items = tuple(circumstances.items())
    is_plain = all(
        type(each) is str for _, each in items
    )  # equal values of other types may encode differently
    return _encoded(items) if is_plain else _encoded.__wrapped__(items)


@lru_cache(maxsize=256)
def _encoded(items: tuple[tuple[str, Value], ...]) -> tuple[int, bytes]:
    encoded = encode_canonical(dict(items))
    return short_hash(sha256(encoded).digest()), encoded


def literal_sid(algorithm: Hash, content: bytes) -> bytes:
    """Return the SID of `literal_structure`, many times faster."""
    named, encoded = _literal_prefixes(algorithm)
    return named + algorithm.digest(encoded + content)


@cache
def _literal_prefixes(algorithm: Hash) -> tuple[bytes, bytes]:
    """Return the constant prefixes of a literal's SID and of its encoding, which its CID ends."""
    content = CID(bytes(32), algorithm)
    literal = literal_structure(content)
    return bytes(literal.sid)[:-32], literal.encoded[: -len(bytes(content))]


def _rows(entries: Sequence[LogEntry], packed: dict[int, bytes]) -> dict[str, list[Row]]:
    """Return the new rows by table, and add the encoded circumstances to `packed`."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    bound = {(each.commit, each.entry.cid) for each in entries if isinstance(each.entry, Bind)}
    for logged in entries:
        position = logged.position
        match logged.entry:
            case Bind(name, cid, circumstances):
                content = None if cid is None else bytes(cid)
                number, packed[number] = _packed(circumstances)
                rows["binds"].append((position, *split_name(name), logged.commit, content, number))
            case Put(cid, _, _, _):  # also registers the literal of that content
                content = bytes(cid)
                sid = short_hash(literal_sid(cid.hash, content))
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
