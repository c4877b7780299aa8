"""The Merkle tree of RFC 6962 over a log: its root, and proofs that are checked without the log.

A proof holds for a pair of size and root that is trusted together, as a signed checkpoint gives
it. The root alone does not fix the size: the same path can lead to it in trees of other sizes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from itertools import islice
from struct import Struct

from perdure.errors import ProofError

HASH_BYTES = 32
LARGEST_SIZE = 2**63 - 1
EMPTY_ROOT = sha256(b"").digest()

_LEAF = b"\x00"
_NODE = b"\x01"
_LEVELS = LARGEST_SIZE.bit_length()
_CHUNK = 4096
_TIME = Struct("<Q")
_TIMES = range(1 << 64)


@dataclass(frozen=True, slots=True)
class Node:
    """The perfect subtree over the `2**level` leaves from `index * 2**level` on."""

    level: int
    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.level < _LEVELS or not 0 <= self.index < LARGEST_SIZE >> self.level:
            raise ProofError("no tree is so large that it has a subtree of this level and index")

    @property
    def stop(self) -> int:
        """The first leaf after it, which is also the smallest size of a tree that has it."""
        return (self.index + 1) << self.level


Reader = Callable[[Node], bytes]
"""Gives the hash of a perfect subtree."""


# ---------------------------------------------------------------- hashes
def leaf(time: int, entry: bytes) -> bytes:
    """Return what a log entry is in its tree: its time, in ms, and how the log writes it.

    The entry at a position is the leaf of the index before it: the first is 0.
    """
    if type(time) is not int or time not in _TIMES:
        raise ProofError("a time is 0 to 2**64 - 1 milliseconds, not this one")
    return _TIME.pack(time) + entry


def leaf_hash(entry: bytes) -> bytes:
    return sha256(_LEAF + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def leaf_hashes(entries: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the leaf hash of each entry; faster than one call for each."""
    begin = sha256(_LEAF).copy  # a copy is cheaper than a new hash over a joined text
    for entry in entries:
        hasher = begin()
        hasher.update(entry)
        yield hasher.digest()


def parents(hashes: Iterable[bytes]) -> list[bytes]:
    """Return the node hash of each two neighbours; an odd last one has no parent yet."""
    begin = sha256(_NODE).copy
    found = []
    each = iter(hashes)
    for left, right in zip(each, each, strict=False):
        hasher = begin()
        hasher.update(left)
        hasher.update(right)
        found.append(hasher.digest())
    return found


def _joined(roots: Sequence[bytes]) -> bytes:
    """Return the root over neighbouring perfect subtrees, the largest first."""
    whole = roots[-1]
    for root in reversed(roots[:-1]):
        whole = node_hash(root, whole)
    return whole


# ---------------------------------------------------------------- a tree that grows
@dataclass(frozen=True, slots=True)
class Frontier:
    """All that a tree needs to grow: the roots of its perfect subtrees, the largest first."""

    size: int = 0
    roots: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        check_size(self.size, smallest=0)
        _check_hashes("the roots of a frontier", self.roots)
        if len(self.roots) != self.size.bit_count():
            raise ProofError(f"{len(self.roots)} roots can't make a tree of {self.size} leaves")

    def extend(self, leaves: Iterable[bytes]) -> "Frontier":
        """Return the frontier with these leaf hashes added; memory does not grow with them."""
        frontier, rest = self, iter(leaves)
        while chunk := list(islice(rest, _CHUNK)):
            frontier = frontier._with(chunk)
        return frontier

    def root(self) -> bytes:
        return _joined(self.roots) if self.roots else EMPTY_ROOT

    def _with(self, leaves: list[bytes]) -> "Frontier":
        """Add as a binary counter does, but a whole level at a time."""
        _check_hashes("leaves", leaves)
        grown = self.size + len(leaves)
        above, below, carrying = list(self.roots), [], self.size
        while leaves:
            if carrying & 1:
                leaves.insert(0, above.pop())
            if len(leaves) & 1:
                below.append(leaves.pop())
            leaves = parents(leaves)
            carrying >>= 1
        return Frontier(grown, (*above, *reversed(below)))


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root of the tree over these leaf hashes."""
    return Frontier().extend(leaves).root()


def reader_over(leaves: Iterable[bytes]) -> Reader:
    """Return a reader of the tree over these leaf hashes, all of it in memory."""
    levels = [list(leaves)]
    _check_hashes("leaves", levels[0])
    while len(levels[-1]) > 1:
        levels.append(parents(levels[-1]))

    def read(node: Node) -> bytes:
        if node.stop > len(levels[0]):
            raise ProofError(f"a tree of {len(levels[0])} leaves has no {node}")
        return levels[node.level][node.index]

    return read


# ---------------------------------------------------------------- proofs
def prove_inclusion(reader: Reader, index: int, size: int) -> tuple[bytes, ...]:
    """Return the path from the leaf `index` to the root of the first `size` leaves."""
    return _read_path(reader, _beside(index, size))


def verify_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Return only if this leaf hash stands at `index` in the tree of this size and root."""
    _check_index(index, size)
    _check_hashes("the leaf and the root", (leaf, root))
    sides = _sides(index, size)
    _check_path(path, len(sides))
    found = leaf
    for side, sibling in zip(sides, path, strict=True):
        found = _above(found, side, sibling)
    _check_root(found, root, f"leaf {index} in the tree of {size} leaves")


def _read_path(reader: Reader, subtrees: Iterable[range]) -> tuple[bytes, ...]:
    return tuple(_read(reader, leaves) for leaves in subtrees)


def _read(reader: Reader, leaves: range) -> bytes:
    roots = [reader(node) for node in _perfect(leaves)]
    _check_hashes("what the reader gave", roots)
    return _joined(roots)


def _beside(index: int, size: int) -> list[range]:
    """Return the leaves of each subtree beside the way from a leaf up to the root."""
    _check_index(index, size)
    start, stop, siblings = 0, size, []
    while stop - start > 1:
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        if index < middle:
            siblings.append(range(middle, stop))
            stop = middle
        else:
            siblings.append(range(start, middle))
            start = middle
    return siblings[::-1]


def _perfect(leaves: range) -> list[Node]:
    """Return the perfect subtrees of a subtree, the largest first."""
    nodes, start = [], leaves.start
    while start < leaves.stop:
        level = (leaves.stop - start).bit_length() - 1
        nodes.append(Node(level, start >> level))
        start += 1 << level
    return nodes


class _Side(Enum):
    LEFT = "left"
    RIGHT = "right"


def _sides(index: int, size: int) -> list[_Side]:
    """Return on which side each sibling stands, on the way from a leaf up to the root."""
    inner = (index ^ (size - 1)).bit_length()
    sides = [_Side.LEFT if index >> level & 1 else _Side.RIGHT for level in range(inner)]
    # Higher up it is the right edge of the tree, where levels without a sibling are skipped.
    return sides + [_Side.LEFT] * (index >> inner).bit_count()


def _above(found: bytes, side: _Side, sibling: bytes) -> bytes:
    return node_hash(sibling, found) if side is _Side.LEFT else node_hash(found, sibling)


# ---------------------------------------------------------------- what is refused
def check_size(size: int, smallest: int = 1) -> None:
    if type(size) is not int or not smallest <= size <= LARGEST_SIZE:
        raise ProofError(f"the size of a tree is here {smallest} to {LARGEST_SIZE}, not this one")


def _check_index(index: int, size: int) -> None:
    check_size(size)
    if type(index) is not int or not 0 <= index < size:
        raise ProofError(f"a tree of {size} leaves has the indexes 0 to {size - 1}, not this one")


def _check_hashes(what: str, hashes: Sequence[bytes]) -> None:
    # Over types and lengths, not in a loop: a million leaves come through here.
    if not {*map(type, hashes)} <= {bytes} or not {*map(len, hashes)} <= {HASH_BYTES}:
        raise ProofError(f"{what} must be hashes of {HASH_BYTES} bytes")


def _check_path(path: Sequence[bytes], length: int) -> None:
    if not isinstance(path, Sequence):
        raise ProofError("the path is no sequence of hashes")
    if len(path) != length:
        raise ProofError(f"the path has {len(path)} hashes where there must be {length}")
    _check_hashes("the path", path)


def _check_root(found: bytes, root: bytes, what: str) -> None:
    if found != root:
        raise ProofError(
            f"the path does not prove {what}: it leads to the root {found.hex()}, not "
            f"{root.hex()}. Fix: ask for the proof again, for these sizes."
        )
