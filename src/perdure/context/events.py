"""The events of an outbox: created when a node changes, then registered, leased and retried.

An event carries all that a worker needs. So each function first checks that the caller may change
the node, and nothing out of the caller's reach gets into an event.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice

from perdure.artifacts import CID
from perdure.errors import InvalidValueError, LeaseError
from perdure.model import (
    ContextNode,
    ContextType,
    EventType,
    OutboxEvent,
    RelationEdge,
    RequestContext,
    Uri,
)
from perdure.model.request import owner_space_at
from perdure.model.values import JSON, count, encodable

Clock = Callable[[], datetime]
"""Returns the time, with a zone."""

LEASE_SECONDS = 300
"""How long a worker may hold an event without extending its lease."""

SECOND = 1_000_000
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
MAX_SIBLINGS = 20
"""At most this many nodes of a folder are in a directory event."""
Siblings = Callable[[ContextNode, RequestContext], Iterable[tuple[str, str]]]
"""Returns URI and abstract of the nodes in the folder of a node that the caller may see."""
MAX_SECONDS = 366 * 24 * 3600
MAX_ERROR = 2_000
"""Characters of an error that are stored with an event."""
MAX_RETRY = 5
"""After this many failed retries an event is dead."""
FIRST_WAIT_SECONDS = 1
LONGEST_WAIT_SECONDS = 60


def utc_now() -> datetime:
    return datetime.now(UTC)


def micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def from_micros(count: int) -> datetime:
    return _EPOCH + timedelta(microseconds=count)


def no_siblings(_node: ContextNode, _ctx: RequestContext) -> tuple[tuple[str, str], ...]:
    return ()


def of_write(node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    _place_of(node, ctx)
    return _event(EventType.UPSERT_NODE, node.uri, node.owner_space, node_payload(node), now)


def of_move(from_uri: str, node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    _check_place(_node_place(from_uri), node.owner_space, ctx)
    _place_of(node, ctx)
    if from_uri == node.uri:
        raise InvalidValueError(
            f"{from_uri!a} was not moved: both URIs are the same. Fix: register a write."
        )
    payload = {**node_payload(node), "from_uri": from_uri}
    return _event(EventType.MOVE_NODE, node.uri, node.owner_space, payload, now)


def of_relations(node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    _place_of(node, ctx)
    return _event(EventType.UPSERT_RELATIONS, node.uri, node.owner_space, edges_payload(node), now)


def edges_payload(node: ContextNode) -> dict[str, JSON]:
    edges: list[JSON] = [_edge(edge) for edge in node.relations]
    return {"owner_space": node.owner_space, "edges": edges}


def of_directory(
    node: ContextNode, siblings: Siblings, ctx: RequestContext, now: datetime
) -> OutboxEvent:
    folder = _place_of(node, ctx).parent
    others = (pair for pair in siblings(node, ctx) if pair[0] != node.uri)
    listed = [(node.uri, node.abstract), *islice(others, MAX_SIBLINGS - 1)]
    for uri, _ in listed:
        if Uri.parse(uri).parent != folder:
            raise InvalidValueError(
                f"{uri!a} is not in the folder {str(folder)!a}. "
                "Fix: let `siblings` return the nodes of that folder only."
            )
    payload = directory_payload(folder, node.owner_space, listed)
    return _event(EventType.UPSERT_DIRECTORY, str(folder), node.owner_space, payload, now)


def directory_payload(
    folder: Uri, owner: str, siblings: Iterable[tuple[str, str]]
) -> dict[str, JSON]:
    """Return all that an indexer needs of a folder."""
    return {
        "directory": str(folder),
        "siblings": [{"uri": uri, "abstract": abstract} for uri, abstract in siblings],
        "owner_space": owner,
        "category": folder.category,
        "level": folder.level,
    }


def of_removal(
    kind: EventType, uri: str, owner_space: str, ctx: RequestContext, now: datetime
) -> OutboxEvent:
    """Return the event of a deleted or archived node, of which only URI and owner are left."""
    place = _node_place(uri)
    _check_place(place, owner_space, ctx)
    owner = owner_space_at(place, owner_space)
    return _event(kind, uri, owner, {"owner_space": owner}, now)


def _event(
    kind: EventType, uri: str, owner: str, payload: Mapping[str, JSON], now: datetime
) -> OutboxEvent:
    return OutboxEvent(
        event_id=_new_id(now),
        event_type=kind,
        uri=uri,
        account_id=Uri.parse(uri).account,
        owner_space=owner,
        payload=payload,
        created_at=now,
    )


def _new_id(now: datetime) -> str:
    """Return an id that can't be guessed; later ones sort later, which keeps an index compact."""
    return f"{micros(now):014x}{os.urandom(9).hex()}"


# ---------------------------------------------------------------- payloads
def node_payload(node: ContextNode) -> dict[str, JSON]:
    """Return all of a node that a worker needs; the CID stands for its content."""
    place = node.place
    return {
        "version": node.version,
        "cid": str(CID.of(node.content.encode())),
        "title": node.title,
        "abstract": node.abstract,
        "overview": node.overview,
        "context_type": ContextType.of(place).value,
        "category": place.category,
        "level": place.level,
        "owner_space": node.owner_space,
        "created_at": node.created_at.isoformat(),
        "updated_at": node.updated_at.isoformat(),
    }


def _edge(edge: RelationEdge) -> dict[str, JSON]:
    return {
        "from_uri": edge.from_uri,
        "to_uri": edge.to_uri,
        "relation_type": edge.relation_type,
        "weight": edge.weight,
        "reason": edge.reason,
        "created_at": edge.created_at.isoformat(),
    }


# ---------------------------------------------------------------- checks
def _place_of(node: ContextNode, ctx: RequestContext) -> Uri:
    place = node.place
    _check_place(place, node.owner_space, ctx)
    return place


def _check_place(place: Uri, owner_space: str, ctx: RequestContext) -> None:
    """Refuse what the caller may not change, by the URI or by the given owner."""
    given = "" if place.owner_space else owner_space
    if not ctx.may_change(place) or (given and not ctx.reaches(given)):
        raise ctx.refuse(place)


def _node_place(uri: str) -> Uri:
    place = Uri.parse(uri)
    if not place.is_node:
        raise InvalidValueError(f"{uri!a} is a folder of nodes. Fix: name a node in it.")
    return place


def lease_end(now: int, timeout_seconds: int) -> int:
    """Return when a lease that starts now lapses; an invalid timeout is refused."""
    if count(timeout_seconds, "number of seconds of a lease", least=1) > MAX_SECONDS:
        raise InvalidValueError(
            f"a lease of {timeout_seconds} seconds is too long. Fix: use at most {MAX_SECONDS}."
        )
    return now + timeout_seconds * SECOND


def check_worker(worker_id: object) -> str:
    if not isinstance(worker_id, str) or not worker_id:
        raise InvalidValueError(f"{worker_id!r} is not a worker's id. Fix: give it as text.")
    return encodable(worker_id, "worker's id")


def check_event_of(event: OutboxEvent, node_uri: str) -> None:
    """Refuse an event that belongs to another node."""
    if event.uri != node_uri:
        raise InvalidValueError(
            f"event {event.event_id!a} belongs to {event.uri!a}, not to {str(node_uri)[:200]!a}. "
            "Fix: give the event with the URI that it was listed with."
        )


def stored_error(error: str) -> str:
    """Return the text of an error as it is stored. Any text is accepted: storing must not fail."""
    return str(error)[:MAX_ERROR].encode(errors="replace").decode()


def lost(event: OutboxEvent, worker_id: str) -> LeaseError:
    return LeaseError(
        f"event {event.event_id!a} of {event.uri!a} is now leased to another worker than "
        f"{worker_id[:80]!a}; nothing was changed. Fix: leave it to that one, and next time extend "
        "the lease before it lapses."
    )


def backoff(failures: int) -> timedelta:
    """Return how long to wait after the next failure: it doubles with each one before."""
    doublings = min(failures, LONGEST_WAIT_SECONDS.bit_length())
    return timedelta(seconds=min(FIRST_WAIT_SECONDS << doublings, LONGEST_WAIT_SECONDS))
