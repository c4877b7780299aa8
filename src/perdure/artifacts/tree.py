"""The Merkle tree of a store's log, computed on demand; nothing of it is kept."""

from collections.abc import Iterator

from perdure.artifacts.merkle import Reader, check_size, leaf, leaf_hashes, reader_over, root_of
from perdure.artifacts.store import ArtifactStore


def log_root(store: ArtifactStore, size: int) -> bytes:
    """Return the root of the first `size` entries.

    `FuturePositionError` if the log is shorter.
    """
    return root_of(_leaves(store, size))


def log_reader(store: ArtifactStore, size: int) -> Reader:
    """Return a reader of the tree of the first `size` entries, which holds it in memory.

    `FuturePositionError` if the log is shorter.
    """
    return reader_over(_leaves(store, size))


def _leaves(store: ArtifactStore, size: int) -> Iterator[bytes]:
    check_size(size, smallest=0)
    for time, records in store.records(size):
        yield from leaf_hashes(map(leaf(time, b"").__add__, records))
