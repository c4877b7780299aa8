"""One writer at a time for each root, across processes, and past holders that die or stall.

The lock is a directory with one file in it, the token, whose name says who owns the lock:

    free              no one
    held.<holder>     that holder
    taken.<holder>    a process that cleans up after a holder that died or stalled

Every step renames the token from the name that was read. Of all processes that try the same step
one succeeds, and none can release, or take twice, a token that was renamed in the meantime.

A stalled holder may wake up just before its commit, after it last checked. Therefore a holder
records the name of its temporary file, in a record beside the lock, before it creates the file, and
commits by renaming it. A process that takes over removes the file before it frees the token: the
late rename then finds no file, and fails.
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
"""Signals that end a process without unwinding it, unless it handles them."""
INTERRUPTING_SIGNALS = (signal.SIGINT, signal.SIGALRM, *ENDING_SIGNALS)

_NO_SUCH_PLACE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FREE = "free"
_TOKEN = re.compile(r"free|(?:held|taken)\.\d+\.[^.]+\.\d+\.[^.]+\..*")
_FIRST_WAIT_SECONDS = 0.0005
_LONGEST_WAIT_SECONDS = 0.05
_RECORD_LIFETIME_SECONDS = 86_400.0
_IDLE_BEATS = 20
_LONGEST_PAUSE_SECONDS = 60.0


# ---------------------------------------------------------------- ends and signals
_exit_actions: set[Callable[[], None]] = set()


def run_at_exit(action: Callable[[], None]) -> None:
    """Run this at exit, and on an ending signal within `cleanup_on_signal`, unless cancelled."""
    _register_exit_actions()
    _exit_actions.add(action)


def cancel_at_exit(action: Callable[[], None]) -> None:
    _exit_actions.discard(action)


@cache
def _register_exit_actions() -> None:
    atexit.register(_run_exit_actions)


def _run_exit_actions() -> None:
    for action in tuple(_exit_actions):
        action()
    _exit_actions.clear()


@contextmanager
def signals_blocked() -> Iterator[Callable[[float], None]]:
    """Delay signals until the end of a short `with`; yields a sleep during which they arrive."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # only reads the mask

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
    """Run the exit actions on an ending signal that has no handler; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    unhandled = [s for s in ENDING_SIGNALS if signal.getsignal(s) is signal.SIG_DFL]
    for number in unhandled:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    _run_exit_actions()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Heartbeat:
    """Calls each holder's beat from a thread, which ends when none was held for a while."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._pauses: dict[Callable[[], None], float] = {}
        self._hurry = threading.Event()
        self._pause = _LONGEST_PAUSE_SECONDS
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def add(self, beat: Callable[[], None], pause: float) -> None:
        """Call `beat` at least every `pause` seconds, until it is removed."""
        if self._pid != os.getpid():  # a fork has our memory, but not our thread
            self._reset()
        self._pauses[beat] = pause
        if pause < self._pause:
            self._pause = pause
            self._hurry.set()
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="perdure-heartbeat", daemon=True)
            with suppress(RuntimeError):  # no more threads; a short hold needs no heartbeat
                thread.start()
                self._thread = thread

    def remove(self, beat: Callable[[], None]) -> None:
        self._pauses.pop(beat, None)

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING_SIGNALS)  # for other threads
        idle = 0
        while idle < _IDLE_BEATS:
            self._hurry.wait(self._pause)
            self._hurry.clear()
            held = tuple(self._pauses)
            idle = 0 if held else idle + 1
            for beat in held:
                beat()


heartbeat = Heartbeat()
"""The heartbeat of this process."""


# ---------------------------------------------------------------- holders
class Holder(NamedTuple):
    """Who has the token, as its name says."""

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
        """The id of the `Mutex` object that took the lock, which names its record."""
        return self.nonce.partition("-")[0]

    def describe(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
        return f"process {self.pid} on {self.host} since {since}"

    @property
    def is_dead(self) -> bool:
        """Whether its process is certainly gone; known only on the same machine."""
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
    """Generates the names under which a mutex of this process holds the token; each is unique."""

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
    """Return an id of the scope of process ids (host, boot, process namespace), and the host."""
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
    """Seconds to wait for the lock before `LockTimeout`."""
    stale_after: float = 10.0
    """Seconds without a heartbeat after which a holder counts as stalled."""

    @property
    def heartbeat(self) -> float:
        return self.stale_after / 4


class HeldLock:
    """The lock of a root while one thread holds it."""

    __slots__ = ("_directory", "_identity", "_nonce", "_temporaries", "root", "token")

    def __init__(self, root: str, directory: str, identity: HolderIdentity) -> None:
        self.root = root
        self.token = ""
        self._directory = directory
        self._identity = identity
        self._nonce = ""
        self._temporaries: list[str] = []

    def temporaries(self, directory_keys: Iterable[str]) -> list[str]:
        """Return a new name for an unfinished file in each of these directories."""
        names = []
        for number, above in enumerate(directory_keys, len(self._temporaries)):
            names.append(name := f".{self._nonce}-{number}{TEMPORARY_SUFFIX}")
            self._temporaries.append(f"{above}/{name}" if above else name)
        path = f"{self._directory}.{self._identity.mutex}"
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
        """Raise `LockLostError` if the lock was taken over. Call it last before a commit."""
        try:
            os.stat(self.token)
        except FileNotFoundError:
            raise LockLostError(
                f"this process stalled while it held the lock on {self.root!a}, and another one "
                "took it over; nothing was committed. Fix: try again."
            ) from None

    def take(self) -> bool:
        """Take the token if it is free; return whether it was."""
        self._nonce, holder = self._identity.sign()
        self.token = f"{self._directory}/held.{holder}"
        try:
            os.rename(f"{self._directory}/{_FREE}", self.token)
        except FileNotFoundError:
            return False
        return True

    def release(self) -> None:
        """Free the token, unless it was taken over. If that fails, the lock expires."""
        with suppress(OSError):
            os.rename(self.token, f"{self._directory}/{_FREE}")

    def beat(self) -> None:
        with suppress(FileNotFoundError):
            os.utime(self.token)

    def abandon(self) -> None:
        """Clean up and release, because the process ends; a fork does not own what it inherited."""
        if self._identity.pid == os.getpid():
            for key in self._temporaries:
                with suppress(OSError):
                    discard_temporary(self.root, key)
            self.release()


# ---------------------------------------------------------------- the mutex
class Mutex:
    """The lock of one root. Threads and processes may share it; it is not reentrant."""

    def __init__(self, root: str, locks: str, timing: LockTiming | None = None) -> None:
        self.root = os.path.realpath(root)
        self.timing = timing or LockTiming()
        self._folder = os.path.join(locks, hashlib.sha256(os.fsencode(self.root)).hexdigest())
        self._directory = os.path.join(self._folder, "lock")
        self._reset()

    def _reset(self) -> None:
        self._identity = HolderIdentity()
        self._threads = threading.RLock()
        self._owner: int | None = None
        record = self._record_of(self._identity.mutex)
        self._finalizer = weakref.finalize(self, _remove_record, record, os.getpid())
        with suppress(OSError):
            self._remove_old_records()

    @contextmanager
    def hold(self) -> Iterator[HeldLock]:
        """Hold the lock for the length of a `with`; `LockTimeout` if it is not free in time."""
        held = self.ask()
        try:
            self.acquire(held)
            yield held
        finally:
            self.release(held)

    def ask(self) -> HeldLock:
        """Return an argument for `acquire`; call that in a `try` that ends with `release`."""
        if self._identity.pid != os.getpid():  # a fork has none of our threads
            self._reset()
        if self._owner == threading.get_ident():
            raise RuntimeError(
                f"this thread holds the lock on {self.root!a} already. "
                "Fix: take it once, and pass on what `hold` yields."
            )
        return HeldLock(self.root, self._directory, self._identity)

    def acquire(self, held: HeldLock, pause: Callable[[float], None] = time.sleep) -> None:
        """Take the lock. `pause` sleeps between attempts."""
        deadline = time.monotonic() + self.timing.timeout
        if not self._threads.acquire(timeout=self.timing.timeout):
            raise LockTimeout(
                f"another thread of this process has held the lock on {self.root!a} for over "
                f"{self.timing.timeout:g} s. Fix: look for what keeps it busy."
            )
        self._owner = threading.get_ident()
        try:
            self._wait_for(held, deadline, pause)
        except StorageError:
            raise
        except OSError as error:
            raise StorageFaultError(
                f"can't take the lock on {self.root!a}: {error.strerror} in {self._folder!a}. "
                "Fix: make that folder writable, or set PERDURE_HOME to one that is."
            ) from error
        run_at_exit(held.abandon)
        heartbeat.add(held.beat, self.timing.heartbeat)

    def release(self, held: HeldLock) -> None:
        try:
            heartbeat.remove(held.beat)  # first: if the rest is interrupted, the lock expires
            held.release()
            cancel_at_exit(held.abandon)
        finally:
            if self._owner == threading.get_ident():
                self._owner = None
            with suppress(RuntimeError):  # `acquire` failed before it excluded other threads
                self._threads.release()

    def close(self) -> None:
        """Remove our record. The lock is not taken again through this object."""
        self._finalizer()

    def _wait_for(self, held: HeldLock, deadline: float, pause: Callable[[float], None]) -> None:
        wait = _FIRST_WAIT_SECONDS
        while not held.take():
            if self._free_token():
                continue
            if time.monotonic() >= deadline:
                raise self._timed_out()
            pause(wait * random.uniform(0.5, 1.5))  # noqa: S311 - spreads contenders
            wait = min(wait * 1.5, _LONGEST_WAIT_SECONDS)

    def _free_token(self) -> bool:
        """Create or free the token if no living process has it; return whether to retry at once."""
        name = self._token_name()
        if name is None:
            return self._create_token()
        return name == _FREE or (self._is_stale(name) and self._take_over(name))

    def _token_name(self) -> str | None:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return None
        return next(filter(_TOKEN.fullmatch, names), None)

    def _create_token(self) -> bool:
        """Put a new lock directory in place, unless there is one that is not empty."""
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

    def _is_stale(self, name: str) -> bool:
        holder = Holder.parse(name)
        try:
            beat = os.stat(f"{self._directory}/{name}").st_mtime
        except FileNotFoundError:  # the token was renamed
            return False
        silence = time.time() - max(beat, holder.since)
        return abs(silence) > self.timing.stale_after or holder.is_dead

    def _take_over(self, name: str) -> bool:
        """Clean up after the holder `name` and free the token, unless another process does."""
        holder = Holder.parse(name)
        # The new name still tells whose record to clean up after.
        since, nonce, process = self._identity.sign()[1].split(".", 2)
        taken = f"{self._directory}/taken.{since}.{holder.mutex}-{nonce}.{process}"
        try:
            os.rename(f"{self._directory}/{name}", taken)
        except FileNotFoundError:
            return False
        self._clean_up_after(holder, is_dead=name.startswith("held.") and holder.is_dead)
        with suppress(FileNotFoundError):  # this process stalled too, and was taken over
            os.rename(taken, f"{self._directory}/{_FREE}")
        return True

    def _clean_up_after(self, holder: Holder, *, is_dead: bool) -> None:
        """Remove the holder's temporary files, so that it can't commit if it wakes up."""
        for key in _recorded_temporaries(self._record_of(holder.mutex)):
            try:
                discard_temporary(self.root, key)
            except OSError as error:
                if error.errno not in _NO_SUCH_PLACE and not is_dead:
                    raise

    def _record_of(self, mutex: str) -> str:
        return f"{self._directory}.{mutex}"

    def _remove_old_records(self) -> None:
        """Remove records of processes that died; a living one creates its record again."""
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                age = time.time() - entry.stat().st_mtime
                if entry.name.startswith("lock.") and age > _RECORD_LIFETIME_SECONDS:
                    os.unlink(entry.path)

    def _timed_out(self) -> LockTimeout:
        name = self._token_name()
        if name is None:
            return LockTimeout(
                f"the lock directory {self._directory!a} holds a file that is not ours. "
                "Fix: remove that directory."
            )
        holder = "several others in turn" if name == _FREE else Holder.parse(name).describe()
        return LockTimeout(
            f"the lock on {self.root!a} is held by {holder}; gave up after "
            f"{self.timing.timeout:g} s. Fix: let that process finish or end it; without a "
            f"heartbeat for {self.timing.stale_after:g} s its lock expires."
        )


def _recorded_temporaries(record: str) -> list[str]:
    try:
        descriptor = os.open(record, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        keys, _, _ = read_all(descriptor).partition(b"\0")
    finally:
        os.close(descriptor)
    # A process that was killed while it wrote the record had created no file, and left half a key.
    return [key for key in os.fsdecode(keys).split("\n") if key.endswith(TEMPORARY_SUFFIX)]


def _remove_record(record: str, pid: int) -> None:
    if os.getpid() == pid:  # a fork does not own its copy
        with suppress(OSError):  # it may never have been created
            os.unlink(record)


@contextmanager
def vault_mutex(root: str, *, locks: str, timing: LockTiming | None = None) -> Iterator[HeldLock]:
    """Hold the lock of the folder `root`; lock directories are in the folder `locks`."""
    mutex = Mutex(root, locks, timing)
    try:
        with mutex.hold() as held, cleanup_on_signal():
            yield held
    finally:
        mutex.close()


def abandoned_locks(locks: str, timing: LockTiming | None = None) -> Iterator[str]:
    """Yield a description of each lock below a folder whose holder died or is silent too long."""
    stale_after = (timing or LockTiming()).stale_after
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in sorted(os.listdir(locks)):
            yield from _abandoned(os.path.join(locks, folder, "lock"), stale_after)


def _abandoned(lock: str, stale_after: float) -> Iterator[str]:
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(lock):
            if not name.startswith(("held.", "taken.")):
                continue
            with suppress(ValueError, OverflowError):  # not a token
                holder = Holder.parse(name)
                silence = time.time() - os.stat(os.path.join(lock, name)).st_mtime
                if holder.is_dead:
                    yield f"{holder.describe()}, which is gone"
                elif abs(silence) > stale_after:
                    yield f"{holder.describe()}, silent for {abs(silence):.0f} s"
