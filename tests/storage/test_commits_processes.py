"""A commit to real files is all or nothing, with killed writers and concurrent readers."""

import shutil
import signal
import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest

from perdure.artifacts import NewBinding
from perdure.artifacts.disk import FolderDisk
from perdure.errors import StorageFullError
from perdure.storage import Expectation, Locator, StorageBackend
from perdure.storage.changes import Changes, Conditions
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import Circumstances, History, View
from perdure.testing.storage.processes import finish, start
from perdure.testing.storage.storage_suite import tree
from tests.storage.transactions import SCENARIOS, node

KILLS = 10
A, B = Locator("notes/a/.meta.json"), Locator("notes/b/.meta.json")


class Place:
    """Where the texts are, and what keeps track of them; any process can open it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def inner(self) -> DeviceLocalBackend:
        return DeviceLocalBackend(str(self.folder / "texts"), str(self.folder / "home"))

    def open(self, inner: StorageBackend | None = None) -> Recorded:
        disk = FolderDisk(self.folder / "home" / "history")
        return Recorded(inner or self.inner(), History.on_disk(disk))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def is_whole(found: Mapping[str, str | None]) -> bool:
    """Whether there is one node, all of one turn, at one of the two places."""
    texts = {key: text for key, text in found.items() if text is not None}
    folders = {key.rpartition("/")[0] for key in texts}
    turns = {text.partition(" ")[0] for text in texts.values()}
    return len(texts) == 5 and len(folders) == 1 and len(turns) == 1


def move_for_ever(place: Place) -> None:
    """Update the node, move it to the other place, and so on."""
    backend = place.open()
    here, there = ("notes/a", "notes/b") if backend.exists(A) else ("notes/b", "notes/a")
    for index in count():
        backend.commit(node(here, f"{index}"))
        backend.commit({**node(there, f"{index}"), **node(here, None)})
        here, there = there, here


def test_a_killed_writer_leaves_whole_nodes(place: Place) -> None:
    place.open().commit(node("notes/a", "0"))
    watching = place.open()
    for index in range(KILLS):
        writer = start(lambda: move_for_ever(place))
        threading.Event().wait(0.06 + 0.007 * index)
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"
        if index % 2:
            place.open()
        else:
            watching.settle()

        assert is_whole(tree(watching.inner))
    now = watching.history.store.current()
    for event in watching.history.changes():
        at = now._replace(position=event.commit)
        assert is_whole(tree(View(watching.history, at)))


def test_another_that_was_open_before_writes_the_files_of_a_killed_writer(place: Place) -> None:
    writer, watching = place.open(), place.open()
    writer.commit(node("notes/a", "0"))
    watching.settle()
    writer.commit(node("notes/a", "1"))
    writer.history.record([NewBinding(A.key, b"logged", Circumstances(origin="save").to_mapping())])

    watching.settle()

    assert watching.inner.read(A) == "logged"


def test_who_reads_what_is_committed_never_meets_an_unfinished_commit(place: Place) -> None:
    """The texts of a node are read one after the other, so only each by itself can be judged."""
    place.open().commit(node("notes/a", "0"))

    def fail_often() -> None:
        class Failing(DeviceLocalBackend):
            def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
                for each, text in changes.items():
                    super().write_unsynced({each: text}, expect={each: (expect or {}).get(each)})
                    raise StorageFullError("full")

        failing = place.open(Failing(str(place.folder / "texts"), str(place.folder / "home")))
        for index in range(30):
            with pytest.raises(StorageFullError):
                failing.commit(node("notes/a", f"torn {index}"))

    reader = place.open()
    first = next(iter(node("notes/a", "0")))
    writer = start(fail_often)
    seen = set()
    while writer.is_alive():
        seen.add(reader.committed(first))
    finish([writer])

    assert seen == {"0 content.md"}


class Stepping(DeviceLocalBackend):
    """Writes several texts one by one, and keeps what a kill would leave at each step."""

    copies: list[Path]

    def keep(self, place: Path, copies_folder: Path) -> None:
        self._place, self._folder, self.copies = place, copies_folder, []

    def _copy(self) -> None:
        if hasattr(self, "copies"):
            copy = self._folder / str(len(self.copies))
            shutil.copytree(self._place, copy)
            self.copies.append(copy)

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self._copy()
        return super().write(locator, content, expect=expect)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self._copy()
        super().remove(locator, expect=expect)

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        StorageBackend.write_all(self, changes, expect=expect)
        self._copy()


@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_is_left_of_files_becomes_new(place: Place, tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    inner = Stepping(str(place.folder / "texts"), str(place.folder / "home"))
    backend = place.open(inner)
    backend.commit({Locator("else.md"): "else", Locator("notes/too.md"): "too"})
    backend.commit(scenario.before)
    inner.keep(place.folder, tmp_path)
    backend.commit(scenario.changes)
    new = tree(inner)

    outcomes = []
    for copy in inner.copies:
        left = Place(copy)
        left.open()
        outcomes.append(tree(left.inner()))
    assert outcomes == [new] * len(outcomes)
    assert len(outcomes) > 4
