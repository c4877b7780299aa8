"""The history of a tree: every version of every text, its lock, and the past as a backend.

The log is the write-ahead log: a version, with its author, time, reason and sources, enters history
before its file is written. Two positions tell the next holder of the lock what is left to do.

    applied   every version up to here has its file. Written after each commit and never synced,
              so it is valid only until the machine restarts.
    settled   the mark: these files are also synced. It never passes `applied`.

Both can be behind, and are never ahead.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import NamedTuple, NoReturn

from perdure.artifacts import CID, ArtifactStore, IndexState, NewBinding
from perdure.artifacts.artifact import Value
from perdure.artifacts.disk import Disk, DiskLock, FolderDisk, acquire_within, lock_holder
from perdure.artifacts.entry import Bind, Binding
from perdure.artifacts.log import Mark, MarkFile, boot_of
from perdure.dataclass import dataclass, field, replace
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    LockTimeout,
    NotTextError,
    PathIsDirectoryError,
    StorageFaultError,
    storage_error,
)
from perdure.files import Closeable
from perdure.storage.contract import ROOT, Capabilities, Info, Listing, Skip
from perdure.storage.locator import Locator, children_named, is_key_segment
from perdure.storage.read_only import ImmutableBackend
from perdure.times import end_of

# ---------------------------------------------------------------- the lock
LOCK_FILE = "fence"
APPLIED = "applied"
SETTLED = "settled"
_NEW = f"{SETTLED}.new"

_LONGEST_WAIT = 0.02
_OURS, _IMPORTED = 0, 1
"""Where the versions after the mark come from; stored where other marks have a segment."""
_NO_HISTORY = bytes(16)
"""The history in a mark that was written before anything was logged."""


class TreeLock:
    """The lock, and the mark, of one tree. Threads and processes may share it."""

    def __init__(
        self, disk: Disk, history: Callable[[], bytes] = bytes, patience: float = 30.0
    ) -> None:
        self._disk = disk
        self._history = history
        self._patience = patience
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._threads = threading.Lock()

    # ------------------------------------------------------------ positions
    def settled(self) -> int:
        """Return the mark; 0 if there is none."""
        return self.mark() or 0

    def mark(self) -> int | None:
        """Return the position up to which every file is synced; None if it is not known."""
        mark = self._read(SETTLED)
        return None if mark is None else mark.position

    def applied(self) -> int | None:
        """Return the position up to which every version has its file; None if it is not known.

        A position that was applied before the machine restarted does not count: a file that was
        not synced may be lost.
        """
        mark = self._read(APPLIED)
        if mark is not None and self._is_of_this_boot(mark):
            return max(mark.position, self.settled())
        return self.mark()

    def is_of_this_boot(self) -> bool:
        """Whether a commit was applied since the machine started."""
        marks = self._read(APPLIED), self._read(SETTLED)
        return any(mark is not None and self._is_of_this_boot(mark) for mark in marks)

    def _is_of_this_boot(self, mark: Mark) -> bool:
        boot = boot_of(self._disk)
        return bool(boot) and mark.boot == boot

    def _read(self, name: str) -> Mark | None:
        with self._explained():
            try:
                file = MarkFile(self._disk.open(name))
                mark = file.read() or file.read()  # another process may be writing it
            except FileNotFoundError:
                return None
        if mark is None or mark.history not in (self._history() or _NO_HISTORY, _NO_HISTORY):
            return None
        return mark

    def mark_imported(self) -> None:
        """Mark the versions that follow as imported, so that a redo does not write their files."""
        settled = self.mark()
        if settled is not None:
            self._write_durably(settled, _IMPORTED)

    def is_imported(self) -> bool:
        """Whether the versions after the mark were imported."""
        mark = self._read(SETTLED)
        return mark is not None and mark.segment == _IMPORTED

    def apply(self, position: int) -> None:
        """Set the applied position. Needs the lock."""
        self._write(APPLIED, position)

    def settle(self, position: int) -> None:
        """Set the mark, without syncing it. Needs the lock."""
        self._write(SETTLED, position)

    def _write(self, name: str, position: int) -> None:
        with suppress(OSError):  # then the next holder of the lock compares more than it must
            MarkFile(self._disk.open(name, create=True)).write(self._as_of(position, _OURS))

    def settle_durably(self, position: int) -> None:
        """Set the mark, and return when it would survive a power cut. Needs the lock."""
        self._write_durably(position, _OURS)

    def _write_durably(self, position: int, origin: int) -> None:
        try:  # in another file: a torn write in place would lose the position
            file = self._disk.open(_NEW, create=True)
            MarkFile(file).write(self._as_of(position, origin))
            file.sync()
            self._disk.rename(_NEW, SETTLED)
            self._disk.sync()
        except OSError as error:
            raise StorageFaultError(
                f"{self._disk.whereabouts!a} does not confirm how far texts are settled: "
                f"{error.strerror}. The commit is done and visible. "
                "Fix: check the disk, then write again."
            ) from error

    def _as_of(self, position: int, origin: int) -> Mark:
        return Mark(self._history(), position, origin, boot_of(self._disk))

    # ------------------------------------------------------------ the lock
    @contextmanager
    def hold(self) -> Iterator[None]:
        """Exclude other writers; `LockTimeout` if one holds the lock for too long."""
        if self._pid != os.getpid():  # a fork has none of our threads
            self._start()
        deadline = time.monotonic() + self._patience
        if not self._threads.acquire(timeout=self._patience):
            raise self._timed_out("another thread of this process")
        try:
            with self._explained():
                held = self._take(deadline)
            try:
                yield
            finally:
                held.release()
        finally:
            self._threads.release()

    def _take(self, deadline: float) -> DiskLock:
        left = deadline - time.monotonic()
        held = acquire_within(partial(self._disk.lock, LOCK_FILE), left, _LONGEST_WAIT)
        if held is None:
            raise self._timed_out(lock_holder(self._disk.path(LOCK_FILE)))
        return held

    def _timed_out(self, holder: str) -> LockTimeout:
        return LockTimeout(
            f"{holder} has been writing the texts whose history is in "
            f"{self._disk.whereabouts!a} for over {self._patience:g} s. "
            "Fix: wait for it to finish, or end that process."
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except LockTimeout:
            raise
        except OSError as error:
            raise storage_error(error, self._disk.whereabouts, LOCK_FILE) from error


# ---------------------------------------------------------------- versions
SAVE = "save"
MERGE = "merge"
EXTERNAL = "external"
"""Found in the file, written by another program."""
RESTORE = "restore"
UNDONE = "undone"
"""Follows a version whose file was not written, and has what the file has."""
MOVED_FROM = "moved_from"
"""A key of `Circumstances.more`: the key that a text had before."""
CONFLICT_COPY = "conflict_copy"
"""A key of `more`, of a text that the file never had: the removed conflict copy that had it."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Author, reason and sources of a version; the commit has the time."""

    actor: str = ""
    reason: str = ""
    origin: str = SAVE
    derived_from: tuple[CID, ...] = ()
    more: Mapping[str, Value] = field(default_factory=dict)
    """Other values, stored as they are."""

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Value]) -> "Circumstances":
        """Read the mapping of a `Bind`. Values of an unexpected type stay in `more`."""
        more = dict(mapping)
        texts = {
            name: str(more.pop(name))
            for name in ("actor", "reason", "origin")
            if isinstance(mapping.get(name), str)
        }
        sources = mapping.get("derived_from")
        derived_from: tuple[CID, ...] = ()
        if isinstance(sources, Sequence) and not isinstance(sources, str | bytes):
            cids = tuple(source for source in sources if isinstance(source, CID))
            if len(cids) == len(sources):
                del more["derived_from"]
                derived_from = cids
        return cls(**texts, derived_from=derived_from, more=more)

    def of(self, key: str) -> "Circumstances":
        """Return the circumstances of one key, if `moved_from` maps several."""
        sources = self.more.get(MOVED_FROM)
        if not isinstance(sources, Mapping):
            return self
        more = {name: value for name, value in self.more.items() if name != MOVED_FROM}
        if key in sources:
            more[MOVED_FROM] = sources[key]
        return replace(self, more=more)

    def derived(self, source: CID | None) -> "Circumstances":
        """Return a copy with this source, if there is one."""
        return self if source is None else replace(self, derived_from=(source,))

    def to_mapping(self) -> dict[str, Value]:
        mapping: dict[str, Value] = {"origin": self.origin}
        if self.actor:
            mapping["actor"] = self.actor
        if self.reason:
            mapping["reason"] = self.reason
        if self.derived_from:
            mapping["derived_from"] = self.derived_from
        return {**mapping, **self.more}


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a key: it has this text from a position on, or none."""

    key: str
    position: int
    commit: int
    """The position from which on it is visible."""
    time: int
    """Milliseconds since the epoch."""
    cid: CID | None
    circumstances: Circumstances

    @property
    def unbound(self) -> bool:
        return self.cid is None

    @property
    def actor(self) -> str:
        return self.circumstances.actor

    @property
    def reason(self) -> str:
        return self.circumstances.reason

    @property
    def origin(self) -> str:
        return self.circumstances.origin

    @property
    def derived_from(self) -> tuple[CID, ...]:
        return self.circumstances.derived_from


@dataclass(frozen=True, slots=True)
class Version(Event):
    """An event of one key, with its number among them; the first is 1."""

    number: int


class BlamedLine(NamedTuple):
    """A line with its ending, and the version that wrote it."""

    text: str
    version: Version


VersionSelector = int | CID | Version
"""A version by its number, by its content (the last that had it), or itself."""


class History(Closeable):
    """The versions of the texts of one root, in an artifact store."""

    def __init__(self, store: ArtifactStore, disk: Disk) -> None:
        self.store = store
        self.lock = TreeLock(disk, lambda: store.history)

    @classmethod
    def open(cls, folder: str) -> "History":
        """Open the history in a folder; if there is none, the first version creates it."""
        return cls.on_disk(FolderDisk(folder))

    @classmethod
    def on_disk(cls, disk: Disk) -> "History":
        return cls(ArtifactStore(disk), disk)

    def close(self) -> None:
        self.store.close()

    # ------------------------------------------------------------ events
    def record(self, changes: Sequence[NewBinding]) -> IndexState:
        return self.store.record(changes)

    def changes(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after a position, each once and in order."""
        for logged in self.store.log(after=after):
            if isinstance(logged.entry, Bind):
                name, cid, mapping = logged.entry
                binding = Binding(name, logged.position, logged.commit, logged.time, cid, mapping)
                yield Event(*_fields(binding))

    def current(self, locator: Locator, state: IndexState | None = None) -> Event | None:
        """Return the last event of a key; None if there is none."""
        found = self.store.catalogue.last_binding(locator.key, self.position(state))
        return None if found is None else Event(*_fields(found))

    def versions(self, locator: Locator, state: IndexState | None = None) -> list[Version]:
        """Return all versions of a text, oldest first, including removals.

        If it was moved here, its versions under its former keys come first; earlier versions of
        this key belong to another text.
        """
        found = self._lineage(locator.key, self.position(state))
        return [Version(*_fields(binding), number) for number, binding in enumerate(found, 1)]

    def _lineage(self, key: str, position: int) -> list[Binding]:
        earlier, later = self.store.catalogue.versions(key, position), list[Binding]()
        while (moved := _last_move(earlier)) is not None:
            later = earlier[moved:] + later
            arrival = earlier[moved]
            source = str(arrival.circumstances[MOVED_FROM])
            former = self.store.catalogue.versions(source, arrival.commit)
            earlier = [version for version in former if _is_before(version, arrival)]
        return earlier + later

    def version(self, locator: Locator, which: VersionSelector) -> Version:
        """Return a version; `AbsentError` if there is none."""
        if isinstance(which, Version):
            return which
        wanted = [
            version for version in self.versions(locator) if which in (version.number, version.cid)
        ]
        if not wanted:
            raise AbsentError(
                f"{locator.key!a} has no version {which}. Fix: list its history to see them."
            )
        return wanted[-1]

    def position(self, state: IndexState | None = None) -> int:
        """Return the position of a state, or the newest, after the catalogue followed the log."""
        now = self.store.catalogue.follow()
        return now if state is None else state.position

    def state_at(self, when: datetime | date | str) -> IndexState:
        """Return the state as of a time: that of the last commit at or before it.

        A date means the end of that day. A time without a zone is in UTC, so that it is the same
        on every machine.
        """
        self.store.catalogue.follow()
        return IndexState(
            0, self.store.catalogue.position_at((end_of(when) - _EPOCH) // _MILLISECOND)
        )

    # ------------------------------------------------------------ texts
    def text(self, version: Event) -> str:
        """Return the text of a version; `AbsentError` if it is a removal, or was erased."""
        if version.cid is None:
            raise AbsentError(
                f"at entry {version.position}, {version.key!a} was removed. "
                "Fix: choose a version that has a text."
            )
        data = self.store.get(version.cid)
        if data is None:
            raise AbsentError(
                f"the text that {version.key!a} had at entry {version.position} was erased. "
                "Fix: choose another version."
            )
        return decode_text(data, version.key)

    def earlier(self, locator: Locator, state: IndexState | None = None) -> Iterator[str]:
        """Yield the texts that a key had up to a state, newest first; no undone or erased ones."""
        undone = False
        for version in reversed(self.versions(locator, state)):
            was_there = not undone or version.origin in (EXTERNAL, UNDONE)
            undone = version.origin == UNDONE
            if was_there:
                with suppress(AbsentError, NotTextError):
                    yield self.text(version)

    def diff(self, locator: Locator, old: VersionSelector, new: VersionSelector) -> str:
        from perdure.artifacts import lines  # noqa: PLC0415 - loads difflib

        a, b = self.version(locator, old), self.version(locator, new)
        return lines.diff(
            *("" if version.unbound else self.text(version) for version in (a, b)),
            old_name=f"{a.key}\tversion {a.number}",
            new_name=f"{b.key}\tversion {b.number}",
        )

    def blame(self, locator: Locator) -> list[BlamedLine]:
        """Return the lines of the text, each with the version that wrote it, if not erased."""
        from perdure.artifacts import lines  # noqa: PLC0415 - as before

        every = self.versions(locator)
        own = [v for v in every[:-1] if CONFLICT_COPY not in v.circumstances.more] + every[-1:]
        stored = [v for v in own[:-1] if v.cid is None or self.store.has(v.cid)] + own[-1:]
        texts = (None if version.unbound else self.text(version) for version in stored)
        return [BlamedLine(line.text, stored[line.version]) for line in lines.blame(texts)]


def decode_text(data: bytes, key: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"the content of {key!a} is not UTF-8: byte {error.start} is {data[error.start]:#04x}. "
            "Fix: read its bytes from the artifact store."
        ) from error


def _fields(binding: Binding) -> tuple[str, int, int, int, CID | None, Circumstances]:
    name, position, commit, when, cid, mapping = binding
    return name, position, commit, when, cid, Circumstances.from_mapping(mapping)


def _last_move(versions: Sequence[Binding]) -> int | None:
    """Return the index of the last version that was moved from another key."""
    for number in reversed(range(len(versions))):
        version = versions[number]
        if version.cid is not None and isinstance(version.circumstances.get(MOVED_FROM), str):
            return number
    return None


def _is_before(version: Binding, arrival: Binding) -> bool:
    """Whether a version of the former key was there before the text arrived at another."""
    is_edit = version.cid is not None and version.circumstances.get("origin") == EXTERNAL
    return version.commit < arrival.commit or is_edit


# ---------------------------------------------------------------- the past
_ANY = CID.of(b"")


class View(ImmutableBackend):
    """A history as of a state. A directory exists while a text is below it.

    Raises `StateError` for a state that is not retained, at once or when that changes.
    """

    is_past: bool = True

    def __init__(self, history: History, state: IndexState) -> None:
        self._history = history
        self._store = history.store
        self._catalogue = history.store.catalogue
        self._state = state
        self._check()
        self._catalogue.follow()
        self._time = self._catalogue.commit_at(state.position)[1] / 1000

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def whereabouts(self) -> str:
        return f"the past, as of entry {self._state.position}"

    # ------------------------------------------------------------ reading
    def read(self, locator: Locator) -> str:
        bound = self._bound(locator)
        if bound is None or bound.cid is None:
            if self._is_directory(locator):
                raise PathIsDirectoryError(
                    f"{locator.key!a} was a directory. Fix: name a text below it."
                )
            raise self._absent(locator)
        data = self._store.get(bound.cid, self._state)
        if data is None:
            raise self._hidden(locator)
        return decode_text(data, locator.key)

    def list(self, locator: Locator) -> list[Locator]:
        if self._bound(locator) is not None:
            return []
        start = len(locator.key) + 1 if locator.key else 0
        names = {name for name, _ in self._catalogue.children(locator.key, self._state.position)}
        return children_named(locator, [n[start:] for n in names if is_key_segment(n[start:])])

    def first(self, locator: Locator, most: int) -> Sequence[Locator]:
        """Return the first of `list` without reading more; names that are not keys count too."""
        if self._bound(locator) is not None:
            return []
        start = len(locator.key) + 1 if locator.key else 0
        names = self._catalogue.first_children(locator.key, self._state.position, most)
        return children_named(locator, [n[start:] for n in names if is_key_segment(n[start:])])

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        for here, stamps in super().scan(directory, skip=skip):
            bound = {name: self._bound(here.child(name)) for name in stamps or ()}
            yield Listing(here, {name: b.cid.digest for name, b in bound.items() if b and b.cid})

    def exists(self, locator: Locator) -> bool:
        return self._bound(locator) is not None or self._is_directory(locator)

    def info(self, locator: Locator) -> Info:
        bound = self._bound(locator)
        if bound is not None and bound.cid is not None:
            location = self._store.locate(bound.cid, self._state)
            if location is None:
                raise self._hidden(locator)
            size = sum(part.length for part in location)
            return Info(locator, is_dir=False, size=size, mtime=bound.time / 1000)
        if self._is_directory(locator):
            return Info(locator, is_dir=True, size=0, mtime=self._time)
        raise self._absent(locator)

    def earlier(self, locator: Locator) -> Iterator[str]:
        return self._history.earlier(locator, self._state)

    def _bound(self, locator: Locator) -> Binding | None:
        self._check()
        bound = self._catalogue.last_binding(locator.key, self._state.position)
        return None if bound is None or bound.cid is None or not locator.key else bound

    def _is_directory(self, locator: Locator) -> bool:
        return not locator.key or self._catalogue.any_below(locator.key, self._state.position)

    def _check(self) -> None:
        self._store.has(_ANY, self._state)

    def _absent(self, locator: Locator) -> AbsentError:
        return AbsentError(
            f"nothing was at {locator.key!a} at entry {self._state.position}. "
            "Fix: list the directory above to see what was there."
        )

    def _hidden(self, locator: Locator) -> AbsentError:
        return AbsentError(
            f"the text at {locator.key!a} had been hidden or erased at entry "
            f"{self._state.position}. Fix: choose an earlier state."
        )

    def _refuse(self, locator: Locator) -> NoReturn:
        raise AccessRefusedError(
            f"{locator.key!a} can't be changed here: this is the past, as of entry "
            f"{self._state.position}. Fix: write to the present; `restore` brings a text back."
        )
