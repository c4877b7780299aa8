"""Finds nodes that something left in a state that no verb leaves them in, and mends them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from holdfast.artifacts import CID
from holdfast.context.contract import OutboxStore
from holdfast.context.files import CONTENT
from holdfast.context.mending import Mending
from holdfast.context.nodes import Nodes
from holdfast.context.reading import Stored
from holdfast.errors import BrokenNodeError
from holdfast.model import EventType, NodeStatus, RequestContext, Uri


class State(Enum):
    """What may be wrong with a node."""

    META_MISSING = "meta missing"
    """A content without a meta: a note that somebody made by hand, or a create that died."""
    LEFTOVER = "leftover"
    """Parts without a content and without a meta."""
    PENDING_COMPLETE = "pending, complete"
    PENDING_INCOMPLETE = "pending, incomplete"
    META_UNREADABLE = "meta unreadable"
    BROKEN = "broken"
    """Set aside by an earlier repair, or edited so that it can't be read."""
    EDITED = "edited by hand"
    MARK_WRONG = "archive mark wrong"
    NOT_INDEXED = "not indexed"
    """Active, but the index has nothing of it, or something older."""
    INDEX_ORPHAN = "indexed, but no node"


class Action(Enum):
    """What is done about it."""

    COMPLETE = "make it a node"
    REMOVE = "remove the parts"
    ACTIVATE = "make it active"
    FINISH = "finish it from history, or set it aside as BROKEN"
    RESTORE = "take its last good meta from history, or make a new one"
    TELL = "none; look at it"
    ADOPT = "make the edit the next version"
    MARK = "set the mark right"
    REGISTER = "register it for the index"
    UNREGISTER = "register that it is gone"


ACTIONS = {
    State.META_MISSING: Action.COMPLETE,
    State.LEFTOVER: Action.REMOVE,
    State.PENDING_COMPLETE: Action.ACTIVATE,
    State.PENDING_INCOMPLETE: Action.FINISH,
    State.META_UNREADABLE: Action.RESTORE,
    State.BROKEN: Action.TELL,
    State.EDITED: Action.ADOPT,
    State.MARK_WRONG: Action.MARK,
    State.NOT_INDEXED: Action.REGISTER,
    State.INDEX_ORPHAN: Action.UNREGISTER,
}


@dataclass(frozen=True, slots=True)
class Finding:
    uri: str
    state: State
    detail: str = ""

    @property
    def action(self) -> Action:
        return ACTIONS[self.state]


class Indexed(Protocol):
    """What repair asks of an index."""

    def contents(self, account_id: str) -> Mapping[str, CID]:
        """Return the URIs that are indexed, each with the content that was."""


class Repair:
    """Looks at every node of an account that the caller may change, and mends what it finds.

    Whatever it does goes through the outbox like any write. A second run finds nothing left but
    what only a human can settle.
    """

    def __init__(self, nodes: Nodes, outbox: OutboxStore, index: Indexed | None = None) -> None:
        self._nodes = nodes
        self._outbox = outbox
        self._index = index
        self._mending = Mending(nodes)

    def examine(self, ctx: RequestContext) -> list[Finding]:
        """Say what is wrong; change nothing."""
        files = list(self._files(ctx))
        return [*files, *self._unindexed(ctx, {finding.uri for finding in files})]

    def run(self, ctx: RequestContext) -> list[Finding]:
        """Mend what is wrong; return what it was. What was mended is registered for the index."""
        files = list(self._files(ctx))
        for finding in files:
            self._mend(finding, ctx)
        unindexed = list(self._unindexed(ctx, set()))
        for finding in unindexed:
            self._register(finding, ctx)
        return [*files, *unindexed]

    # ------------------------------------------------------------ looking
    def _files(self, ctx: RequestContext) -> Iterator[Finding]:
        for place in self._nodes.walk(Uri(ctx.account_id)):
            finding = self._finding(place) if self._may(place, ctx) else None
            if finding is not None:
                yield finding

    def _finding(self, place: Uri) -> Finding | None:
        try:
            stored = self._nodes.load(place)
        except BrokenNodeError as error:
            return Finding(str(place), self._broken(place), str(error))
        found = self._without_meta(place) if stored is None else self._state_of(stored)
        problems = "" if stored is None else "; ".join(stored.node.problems)
        return None if found is None else Finding(str(place), found, problems)

    def _broken(self, place: Uri) -> State:
        meta = self._mending.meta(place)
        if meta is None:
            return State.META_UNREADABLE
        pending = meta.status is NodeStatus.PENDING
        return State.PENDING_INCOMPLETE if pending else State.BROKEN

    def _without_meta(self, place: Uri) -> State:
        return State.META_MISSING if self._mending.has(place, CONTENT) else State.LEFTOVER

    def _state_of(self, stored: Stored) -> State | None:
        status = stored.meta.status
        if status is NodeStatus.PENDING:
            return State.PENDING_INCOMPLETE if stored.edited else State.PENDING_COMPLETE
        if stored.node.problems or status is NodeStatus.BROKEN:
            return State.BROKEN
        if stored.edited:
            return State.EDITED
        if self._mending.marked(stored.node.place) != (status is NodeStatus.ARCHIVED):
            return State.MARK_WRONG
        return None

    def _unindexed(self, ctx: RequestContext, passed_over: set[str]) -> Iterator[Finding]:
        """Compare with the index; what is on its way there already is let be."""
        if self._index is None:
            return
        indexed = dict(self._index.contents(ctx.account_id))
        waiting = dict(self._outbox.list_unfinished(ctx.account_id))
        for place in self._nodes.walk(Uri(ctx.account_id)):
            uri = str(place)
            if not self._nodes.is_active(place):
                continue
            known = indexed.pop(uri, None)
            if uri in waiting or uri in passed_over or not self._may(place, ctx):
                continue
            if known != CID.of(self._nodes.active(place).node.content.encode()):
                yield Finding(uri, State.NOT_INDEXED)
        for uri in sorted(indexed):
            gone = waiting.get(uri)
            if self._may(Uri.parse(uri), ctx) and (
                gone is None or gone.event_type is EventType.UPSERT_NODE
            ):
                yield Finding(uri, State.INDEX_ORPHAN)

    def _may(self, place: Uri, ctx: RequestContext) -> bool:
        return ctx.may_change(place) and self._nodes.reach.may_see(place, ctx)

    # ------------------------------------------------------------ mending
    def _mend(self, finding: Finding, ctx: RequestContext) -> None:
        verbs: Mapping[Action, Callable[[str, RequestContext], object]] = {
            Action.COMPLETE: self._mending.complete,
            Action.REMOVE: self._mending.remove,
            Action.ACTIVATE: self._mending.activate,
            Action.FINISH: self._mending.finish,
            Action.RESTORE: self._mending.restore,
            Action.ADOPT: self._nodes.adopt,
            Action.MARK: self._mending.mark,
            Action.TELL: lambda *_: None,
        }
        verbs[finding.action](finding.uri, ctx)

    def _register(self, finding: Finding, ctx: RequestContext) -> None:
        if finding.state is State.NOT_INDEXED:
            self._outbox.register_write(self._nodes.read_node(finding.uri, ctx), ctx)
        else:
            self._outbox.register_delete(finding.uri, ctx)
