"""Rewinding: all memories of a folder as they were at a moment, in one commit."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from perdure.artifacts import IndexState
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.engine.logged import Logged
from perdure.engine.restoring import Restoring
from perdure.errors import AccessDeniedError, BrokenNodeError, NodeNotFoundError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.storage.history import RESTORE, History
from perdure.storage.wrappers.view import View

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
    """What becomes of one node."""

    uri: str
    fate: Fate
    node: ContextNode | None = None
    """What is written."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rewound:
    """What became of the memories that had changed since a moment, or would."""

    state: IndexState
    """The moment."""
    steps: tuple[RewindStep, ...]

    def of(self, fate: Fate) -> tuple[str, ...]:
        return tuple(each.uri for each in self.steps if each.fate is fate)


@dataclass(frozen=True, slots=True)
class Rewinding:
    """Finds what changed since a moment, and writes what was there then as the next versions.

    What was said in sessions stays: it is what memories rest on.
    """

    nodes: Nodes
    history: History
    ctx: RequestContext

    def rewind(self, state: IndexState, folder: Uri, *, dry_run: bool) -> Rewound:
        """Rewind the nodes below a folder, all or none."""
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
        except AccessDeniedError:
            return False
        return True

    def _step(self, place: Uri, past: NodeReader, state: IndexState) -> RewindStep | None:
        """Return what becomes of a node; None if it is as it was."""
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
        restoring = Restoring(self.nodes, self.history)
        try:
            node = restoring.planned(str(place), lambda _: state, "", self.ctx)
        except NodeNotFoundError:
            return None
        return None if node is None else RewindStep(str(place), fate, node)
