"""Disks that take no more."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@contextmanager
def refusing(number: int = errno.EROFS) -> Iterator[None]:
    """Let everything be read, and nothing be written; a full disk opens what it has."""
    opened = os.open

    def to_read(path: str, flags: int, *rest: int, **more: int) -> int:
        if flags & _WRITING and not (number == errno.ENOSPC and _is_there(path, flags)):
            raise OSError(number, os.strerror(number), path)
        return opened(path, flags, *rest, **more)

    def no(path: object, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", to_read)
        for name in ("mkdir", "rename", "unlink"):
            patch.setattr(os, name, no)
        patch.setattr(Path, "touch", no)
        patch.setattr(os, "access", lambda *_: number == errno.ENOSPC)
        yield


def _is_there(path: str, flags: int) -> bool:
    return not flags & os.O_CREAT or Path(path).exists()
