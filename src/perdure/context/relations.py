"""The edges of nodes, each stored with the node it starts from, and `[[links]]` in a content."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perdure.context.contract import ONE_HOP
from perdure.context.links import Backlinks, CachedLinkTargets, resolve, targets
from perdure.context.reader import NodeReader
from perdure.dataclass import replace
from perdure.errors import InvalidValueError, NodeNotFoundError
from perdure.model import MENTIONS, ContextNode, RelationEdge, RequestContext, Uri

if TYPE_CHECKING:
    from perdure.context.nodes import Nodes


MENTION_WEIGHT = 0.5
"""Less than an edge that was written on purpose: a link does not state the type of a relation."""


class RelationReader:
    def __init__(self, reader: NodeReader, backlinks: Backlinks) -> None:
        self._reader = reader
        self._backlinks = backlinks

    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        stored = self._reader.visible_nodes([uri], ctx)[uri]
        return [] if stored is None else edges_of(stored.node, self._reader, ctx)

    def get_one_hop(
        self, uri: str, ctx: RequestContext, limit: int = ONE_HOP
    ) -> list[RelationEdge]:
        return heaviest(self.get_edges(uri, ctx), limit)

    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        place = Uri.parse(uri)
        if not self._reader.reach.may_see(place, ctx):
            return []
        found = (
            edge
            for start in self._backlinks.leading_to(place, self._reader.names_of(place))
            for edge in self.get_edges(str(start), ctx)
            if edge.to_uri == uri
        )
        return sorted(found, key=lambda edge: edge.identity)


def edges_of(node: ContextNode, reader: NodeReader, ctx: RequestContext) -> list[RelationEdge]:
    """Return the edges of a node whose targets the caller may see."""
    written = {edge.identity: edge for edge in [*_mentions(node, reader), *node.relations]}
    may_see = reader.reach.may_see
    return [edge for edge in written.values() if may_see(Uri.parse(edge.to_uri), ctx)]


def _mentions(node: ContextNode, reader: NodeReader) -> Iterator[RelationEdge]:
    named = dict.fromkeys(targets(node.content))
    if not named:
        return
    places = CachedLinkTargets(reader)
    places.look(named, node.place)
    for target in named:
        place = resolve(target, node.place, places)
        if place is not None:
            yield RelationEdge(
                node.uri, str(place), MENTIONS, MENTION_WEIGHT, created_at=node.updated_at
            )


def heaviest(edges: list[RelationEdge], limit: int = ONE_HOP) -> list[RelationEdge]:
    return sorted(edges, key=lambda e: (-e.weight, e.identity))[: max(limit, 0)]


class Relations(RelationReader):
    def __init__(self, nodes: "Nodes", backlinks: Backlinks) -> None:
        super().__init__(nodes, backlinks)
        self._nodes = nodes

    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            self._refuse(edge, ctx)

        def change(node: ContextNode) -> ContextNode:
            known = {edge.identity: edge for edge in node.relations}
            for edge in edges:
                if edge.from_uri == node.uri:
                    before = known.get(edge.identity)
                    known[edge.identity] = _dated(edge, before)
            return replace(node, relations=tuple(known.values()))

        self._nodes.relate(_starts(edges), change, ctx)

    def remove_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            self._nodes.reach.require_writable(edge.from_uri, ctx)
            self._nodes.reach.require_visible(edge.to_uri, ctx)
        gone = {edge.identity for edge in edges}

        def change(node: ContextNode) -> ContextNode:
            left = (edge for edge in node.relations if edge.identity not in gone)
            return replace(node, relations=tuple(left))

        self._nodes.relate(_starts(edges), change, ctx)

    def _refuse(self, edge: RelationEdge, ctx: RequestContext) -> None:
        """Refuse an edge that may not be written, or whose target does not exist."""
        self._nodes.reach.require_writable(edge.from_uri, ctx)
        target = self._nodes.reach.require_visible(edge.to_uri, ctx)
        if edge.relation_type == MENTIONS:
            raise InvalidValueError(
                f"edges of type {MENTIONS!r} come from [[links]] in the content. "
                "Fix: choose another type, or write a link."
            )
        if not self._nodes.is_active(target):
            raise NodeNotFoundError(
                f"no node is at {edge.to_uri!a}, the target of an edge. Fix: write that node first."
            )


def _starts(edges: Sequence[RelationEdge]) -> list[str]:
    return list(dict.fromkeys(edge.from_uri for edge in edges))


def _dated(edge: RelationEdge, before: RelationEdge | None) -> RelationEdge:
    return edge if before is None else replace(edge, created_at=before.created_at)
