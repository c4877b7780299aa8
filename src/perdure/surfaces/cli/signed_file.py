"""Files that a command writes or reads; `-` is stdout or stdin."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    FileInTheWayError,
    PerdureError,
    ProofError,
)

STANDARD = "-"

_MINE = 0o600


@contextmanager
def new_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Yield a file that gets its name when it is whole; only the user may read it.

    `FileInTheWayError` if there is something of this name already, unless `force`.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not force and os.path.lexists(path):
        raise _in_the_way(path)
    folder, name = os.path.split(path)
    unfinished = Path(folder, f".{name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with _named(path, reading=False):
            with os.fdopen(os.open(unfinished, flags, _MINE), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(unfinished, path, force=force)
    finally:
        unfinished.unlink(missing_ok=True)


def _name(unfinished: Path, path: str, *, force: bool) -> None:
    if force:
        unfinished.replace(path)
        return
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise _in_the_way(path) from None
    except OSError:  # this disk has no links, so a quicker writer can't be noticed
        if os.path.lexists(path):
            raise _in_the_way(path) from None
        unfinished.replace(path)


def read_signed_file(path: str, what: str, limit: int) -> str:
    """Return the text of a proof or a receipt; of a longer file, a little more than `limit`."""
    if path == STANDARD:
        data = sys.stdin.buffer.read(limit + 1)
    else:
        with _named(path, reading=True), Path(path).open("rb") as file:
            data = file.read(limit + 1)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProofError(f"a {what} is JSON, and this is not. Fix: copy it whole.") from error


@contextmanager
def _named(path: str, *, reading: bool) -> Iterator[None]:
    """Let an error of the system name the file that the user named."""
    folder, name = str(Path(path).parent), Path(path).name
    try:
        yield
    except PerdureError:
        raise
    except FileNotFoundError as error:
        missing = path if reading else folder
        raise AbsentError(f"{missing!a} is not there. Fix: check its name, or make it.") from error
    except OSError as error:
        if reading and isinstance(error, PermissionError):
            raise AccessRefusedError(
                f"{name!a} in {folder!a}: it may not be read. Fix: make the folder and its files "
                "readable for this user."
            ) from error
        error.filename, error.filename2 = path, None
        raise


def _in_the_way(path: str) -> FileInTheWayError:
    return FileInTheWayError(
        f"{path!a} is there already, and was left as it is. Fix: name another file, or add --force."
    )
