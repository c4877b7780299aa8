"""Files of proofs and receipts that a command writes or reads; `-` is stdout or stdin."""

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
    PathIsFileError,
    PerdureError,
    ProofError,
)

STANDARD = "-"

_MINE = 0o600


@contextmanager
def new_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name when it is complete, readable by its owner only.

    Raises `PathIsFileError` if the name is taken, unless `force`.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not force and os.path.lexists(path):
        raise _name_taken(path)
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
        raise _name_taken(path) from None
    except OSError:  # the file system has no links, so a race with another writer goes unnoticed
        if os.path.lexists(path):
            raise _name_taken(path) from None
        unfinished.replace(path)


def read_signed_file(path: str, what: str, limit: int) -> str:
    """Return the text of a proof or a receipt; of a larger file, the first `limit` + 1 bytes."""
    if path == STANDARD:
        content = sys.stdin.buffer.read(limit + 1)
    else:
        with _named(path, reading=True), Path(path).open("rb") as file:
            content = file.read(limit + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProofError(f"this {what} is not JSON. Fix: copy the whole file.") from error


@contextmanager
def _named(path: str, *, reading: bool) -> Iterator[None]:
    """Let an error of the system name the path that the user gave."""
    folder, name = str(Path(path).parent), Path(path).name
    try:
        yield
    except PerdureError:
        raise
    except FileNotFoundError as error:
        missing = path if reading else folder
        raise AbsentError(
            f"{missing!a} does not exist. Fix: check its name, or create it."
        ) from error
    except OSError as error:
        if reading and isinstance(error, PermissionError):
            raise AccessRefusedError(
                f"{name!a} in {folder!a}: permission denied. Fix: make the folder and its files "
                "readable for this user."
            ) from error
        error.filename, error.filename2 = path, None
        raise


def _name_taken(path: str) -> PathIsFileError:
    return PathIsFileError(
        f"{path!a} already exists, and was not changed. Fix: name another file, or add --force."
    )
