"""Sixteen processes count on one key; the number is exact, even if one stalls."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.storage import Locator, LockTiming, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.mutex import HeldLock
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement
from perdure.testing.storage.conditions import count_up
from perdure.testing.storage.processes import finish, start

pytestmark = pytest.mark.search

PROCESSES = 16
LOOPS = 200
COUNTER = Locator("counter.md")

Open = Callable[[LockTiming], StorageBackend]


@pytest.fixture(params=["device-local", "vault"])
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    kind = {"device-local": DeviceLocalBackend, "vault": VaultBackend}[request.param]
    return lambda timing: kind(str(root), str(home), timing)


@requirement("001-concurrent-vault-writers", "000-capabilities-concurrent-writers")
def test_no_update_is_lost_and_none_is_applied_twice(open_backend: Open) -> None:
    timing = LockTiming(timeout=100)
    open_backend(timing).write(COUNTER, "0")

    def count() -> None:
        count_up(open_backend(timing), LOOPS, COUNTER)

    finish([start(count) for _ in range(PROCESSES)])

    assert open_backend(timing).read(COUNTER) == str(PROCESSES * LOOPS)


@requirement("001-lock-stale-taken-over")
def test_the_number_is_exact_though_a_holder_stalls_and_wakes(open_backend: Open) -> None:
    timing = LockTiming(timeout=100, stale_after=0.5)
    open_backend(timing).write(COUNTER, "0")

    def count() -> None:
        count_up(open_backend(timing), LOOPS, COUNTER)

    def count_and_stall() -> None:
        stop_before_some_commits([5, 40, 90])
        count()

    stalling = start(count_and_stall)
    others = [start(count) for _ in range(PROCESSES - 1)]
    stalls = 0
    while stalling.pid and not ended_unless_stopped(stalling.pid):
        before = open_backend(timing).read(COUNTER)
        time.sleep(3 * timing.stale_after)
        if any(other.is_alive() for other in others):  # they went on without it
            assert open_backend(timing).read(COUNTER) != before
        os.kill(stalling.pid, signal.SIGCONT)
        stalls += 1
    finish(others)

    assert stalls == 3
    assert open_backend(timing).read(COUNTER) == str(PROCESSES * LOOPS)
    assert open_backend(timing).list(Locator("")) == [COUNTER]


def stop_before_some_commits(turns: list[int]) -> None:
    """Stop this process at the worst moment: it has just seen that the lock is its own."""
    verify = HeldLock.verify
    count = 0

    def verify_and_stop(held: HeldLock) -> None:
        nonlocal count
        verify(held)
        count += 1
        if count in turns:
            os.kill(os.getpid(), signal.SIGSTOP)

    setattr(HeldLock, "verify", verify_and_stop)  # noqa: B010 - mypy knows no other way


def ended_unless_stopped(pid: int) -> bool:
    """Wait until the process stops or ends; it must end well."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True
