"""Closing a history leaves a table, so that the next process opens it quickly."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.artifacts import ArtifactStore, Hash, Literal
from perdure.artifacts import content_index as indexes
from perdure.artifacts.segment import Frame, segment_name
from perdure.artifacts.shared_log import LOCK
from perdure.errors import DamageError
from tests.support.artifacts.memory_disk import MemoryDisk

MANY = 20


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_SMALLEST_LEFT", MANY)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def put(store: ArtifactStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        store.put(Literal(b"%d" % number))


def tables(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.names() if name.startswith("table-")]


def taken_in(disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many commits a store takes in that is opened now."""
    applied: list[Frame] = []
    real = indexes.ContentIndex.apply

    def apply(index: indexes.ContentIndex, frame: Frame, algorithm: Hash) -> None:
        applied.append(frame)
        real(index, frame, algorithm)

    with monkeypatch.context() as patch:
        patch.setattr(indexes.ContentIndex, "apply", apply)
        ArtifactStore(disk)
    return len(applied)


def test_who_wrote_much_leaves_nothing_to_take_in(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ArtifactStore(disk) as store:
        put(store, 0, MANY + 1)
    assert len(tables(disk)) == 1
    assert taken_in(disk, monkeypatch) == 0


def test_who_wrote_little_writes_no_table(disk: MemoryDisk) -> None:
    with ArtifactStore(disk) as store:
        put(store, 0, MANY)
    assert not tables(disk)


def test_a_large_table_is_written_again_for_its_share_only(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "_LEFT_SHARE", 2)
    with ArtifactStore(disk) as store:
        put(store, 0, 4 * MANY)
    before = tables(disk)
    with ArtifactStore(disk) as store:
        put(store, 4 * MANY, 2 * MANY)
    assert tables(disk) == before
    with ArtifactStore(disk) as store:
        put(store, 6 * MANY, 1)
    assert tables(disk) != before


def test_who_only_reads_leaves_what_it_had_to_take_in(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(ArtifactStore(disk), 0, MANY + 1)  # and died
    assert taken_in(disk, monkeypatch) == MANY + 1
    ArtifactStore(disk).close()
    assert taken_in(disk, monkeypatch) == 0


def test_while_another_one_writes_no_table_is_left(disk: MemoryDisk) -> None:
    store = ArtifactStore(disk)
    put(store, 0, MANY + 1)
    with ThreadPoolExecutor(1) as another:
        held = another.submit(disk.lock, LOCK).result()
        assert held is not None
        store.close()
    assert not tables(disk)


def test_what_others_wrote_since_is_left_to_them(disk: MemoryDisk) -> None:
    store = ArtifactStore(disk)
    put(store, 0, MANY + 1)
    put(ArtifactStore(disk), MANY + 1, 1)
    store.close()
    assert not tables(disk)


def test_a_table_that_can_not_be_written_is_no_failure(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(disk)
    put(store, 0, MANY + 1)
    monkeypatch.setattr(disk, "rename", _refused)
    store.close()
    assert ArtifactStore(disk).current().position == MANY + 1


def _refused(*_: object) -> None:
    raise PermissionError


def test_of_a_log_that_ends_with_its_table_the_last_commit_is_read_alone(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ArtifactStore(disk) as store:
        put(store, 0, MANY + 1)
    store = ArtifactStore(disk)
    with monkeypatch.context() as patch:
        patch.setattr(store._shared_log.log, "start_of", _refused)
        (logged,) = store.log(after=MANY)
        assert logged.position == MANY + 1
    assert [logged.position for logged in store.log(after=MANY - 1)] == [MANY, MANY + 1]
    put(store, MANY + 1, 2)
    assert [logged.position for logged in store.log(after=MANY)] == [MANY + n for n in (1, 2, 3)]


def test_a_last_commit_that_was_damaged_is_refused_all_the_same(disk: MemoryDisk) -> None:
    with ArtifactStore(disk) as store:
        put(store, 0, MANY + 1)
    store = ArtifactStore(disk)
    last = store._shared_log.log.end.offset
    file = disk.open(segment_name(1))
    (place,) = [at for at in range(last) if file.read(at, 4) == b"PDfr"][-1:]
    file.write(place + 60, [b"\xff" * 8])
    with pytest.raises(DamageError):
        list(store.log(after=MANY))
