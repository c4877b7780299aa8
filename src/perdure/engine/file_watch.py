"""A watch on the files of a memory: whether any changed, and recording edits as they happen."""

import ctypes
import errno
import os
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from enum import Enum
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from perdure.context.files import CONTENT, META
from perdure.dataclass import dataclass, replace
from perdure.engine.edits import checked_folders, look_for_edits, make_nodes, record
from perdure.engine.indexing.follower import accounts_of
from perdure.errors import BrokenNodeError, StorageSelectionError, TextsGoneError
from perdure.files import Closing
from perdure.model import RequestContext, Uri
from perdure.storage import StorageBackend
from perdure.storage.confined import system_library
from perdure.storage.seen import settle

if TYPE_CHECKING:
    from perdure.engine.services import Services
    from perdure.storage.joint import Discrepancy

MAX_FOLDERS = 4_096
_TRUSTED_SECONDS = 10.0
"""Scan files at least this often: an edit through a hard link elsewhere causes no event."""
_LOCAL_DISKS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)
_EVENT = struct.Struct("iIII")
_READ_BYTES = 65_536
_MODIFIED, _ATTRIBUTES, _CLOSED, _MOVED, _CREATED, _DELETED = 0x2, 0x4, 0x8, 0xC0, 0x100, 0x200
_GONE, _OVERFLOW, _ONLY_FOLDER, _NO_LINK, _IS_FOLDER = 0xC00, 0x4000, 1 << 24, 1 << 25, 1 << 30
_WANTED = _MODIFIED | _ATTRIBUTES | _CLOSED | _MOVED | _CREATED | _DELETED | _GONE
_OTHER_FOLDERS = _OVERFLOW | _IS_FOLDER


class ChangeWatcher(Closing):
    """Reports whether anything in some folders changed, so that they need not be scanned again.

    The kernel queues an event before the call that changes a file returns. So if the queue is
    empty, nothing changed.
    """

    def __init__(self, root: str, folders: Callable[[], Iterable[str]]) -> None:
        self._root = root
        self._folders = folders
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._changes = 0
        self._settled = (-1, 0.0)
        self._identity = _identity(root)
        self._queue: int | None = _checked(
            system_library().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        )
        try:
            self._watch()
        except OSError:
            self.close()
            raise

    def changes(self) -> int | None:
        """Return a count that grows with changes; None if the watch was lost."""
        with self._lock:
            if self._queue is None or self._pid != os.getpid():
                return None
            try:
                events = self._read()
                if events & _OTHER_FOLDERS:
                    self._watch()
                if _identity(self._root) != self._identity:
                    return None
            except OSError:
                return None
            self._changes += bool(events)
            return self._changes

    def is_settled(self, changes: int | None) -> bool:
        """Whether everything was scanned as of a count, and recently."""
        settled, until = self._settled
        return changes == settled and time.monotonic() < until

    def settle(self, changes: int) -> None:
        """Note that everything was scanned after this count was returned."""
        self._settled = changes, time.monotonic() + _TRUSTED_SECONDS

    def close(self) -> None:
        with self._lock:
            if self._queue is not None:
                os.close(self._queue)
            self._queue = None

    def _read(self) -> int:
        """Return the masks of the events in the queue, combined; 0 if there is none."""
        found = 0
        while True:
            try:
                events = os.read(self._queue or -1, _READ_BYTES)
            except BlockingIOError:
                return found
            at = 0
            while at < len(events):
                _, mask, _, length = _EVENT.unpack_from(events, at)
                found |= mask
                at += _EVENT.size + length

    def _watch(self) -> None:
        """Watch every folder; one that is watched already stays watched."""
        folders = list(islice(self._folders(), MAX_FOLDERS + 1))
        if len(folders) > MAX_FOLDERS:
            raise OSError(errno.ENOSPC, "too many folders to watch")
        for folder in folders:
            path = os.fsencode(Path(self._root, folder))
            wanted = _WANTED | _ONLY_FOLDER | _NO_LINK
            _checked(system_library().inotify_add_watch(self._queue, path, wanted))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "a folder can't be watched")
    return result


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 - each recall asks it
    return found.st_dev, found.st_ino


def change_watcher(root: str, folders: Callable[[], Iterable[str]]) -> ChangeWatcher | None:
    """Return a watcher of folders below a root; None if the system can't watch them.

    That is so on other systems than Linux, on a disk that is not local (the system does not report
    what other machines write), and with too many folders or watchers.
    """
    if _disk_of(root) not in _LOCAL_DISKS:
        return None
    try:
        return ChangeWatcher(root, folders)
    except (AttributeError, OSError):
        return None


def _disk_of(path: str) -> str:
    """Return the type of the file system of a folder; empty if it is unknown."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    found = [line.split(" ") for line in mounts]
    above = [
        (len(where), kind)
        for _, where, kind, *_ in found
        if where == "/" or f"{path}/".startswith(f"{where}/")
    ]
    return max(above, default=(0, ""))[1]


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
        settle(services.seen, checked)
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
        from perdure.engine.repair import State  # noqa: PLC0415 - a recall loads this module too

        for finding in self._services.repair.make_nodes(begun, ctx):
            if finding.state is State.BROKEN:
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
