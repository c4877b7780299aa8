"""Several processes on one history: the versions are in the order that the file had them."""

import os
import signal
import threading
from itertools import count
from pathlib import Path

import pytest

from perdure.storage import Locator, LockTiming, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.reconciliation import record_external_edits
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import SAVE, History, View
from perdure.storage.vault import VaultBackend
from perdure.testing.storage.conditions import count_up
from perdure.testing.storage.processes import finish, start
from perdure.testing.storage.storage_suite import tree

PROCESSES = 8
LOOPS = 25
COUNTER = Locator("counter.md")
NOTE = Locator("notes/today.md")


class Place:
    """Where the texts and their history are; any process can open it."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        (folder / "texts").mkdir()

    def inner(self) -> StorageBackend:
        root, home = str(self._folder / "texts"), str(self._folder / "home")
        if self._kind == "vault":
            return VaultBackend(root, home, LockTiming(timeout=100))
        return DeviceLocalBackend(root, home, LockTiming(timeout=100))

    def open(self) -> Recorded:
        return Recorded(self.inner(), History.open(str(self._folder / "home" / "history")))


@pytest.fixture(params=["device-local", "vault"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def texts_of(recorded: Recorded, locator: Locator) -> list[str]:
    history = recorded.history
    return [history.text(version) for version in history.versions(locator)]


def present(recorded: Recorded) -> dict[str, str | None]:
    return tree(View(recorded.history, recorded.history.store.current()))


def test_no_update_is_lost_and_history_has_each_in_order(place: Place) -> None:
    place.open().write(COUNTER, "0")

    finish([start(lambda: count_up(place.open(), LOOPS, COUNTER)) for _ in range(PROCESSES)])

    recorded = place.open()
    assert recorded.read(COUNTER) == str(PROCESSES * LOOPS)
    assert texts_of(recorded, COUNTER) == [str(n) for n in range(PROCESSES * LOOPS + 1)]
    assert {version.origin for version in recorded.history.versions(COUNTER)} == {SAVE}


def test_without_conditions_the_last_version_is_still_the_file(place: Place) -> None:
    def scribble() -> None:
        recorded = place.open()
        for index in range(LOOPS):
            recorded.write(NOTE, f"{os.getpid()} {index}")
            recorded.commit({COUNTER: None if index % 3 else f"{os.getpid()}", NOTE: f"{index}"})

    finish([start(scribble) for _ in range(PROCESSES)])

    recorded = place.open()
    assert {version.origin for version in recorded.history.versions(NOTE)} == {SAVE}
    assert present(recorded) == tree(recorded.inner) | {"notes": None}
    assert record_external_edits(recorded) == []


def test_who_is_killed_leaves_a_history_that_the_next_one_sets_right(place: Place) -> None:
    def write_for_ever() -> None:
        recorded = place.open()
        for index in count():
            recorded.write(Locator(f"{index % 3}.md"), f"{index}")
            if index % 5 == 0:
                recorded.commit({Locator("1.md"): None, Locator("2.md"): f"{index} too"})

    watching = place.open()
    for index in range(12):
        writer = start(write_for_ever)
        threading.Event().wait(0.05 + 0.007 * index)
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"
        if index % 2:
            place.open()
        else:
            watching.write(COUNTER, str(index))

        assert present(watching) == tree(watching.inner)
    assert {event.origin for event in watching.history.changes()} == {SAVE}


class Dying(DeviceLocalBackend):
    """Ends with the process, just before a file is written."""

    def write_unsynced(self, *arguments: object, **options: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@pytest.mark.parametrize("before", ["one", None])
def test_what_is_in_history_is_written_though_its_writer_died(
    tmp_path: Path, before: str | None
) -> None:
    place = Place(tmp_path, "device-local")
    place.open().commit({NOTE: before})
    dying = Dying(str(tmp_path / "texts"), str(tmp_path / "home"))

    def die() -> None:
        Recorded(dying, History.open(str(tmp_path / "home" / "history"))).write(NOTE, "two")

    process = start(die)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with History.open(str(tmp_path / "home" / "history")) as history:
        assert history.text(history.versions(NOTE)[-1]) == "two"
    recorded = place.open()

    version = recorded.history.versions(NOTE)[-1]
    assert (version.origin, recorded.history.text(version)) == (SAVE, "two")
    assert recorded.inner.read(NOTE) == "two"
    assert present(recorded) == tree(recorded.inner)
