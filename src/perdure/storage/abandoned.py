"""Locks that somebody holds and is not using any more. The next writer takes them over."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from perdure.storage.holder import Holder
from perdure.storage.mutex import LockTiming


def abandoned_locks(locks: str, timing: LockTiming | None = None) -> Iterator[str]:
    """Yield who holds a lock below a folder, and died or is silent for too long."""
    stale_after = (timing or LockTiming()).stale_after
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in sorted(os.listdir(locks)):
            yield from _abandoned(os.path.join(locks, folder, "lock"), stale_after)


def _abandoned(lock: str, stale_after: float) -> Iterator[str]:
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(lock):
            if not name.startswith(("held.", "taken.")):
                continue
            with suppress(ValueError, OverflowError):  # no baton
                holder = Holder.parse(name)
                silence = time.time() - os.stat(os.path.join(lock, name)).st_mtime
                if holder.died:
                    yield f"{holder.described()}, which is gone"
                elif abs(silence) > stale_after:
                    yield f"{holder.described()}, silent for {abs(silence):.0f} s"
