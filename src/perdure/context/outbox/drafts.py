"""From what happened to a node to the event that says so.

Each draft asks first whether the caller may; an event tells a worker all that it needs, so nothing
out of reach must get into one.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

from perdure.artifacts import CID
from perdure.context.outbox.moments import micros
from perdure.errors import InvalidValueError
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
from perdure.model.values import JSON

MAX_SIBLINGS = 20
"""How many of a folder a directory event tells of."""

Siblings = Callable[[ContextNode, RequestContext], Iterable[tuple[str, str]]]
"""Returns URI and abstract of the nodes in the folder of a node that the caller may see."""


def no_siblings(_node: ContextNode, _ctx: RequestContext) -> tuple[tuple[str, str], ...]:
    return ()


def of_write(node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    place = _place_of(node, ctx)
    return _event(EventType.UPSERT_NODE, node.uri, node.owner_space, _described(node, place), now)


def of_move(from_uri: str, node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    _check_place(_node_place(from_uri), node.owner_space, ctx)
    place = _place_of(node, ctx)
    if from_uri == node.uri:
        raise InvalidValueError(
            f"{from_uri!a} was not moved: it has the name that it had. Fix: register a write."
        )
    payload = {**_described(node, place), "from_uri": from_uri}
    return _event(EventType.MOVE_NODE, node.uri, node.owner_space, payload, now)


def of_relations(node: ContextNode, ctx: RequestContext, now: datetime) -> OutboxEvent:
    _place_of(node, ctx)
    payload: dict[str, JSON] = {
        "owner_space": node.owner_space,
        "edges": [_edge(edge) for edge in node.relations],
    }
    return _event(EventType.UPSERT_RELATIONS, node.uri, node.owner_space, payload, now)


def of_directory(
    node: ContextNode, siblings: Siblings, ctx: RequestContext, now: datetime
) -> OutboxEvent:
    folder = _place_of(node, ctx).parent
    others = (pair for pair in siblings(node, ctx) if pair[0] != node.uri)
    told = [(node.uri, node.abstract), *islice(others, MAX_SIBLINGS - 1)]
    _check_in_folder(folder, [uri for uri, _ in told])
    payload: dict[str, JSON] = {
        "directory": str(folder),
        "siblings": [{"uri": uri, "abstract": abstract} for uri, abstract in told],
        "owner_space": node.owner_space,
        "category": folder.category,
        "level": folder.level,
    }
    return _event(EventType.UPSERT_DIRECTORY, str(folder), node.owner_space, payload, now)


def of_removal(
    kind: EventType, uri: str, owner_space: str, ctx: RequestContext, now: datetime
) -> OutboxEvent:
    """Draft that a node was deleted or archived: nothing is left of it but its name and owner."""
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
    """Return an id that nobody can guess; later ones sort later, which keeps an index compact."""
    return f"{micros(now):014x}{secrets.token_hex(9)}"


# ---------------------------------------------------------------- what is told
def _described(node: ContextNode, place: Uri) -> dict[str, JSON]:
    """Return all of a node that a worker needs but its content, which the CID stands for."""
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


# ---------------------------------------------------------------- who may tell it
def _place_of(node: ContextNode, ctx: RequestContext) -> Uri:
    place = node.place
    _check_place(place, node.owner_space, ctx)
    return place


def _check_place(place: Uri, owner_space: str, ctx: RequestContext) -> None:
    """Refuse what the caller may not change, by the place's name or by the owner that is said."""
    said = "" if place.owner_space else owner_space
    if not ctx.may_change(place) or (said and not ctx.reaches(said)):
        raise ctx.refuse(place)


def _node_place(uri: str) -> Uri:
    place = Uri.parse(uri)
    if not place.is_node:
        raise InvalidValueError(f"{uri!a} is a folder of nodes. Fix: name a node in it.")
    return place


def _check_in_folder(folder: Uri, uris: Sequence[str]) -> None:
    for uri in uris:
        if Uri.parse(uri).parent != folder:
            raise InvalidValueError(
                f"{uri!a} is not in the folder {str(folder)!a}. "
                "Fix: let `siblings` return the nodes of that folder only."
            )
