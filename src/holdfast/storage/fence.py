"""One writer at a time for each history, and how far its files are known to follow it.

A version enters history before its file is written, so between the two somebody must be alone.
Who dies there leaves a version without its file. The next one knows, because the mark behind the
lock is moved only when the files are written; and that is also why it need not be synced: it can
be behind what is true, and never ahead of it.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from holdfast.artifacts.disk import Disk, Held, holder_of
from holdfast.artifacts.mark import Mark, MarkFile
from holdfast.errors import LockTimeout
from holdfast.faults import explain

FENCE = "fence"
SETTLED = "settled"

_FIRST_WAIT = 0.0005
_LONGEST_WAIT = 0.02


class Fence:
    """The lock, and the mark, of one history. Threads and processes may share it."""

    def __init__(self, disk: Disk, history: Callable[[], bytes], patience: float = 30.0) -> None:
        self._disk = disk
        self._history = history
        self._patience = patience
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._threads = threading.Lock()

    def settled(self) -> int:
        """Return a position up to which every version has its file, or was answered."""
        with self._explained():
            try:
                mark = MarkFile(self._disk.open(SETTLED)).read()
            except FileNotFoundError:
                return 0
        return mark.position if mark and mark.history == self._history() else 0

    def settle(self, position: int) -> None:
        """Say that up to a position all is settled. Only while the fence is held."""
        with suppress(OSError):  # then the next writer looks at more than it would have to
            file = MarkFile(self._disk.open(SETTLED, create=True))
            file.write(Mark(self._history(), position, 0))

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
        wait = _FIRST_WAIT
        while (held := self._disk.lock(FENCE)) is None:
            if time.monotonic() >= deadline:
                raise self._timed_out(holder_of(self._disk.path(FENCE)))
            time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - spreads contenders
            wait = min(wait * 1.5, _LONGEST_WAIT)
        return held

    def _timed_out(self, who: str) -> LockTimeout:
        return LockTimeout(
            f"the texts whose history is in {self._disk.whereabouts!a} are being written by {who}, "
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
