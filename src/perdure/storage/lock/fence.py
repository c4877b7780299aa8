"""The lock of one tree, and how far its files follow its history.

The log is the write-ahead log: a version enters history before its file is written. Two positions
tell what is left to do for the next holder of the lock.

    applied   every version up to here has its file. Written after each commit and never synced,
              so it is valid only until the machine restarts.
    settled   the mark: these files are also synced. It never passes what was applied.

Both can be behind, and are never ahead.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from perdure.artifacts.disk import Disk, Held, holder_of, take_in_time
from perdure.artifacts.mark import Mark, MarkFile, boot_of
from perdure.errors import LockTimeout, StorageFaultError, storage_error

FENCE = "fence"
APPLIED = "applied"
SETTLED = "settled"
_NEW = f"{SETTLED}.new"

_LONGEST_WAIT = 0.02
_OURS, _TAKEN_IN = 0, 1
"""Whose versions follow on the mark; it stands where other marks name a segment."""
_NO_HISTORY = bytes(16)
"""Stands in a mark that was made before anything was logged."""


class Fence:
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
        """Return the position up to which every version has its file, synced; None if unknown."""
        mark = self._read(SETTLED)
        return None if mark is None else mark.position

    def applied(self) -> int | None:
        """Return the position up to which every version has its file; None if unknown.

        What was written before the machine restarted does not count: a file that was not synced
        may be gone.
        """
        mark = self._read(APPLIED)
        if mark is not None and self._is_of_this_start(mark):
            return max(mark.position, self.settled())
        return self.mark()

    def is_of_this_start(self) -> bool:
        """Whether a commit was applied since the machine started."""
        marks = self._read(APPLIED), self._read(SETTLED)
        return any(mark is not None and self._is_of_this_start(mark) for mark in marks)

    def _is_of_this_start(self, mark: Mark) -> bool:
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

    def take_in(self) -> None:
        """Mark what follows as written elsewhere, so that its files are not written again."""
        settled = self.mark()
        if settled is not None:
            self._write_durably(settled, _TAKEN_IN)

    def is_taken_in(self) -> bool:
        """Whether what follows on the mark was written elsewhere."""
        mark = self._read(SETTLED)
        return mark is not None and mark.segment == _TAKEN_IN

    def apply(self, position: int) -> None:
        """Set the position that is applied. Needs the lock."""
        self._write(APPLIED, position)

    def settle(self, position: int) -> None:
        """Set the mark, without syncing it. Needs the lock."""
        self._write(SETTLED, position)

    def _write(self, name: str, position: int) -> None:
        with suppress(OSError):  # then the next holder of the lock compares more than it must
            MarkFile(self._disk.open(name, create=True)).write(self._as_of(position, _OURS))

    def settle_durably(self, position: int) -> None:
        """Set the mark, and return when that would survive a power cut. Needs the lock."""
        self._write_durably(position, _OURS)

    def _write_durably(self, position: int, whose: int) -> None:
        try:  # in another file: if a write in place were torn, nothing would tell what is settled
            file = self._disk.open(_NEW, create=True)
            MarkFile(file).write(self._as_of(position, whose))
            file.sync()
            self._disk.rename(_NEW, SETTLED)
            self._disk.sync()
        except OSError as error:
            raise StorageFaultError(
                f"{self._disk.whereabouts!a} does not confirm how far texts are settled: "
                f"{error.strerror}. A commit that was to be settled is done and can be seen. "
                "Fix: check the disk, then write again."
            ) from error

    def _as_of(self, position: int, whose: int) -> Mark:
        return Mark(self._history(), position, whose, boot_of(self._disk))

    # ------------------------------------------------------------ the lock
    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only writer; `LockTimeout` if another one is for too long."""
        if self._pid != os.getpid():  # a fork took our threads away
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

    def _take(self, deadline: float) -> Held:
        left = deadline - time.monotonic()
        held = take_in_time(partial(self._disk.lock, FENCE), left, _LONGEST_WAIT)
        if held is None:
            raise self._timed_out(holder_of(self._disk.path(FENCE)))
        return held

    def _timed_out(self, who: str) -> LockTimeout:
        return LockTimeout(
            f"the texts that {self._disk.whereabouts!a} keeps track of are being written by {who}, "
            f"and were for {self._patience:g} s. Fix: wait for it, or end that process."
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except LockTimeout:
            raise
        except OSError as error:
            raise storage_error(error, self._disk.whereabouts, FENCE) from error
