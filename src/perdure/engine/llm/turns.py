"""One asks, and others with the same question wait for the answer, in whatever process."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.artifacts.artifact import SID
from perdure.errors import ServiceUnreachableError

_COUNT = 256
_PAUSE_SECONDS = 0.02


class Turns:
    """Locks in a folder, which end with the process that has them.

    There are 256; if two questions share one, the second waits without need.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._sleep = sleep

    @contextmanager
    def taken(self, question: SID, seconds: float) -> Iterator[float]:
        """Keep others with the same question out; yield how many seconds are left."""
        until = self._clock() + seconds
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{question.digest[0] % _COUNT:02x}"
        file = os.open(self._folder / name, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            self._take(file, until)
            yield until - self._clock()
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # also for a child that was forked meanwhile
            os.close(file)

    def _take(self, file: int, until: float) -> None:
        while not _is_free(file):
            if self._clock() >= until:
                raise ServiceUnreachableError(
                    "somebody else has been asking the same all the time. "
                    "Fix: look for a process that hangs, and try again.",
                    billed=False,
                )
            self._sleep(_PAUSE_SECONDS)


def _is_free(file: int) -> bool:
    """Take the lock, if nobody has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
