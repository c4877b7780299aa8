"""What memory has already, for planning candidates: stored nodes, and planned ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from functools import lru_cache
from heapq import nlargest
from operator import itemgetter
from typing import Protocol

from perdure.context.files import META
from perdure.context.nodes import Nodes
from perdure.dataclass import dataclass, replace
from perdure.engine.learn.evidence import merges_as_metadata, merges_of
from perdure.engine.recall.planning import content_words
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


class KnownMemory(Protocol):
    """What memory has already, as far as the caller may see it."""

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        """Return the active node at a place; None if there is none."""

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether an inactive node is there: archived, or broken."""

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return nodes of the same owner and category that may be about the same subject."""

    def formers(self, node: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return the nodes that a node superseded."""


_NEAR = 8
"""Read at most this many nodes that may be about the same subject."""
_PASSAGES = Level.CONTENT.value

Match = Callable[[Sequence[str], Filters, int], dict[str, float]]
"""Returns the URIs of records with one of some words, best first."""


class StoredMemory:
    """The stored nodes. The index finds those about the same subject; the nodes are then read."""

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
            if files[META] is None:  # or another process wrote it since `load`
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
        return [node for node in found if node is not None and _is_superseded_by(node, page)]

    def _readable(self, uri: str, ctx: RequestContext) -> ContextNode | None:
        try:
            return self.nodes.read_node(uri, ctx)
        except (NodeNotFoundError, BrokenNodeError, AccessDeniedError):
            return None


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The contents of a node before and after a commit; empty before it exists."""

    uri: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        before, after = self.before.splitlines(), self.after.splitlines()
        lines = unified_diff(before, after, self.uri, self.uri, lineterm="")
        return "".join(f"{line}\n" for line in lines)


class PlannedMemory:
    """What memory will have after some plans are written, all in one commit."""

    def __init__(self, known: KnownMemory) -> None:
        self._known = known
        self._base: dict[str, ContextNode | None] = {}
        self._planned: dict[str, ContextNode] = {}

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
        stored = self._unplanned(self._known.near(candidate, ctx))
        words = _words(candidate.content)
        wanted = candidate.category, candidate.owner_space
        akin = [n for n in self._planned.values() if (n.category, n.owner_space) == wanted]
        shared = [(len(words & _words(node.content)), node) for node in akin]
        best = nlargest(_NEAR, shared, key=itemgetter(0))
        return [*(node for count, node in best if count), *stored]

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        stored = self._unplanned(self._known.formers(page, ctx))
        planned = (each for each in self._planned.values() if _is_superseded_by(each, page))
        return [*stored, *planned]

    def _unplanned(self, stored: Iterable[ContextNode]) -> list[ContextNode]:
        """Return the nodes without a plan, each as it was first read."""
        first = [(each, self._base.setdefault(each.uri, each)) for each in stored]
        return [base or each for each, base in first if each.uri not in self._planned]

    def take(self, plan: WritePlan, ctx: RequestContext) -> None:
        for node in filter(None, (plan.node, *plan.former, *plan.doubted)):
            self.at(node.place, ctx)
            self._planned[node.uri] = node

    def nodes(self) -> list[ContextNode]:
        """Return the nodes to write: those that differ from the stored ones."""
        return [self._next(node) for node in self._planned.values() if self._is_change(node)]

    def changes(self) -> Iterator[NodeChange]:
        for node in self.nodes():
            base = self._base.get(node.uri)
            yield NodeChange(node.uri, base.content if base else "", node.content)

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
        base = self._base.get(node.uri)
        return base is None or base.content != node.content or base.metadata != node.metadata


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _is_superseded_by(node: ContextNode, page: ContextNode) -> bool:
    return any(
        edge.to_uri == page.uri and edge.relation_type == SUPERSEDED_BY for edge in node.relations
    )
