"""The lock of one tree, and how far its files follow its history.

The log is the write-ahead log: a version enters history before its file is written. Two positions
tell the next holder of the lock what is left to do.

    applied   every version up to here has its file. Written after each commit and never synced,
              so it is valid only until the machine restarts.
    settled   the mark: these files are also synced. It never passes `applied`.

Both can be behind, and are never ahead.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from perdure.artifacts.disk import Disk, DiskLock, acquire_within, lock_holder
from perdure.artifacts.log import Mark, MarkFile, boot_of
from perdure.errors import LockTimeout, StorageFaultError, storage_error

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
