"""One writer at a time, and how far the files are known to follow their history.

A version enters history before its file is written, so between the two somebody must be alone.
Who dies there leaves a version without its file. The next one knows, because the mark behind the
lock is moved only when the files are written. So it can be behind what is true, and never ahead.

Of one text that is enough. Several that were written as one may be taken for a commit that did not
finish, if somebody edits one of them and then the power goes. So for them the mark is synced.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from perdure.artifacts.disk import Disk, File, Held, holder_of, take_in_time
from perdure.artifacts.mark import Mark, MarkFile
from perdure.errors import LockTimeout, StorageFaultError, explain

FENCE = "fence"
SETTLED = "settled"

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

    # ------------------------------------------------------------ the mark
    def settled(self) -> int:
        """Return a position up to which every version has its file, or was answered."""
        return self.mark() or 0

    def mark(self) -> int | None:
        """Return the position that was last settled; None if nothing tells."""
        mark = self._read()
        return None if mark is None else mark.position

    def _read(self) -> Mark | None:
        with self._explained():
            try:
                file = MarkFile(self._disk.open(SETTLED))
                mark = file.read() or file.read()  # somebody may have been writing it
            except FileNotFoundError:
                return None
        if mark is None or mark.history not in (self._history() or _NO_HISTORY, _NO_HISTORY):
            return None
        return mark

    def take_in(self) -> None:
        """Mark what follows as written elsewhere, so none is unfinished. Needs the fence."""
        settled = self.mark()
        if settled is not None:
            self._write_durably(settled, _TAKEN_IN)

    def is_taken_in(self) -> bool:
        """Whether what follows on the mark was written elsewhere."""
        mark = self._read()
        return mark is not None and mark.segment == _TAKEN_IN

    def settle(self, position: int) -> None:
        """Say that up to a position all is settled. Only while the fence is held."""
        with suppress(OSError):  # then the next writer looks at more than it would have to
            self._write(self._disk.open(SETTLED, create=True), position, _OURS)

    def settle_durably(self, position: int) -> None:
        """Say so, and return when that would survive a power cut. Only while the fence is held."""
        self._write_durably(position, _OURS)

    def _write_durably(self, position: int, whose: int) -> None:
        try:
            file, is_new = self._opened()
            self._write(file, position, whose)
            file.sync()
            if is_new:
                self._disk.sync()
        except OSError as error:
            raise StorageFaultError(
                f"{self._disk.whereabouts!a} does not confirm how far texts are settled: "
                f"{error.strerror}. A commit that was to be settled is done and can be seen. "
                "Fix: check the disk, then write again."
            ) from error

    def _opened(self) -> tuple[File, bool]:
        try:
            return self._disk.open(SETTLED), False
        except FileNotFoundError:
            return self._disk.open(SETTLED, create=True), True

    def _write(self, file: File, position: int, whose: int) -> None:
        MarkFile(file).write(Mark(self._history(), position, whose))

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
            raise explain(error, self._disk.whereabouts, FENCE) from error
