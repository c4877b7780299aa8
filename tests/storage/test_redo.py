"""The log is the write-ahead log: whatever a power cut leaves of the files, commits are whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.artifacts import CID
from perdure.artifacts.disk import boot_name
from perdure.storage import Locator
from perdure.storage.backends.device_local import DeviceLocalBackend
from perdure.storage.history import EXTERNAL
from perdure.storage.joint import Joint
from perdure.storage.lock.fence import Fence
from perdure.testing.suite import examples
from tests.storage.unsynced import Store, cuts
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import RecordingDisk

A, B, C = (Locator(f"notes/{name}.md") for name in "abc")
LONG = "a text that is long enough to be torn in its middle, and more of it " * 20


def check_power_cuts(most: int = 40, seed: int = 0) -> int:
    """Commit three times; whatever is left then, each commit is there wholly or not at all."""
    disk = RecordingDisk(MemoryDisk())
    store = Store.on(disk)
    wholes: list[dict[str, str]] = [{}]
    for changes in ({A: "1", B: LONG}, {A: "2", C: "3"}, {A: None, B: f"{LONG}2"}):
        store.backend.commit(changes)
        wholes.append(store.texts())
        disk.acknowledged("done")
    states = 0
    for states, state in enumerate(cuts(disk, most, seed), 1):  # noqa: B007 - it is counted
        found = Store.on(state.disk())

        assert found.texts() in wholes[state.promises.count("done") :]
        again = Store.on(found.disk)  # type: ignore[arg-type] # it is one in memory
        assert again.texts() == found.texts()
    return states


def check_kills() -> None:
    """Kill a process at any step; another one goes on without a restart."""
    changes = {A: "2", B: None, C: "3"}
    for step in range(6):
        disk = MemoryDisk()
        store = Store.on(disk)
        store.backend.commit({A: "1", B: "1"})
        left: list[dict[str, bytes]] = []
        store.inner.step = lambda to=left, d=disk: to.append(d.files())  # type: ignore[misc]
        store.backend.commit(changes)
        found = Store.on(MemoryDisk(left[step]))

        assert found.texts() == {A.key: "2", C.key: "3"}


def check_edit_after_kill() -> None:
    """Edit a file as its owner after the writer was killed: the edit stays, and is a version."""
    for edited, by_hand in ((A, "by hand"), (C, "by hand"), (C, "thr")):
        disk = MemoryDisk()
        store = Store.on(disk)
        store.backend.commit({A: "1", B: "1"})
        left: list[dict[str, bytes]] = []
        store.inner.step = lambda to=left, d=disk: to.append(d.files())  # type: ignore[misc]
        store.backend.commit({A: "2", C: "three"})
        again = MemoryDisk(left[0])
        texts = again.folder("texts")
        file = texts.open(edited.key.replace("/", "%2F"), create=True)
        file.truncate(0)
        file.write(0, [by_hand.encode()])
        found = Store.on(again)

        assert found.texts() == {A.key: "2", B.key: "1", C.key: "three", edited.key: by_hand}
        last = found.backend.history.versions(edited)[-1]
        assert last.origin == EXTERNAL


def check_edit_before_power_cut() -> None:
    """Edit a file as its owner, then cut the power: the edit is in the file, or in history."""
    disk = MemoryDisk()
    store = Store.on(disk)
    store.backend.commit({A: "1", B: "1"})
    texts = disk.folder("texts")
    texts.open(A.key.replace("/", "%2F")).write(0, [b"by hand"])
    found = Store.on(MemoryDisk(disk.files(), boot="second"))

    assert "by hand" in found.kept(A.key)
    assert "1" in found.kept(A.key)


def check_erased() -> None:
    """Erase a text: no redo writes it again."""
    disk = MemoryDisk()
    store = Store.on(disk)
    store.backend.commit({A: "secret", B: "1"})
    store.backend.commit({A: None})
    store.backend.erase(lambda: [CID.of(b"secret")], "asked")
    files = disk.files()
    again = MemoryDisk(files, boot="second")
    again.remove("settled")
    again.open("settled", create=True)
    found = Store.on(again)

    assert "secret" not in found.texts().values()


def check_mark() -> None:
    """Move the mark only when the files are synced, and never past what is applied."""
    disk = MemoryDisk()
    store = Store.on(disk)
    for number in range(700):
        store.backend.commit({A: f"{number}", B: f"{number}"})
    fence = store.backend.history.fence
    mark, applied = fence.mark(), fence.applied()
    assert mark is not None
    assert applied is not None
    assert 0 < mark <= applied == store.backend.history.position()


class TestRedo:
    def test_whatever_a_power_cut_leaves_acknowledged_commits_are_there(self) -> None:
        assert check_power_cuts() > 100

    def test_a_killed_writer_is_finished_by_the_next(self) -> None:
        check_kills()

    def test_an_edit_after_a_kill_stays(self) -> None:
        check_edit_after_kill()

    def test_an_edit_before_a_power_cut_is_kept(self) -> None:
        check_edit_before_power_cut()

    def test_what_was_erased_is_not_written_again(self) -> None:
        check_erased()

    def test_files_are_synced_at_once_where_a_restart_can_not_be_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backend = DeviceLocalBackend(str(tmp_path / "memory"), str(tmp_path / "home"))
        assert backend.defers_sync == bool(boot_name())
        monkeypatch.setattr("perdure.artifacts.disk.boot_name", str)

        assert not backend.defers_sync

    def test_the_mark_follows_the_files(self) -> None:
        check_mark()

    def test_a_sync_that_fails_lets_the_files_be_written_again(self) -> None:
        store = Store.on(MemoryDisk())
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
        with store.backend.joint.alone():
            store.backend.joint.sync()

        assert written == [{A: "1", B: "1"}]
        assert store.backend.history.fence.mark() == store.backend.history.position()


@pytest.mark.search
def test_very_many_power_cuts() -> None:
    assert sum(check_power_cuts(examples(40), seed) for seed in range(3)) > 500


# ---------------------------------------------------------------- seeded bugs
Patch = pytest.MonkeyPatch


def mark_past_applied(patch: Patch) -> None:
    patch.setattr(Fence, "apply", Fence.settle)


def forget_unbinds(patch: Patch) -> None:
    stale = Joint._stale

    def forgetful(self: Joint, locator: Locator, start: int) -> object:
        found = stale(self, locator, start)
        return None if found is not None and found.text is None else found

    patch.setattr(Joint, "_stale", forgetful)


def redo_over_an_edit(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint._Stale.is_old", property(lambda _: True))
    patch.setattr("perdure.storage.joint._Stale.changes", lambda _: iter(()))


def take_old_text_for_an_edit(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint.is_torn", lambda *_: False)
    patch.setattr(Joint, "_age", lambda *_: 1e9)


def never_redo(patch: Patch) -> None:
    patch.setattr(Joint, "_redo", lambda self, _: self._answer(self.known()))


BROKEN: list[tuple[Callable[[Patch], None], Callable[[], object]]] = [
    (mark_past_applied, check_power_cuts),
    (forget_unbinds, check_kills),
    (redo_over_an_edit, check_edit_after_kill),
    (redo_over_an_edit, check_edit_before_power_cut),
    (take_old_text_for_an_edit, check_power_cuts),
    (never_redo, check_kills),
]


@pytest.mark.search
@pytest.mark.parametrize(("broken", "check"), BROKEN)
def test_each_seeded_bug_is_found(
    broken: Callable[[Patch], None], check: Callable[[], object], monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it breaks
        check()
