"""A watcher that reports whether files changed since they were scanned."""

import ctypes
import errno
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from perdure.files import Closeable
from perdure.storage.openat import system_library

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


class ChangeWatcher(Closeable):
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
