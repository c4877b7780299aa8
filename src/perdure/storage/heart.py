"""One thread that shows for all locks of this process that it is alive."""

import os
import signal
import threading
from contextlib import suppress
from typing import Protocol

from perdure.storage.endings import INTERRUPTING_SIGNALS

_IDLE_BEATS = 20
_LONGEST_PAUSE_SECONDS = 60.0


class Living(Protocol):
    """Something that must show now and then that its process is alive."""

    def beat(self) -> None: ...


class Heart:
    """Beats for whatever is held, from a thread that ends when nothing was held for a while."""

    def __init__(self) -> None:
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._pauses: dict[Living, float] = {}
        self._hurry = threading.Event()
        self._pause = _LONGEST_PAUSE_SECONDS
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def follow(self, living: Living, pause: float) -> None:
        """Beat for `living` at least that often, until it leaves."""
        if self._pid != os.getpid():  # a fork has our memory, but not our thread
            self._start_afresh()
        self._pauses[living] = pause
        if pause < self._pause:
            self._pause = pause
            self._hurry.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def leave(self, living: Living) -> None:
        self._pauses.pop(living, None)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="perdure-heartbeat", daemon=True)
        with suppress(RuntimeError):  # no more threads to be had; a short hold needs no heartbeat
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING_SIGNALS)  # others have them
        idle = 0
        while idle < _IDLE_BEATS:
            self._hurry.wait(self._pause)
            self._hurry.clear()
            held = tuple(self._pauses)
            idle = 0 if held else idle + 1
            for living in held:
                living.beat()


heart = Heart()
"""The one of this process."""
