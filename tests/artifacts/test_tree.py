"""The tree of a log, computed on demand; `python tests/artifacts/test_tree.py` prints its time."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perdure.artifacts import ArtifactStore, Literal, NewBinding
from perdure.artifacts.entry import encode
from perdure.artifacts.merkle import (
    EMPTY_ROOT,
    leaf,
    leaf_hash,
    prove_inclusion,
    root_of,
    verify_inclusion,
)
from perdure.errors import DamageError, FuturePositionError, ProofError
from perdure.proofs.proof import log_leaves, log_root


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    """Return a store whose log has entries of several kinds, in commits of one and of many."""
    store = ArtifactStore.open(tmp_path)
    store.put_many([Literal(b"%d" % number) for number in range(300)])
    store.record([NewBinding("a", b"1"), NewBinding("b", b"2"), NewBinding("c", b"3")])
    cid, _ = store.put(Literal(b"hidden"))
    store.tombstone(cid, "why not")
    store.snapshot()
    store.lift(cid)
    store.record([NewBinding("a", None), NewBinding("b", b"4")])
    return store


def leaves_of(store: ArtifactStore) -> list[bytes]:
    return [leaf_hash(leaf(each.time, encode(each.entry))) for each in store.log()]


class TestLeaf:
    def test_it_is_the_time_in_eight_bytes_and_then_the_entry(self) -> None:
        assert leaf(0x0102, b"entry") == b"\x02\x01\0\0\0\0\0\0entry"

    @pytest.mark.parametrize("wrong", [-1, 2**64, True, 1.0, None, "1"])
    def test_a_time_that_can_not_be_is_refused(self, wrong: int) -> None:
        with pytest.raises(ProofError, match="time"):
            leaf(wrong, b"")


def test_an_empty_log_has_the_empty_root(tmp_path: Path) -> None:
    assert log_root(ArtifactStore.open(tmp_path), 0) == EMPTY_ROOT


def test_it_has_the_root_of_every_position_with_and_without_a_table(
    store: ArtifactStore, tmp_path: Path
) -> None:
    leaves = leaves_of(store)
    assert len(leaves) > 300
    expected = [root_of(leaves[:size]) for size in range(len(leaves) + 1)]

    assert [log_root(store, size) for size in range(len(leaves) + 1)] == expected
    with ArtifactStore.open(tmp_path) as again:
        assert log_root(again, len(leaves)) == expected[-1]


def test_a_root_stays_when_the_log_grows(store: ArtifactStore) -> None:
    size = store.current().position
    before = log_root(store, size)
    store.put(Literal(b"one more"))

    assert log_root(store, size) == before != log_root(store, size + 1)


def test_its_proofs_hold(store: ArtifactStore) -> None:
    leaves = leaves_of(store)
    size = len(leaves)
    found, root = list(log_leaves(store, size)), log_root(store, size)
    for index in (0, 1, 255, 256, size - 1):
        verify_inclusion(leaves[index], index, size, prove_inclusion(found, index), root)


def test_the_leaves_of_an_old_state_know_nothing_of_later_ones(store: ArtifactStore) -> None:
    assert list(log_leaves(store, 10)) == leaves_of(store)[:10]


def test_asking_for_more_than_the_log_has_is_refused(store: ArtifactStore) -> None:
    size = store.current().position
    with pytest.raises(FuturePositionError, match="fewer than"):
        log_root(store, size + 1)
    with pytest.raises(ProofError):
        log_root(store, -1)


def test_damage_of_the_log_is_passed_on(store: ArtifactStore, tmp_path: Path) -> None:
    size = store.current().position
    store.close()
    segment = tmp_path / "segment-00000001"
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(bytes(data))

    with pytest.raises(DamageError), ArtifactStore.open(tmp_path) as damaged:
        log_root(damaged, size)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, ArtifactStore.open(folder) as large:
        for start in range(0, 1_000_000, 10_000):
            large.put_many([Literal(b"%d" % n) for n in range(start, start + 10_000)])
        begin = time.process_time()
        log_root(large, 1_000_000)
        print(f"root of 10^6 entries: {time.process_time() - begin:.2f} s")  # noqa: T201
