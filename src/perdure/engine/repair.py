"""Find nodes in a state that no verb leaves behind, and repair them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum

from perdure.context.node_files import CONTENT, META
from perdure.context.node_repair import NodeRepair
from perdure.context.nodes import Nodes
from perdure.context.reader import StoredNode
from perdure.dataclass import dataclass
from perdure.engine.indexing.follower import LogReader
from perdure.engine.namespaces import TenantDeletion
from perdure.errors import (
    AccessRefusedError,
    BrokenNodeError,
    ConcurrentModificationError,
    LinkRefusedError,
    NodeExistsError,
    NodeNotFoundError,
    ParentIsFileError,
    PathIsDirectoryError,
    StorageError,
)
from perdure.model import NodeStatus, RequestContext, Uri
from perdure.model.node import time_problems
from perdure.storage.contract import UNREADABLE
from perdure.storage.stamps import ScanResult, StampTable, save_scan


class RepairState(Enum):
    META_MISSING = "meta missing"
    """A content without a meta: a note that was written by hand, or an interrupted save."""
    LEFTOVER = "leftover"
    """Files without a content and a meta, or an empty folder."""
    PENDING_COMPLETE = "pending, complete"
    PENDING_INCOMPLETE = "pending, incomplete"
    META_UNREADABLE = "meta unreadable"
    BROKEN = "broken"
    """Marked by an earlier repair, or neither readable nor repairable."""
    EDITED = "edited by hand"
    MARK_WRONG = "archive mark wrong"
    TIME_UNREADABLE = "time unreadable"
    """A time in its metadata can't be parsed, so that its date or validity is unknown."""


class RepairAction(Enum):
    COMPLETE = "make it a node"
    REMOVE = "remove the parts"
    ACTIVATE = "make it active"
    FINISH = "finish it from history, or set it aside as BROKEN"
    RESTORE = "take its last good meta from history, or make a new one"
    NONE = "none; look at it"
    ADOPT = "make the edit the next version"
    MARK = "set the mark right"


ACTIONS = {
    RepairState.META_MISSING: RepairAction.COMPLETE,
    RepairState.LEFTOVER: RepairAction.REMOVE,
    RepairState.PENDING_COMPLETE: RepairAction.ACTIVATE,
    RepairState.PENDING_INCOMPLETE: RepairAction.FINISH,
    RepairState.META_UNREADABLE: RepairAction.RESTORE,
    RepairState.BROKEN: RepairAction.NONE,
    RepairState.EDITED: RepairAction.ADOPT,
    RepairState.MARK_WRONG: RepairAction.MARK,
    RepairState.TIME_UNREADABLE: RepairAction.NONE,
}


_CHANGED_MEANWHILE = (
    NodeNotFoundError,
    NodeExistsError,
    ConcurrentModificationError,
    BrokenNodeError,
)
"""Another process changed the node meanwhile, or broke it in a way that only its owner can fix."""
_NOT_OURS = (LinkRefusedError, AccessRefusedError, PathIsDirectoryError, ParentIsFileError)
"""A file in the folder of the node is not a file of Perdure, and is not changed."""


@dataclass(frozen=True, slots=True)
class RepairFinding:
    uri: str
    state: RepairState
    detail: str = ""

    @property
    def action(self) -> RepairAction:
        return ACTIONS[self.state]

    @property
    def needs_owner(self) -> bool:
        """Whether only the owner can fix it."""
        return self.action is RepairAction.NONE


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `Memory.repair` found and, unless it was a dry run, repaired."""

    ended: tuple[TenantDeletion, ...]
    """Interrupted deletions of accounts, users and agents, which are finished now."""
    findings: tuple[RepairFinding, ...]


def _last_examination(note: str) -> tuple[int, list[str]] | None:
    """Return the position of the last examination, and the URIs with findings."""
    try:
        position, wrong = json.loads(note)
        return int(position), list(map(str, wrong))
    except (ValueError, TypeError):
        return None


class Repair:
    """Checks every node of an account that the caller may change, and repairs it.

    Every repair is an event of the outbox, like any write. A second run finds only what the owner
    has to fix.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._mending = NodeRepair(nodes)

    def examine(
        self, ctx: RequestContext, places: Iterable[Uri] | None = None
    ) -> list[RepairFinding]:
        """Return the findings of all nodes, or of those at some places."""
        every = self._nodes.walk(Uri(ctx.account_id)) if places is None else places
        found = (self._finding(place) for place in every if self._may(place, ctx))
        return [finding for finding in found if finding is not None]

    def examine_changed(
        self, ctx: RequestContext, edits: ScanResult, seen: StampTable, logged: LogReader
    ) -> list[RepairFinding]:
        """Return the same findings as `examine`, but read only nodes that may have changed since.

        These are the nodes that the log names since then, and those that had a finding. Everything
        is read if a file has another stamp than the one last seen, or is not a text; or in a
        layout with several files for a node, because a folder without files has no stamp.
        """
        now = logged.position()
        is_unseen = edits.found or edits.unreadable or edits.left
        if not self._nodes.has_layout or is_unseen or seen.has_unreadable:
            return self.examine(ctx)
        name = f"examined by {ctx.account_id} {ctx.role.value} {sorted(ctx.owner_spaces)}"
        before = _last_examination(seen.note(name))
        if before is None or before[0] > now:
            found = self.examine(ctx)
        else:
            changed = logged.changed(ctx.account_id, before[0])
            nodes = {each for each in (*map(Uri.parse, before[1]), *changed) if each.is_node}
            found = self.examine(ctx, sorted(nodes, key=str))
        wrong = [finding.uri for finding in found]
        with suppress(StorageError):  # then the next call reads everything
            save_scan(seen, edits)
            seen.change((), (), {name: json.dumps([now, wrong])})
        return found

    def run(self, ctx: RequestContext) -> list[RepairFinding]:
        """Repair all nodes; return the findings."""
        self._nodes.settle(unacknowledged=True)
        found = self.examine(ctx)
        for finding in found:
            self._repair(finding, ctx)
        return found

    def notes(
        self, ctx: RequestContext, places: Iterable[Uri] | None = None
    ) -> Iterator[RepairFinding]:
        """Yield the contents, at all places or at some, that `run` would make nodes.

        Those that can't be made nodes are BROKEN, with the reason.
        """
        everywhere = self._nodes.walk(Uri(ctx.account_id)) if places is None else places
        for place in everywhere:
            if not self._may(place, ctx) or self._nodes.text_at(place, META) is not None:
                continue
            finding = self._without_meta(place)
            if finding is not None and finding.state is not RepairState.LEFTOVER:
                yield finding

    def make_nodes(self, places: Iterable[Uri], ctx: RequestContext) -> list[RepairFinding]:
        found = list(self.notes(ctx, places))
        for finding in found:
            self._repair(finding, ctx)
        return found

    # ------------------------------------------------------------ examining
    def _finding(self, place: Uri) -> RepairFinding | None:
        try:
            stored = self._nodes.load(place)
        except BrokenNodeError as error:
            return RepairFinding(str(place), self._broken(place), str(error))
        except ConcurrentModificationError:  # it is being written
            return None
        if stored is None:
            return self._without_meta(place)
        found, times = self._state_of(stored), list(time_problems(stored.node.metadata))
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
            is_file = self._nodes.has_layout and self._nodes.text_at(place, META) is UNREADABLE
            can_restore = not is_file and self._mending.can_restore(place)
            return RepairState.META_UNREADABLE if can_restore else RepairState.BROKEN
        pending = meta.status is NodeStatus.PENDING
        return RepairState.PENDING_INCOMPLETE if pending else RepairState.BROKEN

    def _without_meta(self, place: Uri) -> RepairFinding | None:
        files = self._nodes.files(place)
        if files[META] is not None:
            return None  # it is being written or removed
        if files[CONTENT] is not None:
            why = self._mending.why_no_node(place)
            return RepairFinding(
                str(place), RepairState.BROKEN if why else RepairState.META_MISSING, why
            )
        leftover = self._mending.has_leftovers(place)
        return RepairFinding(str(place), RepairState.LEFTOVER) if leftover else None

    def _state_of(self, stored: StoredNode) -> RepairState | None:
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

    # ------------------------------------------------------------ repairing
    def _repair(self, finding: RepairFinding, ctx: RequestContext) -> None:
        verbs: Mapping[RepairAction, Callable[[str, RequestContext], object]] = {
            RepairAction.COMPLETE: self._mending.complete,
            RepairAction.REMOVE: self._mending.remove,
            RepairAction.ACTIVATE: self._mending.activate,
            RepairAction.FINISH: self._mending.finish,
            RepairAction.RESTORE: self._mending.restore,
            RepairAction.ADOPT: self._nodes.adopt,
            RepairAction.MARK: self._mending.mark,
            RepairAction.NONE: lambda *_: None,
        }
        with suppress(*_CHANGED_MEANWHILE, *_NOT_OURS):  # the next run examines it again
            verbs[finding.action](finding.uri, ctx)
            if finding.action is not RepairAction.NONE:
                self._mending.mark(finding.uri, ctx)
