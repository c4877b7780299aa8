"""The table of an outbox. Times are microseconds; `seq` is the order of registration."""

# ruff: noqa: S608 - the statements are put together from constants of this module only

import sqlite3
from pathlib import Path

from perdure.sqlite import Tables, look

VERSION = 1

_STATEMENTS = (
    # A lease without a worker is one of `mark_processing`. `ready_at` follows from the rest, so
    # that it can't contradict it: from then on the event can be worked on; never, if it is dead.
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        event_id TEXT NOT NULL UNIQUE,
        account TEXT NOT NULL,
        owner TEXT NOT NULL,
        uri TEXT NOT NULL,
        type TEXT NOT NULL,
        payload TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        dead INTEGER NOT NULL DEFAULT 0,
        retry_count INTEGER NOT NULL DEFAULT 0,
        next_retry_at INTEGER,
        last_error TEXT NOT NULL DEFAULT '',
        worker TEXT,
        lease_end INTEGER,
        ready_at INTEGER GENERATED ALWAYS AS (
            CASE WHEN dead THEN NULL ELSE coalesce(lease_end, next_retry_at, 0) END) VIRTUAL)""",
    # What is leased, to be tried later or dead lies beyond the range that is asked for.
    "CREATE INDEX waiting ON events (account, ready_at)",
    "CREATE INDEX dead ON events (account) WHERE dead = 1",
    f"PRAGMA user_version = {VERSION}",
)

TABLES = Tables(
    name="the outbox",
    version=VERSION,
    statements=_STATEMENTS,
    without="the index follows the log, so no change is lost",
)

_EVENT = (
    "event_id, type, uri, account, owner, payload, created_at, "
    "CASE WHEN dead THEN 'dead' WHEN lease_end > :now THEN 'processing' ELSE 'pending' END, "
    "retry_count, next_retry_at, last_error"
)
ADD = (
    "INSERT INTO events (event_id, type, uri, account, owner, payload, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
PENDING = (
    f"SELECT {_EVENT} FROM events INDEXED BY waiting "
    "WHERE account = :account AND ready_at <= :now ORDER BY seq"
)
UNFINISHED = f"SELECT {_EVENT} FROM events WHERE account = :account ORDER BY seq"
WAITING_URIS = "SELECT DISTINCT uri FROM events WHERE account = ? LIMIT ?"
DEAD = (
    f"SELECT {_EVENT} FROM events INDEXED BY dead "
    "WHERE account = :account AND dead = 1 ORDER BY seq"
)
COUNT = (
    "SELECT count(*), coalesce(sum(dead), 0), min(CASE WHEN dead THEN NULL ELSE created_at END) "
    "FROM events WHERE account = :account"
)

_THIS = " WHERE event_id = :id AND account = :account"
_MINE = f"{_THIS} AND (:worker IS NULL OR coalesce(lease_end, 0) <= :now OR worker = :worker)"
_END_LEASE = "worker = NULL, lease_end = NULL"

HELD_BY_ANOTHER = (
    f"SELECT 1 FROM events{_THIS} AND dead = 0 AND lease_end > :now AND worker IS NOT :worker"
)
ACQUIRE = (
    f"UPDATE events SET worker = :worker, lease_end = :end{_THIS} "
    "AND (ready_at <= :now OR (dead = 0 AND lease_end > :now AND worker = :worker))"
)
EXTEND = (
    f"UPDATE events SET lease_end = :end{_THIS} "
    "AND dead = 0 AND lease_end > :now AND worker = :worker"
)
MARK = f"UPDATE events SET worker = NULL, lease_end = :end{_THIS} AND ready_at <= :now"
RELEASE = f"UPDATE events SET {_END_LEASE}{_MINE}"
DONE = f"DELETE FROM events{_MINE}"
BURY = f"UPDATE events SET dead = 1, {_END_LEASE}{_MINE}"
RETRY = (
    f"UPDATE events SET retry_count = retry_count + 1, next_retry_at = :later, "
    f"last_error = :error, {_END_LEASE}{_MINE} AND dead = 0"
)
_DEAD_OF = " WHERE account = :account AND dead = 1"
REQUEUE = (
    f"UPDATE events SET dead = 0, retry_count = 0, next_retry_at = NULL, last_error = ''{_DEAD_OF}"
)
PURGE = f"DELETE FROM events{_DEAD_OF}"
ONE_ID = " AND event_id = :id"
DELETE_ACCOUNT = "DELETE FROM events WHERE account = :account"
DELETE_OWNER = "DELETE FROM events WHERE account = :account AND owner = :owner"
DELETE_TELLING = (
    "DELETE FROM events WHERE account = :account "
    "AND (uri = :uri OR instr(payload, :uri) OR instr(last_error, :uri))"
)


def waiting_uris(path: Path, account_id: str, most: int) -> list[str] | None:
    """Return so many URIs that wait or failed, without a change to the file; None if unknown."""

    def read(db: sqlite3.Connection) -> list[str]:
        return [uri for (uri,) in db.execute(WAITING_URIS, (account_id, most))]

    return look(path, TABLES, read) if path.exists() else []
