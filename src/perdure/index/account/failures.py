"""The events of an index that were claimed or failed: leases, retries and dead letters.

What waits is in the log; a row is written when an event of it is claimed, fails, or is done before
the index has passed it, and for an event that no commit tells of. Times are microseconds.
"""

# ruff: noqa: S608 - the statements are put together from constants of this module only

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

Answer = TypeVar("Answer")
DEAD, DONE = 1, 2
"""What `state` says; 0 if an event waits, or is leased."""
OF_LOG = "log-"
"""Begins the id of an event of the log; its commit follows, with a fixed number of digits."""

_EVENT = (
    "event_id, type, uri, account, owner, payload, created_at, "
    f"CASE WHEN state = {DEAD} THEN 'dead' WHEN lease_end > :now THEN 'processing' "
    "ELSE 'pending' END, retry_count, next_retry_at, last_error"
)
# An event of the log that the index has passed was done by whoever passed it, unless it failed.
_OPEN = (
    f"account = :account AND state != {DONE} AND (position IS NULL OR position > :cursor "
    f"OR retry_count OR state = {DEAD})"
)
ADD = (
    "INSERT OR IGNORE INTO events "
    "(event_id, type, uri, account, owner, payload, created_at, position) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
PENDING = f"SELECT {_EVENT} FROM events WHERE {_OPEN} AND ready_at <= :now ORDER BY seq"
UNFINISHED = f"SELECT {_EVENT} FROM events WHERE {_OPEN} ORDER BY seq"
BURIED = f"SELECT {_EVENT} FROM events WHERE account = :account AND state = {DEAD} ORDER BY seq"
ANY = "SELECT 1 FROM events LIMIT 1"
_AHEAD = f"event_id > :passed AND event_id < '{OF_LOG}~'"
"""Of a commit that the index has not passed: ids of the log are in its order."""
CLAIMED = f"SELECT event_id FROM events WHERE +account = :account AND {_AHEAD}"

_THIS = " WHERE event_id = :id AND account = :account"
_MINE = f"{_THIS} AND (:worker IS NULL OR coalesce(lease_end, 0) <= :now OR worker = :worker)"
_END_LEASE = "worker = NULL, lease_end = NULL"

HELD_BY_ANOTHER = (
    f"SELECT 1 FROM events{_THIS} AND state = 0 AND lease_end > :now AND worker IS NOT :worker"
)
ACQUIRE = (
    f"UPDATE events SET worker = :worker, lease_end = :end{_THIS} "
    "AND (ready_at <= :now OR (state = 0 AND lease_end > :now AND worker = :worker))"
)
EXTEND = (
    f"UPDATE events SET lease_end = :end{_THIS} "
    "AND state = 0 AND lease_end > :now AND worker = :worker"
)
MARK = f"UPDATE events SET worker = NULL, lease_end = :end{_THIS} AND ready_at <= :now"
RELEASE = f"UPDATE events SET {_END_LEASE}{_MINE}"
FINISH = f"UPDATE events SET state = {DONE}, {_END_LEASE}{_MINE}"
DROP_DONE = (
    f"DELETE FROM events WHERE account = :account AND ready_at IS NULL AND state = {DONE} "
    f"AND NOT ({_AHEAD})"
)
BURY = f"UPDATE events SET state = {DEAD}, {_END_LEASE}{_MINE}"
RETRY = (
    f"UPDATE events SET retry_count = retry_count + 1, next_retry_at = :later, "
    f"last_error = :error, {_END_LEASE}{_MINE} AND state = 0"
)
_DEAD_OF = f" WHERE account = :account AND state = {DEAD}"
REQUEUE = (
    f"UPDATE events SET state = 0, retry_count = 0, next_retry_at = NULL, last_error = '', "
    f"position = NULL{_DEAD_OF}"
)
PURGE = f"UPDATE events SET state = {DONE}{_DEAD_OF}"
ONE_ID = " AND event_id = :id"
DELETE_ACCOUNT = "DELETE FROM events WHERE account = :account"
DELETE_OWNER = f"{DELETE_ACCOUNT} AND owner = :owner"
DELETE_TELLING = (
    f"{DELETE_ACCOUNT} AND (uri = :uri OR instr(payload, :uri) OR instr(last_error, :uri))"
)


class EventTable(Protocol):
    """A database that has the table."""

    def look_at_events(
        self, account_id: str, question: Callable[[sqlite3.Connection], Answer], absent: Answer
    ) -> Answer:
        """Ask it; if there is no database yet, the answer is that of an empty one."""

    def change_events(
        self,
        account_id: str,
        action: Callable[[sqlite3.Connection], Answer],
        *,
        outlasts_power: bool = False,
    ) -> Answer:
        """Change it in one transaction."""

    def wipe_events(self, account_id: str) -> None:
        """Leave no byte of what was deleted."""
