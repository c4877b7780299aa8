"""The feed: the log past the cursor of an index, read as outbox events."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from perdure.artifacts import IndexState
from perdure.context.events import edges_payload, from_micros, node_payload
from perdure.context.reader import NodeReader, StoredNode
from perdure.dataclass import replace
from perdure.engine.indexing.follower import LogReader
from perdure.engine.indexing.indexer import Summaries
from perdure.errors import PerdureError
from perdure.index.sql import LOG_EVENT_PREFIX
from perdure.model import EventType, NodeStatus, OutboxEvent, Uri
from perdure.model.values import JSON
from perdure.storage.text_history import MOVED_FROM, UNDONE, Event, History, View


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
