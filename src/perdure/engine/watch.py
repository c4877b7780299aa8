"""Edits of the files of a memory, taken in while they are made."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from perdure.context.files import CONTENT, META
from perdure.dataclass import dataclass, replace
from perdure.engine.building import accounts_of
from perdure.engine.edits import folders, look_for_edits, make_nodes, record
from perdure.engine.repair import RepairState
from perdure.engine.watcher import change_watcher
from perdure.errors import (
    BrokenNodeError,
    StorageSelectionError,
    TextsGoneError,
)
from perdure.model import RequestContext, Uri
from perdure.storage import StorageBackend
from perdure.storage.joint import Discrepancy
from perdure.storage.seen import settle

if TYPE_CHECKING:
    from perdure.engine.parts import Parts

_QUIET_SECONDS = 0.1
_MOST_BUSY = 5
"""So often it is waited for an editor to finish, before its files are looked at."""
_UNTOLD_SECONDS = 2.0
_UNTOLD_SHARE = 20
"""Where the system tells of no changes, so small a share of the time is spent on looking."""


class WatchKind(Enum):
    WATCHING = "watching"
    """From now on, no edit below this folder is missed."""
    EDIT = "edit"
    NEW = "new memory"
    REMOVED = "removed memory"
    LEFT_OUT = "left out"
    """It could not be indexed."""
    LEFT_ALONE = "left alone"
    """No node can be made of it. Each is reported once."""
    UNREADABLE = "can't be read"
    OLDER_COUNTS = "can't be read as it is, so what was there before counts"


@dataclass(frozen=True, slots=True)
class WatchReport:
    kind: WatchKind
    names: tuple[str, ...]
    """URIs of nodes; of what is not a node, its path."""
    reason: str = ""
    """Why, with the fix; of an edit that was taken in, empty."""


def watch(
    parts: "Parts", caller: RequestContext, ending: Event, record_edits: Callable[[], object]
) -> Iterator[WatchReport]:
    """Record edits as versions and make nodes of notes, in all accounts, until `ending` is set."""
    caller.demand_governing("watch all accounts")
    root = Path(parts.recorded.identity)
    if not root.is_dir():
        raise StorageSelectionError(
            f"{str(root)!a} is no folder, so there is nothing to watch. "
            "Fix: write something first, or choose a backend that keeps files."
        )
    watcher = _Watcher(parts, caller, root)
    for number, _ in enumerate(_changes(parts.recorded.inner, root, ending)):
        if number == 0:  # nothing is missed from now on; earlier edits are searched for
            record_edits()
            yield WatchReport(WatchKind.WATCHING, (str(root),))
            watcher.begin()
        else:
            watcher.take_in()
        yield from watcher.reports()


def _changes(backend: StorageBackend, root: Path, ending: Event) -> Iterator[None]:
    """Yield at once, and soon after each change, until `ending` is set.

    Where the system does not tell of changes, all files are to be looked at now and then.
    """
    watcher = change_watcher(str(root), lambda: ("", *folders(backend)))
    with watcher or nullcontext():
        known, pause, busy = watcher and watcher.changes(), _QUIET_SECONDS, 0
        yield
        while not ending.wait(pause):
            before, known = known, watcher and watcher.changes()
            if known is None:
                began = time.monotonic()
                yield
                pause = max(_UNTOLD_SECONDS, _UNTOLD_SHARE * (time.monotonic() - began))
            elif known != before and busy < _MOST_BUSY:
                busy += 1
            elif busy:
                yield
                busy = 0


class _Watcher:
    """Takes in what changes below a folder. What it leaves alone it reports once."""

    def __init__(self, parts: "Parts", caller: RequestContext, root: Path) -> None:
        self._parts = parts
        self._caller = caller
        self._root = root
        self._reports: list[WatchReport] = []
        self._left: set[str] = set()

    def reports(self) -> list[WatchReport]:
        reports, self._reports = self._reports, []
        return reports

    def _report(self, kind: WatchKind, *names: object, reason: object = "") -> None:
        self._reports.append(WatchReport(kind, tuple(map(str, names)), str(reason)))

    def begin(self) -> None:
        for account in list(accounts_of(self._parts.reader)):
            notes = self._parts.repair.notes(self._as(account))
            contents = (f"{Uri.parse(note.uri).key}/{CONTENT}" for note in notes)
            begun = make_nodes(self._parts, contents)
            self._settle(account, dict.fromkeys(begun, ()), frozenset(begun))

    def take_in(self) -> None:
        """Record edits as versions, make nodes of notes, and bring the index up to date."""
        parts, inner = self._parts, self._parts.recorded.inner
        try:
            checked = look_for_edits(inner, parts.recorded.history, parts.seen)
            edits, begun = record(parts, checked)
        except TextsGoneError as error:
            self._leave(str(self._root), str(error))
            return
        settle(parts.seen, checked)
        of_place: dict[Uri, list[Discrepancy]] = {place: [] for place in begun}
        for edit in edits:
            place = Uri.of_key(edit.locator.parent.key)
            if place is not None and place.is_node:
                of_place.setdefault(place, []).append(edit)
        by_account: dict[str, dict[Uri, list[Discrepancy]]] = defaultdict(dict)
        for place, of_it in of_place.items():
            by_account[place.account][place] = of_it
        for account, changed in by_account.items():
            self._settle(account, changed, frozenset(begun))

    def _settle(
        self, account: str, edits: Mapping[Uri, Sequence[Discrepancy]], begun: frozenset[Uri]
    ) -> None:
        made = self._make_nodes(begun & edits.keys(), self._as(account))
        if made or any(edits.values()):
            following = self._parts.present(account).following
            for uri, error in following.catch_up(account).failed.items():
                self._report(WatchKind.LEFT_OUT, uri, reason=error)
        kinds: dict[WatchKind, list[Uri]] = defaultdict(list)
        for place, of_it in edits.items():
            kind = WatchKind.NEW if place in made else self._kind(place, of_it)
            if kind is not None:
                kinds[kind].append(place)
        for kind in filter(kinds.get, WatchKind):
            self._report(kind, *kinds[kind])

    def _as(self, account: str) -> RequestContext:
        return replace(self._caller, account_id=account)

    # ------------------------------------------------------------ nodes
    def _make_nodes(self, begun: Collection[Uri], ctx: RequestContext) -> set[Uri]:
        """Make nodes of notes; return those that are nodes now, and report why others are none."""
        for finding in self._parts.repair.make_nodes(begun, ctx):
            if finding.state is RepairState.BROKEN:
                self._leave(finding.uri, finding.detail)
        return set(filter(self._parts.reader.is_active, begun))

    def _kind(self, place: Uri, edits: Sequence[Discrepancy]) -> WatchKind | None:
        """Return what others did to a node; None if there was none, or it can't be read."""
        if not edits:
            return None
        meta = next((edit for edit in edits if edit.locator.name == META), None)
        if meta is not None and meta.after is None:
            return WatchKind.REMOVED
        try:
            stored = self._parts.reader.load(place)
        except BrokenNodeError as error:
            self._report(WatchKind.UNREADABLE, place, reason=error)
            return None
        for problem in () if stored is None else stored.node.problems:
            self._report(WatchKind.OLDER_COUNTS, place, reason=problem)
        if stored is None or stored.node.problems:
            return None
        return WatchKind.NEW if meta is not None and meta.before is None else WatchKind.EDIT

    def _leave(self, what: str, why: str) -> None:
        if what not in self._left:
            self._left.add(what)
            self._report(WatchKind.LEFT_ALONE, what, reason=why)
