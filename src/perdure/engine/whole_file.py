"""A file that is there wholly, or not at all."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from perdure.errors import explain

_MINE = 0o600


def write_whole(
    path: Path,
    content: bytes,
    *,
    durable: bool = True,
    mode: int | None = None,
    place: Callable[[Path, Path], object] = Path.replace,
) -> None:
    """Write a file that only its owner reads; it is there wholly, or as it was.

    `mode` lets others read it, too; `place` puts the finished file in its place.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, flags, _MINE), "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        place(unfinished, path)
        if durable:
            _sync(path.parent)
            with suppress(PermissionError):  # a folder that is not ours, as /home may be
                _sync(path.parent.parent)
    except OSError as error:
        raise explain(error, str(path.parent), path.name) from error
    finally:
        with suppress(OSError):  # as nearly always, it has its name by now
            unfinished.unlink()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
