"""The Merkle tree of RFC 6962 over a log: its root, and inclusion proofs.

A proof is verified without the log, against a size and a root that are trusted together, as in a
signed checkpoint. A root alone does not fix the size: the same path can lead to it in trees of
other sizes.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from struct import Struct

from perdure.errors import ProofError

HASH_BYTES = 32
LARGEST_SIZE = 2**63 - 1
EMPTY_ROOT = sha256(b"").digest()

_LEAF = b"\x00"
_NODE = b"\x01"
_TIME = Struct("<Q")
_TIMES = range(1 << 64)


# ---------------------------------------------------------------- hashes
def leaf(time: int, entry: bytes) -> bytes:
    """Return the leaf of a log entry: its time in milliseconds, and its encoding.

    The entry at position n is the leaf at index n - 1.
    """
    if type(time) is not int or time not in _TIMES:
        raise ProofError("a time must be 0 to 2**64 - 1 milliseconds")
    return _TIME.pack(time) + entry


def leaf_hash(entry: bytes) -> bytes:
    return sha256(_LEAF + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def leaf_hashes(entries: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the leaf hash of each entry; faster than one call for each."""
    begin = sha256(_LEAF).copy  # a copy is cheaper than a new hash over joined bytes
    for entry in entries:
        hasher = begin()
        hasher.update(entry)
        yield hasher.digest()


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root of the tree over these leaf hashes; memory does not grow with them."""
    roots: list[bytes] = []  # of the perfect subtrees, the largest first
    for size, each in enumerate(leaves):
        if type(each) is not bytes or len(each) != HASH_BYTES:
            raise ProofError(f"leaves must be hashes of {HASH_BYTES} bytes")
        found = each
        for _ in range((size ^ size + 1).bit_length() - 1):
            found = node_hash(roots.pop(), found)
        roots.append(found)
    while len(roots) > 1:
        found = roots.pop()
        roots[-1] = node_hash(roots[-1], found)
    return roots[0] if roots else EMPTY_ROOT


# ---------------------------------------------------------------- proofs
def prove_inclusion(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """Return the path from the leaf `index` to the root over all these leaf hashes."""
    _check_index(index, len(leaves))
    _check_hashes("leaves", leaves)
    level, path = list(leaves), []
    while len(level) > 1:
        if index ^ 1 < len(level):
            path.append(level[index ^ 1])
        # An odd last one has no sibling, and moves up one level unchanged.
        last = level[-1:] if len(level) & 1 else []
        level = [*map(node_hash, level[::2], level[1::2]), *last]
        index >>= 1
    return tuple(path)


def verify_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Raise `ProofError` unless this leaf hash is at `index` in the tree of this size and root."""
    _check_index(index, size)
    _check_hashes("the leaf and the root", (leaf, root))
    sides = _left_siblings(index, size)
    _check_path(path, len(sides))
    found = leaf
    for is_left, sibling in zip(sides, path, strict=True):
        found = node_hash(sibling, found) if is_left else node_hash(found, sibling)
    if found != root:
        raise ProofError(
            f"the path does not prove leaf {index} in the tree of {size} leaves: it leads to the "
            f"root {found.hex()}, not {root.hex()}. Fix: request the proof again, for these sizes."
        )


def _left_siblings(index: int, size: int) -> list[bool]:
    """Return for each sibling on the path from a leaf to the root whether it is on the left."""
    inner = (index ^ (size - 1)).bit_length()
    sides = [bool(index >> level & 1) for level in range(inner)]
    # Above that is the right edge of the tree, where levels without a sibling are skipped.
    return sides + [True] * (index >> inner).bit_count()


# ---------------------------------------------------------------- checks
def check_size(size: int, smallest: int = 1) -> None:
    if type(size) is not int or not smallest <= size <= LARGEST_SIZE:
        raise ProofError(f"the size of the tree must be {smallest} to {LARGEST_SIZE}")


def _check_index(index: int, size: int) -> None:
    check_size(size)
    if type(index) is not int or not 0 <= index < size:
        raise ProofError(f"the index in a tree of {size} leaves must be 0 to {size - 1}")


def _check_hashes(what: str, hashes: Sequence[bytes]) -> None:
    # Over sets of types and lengths, not in a loop: there may be a million leaves.
    if not {*map(type, hashes)} <= {bytes} or not {*map(len, hashes)} <= {HASH_BYTES}:
        raise ProofError(f"{what} must be hashes of {HASH_BYTES} bytes")


def _check_path(path: Sequence[bytes], length: int) -> None:
    if not isinstance(path, Sequence):
        raise ProofError("the path is not a sequence of hashes")
    if len(path) != length:
        raise ProofError(f"the path has {len(path)} hashes, but must have {length}")
    _check_hashes("the path", path)
