"""Relate nodes to each other by name."""

from perdure.context.relations import Relations
from perdure.engine.browse import Browser
from perdure.errors import NodeNotFoundError
from perdure.model import MENTIONS, RelationEdge, RequestContext

Ends = tuple[str, str]
"""The names of the node that a relation starts from, and of the one that it leads to."""


def relate(  # noqa: PLR0913, PLR0917 - an edge has that many fields
    relations: Relations,
    browser: Browser,
    caller: RequestContext,
    ends: Ends,
    relation_type: str,
    weight: float,
    reason: str,
) -> RelationEdge:
    start, target = map(browser.node_place, ends)
    browser.node(start)
    browser.node(target)
    edge = RelationEdge(str(start), str(target), relation_type, weight, reason)
    relations.upsert_edges([edge], caller)
    written = relations.get_edges(str(start), caller)
    return next((each for each in written if each.identity == edge.identity), edge)


def unrelate(
    relations: Relations,
    browser: Browser,
    caller: RequestContext,
    ends: Ends,
    relation_type: str | None,
) -> tuple[RelationEdge, ...]:
    start, target = map(browser.node_place, ends)
    browser.node(start)
    found = tuple(
        edge
        for edge in relations.get_edges(str(start), caller)
        if edge.to_uri == str(target)
        and (edge.relation_type == relation_type if relation_type else not _is_link(edge))
    )
    if relation_type == MENTIONS or not found:
        unremovable = relation_type in {None, MENTIONS}
        which = "that can be removed" if unremovable else f"of type {relation_type!a}"
        raise NodeNotFoundError(
            f"no relation {which} leads from {str(start)!a} to {str(target)!a}. "
            f"Fix: `perdure relate {browser.name(start)}` lists them; a link goes with its text."
        )
    relations.remove_edges(found, caller)
    return found


def _is_link(edge: RelationEdge) -> bool:
    return edge.relation_type == MENTIONS
