"""The log is the write-ahead log: whatever a kill or a power cut leaves, commits are whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure.artifacts.disk import boot_id
from perdure.artifacts.log import MarkFile
from perdure.storage import Locator
from perdure.storage.committer import Committer
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.redo import find_stale
from perdure.storage.text_history import SETTLED, TreeLock
from perdure.testing.suite import examples
from tests.storage.redo_search import Effort, explore, search
from tests.storage.unsynced_disk import Clock, Store
from tests.support.artifacts.memory_disk import MemoryDisk

A, B = Locator("a"), Locator("b")
THOROUGH = Effort(24, again=8, share=1)

WORKLOADS = {
    "commits": "A save ab 40; B save ac 700; A replace ab 40",
    "killed before the files": "A save ab 4; A save ab 40 | killed 4; B notice",
    "killed between the files": "A save ab 4; A replace ab 40 | killed 9; B save c 4",
    "edited after a kill": "A save a 4; A save a 40 | killed 4; edit a anew synced",
    "shortened after a kill": "A save a 4; A save a 40 | killed 4; edit a beginning synced",
    "edited before a power cut": "A save a 40; edit a anew synced quick",
    "edited in the middle": "A save ab 4; A save ab 40 | at 7 edit b anew synced",
    "synced in the middle": "A save ab 40 | at 9 B sync; B save c 4",
    "failed": "A save ab 4; A replace ab 40 | fails 8 28; B save c 4",
    "a failed sync": "A save ab 4; A sync | fails 1 5; A save a 4",
    "erased": "A save ab 40; A erase a; B save c 4",
    "the first mark was not synced": "A save a 4 | killed 4; B save a 40; B remove a",
    "the mark was not synced": "A save a 4; B sync | killed 4; A save ab 40",
    "the segment has no durable name": "B sync; A save c 4 | killed 5; B save ac 40",
    "the beginning of the segment was not synced": "B sync; A save c 4 | killed 4; B save ac 40",
    "files younger than their commit": "A save a 40 | at 13 wait",
    "a torn file of an earlier commit": "A replace abc 700; B save abc 40 | at 12 wait",
}
"""By what happens in them; those at the end were found by the search, and failed."""


def check(workload: str, effort: Effort = THOROUGH) -> int:
    found = explore(tuple(workload.split("; ")), effort)
    assert not found.violations, str(found.violations[0])
    return len(found.digests)


@pytest.mark.parametrize("name", WORKLOADS)
def test_whatever_is_left_commits_are_whole_and_edits_are_retained(name: str) -> None:
    assert check(WORKLOADS[name], THOROUGH._replace(share=8)) > 20


@pytest.mark.search
def test_very_many_states() -> None:
    *_, found = search(examples(500), Effort(4, again=2))
    assert not found.violations, str(found.violations[0])


def test_files_are_synced_at_once_where_a_restart_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = DeviceLocalBackend(str(tmp_path / "memory"), str(tmp_path / "home"))
    assert backend.defers_sync == bool(boot_id())
    monkeypatch.setattr("perdure.artifacts.disk.boot_id", str)

    assert not backend.defers_sync


def test_the_mark_follows_the_files() -> None:
    store = Store.on(MemoryDisk(), Clock())
    for number in range(700):
        store.backend.commit({A: f"{number}", B: f"{number}"})
    lock = store.backend.history.lock
    mark, applied = lock.mark(), lock.applied()
    assert mark is not None
    assert applied is not None
    assert 0 < mark <= applied == store.backend.history.position()


def test_a_sync_that_fails_lets_the_files_be_written_again() -> None:
    store = Store.on(MemoryDisk(), Clock())
    store.backend.commit({A: "1", B: "1"})
    failures = [OSError(5, "Input/output error")]
    written: list[object] = []
    sync, write_all = store.inner.sync, store.inner.write_all

    def fail(locators: object) -> None:
        if failures:
            raise failures.pop()
        sync(locators)  # type: ignore[arg-type] # as it came

    def write(changes: object, **conditions: object) -> None:
        written.append(changes)
        write_all(changes, **conditions)  # type: ignore[arg-type] # as they came

    store.inner.sync, store.inner.write_all = fail, write  # type: ignore[method-assign]
    with store.backend.committer.exclusive():
        store.backend.committer.sync()

    assert written == [{A: "1", B: "1"}]
    assert store.backend.history.lock.mark() == store.backend.history.position()


# ---------------------------------------------------------------- seeded bugs
Patch = pytest.MonkeyPatch


def mark_without_a_sync(patch: Patch) -> None:
    patch.setattr(TreeLock, "apply", TreeLock.settle)


def mark_past_applied(patch: Patch) -> None:
    """Who syncs files waits for nobody, and does not look where the others are."""

    def sync(self: Committer) -> None:
        self.inner.sync([A, B])
        self.history.lock.settle_durably(self.history.position())

    patch.setattr(Committer, "sync", sync)
    patch.setattr(Committer, "exclusive", _unguarded)


@contextmanager
def _unguarded(self: Committer) -> Iterator[None]:
    del self
    yield


def forget_unbinds(patch: Patch) -> None:
    def forgetful(*args: Any) -> object:  # noqa: ANN401
        found = find_stale(*args)
        return None if found is not None and found.text is None else found

    patch.setattr("perdure.storage.committer.find_stale", forgetful)


def redo_over_an_edit(patch: Patch) -> None:
    patch.setattr("perdure.storage.redo.StaleFile.is_rewritten", property(lambda _: True))
    patch.setattr("perdure.storage.redo.StaleFile.bindings", lambda _: iter(()))


def bring_back_what_was_erased(patch: Patch) -> None:
    """Let the mark pass the removal of a file that is not synced yet."""
    patch.setattr(
        Committer, "sync", lambda self: self.history.lock.settle_durably(self.history.position())
    )


def judge_edits_before_a_redo(patch: Patch) -> None:
    settle = Committer._settle_unfinished

    def hasty(self: Committer) -> None:
        self._record_files(self.known_keys())
        settle(self)

    patch.setattr(Committer, "_settle_unfinished", hasty)


def take_torn_text_for_an_edit(patch: Patch) -> None:
    patch.setattr("perdure.storage.redo.is_torn", lambda *_: False)
    patch.setattr("perdure.storage.redo._age", lambda *_: 1e9)


def redo_without_a_sync(patch: Patch) -> None:
    def write(self: Committer, stale: list[object]) -> None:
        texts = {each.locator: each.text for each in stale}  # type: ignore[attr-defined]
        self.inner.write_unsynced(texts)

    patch.setattr(Committer, "_write_stale", write)


def write_the_mark_in_place(patch: Patch) -> None:
    def write(self: TreeLock, position: int, origin: int) -> None:
        file = self._disk.open(SETTLED, create=True)
        MarkFile(file).write(self._as_of(position, origin))
        file.sync()
        self._disk.sync()

    patch.setattr(TreeLock, "_write_durably", write)


def never_redo(patch: Patch) -> None:
    patch.setattr(Committer, "_redo", lambda self, _: self._record_files(self.known_keys()))


BROKEN: list[tuple[Callable[[Patch], None], str]] = [
    (mark_without_a_sync, "commits"),
    (mark_past_applied, "synced in the middle"),
    (forget_unbinds, "killed between the files"),
    (redo_over_an_edit, "edited after a kill"),
    (redo_over_an_edit, "edited before a power cut"),
    (bring_back_what_was_erased, "erased"),
    (judge_edits_before_a_redo, "killed before the files"),
    (take_torn_text_for_an_edit, "commits"),
    (take_torn_text_for_an_edit, "files younger than their commit"),
    (redo_without_a_sync, "commits"),
    (write_the_mark_in_place, "the first mark was not synced"),
    (never_redo, "killed before the files"),
]


@pytest.mark.search
@pytest.mark.parametrize(("broken", "workload"), BROKEN)
def test_each_seeded_bug_is_found(
    broken: Callable[[Patch], None], workload: str, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        check(WORKLOADS[workload])
