"""The files of an index: who may read them, what happens to them, and how they are shared."""

import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from perdure.errors import (
    ClosedError,
    DamageError,
    PackageMissingError,
    PerdureError,
    StorageUnavailableError,
)
from perdure.index import accounts as account_file
from perdure.index import matrix, sql
from perdure.index.accounts import copy_of
from perdure.index.filters import parse_filters, stamp
from perdure.index.rows import row_filter
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import IndexRecord
from perdure.testing.index.fixtures import (
    ACCOUNT,
    EAST,
    EVERYONE,
    ids,
    matching,
    near,
    record,
    uri_of,
)
from perdure.testing.storage.processes import start

PRIVATE = "xylophonist"
"""A word that must go, whole and as its stem."""
DIMENSION = 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[SqliteIndex]:
    with SqliteIndex(str(folder)) as index:
        yield index


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "acme.sqlite"


NAMES = frozenset(f"program-{number}" for number in range(150))


def many(count: int, user: str = "ana", text: str = "tea and milk") -> list[IndexRecord]:
    """Return records of nodes of three passages, with vectors of their own."""
    chance = random.Random(f"{count} {user}")
    return [
        record(
            f"{user}-{number}",
            uri_of(f"n{number // 3}", user),
            f"{text} {number % 17} {'more ' * (number % 5)}",
            context=f"title {number % 7}",
            vector=[chance.gauss(0, 1) for _ in range(DIMENSION)],
            payload={"number": number, "cid": f"cid{number}"},
            filters={"category": f"c{number % 3}", "valid_from": "2026-03-01T00:00:00Z"},
        )
        for number in range(count)
    ]


def nodes_of(records: list[IndexRecord]) -> dict[str, list[IndexRecord]]:
    nodes: dict[str, list[IndexRecord]] = {}
    for each in records:
        nodes.setdefault(each.uri, []).append(each)
    return nodes


QUERY = [random.Random(5).gauss(0, 1) for _ in range(DIMENSION)]


def answers(index: SqliteIndex) -> list[object]:
    """Ask about everything, so that a wrong byte would show."""
    some = {**EVERYONE, "category": ["c1", "c2"], "valid_at": "2026-04-01T00:00:00Z"}
    return [
        index.search_by_vector(QUERY, EVERYONE, 1000),
        index.search_by_vector(QUERY, some, 7),
        index.search_by_text(["tea", "more", "3", "title"], EVERYONE, 1000, context_weight=0.5),
        index.search_by_text(["milk", "5"], some, 7),
        index.search_children(uri_of("n3"), QUERY, EVERYONE, 9),
        index.read(ACCOUNT, [f"ana-{number}" for number in range(100)]),
        index.cursor(ACCOUNT),
        index.stamps(ACCOUNT),
        index.owner_spaces(ACCOUNT),
        index.ceiling(ACCOUNT, ["tea", "5"]),
    ]


# ---------------------------------------------------------------- files


def test_files_and_folder_are_their_owner_s_alone(
    index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 1)
    index.upsert([record("one")])
    near(index)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    names = ("acme.sqlite", "acme.sqlite-wal", "acme.sqlite-shm", "acme.3.vectors")
    assert modes == dict.fromkeys(names, 0o600)


def test_questions_make_no_file(index: SqliteIndex, folder: Path) -> None:
    answers(index)
    index.check(ACCOUNT)
    index.delete(["one"])
    index.delete_account_data(ACCOUNT)
    index.delete_by_owner_space(ACCOUNT, "user:ana")

    assert not folder.exists()


def test_a_closed_index_refuses_every_verb(index: SqliteIndex) -> None:
    index.upsert([record("one")])
    index.close()
    index.close()
    verbs: tuple[Callable[[], object], ...] = (
        lambda: index.upsert([record("one")]),
        lambda: index.delete(["one"]),
        lambda: index.replace(ACCOUNT, {}, cursor=1),
        lambda: near(index),
        lambda: matching(index, "tea"),
        lambda: index.cursor(ACCOUNT),
        lambda: index.check(ACCOUNT),
        lambda: index.delete_account_data(ACCOUNT),
        lambda: index.stamps("nobody"),
    )
    for verb in verbs:
        with pytest.raises(ClosedError, match=r"closed.*Fix: open it again"):
            verb()


def test_more_accounts_than_can_be_open_can_be_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_file.AccountDatabases.__init__, "__defaults__", (2,))
    with SqliteIndex(str(folder)) as index:
        for step in range(2):
            for number in range(6):
                index.upsert([record(f"r{step}", uri_of(account=f"a{number}"))])
        owner = {"owner_space": "user:ana"}
        found = [
            ids(index.search_by_vector(EAST, {"account_id": f"a{number}", **owner}, 9))
            for number in range(6)
        ]
        assert found == [["r0", "r1"]] * 6
        assert len(index._databases._open) == 2


@pytest.mark.parametrize("package", ["numpy", "simsimd"])
def test_without_its_packages_vectors_are_stored_but_not_searched(
    package: str, index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.upsert([record("one", text="some tea")])
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "perdure.index.matrix")
    monkeypatch.delattr("perdure.index.matrix")
    fix = rf"{package} is not installed.*Fix: pip install '\.\[vectors\]'"
    with pytest.raises(PackageMissingError, match=fix):
        near(index)

    assert matching(index, "tea") == ["one"]
    assert index.read(ACCOUNT, ["one"])["one"].vector == EAST


def test_any_number_of_words_can_be_asked_for(index: SqliteIndex) -> None:
    index.upsert([record("one", text="word700"), record("two", text="tea")])

    assert matching(index, *(f"word{number}" for number in range(2000))) == ["one"]


def test_many_equal_texts_are_cut_by_their_ids(index: SqliteIndex) -> None:
    index.upsert([record(f"{number * 7919 % 600:03}", text="tea") for number in range(600)])

    assert matching(index, "tea", top_k=5) == ["000", "001", "002", "003", "004"]
    assert near(index, 3) == ["000", "001", "002"]


def test_a_search_in_all_that_the_caller_may_see_looks_at_no_filters(index: SqliteIndex) -> None:
    index.upsert([record("one"), record("two", uri_of(user="bob"))])
    with index._databases._opened(ACCOUNT).reading() as db:
        everyone = row_filter(db, parse_filters({**EVERYONE, "level": 2}))
        less = row_filter(db, parse_filters({**EVERYONE, "owner_space": "user:bob"}))

    passages = everyone.among((2, 2))
    assert passages is not None
    assert passages.condition == ""
    assert "owner_space IN" in less.condition


# ---------------------------------------------------------------- the copy of the vectors


def test_a_new_process_need_not_read_the_rows(
    index: SqliteIndex, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 10)
    index.upsert(many(60))
    found = index.search_by_vector(QUERY, EVERYONE, 1000)
    assert copy_of(file, DIMENSION).exists()
    reads: list[int] = []
    really_read = matrix.read_rows

    def read_rows(db: sqlite3.Connection, dimension: int, after: int) -> object:
        reads.append(after)
        return really_read(db, dimension, after)

    monkeypatch.setattr(matrix, "read_rows", read_rows)
    with SqliteIndex(str(folder)) as again:
        assert again.search_by_vector(QUERY, EVERYONE, 1000) == found
        assert reads == []
        index.upsert(many(3, "bob"))
        index.delete(["ana-5"])
        assert len(again.search_by_vector(QUERY, EVERYONE, 1000)) == 62
    assert reads == [60]


@pytest.mark.parametrize("spoil", ["flip", "cut", "empty", "older", "of another"])
def test_a_damaged_copy_is_ignored(
    index: SqliteIndex, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 10)
    index.upsert(many(60, "bob"))
    index.search_by_vector(QUERY, EVERYONE, 1)
    older = copy_of(file, DIMENSION).read_bytes()
    index.delete_account_data(ACCOUNT)
    index.upsert(many(60))
    found = index.search_by_vector(QUERY, EVERYONE, 1000)
    copy = copy_of(file, DIMENSION)
    whole = copy.read_bytes()
    spoiled = {
        "flip": [
            whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :]
            for at in range(0, len(whole), 97)
        ],
        "cut": [whole[:-1], whole[:70], whole[:20], whole + b"\0"],
        "empty": [b""],
        "older": [older],
        "of another": [b"x" * 1000],
    }
    for data in spoiled[spoil]:
        copy.write_bytes(data)
        with SqliteIndex(str(folder)) as again:
            assert again.search_by_vector(QUERY, EVERYONE, 1000) == found


def test_a_small_change_is_followed_and_a_large_one_copied_again(
    index: SqliteIndex, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 10)
    index.upsert(many(90))
    index.search_by_vector(QUERY, EVERYONE, 1)
    first = copy_of(file, DIMENSION).read_bytes()
    index.delete(["ana-1"])
    index.search_by_vector(QUERY, EVERYONE, 1)
    assert copy_of(file, DIMENSION).read_bytes() == first
    index.upsert(many(30, "bob"))
    index.search_by_vector(QUERY, EVERYONE, 1)

    assert copy_of(file, DIMENSION).read_bytes() != first
    loaded = matrix.load(copy_of(file, DIMENSION), DIMENSION)
    assert loaded is not None
    assert len(loaded) == 119


def test_who_has_not_looked_for_long_sees_all_that_changed(
    index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.index.rows.RETAINED_CHANGES", 3)
    with SqliteIndex(str(folder)) as other:
        index.upsert([record(f"r{number}") for number in range(5)])
        near(other)
        for number in range(5):
            index.delete([f"r{number}"])
            index.upsert([record(f"s{number}")])

        assert near(other) == [f"s{number}" for number in range(5)]


# ---------------------------------------------------------------- forgetting


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_is_deleted_of_an_owner_is_in_no_file(
    index: SqliteIndex, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 10)
    index.upsert(many(200, "ana", PRIVATE))
    index.upsert(many(200, "bob"))
    index.upsert(many(100, "ana", PRIVATE))
    index.search_by_vector(QUERY, EVERYONE, 9)
    assert PRIVATE.encode() in everything_in(folder)
    assert copy_of(file, DIMENSION).exists()
    assert index.delete_by_owner_space(ACCOUNT, "user:ana") == 200

    left = everything_in(folder)
    assert b"xylophon" not in left
    assert b"users/ana" not in left
    assert b"users/bob" in left
    assert not copy_of(file, DIMENSION).exists()
    assert index.check(ACCOUNT) == []
    assert len(index.search_by_vector(QUERY, EVERYONE, 999)) == 200


def test_of_a_deleted_account_no_file_is_left(
    index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "WORTH_A_COPY", 10)
    index.upsert(many(60))
    index.upsert([record("x", uri_of(account="acme.32"), vector=QUERY)])
    index.search_by_vector(QUERY, EVERYONE, 9)

    assert index.delete_account_data(ACCOUNT) == 60
    assert {path.name.partition(".sqlite")[0] for path in folder.iterdir()} == {"acme.32"}


def test_who_has_a_deleted_account_open_finds_nothing_and_can_go_on(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    with SqliteIndex(str(folder)) as other:
        other.replace(ACCOUNT, nodes_of(many(60, text=PRIVATE)), cursor=9)
        assert len(other.search_by_vector(QUERY, EVERYONE, 999)) == 60
        assert index.delete_account_data(ACCOUNT) == 60

        assert other.search_by_vector(QUERY, EVERYONE, 9) == []
        assert matching(other, "tea") == []
        assert (other.cursor(ACCOUNT), other.stamps(ACCOUNT)) == (0, {})
        assert b"xylophon" not in everything_in(folder)
        other.upsert(many(3))
        assert len(index.search_by_vector(QUERY, EVERYONE, 9)) == 3
        assert index.check(ACCOUNT) == []


def test_an_account_whose_file_was_removed_has_no_records(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.replace(ACCOUNT, nodes_of(many(30)), cursor=9)
    index.search_by_vector(QUERY, EVERYONE, 9)
    for path in list(folder.iterdir()):
        path.unlink()

    assert index.search_by_vector(QUERY, EVERYONE, 9) == []
    assert matching(index, "tea") == []
    assert (index.cursor(ACCOUNT), index.stamps(ACCOUNT), index.check(ACCOUNT)) == (0, {}, [])
    index.upsert(many(3))
    assert len(index.search_by_vector(QUERY, EVERYONE, 9)) == 3


def test_a_damaged_file_can_be_deleted_and_filled_again(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.upsert(many(60))
    index.close()
    file.write_bytes(b"not a database, but long enough to be taken for one. " * 100)
    with SqliteIndex(str(folder)) as again:
        with pytest.raises(DamageError, match=r"acme\.sqlite.*`perdure index rebuild` builds"):
            near(again)
        again.delete_account_data(ACCOUNT)
        again.upsert(many(3))

        assert len(again.search_by_vector(QUERY, EVERYONE, 9)) == 3


# ---------------------------------------------------------------- damage


def test_the_file_of_another_account_is_refused(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.upsert([record("one")])
    index.close()
    file.rename(folder / "other.sqlite")
    filters = {"account_id": "other", "owner_space": "user:ana"}
    with SqliteIndex(str(folder)) as again:
        questions: tuple[Callable[[], object], ...] = (
            lambda: again.search_by_vector(EAST, filters, 9),
            lambda: again.search_by_text(["text"], filters, 9),
            lambda: again.cursor("other"),
            lambda: again.stamps("other"),
            lambda: again.owner_spaces("other"),
            lambda: again.check("other"),
            lambda: again.read("other", ["one"]),
            lambda: again.upsert([record("two", uri_of(account="other"))]),
        )
        for question in questions:
            with pytest.raises(DamageError, match="Fix: "):
                question()


def test_a_newer_schema_is_refused_and_left_alone(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.upsert([record("one")])
    index.close()
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version = {sql.VERSION + 1}")
    with SqliteIndex(str(folder)) as again, pytest.raises(StorageUnavailableError, match="newer"):
        near(again)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE texts SET payload = (SELECT payload FROM texts WHERE row = 2) WHERE row = 8",
        "UPDATE texts SET payload = x'7b' WHERE id = '=ana-7'",
        "UPDATE texts SET id = '=ana-x' WHERE id = '=ana-7'",
        "UPDATE texts SET valid_from = '2026-03-02T00:00:00Z' WHERE id = '=ana-7'",
        "UPDATE texts SET digest = x'00' WHERE id = '=ana-7'",
        "UPDATE vectors SET vector = zeroblob(32) WHERE row = 8",
        "DELETE FROM vectors WHERE row = 8",
        "UPDATE records SET below = below + 1 WHERE row = 8",
        "UPDATE records SET since = since + 1 WHERE row = 8",
        "UPDATE records SET category = owner_space WHERE row = 8",
        "UPDATE records SET level = 1 WHERE row = 8",
        "UPDATE names SET value = 'user:eve' WHERE value = 'user:ana'",
        "UPDATE names SET sum = sum + 1 WHERE value = 'user:ana'",
        "DELETE FROM records WHERE row = 8",
        "UPDATE stamps SET stamp = 'x' WHERE uri = (SELECT uri FROM records WHERE row = 8)",
        "DELETE FROM stamps WHERE uri = (SELECT uri FROM records WHERE row = 8)",
    ],
)
def test_a_check_names_what_is_not_as_its_stamp_says(
    index: SqliteIndex, file: Path, change: str
) -> None:
    index.upsert(many(30))
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute(change)

    with suppress(DamageError):  # if its texts can't be searched
        assert uri_of("n2") in index.check(ACCOUNT)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE texts SET text = 'coffee' WHERE id = '=ana-7'",
        "DELETE FROM texts WHERE id = '=ana-7'",
        "UPDATE changes SET cursor = cursor + 1",
        "UPDATE changes SET rows = rows + 1",
        "UPDATE changes SET gone = '[8]'",
        "DROP INDEX records_of",
        "PRAGMA user_version = 99",
        "DELETE FROM passages_docsize WHERE id = 8",
        "DELETE FROM passages_data WHERE id > 10",
        "UPDATE passages_config SET v = 5",
        "DELETE FROM changes",
    ],
)
def test_tables_that_can_not_be_searched_or_followed_are_damage(
    index: SqliteIndex, folder: Path, file: Path, change: str
) -> None:
    index.upsert(many(30))
    index.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute(change)

    with SqliteIndex(str(folder)) as again, pytest.raises(PerdureError, match="Fix: "):
        again.check(ACCOUNT)


def test_a_damaged_node_is_healed_by_replacing_it(index: SqliteIndex, file: Path) -> None:
    nodes = nodes_of(many(30))
    index.replace(ACCOUNT, nodes)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("UPDATE texts SET payload = x'7b' WHERE id = '=ana-7'")
    (damaged,) = index.check(ACCOUNT)
    index.upsert([record("more", uri_of("n2"), vector=QUERY)])
    assert index.check(ACCOUNT) == [damaged]
    index.replace(ACCOUNT, {damaged: nodes[damaged]})

    assert index.check(ACCOUNT) == []
    assert index.stamps(ACCOUNT) == {uri: stamp(records) for uri, records in nodes.items()}


def test_no_flipped_bit_gives_a_wrong_answer_after_a_check(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.replace(ACCOUNT, nodes_of(many(45)), cursor=7)
    index.replace(ACCOUNT, nodes_of(many(9, text="other tea")), cursor=8)
    index.upsert([record("note", uri_of("n99"), payload={"noted": "", "names": [*NAMES]})])
    index.delete(["ana-3"])
    expected = answers(index)
    index.close()
    whole = file.read_bytes()
    chance = random.Random(3)
    places = [*range(0, 100, 3), *chance.sample(range(len(whole)), 250)]
    noticed = [is_noticed(folder, file, flipped(whole, at, chance), expected) for at in places]

    assert sum(noticed) > len(places) // 5


def flipped(data: bytes, at: int, chance: random.Random) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def is_noticed(folder: Path, file: Path, data: bytes, expected: list[object]) -> bool:
    """Whether a check tells of damage; what it does not tell of must not matter."""
    for path in list(folder.iterdir()):
        path.unlink()
    file.write_bytes(data)
    try:
        with SqliteIndex(str(folder)) as index:
            if index.check(ACCOUNT):
                return True
            assert answers(index) == expected
    except PerdureError:
        return True
    return False


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_noticed(
    index: SqliteIndex, folder: Path, file: Path, share: float
) -> None:
    index.replace(ACCOUNT, nodes_of(many(45)), cursor=7)
    expected = answers(index)
    index.close()
    whole = file.read_bytes()

    assert is_noticed(folder, file, whole[: int(len(whole) * share)], expected)


def test_an_emptied_file_is_an_index_from_the_start(
    index: SqliteIndex, folder: Path, file: Path
) -> None:
    index.replace(ACCOUNT, nodes_of(many(45)), cursor=7)
    index.close()
    file.write_bytes(b"")
    with SqliteIndex(str(folder)) as again:
        assert (again.cursor(ACCOUNT), again.stamps(ACCOUNT)) == (0, {})
        assert again.search_by_vector(QUERY, EVERYONE, 9) == []


# ---------------------------------------------------------------- kill -9


def generation(step: int) -> dict[str, list[IndexRecord]]:
    """Return nodes that differ from turn to turn, also by how many records they have."""
    return {
        uri_of(f"k{node}"): [
            record(
                f"k{node}#{number}",
                uri_of(f"k{node}"),
                f"turn{step} " + "and more of it " * 20,
                vector=(1.0, step / 100, float(number)),
            )
            for number in range(1 + (step + node) % 4)
        ]
        for node in range(12)
    }


def write_for_ever(folder: Path) -> None:
    with SqliteIndex(str(folder)) as index:
        for step in count(index.cursor(ACCOUNT) + 1):
            index.replace(ACCOUNT, generation(step), cursor=step)


def test_a_killed_writer_leaves_the_old_or_the_new_and_nothing_half_done(folder: Path) -> None:
    chance = random.Random(1)
    with SqliteIndex(str(folder)) as index:
        index.replace(ACCOUNT, generation(0))
        for _ in range(15):
            before = index.cursor(ACCOUNT)
            writer = start(partial(write_for_ever, folder))
            while writer.is_alive() and index.cursor(ACCOUNT) == before:
                continue  # it has not come to its first write yet
            time.sleep(chance.random() * 0.03)
            writer.kill()
            writer.join()
            assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"

            step = index.cursor(ACCOUNT)
            assert step > before
            assert index.check(ACCOUNT) == []
            stamps = {uri: stamp(records) for uri, records in generation(step).items()}
            assert index.stamps(ACCOUNT) == stamps
            assert len(matching(index, f"turn{step}")) == len(near(index)) == 30


_WRITE_AND_CLOSE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("CREATE TABLE another (one)")
db.close()
"""
"""Closes a file as its last user, for all that SQLite knows, if nobody else has a lock."""


def test_a_duplicate_ends_no_lock_of_this_process(
    index: SqliteIndex, file: Path, tmp_path: Path
) -> None:
    """Who opens the file besides SQLite, and closes it, lets others take away its log."""
    index.upsert(many(3))
    index.duplicate(ACCOUNT, str(tmp_path / "other")).close()

    subprocess.run([sys.executable, "-c", _WRITE_AND_CLOSE, str(file)], check=True)

    assert file.with_name(f"{file.name}-wal").exists()
