"""An outbox in a file of SQLite, for any number of threads and processes of one machine."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.context.outbox import schema
from perdure.context.outbox.events import (
    LEASE_SECONDS,
    Clock,
    OutboxStore,
    Siblings,
    check_event_of,
    check_worker,
    from_micros,
    kept_error,
    lease_end,
    lost,
    micros,
    no_siblings,
    utc_now,
)
from perdure.files import Closing
from perdure.model import EventStatus, EventType, OutboxEvent, check_owner_space
from perdure.model.uri import check_id
from perdure.model.values import moment
from perdure.sqlite import DatabaseFile

Row = tuple[Any, ...]

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode


class SqliteOutbox(Closing, OutboxStore):
    """An `OutboxStore` that survives the process.

    A power cut may take the newest changes: what events are about is in a log that the index
    follows. What is deleted of a tenant stays deleted.
    """

    def __init__(
        self,
        path: str,
        *,
        clock: Clock = utc_now,
        siblings: Siblings = no_siblings,
    ) -> None:
        super().__init__(clock=clock, siblings=siblings)
        self._file = DatabaseFile(path, schema.TABLES)

    def close(self) -> None:
        """Let go of the file; every other verb is `ClosedError` from now on."""
        self._file.close()

    def _add(self, events: Sequence[OutboxEvent]) -> None:
        rows = [_row(event) for event in events]
        with self._file.changing(outlasts_power=False) as db:
            db.executemany(schema.ADD, rows)

    # ------------------------------------------------------------ work
    def list_pending(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        return self._listed(schema.PENDING, account_id)

    def list_unfinished(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        return self._listed(schema.UNFINISHED, account_id)

    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        return self._lease(schema.ACQUIRE, event, node_uri, worker_id, timeout_seconds)

    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        return self._lease(schema.EXTEND, event, node_uri, worker_id, timeout_seconds)

    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        self._change(schema.RELEASE, event, node_uri, worker_id)

    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        self._lease(schema.MARK, event, node_uri, None, LEASE_SECONDS)

    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        self._change(schema.DONE, event, node_uri, worker_id)

    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        later = None if next_retry_at is None else micros(moment(next_retry_at, "next attempt"))
        self._change(schema.RETRY, event, node_uri, worker_id, later=later, error=kept_error(error))

    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        self._change(schema.BURY, event, node_uri, worker_id)

    def _lease(
        self,
        statement: str,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str | None,
        timeout_seconds: int,
    ) -> bool:
        check_event_of(event, node_uri)
        now = self._now()
        end = lease_end(now, timeout_seconds)
        values = {"end": end, **_asked(event, worker_id, now)}
        with self._file.changing(outlasts_power=False) as db:
            return db.execute(statement, values).rowcount == 1

    def _change(
        self,
        statement: str,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str | None,
        **told: object,
    ) -> None:
        """Change an event, unless a worker asks and another has it."""
        check_event_of(event, node_uri)
        values = {**told, **_asked(event, worker_id, self._now())}
        with self._file.changing(outlasts_power=False) as db:
            changed = db.execute(statement, values).rowcount
            if changed or worker_id is None:
                return
            if db.execute(schema.HELD_BY_ANOTHER, values).fetchone():
                raise lost(event, worker_id)

    # ------------------------------------------------------------ the dead
    def list_dead(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        return self._listed(schema.DEAD, account_id)

    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        return self._of_dead(schema.REQUEUE, account_id, event_ids)

    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        return self._of_dead(schema.PURGE, account_id, event_ids)

    def _of_dead(self, statement: str, account_id: str, event_ids: Iterable[str] | None) -> int:
        account = {"account": check_id(account_id, "account")}
        if event_ids is None:
            with self._file.changing() as db:
                return db.execute(statement, account).rowcount
        chosen = [{"id": id_, **account} for id_ in dict.fromkeys(event_ids)]
        with self._file.changing() as db:
            return max(0, db.executemany(statement + schema.ONE_ID, chosen).rowcount)

    def count(self, account_id: str) -> tuple[int, int, datetime | None]:
        """Return how many events are not done, how many of these are dead, and since when."""
        with self._file.reading() as db:
            row = db.execute(schema.COUNT, {"account": check_id(account_id, "account")}).fetchone()
        waiting, dead, since = row
        return int(waiting), int(dead), None if since is None else from_micros(since)

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        """As promised; and no byte of it is left in a file, nor of what was done before."""
        return self._forget(schema.DELETE_ACCOUNT, account=check_id(account_id, "account"))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """As promised; and no byte of it is left in a file, nor of what was done before."""
        account, owner = check_id(account_id, "account"), check_owner_space(owner_space)
        return self._forget(schema.DELETE_OWNER, account=account, owner=owner)

    def forget_places(self, account_id: str, uris: Iterable[str]) -> int:
        """Remove the events that are about these places or tell of them, down to the last byte."""
        account = check_id(account_id, "account")
        with self._file.changing() as db:
            asked = [{"account": account, "uri": uri} for uri in uris]
            deleted = db.executemany(schema.DELETE_TELLING, asked).rowcount
        self._file.wipe()
        return max(0, deleted)

    def _forget(self, statement: str, **values: str) -> int:
        with self._file.changing() as db:
            deleted = db.execute(statement, values).rowcount
        self._file.wipe()
        return deleted

    # ------------------------------------------------------------ rows
    def _listed(self, query: str, account_id: str) -> list[tuple[str, OutboxEvent]]:
        values = {"account": check_id(account_id, "account"), "now": self._now()}
        with self._file.reading() as db:
            rows = db.execute(query, values).fetchall()
        try:
            return [(event.uri, event) for event in map(_event, rows)]
        except (ValueError, TypeError, OverflowError) as error:
            raise self._file.damage(f"an event can't be understood ({error})") from error


def _asked(event: OutboxEvent, worker_id: str | None, now: int) -> dict[str, object]:
    worker = None if worker_id is None else check_worker(worker_id)
    return {"id": event.event_id, "account": event.account_id, "worker": worker, "now": now}


def _row(event: OutboxEvent) -> Row:
    return (
        event.event_id,
        event.event_type.value,
        event.uri,
        event.account_id,
        event.owner_space,
        _encoded(event.payload),
        micros(event.created_at),
    )


def _event(row: Row) -> OutboxEvent:
    id_, kind, uri, account, owner, payload, created_at, status, retries, later, error = row
    return OutboxEvent(
        event_id=id_,
        event_type=EventType(kind),
        uri=uri,
        account_id=account,
        owner_space=owner,
        payload=json.loads(payload),
        created_at=from_micros(created_at),
        status=EventStatus(status),
        retry_count=retries,
        next_retry_at=None if later is None else from_micros(later),
        last_error=error,
    )
