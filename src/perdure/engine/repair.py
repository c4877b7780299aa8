"""Finds nodes that something left in a state that no verb leaves them in, and mends them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from perdure.context.files import CONTENT, META
from perdure.context.mending import Mending
from perdure.context.nodes import Nodes
from perdure.context.reading import Stored
from perdure.dataclass import dataclass
from perdure.engine.building import Logged
from perdure.engine.namespaces import Deleted
from perdure.errors import (
    AccessRefusedError,
    BrokenNodeError,
    ConcurrentModificationError,
    DirectoryInTheWayError,
    FileAboveError,
    LinkRefusedError,
    NodeExistsError,
    NodeNotFoundError,
    StorageError,
)
from perdure.model import NodeStatus, RequestContext, Uri
from perdure.model.node import unreadable_times
from perdure.storage.contract import UNREADABLE
from perdure.storage.seen import Checked, Seen, settle


class RepairState(Enum):
    META_MISSING = "meta missing"
    """A content without a meta: a note that somebody made by hand, or a create that died."""
    LEFTOVER = "leftover"
    """Parts without a content and without a meta, or an empty folder."""
    PENDING_COMPLETE = "pending, complete"
    PENDING_INCOMPLETE = "pending, incomplete"
    META_UNREADABLE = "meta unreadable"
    BROKEN = "broken"
    """Set aside by an earlier repair, or such that nobody could read or mend it."""
    EDITED = "edited by hand"
    MARK_WRONG = "archive mark wrong"
    TIME_UNREADABLE = "time unreadable"
    """In its metadata; so nobody knows when it was, or when it holds."""


class RepairAction(Enum):
    COMPLETE = "make it a node"
    REMOVE = "remove the parts"
    ACTIVATE = "make it active"
    FINISH = "finish it from history, or set it aside as BROKEN"
    RESTORE = "take its last good meta from history, or make a new one"
    TELL = "none; look at it"
    ADOPT = "make the edit the next version"
    MARK = "set the mark right"


ACTIONS = {
    RepairState.META_MISSING: RepairAction.COMPLETE,
    RepairState.LEFTOVER: RepairAction.REMOVE,
    RepairState.PENDING_COMPLETE: RepairAction.ACTIVATE,
    RepairState.PENDING_INCOMPLETE: RepairAction.FINISH,
    RepairState.META_UNREADABLE: RepairAction.RESTORE,
    RepairState.BROKEN: RepairAction.TELL,
    RepairState.EDITED: RepairAction.ADOPT,
    RepairState.MARK_WRONG: RepairAction.MARK,
    RepairState.TIME_UNREADABLE: RepairAction.TELL,
}


_FASTER = (NodeNotFoundError, NodeExistsError, ConcurrentModificationError, BrokenNodeError)
"""Somebody else changed the node meanwhile, or made it what only they can mend."""
_NOT_OURS = (LinkRefusedError, AccessRefusedError, DirectoryInTheWayError, FileAboveError)
"""Something lies among the files that is no file of ours to change."""


@dataclass(frozen=True, slots=True)
class RepairFinding:
    uri: str
    state: RepairState
    detail: str = ""

    @property
    def action(self) -> RepairAction:
        return ACTIONS[self.state]

    @property
    def is_left(self) -> bool:
        """Whether only the owner can settle it."""
        return self.action is RepairAction.TELL


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `Memory.repair` found and, if it was to, did."""

    ended: tuple[Deleted, ...]
    """Deletions of accounts, users and agents that had been interrupted, and are finished."""
    findings: tuple[RepairFinding, ...]


class _Examination(NamedTuple):
    position: int
    wrong: list[str]

    @classmethod
    def read(cls, noted: str) -> "_Examination | None":
        try:
            position, wrong = json.loads(noted)
            return cls(int(position), list(map(str, wrong)))
        except (ValueError, TypeError):
            return None


class Repair:
    """Looks at every node of an account that the caller may change, and mends what it finds.

    Whatever it does goes through the outbox like any write. A second run finds nothing left but
    what only a human can settle.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._mending = Mending(nodes)

    def examine(
        self, ctx: RequestContext, places: Iterable[Uri] | None = None
    ) -> list[RepairFinding]:
        """Return what is wrong with all nodes, or with those at some places."""
        every = self._nodes.walk(Uri(ctx.account_id)) if places is None else places
        found = (self._finding(place) for place in every if self._may(place, ctx))
        return [finding for finding in found if finding is not None]

    def examine_changed(
        self, ctx: RequestContext, edits: Checked, seen: Seen, logged: Logged
    ) -> list[RepairFinding]:
        """Return the same, but read only what may be otherwise than when it was last examined.

        That is what the log names since, and what was wrong then. Everything is read if a file
        has another stamp than when it was last seen, or is not a text; or if each part of a node
        has a file of its own, because a folder without files has no stamp.
        """
        now = logged.position()
        is_unseen = edits.found or edits.unreadable or edits.left
        if not self._nodes.is_laid_out or is_unseen or seen.has_unreadable:
            return self.examine(ctx)
        name = f"examined by {ctx.account_id} {ctx.role.value} {sorted(ctx.owner_spaces)}"
        before = _Examination.read(seen.note(name))
        if before is None or before.position > now:
            found = self.examine(ctx)
        else:
            changed = logged.changed(ctx.account_id, before.position)
            nodes = {each for each in (*map(Uri.parse, before.wrong), *changed) if each.is_node}
            found = self.examine(ctx, sorted(nodes, key=str))
        wrong = [finding.uri for finding in found]
        with suppress(StorageError):  # then all is read the next time
            settle(seen, edits)
            seen.change((), (), {name: json.dumps([now, wrong])})
        return found

    def run(self, ctx: RequestContext) -> list[RepairFinding]:
        """Mend what is wrong; return what it was."""
        self._nodes.settle(unacknowledged=True)
        found = self.examine(ctx)
        for finding in found:
            self._mend(finding, ctx)
        return found

    def notes(
        self, ctx: RequestContext, places: Iterable[Uri] | None = None
    ) -> Iterator[RepairFinding]:
        """Yield the contents that are no nodes, of all places or of some: what `run` makes nodes.

        Those of which none can be made are BROKEN, and say why.
        """
        everywhere = self._nodes.walk(Uri(ctx.account_id)) if places is None else places
        for place in everywhere:
            if not self._may(place, ctx) or self._nodes.look(place, META) is not None:
                continue
            finding = self._without_meta(place)
            if finding is not None and finding.state is not RepairState.LEFTOVER:
                yield finding

    def make_nodes(self, places: Iterable[Uri], ctx: RequestContext) -> list[RepairFinding]:
        found = list(self.notes(ctx, places))
        for finding in found:
            self._mend(finding, ctx)
        return found

    # ------------------------------------------------------------ looking
    def _finding(self, place: Uri) -> RepairFinding | None:
        try:
            stored = self._nodes.load(place)
        except BrokenNodeError as error:
            return RepairFinding(str(place), self._broken(place), str(error))
        except ConcurrentModificationError:  # it is being written, so somebody takes care of it
            return None
        if stored is None:
            return self._without_meta(place)
        found, times = self._state_of(stored), list(unreadable_times(stored.node.metadata))
        if found is None:
            return (
                RepairFinding(str(place), RepairState.TIME_UNREADABLE, "; ".join(times))
                if times
                else None
            )
        return RepairFinding(str(place), found, "; ".join(stored.node.problems))

    def _broken(self, place: Uri) -> RepairState:
        meta = self._mending.meta(place)
        if meta is None:
            is_file = self._nodes.is_laid_out and self._nodes.look(place, META) is UNREADABLE
            mends = not is_file and self._mending.can_restore(place)
            return RepairState.META_UNREADABLE if mends else RepairState.BROKEN
        pending = meta.status is NodeStatus.PENDING
        return RepairState.PENDING_INCOMPLETE if pending else RepairState.BROKEN

    def _without_meta(self, place: Uri) -> RepairFinding | None:
        files = self._nodes.files(place)
        if files[META] is not None:
            return None  # somebody was just about to write it, or to remove it
        if files[CONTENT] is not None:
            why = self._mending.why_no_node(place)
            return RepairFinding(
                str(place), RepairState.BROKEN if why else RepairState.META_MISSING, why
            )
        leftover = self._mending.has_leftovers(place)
        return RepairFinding(str(place), RepairState.LEFTOVER) if leftover else None

    def _state_of(self, stored: Stored) -> RepairState | None:
        status = stored.meta.status
        if status is NodeStatus.PENDING:
            return RepairState.PENDING_INCOMPLETE if stored.edited else RepairState.PENDING_COMPLETE
        if stored.node.problems or status is NodeStatus.BROKEN:
            return RepairState.BROKEN
        if stored.edited:
            return RepairState.EDITED
        if self._mending.marked(stored.node.place) != (status is NodeStatus.ARCHIVED):
            return RepairState.MARK_WRONG
        return None

    def _may(self, place: Uri, ctx: RequestContext) -> bool:
        return ctx.may_change(place) and self._nodes.reach.may_see(place, ctx)

    # ------------------------------------------------------------ mending
    def _mend(self, finding: RepairFinding, ctx: RequestContext) -> None:
        verbs: Mapping[RepairAction, Callable[[str, RequestContext], object]] = {
            RepairAction.COMPLETE: self._mending.complete,
            RepairAction.REMOVE: self._mending.remove,
            RepairAction.ACTIVATE: self._mending.activate,
            RepairAction.FINISH: self._mending.finish,
            RepairAction.RESTORE: self._mending.restore,
            RepairAction.ADOPT: self._nodes.adopt,
            RepairAction.MARK: self._mending.mark,
            RepairAction.TELL: lambda *_: None,
        }
        with suppress(*_FASTER, *_NOT_OURS):  # the next run sees what it is then
            verbs[finding.action](finding.uri, ctx)
            if finding.action is not RepairAction.TELL:
                self._mending.mark(finding.uri, ctx)
