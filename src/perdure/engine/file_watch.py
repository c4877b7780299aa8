"""A watch on the files of a memory, which records edits as they happen."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from perdure.context.node_files import CONTENT, META
from perdure.dataclass import dataclass, replace
from perdure.engine.change_watcher import change_watcher
from perdure.engine.edits import checked_folders, look_for_edits, make_nodes, record
from perdure.engine.indexing.follower import accounts_of
from perdure.engine.repair import RepairState
from perdure.errors import BrokenNodeError, StorageSelectionError, TextsGoneError
from perdure.model import RequestContext, Uri
from perdure.storage import StorageBackend
from perdure.storage.stamps import save_scan

if TYPE_CHECKING:
    from perdure.engine.services import Services
    from perdure.storage.committer import Discrepancy

_QUIET_SECONDS = 0.1
_MAX_BUSY = 5
"""Wait at most this often for an editor to finish before files are scanned."""
_POLL_SECONDS = 2.0
_POLL_SHARE = 20
"""Without a watcher, scans take at most one part in this many of the time."""


class WatchKind(Enum):
    WATCHING = "watching"
    """From now on, no edit below this folder is missed."""
    EDIT = "edit"
    NEW = "new memory"
    REMOVED = "removed memory"
    LEFT_OUT = "left out"
    """It could not be indexed."""
    LEFT_ALONE = "left alone"
    """It can't become a node. Each is reported once."""
    UNREADABLE = "can't be read"
    OLDER_COUNTS = "can't be read as it is, so what was there before counts"


@dataclass(frozen=True, slots=True)
class WatchReport:
    kind: WatchKind
    names: tuple[str, ...]
    """URIs of nodes; paths of what is not a node."""
    reason: str = ""
    """The reason, with the fix; empty for a recorded edit."""


def watch(
    services: "Services", caller: RequestContext, ending: Event, record_edits: Callable[[], object]
) -> Iterator[WatchReport]:
    """Record edits as versions and make nodes of notes, in all accounts, until `ending` is set."""
    caller.demand_governing("watch all accounts")
    root = Path(services.recorded.identity)
    if not root.is_dir():
        raise StorageSelectionError(
            f"{str(root)!a} is not a folder, so there is nothing to watch. "
            "Fix: write something first, or choose a backend that stores files."
        )
    watcher = _EditWatch(services, caller, root)
    for number, _ in enumerate(_changes(services.recorded.inner, root, ending)):
        if number == 0:  # later edits are not missed from now on; earlier ones are recorded
            record_edits()
            yield WatchReport(WatchKind.WATCHING, (str(root),))
            watcher.begin()
        else:
            watcher.take_in()
        yield from watcher.reports()


def _changes(backend: StorageBackend, root: Path, ending: Event) -> Iterator[None]:
    """Yield at once, and soon after each change, until `ending` is set.

    If the system can't watch the folders, yield at intervals.
    """
    watcher = change_watcher(str(root), lambda: ("", *checked_folders(backend)))
    with watcher or nullcontext():
        known, pause, busy = watcher and watcher.changes(), _QUIET_SECONDS, 0
        yield
        while not ending.wait(pause):
            before, known = known, watcher and watcher.changes()
            if known is None:
                began = time.monotonic()
                yield
                pause = max(_POLL_SECONDS, _POLL_SHARE * (time.monotonic() - began))
            elif known != before and busy < _MAX_BUSY:
                busy += 1
            elif busy:
                yield
                busy = 0


class _EditWatch:
    """Records what changes below a folder. What can't be recorded is reported once."""

    def __init__(self, services: "Services", caller: RequestContext, root: Path) -> None:
        self._services = services
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
        for account in list(accounts_of(self._services.reader)):
            notes = self._services.repair.notes(self._as(account))
            contents = (f"{Uri.parse(note.uri).key}/{CONTENT}" for note in notes)
            begun = make_nodes(self._services, contents)
            self._settle(account, dict.fromkeys(begun, ()), frozenset(begun))

    def take_in(self) -> None:
        """Record edits as versions, make nodes of notes, and bring the index up to date."""
        services, inner = self._services, self._services.recorded.inner
        try:
            checked = look_for_edits(inner, services.recorded.history, services.seen)
            edits, begun = record(services, checked)
        except TextsGoneError as error:
            self._leave(str(self._root), str(error))
            return
        save_scan(services.seen, checked)
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
        self, account: str, edits: "Mapping[Uri, Sequence[Discrepancy]]", begun: frozenset[Uri]
    ) -> None:
        created = self._make_nodes(begun & edits.keys(), self._as(account))
        if created or any(edits.values()):
            follower = self._services.indexes.current(account).follower
            for uri, error in follower.catch_up(account).failed.items():
                self._report(WatchKind.LEFT_OUT, uri, reason=error)
        kinds: dict[WatchKind, list[Uri]] = defaultdict(list)
        for place, of_it in edits.items():
            kind = WatchKind.NEW if place in created else self._kind(place, of_it)
            if kind is not None:
                kinds[kind].append(place)
        for kind in filter(kinds.get, WatchKind):
            self._report(kind, *kinds[kind])

    def _as(self, account: str) -> RequestContext:
        return replace(self._caller, account_id=account)

    # ------------------------------------------------------------ nodes
    def _make_nodes(self, begun: Collection[Uri], ctx: RequestContext) -> set[Uri]:
        """Make nodes of notes; return those that are nodes now, and report why others are not."""
        for finding in self._services.repair.make_nodes(begun, ctx):
            if finding.state is RepairState.BROKEN:
                self._leave(finding.uri, finding.detail)
        return set(filter(self._services.reader.is_active, begun))

    def _kind(self, place: Uri, edits: "Sequence[Discrepancy]") -> WatchKind | None:
        """Return the kind of an edit; None if there was none, or the node can't be read."""
        if not edits:
            return None
        meta = next((edit for edit in edits if edit.locator.name == META), None)
        if meta is not None and meta.after is None:
            return WatchKind.REMOVED
        try:
            stored = self._services.reader.load(place)
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
