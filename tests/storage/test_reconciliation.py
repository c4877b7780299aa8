"""What is written behind our back enters history, once, and nothing else does."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts import CID, NewBinding
from perdure.errors import StorageFullError, StorageUnavailableError
from perdure.storage import Expectation, Locator, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.reconciliation import EditKind, ExternalEdit, record_external_edits
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import EXTERNAL, SAVE, History, View
from perdure.storage.vault import VaultBackend
from perdure.testing.storage.storage_suite import tree
from perdure.testing.suite import examples
from tests.support.artifacts.memory_disk import MemoryDisk

A, B, C = Locator("a.md"), Locator("notes/b.md"), Locator("notes/c.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def recorded(tmp_path: Path, root: Path) -> Recorded:
    inner = VaultBackend(str(root), str(tmp_path / "home"))
    return Recorded(inner, History.open(str(tmp_path / "home" / "history")))


def present(recorded: Recorded) -> dict[str, str | None]:
    return tree(View(recorded.history, recorded.history.store.current()))


def texts(backend: StorageBackend) -> dict[str, str]:
    return {key: text for key, text in tree(backend).items() if text is not None}


class TestFinding:
    def test_new_edited_and_removed_texts_are_found(self, recorded: Recorded, root: Path) -> None:
        recorded.commit({A: "a", B: "b"})
        (root / "a.md").write_text("edited")
        (root / "notes" / "b.md").unlink()
        (root / "notes" / "c.md").write_text("new")

        assert record_external_edits(recorded) == [
            ExternalEdit(A, EditKind.EDITED),
            ExternalEdit(B, EditKind.REMOVED),
            ExternalEdit(C, EditKind.NEW),
        ]
        assert present(recorded) == tree(recorded.inner)
        for locator, before in ((A, (CID.of(b"a"),)), (B, (CID.of(b"b"),)), (C, ())):
            version = recorded.history.versions(locator)[-1]
            assert version.origin == EXTERNAL
            assert version.derived_from == before

    def test_what_was_found_is_not_found_again(self, recorded: Recorded, root: Path) -> None:
        recorded.write(A, "a")
        (root / "a.md").write_text("edited")
        record_external_edits(recorded)
        state = recorded.history.store.current()

        assert record_external_edits(recorded) == []
        assert recorded.history.store.current() == state

    def test_an_edit_that_keeps_size_and_time_is_found(
        self, recorded: Recorded, root: Path
    ) -> None:
        recorded.write(A, "before")
        file = root / "a.md"
        status = file.stat()
        file.write_text("after!")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

        assert record_external_edits(recorded) == [ExternalEdit(A, EditKind.EDITED)]

    def test_a_file_that_was_only_touched_is_not_found(
        self, recorded: Recorded, root: Path
    ) -> None:
        recorded.write(A, "a")
        (root / "a.md").touch()

        assert record_external_edits(recorded) == []

    def test_a_folder_that_was_there_before_history_began_enters_it(
        self, recorded: Recorded, root: Path
    ) -> None:
        (root / "notes").mkdir()
        for number in range(300):
            (root / "notes" / f"{number}.md").write_text(str(number))

        assert {found.kind for found in record_external_edits(recorded)} == {EditKind.NEW}
        assert present(recorded) == tree(recorded.inner)
        commits = {event.commit for event in recorded.history.changes()}
        assert len(commits) == 2

    def test_a_text_that_became_a_folder_is_one(self, recorded: Recorded, root: Path) -> None:
        recorded.write(A, "a")
        (root / "a.md").unlink()
        (root / "a.md").mkdir()
        (root / "a.md" / "below.md").write_text("b")

        assert [found.kind for found in record_external_edits(recorded)] == [
            EditKind.REMOVED,
            EditKind.NEW,
        ]
        assert present(recorded) == tree(recorded.inner)

    def test_a_removed_text_is_reported_when_it_was_found(
        self, recorded: Recorded, root: Path
    ) -> None:
        recorded.write(A, "a")
        (root / "a.md").unlink()
        record_external_edits(recorded)
        before, after = recorded.history.versions(A)

        assert after.time >= before.time
        assert after.unbound


class TestLeavingAlone:
    def test_what_is_no_text_is_reported_and_left(self, recorded: Recorded, root: Path) -> None:
        recorded.write(A, "a")
        (root / "a.md").write_bytes(b"\xff")
        (root / "photo.jpg").write_bytes(b"\xff\xd8")
        (root / "link.md").symlink_to("a.md")
        state = recorded.history.store.current()

        expected = [
            ExternalEdit(A, EditKind.UNREADABLE),
            ExternalEdit(Locator("photo.jpg"), EditKind.UNREADABLE),
        ]
        assert record_external_edits(recorded) == expected
        assert recorded.history.store.current() == state

    def test_conflict_copies_and_the_folders_of_tools_are_no_memories(
        self, recorded: Recorded, root: Path
    ) -> None:
        recorded.write(A, "one and the same\n")
        (root / "a.sync-conflict-20260302-101500-ABCDEF7.md").write_text("one and the other\n")
        (root / ".obsidian").mkdir()
        (root / ".obsidian" / "app.json").write_text("{}")

        assert record_external_edits(recorded) == []

    def test_what_we_wrote_ourselves_is_followed_wherever_it_is(
        self, recorded: Recorded, root: Path
    ) -> None:
        hidden = Locator(".tool/state.json")
        recorded.write(hidden, "{}")
        assert record_external_edits(recorded) == []
        (root / ".tool" / "state.json").write_text("[]")
        assert record_external_edits(recorded) == [ExternalEdit(hidden, EditKind.EDITED)]
        (root / ".tool" / "state.json").unlink()
        assert record_external_edits(recorded) == [ExternalEdit(hidden, EditKind.REMOVED)]

    def test_a_root_that_is_gone_is_not_taken_for_removed_texts(
        self, recorded: Recorded, root: Path
    ) -> None:
        recorded.write(A, "a")
        root.rename(root.with_name("elsewhere"))
        with pytest.raises(StorageUnavailableError):
            record_external_edits(recorded)

        assert [version.origin for version in recorded.history.versions(A)] == [SAVE]


def nothing() -> object:
    return None


class Failing(MemoryBackend):
    """Its disk is full, as long as it fails."""

    fails = False

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self._fail()
        return super().write(locator, content, expect=expect)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self._fail()
        super().remove(locator, expect=expect)

    def _fail(self) -> None:
        if self.fails:
            raise StorageFullError("full")


class Overtaken(MemoryBackend):
    """Something happens just after a text was read."""

    meanwhile = staticmethod(nothing)

    def read(self, locator: Locator) -> str:
        text = super().read(locator)
        action, self.meanwhile = self.meanwhile, nothing
        action()
        return text


class TestMeeting:
    def test_a_save_that_comes_between_is_not_anothers(self) -> None:
        inner = Overtaken()
        recorded = Recorded(inner, History.on_disk(MemoryDisk()))
        recorded.write(A, "one")
        inner.meanwhile = lambda: recorded.write(A, "two")

        assert record_external_edits(recorded) == []
        assert [version.origin for version in recorded.history.versions(A)] == [SAVE, SAVE]

    def test_a_removal_that_comes_between_is_not_anothers(self) -> None:
        inner = Overtaken()
        recorded = Recorded(inner, History.on_disk(MemoryDisk()))
        recorded.write(A, "one")
        inner.meanwhile = lambda: recorded.remove(A)

        assert record_external_edits(recorded) == []
        assert [version.origin for version in recorded.history.versions(A)] == [SAVE, SAVE]

    @settings(max_examples=examples(40), deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["save", "save", "edit", "sweep", "reopen", "fail", "die"]),
                st.sampled_from(["a", "a.md", "n/b", "n/c"]),
                st.none() | st.sampled_from(["", "one", "two"]),
            ),
            max_size=25,
        )
    )
    def test_whatever_is_saved_and_edited_a_sweep_makes_history_right(
        self, steps: list[tuple[str, str, str | None]]
    ) -> None:
        inner, disk = Failing(), MemoryDisk()
        recorded = Recorded(inner, History.on_disk(disk))
        seen: dict[str, list[str]] = {}
        for verb, key, text in steps:
            locator = Locator(key)
            if verb in {"save", "fail"}:
                keep(seen, key, inner)
                inner.fails = verb == "fail"
                with suppress(StorageFullError):
                    recorded.commit({locator: text})
                inner.fails = False
                keep(seen, key, inner)
                assert texts_in(recorded).get(key) == texts(inner).get(key)
            elif verb == "edit":
                edit(inner, locator, text)
            elif verb == "die":  # after the version, before the file
                recorded.history.record([NewBinding(key, None if text is None else text.encode())])
            elif verb == "sweep":
                keep_all(seen, inner)
                record_external_edits(recorded)
                assert texts_in(recorded) == texts(inner)
            else:
                recorded = Recorded(inner, History.on_disk(disk))
        keep_all(seen, inner)
        record_external_edits(recorded)

        assert record_external_edits(recorded) == []
        assert texts_in(recorded) == texts(inner)
        for key, expected in seen.items():
            versions = recorded.history.versions(Locator(key))
            every_text = {
                recorded.history.text(version) for version in versions if not version.unbound
            }
            assert set(expected) <= every_text  # no text that we met was lost


def edit(inner: MemoryBackend, locator: Locator, text: str | None) -> None:
    if text is not None:
        inner.write(locator, text)
    elif inner.exists(locator):
        inner.remove(locator)


def keep(seen: dict[str, list[str]], key: str, inner: MemoryBackend) -> None:
    if inner.exists(Locator(key)):
        seen.setdefault(key, []).append(inner.read(Locator(key)))


def keep_all(seen: dict[str, list[str]], inner: MemoryBackend) -> None:
    for key in texts(inner):
        keep(seen, key, inner)


def texts_in(recorded: Recorded) -> dict[str, str]:
    return texts(View(recorded.history, recorded.history.store.current()))


def test_a_backend_without_sync_is_read_too(tmp_path: Path) -> None:
    inner = DeviceLocalBackend(str(tmp_path / "memory"), str(tmp_path / "home"))
    recorded = Recorded(inner, History.open(str(tmp_path / "home" / "history")))
    recorded.write(A, "a")
    (tmp_path / "memory" / "a.md").write_text("b")

    assert record_external_edits(recorded) == [ExternalEdit(A, EditKind.EDITED)]
