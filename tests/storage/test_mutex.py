"""The lock of a root: who gets it, who loses it, and what the loser can still do (nothing)."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perdure.errors import LockLostError, StorageFaultError
from perdure.storage import LockTimeout, LockTiming, atomic_write, vault_mutex
from perdure.storage.locator import TEMPORARY_SUFFIX
from perdure.storage.mutex import Heartbeat, HeldLock, Holder, Mutex
from perdure.testing.requirement import requirement
from perdure.testing.storage.processes import finish, start

QUICK = LockTiming(timeout=0.2, stale_after=0.1)
PATIENT = LockTiming(timeout=20, stale_after=10)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def locks(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "locks")


def acquired(root: Path, locks: str) -> HeldLock:
    """Take the lock and never give it back."""
    mutex = Mutex(str(root), locks, PATIENT)
    held = mutex.ask()
    mutex.acquire(held)
    return held


def lock_directory(root: Path, locks: str) -> Path:
    digest = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()
    return Path(locks, digest, "lock")


def token_state(root: Path, locks: str) -> str:
    (token,) = lock_directory(root, locks).iterdir()
    return token.name.split(".")[0]


def age(token: str, seconds: float) -> None:
    """Make a holder look as if it had been silent for so long."""
    held = Path(token)
    _, since, rest = held.name.split(".", 2)
    old = held.with_name(f"held.{int(since) - int(seconds * 1000)}.{rest}")
    held.rename(old)
    os.utime(old, (time.time() - seconds,) * 2)


@requirement("001-lock-outside-vault", "001-lock-keyed-by-real-path", "001-lock-is-a-directory")
def test_the_lock_is_a_directory_outside_the_root_named_by_its_real_path(
    root: Path, locks: str, tmp_path: Path
) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    with vault_mutex(str(alias), locks=locks):
        assert token_state(root, locks) == "held"
        assert list(root.iterdir()) == []
    assert token_state(root, locks) == "free"


@requirement("001-lock-excludes", "001-lock-wait-bounded")
def test_a_second_holder_waits_and_then_gives_up(root: Path, locks: str) -> None:
    with vault_mutex(str(root), locks=locks, timing=PATIENT):
        begun = time.monotonic()
        with (
            pytest.raises(LockTimeout),
            vault_mutex(str(root), locks=locks, timing=LockTiming(0.2, 10)),
        ):
            pytest.fail("two hold the lock")
        assert 0.2 <= time.monotonic() - begun < 5


def test_the_timeout_says_who_holds_the_lock_since_when(root: Path, locks: str) -> None:
    with (
        vault_mutex(str(root), locks=locks, timing=PATIENT),
        pytest.raises(LockTimeout) as caught,
        vault_mutex(str(root), locks=locks, timing=LockTiming(0.05, 10)),
    ):
        pass
    message = str(caught.value)
    assert f"process {os.getpid()} on " in message
    assert time.strftime(" since %Y-", time.gmtime()) in message
    assert "Fix:" in message


@requirement("001-lock-excludes")
def test_of_many_processes_one_holds_the_lock_at_a_time(root: Path, locks: str) -> None:
    inside = root / "inside"

    def enter_often() -> None:
        mutex = Mutex(str(root), locks, PATIENT)
        for _ in range(30):
            with mutex.hold():
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another is inside
                inside.unlink()

    finish([start(enter_often) for _ in range(4)])


@requirement("001-lock-one-per-root", "001-atomic-write-bytes")
def test_one_lock_guards_all_keys_of_a_root(root: Path, locks: str) -> None:
    with vault_mutex(str(root), locks=locks) as held:
        atomic_write(held, "a.md", b"a\r\n\xff")
        with (
            pytest.raises(LockTimeout),
            vault_mutex(str(root), locks=locks, timing=LockTiming(0.05, 10)) as other,
        ):
            atomic_write(other, "b.md", b"b")
    assert (root / "a.md").read_bytes() == b"a\r\n\xff"
    assert not (root / "b.md").exists()


@requirement("001-lock-roots-independent")
def test_two_roots_do_not_block_each_other(root: Path, locks: str, tmp_path: Path) -> None:
    with vault_mutex(str(root), locks=locks), vault_mutex(str(tmp_path), locks=locks, timing=QUICK):
        pass


@requirement("001-lock-advisory")
def test_those_who_do_not_ask_can_still_write(root: Path, locks: str) -> None:
    with vault_mutex(str(root), locks=locks):
        (root / "by-an-editor.md").write_text("text")
    assert (root / "by-an-editor.md").read_text() == "text"


@requirement("001-lock-wait-backs-off")
def test_the_pauses_of_a_waiter_grow(
    root: Path, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("perdure.storage.mutex.random.uniform", lambda *_: 1.0)
    with vault_mutex(str(root), locks=locks, timing=PATIENT):
        mutex = Mutex(str(root), locks, LockTiming(0.5, 10))

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            time.sleep(seconds)

        with pytest.raises(LockTimeout):
            mutex.acquire(mutex.ask(), sleep)
    waits = pauses[:8]
    assert waits == sorted(waits)
    assert waits[-1] > 5 * waits[0]
    assert max(pauses) <= 0.05


@requirement("001-lock-heartbeat-keeps")
def test_a_slow_but_living_holder_keeps_its_lock(root: Path, locks: str) -> None:
    timing = LockTiming(timeout=1.0, stale_after=0.4)
    with Mutex(str(root), locks, timing).hold() as held:
        with pytest.raises(LockTimeout), Mutex(str(root), locks, timing).hold():
            pytest.fail("a living holder was taken over")
        held.verify()


@requirement("001-lock-stale-taken-over")
def test_a_silent_holder_is_taken_over_and_finds_out(root: Path, locks: str) -> None:
    stalled = acquired(root, locks)
    age(stalled.token, seconds=60)
    with Mutex(str(root), locks, PATIENT).hold() as successor:
        with pytest.raises(LockLostError, match="Fix:"):
            stalled.verify()
        stalled.release()
        successor.verify()


def test_a_stalled_holder_can_not_commit_even_after_it_last_looked(
    root: Path, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "note.md").write_text("before")
    mutex = Mutex(str(root), locks, PATIENT)
    verify = HeldLock.verify

    def stall_after_looking(held: HeldLock) -> None:
        verify(held)
        monkeypatch.setattr(HeldLock, "verify", verify)
        age(held.token, seconds=60)
        with Mutex(str(root), locks, PATIENT).hold() as successor:
            atomic_write(successor, "note.md", b"the successor's")

    monkeypatch.setattr(HeldLock, "verify", stall_after_looking)
    with mutex.hold() as held, pytest.raises(LockLostError):
        atomic_write(held, "note.md", b"too late")

    assert (root / "note.md").read_bytes() == b"the successor's"
    assert [p.name for p in root.iterdir()] == ["note.md"]


def test_a_stalled_holder_does_not_blot_out_its_successors_record(root: Path, locks: str) -> None:
    stalled = acquired(root, locks)
    age(stalled.token, seconds=60)
    successor = acquired(root, locks)
    (root / successor.temporaries([""])[0]).write_text("half")
    stalled.temporaries([""])[0]  # it woke up, and has not looked yet
    age(successor.token, seconds=60)

    with Mutex(str(root), locks, PATIENT).hold():
        assert list(root.iterdir()) == []


def test_records_go_with_their_locks_or_when_they_are_old(root: Path, locks: str) -> None:
    folder = lock_directory(root, locks).parent
    with vault_mutex(str(root), locks=locks) as held:
        held.temporaries([""])[0]
        assert len(list(folder.glob("lock.*"))) == 1
    assert list(folder.glob("lock.*")) == []

    for name, days in (("lock.dead", 2), ("lock.recent", 0)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - days * 86_400,) * 2)
    with vault_mutex(str(root), locks=locks):
        assert [path.name for path in folder.glob("lock.*")] == ["lock.recent"]


def test_a_dead_holder_is_taken_over_at_once_and_cleared_up_after(root: Path, locks: str) -> None:
    def die_midway() -> None:
        held = acquired(root, locks)
        (root / held.temporaries([""])[0]).write_text("half a te")
        os._exit(0)

    finish([start(die_midway)])
    assert [p.name.endswith(TEMPORARY_SUFFIX) for p in root.iterdir()] == [True]
    begun = time.monotonic()
    with Mutex(str(root), locks, PATIENT).hold():
        assert time.monotonic() - begun < 5
        assert list(root.iterdir()) == []


@pytest.mark.parametrize("became", ["file", "link", "absent"])
def test_a_folder_that_is_no_longer_one_does_not_block_the_lock(
    root: Path, locks: str, became: str
) -> None:
    (root / "notes").mkdir()
    stalled = acquired(root, locks)
    stalled.temporaries(["notes"])[0]
    age(stalled.token, seconds=60)
    (root / "notes").rename(root.parent / "elsewhere")
    if became == "file":
        (root / "notes").touch()
    if became == "link":
        (root / "notes").symlink_to(root.parent / "elsewhere")

    with Mutex(str(root), locks, QUICK).hold():
        pass


def test_what_a_dead_holder_left_and_nobody_can_remove_does_not_block_the_lock(
    root: Path, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_midway() -> None:
        acquired(root, locks).temporaries([""])[0]
        os._exit(0)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    finish([start(die_midway)])
    monkeypatch.setattr("perdure.storage.mutex.discard_temporary", refuse)
    with Mutex(str(root), locks, PATIENT).hold():
        pass

    stalled = acquired(root, locks)
    stalled.temporaries([""])[0]
    age(stalled.token, seconds=60)
    with pytest.raises(StorageFaultError), Mutex(str(root), locks, QUICK).hold():
        pytest.fail("a holder that may wake up could still commit")


def test_one_who_dies_while_taking_over_is_taken_over_too(root: Path, locks: str) -> None:
    stalled = acquired(root, locks)
    (root / stalled.temporaries([""])[0]).write_text("half")
    token = Path(stalled.token)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    dead = Holder.parse(token.name)
    nonce = f"{dead.mutex}-x"
    name = f"taken.{int(dead.since * 1000)}.{nonce}.{process.pid}.{dead.machine}.{dead.host}"
    token.rename(token.with_name(name))

    with Mutex(str(root), locks, PATIENT).hold():
        assert list(root.iterdir()) == []


def test_a_clock_that_was_set_back_does_not_keep_a_lock_for_ever(root: Path, locks: str) -> None:
    stalled = acquired(root, locks)
    age(stalled.token, seconds=-3600)
    with Mutex(str(root), locks, PATIENT).hold(), pytest.raises(LockLostError):
        stalled.verify()


def test_a_thread_that_locks_twice_gets_an_error(root: Path, locks: str) -> None:
    mutex = Mutex(str(root), locks, PATIENT)
    with mutex.hold(), pytest.raises(RuntimeError, match="already"), mutex.hold():
        pass
    with mutex.hold():
        pass


def test_threads_of_one_process_take_turns(root: Path, locks: str) -> None:
    mutex = Mutex(str(root), locks, LockTiming(0.2, 10))
    errors: list[Exception] = []

    def try_to_enter() -> None:
        try:
            with mutex.hold():
                pass
        except LockTimeout as error:
            errors.append(error)

    with mutex.hold():
        thread = threading.Thread(target=try_to_enter)
        thread.start()
        thread.join()
    assert "another thread of this process" in str(errors[0])


def test_a_fork_neither_owns_nor_releases_its_parents_lock(root: Path, locks: str) -> None:
    mutex = Mutex(str(root), locks, LockTiming(0.2, 10))

    def child() -> None:
        with pytest.raises(LockTimeout), mutex.hold():
            pass

    with mutex.hold() as held:
        finish([start(child)])
        held.verify()


def test_a_lost_lock_directory_is_rebuilt(root: Path, locks: str) -> None:
    mutex = Mutex(str(root), locks, PATIENT)
    with mutex.hold():
        pass
    (lock_directory(root, locks) / "free").unlink()
    with mutex.hold():
        pass
    (lock_directory(root, locks) / "free").unlink()
    lock_directory(root, locks).rmdir()
    with mutex.hold():
        pass


def test_a_lock_directory_with_foreign_things_is_explained(root: Path, locks: str) -> None:
    lock_directory(root, locks).mkdir(parents=True)
    for name in (".DS_Store", "held.by-nobody"):
        (lock_directory(root, locks) / name).touch()
    with pytest.raises(LockTimeout, match="not ours"), Mutex(str(root), locks, QUICK).hold():
        pass


def test_a_home_that_can_not_be_written_is_explained(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    locks = str(tmp_path / "file" / "locks")
    with pytest.raises(StorageFaultError, match="PERDURE_HOME"), Mutex(str(root), locks).hold():
        pass


HOLD_AND_WAIT = """
import sys, time
from perdure.storage import vault_mutex
with vault_mutex(sys.argv[1], locks=sys.argv[2]) as held:
    open(sys.argv[1] + "/" + held.temporaries([""])[0], "w").write("half")
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(root: Path, locks: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD_AND_WAIT, str(root), locks]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=UNTRACED) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_releases_the_lock_and_still_ends_the_process(
    root: Path, locks: str, holder: subprocess.Popen[str], number: signal.Signals
) -> None:
    holder.send_signal(number)
    code = holder.wait(10)

    assert token_state(root, locks) == "free"
    assert code == -number
    if number != signal.SIGINT:  # an interrupt unwinds the caller's own code, which made the file
        assert list(root.iterdir()) == []


def test_leaving_python_releases_the_lock(root: Path, locks: str) -> None:
    script = """
import sys, threading
from perdure.storage import vault_mutex
def hold():
    with vault_mutex(sys.argv[1], locks=sys.argv[2]):
        entered.set()
        threading.Event().wait()
entered = threading.Event()
threading.Thread(target=hold, daemon=True).start()
entered.wait()
"""
    subprocess.run([sys.executable, "-c", script, str(root), locks], check=True, timeout=30)
    assert token_state(root, locks) == "free"


def test_an_existing_signal_handler_is_left_alone(root: Path, locks: str) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with vault_mutex(str(root), locks=locks):
            os.kill(os.getpid(), signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
    with vault_mutex(str(root), locks=locks):
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def heartbeats() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "perdure-heartbeat"]


def test_one_thread_beats_for_all_locks(root: Path, locks: str) -> None:
    with ExitStack() as stack:
        for number in range(20):
            folder = root / str(number)
            folder.mkdir()
            stack.enter_context(vault_mutex(str(folder), locks=locks))
        assert len(heartbeats()) == 1


def test_the_heartbeat_rests_when_nothing_is_held(
    root: Path, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Heartbeat()
    monkeypatch.setattr("perdure.storage.mutex.heartbeat", own)
    with Mutex(str(root), locks, LockTiming(1, 0.04)).hold() as held:
        first = own._thread
        assert first is not None
        before = Path(held.token).stat().st_mtime_ns
        deadline = time.monotonic() + 10
        while Path(held.token).stat().st_mtime_ns == before:
            assert time.monotonic() < deadline
    first.join(10)
    assert not first.is_alive()
    with Mutex(str(root), locks, QUICK).hold():
        assert own._thread is not first


def test_a_process_that_gets_no_more_threads_can_still_write(
    root: Path, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("perdure.storage.mutex.heartbeat", Heartbeat())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    mutex = Mutex(str(root), locks, PATIENT)
    for _ in range(2):
        with mutex.hold() as held:
            atomic_write(held, "note.md", b"text")


UNTRACED = {
    name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")
}
"""An interrupt that falls into the tracer of coverage leaves *its* lock taken for ever."""

INTERRUPTED = """
import sys
import perdure.storage.batch  # and the lock: else the interrupts may all fall into the imports
from perdure.storage import Locator
from perdure.storage.device_local import DeviceLocalBackend
backend = DeviceLocalBackend(sys.argv[1], sys.argv[2])
interrupts = 0
while interrupts < 100:
    try:
        print("go on", flush=True)
        while True:
            backend.write(Locator("note.md"), "text")
    except KeyboardInterrupt:
        interrupts += 1
backend.write(Locator("after.md"), "text")
"""


def test_an_interrupt_at_any_moment_leaves_the_lock_free(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-c", INTERRUPTED, str(root), str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=UNTRACED) as process:
        assert process.stdout is not None
        process.stdout.readline()
        killer = threading.Timer(60, process.kill)  # one that can't be interrupted is a failure
        killer.start()
        for index in range(100):
            time.sleep(0.0003 * (index % 10))
            process.send_signal(signal.SIGINT)
            process.stdout.readline()
        process.wait()
        killer.cancel()

    assert process.returncode == 0
    assert token_state(root, str(home / "locks")) == "free"
    assert sorted(path.name for path in root.iterdir()) == ["after.md", "note.md"]


def test_who_waits_for_the_lock_can_be_interrupted(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with vault_mutex(str(root), locks=str(home / "locks")):
        begin = f"print('ready', flush=True)\n{WRITE_FOR_EVER}"
        command = [sys.executable, "-c", begin, str(root), str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=UNTRACED) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(1)  # it imports and asks for the lock, and waits for that 30 seconds
            begun = time.monotonic()
            process.terminate()
        assert process.returncode == -signal.SIGTERM
        assert time.monotonic() - begun < 5


WRITE_FOR_EVER = """
import sys
from perdure.storage import Locator
from perdure.storage.device_local import DeviceLocalBackend
backend = DeviceLocalBackend(sys.argv[1], sys.argv[2])
backend.write(Locator("note.md"), "first")
print("ready", flush=True)
while True:
    backend.write(Locator("note.md"), "text" * 10_000)
"""


def test_a_writer_that_is_asked_to_end_finishes_its_commit_first(
    root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for index in range(8):
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(root), str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=UNTRACED) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.01 + index * 0.0013)
            process.terminate()

        assert process.returncode == -signal.SIGTERM
        assert token_state(root, str(home / "locks")) == "free"
        assert [path.name for path in root.iterdir()] == ["note.md"]
