"""Bringing a node back to what it was."""

from collections.abc import Callable
from dataclasses import replace

from perdure.artifacts import CID, IndexState
from perdure.context import frontmatter
from perdure.context.files import CONTENT
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.engine.past import When
from perdure.errors import InvalidCIDError, NodeNotFoundError
from perdure.model import ContextNode, RequestContext, Uri
from perdure.storage.history import History, Version
from perdure.storage.wrappers.view import View


class Restoring:
    """Finds what a node was, and makes its next version of that."""

    def __init__(self, nodes: Nodes, history: History) -> None:
        self._nodes = nodes
        self._history = history

    def planned(
        self,
        uri: str,
        state_at: Callable[[When], IndexState],
        wanted: CID | When,
        ctx: RequestContext,
    ) -> ContextNode | None:
        """Return the version to be written; None if the node is that already."""
        place = self._nodes.reach.changed(uri, ctx)
        cid = wanted if isinstance(wanted, CID) else _cid(wanted)
        if cid is not None:
            version = self._version(self._nodes.reach.seen(uri, ctx), cid)
            state, there = IndexState(0, version.commit), self._place(version.key)
        else:
            state, there = state_at(wanted), place  # type: ignore[arg-type] # it is no CID
        then = self._then(NodeReader(View(self._history, state)), there, place, ctx)
        try:
            now = self._nodes.read_node(uri, ctx)
        except NodeNotFoundError:
            return replace(then, version=1)
        return _next(now, then)

    def _version(self, place: Uri, cid: CID) -> Version:
        """Return the last version of a node that had a content."""
        file = self._nodes.file(place, CONTENT)
        found = [each for each in self._history.versions(file) if each.cid == cid]
        if not found:
            raise NodeNotFoundError(
                f"{str(place)!a} never had the content {cid}. Fix: see its history."
            )
        return found[-1]

    def _place(self, key: str) -> Uri:
        """Return the place of a content file; its node may have been moved since."""
        root = f"{self._nodes.root.key}/" if self._nodes.root.key else ""
        place = Uri.of_key(key.removeprefix(root).removesuffix(f"/{CONTENT}"))
        if place is None:
            raise NodeNotFoundError(f"{key!a} is no node. Fix: choose another version.")
        return place

    def _then(self, past: NodeReader, there: Uri, place: Uri, ctx: RequestContext) -> ContextNode:
        """Return what the node was, as the caller may write it at its place now."""
        node = past.read_node(str(there), ctx)
        may_see = self._nodes.reach.may_see
        edges = [edge for edge in node.relations if may_see(Uri.parse(edge.to_uri), ctx)]
        return replace(
            node,
            uri=str(place),
            owner_space="",
            relations=tuple(
                replace(edge, from_uri=str(place)) for edge in edges if edge.to_uri != str(place)
            ),
            basis="",
            problems=(),
        )


def _next(now: ContextNode, then: ContextNode) -> ContextNode | None:
    """Return the version after `now` that says what `then` does; None if it does."""
    if _said(now) == _said(then):
        return None
    is_ours = now.frontmatter is None and then.frontmatter is None
    gone = dict.fromkeys(now.metadata.keys() - then.metadata.keys())
    return now.revised(
        content=then.content,
        abstract=then.abstract,
        overview=then.overview,
        relations=then.relations,
        frontmatter=None if is_ours else _lines(then),
        metadata={**then.metadata, **gone},
    )


def _said(node: ContextNode) -> tuple[object, ...]:
    edges = {(edge.to_uri, edge.relation_type, edge.weight, edge.reason) for edge in node.relations}
    return node.content, node.abstract, node.overview, edges, dict(node.metadata), _lines(node)


def _lines(node: ContextNode) -> str:
    return frontmatter.generate(node.title) if node.frontmatter is None else node.frontmatter


def _cid(wanted: object) -> CID | None:
    """Return the CID that a text is; None if it is none."""
    try:
        return CID.parse(wanted) if isinstance(wanted, str) else None
    except InvalidCIDError:
        return None
