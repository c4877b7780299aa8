"""Everything that was asked of a disk, in order."""

from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import NamedTuple

from perdure.artifacts.disk import Buffer, DiskLock, File
from tests.support.artifacts.memory_disk import MemoryDisk


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Resize(NamedTuple):
    """The file was cut off, or grew by zeros."""

    file: int
    size: int


class SyncFile(NamedTuple):
    file: int


class FailSync(NamedTuple):
    """What was written to the file may never reach the disk, whatever a later sync says.

    Until it is written again.
    """

    file: int


class Enter(NamedTuple):
    """A new file got its name."""

    folder: str
    name: str
    file: int


class Leave(NamedTuple):
    folder: str
    name: str


class Rename(NamedTuple):
    folder: str
    old: str
    new: str


class SyncFolder(NamedTuple):
    folder: str


class Acknowledged(NamedTuple):
    """From here on, the promise must hold whatever happens."""

    promise: object


Operation = (
    Write | Resize | SyncFile | FailSync | Enter | Leave | Rename | SyncFolder | Acknowledged
)


class Recording(NamedTuple):
    """What a disk held, all of it durable, and what was asked of it then.

    The files at the start are numbered from 0 in the order of `start`; then come the new ones.
    """

    start: Mapping[str, bytes]
    operations: Sequence[Operation]


class RecordingDisk:
    """Does what the disk in it does, and writes down what could matter after a power cut."""

    def __init__(self, inner: MemoryDisk, tape: "_Tape | None" = None, folder: str = "") -> None:
        self._inner = inner
        self._tape = tape or _Tape(inner.files())
        self._folder = folder

    @property
    def recording(self) -> Recording:
        """What was recorded so far; it grows with what is done."""
        return Recording(self._tape.start, self._tape.operations)

    def acknowledged(self, promise: object) -> None:
        """Record that the promise was given, so that it must hold from now on."""
        self._tape.operations.append(Acknowledged(promise))

    @property
    def whereabouts(self) -> str:
        return self._inner.whereabouts

    @property
    def boot(self) -> str:
        return self._inner.boot

    def names(self) -> list[str]:
        return self._inner.names()

    def open(self, name: str, *, create: bool = False) -> "RecordingFile":
        inner = self._inner.open(name, create=create)
        number = self._tape.numbers.get((self._folder, name))
        if number is None:
            number = self._tape.enter(self._folder, name)
        return RecordingFile(inner, number, self._tape.operations)

    def remove(self, name: str) -> None:
        self._inner.remove(name)
        self._tape.leave(self._folder, name)

    def rename(self, old: str, new: str) -> None:
        self._inner.rename(old, new)
        self._tape.rename(self._folder, old, new)

    def sync(self) -> None:
        self._inner.sync()
        self._tape.operations.append(SyncFolder(self._folder))

    def lock(self, name: str) -> DiskLock | None:
        return self._inner.lock(name)

    def folder(self, name: str) -> "RecordingDisk":
        return RecordingDisk(self._inner.folder(name), self._tape, f"{self._folder}{name}/")

    def path(self, name: str) -> None:
        """Return nothing: what is written past us would not be recorded."""


class RecordingFile:
    def __init__(self, inner: File, number: int, operations: list[Operation]) -> None:
        self._inner = inner
        self._number = number
        self._operations = operations

    def read(self, offset: int, length: int) -> bytes:
        return self._inner.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        self._inner.write(offset, [data])
        self._operations.append(Write(self._number, offset, data))

    def sync(self) -> None:
        self._inner.sync()
        self._operations.append(SyncFile(self._number))

    def fail_sync(self) -> None:
        """Let a sync of the file have failed."""
        self._operations.append(FailSync(self._number))

    def reserve(self, size: int) -> None:
        if size > self._inner.size():
            self._inner.reserve(size)
            self._operations.append(Resize(self._number, size))

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._operations.append(Resize(self._number, size))

    def erase(self, offset: int, length: int) -> None:
        self._inner.erase(offset, length)
        self._operations.append(Write(self._number, offset, bytes(length)))

    def size(self) -> int:
        return self._inner.size()

    def map(self) -> mmap | memoryview:
        return self._inner.map()

    def close(self) -> None:
        self._inner.close()


class _Tape:
    """The operations, and which file has which name; shared by a disk and the folders in it."""

    def __init__(self, start: dict[str, bytes]) -> None:
        self.start = start
        self.operations: list[Operation] = []
        self.numbers = {split(path): number for number, path in enumerate(start)}
        self._count = len(start)

    def enter(self, folder: str, name: str) -> int:
        number = self.numbers[folder, name] = self._count
        self._count += 1
        self.operations.append(Enter(folder, name, number))
        return number

    def leave(self, folder: str, name: str) -> None:
        del self.numbers[folder, name]
        self.operations.append(Leave(folder, name))

    def rename(self, folder: str, old: str, new: str) -> None:
        self.numbers[folder, new] = self.numbers.pop((folder, old))
        self.operations.append(Rename(folder, old, new))


def split(path: str) -> tuple[str, str]:
    """Return the folder with its slash, or "", and the name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash, name
