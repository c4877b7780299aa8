"""What memory has already, for planning candidates: stored nodes, and planned ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from functools import lru_cache
from heapq import nlargest
from operator import itemgetter

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

_NEAR = 8
"""Read at most this many nodes that may be about the same subject."""

Match = Callable[[Sequence[str], Filters, int], dict[str, float]]
"""Returns the URIs of records with one of some words, best first."""


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


class KnownMemory:
    """What memory will have after some plans are written in one commit.

    The index finds stored nodes about the same subject. A node is read once: what another process
    writes after that is a conflict of the commit.
    """

    def __init__(self, nodes: Nodes, match: Match) -> None:
        self.nodes = nodes
        self._match = match
        self._stored: dict[str, ContextNode | None] = {}
        self._planned: dict[str, ContextNode] = {}

    def fresh(self) -> "KnownMemory":
        """Return the same memory without plans, which reads all nodes again."""
        return KnownMemory(self.nodes, self._match)

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        """Return the active node at a place; None if there is none."""
        return self._planned.get(str(place)) or self._stored_at(str(place), ctx)

    def _stored_at(self, uri: str, ctx: RequestContext) -> ContextNode | None:
        if uri not in self._stored:
            try:
                self._stored[uri] = self.nodes.read_node(uri, ctx)
            except NodeNotFoundError:
                self._stored[uri] = None
        return self._stored[uri]

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether an inactive node is there: archived, or broken."""
        if str(place) in self._planned:
            return False
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

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> list[ContextNode]:
        """Return nodes of the same owner and category that may be about the same subject."""
        words = _words(candidate.content)
        wanted = candidate.category, candidate.owner_space
        akin = [n for n in self._planned.values() if (n.category, n.owner_space) == wanted]
        shared = [(len(words & _words(node.content)), node) for node in akin]
        best = nlargest(_NEAR, shared, key=itemgetter(0))
        filters: Filters = {
            ACCOUNT: ctx.account_id,
            OWNER_SPACE: candidate.owner_space,
            "category": candidate.category,
            "level": Level.CONTENT.value,
        }
        asked = content_words(f"{candidate.content} {candidate.slug.replace('-', ' ')}")
        found = self._match(asked, filters, _NEAR) if asked else {}
        return [*(node for count, node in best if count), *self._unplanned(found, ctx)]

    def formers(self, page: ContextNode, ctx: RequestContext) -> list[ContextNode]:
        """Return the nodes that a node superseded."""
        stored = self._unplanned(map(str, self.nodes.leading_to(page.place)), ctx)
        return [n for n in (*stored, *self._planned.values()) if _is_superseded_by(n, page)]

    def _unplanned(self, uris: Iterable[str], ctx: RequestContext) -> Iterator[ContextNode]:
        """Yield the stored nodes without a plan that can be read."""
        for uri in uris:
            try:
                node = None if uri in self._planned else self._stored_at(uri, ctx)
            except (BrokenNodeError, AccessDeniedError):
                continue
            if node is not None:
                yield node

    # ------------------------------------------------------------ plans
    def take(self, plan: WritePlan, ctx: RequestContext) -> None:
        for node in filter(None, (plan.node, *plan.former, *plan.doubted)):
            self.at(node.place, ctx)
            self._planned[node.uri] = node

    def planned(self) -> list[ContextNode]:
        """Return the planned nodes that differ from the stored ones."""
        return [self._next(node) for node in self._planned.values() if self._is_change(node)]

    def changes(self) -> Iterator[NodeChange]:
        for node in self.planned():
            stored = self._stored.get(node.uri)
            yield NodeChange(node.uri, stored.content if stored else "", node.content)

    def _next(self, node: ContextNode) -> ContextNode:
        stored = self._stored.get(node.uri)
        version = stored.version + 1 if stored else 1
        merges = [replace(each, version=min(each.version, version)) for each in merges_of(node)]
        metadata = {**node.metadata, **(merges_as_metadata(merges) if merges else {})}
        if stored is None:
            metadata = {name: value for name, value in metadata.items() if value is not None}
        basis = stored.basis if stored else ""
        return replace(node, version=version, basis=basis, metadata=metadata)

    def _is_change(self, node: ContextNode) -> bool:
        old = self._stored.get(node.uri)
        return old is None or old.content != node.content or old.metadata != node.metadata


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _is_superseded_by(node: ContextNode, page: ContextNode) -> bool:
    return any(
        edge.to_uri == page.uri and edge.relation_type == SUPERSEDED_BY for edge in node.relations
    )
