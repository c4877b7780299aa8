"""What the artifact store requires of a disk, and a folder as one."""

import ctypes
import errno
import fcntl
import mmap
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import Protocol, TypeVar

from perdure.files import make_folder, sync_path

Buffer = bytes | memoryview
LockType = TypeVar("LockType")

UNWRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""The errors for a file or file system that is read-only."""
_FIRST_PAUSE = 0.0005
_ZEROS = bytes(1 << 20)
_PUNCH_HOLE_KEEP_SIZE = 0x03
_MOST_BUFFERS = 512
_LOCKS = "/proc/locks"
_BOOT = "/proc/sys/kernel/random/boot_id"


class File(Protocol):
    """Bytes that survive the process at once, and a power cut after `sync`."""

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset; fewer only where the file ends."""

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write all buffers one after the other; extends the file if necessary."""

    def sync(self) -> None:
        """Return when everything written to the file, and its size, would survive a power cut.

        If this fails, what was written since the last sync may be lost, even if a second call
        succeeds.
        """

    def reserve(self, size: int) -> None:
        """Extend the file to at least this size with zeros."""

    def truncate(self, size: int) -> None:
        """Cut the file to this size."""

    def erase(self, offset: int, length: int) -> None:
        """Overwrite these bytes with zeros, and free their space where the disk can."""

    def size(self) -> int: ...

    def map(self) -> "mmap.mmap | memoryview":
        """Return the current content, to be read without copying."""

    def close(self) -> None: ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A flat folder of files."""

    def names(self) -> list[str]: ...

    def open(self, name: str, *, create: bool = False) -> File:
        """Open a file; `FileNotFoundError` if it does not exist and `create` is False."""

    def remove(self, name: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing one that has the new name."""

    def sync(self) -> None:
        """Return when every created, removed or renamed file would survive a power cut as such."""

    def lock(self, name: str) -> DiskLock | None:
        """Take the lock of this name, which excludes other processes; None if it is held."""

    def path(self, name: str) -> str | None:
        """Return the path of a file; None if the disk is not a folder of the operating system."""

    @property
    def boot(self) -> str:
        """An id of this boot of the machine; empty if there is none.

        Bytes that were written before this boot, and are readable now, are durable.
        """

    @property
    def whereabouts(self) -> str:
        """Its location, for messages."""


class FolderDisk:
    """A folder of the operating system. It is created with its first file."""

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        self._locks: dict[str, FolderLock] = {}

    @property
    def whereabouts(self) -> str:
        return self._path

    @property
    def boot(self) -> str:
        return boot_id()

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._path))
        except FileNotFoundError:
            return []

    def open(self, name: str, *, create: bool = False) -> "FolderFile":
        path = f"{self._path}/{name}"
        try:
            return FolderFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
        except FileNotFoundError:
            if not create:
                raise
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            return FolderFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
        self._make()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return FolderFile(path, os.open(path, flags, 0o600))

    def _make(self) -> None:
        if not os.path.isdir(self._path):
            make_folder(Path(self._path))

    def remove(self, name: str) -> None:
        os.remove(f"{self._path}/{name}")

    def rename(self, old: str, new: str) -> None:
        os.rename(f"{self._path}/{old}", f"{self._path}/{new}")

    def sync(self) -> None:
        sync_path(self._path)

    def lock(self, name: str) -> "FolderLock | None":
        lock = self._locks.get(name)
        if lock is None or lock.is_inherited:
            try:
                lock = FolderLock(f"{self._path}/{name}")
            except FileNotFoundError:
                self._make()
                lock = FolderLock(f"{self._path}/{name}")
            self._locks[name] = lock
        if not lock.acquire():
            return None
        try:
            if lock.is_usable:
                return lock
        except BaseException:
            lock.release()
            raise
        lock.release()
        del self._locks[name]
        return None

    def path(self, name: str) -> str:
        return f"{self._path}/{name}"


class FolderFile:
    """A file that is closed when the last reference to it is dropped."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, offset)
        if len(data) == length:
            return data
        pieces = [data]
        missing = length - len(data)
        while data and missing:
            data = os.pread(self._descriptor, missing, offset + length - missing)
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        if len(buffers) > _MOST_BUFFERS:
            self.write(offset, buffers[:_MOST_BUFFERS])
            offset += sum(map(len, buffers[:_MOST_BUFFERS]))
            self.write(offset, buffers[_MOST_BUFFERS:])
            return
        written = os.pwritev(self._descriptor, buffers, offset)
        if written < sum(map(len, buffers)):
            self._write_rest(offset, memoryview(b"".join(buffers)), written)

    def _write_rest(self, offset: int, data: memoryview, written: int) -> None:
        while written < len(data):
            more = os.pwrite(self._descriptor, data[written:], offset + written)
            if more == 0:
                raise OSError(errno.EIO, "the disk accepts no more bytes", self._path)
            written += more

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def reserve(self, size: int) -> None:
        # Zeros are written: merely allocated space costs a metadata update at each sync.
        self._write_zeros(self.size(), size)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def erase(self, offset: int, length: int) -> None:
        # Zeros first, for parts of pages; then the space of whole pages is freed.
        self._write_zeros(offset, offset + length)
        _punch(self._descriptor, offset, length)

    def _write_zeros(self, start: int, stop: int) -> None:
        for at in range(start, stop, len(_ZEROS)):
            self.write(at, [memoryview(_ZEROS)[: min(len(_ZEROS), stop - at)]])

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def map(self) -> mmap.mmap | memoryview:
        size = self.size()
        return (
            mmap.mmap(self._descriptor, size, access=mmap.ACCESS_READ) if size else memoryview(b"")
        )

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class FolderLock:
    """A lock that the operating system releases when its process ends, however it ends."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        self._pid = os.getpid()
        self._holder: int | None = None

    @classmethod
    def take(cls, path: str) -> "FolderLock | None":
        """Open and take a lock; None if it is held."""
        lock = cls(path)
        return lock if lock.acquire() else None

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether that succeeded."""
        if self.is_inherited:
            return False
        if self._holder is not None:
            # No thread takes it twice, so one that does was interrupted before it released it.
            return self._holder == get_ident()
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._holder = get_ident()
        return True

    @property
    def is_usable(self) -> bool:
        """Whether the file still has its name; without it, it excludes no other process."""
        return os.fstat(self._descriptor).st_nlink > 0

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked process, which must not use the lock of its parent."""
        return self._pid != os.getpid()

    def release(self) -> None:
        # Closing is not enough: a child that was forked meanwhile has the file open too.
        if self._holder is not None and not self.is_inherited:
            self._holder = None
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)


@cache
def boot_id() -> str:
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def acquire_within(
    take: Callable[[], LockType | None], seconds: float, longest_pause: float
) -> LockType | None:
    """Retry taking a lock for some time; None if it stays held."""
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while (taken := take()) is None and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)
    return taken


def lock_holder(path: str | None) -> str:
    """Describe the process that holds the lock of this file."""
    pid = None if path is None else _holding_process(path)
    return "another process" if pid is None else f"process {pid}"


def _holding_process(path: str) -> int | None:
    try:
        inode = os.stat(path).st_ino
        with open(_LOCKS, encoding="ascii") as locks:
            for line in locks:
                _, kind, _, _, pid, place, *_ = line.split()
                if kind == "FLOCK" and place.endswith(f":{inode}") and int(pid) > 0:
                    return int(pid)
    except (OSError, ValueError):
        return None
    return None


def _punch(descriptor: int, offset: int, length: int) -> None:
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is not None:
        fallocate(
            ctypes.c_int(descriptor),
            ctypes.c_int(_PUNCH_HOLE_KEEP_SIZE),
            ctypes.c_int64(offset),
            ctypes.c_int64(length),
        )
