"""Many files and directories made durable together.

A file system commits its journal for each sync that comes alone. Those that come at once share a
commit, so they are asked for from several threads.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Self

MOST_OPEN = 64
"""Descriptors that a batch holds of a kind; a process may have no more than 256 on some systems."""

_THREADS = 8
_WORTH_THREADS = 100


class Syncing:
    """A way to sync `total` descriptors, with threads if they are many; a context ends those."""

    def __init__(self, total: int) -> None:
        self._threads = ThreadPoolExecutor(_THREADS) if total >= _WORTH_THREADS else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def sync(self, descriptors: Sequence[int], sync: Callable[[int], None]) -> None:
        """Return when `sync` has made all of them durable; raise if it could not."""
        if self._threads is None:
            _sync_each(descriptors, sync)
            return
        shares = [descriptors[start::_THREADS] for start in range(_THREADS)]
        at_work = []
        left: list[int] = []
        for share in shares:
            try:
                at_work.append(self._threads.submit(_sync_each, share, sync))
            except RuntimeError:  # no more threads can be had, as when the interpreter ends
                left.extend(share)
        try:
            _sync_each(left, sync)
        finally:
            wait(at_work)  # all of them: the caller closes what they sync
        for done in at_work:
            done.result()


def _sync_each(descriptors: Sequence[int], sync: Callable[[int], None]) -> None:
    for descriptor in descriptors:
        sync(descriptor)
