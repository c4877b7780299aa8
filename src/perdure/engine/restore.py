"""Bringing a node, or all nodes of a folder, back to what they were."""

from collections.abc import Callable, Iterator
from enum import Enum

from perdure.artifacts import CID, IndexState
from perdure.context.files import CONTENT, generated_lines
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.building import Logged
from perdure.engine.past import When
from perdure.errors import (
    AccessDeniedError,
    AccessRefusedError,
    BrokenNodeError,
    InvalidCIDError,
    NodeNotFoundError,
)
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.storage.history import RESTORE, History, Version
from perdure.storage.wrappers.view import View


def _next(now: ContextNode, then: ContextNode) -> ContextNode | None:
    """Return the version after `now` that says what `then` does; None if it does."""
    if _said(now) == _said(then):
        return None
    is_ours = now.frontmatter is None and then.frontmatter is None
    return as_it_was(now, then, None if is_ours else _lines(then))


def as_it_was(now: ContextNode, then: ContextNode, lines: str | None) -> ContextNode:
    """Return the version after `now` that says what `then` does, below these lines."""
    gone = dict.fromkeys(now.metadata.keys() - then.metadata.keys())
    return now.revised(
        content=then.content,
        abstract=then.abstract,
        overview=then.overview,
        relations=then.relations,
        frontmatter=lines,
        metadata={**then.metadata, **gone},
    )


def _said(node: ContextNode) -> tuple[object, ...]:
    edges = {(edge.to_uri, edge.relation_type, edge.weight, edge.reason) for edge in node.relations}
    return node.content, node.abstract, node.overview, edges, dict(node.metadata), _lines(node)


def _lines(node: ContextNode) -> str:
    return generated_lines(node.title) if node.frontmatter is None else node.frontmatter


def _cid(wanted: object) -> CID | None:
    try:
        return CID.parse(wanted) if isinstance(wanted, str) else None
    except InvalidCIDError:
        return None


_BROKEN = "its files can't be understood; `perdure repair` says why"
_PUT_AWAY = "it was put away since; `perdure unarchive` it first"


class Fate(Enum):
    """What becomes of a node that has changed since a moment."""

    RESTORED = "restored"
    """It says again what it said then."""
    BACK = "brought back"
    """It was deleted since, and is there again."""
    REMOVED = "removed"
    """It was not there then; history keeps it."""
    LEFT = "left as it is"
    """It can't be rewound; the reason says why."""


@dataclass(frozen=True, slots=True)
class RewindStep:
    uri: str
    fate: Fate
    node: ContextNode | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rewound:
    state: IndexState
    steps: tuple[RewindStep, ...]

    def of(self, fate: Fate) -> tuple[str, ...]:
        return tuple(each.uri for each in self.steps if each.fate is fate)


@dataclass(frozen=True, slots=True)
class Restoring:
    """Writes what nodes were as their next versions."""

    nodes: Nodes
    history: History
    ctx: RequestContext

    def planned(
        self, uri: str, state_at: Callable[[When], IndexState], wanted: CID | When
    ) -> ContextNode | None:
        """Return the version to be written; None if the node is that already."""
        place = self.nodes.reach.changed(uri, self.ctx)
        cid = wanted if isinstance(wanted, CID) else _cid(wanted)
        if cid is not None:
            version = self._version(self.nodes.reach.seen(uri, self.ctx), cid)
            state, there = IndexState(0, version.commit), self._place(version.key)
        else:
            state, there = state_at(wanted), place  # type: ignore[arg-type] # it is no CID
        then = self._then(NodeReader(View(self.history, state)), there, place)
        try:
            now = self.nodes.read_node(uri, self.ctx)
        except NodeNotFoundError:
            return replace(then, version=1)
        return _next(now, then)

    def _version(self, place: Uri, cid: CID) -> Version:
        file = self.nodes.file(place, CONTENT)
        found = [each for each in self.history.versions(file) if each.cid == cid]
        if not found:
            raise NodeNotFoundError(
                f"{str(place)!a} never had the content {cid}. Fix: see its history."
            )
        return found[-1]

    def _place(self, key: str) -> Uri:
        """Return the place of a content file; its node may have been moved since."""
        root = f"{self.nodes.root.key}/" if self.nodes.root.key else ""
        place = Uri.of_key(key.removeprefix(root).removesuffix(f"/{CONTENT}"))
        if place is None:
            raise NodeNotFoundError(f"{key!a} is no node. Fix: choose another version.")
        return place

    def _then(self, past: NodeReader, there: Uri, place: Uri) -> ContextNode:
        """Return what the node was, as the caller may write it at its place now."""
        try:
            node = past.read_node(str(there), self.ctx)
        except NodeNotFoundError as error:
            raise NodeNotFoundError(
                f"{str(place)!a} was not there then, or not in use. Nothing was changed. "
                "Fix: choose a version that `perdure why` lists."
            ) from error
        may_see = self.nodes.reach.may_see
        edges = [edge for edge in node.relations if may_see(Uri.parse(edge.to_uri), self.ctx)]
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

    # ------------------------------------------------------------ many nodes
    def rewind(self, state: IndexState, folder: Uri, *, dry_run: bool) -> Rewound:
        """Rewind the nodes below a folder, all or none.

        What was said in sessions stays: it is what memories rest on.
        """
        past = NodeReader(View(self.history, state))
        found = (self._step(place, past, state) for place in self._changed(state, folder))
        done = Rewound(state, tuple(sorted(filter(None, found), key=lambda step: step.uri)))
        write = [step.node for step in done.steps if step.node is not None]
        gone = done.of(Fate.REMOVED)
        if not dry_run and (write or gone):
            self.nodes.because(origin=RESTORE).exchange(write, gone, self.ctx)
        return done

    def _changed(self, state: IndexState, folder: Uri) -> Iterator[Uri]:
        """Yield the nodes below a folder that were written after a state, and are the caller's."""
        for place in Logged(self.history, self.nodes).changed(folder.account, state.position):
            below = place.path[: len(folder.path)] == folder.path
            if below and place.is_node and not place.session and self._may_change(place):
                yield place

    def _may_change(self, place: Uri) -> bool:
        try:
            self.nodes.reach.changed(str(place), self.ctx)
        except (AccessDeniedError, AccessRefusedError):
            return False
        return True

    def _step(self, place: Uri, past: NodeReader, state: IndexState) -> RewindStep | None:
        was_there = past.exists(str(place), self.ctx)
        try:
            stored = self.nodes.load(place)
        except BrokenNodeError:
            return RewindStep(str(place), Fate.LEFT, reason=_BROKEN)
        if stored is None:
            return self._written(place, state, Fate.BACK) if was_there else None
        if stored.meta.status is not NodeStatus.ACTIVE:
            return RewindStep(str(place), Fate.LEFT, reason=_PUT_AWAY) if was_there else None
        if not was_there:
            return RewindStep(str(place), Fate.REMOVED)
        return self._written(place, state, Fate.RESTORED)

    def _written(self, place: Uri, state: IndexState, fate: Fate) -> RewindStep | None:
        try:
            node = self.planned(str(place), lambda _: state, "")
        except NodeNotFoundError:
            return None
        return None if node is None else RewindStep(str(place), fate, node)
