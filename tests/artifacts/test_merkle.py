from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts.merkle import (
    EMPTY_ROOT,
    LARGEST_SIZE,
    leaf_hash,
    leaf_hashes,
    node_hash,
    prove_inclusion,
    root_of,
    verify_inclusion,
)
from perdure.errors import ProofError
from perdure.testing.suite import examples

Message = tuple[str, bytes]
"""Where a hash of a path stands, beside the way up, and the hash."""


class Naive:
    """The definitions of RFC 6962, section 2.1, word for word, over D[start:stop]."""

    def __init__(self, entries: Sequence[bytes]) -> None:
        self.entries = entries
        self.root = cache(self._root)

    def _root(self, start: int, stop: int) -> bytes:
        if start == stop:
            return sha256().digest()
        if stop - start == 1:
            return sha256(b"\x00" + self.entries[start]).digest()
        middle = start + split(stop - start)
        return sha256(b"\x01" + self.root(start, middle) + self.root(middle, stop)).digest()

    def path(self, m: int, start: int, stop: int) -> list[Message]:
        n = stop - start
        if n == 1:
            return []
        middle = start + split(n)
        if m < split(n):
            return [*self.path(m, start, middle), ("right", self.root(middle, stop))]
        return [*self.path(m - split(n), middle, stop), ("left", self.root(start, middle))]


def split(n: int) -> int:
    """Return the largest power of two that is smaller than `n`."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def hashes(turns: list[Message]) -> tuple[bytes, ...]:
    return tuple(found for _, found in turns)


def shape(turns: list[Message]) -> list[str]:
    return [side for side, _ in turns]


NO_HASHES: tuple[Any, ...] = (
    *(b"", bytes(31), bytes(33), bytes(64), bytearray(32), memoryview(bytes(32))),
    *("a" * 32, "a" * 64, None, 0, [0] * 32),
)
NO_SIZES: tuple[Any, ...] = (
    *(0, -1, LARGEST_SIZE + 1, 2**64, 10**5000, -(10**5000), True, 1.0, "1", None, b"1"),
)
MOST = 131
ENTRIES = [b"entry %d" % number for number in range(MOST)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
NAIVE = Naive(ENTRIES)
SIZES = range(1, MOST + 1)


def root_at(size: int) -> bytes:
    return NAIVE.root(0, size)


def every_leaf(sizes: range = SIZES) -> Iterator[tuple[int, int]]:
    return ((index, size) for size in sizes for index in range(size))


@st.composite
def some_leaf(draw: st.DrawFn) -> tuple[int, int]:
    size = draw(st.integers(1, MOST))
    return draw(st.integers(0, size - 1)), size


def flipped(value: bytes, bit: int) -> bytes:
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def replaced(values: list[bytes], at: int, value: bytes) -> list[bytes]:
    return [*values[:at], value, *values[at + 1 :]]


def is_refused(verify: Callable[..., None], *arguments: object) -> bool:
    try:
        verify(*arguments)
    except ProofError:
        return True
    return False


class TestPublishedVectors:
    """Those of Certificate Transparency: testonly of github.com/transparency-dev/merkle."""

    ENTRIES = (
        *(b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43"),
        *(bytes(range(0x50, 0x58)), bytes(range(0x60, 0x70))),
    )
    ROOTS = (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
    H1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
    H4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
    H23 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    H45 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
    H67 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
    H4567 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"

    def test_the_roots_are_the_published_ones(self) -> None:
        for size, root in enumerate(self.ROOTS):
            entries = self.ENTRIES[:size]
            assert root_of(leaf_hashes(entries)).hex() == root
            assert Naive(entries).root(0, size).hex() == root

    @pytest.mark.parametrize(
        ("index", "size", "path"),
        [
            (0, 1, []),
            (0, 2, [H1]),
            (1, 2, [ROOTS[1]]),
            (2, 3, [ROOTS[2]]),
            (1, 5, [ROOTS[1], H23, H4]),
            (0, 8, [H1, H23, H4567]),
            (5, 8, [H4, H67, ROOTS[4]]),
        ],
    )
    def test_the_inclusion_proofs_are_the_published_ones(
        self, index: int, size: int, path: list[str]
    ) -> None:
        found = prove_inclusion(list(leaf_hashes(self.ENTRIES))[:size], index)

        assert [part.hex() for part in found] == path
        root = bytes.fromhex(self.ROOTS[size])
        verify_inclusion(leaf_hash(self.ENTRIES[index]), index, size, found, root)


class TestHashes:
    def test_a_leaf_can_never_pass_for_a_node(self) -> None:
        left, right = LEAVES[:2]

        assert leaf_hash(left + right) == sha256(b"\x00" + left + right).digest()
        assert node_hash(left, right) == sha256(b"\x01" + left + right).digest()

    def test_many_leaves_are_hashed_as_one_by_one(self) -> None:
        assert list(leaf_hashes(ENTRIES)) == LEAVES


class TestRoot:
    def test_the_root_is_the_rfcs_at_every_size(self) -> None:
        assert root_of([]) == EMPTY_ROOT == root_at(0)
        for size in SIZES:
            assert root_of(LEAVES[:size]) == root_at(size)

    def test_it_is_the_same_however_its_leaves_came(self) -> None:
        leaves = list(leaf_hashes(number.to_bytes(4) for number in range(12_289)))

        assert root_of(leaves) == root_of(iter(leaves)) == reference_root(leaves)

    def test_its_leaves_are_left_alone(self) -> None:
        leaves = LEAVES[:7]
        root_of(leaves)
        prove_inclusion(leaves, 3)

        assert leaves == LEAVES[:7]

    def test_what_is_no_hash_is_refused(self) -> None:
        for wrong in NO_HASHES:
            with pytest.raises(ProofError, match="32 bytes"):
                root_of([*LEAVES, wrong])
            with pytest.raises(ProofError, match="32 bytes"):
                prove_inclusion([*LEAVES, wrong], 0)


def reference_root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    middle = split(len(leaves))
    joined = reference_root(leaves[:middle]) + reference_root(leaves[middle:])
    return sha256(b"\x01" + joined).digest()


class TestInclusion:
    def test_the_path_is_the_rfcs_for_every_leaf(self) -> None:
        for index, size in every_leaf():
            path = prove_inclusion(LEAVES[:size], index)
            assert path == hashes(NAIVE.path(index, 0, size))
            verify_inclusion(LEAVES[index], index, size, path, root_at(size))

    def test_no_path_verifies_another_leaf_or_another_index(self) -> None:
        for index, size in every_leaf(range(1, 34)):
            path, root = prove_inclusion(LEAVES[:size], index), root_at(size)
            for other in range(size):
                if other != index:
                    assert is_refused(verify_inclusion, LEAVES[index], other, size, path, root)
                    assert is_refused(verify_inclusion, LEAVES[other], index, size, path, root)
                    assert is_refused(verify_inclusion, LEAVES[other], other, size, path, root)

    def test_no_path_verifies_at_another_size_of_the_log(self) -> None:
        for index, size in every_leaf(range(1, 34)):
            path = prove_inclusion(LEAVES[:size], index)
            for other in range(34):
                if other != size:
                    root = root_at(other)
                    assert is_refused(verify_inclusion, LEAVES[index], index, other, path, root)

    def test_a_root_stands_for_another_size_only_where_the_path_turns_alike(self) -> None:
        """Why a root is trusted with its size only: the path alone can't tell these apart."""
        for index, size in every_leaf(range(1, 34)):
            turns, root = NAIVE.path(index, 0, size), root_at(size)
            for other in range(index + 1, 66):
                alike = shape(turns) == shape(NAIVE.path(index, 0, other))
                arguments = (LEAVES[index], index, other, hashes(turns), root)
                assert is_refused(verify_inclusion, *arguments) != alike

    def test_a_missing_or_extra_hash_is_refused(self) -> None:
        for index, size in every_leaf(range(1, 34)):
            path, root = list(prove_inclusion(LEAVES[:size], index)), root_at(size)
            for at in range(len(path) + 1):
                longer = [*path[:at], LEAVES[0], *path[at:]]
                with pytest.raises(ProofError, match=f"{len(path) + 1} hashes"):
                    verify_inclusion(LEAVES[index], index, size, longer, root)
            for at in range(len(path)):
                with pytest.raises(ProofError, match=f"must have {len(path)}"):
                    verify_inclusion(LEAVES[index], index, size, path[:at] + path[at + 1 :], root)

    def test_a_node_does_not_pass_for_a_leaf(self) -> None:
        path, root = prove_inclusion(LEAVES[:8], 5), root_at(8)

        assert is_refused(verify_inclusion, NAIVE.root(4, 6), 5, 8, path[1:], root)
        assert is_refused(verify_inclusion, NAIVE.root(4, 6), 2, 4, path[1:], root_at(4))

    @settings(deadline=None)
    @given(some_leaf(), st.data())
    def test_every_flipped_bit_of_a_hash_is_refused(
        self, leaf: tuple[int, int], data: st.DataObject
    ) -> None:
        index, size = leaf
        good = [LEAVES[index], *prove_inclusion(LEAVES[:size], index), root_at(size)]
        at, bit = data.draw(st.integers(0, len(good) - 1)), data.draw(st.integers(0, 255))
        first, *path, root = replaced(good, at, flipped(good[at], bit))

        assert is_refused(verify_inclusion, first, index, size, path, root)

    @settings(deadline=None)
    @given(some_leaf(), st.integers(0, 63))
    def test_every_flipped_bit_of_the_index_is_refused(
        self, leaf: tuple[int, int], bit: int
    ) -> None:
        index, size = leaf
        path = prove_inclusion(LEAVES[:size], index)

        assert is_refused(
            verify_inclusion, LEAVES[index], index ^ 1 << bit, size, path, root_at(size)
        )

    @settings(deadline=None)
    @given(some_leaf(), st.integers(0, 63))
    def test_a_flipped_bit_of_the_size_is_refused_unless_the_path_turns_alike(
        self, leaf: tuple[int, int], bit: int
    ) -> None:
        index, size = leaf
        other = size ^ 1 << bit
        turns = NAIVE.path(index, 0, size)
        alike = shape(turns) == far_shape(index, other)

        arguments = (LEAVES[index], index, other, hashes(turns), root_at(size))
        assert is_refused(verify_inclusion, *arguments) != alike

    def test_what_is_no_size_is_refused(self) -> None:
        for size in NO_SIZES:
            with pytest.raises(ProofError, match="size"):
                verify_inclusion(LEAVES[0], 0, size, (), LEAVES[0])
        with pytest.raises(ProofError, match="size"):
            prove_inclusion([], 0)

    def test_what_is_no_index_is_refused(self) -> None:
        path = prove_inclusion(LEAVES[:4], 1)
        for index in (4, 5, *NO_SIZES[1:]):
            with pytest.raises(ProofError, match="0 to 3"):
                verify_inclusion(LEAVES[1], index, 4, path, root_at(4))
            with pytest.raises(ProofError, match="0 to 3"):
                prove_inclusion(LEAVES[:4], index)

    def test_what_is_no_hash_is_refused(self) -> None:
        first, second = prove_inclusion(LEAVES[:4], 1)
        for wrong in NO_HASHES:
            good = [LEAVES[1], first, second, root_at(4)]
            for at in range(4):
                leaf, *path, root = replaced(good, at, wrong)
                with pytest.raises(ProofError, match="32 bytes"):
                    verify_inclusion(leaf, 1, 4, path, root)

    @pytest.mark.parametrize("path", [None, 2, {1: 2}, "ab", b"cd", (b"a", b"b"), object()])
    def test_what_is_no_path_is_refused(self, path: list[bytes]) -> None:
        with pytest.raises(ProofError):
            verify_inclusion(LEAVES[1], 1, 4, path, root_at(4))

    def test_a_refusal_says_what_was_found(self) -> None:
        with pytest.raises(ProofError, match=rf"leaf 1 .* 4 leaves.*not {root_at(5).hex()}.*Fix: "):
            verify_inclusion(LEAVES[1], 1, 4, prove_inclusion(LEAVES[:4], 1), root_at(5))


def far_shape(index: int, size: int) -> list[str] | None:
    """Return the shape of a path in a tree that may be too large, or too small, to be made."""
    if not index < size <= LARGEST_SIZE:
        return None
    turns, start, stop = [], 0, size
    while stop - start > 1:
        middle = start + split(stop - start)
        turns.append("right" if index < middle else "left")
        start, stop = (start, middle) if index < middle else (middle, stop)
    return turns[::-1]


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 9)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | st.sampled_from([*LEAVES[:4], *(root_at(size) for size in range(5))])
)


@settings(deadline=None, max_examples=examples(300))
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, st.lists(ANYTHING, max_size=3) | ANYTHING)
def test_whatever_comes_in_is_proved_or_refused_with_our_error(
    first: object, second: object, third: object, fourth: object, path: object
) -> None:
    is_refused(verify_inclusion, first, second, third, path, fourth)
