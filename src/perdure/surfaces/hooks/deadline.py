"""A hard end of a process, whatever it is doing."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LAST_WORDS_SECONDS = 0.5


@contextmanager
def ending_after(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """End the process with code 0 if the `with` takes longer; what it writes is whole or not there.

    An exception would have to wait until a lock or a disk lets go.
    """
    done = threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            telling = threading.Thread(target=tell, daemon=True)
            telling.start()
            telling.join(_LAST_WORDS_SECONDS)  # what holds us up may hold that up, too
            os._exit(0)

    threading.Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield
    finally:
        done.set()
