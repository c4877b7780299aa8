"""What shows that this process is alive, and what it must let go of when it ends early."""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process without unwinding it, unless somebody handles it."""

INTERRUPTING_SIGNALS = (signal.SIGINT, signal.SIGALRM, *ENDING_SIGNALS)
"""What can come between any two steps of ours."""

_to_do: set[Callable[[], None]] = set()
_IDLE_BEATS = 20
_LONGEST_PAUSE_SECONDS = 60.0


def before_the_end(action: Callable[[], None]) -> None:
    """Do this at exit, and on an ending signal within `ending_cleanly`, unless called off."""
    _do_all_at_exit()
    _to_do.add(action)


def call_off(action: Callable[[], None]) -> None:
    _to_do.discard(action)


@contextmanager
def undisturbed() -> Iterator[Callable[[float], None]]:
    """Let signals wait for the length of a short `with`; gives a sleep in which they need not."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # only asks

    def sleep(seconds: float) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            time.sleep(seconds)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING_SIGNALS)

    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING_SIGNALS)  # may interrupt when done
        yield sleep
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let an ending signal that nobody handles do first what must be done; in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = [s for s in ENDING_SIGNALS if signal.getsignal(s) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    _do_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@cache
def _do_all_at_exit() -> None:
    atexit.register(_do_all)


def _do_all() -> None:
    for action in tuple(_to_do):
        action()
    _to_do.clear()


class Heart:
    """Beats for whatever is held, from a thread that ends when nothing was held for a while."""

    def __init__(self) -> None:
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._pauses: dict[Callable[[], None], float] = {}
        self._hurry = threading.Event()
        self._pause = _LONGEST_PAUSE_SECONDS
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def follow(self, beat: Callable[[], None], pause: float) -> None:
        """Call `beat` at least that often, until it leaves."""
        if self._pid != os.getpid():  # a fork has our memory, but not our thread
            self._start_afresh()
        self._pauses[beat] = pause
        if pause < self._pause:
            self._pause = pause
            self._hurry.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def leave(self, beat: Callable[[], None]) -> None:
        self._pauses.pop(beat, None)

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
            for beat in held:
                beat()


heart = Heart()
"""The one of this process."""
