"""An outbox in memory: the test double of the one in SQLite."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.context.events import (
    LEASE_SECONDS,
    Clock,
    Siblings,
    check_event_of,
    check_worker,
    lease_end,
    lost,
    micros,
    no_siblings,
    stored_error,
    utc_now,
)
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.index.sql import EventTable
from perdure.model import EventStatus, OutboxEvent, check_owner_space
from perdure.model.uri import check_id
from perdure.model.values import utc_time


@dataclass(slots=True)
class _Entry:
    event: OutboxEvent
    worker: str | None = None
    """Who has the lease; None if no worker was named."""
    lease_end: int = 0

    @property
    def dead(self) -> bool:
        return self.event.status is EventStatus.DEAD

    def leased(self, now: int) -> bool:
        return self.lease_end > now

    def ready(self, now: int) -> bool:
        later = self.event.next_retry_at
        due = later is None or micros(later) <= now
        return due and not self.dead and not self.leased(now)

    def listed(self, now: int) -> OutboxEvent:
        processing = self.leased(now)
        return replace(self.event, status=EventStatus.PROCESSING) if processing else self.event

    def end_lease(self) -> None:
        self.worker, self.lease_end = None, 0


def _no_table(_: str) -> EventTable:
    raise NotImplementedError("every verb is its own")


class MemoryOutbox(OutboxStore):
    """An `OutboxStore` in memory. Any number of threads may use it."""

    def __init__(self, *, clock: Clock = utc_now, siblings: Siblings = no_siblings) -> None:
        super().__init__(_no_table, clock=clock, siblings=siblings)
        self._accounts: dict[str, dict[str, _Entry]] = {}
        self._lock = threading.RLock()

    def _add(self, events: Sequence[OutboxEvent]) -> None:
        with self._lock:
            for event in events:
                entry = self._accounts.setdefault(event.account_id, {})
                entry[event.event_id] = _Entry(event)

    # ------------------------------------------------------------ work
    def list_pending(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        now = self._now()
        return self._listed(account_id, lambda entry: entry.ready(now))

    def list_unfinished(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        return self._listed(account_id, lambda _: True)

    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        now = self._now()
        end = lease_end(now, timeout_seconds)
        check_worker(worker_id)
        with self._found(event, node_uri) as entry:
            if entry is None or entry.dead:
                return False
            own = entry.leased(now) and entry.worker == worker_id
            if not own and not entry.ready(now):
                return False
            entry.worker, entry.lease_end = worker_id, end
            return True

    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        now = self._now()
        end = lease_end(now, timeout_seconds)
        check_worker(worker_id)
        with self._found(event, node_uri) as entry:
            if entry is None or not entry.leased(now) or entry.worker != worker_id:
                return False
            entry.lease_end = end
            return True

    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        with self._own(event, node_uri, worker_id) as entry:
            if entry is not None:
                entry.end_lease()

    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        now = self._now()
        with self._found(event, node_uri) as entry:
            if entry is not None and entry.ready(now):
                entry.worker, entry.lease_end = None, lease_end(now, LEASE_SECONDS)

    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        with self._own(event, node_uri, worker_id) as entry:
            if entry is not None:
                del self._accounts[event.account_id][event.event_id]

    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        later = None if next_retry_at is None else utc_time(next_retry_at, "next attempt")
        with self._own(event, node_uri, worker_id) as entry:
            if entry is None or entry.dead:
                return
            entry.event = replace(
                entry.event,
                retry_count=entry.event.retry_count + 1,
                next_retry_at=later,
                last_error=stored_error(error),
            )
            entry.end_lease()

    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        with self._own(event, node_uri, worker_id) as entry:
            if entry is not None:
                entry.event = replace(entry.event, status=EventStatus.DEAD)
                entry.end_lease()

    # ------------------------------------------------------------ the dead
    def list_dead(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        return self._listed(account_id, lambda entry: entry.dead)

    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        with self._lock:
            dead = self._dead(account_id, event_ids)
            for entry in dead:
                entry.event = replace(
                    entry.event,
                    status=EventStatus.PENDING,
                    retry_count=0,
                    next_retry_at=None,
                    last_error="",
                )
            return len(dead)

    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        with self._lock:
            dead = self._dead(account_id, event_ids)
            for entry in dead:
                del self._accounts[account_id][entry.event.event_id]
            return len(dead)

    def _dead(self, account_id: str, event_ids: Iterable[str] | None) -> list[_Entry]:
        entries = self._accounts.get(check_id(account_id, "account"), {})
        chosen = entries if event_ids is None else dict.fromkeys(event_ids)
        return [entries[id_] for id_ in chosen if id_ in entries and entries[id_].dead]

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        with self._lock:
            return len(self._accounts.pop(check_id(account_id, "account"), {}))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        check_owner_space(owner_space)
        with self._lock:
            entries = self._accounts.get(check_id(account_id, "account"), {})
            owned = [
                id_ for id_, entry in entries.items() if entry.event.owner_space == owner_space
            ]
            for id_ in owned:
                del entries[id_]
            return len(owned)

    # ------------------------------------------------------------ finding
    def _listed(
        self, account_id: str, chosen: Callable[[_Entry], bool]
    ) -> list[tuple[str, OutboxEvent]]:
        with self._lock:
            entries = self._accounts.get(check_id(account_id, "account"), {})
            now = self._now()
            return [
                (entry.event.uri, entry.listed(now)) for entry in entries.values() if chosen(entry)
            ]

    @contextmanager
    def _found(self, event: OutboxEvent, node_uri: str) -> Iterator[_Entry | None]:
        check_event_of(event, node_uri)
        with self._lock:
            yield self._accounts.get(event.account_id, {}).get(event.event_id)

    @contextmanager
    def _own(
        self, event: OutboxEvent, node_uri: str, worker_id: str | None
    ) -> Iterator[_Entry | None]:
        """Find an event, unless a worker asks and another has it."""
        now = self._now()
        worker = None if worker_id is None else check_worker(worker_id)
        with self._found(event, node_uri) as entry:
            held = entry is not None and entry.leased(now) and entry.worker != worker
            if worker is not None and held:
                raise lost(event, worker)
            yield entry
