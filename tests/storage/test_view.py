"""The past as a backend: at each moment just what was there, and nothing that could change it."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts import CID, ArtifactStore, IndexState, NewBinding
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    BeforeSnapshotError,
    FuturePositionError,
    NotTextError,
    PathIsDirectoryError,
    RetentionError,
    StorageError,
    UnknownSnapshotError,
)
from perdure.storage import Authorisation, Capabilities, Locator, StorageBackend, walk
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History, View
from perdure.testing.storage.storage_suite import tree
from perdure.testing.suite import examples
from tests.support.artifacts.memory_disk import MemoryDisk

NOTE = Locator("notes/today.md")
ROOT = Locator("")
KEYS = ["a", "a/b", "a/b/c.md", "a/é.md", "ab", "a-b", "a0/x", ".dot/x", "é"]


@pytest.fixture
def recorded() -> Recorded:
    return Recorded(MemoryBackend(), History.on_disk(MemoryDisk()))


class TestFirst:
    @settings(max_examples=examples(60), deadline=None)
    @given(
        st.sets(st.sampled_from([*"abc", "a-b", "a-b-c", "a-", "ab", "a.b", "b-0", "a%b", "a0"])),
        st.integers(1, 6),
    )
    def test_it_is_how_the_list_begins(self, names: set[str], most: int) -> None:
        recorded = Recorded(MemoryBackend(), History.on_disk(MemoryDisk()))
        recorded.commit({Locator(f"in/{name}/x.md"): "x" for name in names} or {NOTE: "x"})
        view = View(recorded.history, recorded.history.store.current())

        assert view.first(Locator("in"), most) == view.list(Locator("in"))[:most]


class TestAgreement:
    @settings(max_examples=examples(40), deadline=None)
    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from(KEYS),
                st.none() | st.sampled_from(["", "one", "zwei\r\n"]),
                max_size=3,
            ),
            max_size=12,
        )
    )
    def test_every_moment_is_as_it_was(self, commits: list[dict[str, str | None]]) -> None:
        recorded = Recorded(MemoryBackend(), History.on_disk(MemoryDisk()))
        moments: dict[int, StorageBackend] = {0: MemoryBackend()}
        for changes in commits:
            with suppress(StorageError):  # a text above another one; history says what was done
                recorded.commit({Locator(key): text for key, text in changes.items()})
            prune(recorded)
            moments[recorded.history.store.current().position] = copy_of(recorded.inner)
        last = recorded.history.store.current().position
        for position in range(last + 1):
            whole = max(moment for moment in moments if moment <= position)
            if recorded.history.store.catalogue.commit_at(position)[0] == whole:
                assert_same(View(recorded.history, IndexState(0, position)), moments[whole])

    def test_a_position_inside_a_commit_is_the_moment_before(self, recorded: Recorded) -> None:
        before = recorded.commit({NOTE: "one"})
        after = recorded.commit({NOTE: "two", Locator("b"): "new"})

        for position in range(before.position, after.position):
            assert tree(View(recorded.history, IndexState(0, position))) == {
                "notes": None,
                NOTE.key: "one",
            }


def prune(backend: StorageBackend, directory: Locator = ROOT) -> None:
    """Remove directories that hold no text: the past does not know them."""
    for child in backend.list(directory):
        if backend.info(child).is_dir:
            prune(backend, child)
            if not backend.list(child):
                backend.remove(child)


def copy_of(backend: StorageBackend) -> StorageBackend:
    copy = MemoryBackend()
    for key, text in tree(backend).items():
        if text is not None:
            copy.write(Locator(key), text)
    return copy


def assert_same(view: StorageBackend, then: StorageBackend) -> None:
    assert tree(view) == tree(then)
    assert list(walk(view, ROOT)) == list(walk(then, ROOT))
    for key in ["", "nowhere", "a/b/c.md/below", *KEYS]:
        locator = Locator(key)
        assert view.exists(locator) == then.exists(locator)
        assert view.list(locator) == then.list(locator)
        assert outcome(lambda: view.read(locator)) == outcome(lambda: then.read(locator))  # noqa: B023
        assert outcome(lambda: described(view, locator)) == outcome(  # noqa: B023
            lambda: described(then, locator)  # noqa: B023
        )


def described(backend: StorageBackend, locator: Locator) -> tuple[Locator, bool, int]:
    info = backend.info(locator)
    return info.locator, info.is_dir, info.size


def outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except (FileNotFoundError, IsADirectoryError) as error:
        return type(error)


class TestReading:
    def test_a_text_has_the_time_of_its_version(self) -> None:
        now = 1_000_000
        disk = MemoryDisk()
        store = ArtifactStore(disk, clock=lambda: now)
        recorded = Recorded(MemoryBackend(), History(store, disk))
        recorded.write(NOTE, "é\r\n")
        now = 2_000_500
        state = recorded.commit({Locator("other.md"): "later"})
        view = View(recorded.history, state)

        assert (view.info(NOTE).mtime, view.info(NOTE).size) == (1000.0, 4)
        assert view.info(Locator("notes")).mtime == 2000.5

    def test_what_is_not_there_says_so(self, recorded: Recorded) -> None:
        view = View(recorded.history, recorded.commit({NOTE: "one"}))
        with pytest.raises(AbsentError, match="entry 2"):
            view.read(Locator("nowhere"))
        with pytest.raises(AbsentError):
            view.info(NOTE.child("below"))
        for directory in (ROOT, Locator("notes")):
            with pytest.raises(PathIsDirectoryError):
                view.read(directory)

    def test_texts_that_were_taken_away_can_be_read_as_of_before(self, recorded: Recorded) -> None:
        before = recorded.commit({NOTE: "secret"})
        after = recorded.history.store.tombstone(CID.of(b"secret"), "private")

        assert View(recorded.history, before).read(NOTE) == "secret"
        with pytest.raises(AbsentError, match="hidden or erased"):
            View(recorded.history, after).read(NOTE)
        with pytest.raises(AbsentError, match="hidden or erased"):
            View(recorded.history, after).info(NOTE)

    def test_names_that_no_key_can_say_are_left_out(self, recorded: Recorded) -> None:
        names = ["good.md", "", "../up", "a\\b", "nul\0", "cafe\u0301", "dir/..", "x.perdure-tmp"]
        state = recorded.history.record([NewBinding(name, b"text") for name in names])
        view = View(recorded.history, state)

        assert [child.key for child in view.list(ROOT)] == ["dir", "good.md"]
        assert view.list(Locator("dir")) == []
        assert view.info(ROOT).is_dir

    def test_what_is_no_text_is_reported(self, recorded: Recorded) -> None:
        state = recorded.history.record([NewBinding(NOTE.key, b"\xff")])
        with pytest.raises(NotTextError):
            View(recorded.history, state).read(NOTE)

    def test_a_text_hides_what_another_process_bound_below_it(self, recorded: Recorded) -> None:
        state = recorded.history.record([NewBinding("a", b"text"), NewBinding("a/b", b"below")])
        view = View(recorded.history, state)

        assert view.read(Locator("a")) == "text"
        assert view.list(Locator("a")) == []
        assert not view.info(Locator("a")).is_dir

    def test_it_stays_the_same_while_the_present_goes_on(self, recorded: Recorded) -> None:
        view = View(recorded.history, recorded.commit({NOTE: "one"}))
        recorded.write(NOTE, "two")
        recorded.write(Locator("b.md"), "new")

        assert tree(view) == {"notes": None, NOTE.key: "one"}

    def test_a_large_directory_is_listed_without_what_is_below(self, recorded: Recorded) -> None:
        many = [NewBinding(f"deep/{number}/x.md", b"x") for number in range(3000)]
        state = recorded.history.record([*many, NewBinding("a.md", b"x")])
        view = View(recorded.history, state)

        assert [child.key for child in view.list(ROOT)] == ["a.md", "deep"]
        assert len(view.list(Locator("deep"))) == 3000


class TestRefusing:
    def test_nothing_can_be_changed(self, recorded: Recorded) -> None:
        view = View(recorded.history, recorded.commit({NOTE: "one"}))
        leave = Authorisation.grant("ana", NOTE, "two")
        changes: list[Callable[[], object]] = [
            lambda: view.write(NOTE, "two"),
            lambda: view.remove(NOTE),
            lambda: view.write_all({NOTE: "two"}),
            lambda: view.mkdir(Locator("new")),
            lambda: view.write_personal(NOTE, "two", authorisation=leave),
        ]
        for change in changes:
            with pytest.raises(AccessRefusedError, match="the past"):
                change()

        assert recorded.read(NOTE) == "one"
        assert tree(view) == {"notes": None, NOTE.key: "one"}

    def test_it_promises_nothing(self, recorded: Recorded) -> None:
        view = View(recorded.history, recorded.commit({NOTE: "one"}))

        assert view.capabilities == Capabilities()
        assert "entry 2" in view.whereabouts

    def test_states_that_can_not_be_asked_for_are_refused(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        snapshot = recorded.history.store.snapshot()
        position = snapshot.position
        for state, kind in (
            (IndexState(0, position + 1), FuturePositionError),
            (IndexState(9, position), UnknownSnapshotError),
            (IndexState(1, 0), BeforeSnapshotError),
        ):
            with pytest.raises(kind):
                View(recorded.history, state)

    def test_a_state_that_is_no_longer_retained_is_refused(self, recorded: Recorded) -> None:
        view = View(recorded.history, recorded.commit({NOTE: "one"}))
        state = recorded.commit({NOTE: "two"})
        recorded.history.store.gc(before=state.position)
        for ask in (view.read, view.list, view.exists, view.info):
            with pytest.raises(RetentionError):
                ask(NOTE)
        with pytest.raises(RetentionError):
            View(recorded.history, IndexState(0, 1))
