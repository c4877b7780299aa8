"""What a history says by name, from a file that may be lost, spoilt or shared at any time."""

import itertools
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts.artifact import Derived, Literal, structures
from perdure.artifacts.catalogue import Catalogue
from perdure.artifacts.cid import CID
from perdure.artifacts.disk import FolderLock
from perdure.artifacts.entry import (
    Bind,
    Binding,
    Entry,
    IndexState,
    Lift,
    LogEntry,
    Put,
    Register,
    Result,
    Tombstone,
)
from perdure.errors import DamageError
from perdure.testing.storage.processes import finish, start

ONE, TWO, THREE = (CID.of(data) for data in (b"one", b"two", b"three"))


class Pages:
    """A log in memory. A commit is a list of entries, and a second passes with each."""

    def __init__(self, history: bytes = b"ours") -> None:
        self.history = history
        self.entries: list[LogEntry] = []
        self.read = 0

    def commit(self, *entries: Entry, time: int | None = None) -> int:
        first = len(self.entries) + 1
        last = len(self.entries) + len(entries)
        when = last * 1000 if time is None else time
        for position, entry in enumerate(entries, first):
            self.entries.append(LogEntry(position, last, when, entry))
        return last

    def current(self) -> IndexState:
        return IndexState(0, len(self.entries))

    def log(self, after: int = 0) -> Iterator[LogEntry]:
        for logged in self.entries[after:]:
            self.read += 1
            yield logged

    def cut(self, position: int) -> None:
        del self.entries[position:]


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "catalogue.sqlite")


def filled(pages: Pages, count: int = 20) -> Pages:
    for number in range(count):
        pages.commit(Bind(f"notes/{number % 4}.md", CID.of(b"%d" % number)))
    return pages


def bound_names(pages: Pages, position: int) -> dict[str, CID]:
    """Return what names were bound to, from the log alone."""
    names: dict[str, CID] = {}
    for logged in pages.entries:
        if logged.commit <= position and isinstance(logged.entry, Bind):
            names.pop(logged.entry.name, None)
            if logged.entry.cid is not None:
                names[logged.entry.name] = logged.entry.cid
    return names


def check(catalogue: Catalogue, pages: Pages) -> None:
    """Compare all that the catalogue says, as of every position, with the log."""
    every = {entry.entry.name for entry in pages.entries if isinstance(entry.entry, Bind)}
    for position in range(len(pages.entries) + 1):
        expected = bound_names(pages, position)
        assert catalogue.names("", position) == sorted(expected)
        for name in every:
            bound = catalogue.last_binding(name, position)
            assert (bound.cid if bound else None) == expected.get(name)
        for folder in {"", *folders_of(every)}:
            assert catalogue.children(folder, position) == children_of(folder, expected)
            assert catalogue.any_below(folder, position) == bool(children_of(folder, expected))
            first = sorted({name for name, _ in children_of(folder, expected)})[:2]
            assert catalogue.first_children(folder, position, 2) == first


def folders_of(names: set[str]) -> set[str]:
    return {name[:at] for name in names for at, character in enumerate(name) if character == "/"}


def children_of(folder: str, names: dict[str, CID]) -> list[tuple[str, bool]]:
    prefix = f"{folder}/" if folder else ""
    below = [name[len(prefix) :] for name in names if name.startswith(prefix)]
    return sorted({(prefix + rest.partition("/")[0], "/" in rest) for rest in below})


NAMES = st.sampled_from(
    [
        "a",
        "a.b",
        "a-b",
        "a0",
        "a/b",
        "a/b/c",
        "a/b/d",
        "a/é",
        "b/x",
        "é/y",
        "a/b/c-d/e",
        "a/b/c/d/e",
    ]
)
COMMITS = st.lists(
    st.lists(
        st.builds(Bind, NAMES, st.sampled_from([ONE, TWO, None]), st.just({})),
        min_size=1,
        max_size=3,
    ),
    max_size=12,
)


class TestNames:
    @given(COMMITS)
    def test_every_position_is_answered_as_the_log_says(self, commits: list[list[Bind]]) -> None:
        pages = Pages()
        for entries in commits:
            pages.commit(*entries)
        catalogue = Catalogue(pages)
        catalogue.follow()

        check(catalogue, pages)

    def test_a_name_has_all_its_versions_in_order(self, pages: Pages) -> None:
        pages.commit(Put(ONE, 0, 3, 0), Bind("a", ONE, {"actor": "ana"}))
        pages.commit(Bind("b", ONE))
        pages.commit(Bind("a", None))
        pages.commit(Bind("a", TWO, {"reason": "again", "odd": [1, None]}))
        catalogue = Catalogue(pages)
        catalogue.follow()

        assert catalogue.versions("a", 99) == [
            Binding("a", 2, 2, 2000, ONE, {"actor": "ana"}),
            Binding("a", 4, 4, 4000, None, {}),
            Binding("a", 5, 5, 5000, TWO, {"reason": "again", "odd": [1, None]}),
        ]
        assert [version.position for version in catalogue.versions("a", 4)] == [2, 4]
        assert catalogue.versions("nobody", 99) == []

    def test_inside_a_commit_it_is_still_the_moment_before(self, pages: Pages) -> None:
        pages.commit(Bind("a", ONE))
        pages.commit(Bind("a", TWO), Bind("a", THREE), Bind("b", ONE))
        catalogue = Catalogue(pages)
        catalogue.follow()

        for position, expected in ((1, ONE), (2, ONE), (3, ONE), (4, THREE)):
            bound = catalogue.last_binding("a", position)
            assert bound is not None
            assert bound.cid == expected
        assert [catalogue.names("", position) for position in (3, 4)] == [["a"], ["a", "b"]]
        assert catalogue.commit_at(3) == (1, 1000)

    def test_names_are_given_by_folder(self, pages: Pages) -> None:
        pages.commit(*(Bind(name, ONE) for name in ("a", "a/b", "a/c/d", "a0", "ab", "b/a")))
        catalogue = Catalogue(pages)
        catalogue.follow()

        assert catalogue.names("a/", 6) == ["a/b", "a/c/d"]
        with pytest.raises(ValueError, match="slash"):
            catalogue.names("a", 6)

    def test_what_lies_deeper_than_a_folder_is_passed_over(self, pages: Pages) -> None:
        pages.commit(*(Bind(f"big/{number}", ONE) for number in range(20_000)))
        pages.commit(Bind("a.md", ONE), Bind("z.md", ONE))
        for _ in range(20_000):
            pages.commit(Bind("z.md", TWO))
        catalogue = Catalogue(pages)
        catalogue.follow()

        def list_root() -> None:
            names = [name for name, _ in catalogue.children("", len(pages.entries))]
            assert names == ["a.md", "big", "z.md"]

        assert steps(catalogue, list_root) < 10

    def test_it_tells_which_names_were_spoken_of_since(self, pages: Pages) -> None:
        pages.commit(Bind("b", ONE), Bind("a", ONE))
        pages.commit(Put(TWO, 0, 3, 0))
        catalogue = Catalogue(pages)

        assert catalogue.named_since(0) == ["a", "b"]
        assert catalogue.named_since(1) == ["a"]
        assert catalogue.named_since(2) == []
        assert catalogue.named_since(0, until=1) == ["b"]
        assert catalogue.last_named() == 2

    def test_the_last_binding_is_found_without_reading_the_rest(self, pages: Pages) -> None:
        pages.commit(*(Bind(f"notes/{number}.md", ONE) for number in range(20_000)))
        end = pages.commit(Bind("last.md", TWO))
        catalogue = Catalogue(pages)
        catalogue.follow()

        def tell() -> None:
            assert catalogue.named_since(end - 1) == ["last.md"]

        assert steps(catalogue, tell) < 10

    def test_it_tells_whether_content_was_hidden_since(self, pages: Pages) -> None:
        pages.commit(Put(ONE, 0, 3, 0), Tombstone(ONE, ""))
        pages.commit(Lift(ONE))
        catalogue = Catalogue(pages)

        assert [catalogue.hides_since(after, 3) for after in range(4)] == [True, True, True, False]
        assert [catalogue.hides_since(0, until) for until in (1, 2)] == [False, True]


def steps(catalogue: Catalogue, action: Callable[[], None]) -> int:
    """Return how many hundreds of steps SQLite takes."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    assert catalogue._database is not None
    with catalogue._database.connection() as db:
        db.set_progress_handler(count, 100)
    action()
    return taken


class TestTheRest:
    def test_structures_and_results_are_found_by_their_sid(self, pages: Pages) -> None:
        derived = Derived("concat", "1", (Literal(b"one"), Literal(b"two")))
        registered = [structure for _, structure in structures(derived)]
        pages.commit(*(Register(structure.sid, structure.encoded) for structure in registered))
        pages.commit(Result(registered[-1].sid, ONE))
        pages.commit(Result(registered[-1].sid, TWO), Result(registered[-1].sid, ONE))
        catalogue = Catalogue(pages)
        catalogue.follow()

        assert [catalogue.structure(structure.sid) for structure in registered] == [
            structure.encoded for structure in registered
        ]
        assert catalogue.structure(ONE) is None
        assert catalogue.results(registered[-1].sid) == [(ONE, 4), (TWO, 5)]
        assert catalogue.results(registered[0].sid) == []

    @given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 0, 1, 5])), max_size=20))
    def test_a_time_is_answered_by_the_last_commit_before_it(
        self, commits: list[tuple[int, int]]
    ) -> None:
        pages = Pages()
        time = 10
        for size, pause in commits:
            time += pause
            pages.commit(*itertools.repeat(Bind("a", ONE), size), time=time)
        catalogue = Catalogue(pages)
        catalogue.follow()

        for asked in range(9, time + 3):
            before = [logged.commit for logged in pages.entries if logged.time <= asked]
            assert catalogue.position_at(asked) == max(before, default=0)

    def test_an_empty_history_has_empty_answers(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(pages, path)

        assert catalogue.follow() == 0
        assert catalogue.names("", 0) == []
        assert catalogue.position_at(10**15) == 0
        assert catalogue.commit_at(0) == (0, 0)
        assert catalogue.last_named() == 0
        assert not Path(path).exists()

    def test_a_log_that_leaves_entries_out_is_refused(self, pages: Pages) -> None:
        filled(pages)
        del pages.entries[3]
        with pytest.raises(DamageError, match="verify"):
            Catalogue(pages).follow()


class TestTheFile:
    def test_it_is_taken_up_where_it_was_left(self, pages: Pages, path: str) -> None:
        Catalogue(filled(pages), path).follow()
        pages.read = 0
        pages.commit(Bind("new", ONE))
        catalogue = Catalogue(pages, path)

        assert catalogue.follow() == 21
        assert pages.read == 2
        check(catalogue, pages)

    def test_nothing_is_read_when_nothing_is_new(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(filled(pages), path)
        catalogue.follow()
        pages.read = 0

        assert catalogue.follow() == 20
        assert pages.read == 0

    def test_it_is_never_synced(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(filled(pages), path)
        catalogue.follow()

        assert catalogue._database is not None
        assert catalogue._database.ask("PRAGMA synchronous", ()) == [(0,)]

    def test_many_entries_are_taken_in_by_whole_commits(
        self, pages: Pages, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("perdure.artifacts.catalogue._BATCH", 5)
        for number in range(10):
            pages.commit(*(Bind(f"{number}/{part}", ONE) for part in range(number % 3 + 1)))
        catalogue = Catalogue(pages, path)
        catalogue.follow()

        check(catalogue, pages)

    def test_who_asks_while_another_one_follows_gets_the_whole_answer(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("perdure.artifacts.catalogue._BATCH", 5)
        answers: list[list[str]] = []

        class Curious(Pages):
            def log(self, after: int = 0) -> Iterator[LogEntry]:
                for logged in super().log(after):
                    if logged.position == 12 and not answers:
                        answers.append([])
                        answers.append(catalogue.names("", 20))
                    yield logged

        pages = Curious()
        for number in range(20):
            pages.commit(Bind(f"{number:02}", ONE))
        catalogue = Catalogue(pages, path)
        catalogue.follow()

        assert answers[1] == sorted(bound_names(pages, 20))
        check(catalogue, pages)

    def test_a_commit_that_is_not_whole_yet_is_left_for_later(self, pages: Pages) -> None:
        pages.commit(Bind("a", ONE))
        pages.commit(Bind("a", TWO), Bind("b", TWO))
        last = pages.entries.pop()
        catalogue = Catalogue(pages)
        with pytest.raises(DamageError):
            catalogue.follow()
        pages.entries.append(last)
        catalogue.follow()

        check(catalogue, pages)

    def test_two_who_follow_at_once_add_nothing_twice(self, pages: Pages, path: str) -> None:
        filled(pages, 500)
        together = threading.Barrier(4)

        def follow() -> None:
            catalogue = Catalogue(pages, path)
            together.wait()
            catalogue.follow()

        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(follow) for _ in range(4)]:
                done.result()

        catalogue = Catalogue(pages, path)
        catalogue.follow()
        assert len(catalogue.versions("notes/1.md", 500)) == 125

    def test_threads_can_share_it(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(filled(pages), path)

        def ask(number: int) -> None:
            for _ in range(50):
                catalogue.follow()
                assert len(catalogue.versions(f"notes/{number}.md", 20)) == 5

        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(ask, number) for number in range(4)]:
                done.result()

    def test_a_fork_opens_it_for_itself(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(filled(pages), path)
        catalogue.follow()
        inherited = catalogue._database

        def in_the_fork() -> None:
            pages.commit(Bind("forked", ONE))
            catalogue.follow()
            assert catalogue._database is not inherited
            check(catalogue, pages)

        finish([start(in_the_fork)])
        pages.commit(Bind("forked", ONE))
        catalogue.follow()
        check(catalogue, pages)
        catalogue.close()
        check(Catalogue(pages, path), pages)

    def test_a_process_that_is_killed_leaves_it_right(self, path: str) -> None:
        pages = Pages()
        following = threading.Event()

        def follow_for_ever() -> None:
            mine = Pages()
            mine.entries = list(pages.entries)
            catalogue = Catalogue(mine, path)
            for number in itertools.count():
                bind = Bind(f"{number % 7}", CID.of(b"%d" % number))
                mine.commit(bind, time=10**9 + number)  # logs are distinguished by their times
                catalogue.follow()

        for attempt in range(10):
            process = start(follow_for_ever)
            following.wait(0.02 + 0.003 * attempt)
            process.kill()
            process.join()
        filled(pages, 5)  # a log that knows nothing of what they followed
        catalogue = Catalogue(pages, path)
        catalogue.follow()

        check(catalogue, pages)
        assert catalogue._path == path


def garbage(path: Path) -> None:
    path.write_bytes(Random(1).randbytes(20_000))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def spoilt_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 64] = Random(page).randbytes(64)
    path.write_bytes(data)


def changed(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in (*statements, "UPDATE facts SET seen_on = 'before the power cut'"):
        connection.execute(statement)
    connection.commit()
    connection.close()


def rows_missing(path: Path) -> None:
    changed(path, "DELETE FROM binds WHERE position = 7")


def index_without_a_row(path: Path) -> None:
    hide = "DELETE FROM sqlite_master WHERE name = 'binds_by_position'"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        row = connection.execute("SELECT * FROM binds WHERE position = 7").fetchone()
        ask = "SELECT * FROM sqlite_master WHERE name = 'binds_by_position'"
        index = connection.execute(ask).fetchone()
        connection.execute("DELETE FROM binds WHERE position = 7")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(hide)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO binds VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
    changed(path)


def row_doubled(path: Path) -> None:
    changed(path, "UPDATE binds SET name = 'notes/9.md', position = 8 WHERE position = 7")


def no_cid(path: Path) -> None:
    changed(path, "UPDATE binds SET cid = x'00'")


def no_circumstances(path: Path) -> None:
    changed(path, "UPDATE binds SET circumstances = x'ff'")


def other_version(path: Path) -> None:
    changed(path, "PRAGMA user_version = 99", "ALTER TABLE binds RENAME TO bindings")


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name)")
    connection.close()


def no_facts(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM facts")
    connection.commit()
    connection.close()


def of_another_history(path: Path) -> None:
    path.unlink()
    other = Pages(b"theirs")
    for _ in range(20):
        other.commit(Bind("theirs", ONE))
    Catalogue(other, str(path)).follow()


def ahead_of_its_log(path: Path) -> None:
    path.unlink()
    Catalogue(filled(Pages(), 30), str(path)).follow()


def ahead_by_one(path: Path) -> None:
    path.unlink()
    Catalogue(filled(Pages(), 21), str(path)).follow()


def of_another_past(path: Path) -> None:
    path.unlink()
    other = Pages()
    for number in range(10):
        other.commit(Bind("theirs", ONE), time=number)
    Catalogue(other, str(path)).follow()


WAYS: list[Callable[[Path], None]] = [
    garbage,
    cut_short,
    emptied,
    spoilt_inside,
    rows_missing,
    index_without_a_row,
    row_doubled,
    no_cid,
    no_circumstances,
    other_version,
    foreign,
    no_facts,
    of_another_history,
    ahead_of_its_log,
    ahead_by_one,
    of_another_past,
    Path.unlink,
]


class TestDamage:
    @pytest.mark.parametrize("spoil", WAYS)
    def test_a_file_that_can_not_be_trusted_is_rebuilt(
        self, spoil: Callable[[Path], None], pages: Pages, path: str
    ) -> None:
        Catalogue(filled(pages), path).follow()
        spoil(Path(path))
        catalogue = Catalogue(pages, path)
        catalogue.follow()

        check(catalogue, pages)
        assert catalogue.named_since(6, until=7) == ["notes/2.md"]
        assert catalogue._path == path
        pages.read = 0
        again = Catalogue(pages, path)
        again.follow()
        assert pages.read == 1
        check(again, pages)

    @pytest.mark.parametrize("spoil", [garbage, cut_short, emptied, spoilt_inside, Path.unlink])
    def test_what_is_spoilt_under_our_eyes_is_rebuilt(
        self, spoil: Callable[[Path], None], pages: Pages, path: str
    ) -> None:
        catalogue = Catalogue(filled(pages), path)
        catalogue.follow()
        assert catalogue._database is not None
        catalogue._database.ask("PRAGMA cache_size = 0", ())
        spoil(Path(path))

        check(catalogue, pages)
        assert catalogue._database is not None
        assert catalogue._database.is_in_place
        pages.commit(Bind("new", TWO))
        catalogue.follow()
        check(catalogue, pages)

    def test_one_who_has_lost_the_file_does_not_disturb_the_new_one(
        self, pages: Pages, path: str
    ) -> None:
        first = Catalogue(filled(pages), path)
        first.follow()
        Path(path).unlink()
        second = Catalogue(pages, path)
        second.follow()
        for catalogue in (first, second, first):
            pages.commit(Bind("new", TWO))
            catalogue.follow()

        check(first, pages)
        check(second, pages)
        assert first._database is not None
        assert first._database.is_in_place

    def test_a_log_that_was_put_back_is_followed_again(self, pages: Pages, path: str) -> None:
        for catalogue in (Catalogue(filled(pages), path), Catalogue(pages)):
            catalogue.follow()
            pages.cut(10)
            catalogue.follow()
            check(catalogue, pages)
            pages.commit(Bind("other", ONE), time=20_500)
            catalogue.follow()
            check(catalogue, pages)
            pages.cut(10)
            filled(pages, 10)

    def test_without_a_place_for_the_file_it_is_in_memory(self, pages: Pages, path: str) -> None:
        Path(path).write_bytes(b"no folder")
        catalogue = Catalogue(filled(pages), f"{path}/below/catalogue.sqlite")
        catalogue.follow()

        check(catalogue, pages)

    def test_a_file_that_another_process_keeps_for_too_long_is_done_without(
        self, pages: Pages, path: str
    ) -> None:
        Catalogue(filled(pages), path).follow()
        pages.commit(Bind("new", ONE))
        held = FolderLock.take(f"{path}-lock")
        assert held is not None
        catalogue = Catalogue(pages, path, patience=0.01)
        catalogue.follow()

        check(catalogue, pages)
        held.release()
        check(Catalogue(pages, path), pages)

    def test_a_copy_is_checked_before_it_is_believed(self, pages: Pages, path: str) -> None:
        catalogue = Catalogue(filled(pages), path)
        catalogue.follow()
        copy = f"{path}.copy"
        shutil.copy(path, copy)
        connection = sqlite3.connect(copy)
        connection.execute("DELETE FROM binds WHERE position = 7")
        connection.commit()
        connection.close()

        check(Catalogue(pages, copy), pages)

    def test_what_was_checked_is_not_checked_again(self, pages: Pages, path: str) -> None:
        Catalogue(filled(pages), path).follow()
        executed: list[str] = []
        catalogue = Catalogue(pages, path)
        monitored = sqlite3.connect

        def connect(*arguments: object, **options: object) -> sqlite3.Connection:
            connection = monitored(*arguments, **options)  # type: ignore[call-overload]
            connection.set_trace_callback(executed.append)
            assert isinstance(connection, sqlite3.Connection)
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", connect)
            catalogue.follow()

        assert executed
        assert not any("quick_check" in statement for statement in executed)


def test_the_ways_to_spoil_a_file_are_all_different(pages: Pages, path: str) -> None:
    Catalogue(filled(pages), path).follow()
    whole = Path(path).read_bytes()
    found: list[Sequence[int]] = []
    for spoil in WAYS:
        Path(path).write_bytes(whole)
        spoil(Path(path))
        found.append(Path(path).read_bytes() if Path(path).exists() else b"gone")

    assert whole not in found
    assert len(set(map(bytes, found))) == len(WAYS)
