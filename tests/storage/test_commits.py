"""A commit is all or nothing."""

import pytest

from perdure.artifacts import NewBinding
from perdure.errors import (
    ConcurrentModificationError,
    ParentIsFileError,
    StorageFaultError,
    StorageFullError,
)
from perdure.storage import ABSENT, Locator, content_hash
from perdure.storage.text_history import EXTERNAL, SAVE, SETTLED, UNDONE, View
from perdure.testing.storage.storage_suite import tree
from tests.storage.transactions import (
    SCENARIOS,
    Scenario,
    Stepwise,
    check_any_order,
    check_committed,
    check_failures,
    check_hand_edits,
    check_kills,
    check_kills_while_redoing,
    check_overtaken,
    check_power_cuts,
    check_views,
    prepared,
    recorded,
    run,
    watched,
)
from tests.support.artifacts.memory_disk import MemoryDisk

FIRST, SECOND, THIRD = (Locator(f"notes/{name}.md") for name in ("first", "second", "third"))


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


class TestDying:
    def test_a_commit_in_the_log_is_done_wherever_its_writer_dies(self, scenario: Scenario) -> None:
        check_kills(scenario)

    def test_a_redo_that_is_killed_is_finished_by_the_next(self, scenario: Scenario) -> None:
        check_kills_while_redoing(scenario)

    def test_a_hand_edit_stays(self, scenario: Scenario) -> None:
        check_hand_edits(scenario)

    def test_whatever_a_power_cut_leaves_is_old_or_new(self, scenario: Scenario) -> None:
        check_power_cuts(scenario)

    @pytest.mark.parametrize("name", ["create", "update", "delete", "some of each"])
    def test_whichever_texts_a_power_cut_leaves_all_become_new(self, name: str) -> None:
        check_any_order(SCENARIOS[name])

    @pytest.mark.parametrize("name", ["create", "update", "move"])
    def test_an_edit_in_the_middle_is_not_lost(self, name: str) -> None:
        check_overtaken(SCENARIOS[name])

    @pytest.mark.parametrize("verb", ["write", "settle"])
    def test_who_has_it_open_settles_too(self, verb: str) -> None:
        scenario = SCENARIOS["move"]
        inner, disk = prepared(scenario).again()
        backend, dying = recorded(inner, disk), recorded(inner, disk)
        done = watched(lambda: dying.commit(scenario.changes), inner, disk)
        new, left = tree(inner), done[5]
        for name, content in left.files.items():
            disk.open(name).truncate(0)
            disk.open(name).write(0, [content])
        inner._texts, inner._mtimes = left.inner._texts, left.inner._mtimes
        if verb == "write":
            backend.write(FIRST, "1")
            new[FIRST.key] = "1"
        else:
            backend.settle()

        assert tree(inner) == new


class TestFailing:
    @pytest.mark.parametrize(
        "error", [StorageFullError("full"), KeyboardInterrupt(), RuntimeError("a bug")]
    )
    def test_whatever_is_raised_in_the_middle_all_is_as_it_was(
        self, scenario: Scenario, error: BaseException
    ) -> None:
        check_failures(scenario, error)

    def test_views_show_whole_commits_only(self, scenario: Scenario) -> None:
        check_views(scenario, StorageFullError("full"))

    def test_a_disk_that_stays_full_keeps_others_from_writing_on_top(self) -> None:
        scenario = SCENARIOS["update"]
        inner, disk = prepared(scenario).again()
        backend = recorded(inner, disk)
        old, steps = tree(inner), 0

        def fill_up() -> None:
            nonlocal steps
            steps += 1
            if steps > 4:
                raise StorageFullError("full")

        inner.step = fill_up
        for changes in (scenario.changes, {FIRST: "other"}, {SECOND: "1", THIRD: "2"}):
            with pytest.raises(StorageFullError):
                backend.commit(changes)
        texts = {locator.key: backend.committed(locator) for locator in scenario.changes}
        assert texts == {locator.key: old[locator.key] for locator in scenario.changes}
        recorded(inner, disk)  # it can be opened, and read
        inner.step = lambda: None
        backend.write(FIRST, "other")

        assert tree(inner) == {**old, FIRST.key: "other"}
        recorded(inner, disk)
        assert tree(inner) == {**old, FIRST.key: "other"}

    def test_what_can_not_be_confirmed_says_that_it_is_done(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        left = 4

        def fail() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise StorageFaultError("done, but not confirmed")

        inner.step = fail
        with pytest.raises(StorageFaultError):
            backend.commit({FIRST: "2", SECOND: "2"})

        assert (inner.read(FIRST), inner.read(SECOND)) == ("2", "2")


class TestCommitting:
    def test_the_texts_are_written_in_this_order(self) -> None:
        inner = Stepwise()
        backend = recorded(inner, MemoryDisk())
        seen: list[str] = []
        inner.step = lambda: seen.extend(k for k, t in tree(inner).items() if t and k not in seen)
        backend.commit({SECOND: "1", THIRD: "2", FIRST: "3"})

        assert seen == [SECOND.key, THIRD.key, FIRST.key]

    def test_a_condition_that_does_not_hold_changes_nothing(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        before, files = tree(inner), disk.files()
        for expect in ({SECOND: ABSENT}, {FIRST: content_hash("2")}, {THIRD: content_hash("1")}):
            with pytest.raises(ConcurrentModificationError):
                backend.commit({FIRST: "2", SECOND: "2", THIRD: "2"}, expect=expect)
        assert disk.files() == files
        with pytest.raises(ParentIsFileError):
            backend.commit({SECOND: "2", FIRST.child("below.md"): "2"})

        assert tree(inner) == before

    def test_a_condition_that_is_overtaken_undoes_all(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1", THIRD: "1"})
        left = 2

        def edit() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                inner.edit(SECOND, "theirs")

        inner.step = edit
        with pytest.raises(ConcurrentModificationError):
            backend.commit(
                {FIRST: "2", SECOND: "2", THIRD: "2"}, expect={SECOND: content_hash("1")}
            )

        assert [inner.read(each) for each in (FIRST, SECOND, THIRD)] == ["1", "theirs", "1"]

    def test_one_who_never_rests_does_not_keep_us_from_writing(self) -> None:
        inner = Stepwise()
        backend = recorded(inner, MemoryDisk())
        backend.commit({FIRST: "1", SECOND: "1"})
        turns = iter(range(1000))
        inner.step = lambda: inner.edit(SECOND, f"theirs {next(turns)}")
        backend.commit({SECOND: "2", FIRST: "2"})

        assert inner.read(FIRST) == "2"

    def test_committed_tells_what_was_before(self, scenario: Scenario) -> None:
        check_committed(scenario)

    def test_committed_tells_what_others_wrote_and_that_nothing_is_there(self) -> None:
        inner = Stepwise()
        backend = recorded(inner, MemoryDisk())
        backend.commit({FIRST: "1", SECOND: "1"})
        inner.edit(FIRST, "theirs")

        assert backend.committed(FIRST) == "theirs"
        assert backend.committed(THIRD) is None
        assert backend.committed(FIRST.parent) is None

    def test_committed_is_not_misled_by_a_commit_that_comes_and_goes(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        reading = inner.read

        def read(locator: Locator) -> str:
            """Read in the middle of a commit that is then undone."""
            inner.read = reading  # type: ignore[method-assign]
            seen: list[str] = []

            def fail() -> None:
                seen.append(reading(FIRST))
                if len(seen) == 3:
                    raise StorageFullError("full")

            inner.step = fail
            with pytest.raises(StorageFullError):
                backend.commit({FIRST: "2", SECOND: "2"})
            inner.step = lambda: None
            return seen[-1]

        inner.read = read  # type: ignore[method-assign]

        assert backend.committed(FIRST) == "1"

    def test_circumstances_make_no_other_backend(self) -> None:
        backend = recorded(Stepwise(), MemoryDisk())
        backend.because(actor="ana", reason="why", moved_from="a").commit({FIRST: "1", SECOND: "1"})

        assert backend.read(FIRST) == "1"

    def test_write_all_is_a_commit(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        left = 4

        def fail() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise StorageFullError("full")

        inner.step = fail
        with pytest.raises(StorageFullError):
            backend.write_all({FIRST: "1", SECOND: "1", THIRD: "1"})

        assert tree(inner) == {}


class TestHistory:
    def test_what_others_wrote_before_a_commit_that_is_undone_is_what_comes_back(self) -> None:
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        inner.edit(FIRST, "theirs")
        inner.edit(SECOND, None)
        left = 3

        def fail() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise StorageFullError("full")

        inner.step = fail
        with pytest.raises(StorageFullError):
            backend.commit({SECOND: "2", FIRST: "2"})

        assert tree(inner) == {"notes": None, FIRST.key: "theirs"}
        versions = [(version.cid, version.origin) for version in backend.history.versions(FIRST)]
        assert [origin for _, origin in versions] == [SAVE, EXTERNAL, SAVE, UNDONE]
        assert versions[1][0] == versions[3][0]
        origins = [version.origin for version in backend.history.versions(SECOND)]
        assert origins == [SAVE, EXTERNAL, SAVE, UNDONE]

    def test_without_the_mark_nothing_is_undone(self) -> None:
        outcome = run(SCENARIOS["update"])
        inner, disk = outcome.moments[4].again()
        disk.remove(SETTLED)
        before = tree(inner)
        backend = recorded(inner, disk)

        assert tree(inner) == before
        assert tree(View(backend.history, backend.history.store.current())) == before

    def test_what_was_taken_in_from_elsewhere_is_not_undone(self) -> None:
        """Its files come by a sync client, one after the other."""
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        with backend.history.lock.hold():
            backend.history.lock.mark_imported()
        backend.history.record([NewBinding(FIRST.key, b"2"), NewBinding(SECOND.key, b"2")])
        inner.edit(FIRST, "2")
        assert backend.committed(FIRST) == "2"
        recorded(inner, disk)

        assert (inner.read(FIRST), inner.read(SECOND)) == ("2", "1")
        backend.commit({FIRST: "3", SECOND: "3"})
        backend.history.record([NewBinding(FIRST.key, b"4"), NewBinding(SECOND.key, b"4")])
        inner.edit(FIRST, "4")
        recorded(inner, disk)
        assert (inner.read(FIRST), inner.read(SECOND)) == ("4", "4")

    def test_a_commit_that_others_followed_is_not_undone(self) -> None:
        """The mark may be of before a power cut; only the last commit can be unfinished."""
        inner, disk = Stepwise(), MemoryDisk()
        backend = recorded(inner, disk)
        backend.commit({FIRST: "1", SECOND: "1"})
        mark = disk.open(SETTLED).read(0, 64)
        backend.commit({FIRST: "2", SECOND: "2"})
        inner.edit(SECOND, "theirs")
        backend.write(THIRD, "3")
        disk.open(SETTLED).write(0, [mark])
        recorded(inner, disk)

        assert [inner.read(each) for each in (FIRST, SECOND, THIRD)] == ["2", "theirs", "3"]

    def test_many_names_are_asked_for_as_one_by_one(self) -> None:
        backend = recorded(Stepwise(), MemoryDisk())
        places = [Locator(f"{number}.md") for number in range(1200)]
        backend.commit(dict.fromkeys(places[:700], "1"))
        backend.commit({place: None if number % 3 else "2" for number, place in enumerate(places)})
        names = [place.key for place in places]
        catalogue = backend.history.store.catalogue
        for position in (0, 700, backend.history.position()):
            one_by_one = {name: catalogue.content(name, position) for name in names}
            assert catalogue.contents(names, position) == one_by_one

    def test_origins_that_history_itself_assigns_are_refused(self) -> None:
        backend = recorded(Stepwise(), MemoryDisk())
        for origin in (EXTERNAL, UNDONE):
            with pytest.raises(ValueError, match="by history itself"):
                backend.because(origin=origin)
