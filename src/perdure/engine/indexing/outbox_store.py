"""The outbox: the feed of the log, and a table of events that were claimed, failed or registered.

A commit registers its events by being in the log, so nothing is written twice: `LogFeed` reads the
log past the cursor of an index as events. The table is in the database of the index.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from perdure.artifacts import IndexState
from perdure.context.events import (
    LEASE_SECONDS,
    MAX_RETRY,
    Clock,
    Siblings,
    backoff,
    check_event_of,
    check_worker,
    edges_payload,
    from_micros,
    lease_end,
    lost,
    micros,
    no_siblings,
    node_payload,
    of_directory,
    of_move,
    of_relations,
    of_removal,
    of_write,
    stored_error,
    utc_now,
)
from perdure.context.reader import NodeReader, StoredNode
from perdure.dataclass import replace
from perdure.engine.indexing.follower import LogReader
from perdure.engine.indexing.indexer import Summaries
from perdure.errors import PerdureError
from perdure.index import sql
from perdure.index.sql import LOG_EVENT_PREFIX, EventTable
from perdure.model import (
    ContextNode,
    EventStatus,
    EventType,
    NodeStatus,
    OutboxEvent,
    RequestContext,
    Uri,
    check_owner_space,
)
from perdure.model.uri import check_id
from perdure.model.values import JSON, utc_time
from perdure.storage.text_history import MOVED_FROM, UNDONE, Event, History, View


# ---------------------------------------------------------------- the feed
class _Change(NamedTuple):
    """The changes of one commit to the texts of one place."""

    commit: int
    place: Uri
    events: list[Event]


class LogFeed:
    """The log as outbox events, for the current index of an account.

    An event is derived from the history as of its commit when it is listed.
    """

    def __init__(
        self,
        history: History,
        reader: NodeReader,
        cursor: Callable[[str], int],
        indexes_folders: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._history = history
        self._reader = reader
        self._log = LogReader(history, reader)
        self.cursor = cursor
        self._indexes_folders = indexes_folders

    def times(self, account_id: str, position: int) -> Mapping[str, int]:
        """Return the times of the events after a position, by their ids."""
        return {
            log_id(change.commit, str(change.place)): change.events[0].time
            for change in self._changes(account_id, position)
        }

    def after(
        self, account_id: str, position: int, *, folders: bool = False
    ) -> Iterator[OutboxEvent]:
        """Yield the events after a position; with `folders`, then one for each changed folder."""
        above: dict[str, OutboxEvent] = {}
        adds_folders = folders and self._indexes_folders(account_id)
        for change in self._changes(account_id, position):
            event = self._event(change)
            if event is None:
                continue
            yield event
            folder = change.place.parent
            if adds_folders and len(folder.path) > 1:
                above[str(folder)] = replace(
                    event,
                    event_id=log_id(change.commit, str(folder)),
                    event_type=EventType.UPSERT_DIRECTORY,
                    uri=str(folder),
                )
        yield from above.values()

    def with_payload(self, event: OutboxEvent, position: int) -> OutboxEvent:
        """Return an event with the payload that a worker needs, as of a position."""
        place, reader = Uri.parse(event.uri), self._at(position)
        if event.event_type is EventType.UPSERT_DIRECTORY:
            return replace(event, payload=Summaries(reader).payload(place) or event.payload)
        stored = _load(reader, place)
        if stored is None or event.event_type in {EventType.DELETE_NODE, EventType.ARCHIVE_NODE}:
            return event
        if event.event_type is EventType.UPSERT_RELATIONS:
            return replace(event, payload=edges_payload(stored.node))
        return replace(event, payload={**event.payload, **node_payload(stored.node)})

    def _changes(self, account_id: str, position: int) -> list[_Change]:
        """Return the changes of nodes after a position, oldest first, without undone ones.

        For an index that was never built, return only the last change of each remaining node.
        """
        found: dict[tuple[int, Uri], _Change] = {}
        moved: set[tuple[int, str]] = set()
        for event in self._history.changes(after=max(0, position)):
            source = event.circumstances.more.get(MOVED_FROM)
            if isinstance(source, str):
                moved.add((event.commit, source))
            place = self._log.place_of(account_id, event.key)
            if place is not None and place.is_node:
                change = found.setdefault((event.commit, place), _Change(event.commit, place, []))
                change.events.append(event)
        changes: list[_Change] = []
        undone: set[Uri] = set()
        for change in reversed(found.values()):
            if any((event.commit, event.key) in moved for event in change.events):
                continue  # the event of the new place reports the move
            if any(event.origin == UNDONE for event in change.events):
                undone.add(change.place)
            elif change.place in undone:  # this is the undone change
                undone.discard(change.place)
            else:
                changes.append(change)
        if position == 0:
            last = {change.place: change for change in reversed(changes)}.values()
            changes = [each for each in reversed(last) if not all(e.unbound for e in each.events)]
        return changes[::-1]

    def _event(self, change: _Change) -> OutboxEvent | None:
        """Return the event of a change; None if no node was there before or after."""
        place, payload = change.place, dict[str, JSON]()
        before, after = (_load(self._at(at), place) for at in (change.commit - 1, change.commit))
        if after is None:
            kind = EventType.DELETE_NODE
            if before is None:
                return None
        elif after.meta.status is NodeStatus.ARCHIVED:
            kind = EventType.ARCHIVE_NODE
        elif before is None and (source := self._source(change)) is not None:
            kind, payload = EventType.MOVE_NODE, {"from_uri": source}
        elif before is not None and _changed_only_edges(before, after):
            kind = EventType.UPSERT_RELATIONS
        else:
            kind = EventType.UPSERT_NODE
        owner = self._owner(after or before, place)
        return OutboxEvent(
            event_id=log_id(change.commit, str(place)),
            event_type=kind,
            uri=str(place),
            account_id=place.account,
            owner_space=owner,
            payload={**payload, "owner_space": owner},
            created_at=from_micros(change.events[0].time * 1000),
        )

    def _owner(self, stored: StoredNode | None, place: Uri) -> str:
        owner = "" if stored is None else stored.node.owner_space
        return owner or place.owner_space or self._reader.reach.session_owner(place) or ""

    def _source(self, change: _Change) -> str | None:
        """Return the place that a node was moved from; None if it was not moved."""
        for event in change.events:
            key = event.circumstances.more.get(MOVED_FROM)
            if isinstance(key, str) and (place := self._log.place_of(change.place.account, key)):
                return str(place)
        return None

    def _at(self, position: int) -> NodeReader:
        return NodeReader(View(self._history, IndexState(0, position)))


def _load(reader: NodeReader, place: Uri) -> StoredNode | None:
    """Return a node as it was; None also if it can't be read any more."""
    with suppress(PerdureError):
        return reader.load(place)
    return None


def _changed_only_edges(before: StoredNode, after: StoredNode) -> bool:
    if before.meta.status is not after.meta.status:
        return False
    old, new = before.node, after.node
    same = replace(old, relations=new.relations, version=new.version, updated_at=new.updated_at)
    return old.relations != new.relations and same == new


def log_id(commit: int, uri: str) -> str:
    return f"{LOG_EVENT_PREFIX}{commit:012x}-{sha256(uri.encode()).hexdigest()[:18]}"


def position_of(event_id: str) -> int | None:
    """Return the commit of an event of the log; None for one that was registered."""
    if not event_id.startswith(LOG_EVENT_PREFIX):
        return None
    return int(event_id.removeprefix(LOG_EVENT_PREFIX).partition("-")[0], 16)


# ---------------------------------------------------------------- the outbox
Row = tuple[Any, ...]
Listed = list[tuple[str, OutboxEvent]]
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _passed(account_id: str, cursor: int) -> dict[str, str]:
    """Return the SQL parameters that select the events which an index has passed."""
    return {"account": account_id, "passed": f"{LOG_EVENT_PREFIX}{cursor:012x}~"}


class OutboxStore:
    """The changes of nodes that are not in the index yet. Events survive a restart.

    An event waits, is leased to one worker at a time, and is removed when it is done. A failed
    event waits until `next_retry_at`. One that failed too often stays in the dead-letter queue
    until an operator removes it. A lease that is not extended in time lapses, and the event waits
    again. A verb with a `worker_id` raises `LeaseError` and changes nothing if another worker has
    leased the event.

    Events come from the log and from a table in the database of an index. A power cut may lose the
    newest changes to the table, but never brings back deleted events of a tenant.
    """

    def __init__(
        self,
        table: Callable[[str], EventTable],
        feed: LogFeed | None = None,
        *,
        clock: Clock = utc_now,
        siblings: Siblings = no_siblings,
    ) -> None:
        self._table = table
        self._feed = feed
        self._clock = clock
        self._siblings = siblings

    def register_write(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Register that a node was written. Call it after the write succeeded."""
        return self._registered(of_write(node, ctx, self._time()))

    def register_writes(
        self, nodes: Iterable[ContextNode], ctx: RequestContext
    ) -> list[OutboxEvent]:
        """Register that several nodes were written: all, or none."""
        now = self._time()
        events = [of_write(node, ctx, now) for node in nodes]
        self._add(events)
        return events

    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        """Register that a node was deleted. `owner_space` is for a URI that does not contain it."""
        return self._registered(
            of_removal(EventType.DELETE_NODE, uri, owner_space, ctx, self._time())
        )

    def register_archive(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        """Register that a node was archived, so that no search finds it."""
        return self._registered(
            of_removal(EventType.ARCHIVE_NODE, uri, owner_space, ctx, self._time())
        )

    def register_move(self, from_uri: str, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Register that a node was moved; `node` is the node at its new URI."""
        return self._registered(of_move(from_uri, node, ctx, self._time()))

    def register_relations(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Register that only the edges of a node changed."""
        return self._registered(of_relations(node, ctx, self._time()))

    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Register that the folder of a node changed, with at most 20 abstracts of its nodes."""
        return self._registered(of_directory(node, self._siblings, ctx, self._time()))

    def _registered(self, event: OutboxEvent) -> OutboxEvent:
        self._add((event,))
        return event

    def _cursor(self, account_id: str) -> int:
        return 0 if self._feed is None else self._feed.cursor(account_id)

    def _time(self) -> datetime:
        return utc_time(self._clock(), "clock's time")

    def _now(self) -> int:
        return micros(self._time())

    def _add(self, events: Sequence[OutboxEvent]) -> None:
        rows = [_row(event) for event in events]
        for account in {event.account_id for event in events}:  # the one of the caller
            self._table(account).change_events(
                account, lambda db: db.executemany(sql.ADD_EVENT, rows)
            )

    # ------------------------------------------------------------ work
    def list_pending(self, account_id: str) -> Listed:
        """Return the events that can be leased now, oldest first, each with the URI of its node.

        Events that are leased, dead, or to be retried later are left out.
        """
        cursor = self._cursor(check_id(account_id, "account"))
        waiting = [
            self._with_payload(event) for _, event in self._rows(sql.PENDING_EVENTS, account_id)
        ]
        logged = [
            self._with_payload(event) for event in self._unclaimed(account_id, cursor, folders=True)
        ]
        return [(event.uri, event) for event in (*waiting, *logged)]

    def list_unfinished(self, account_id: str) -> Listed:
        """Return every event that is not done, oldest first: waiting, leased and dead ones."""
        cursor = self._cursor(check_id(account_id, "account"))
        logged = [(event.uri, event) for event in self._unclaimed(account_id, cursor)]
        return [*self.list_failed(account_id), *logged]

    def list_failed(self, account_id: str) -> Listed:
        """Return the events of the table: claimed, failed, or registered without a commit."""
        return self._rows(sql.UNFINISHED_EVENTS, account_id)

    def list_due(self, account_id: str) -> Listed:
        """Return those of `list_failed` that can be leased now, with their payloads."""
        due = self._rows(sql.PENDING_EVENTS, account_id)
        return [(uri, self._with_payload(event)) for uri, event in due]

    def _unclaimed(
        self, account_id: str, cursor: int, *, folders: bool = False
    ) -> Iterator[OutboxEvent]:
        """Yield the events of the log that no worker has claimed."""
        known = self._claimed(account_id, cursor)
        events = self._feed.after(account_id, cursor, folders=folders) if self._feed else ()
        yield from (event for event in events if event.event_id not in known)

    def _claimed(self, account_id: str, cursor: int) -> set[str]:
        def claimed(db: sqlite3.Connection) -> set[str]:
            return {id_ for (id_,) in db.execute(sql.CLAIMED_EVENTS, _passed(account_id, cursor))}

        none: set[str] = set()
        return self._table(account_id).read_events(account_id, claimed, none)

    def _with_payload(self, event: OutboxEvent) -> OutboxEvent:
        position = position_of(event.event_id)
        if position is None or self._feed is None:
            return event
        return self._feed.with_payload(event, position)

    def fail(self, failed: Mapping[str, tuple[str, str]], account_id: str, position: int) -> None:
        """Register that places could not be indexed as of a position, with their owner and error.

        A place that has an event in the table already is left as it is.
        """
        now = self._time()
        known = {uri for uri, _ in self.list_failed(account_id)}
        rows = []
        for uri, (owner, error) in failed.items():
            if uri not in known:
                event = OutboxEvent(
                    event_id=log_id(position, uri),
                    event_type=EventType.UPSERT_NODE,
                    uri=uri,
                    account_id=account_id,
                    owner_space=owner,
                    payload={"owner_space": owner},
                    created_at=now,
                )
                later = micros(now + backoff(0))
                rows.append(
                    (_row(event), _parameters(event, None, micros(now)), later, stored_error(error))
                )

        def note(db: sqlite3.Connection) -> None:
            for row, parameters, later, error in rows:
                db.execute(sql.ADD_EVENT, row)
                db.execute(sql.RETRY_EVENT, {**parameters, "later": later, "error": error})

        if rows:
            self._table(account_id).change_events(account_id, note)

    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        """Lease an event to a worker; of several workers that ask at once, one gets True.

        Returns False also if the event is done, dead, or to be retried later. For the worker that
        holds the lease, it starts again.
        """
        return self._lease(sql.ACQUIRE_EVENT, event, node_uri, worker_id, timeout_seconds)

    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        """Extend the lease of a worker; False if the worker no longer holds it."""
        return self._lease(sql.EXTEND_LEASE, event, node_uri, worker_id, timeout_seconds)

    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        """End a lease, if there is one; the event waits for the next worker."""
        self._change(sql.RELEASE_EVENT, event, node_uri, worker_id)

    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        """Mark an event as being worked on."""
        self._lease(sql.MARK_PROCESSING, event, node_uri, None, LEASE_SECONDS)

    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        """Remove an event; it is not an error if it is gone already."""
        self._change(sql.FINISH_EVENT, event, node_uri, worker_id)

    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        """Count a failure and end the lease; the event waits until `next_retry_at`, if given."""
        later = None if next_retry_at is None else micros(utc_time(next_retry_at, "next attempt"))
        failure = {"later": later, "error": stored_error(error)}
        self._change(sql.RETRY_EVENT, event, node_uri, worker_id, **failure)

    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        """Move an event to the dead-letter queue, and end its lease."""
        self._change(sql.BURY_EVENT, event, node_uri, worker_id)

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
        values = {"end": lease_end(now, timeout_seconds), **_parameters(event, worker_id, now)}

        def lease(db: sqlite3.Connection) -> bool:
            self._add_row(db, event, cursor)
            return db.execute(statement, values).rowcount == 1

        cursor = self._cursor(event.account_id)
        return self._table(event.account_id).change_events(event.account_id, lease)

    def _change(
        self,
        statement: str,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str | None,
        **failure: object,
    ) -> None:
        """Change an event; `LeaseError` if a `worker_id` is given and another worker leased it."""
        check_event_of(event, node_uri)
        values = {**failure, **_parameters(event, worker_id, self._now())}

        def change(db: sqlite3.Connection) -> None:
            self._add_row(db, event, cursor)
            changed = db.execute(statement, values).rowcount
            if changed or worker_id is None:
                db.execute(sql.DROP_DONE_EVENTS, _passed(event.account_id, cursor))
            elif db.execute(sql.EVENT_HELD_BY_ANOTHER, values).fetchone():
                raise lost(event, worker_id)

        cursor = self._cursor(event.account_id)
        self._table(event.account_id).change_events(event.account_id, change)

    def _add_row(self, db: sqlite3.Connection, event: OutboxEvent, cursor: int) -> None:
        """Add a row for an event of the log, if the index has not passed it."""
        position = position_of(event.event_id)
        if position is not None and position > cursor:
            db.execute(sql.ADD_EVENT, _row(event))

    def count(self, account_id: str) -> tuple[int, int, datetime | None]:
        """Return the numbers of unfinished and dead events, and the time of the oldest waiting."""
        cursor = self._cursor(check_id(account_id, "account"))
        claimed = self._claimed(account_id, cursor)
        logged = self._feed.times(account_id, cursor) if self._feed else {}
        times = [time * 1000 for id_, time in logged.items() if id_ not in claimed]
        events = [event for _, event in self.list_failed(account_id)]
        waiting = [event for event in events if event.status is not EventStatus.DEAD]
        times += [micros(event.created_at) for event in waiting]
        since = from_micros(min(times)) if times else None
        return len(times) + len(events) - len(waiting), len(events) - len(waiting), since

    # ------------------------------------------------------------ dead-letter queue
    def list_dead(self, account_id: str) -> Listed:
        """Return the dead-letter queue of an account, oldest first."""
        return self._rows(sql.DEAD_EVENTS, account_id)

    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        """Let dead events, all or those with these ids, wait again with no failures counted."""
        return self._of_dead(sql.REQUEUE_DEAD, account_id, event_ids)

    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        """Remove dead events: all, or those with these ids."""
        return self._of_dead(sql.PURGE_DEAD, account_id, event_ids)

    def _of_dead(self, statement: str, account_id: str, event_ids: Iterable[str] | None) -> int:
        account = {"account": check_id(account_id, "account")}
        ids = None if event_ids is None else list(dict.fromkeys(event_ids))
        passed = _passed(account_id, self._cursor(account_id))

        def change(db: sqlite3.Connection) -> int:
            if ids is None:
                changed = db.execute(statement, account).rowcount
            else:
                chosen = [{"id": id_, **account} for id_ in ids]
                changed = db.executemany(statement + sql.ONE_EVENT, chosen).rowcount
            db.execute(sql.DROP_DONE_EVENTS, passed)
            return max(0, changed)

        return self._table(account_id).change_events(account_id, change, outlasts_power=True)

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        """As `TenantData` promises. No byte of the events is left in a file, done ones included."""
        account = check_id(account_id, "account")
        return self._forget(account, sql.DELETE_EVENTS, [{"account": account}])

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """As `TenantData` promises. No byte of the events is left in a file, done ones included."""
        account, owner = check_id(account_id, "account"), check_owner_space(owner_space)
        return self._forget(
            account, sql.DELETE_EVENTS_OF_OWNER, [{"account": account, "owner": owner}]
        )

    def forget_places(self, account_id: str, uris: Iterable[str]) -> int:
        """Remove the events whose URI or payload names these places, down to the last byte."""
        account = check_id(account_id, "account")
        parameters = [{"account": account, "uri": uri} for uri in uris]
        return self._forget(account, sql.DELETE_EVENTS_NAMING, parameters)

    def _forget(self, account: str, statement: str, parameters: Sequence[Mapping[str, str]]) -> int:
        table = self._table(account)
        if not table.read_events(account, lambda db: db.execute(sql.ANY_EVENT).fetchone(), None):
            return 0
        deleted = table.change_events(
            account, lambda db: db.executemany(statement, parameters).rowcount, outlasts_power=True
        )
        table.wipe_events(account)
        return max(0, deleted)

    # ------------------------------------------------------------ rows
    def _rows(self, query: str, account_id: str) -> Listed:
        """Return events. If a row can't be parsed, delete all: the index marks what it lacks."""
        account = check_id(account_id, "account")
        values = {"account": account, "now": self._now(), "cursor": self._cursor(account)}
        table = self._table(account)
        none: list[Row] = []
        rows = table.read_events(account, lambda db: db.execute(query, values).fetchall(), none)
        try:
            return [(event.uri, event) for event in map(_event, rows)]
        except (ValueError, TypeError, OverflowError):
            forget = {"account": account}
            table.change_events(account, lambda db: db.execute(sql.DELETE_EVENTS, forget))
            return []


def _parameters(event: OutboxEvent, worker_id: str | None, now: int) -> dict[str, object]:
    worker = None if worker_id is None else check_worker(worker_id)
    return {"id": event.event_id, "account": event.account_id, "worker": worker, "now": now}


def _row(event: OutboxEvent) -> Row:
    position = position_of(event.event_id)
    payload = event.payload if position is None else {"owner_space": event.owner_space}
    if position is not None and "from_uri" in event.payload:
        payload = {**payload, "from_uri": event.payload["from_uri"]}
    return (
        event.event_id,
        event.event_type.value,
        event.uri,
        event.account_id,
        event.owner_space,
        _encoded(payload),
        micros(event.created_at),
        position,
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


def fail(  # noqa: PLR0913, PLR0917 - what a worker has in its hands
    outbox: OutboxStore,
    event: OutboxEvent,
    uri: str,
    error: str,
    now: datetime,
    worker_id: str,
) -> bool:
    """Count a failure: the event is retried later, or is dead. Return whether it is dead."""
    # The failure is counted first, so that the dead-letter queue has the last error. Until the
    # second step no worker can lease the event, because it is to be retried later.
    wait = backoff(event.retry_count)
    outbox.increment_retry(event, uri, now + wait, worker_id=worker_id, error=error)
    dies = event.retry_count + 1 > MAX_RETRY
    if dies:
        outbox.move_to_dlq(event, uri, worker_id=worker_id)
    return dies
