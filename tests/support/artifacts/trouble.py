"""A process that is killed, and a sync that fails, at a chosen step."""

import errno
from collections.abc import Sequence
from mmap import mmap

from perdure.artifacts.disk import Buffer, DiskLock, File
from tests.support.artifacts.recording import RecordingDisk, RecordingFile


class Killed(BaseException):
    """The process ends here. Nothing it does from now on reaches the disk."""


class Trouble:
    """What is to go wrong, and when: counted down by everything that changes the disk."""

    def __init__(self) -> None:
        self._operations_left: int | None = None
        self._syncs_left: int | None = None

    def kill_after(self, operations: int) -> None:
        self._operations_left = operations

    def fail_sync(self, number: int) -> None:
        """Let the sync of this number fail: 0 for the next."""
        self._syncs_left = number

    def cease(self) -> None:
        """Let all go well from now on."""
        self._operations_left = self._syncs_left = None

    def change(self) -> None:
        if self._operations_left is not None:
            if self._operations_left == 0:
                raise Killed
            self._operations_left -= 1

    def sync(self) -> bool:
        """Say whether the sync may succeed."""
        self.change()
        if self._syncs_left is None:
            return True
        self._syncs_left -= 1
        if self._syncs_left >= 0:
            return True
        self._syncs_left = None
        return False


class TroubledDisk:
    """Does what the recording disk in it does, until there is trouble."""

    def __init__(self, inner: RecordingDisk, trouble: Trouble) -> None:
        self._inner = inner
        self._trouble = trouble

    @property
    def whereabouts(self) -> str:
        return self._inner.whereabouts

    @property
    def boot(self) -> str:
        return self._inner.boot

    def names(self) -> list[str]:
        return self._inner.names()

    def open(self, name: str, *, create: bool = False) -> File:
        if create and name not in self._inner.names():
            self._trouble.change()
        return TroubledFile(self._inner.open(name, create=create), self._trouble)

    def remove(self, name: str) -> None:
        self._trouble.change()
        self._inner.remove(name)

    def rename(self, old: str, new: str) -> None:
        self._trouble.change()
        self._inner.rename(old, new)

    def sync(self) -> None:
        self._trouble.change()
        self._inner.sync()

    def lock(self, name: str) -> DiskLock | None:
        return self._inner.lock(name)

    def path(self, name: str) -> None:
        return self._inner.path(name)


class TroubledFile:
    def __init__(self, inner: RecordingFile, trouble: Trouble) -> None:
        self._inner = inner
        self._trouble = trouble

    def read(self, offset: int, length: int) -> bytes:
        return self._inner.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._trouble.change()
        self._inner.write(offset, buffers)

    def sync(self) -> None:
        if not self._trouble.sync():
            self._inner.fail_sync()
            raise OSError(errno.EIO, "the disk failed")
        self._inner.sync()

    def reserve(self, size: int) -> None:
        self._trouble.change()
        self._inner.reserve(size)

    def truncate(self, size: int) -> None:
        self._trouble.change()
        self._inner.truncate(size)

    def erase(self, offset: int, length: int) -> None:
        self._trouble.change()
        self._inner.erase(offset, length)

    def size(self) -> int:
        return self._inner.size()

    def map(self) -> mmap | memoryview:
        return self._inner.map()

    def close(self) -> None:
        self._inner.close()
