"""Who makes the index of an account has the turn; whoever dies has it no more."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.faults import explain

SUFFIX = ".making"


@contextmanager
def turn(path: Path, *, wait: bool) -> Iterator[bool]:
    """Take the turn, and say whether it is ours; if told to, after whoever has it.

    The file is there while somebody has the turn, or died with it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _taken(path, wait=wait)
    except OSError as error:
        raise explain(error, str(path.parent), path.name) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # before it is let go: who waits sees that it is another file
        os.close(descriptor)


def clear(path: Path) -> None:
    """Remove what somebody left who died, unless another one has the turn by now."""
    if path.exists():
        with turn(path, wait=False):
            pass


def _taken(path: Path, *, wait: bool) -> int | None:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the file that we hold is still the one that others find."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))
