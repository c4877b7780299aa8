"""What memory knows, for the policies: as it is, and as it will be once a batch is written."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from perdure.context.files import META
from perdure.context.nodes import Nodes
from perdure.dataclass import replace
from perdure.engine.learn.evidence import merges_as_metadata, merges_of
from perdure.engine.recall.planning import content_words
from perdure.engine.saving.outcome import Change
from perdure.errors import AccessDeniedError, BrokenNodeError, NodeNotFoundError
from perdure.index.contract import Filters
from perdure.model import (
    SUPERSEDED_BY,
    CandidateMemory,
    ContextNode,
    Level,
    NodeStatus,
    RequestContext,
    Uri,
    WritePlan,
)
from perdure.model.record import ACCOUNT, OWNER_SPACE

if TYPE_CHECKING:
    from perdure.engine.learn.policies import Known

_NEAR = 8
"""So many nodes are looked at that may speak of the same."""
_PASSAGES = Level.CONTENT.value

Match = Callable[[Sequence[str], Filters, int], dict[str, float]]
"""Returns the URIs of what has one of some words, best first."""


class KnownNodes:
    """What is in canonical state. Who speaks of the same is found by the index, and then read."""

    def __init__(self, nodes: Nodes, match: Match) -> None:
        self.nodes = nodes
        self._match = match

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        try:
            return self.nodes.read_node(str(place), ctx)
        except NodeNotFoundError:
            return None

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        self.nodes.reach.changed(str(place), ctx)
        while True:
            try:
                stored = self.nodes.load(place)
            except BrokenNodeError:
                return True
            if stored is not None:
                return stored.meta.status is not NodeStatus.ACTIVE
            files = self.nodes.files(place)
            if files[META] is None:  # else somebody wrote it between the two looks
                return any(found is not None for found in files.values())

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        filters: Filters = {
            ACCOUNT: ctx.account_id,
            OWNER_SPACE: candidate.owner_space,
            "category": candidate.category,
            "level": _PASSAGES,
        }
        words = content_words(f"{candidate.content} {candidate.slug.replace('-', ' ')}")
        found = self._match(words, filters, _NEAR) if words else {}
        return [node for uri in found if (node := self._readable(uri, ctx)) is not None]

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        found = (self._readable(str(place), ctx) for place in self.nodes.leading_to(page.place))
        return [node for node in found if node is not None and _leads(node, page)]

    def _readable(self, uri: str, ctx: RequestContext) -> ContextNode | None:
        try:
            return self.nodes.read_node(uri, ctx)
        except (NodeNotFoundError, BrokenNodeError, AccessDeniedError):
            return None


class Ahead:
    """What will be known once some plans are carried out, all of them at once."""

    def __init__(self, known: "Known") -> None:
        self._known = known
        self._base: dict[str, ContextNode | None] = {}
        self._planned: dict[str, ContextNode] = {}

    # ------------------------------------------------------------ knowing
    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        uri = str(place)
        if uri in self._planned:
            return self._planned[uri]
        if uri not in self._base:
            self._base[uri] = self._known.at(place, ctx)
        return self._base[uri]

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        return str(place) not in self._planned and self._known.taken(place, ctx)

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        there = self._known.near(candidate, ctx)
        for node in there:
            self._base.setdefault(node.uri, node)
        others = (each for each in there if each.uri not in self._planned)
        return [*self._planned_near(candidate), *(self._base[each.uri] or each for each in others)]

    def _planned_near(self, candidate: CandidateMemory) -> Sequence[ContextNode]:
        words = _words(candidate.content)
        akin = [node for node in self._planned.values() if _is_akin(node, candidate)]
        shared = [(len(words & _words(node.content)), node) for node in akin]
        return [node for count, node in nlargest(_NEAR, shared, key=itemgetter(0)) if count]

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        there = [each for each in self._known.formers(page, ctx) if each.uri not in self._planned]
        for node in there:
            self._base.setdefault(node.uri, node)
        return [*there, *(each for each in self._planned.values() if _leads(each, page))]

    # ------------------------------------------------------------ planning
    def take(self, plan: WritePlan, ctx: RequestContext) -> None:
        for node in filter(None, (plan.node, *plan.former, *plan.doubted)):
            self.at(node.place, ctx)
            self._planned[node.uri] = node

    def nodes(self) -> list[ContextNode]:
        return [self._next(node) for node in self._planned.values() if self._is_change(node)]

    def changes(self) -> Iterator[Change]:
        for node in self.nodes():
            base = self._base.get(node.uri)
            yield Change(node.uri, base.content if base else "", node.content)

    def _next(self, node: ContextNode) -> ContextNode:
        base = self._base.get(node.uri)
        version = base.version + 1 if base else 1
        merges = [replace(each, version=min(each.version, version)) for each in merges_of(node)]
        metadata = {**node.metadata, **(merges_as_metadata(merges) if merges else {})}
        if base is None:
            metadata = {name: value for name, value in metadata.items() if value is not None}
        basis = base.basis if base else ""
        return replace(node, version=version, basis=basis, metadata=metadata)

    def _is_change(self, node: ContextNode) -> bool:
        """Whether it is not there already: what held once is told again by who repeats it."""
        base = self._base.get(node.uri)
        return base is None or base.content != node.content or base.metadata != node.metadata


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _leads(node: ContextNode, page: ContextNode) -> bool:
    return any(
        edge.to_uri == page.uri and edge.relation_type == SUPERSEDED_BY for edge in node.relations
    )


def _is_akin(node: ContextNode, candidate: CandidateMemory) -> bool:
    return node.category == candidate.category and node.owner_space == candidate.owner_space
