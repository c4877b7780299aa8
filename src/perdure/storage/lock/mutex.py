"""One writer at a time for each root, across processes, and past holders that die or stall.

The lock is a directory with one file in it, the baton, whose name says who has it:

    free              nobody
    held.<holder>     that holder
    taken.<holder>    somebody who clears up after a holder that died or stalled

Every step renames the baton from the name that was seen. Of all who try the same step one
succeeds, and nobody can release, or take twice, what has moved on in the meantime.

A stalled holder may wake up just before its commit, after it last looked. So a holder records the
name of its temporary file, in a record of its own beside the lock, before it makes it, and commits
by renaming that file. Whoever takes over removes the file before the baton is free again: the late
rename then has nothing to move, and fails.
"""

import atexit
import errno
import hashlib
import itertools
import os
import random
import re
import secrets
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from types import FrameType
from typing import NamedTuple

from perdure.dataclass import dataclass
from perdure.errors import LockLostError, LockTimeout, StorageError, StorageFaultError
from perdure.storage.locator import TEMPORARY_SUFFIX
from perdure.storage.openat import discard_temporary, read_all

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process without unwinding it, unless somebody handles it."""

INTERRUPTING_SIGNALS = (signal.SIGINT, signal.SIGALRM, *ENDING_SIGNALS)
"""What can come between any two steps of ours."""

_to_do: set[Callable[[], None]] = set()
_IDLE_BEATS = 20
_LONGEST_PAUSE_SECONDS = 60.0


def run_at_exit(action: Callable[[], None]) -> None:
    """Do this at exit, and on an ending signal within `ending_cleanly`, unless called off."""
    _do_all_at_exit()
    _to_do.add(action)


def cancel_at_exit(action: Callable[[], None]) -> None:
    _to_do.discard(action)


@contextmanager
def signals_blocked() -> Iterator[Callable[[float], None]]:
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
def cleanup_on_signal() -> Iterator[None]:
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


class Heartbeat:
    """Beats for whatever is held, from a thread that ends when nothing was held for a while."""

    def __init__(self) -> None:
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._pauses: dict[Callable[[], None], float] = {}
        self._hurry = threading.Event()
        self._pause = _LONGEST_PAUSE_SECONDS
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def add(self, beat: Callable[[], None], pause: float) -> None:
        """Call `beat` at least that often, until it leaves."""
        if self._pid != os.getpid():  # a fork has our memory, but not our thread
            self._start_afresh()
        self._pauses[beat] = pause
        if pause < self._pause:
            self._pause = pause
            self._hurry.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def remove(self, beat: Callable[[], None]) -> None:
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


heartbeat = Heartbeat()
"""The one of this process."""


_NO_SUCH_PLACE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FREE = "free"
_BATON = re.compile(r"free|(?:held|taken)\.\d+\.[^.]+\.\d+\.[^.]+\..*")
_FIRST_WAIT_SECONDS = 0.0005
_LONGEST_WAIT_SECONDS = 0.05
_RECORDS_KEPT_SECONDS = 86_400.0


class Holder(NamedTuple):
    """Who has the baton, as its name says."""

    since: float
    nonce: str
    pid: int
    machine: str
    host: str

    @classmethod
    def parse(cls, name: str) -> "Holder":
        _, since, nonce, pid, machine, host = name.split(".", 5)
        return cls(int(since) / 1000, nonce, int(pid), machine, host)

    @property
    def mutex(self) -> str:
        """Which of its process's locks it took; the name of that one's record."""
        return self.nonce.partition("-")[0]

    def describe(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
        return f"process {self.pid} on {self.host} since {since}"

    @property
    def is_dead(self) -> bool:
        """Whether it is sure to be gone; only knowable on the machine that it runs on."""
        if self.machine != _this_machine()[0]:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class HolderIdentity:
    """How this process signs the baton: each time with a name that was never used before."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.mutex = secrets.token_hex(6)
        self._process = f"{self.pid}.{'.'.join(_this_machine())}"
        self._count = itertools.count()

    def sign(self) -> tuple[str, str]:
        nonce = f"{self.mutex}-{next(self._count):x}"
        return nonce, f"{time.time_ns() // 1_000_000}.{nonce}.{self._process}"


@cache
def _this_machine() -> tuple[str, str]:
    """Name what process numbers are unique in: host, boot and process namespace."""
    host = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.uname().nodename)[:80]
    traits = [host]
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            traits.append(boot.read())
        traits.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(traits).encode()).hexdigest()[:12], host


@dataclass(frozen=True, slots=True)
class LockTiming:
    timeout: float = 30.0
    """How long to wait for the lock before `LockTimeout`."""
    stale_after: float = 10.0
    """After how long without a heartbeat a holder counts as stalled."""

    @property
    def heartbeat(self) -> float:
        return self.stale_after / 4


class HeldLock:
    __slots__ = ("_directory", "_nonce", "_signature", "_temporaries", "root", "token")

    def __init__(self, root: str, directory: str, signature: HolderIdentity) -> None:
        self.root = root
        self.token = ""
        self._directory = directory
        self._signature = signature
        self._nonce = ""
        self._temporaries: list[str] = []

    def temporaries(self, directory_keys: Iterable[str]) -> list[str]:
        """Return a new name for an unfinished file in each of these directories."""
        names = []
        for number, above in enumerate(directory_keys, len(self._temporaries)):
            names.append(name := f".{self._nonce}-{number}{TEMPORARY_SUFFIX}")
            self._temporaries.append(f"{above}/{name}" if above else name)
        path = f"{self._directory}.{self._signature.mutex}"
        record = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            rest = "\n".join(self._temporaries).encode() + b"\0"
            written = 0
            while rest:
                count = os.pwrite(record, rest, written)
                rest, written = rest[count:], written + count
        finally:
            os.close(record)
        return names

    def verify(self) -> None:
        """Raise `LockLostError` if somebody took over. Call it last before a commit."""
        try:
            os.stat(self.token)
        except FileNotFoundError:
            raise LockLostError(
                f"this process stalled while it held the lock on {self.root!a}, and another one "
                "took it over; nothing was committed. Fix: try again."
            ) from None

    def take(self) -> bool:
        """Take the baton if it is free, in a name that tells that we took it just now."""
        self._nonce, holder = self._signature.sign()
        self.token = f"{self._directory}/held.{holder}"
        try:
            os.rename(f"{self._directory}/{_FREE}", self.token)
        except FileNotFoundError:
            return False
        return True

    def release(self) -> None:
        """Give the baton back, unless it was taken over; if it can't go back, it lapses."""
        try:
            os.rename(self.token, f"{self._directory}/{_FREE}")
        except OSError:
            return

    def beat(self) -> None:
        with suppress(FileNotFoundError):
            os.utime(self.token)

    def abandon(self) -> None:
        """Clear up and release, because the process ends. What a fork inherited is not ours."""
        if self._signature.pid == os.getpid():
            for key in self._temporaries:
                with suppress(OSError):
                    discard_temporary(self.root, key)
            self.release()


class Mutex:
    """The lock of one root. Threads and processes may share it; it is not reentrant."""

    def __init__(self, root: str, locks: str, timing: LockTiming | None = None) -> None:
        self.root = os.path.realpath(root)
        self.timing = timing or LockTiming()
        self._folder = os.path.join(locks, hashlib.sha256(os.fsencode(self.root)).hexdigest())
        self._directory = os.path.join(self._folder, "lock")
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._signature = HolderIdentity()
        self._threads = threading.RLock()
        self._owner: int | None = None
        record = self._record_of(self._signature.mutex)
        self._finalizer = weakref.finalize(self, _remove_record, record, os.getpid())
        with suppress(OSError):
            self._clear_old_records()

    @contextmanager
    def hold(self) -> Iterator[HeldLock]:
        """Hold the lock for the length of a `with`; `LockTimeout` if it can't be had in time."""
        held = self.ask()
        try:
            self.acquire(held)
            yield held
        finally:
            self.release(held)

    def ask(self) -> HeldLock:
        """Return what `acquire` takes the lock with, in a `try` whose `finally` calls `release`."""
        if self._signature.pid != os.getpid():  # a fork took our threads away
            self._start_afresh()
        if self._owner == threading.get_ident():
            raise RuntimeError(
                f"this thread holds the lock on {self.root!a} already. "
                "Fix: do not take it twice; pass on what it gave you."
            )
        return HeldLock(self.root, self._directory, self._signature)

    def acquire(self, held: HeldLock, pause: Callable[[float], None] = time.sleep) -> None:
        """Take the lock. `pause` is how to wait between attempts."""
        deadline = time.monotonic() + self.timing.timeout
        self._enter_threads()
        self._acquire_or_explain(held, deadline, pause)
        run_at_exit(held.abandon)
        heartbeat.add(held.beat, self.timing.heartbeat)

    def release(self, held: HeldLock) -> None:
        try:
            heartbeat.remove(
                held.beat
            )  # first: if the rest is interrupted, the lock lapses by itself
            held.release()
            cancel_at_exit(held.abandon)
        finally:
            if self._owner == threading.get_ident():
                self._owner = None
            with suppress(RuntimeError):  # we never came so far as to exclude the other threads
                self._threads.release()

    def close(self) -> None:
        """Remove our record, for a lock that won't be taken again."""
        self._finalizer()

    def _enter_threads(self) -> None:
        if not self._threads.acquire(timeout=self.timing.timeout):
            raise LockTimeout(
                f"another thread of this process has held the lock on {self.root!a} for over "
                f"{self.timing.timeout:g} s. Fix: look for what keeps it busy."
            )
        self._owner = threading.get_ident()

    def _acquire_or_explain(
        self, held: HeldLock, deadline: float, pause: Callable[[float], None]
    ) -> None:
        try:
            self._acquire(held, deadline, pause)
        except StorageError:
            raise
        except OSError as error:
            raise StorageFaultError(
                f"can't take the lock on {self.root!a}: {error.strerror} in {self._folder!a}. "
                "Fix: make that folder writable, or set PERDURE_HOME to one that is."
            ) from error

    def _acquire(self, held: HeldLock, deadline: float, pause: Callable[[float], None]) -> None:
        wait = _FIRST_WAIT_SECONDS
        while not held.take():
            if self._make_way():
                continue
            if time.monotonic() >= deadline:
                raise self._timed_out()
            pause(wait * random.uniform(0.5, 1.5))  # noqa: S311 - spreads contenders
            wait = min(wait * 1.5, _LONGEST_WAIT_SECONDS)

    def _make_way(self) -> bool:
        """Make or free the baton if nobody alive has it; say whether to try again at once."""
        name = self._baton_name()
        if name is None:
            return self._make_baton()
        return name == _FREE or (self._lapsed(name) and self._take_over(name))

    def _baton_name(self) -> str | None:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return None
        return next(filter(_BATON.fullmatch, names), None)

    def _make_baton(self) -> bool:
        """Put a new lock directory in place, unless there is one that holds anything."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        fresh = os.path.join(self._folder, f"new.{secrets.token_hex(8)}")
        os.mkdir(fresh, 0o700)
        os.close(os.open(f"{fresh}/{_FREE}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.rename(fresh, self._directory)
        except OSError as error:
            os.unlink(f"{fresh}/{_FREE}")
            os.rmdir(fresh)
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            return False
        return True

    def _lapsed(self, name: str) -> bool:
        silence = self._silence(name)
        if silence is None:
            return False
        return abs(silence) > self.timing.stale_after or Holder.parse(name).is_dead

    def _silence(self, name: str) -> float | None:
        """Return the seconds since the last heartbeat; None if the baton moved on."""
        try:
            beat = os.stat(f"{self._directory}/{name}").st_mtime
        except FileNotFoundError:
            return None
        return time.time() - max(beat, Holder.parse(name).since)

    def _take_over(self, name: str) -> bool:
        """Clear up after the holder `name` and free the baton, unless another one does."""
        taken = f"{self._directory}/{_taken_over(name, self._signature)}"
        try:
            os.rename(f"{self._directory}/{name}", taken)
        except FileNotFoundError:
            return False
        holder = Holder.parse(name)
        self._clear_up_after(holder, gone=name.startswith("held.") and holder.is_dead)
        with suppress(FileNotFoundError):  # we stalled in turn, and were taken over
            os.rename(taken, f"{self._directory}/{_FREE}")
        return True

    def _clear_up_after(self, holder: Holder, *, gone: bool) -> None:
        """Remove the holder's temporary files, so that one that wakes up can't commit."""
        for key in _recorded_temporaries(self._record_of(holder.mutex)):
            try:
                discard_temporary(self.root, key)
            except OSError as error:
                if error.errno not in _NO_SUCH_PLACE and not gone:
                    raise

    def _record_of(self, mutex: str) -> str:
        return f"{self._directory}.{mutex}"

    def _clear_old_records(self) -> None:
        """Remove records of processes that died; whoever still needs one makes it again."""
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                age = time.time() - entry.stat().st_mtime
                if entry.name.startswith("lock.") and age > _RECORDS_KEPT_SECONDS:
                    os.unlink(entry.path)

    def _timed_out(self) -> LockTimeout:
        name = self._baton_name()
        if name is None:
            return LockTimeout(
                f"the lock directory {self._directory!a} holds something that is not ours. "
                "Fix: remove that directory."
            )
        who = "others in turn" if name == _FREE else Holder.parse(name).describe()
        return LockTimeout(
            f"the lock on {self.root!a} is held by {who}; gave up after {self.timing.timeout:g} s. "
            f"Fix: let that process finish or end it; without a heartbeat for "
            f"{self.timing.stale_after:g} s its lock lapses by itself."
        )


def _taken_over(name: str, signature: HolderIdentity) -> str:
    """Name the baton for one who takes it over; it still tells whose record to clear up after."""
    since, nonce, process = signature.sign()[1].split(".", 2)
    return f"taken.{since}.{Holder.parse(name).mutex}-{nonce}.{process}"


def _recorded_temporaries(record: str) -> list[str]:
    try:
        descriptor = os.open(record, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        keys, _, _ = read_all(descriptor).partition(b"\0")
    finally:
        os.close(descriptor)
    # One that was killed while it wrote the record had made no file yet, and left half a key.
    return [key for key in os.fsdecode(keys).split("\n") if key.endswith(TEMPORARY_SUFFIX)]


def _remove_record(record: str, pid: int) -> None:
    if os.getpid() == pid:  # a fork's copy is not its own
        with suppress(OSError):  # it may never have been made
            os.unlink(record)


@contextmanager
def vault_mutex(root: str, *, locks: str, timing: LockTiming | None = None) -> Iterator[HeldLock]:
    """Hold the lock of the folder `root`; lock directories live in the folder `locks`."""
    mutex = Mutex(root, locks, timing)
    try:
        with mutex.hold() as held, cleanup_on_signal():
            yield held
    finally:
        mutex.close()


def abandoned_locks(locks: str, timing: LockTiming | None = None) -> Iterator[str]:
    """Yield who holds a lock below a folder, and died or is silent for too long."""
    stale_after = (timing or LockTiming()).stale_after
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in sorted(os.listdir(locks)):
            yield from _abandoned(os.path.join(locks, folder, "lock"), stale_after)


def _abandoned(lock: str, stale_after: float) -> Iterator[str]:
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(lock):
            if not name.startswith(("held.", "taken.")):
                continue
            with suppress(ValueError, OverflowError):  # no baton
                holder = Holder.parse(name)
                silence = time.time() - os.stat(os.path.join(lock, name)).st_mtime
                if holder.is_dead:
                    yield f"{holder.describe()}, which is gone"
                elif abs(silence) > stale_after:
                    yield f"{holder.describe()}, silent for {abs(silence):.0f} s"
