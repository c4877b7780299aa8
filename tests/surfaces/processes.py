"""Commands that run until a signal, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

PERDURE = str(Path(sys.executable).with_name("perdure"))
DEADLINE_SECONDS = 60.0


class Running:
    """A command that is running, and the lines that it prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._unread = b""

    def line(self, seconds: float = DEADLINE_SECONDS) -> str:
        """Return the next line, as soon as it is there."""
        assert self._process.stdout is not None
        ends = time.monotonic() + seconds
        with DefaultSelector() as selector:
            selector.register(self._process.stdout, EVENT_READ)
            while b"\n" not in self._unread:
                assert selector.select(max(0.0, ends - time.monotonic())), "no line in time"
                data = os.read(self._process.stdout.fileno(), 4096)
                assert data, f"it ended: {self._process.communicate()[1].decode()}"
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Return its exit code, and all that it still printed."""
        printed, complained = self._process.communicate(timeout=DEADLINE_SECONDS)
        return self._process.returncode, (self._unread + printed).decode(), complained.decode()


@contextmanager
def running(*words: str) -> Iterator[Running]:
    """Run a command in the environment of this process; it is killed if it is left."""
    process = subprocess.Popen(
        [PERDURE, *words], env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate()


def until(is_so: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Wait until something is so; fail if it takes too long."""
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not come about in time"
        time.sleep(0.01)
