"""Texts whose files are synced later, on a disk that keeps whatever a weak file system may keep.

A `Machine` has one disk for the log and the files, and processes that share it. An operation of a
process is a write, a name that changes, or a sync; before each of them the process can be killed,
an operation can fail, and others can act: another process, or the owner with an editor.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from mmap import mmap
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from perdure.artifacts import ArtifactStore
from perdure.artifacts.disk import Buffer, Disk, DiskLock, File
from perdure.errors import AbsentError, NotTextError
from perdure.storage import Locator, StorageBackend
from perdure.storage.changes import Changes, Conditions, Expectation, check_found
from perdure.storage.contract import Capabilities, Info
from perdure.storage.recorded import Recorded
from perdure.storage.redo import is_torn
from perdure.storage.text_history import History, TreeLock
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import RecordingDisk

TEXTS = "texts"
_TEMPORARY = ".tmp"
_BEGIN = 1_000_000_000
STEP = 10_000
"""Milliseconds from one step to the next: more than a file may be younger than its commit."""


class Clock:
    """The time, and when each file got what it holds; after a power cut a copy goes on."""

    def __init__(
        self,
        before: "Clock | None" = None,
        *,
        cut: int | None = None,
        operations: Callable[[], int] = int,
    ) -> None:
        self.now: int = _BEGIN if before is None else before.now
        self._operations = operations
        """How many the disk had; a copy knows of those before the `cut`."""
        self._writes: list[_Written] = []
        if before is not None:
            known = (each for each in before._writes if cut is None or each.operation < cut)
            self._writes = [each._replace(operation=0) for each in known]

    def milliseconds(self) -> int:
        return self.now

    def wrote(self, name: str, data: bytes, *, at: int | None = None, torn: bool = True) -> None:
        """Take note of a write; if it was synced before it got its name, it is never torn."""
        time = self.now if at is None else at
        self._writes.append(_Written(self._operations(), name, data, time, torn))

    def mtime(self, name: str, data: bytes) -> float:
        """Return when the file got these bytes; if nobody wrote them, it is a torn write.

        The time of a file belongs to its inode: a name that a power cut gave back to an earlier
        file has the time of that one, so the write is the last of which these bytes can be left.
        """
        of_file = [each for each in reversed(self._writes) if each.name == name]
        same = (each.time for each in of_file if each.data == data)
        torn = [each for each in of_file if each.torn]
        left = (
            each.time
            for each in torn
            if is_torn(data.decode("latin-1"), each.data.decode("latin-1"))
        )
        return next(chain(same, left, (each.time for each in torn)), 0) / 1000


class _Written(NamedTuple):
    operation: int
    name: str
    data: bytes
    time: int
    torn: bool


class Unsynced(StorageBackend):
    """A folder of files; the rename of each is checked and done at once."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True)

    @property
    def defers_sync(self) -> bool:
        return True

    def read(self, locator: Locator) -> str:
        data = self.bytes_at(locator)
        if data is None:
            raise AbsentError(f"nothing is at {locator.key}")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotTextError(f"{locator.key} is not UTF-8") from error

    def bytes_at(self, locator: Locator) -> bytes | None:
        try:
            file = self._disk.open(quote(locator.key, safe=""))
        except FileNotFoundError:
            return None
        return file.read(0, file.size())

    def texts(self) -> dict[str, str]:
        found = {}
        for name in self._disk.names():
            locator = Locator(unquote(name))
            found[locator.key] = (self.bytes_at(locator) or b"").decode(errors="replace")
        return found

    def info(self, locator: Locator) -> Info:
        data = self.bytes_at(locator)
        if data is None:
            raise AbsentError(f"nothing is at {locator.key}")
        mtime = self._clock.mtime(quote(locator.key, safe=""), data)
        return Info(locator, is_dir=False, size=len(data), mtime=mtime)

    def exists(self, locator: Locator) -> bool:
        return self.bytes_at(locator) is not None

    def list(self, locator: Locator) -> list[Locator]:
        del locator
        return []

    def mkdir(self, locator: Locator) -> Locator:
        return locator

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.write_all({locator: content}, expect={locator: expect})
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self.write_all({locator: None}, expect={locator: expect})

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        self._write(changes, expect or {}, durable=False)

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        self._write(changes, expect or {}, durable=True)
        self._disk.sync()

    def _write(self, changes: Changes, expect: Conditions, *, durable: bool) -> None:
        for locator, text in changes.items():
            if text is not None:
                file = self._disk.open(quote(locator.key, safe="") + _TEMPORARY, create=True)
                if file.size():
                    file.truncate(0)
                file.write(0, [text.encode()])
                if durable:
                    file.sync()
        for locator, text in changes.items():
            name = quote(locator.key, safe="")
            if isinstance(self._disk, ProcessDisk):
                self._disk.meet()
            check_found(self.bytes_at(locator), (expect or {}).get(locator), locator)
            if text is not None:
                self._clock.wrote(name, text.encode(), torn=not durable)
                self._disk.rename(name + _TEMPORARY, name)
            elif name in self._disk.names():
                self._disk.remove(name)

    def sync(self, locators: Iterable[Locator]) -> None:
        for locator in locators:
            if quote(locator.key, safe="") in self._disk.names():
                self._disk.open(quote(locator.key, safe="")).sync()
        self._disk.sync()


class Store(NamedTuple):
    """The texts on a disk with their history, as one process opens them."""

    disk: Disk
    inner: Unsynced
    backend: Recorded

    @classmethod
    def on(cls, disk: "MemoryDisk | RecordingDisk | ProcessDisk", clock: Clock) -> Self:
        texts = disk.folder(TEXTS)
        for name in texts.names():
            if name.endswith(_TEMPORARY):  # the next holder of a lock does so
                texts.remove(name)
        inner = Unsynced(texts, clock)
        store = ArtifactStore(disk, clock=clock.milliseconds, wait=0)
        history = History(store, disk)
        history.lock = TreeLock(disk, lambda: store.history, patience=0)
        return cls(disk, inner, Recorded(inner, history))

    def retained(self) -> dict[str, list[str | None]]:
        """Return what history has of each key, oldest first; None where there was no text."""
        found: dict[str, list[str | None]] = {}
        store = self.backend.history.store
        for event in self.backend.history.changes():
            data = None if event.cid is None else store.get(event.cid)
            text = None if data is None else data.decode(errors="replace")
            found.setdefault(event.key, []).append(text)
        return found


# ---------------------------------------------------------------- processes
class Killed(BaseException):
    """The process is gone; what it would have cleared up stays."""


class Process:
    """One process. What it does next may kill it, or fail, or meet others, at some operation."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self.is_dead = False
        self.operations = 0
        self.kill_at: int | None = None
        self.fail_at: tuple[int, int] | None = None
        """At which operation, and with which error."""
        self.meet_at: tuple[int, Callable[[], object]] | None = None
        self.disk = ProcessDisk(machine.disk, self, machine.locks)
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store.on(self.disk, self._machine.clock)
        return self._store

    def operate(self) -> OSError | None:
        """Come to the next operation; return the error that it is to have."""
        self.live()
        self.operations += 1
        self._machine.seen()
        self.meet()
        if self.operations == self.kill_at:
            self.is_dead = True
            self._machine.locks.end(self)
            raise Killed
        if self.fail_at is not None and self.operations == self.fail_at[0]:
            return OSError(self.fail_at[1], "injected")
        return None

    def meet(self, ahead: int = 0) -> None:
        """Let others act, if it is their turn before the operation that is so far ahead."""
        if self.meet_at is not None and self.operations + ahead >= self.meet_at[0]:
            (_, other), self.meet_at = self.meet_at, None
            other()

    def live(self) -> None:
        if self.is_dead:
            raise Killed


class Machine:
    """Processes that share one disk. `seen` is called before each of their operations."""

    def __init__(self) -> None:
        self.disk = RecordingDisk(MemoryDisk())
        self.clock = Clock(operations=lambda: len(self.disk.recording.operations))
        self.locks = Locks()
        self.seen: Callable[[], None] = lambda: None

    def edit(self, key: str, text: str | None, *, at_once: bool, synced: bool, at: int) -> None:
        """Change a file as its owner does, who takes no lock."""
        folder, name = self.disk.folder(TEXTS), quote(key, safe="")
        if text is None:
            if name in folder.names():
                folder.remove(name)
        else:
            file = folder.open(f"{name}~" if at_once else name, create=True)
            if file.size():
                file.truncate(0)
            self.clock.wrote(name, text.encode(), at=at, torn=not (at_once and synced))
            file.write(0, [text.encode()])
            if synced:
                file.sync()
            if at_once:
                folder.rename(f"{name}~", name)
        if synced:
            folder.sync()


class Locks:
    """Who has which lock, of all processes."""

    def __init__(self) -> None:
        self._holders: dict[str, Process] = {}

    def take(self, name: str, process: Process) -> "_Held | None":
        if self._holders.setdefault(name, process) is not process:
            return None
        return _Held(lambda: self._holders.pop(name, None))

    def end(self, process: Process) -> None:
        self._holders = {name: who for name, who in self._holders.items() if who is not process}


class _Held(NamedTuple):
    release: Callable[[], object]


class ProcessDisk:
    """A disk as one process has it."""

    def __init__(
        self, inner: RecordingDisk, process: Process, locks: Locks, folder: str = ""
    ) -> None:
        self._inner = inner
        self._process = process
        self._locks = locks
        self._folder = folder

    @property
    def whereabouts(self) -> str:
        return self._inner.whereabouts

    @property
    def boot(self) -> str:
        return self._inner.boot

    def meet(self) -> None:
        """Let others act before the next operation, which is then certain to follow a check."""
        self._process.meet(ahead=1)

    def names(self) -> list[str]:
        self._process.live()
        return self._inner.names()

    def open(self, name: str, *, create: bool = False) -> File:
        if create and name not in self._inner.names():
            self._operate()
        self._process.live()
        return _ProcessFile(self._inner.open(name, create=create), self._process)

    def remove(self, name: str) -> None:
        self._operate()
        self._inner.remove(name)

    def rename(self, old: str, new: str) -> None:
        self._operate()
        self._inner.rename(old, new)

    def sync(self) -> None:
        self._operate()
        self._inner.sync()

    def _operate(self) -> None:
        error = self._process.operate()
        if error is not None:
            raise error

    def lock(self, name: str) -> DiskLock | None:
        self._process.live()
        return self._locks.take(f"{self._folder}{name}", self._process)  # type: ignore[return-value]

    def folder(self, name: str) -> "ProcessDisk":
        inner = self._inner.folder(name)
        return ProcessDisk(inner, self._process, self._locks, f"{self._folder}{name}/")

    def path(self, name: str) -> None:
        """Return nothing: what is written past us would not be recorded."""


class _ProcessFile:
    def __init__(self, inner: File, process: Process) -> None:
        self._inner = inner
        self._process = process

    def read(self, offset: int, length: int) -> bytes:
        self._process.live()
        return self._inner.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._operate()
        self._inner.write(offset, buffers)

    def sync(self) -> None:
        error = self._process.operate()
        if error is not None:
            self._inner.fail_sync()  # type: ignore[attr-defined] # it is recorded
            raise error
        self._inner.sync()

    def reserve(self, size: int) -> None:
        self._operate()
        self._inner.reserve(size)

    def truncate(self, size: int) -> None:
        self._operate()
        self._inner.truncate(size)

    def erase(self, offset: int, length: int) -> None:
        self._operate()
        self._inner.erase(offset, length)

    def _operate(self) -> None:
        error = self._process.operate()
        if error is not None:
            raise error

    def size(self) -> int:
        return self._inner.size()

    def map(self) -> mmap | memoryview:
        self._process.live()
        return self._inner.map()

    def close(self) -> None:
        self._inner.close()
