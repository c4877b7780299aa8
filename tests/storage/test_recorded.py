"""A text and its history agree, whatever fails, and whatever others write."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perdure.artifacts import CID, NewBinding
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.recent_names import MARK
from perdure.errors import (
    AbsentError,
    ClosedError,
    ConcurrentModificationError,
    LockTimeout,
    NotTextError,
    ParentIsFileError,
    PathIsDirectoryError,
    StorageFaultError,
    StorageFullError,
)
from perdure.storage import ABSENT, Expectation, Locator, StorageBackend, content_hash
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import (
    EXTERNAL,
    LOCK_FILE,
    RESTORE,
    SAVE,
    SETTLED,
    UNDONE,
    History,
    TreeLock,
    View,
)
from perdure.testing.storage.processes import finish, start
from perdure.testing.storage.storage_suite import tree
from tests.support.artifacts.memory_disk import MemoryDisk

NOTE = Locator("notes/today.md")
OTHER = Locator("notes/other.md")


class Inner(MemoryBackend):
    """Does something else at the moment when a text is written or removed."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.written: list[str] = []

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self._once("before")
        super().write(locator, content, expect=expect)
        self.written.append(locator.key)
        self._once("after")
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self._once("before")
        super().remove(locator, expect=expect)
        self._once("after")

    def write_all(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        StorageBackend.write_all(self, changes, expect=expect)  # one by one

    def _once(self, when: str) -> None:
        action = getattr(self, when)
        setattr(self, when, lambda: None)
        action()

    def edit(self, locator: Locator, content: str) -> None:
        """Write as an editor does, without the lock."""
        MemoryBackend.write(self, locator, content)


def fail(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def recorded(inner: Inner, disk: MemoryDisk) -> Recorded:
    return Recorded(inner, History.on_disk(disk))


def versions_of(recorded: Recorded, locator: Locator = NOTE) -> list[tuple[str | None, str]]:
    """Return the text and the origin of each version."""
    history = recorded.history
    return [
        (None if version.unbound else history.text(version), version.origin)
        for version in history.versions(locator)
    ]


def present(recorded: Recorded) -> dict[str, str | None]:
    """Return what history says is there now."""
    return tree(View(recorded.history, recorded.history.store.current()))


class TestWriting:
    def test_a_version_is_there_before_the_file(self, recorded: Recorded, inner: Inner) -> None:
        seen: list[tuple[str | None, str]] = []
        inner.before = lambda: seen.extend(versions_of(recorded))
        recorded.write(NOTE, "one")

        assert seen == [("one", SAVE)]
        assert inner.read(NOTE) == "one"

    def test_nothing_is_written_that_can_not_enter_history(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.history.close()
        with pytest.raises(ClosedError):
            recorded.write(NOTE, "one")

        assert not inner.exists(NOTE)

    def test_the_same_text_again_is_no_new_version(self, recorded: Recorded, inner: Inner) -> None:
        recorded.write(NOTE, "one")
        before = recorded.history.store.current()
        recorded.because(actor="ana").write(NOTE, "one")

        assert recorded.history.store.current() == before
        assert inner.written == [NOTE.key, NOTE.key]

    def test_a_write_that_is_refused_leaves_no_version(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        inner.mkdir(Locator("folder"))
        before = recorded.history.store.current()
        below = NOTE.child("deep", "er.md")
        refused: list[tuple[type[Exception], Callable[[], object]]] = [
            (ConcurrentModificationError, lambda: recorded.write(NOTE, "two", expect=ABSENT)),
            (
                ConcurrentModificationError,
                lambda: recorded.write(NOTE, "two", expect=content_hash("zero")),
            ),
            (
                ConcurrentModificationError,
                lambda: recorded.remove(NOTE, expect=content_hash("zero")),
            ),
            (ConcurrentModificationError, lambda: recorded.remove(OTHER, expect=content_hash("1"))),
            (AbsentError, lambda: recorded.remove(OTHER)),
            (PathIsDirectoryError, lambda: recorded.write(Locator("folder"), "two")),
            (ParentIsFileError, lambda: recorded.write(below, "two")),
            (NotTextError, lambda: recorded.write(OTHER, "\ud800")),
            (PathIsDirectoryError, lambda: recorded.commit({Locator("folder"): None})),
        ]
        for kind, action in refused:
            with pytest.raises(kind):
                action()

        assert recorded.history.store.current() == before
        assert inner.written == [NOTE.key]

    def test_who_and_why_are_recorded_by_circumstances(self, recorded: Recorded) -> None:
        ana = recorded.because(actor="ana", reason="a hunch", session=7)
        ana.write(NOTE, "one")
        ana.because(reason="a second thought", derived_from=[CID.of(b"one")]).write(NOTE, "two")
        recorded.write(NOTE, "three")

        events = [
            (version.actor, version.reason, version.derived_from, version.circumstances.more)
            for version in recorded.history.versions(NOTE)
        ]
        assert events == [
            ("ana", "a hunch", (), {"session": 7}),
            ("ana", "a second thought", (CID.of(b"one"),), {"session": 7}),
            ("", "", (), {}),
        ]


class TestRemoving:
    def test_a_removal_is_a_version(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.because(reason="done").remove(NOTE)

        assert versions_of(recorded) == [("one", SAVE), (None, SAVE)]
        assert recorded.history.versions(NOTE)[-1].reason == "done"

    def test_a_text_that_history_never_saw_is_retained_before_it_goes(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        inner.edit(NOTE, "theirs")
        recorded.remove(NOTE)

        assert versions_of(recorded) == [("theirs", EXTERNAL), (None, SAVE)]

    def test_directories_are_not_in_history(self, recorded: Recorded, inner: Inner) -> None:
        recorded.mkdir(Locator("a/b"))
        recorded.remove(Locator("a/b"))

        assert recorded.history.store.current().position == 0
        assert tree(inner) == {"a": None}


class TestFailing:
    @pytest.mark.parametrize(
        "error", [StorageFullError("full"), KeyboardInterrupt(), RuntimeError("a bug")]
    )
    def test_a_file_that_is_not_written_is_answered(
        self, recorded: Recorded, inner: Inner, error: BaseException
    ) -> None:
        recorded.write(NOTE, "one")
        inner.before = fail(error)
        with pytest.raises(type(error)):
            recorded.write(NOTE, "two")

        assert versions_of(recorded) == [("one", SAVE), ("two", SAVE), ("one", UNDONE)]
        assert recorded.read(NOTE) == "one"

    def test_a_first_text_that_is_not_written_is_answered(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        inner.before = fail(StorageFullError("full"))
        with pytest.raises(StorageFullError):
            recorded.write(NOTE, "one")

        assert versions_of(recorded) == [("one", SAVE), (None, UNDONE)]
        assert present(recorded) == {}

    def test_a_removal_that_fails_is_answered(self, recorded: Recorded, inner: Inner) -> None:
        recorded.write(NOTE, "one")
        inner.before = fail(StorageFullError("full"))
        with pytest.raises(StorageFullError):
            recorded.remove(NOTE)

        assert versions_of(recorded) == [("one", SAVE), (None, SAVE), ("one", UNDONE)]

    def test_a_write_that_failed_when_it_was_done_stands(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        inner.after = fail(StorageFaultError("done, but not confirmed"))
        with pytest.raises(StorageFaultError):
            recorded.write(NOTE, "one")

        assert versions_of(recorded) == [("one", SAVE)]
        assert inner.read(NOTE) == "one"

    def test_a_failure_that_could_not_be_logged_is_finished_by_the_next_writer(
        self, recorded: Recorded, inner: Inner, disk: MemoryDisk
    ) -> None:
        recorded.write(NOTE, "one")

        def lose_history_too() -> None:
            recorded.history.close()
            raise StorageFullError("full")

        inner.before = lose_history_too
        with pytest.raises(StorageFullError):
            recorded.write(NOTE, "two")
        inner.before = lambda: None
        again = Recorded(inner, History.on_disk(disk))

        assert versions_of(again) == [("one", SAVE), ("two", SAVE)]
        assert inner.read(NOTE) == "two"


class TestOthers:
    def test_what_another_program_wrote_is_retained_before_it_is_overwritten(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        inner.edit(NOTE, "theirs")
        recorded.write(NOTE, "two")

        assert versions_of(recorded) == [("one", SAVE), ("theirs", EXTERNAL), ("two", SAVE)]
        versions = recorded.history.versions(NOTE)
        assert versions[1].derived_from == (CID.of(b"one"),)
        assert versions[1].commit == versions[2].commit

    def test_a_text_that_another_program_removed_was_removed(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        MemoryBackend.remove(inner, NOTE)
        recorded.write(NOTE, "one")

        assert versions_of(recorded) == [("one", SAVE), (None, EXTERNAL), ("one", SAVE)]

    def test_one_who_writes_while_we_write_is_retained_too(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        inner.before = lambda: inner.edit(NOTE, "theirs")
        recorded.write(NOTE, "two")

        assert inner.read(NOTE) == "two"
        assert versions_of(recorded) == [
            ("one", SAVE),
            ("two", SAVE),
            ("theirs", EXTERNAL),
            ("two", SAVE),
        ]

    def test_one_who_creates_while_we_create_is_retained_too(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        inner.before = lambda: inner.edit(NOTE, "theirs")
        recorded.write(NOTE, "two")

        assert inner.read(NOTE) == "two"
        assert ("theirs", EXTERNAL) in versions_of(recorded)

    def test_one_who_writes_while_we_remove_is_retained_too(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        inner.before = lambda: inner.edit(NOTE, "theirs")
        recorded.remove(NOTE)

        assert versions_of(recorded) == [
            ("one", SAVE),
            (None, SAVE),
            ("theirs", EXTERNAL),
            (None, SAVE),
        ]

    def test_one_who_writes_while_a_conditional_write_goes_on_wins(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        inner.before = lambda: inner.edit(NOTE, "theirs")
        with pytest.raises(ConcurrentModificationError):
            recorded.write(NOTE, "two", expect=content_hash("one"))

        assert inner.read(NOTE) == "theirs"
        assert versions_of(recorded)[-1] == ("theirs", EXTERNAL)

    def test_one_who_never_rests_does_not_keep_us_from_writing(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        def edit_again(number: int = 0) -> None:
            inner.edit(NOTE, f"theirs {number}")
            inner.before = lambda: edit_again(number + 1)

        inner.before = edit_again
        recorded.write(NOTE, "two")

        assert inner.read(NOTE) == "two"
        assert versions_of(recorded)[-1] == ("two", SAVE)


class TestCommitting:
    def test_all_parts_enter_history_at_once(self, recorded: Recorded, inner: Inner) -> None:
        state = recorded.commit({NOTE: "one", OTHER: "two", Locator(".meta.json"): "{}"})
        versions = [recorded.history.versions(locator)[0] for locator in (NOTE, OTHER)]

        assert {version.commit for version in versions} == {state.position}
        assert inner.written == [NOTE.key, OTHER.key, ".meta.json"]
        for position in range(state.position):
            assert tree(View(recorded.history, state._replace(position=position))) == {}
        assert present(recorded) == tree(inner)

    def test_what_is_to_go_goes_and_what_is_gone_stays_gone(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.commit({NOTE: "one", OTHER: "two"})
        recorded.commit({NOTE: None, OTHER: "two", Locator("never.md"): None})

        assert versions_of(recorded) == [("one", SAVE), (None, SAVE)]
        assert versions_of(recorded, OTHER) == [("two", SAVE)]
        assert recorded.history.versions(Locator("never.md")) == []
        assert tree(inner) == {"notes": None, OTHER.key: "two"}

    def test_one_condition_that_does_not_hold_refuses_all(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(OTHER, "theirs")
        with pytest.raises(ConcurrentModificationError):
            recorded.commit({NOTE: "one", OTHER: "two"}, expect={OTHER: ABSENT})
        with pytest.raises(NotTextError):
            recorded.commit({NOTE: "one", OTHER: "\ud800"})
        with pytest.raises(ValueError, match="content hash"):
            recorded.commit({NOTE: "one"}, expect={NOTE: "nonsense"})

        assert tree(inner) == {"notes": None, OTHER.key: "theirs"}
        assert versions_of(recorded) == []

    def test_a_failure_in_the_middle_leaves_all_as_it_was(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        third = Locator("third.md")
        recorded.commit({NOTE: "1", OTHER: "1", third: "1"})

        def fail_next() -> None:
            inner.before = fail(StorageFullError("full"))

        inner.after = fail_next
        with pytest.raises(StorageFullError):
            recorded.commit({NOTE: "2", OTHER: "2", third: None})

        assert tree(inner) == {"notes": None, NOTE.key: "1", OTHER.key: "1", third.key: "1"}
        assert present(recorded) == tree(inner)
        for locator in (NOTE, OTHER, third):
            assert versions_of(recorded, locator)[-1] == ("1", UNDONE)

    def test_one_who_writes_in_the_middle_makes_nothing_be_written_twice(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.commit({NOTE: "1", OTHER: "1"})
        inner.written.clear()

        def edit_next() -> None:
            inner.before = lambda: inner.edit(OTHER, "theirs")

        inner.after = edit_next
        recorded.commit({NOTE: "2", OTHER: "2"}, expect={NOTE: content_hash("1")})

        assert inner.written == [NOTE.key, OTHER.key]
        assert [text for text, _ in versions_of(recorded, OTHER)] == ["1", "2", "theirs", "2"]
        assert versions_of(recorded) == [("1", SAVE), ("2", SAVE)]

    def test_nothing_to_do_is_nothing_done(self, recorded: Recorded) -> None:
        assert recorded.commit({}) == (0, 0)


class TestRestoring:
    def test_an_earlier_text_becomes_a_new_version(self, recorded: Recorded) -> None:
        for text in ("one", "two", "three"):
            recorded.write(NOTE, text)
        version = recorded.because(actor="ana", reason="better").restore(NOTE, 1)

        assert recorded.read(NOTE) == "one"
        assert [text for text, _ in versions_of(recorded)] == ["one", "two", "three", "one"]
        assert (version.number, version.origin, version.actor) == (4, RESTORE, "ana")
        assert version.derived_from == (CID.of(b"one"),)

    def test_a_text_that_was_removed_comes_back(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.remove(NOTE)
        recorded.restore(NOTE, CID.of(b"one"), expect=ABSENT)

        assert recorded.read(NOTE) == "one"

    def test_what_is_there_already_is_not_restored_again(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")

        assert recorded.restore(NOTE, 1).number == 1

    def test_a_condition_is_honoured(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.write(NOTE, "two")
        with pytest.raises(ConcurrentModificationError):
            recorded.restore(NOTE, 1, expect=content_hash("one"))

        assert versions_of(recorded) == [("one", SAVE), ("two", SAVE)]

    def test_no_version_and_no_text_are_refused(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.remove(NOTE)
        for which in (2, 9, CID.of(b"never")):
            with pytest.raises(AbsentError):
                recorded.restore(NOTE, which)

        assert not recorded.exists(NOTE)


class TestSettling:
    def test_a_version_without_its_file_gets_it_when_opened(
        self, inner: Inner, disk: MemoryDisk
    ) -> None:
        recorded = Recorded(inner, History.on_disk(disk))
        recorded.write(NOTE, "one")
        for content in (b"two", None):
            recorded.history.record([NewBinding(NOTE.key, content)])
        recorded.history.record([NewBinding(OTHER.key, b"never written")])
        again = Recorded(inner, History.on_disk(disk))

        assert versions_of(again)[-1] == (None, SAVE)
        assert tree(inner)[OTHER.key] == "never written"
        assert present(again) == tree(inner)

    def test_a_writer_that_is_open_writes_it_too(self, recorded: Recorded, inner: Inner) -> None:
        recorded.write(NOTE, "one")
        recorded.history.record([NewBinding(NOTE.key, b"two")])
        recorded.write(OTHER, "other")

        assert inner.read(NOTE) == "two"

    def test_a_version_that_was_not_acknowledged_gets_its_file_too(
        self, recorded: Recorded, disk: MemoryDisk, inner: Inner
    ) -> None:
        recorded.write(NOTE, "one")
        mark = disk.open(MARK).read(0, 64)
        History.on_disk(disk).record([NewBinding(NOTE.key, b"two")])
        disk.open(MARK).write(0, [mark])  # it died before it could say so
        recorded.write(OTHER, "other")

        assert versions_of(recorded) == [("one", SAVE), ("two", SAVE)]
        assert inner.read(NOTE) == "two"

    def test_what_goes_goes_before_what_comes(self, recorded: Recorded, inner: Inner) -> None:
        recorded.write(Locator("a"), "text")
        recorded.history.record([NewBinding("a", None), NewBinding("a/b", b"written again")])
        recorded.settle()

        assert inner.read(Locator("a/b")) == "written again"

    def test_something_in_the_way_of_a_file_does_not_stop_the_others(
        self, recorded: Recorded, inner: Inner
    ) -> None:
        recorded.write(OTHER, "one")
        recorded.history.record([NewBinding(NOTE.key, b"two"), NewBinding(OTHER.key, b"two")])
        inner.edit(NOTE.child("below.md"), "their folder")
        recorded.write(Locator("third.md"), "three")

        assert inner.read(OTHER) == "two"
        assert inner.read(NOTE.child("below.md")) == "their folder"
        assert versions_of(recorded)[-1] == (None, EXTERNAL)

    def test_what_is_settled_is_not_looked_at_again(
        self, recorded: Recorded, inner: Inner, disk: MemoryDisk
    ) -> None:
        recorded.write(NOTE, "one")
        inner.edit(NOTE, "theirs")
        state = recorded.history.store.current()
        recorded.settle()
        Recorded(inner, History.on_disk(disk))

        assert recorded.history.store.current() == state

    def test_a_mark_beyond_the_log_says_nothing(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.history.lock.settle(1000)  # the log was put back from a backup
        recorded.history.record([NewBinding(NOTE.key, b"two")])
        recorded.settle()

        assert versions_of(recorded)[-1][0] == "one"

    @pytest.mark.parametrize("mark", [b"", b"nonsense", bytes(64)])
    def test_without_the_mark_everything_is_looked_at(
        self, inner: Inner, disk: MemoryDisk, mark: bytes
    ) -> None:
        recorded = Recorded(inner, History.on_disk(disk))
        recorded.write(NOTE, "one")
        recorded.write(OTHER, "two")
        inner.edit(NOTE, "theirs")
        MemoryBackend.remove(inner, OTHER)
        disk.open(SETTLED).truncate(0)
        disk.open(SETTLED).write(0, [mark])
        again = Recorded(inner, History.on_disk(disk))

        assert versions_of(again)[-1] == ("theirs", EXTERNAL)
        assert versions_of(again, OTHER)[-1] == (None, EXTERNAL)
        assert present(again) == tree(inner) | {"notes": None}

    def test_names_that_are_no_keys_have_no_files_to_look_at(self, recorded: Recorded) -> None:
        names = ["", "ctx://a/b", "../up", "a//b", "nul\0", "cafe\u0301"]
        recorded.history.record([NewBinding(name, b"else") for name in names])
        state = recorded.history.store.current()
        recorded.settle()
        recorded.write(NOTE, "one")

        assert [event.key for event in recorded.history.changes(state.position)] == [NOTE.key]

    def test_what_is_no_text_stays_what_it_was(self, tmp_path: Path) -> None:
        recorded = on_disk(tmp_path)
        recorded.write(NOTE, "one")
        (tmp_path / "memory" / NOTE.key).write_bytes(b"\xff")
        recorded.history.record([NewBinding(NOTE.key, b"two")])
        recorded.settle()

        assert versions_of(recorded) == [("one", SAVE), ("two", SAVE)]
        assert (tmp_path / "memory" / NOTE.key).read_bytes() == b"\xff"
        recorded.write(NOTE, "three")
        assert recorded.read(NOTE) == "three"
        assert versions_of(recorded)[-1] == ("three", SAVE)


def on_disk(place: Path) -> Recorded:
    inner = DeviceLocalBackend(str(place / "memory"), str(place / "home"))
    return Recorded(inner, History.open(str(place / "home" / "history")))


class TestFence:
    def test_a_timeout_names_the_holder(self, tmp_path: Path) -> None:
        lock = TreeLock(FolderDisk(tmp_path), lambda: b"", patience=0.01)
        other = TreeLock(FolderDisk(tmp_path), lambda: b"", patience=0.01)
        with lock.hold():
            with pytest.raises(LockTimeout, match="another thread"), lock.hold():
                pass
            with pytest.raises(LockTimeout, match=f"process {os.getpid()}"), other.hold():
                pass

        with lock.hold():
            pass
        with other.hold():
            pass

    def test_only_one_thread_is_inside(self, tmp_path: Path) -> None:
        lock = TreeLock(FolderDisk(tmp_path), lambda: b"")
        inside: list[int] = []

        def enter(number: int) -> None:
            for _ in range(200):
                with lock.hold():
                    inside.append(number)
                    assert len(inside) == 1
                    inside.clear()

        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(enter, number) for number in range(4)]:
                done.result()

    def test_a_fork_of_one_who_is_inside_waits_outside(self, tmp_path: Path) -> None:
        lock = TreeLock(FolderDisk(tmp_path), lambda: b"")
        left = tmp_path / "left"

        def enter() -> None:
            mine = TreeLock(FolderDisk(tmp_path), lambda: b"")
            with mine.hold():
                assert left.exists()

        with lock.hold():
            process = start(enter)
            process.join(0.1)
            left.touch()
        finish([process])

    def test_a_mark_of_another_history_says_nothing(self, disk: MemoryDisk) -> None:
        TreeLock(disk, lambda: b"o" * 16).settle(7)

        assert TreeLock(disk, lambda: b"o" * 16).settled() == 7
        assert TreeLock(disk, lambda: b"t" * 16).settled() == 0

    def test_a_place_that_can_not_be_locked_is_explained(self, tmp_path: Path) -> None:
        (tmp_path / LOCK_FILE).mkdir()
        with (
            pytest.raises(PathIsDirectoryError, match=LOCK_FILE),
            TreeLock(FolderDisk(tmp_path), lambda: b"").hold(),
        ):
            pass


def test_threads_that_write_different_keys_all_have_their_history(tmp_path: Path) -> None:
    recorded = on_disk(tmp_path)

    def write(number: int) -> None:
        for index in range(5):
            recorded.because(actor=str(number)).write(Locator(f"{number}.md"), str(index))

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(write, number) for number in range(4)]:
            done.result()

    for number in range(4):
        texts = [text for text, _ in versions_of(recorded, Locator(f"{number}.md"))]
        assert texts == ["0", "1", "2", "3", "4"]
    assert present(recorded) == tree(recorded.inner)
