"""Files that a command writes or reads; `-` is stdout or stdin."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

from perdure.errors import AbsentError, FileInTheWayError, PerdureError
from perdure.faults import explain, explain_reading

STANDARD = "-"

_MINE = 0o600


@contextmanager
def writing(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Yield what becomes the file when all went well; before that, there is nothing of this name.

    `FileInTheWayError` if there is something already, unless `force`. Only the user may read it.
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
        with _explained(path):
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
    except OSError:  # this disk has no links, so nobody can be kept from being quicker
        if os.path.lexists(path):
            raise _in_the_way(path) from None
        unfinished.replace(path)


@contextmanager
def reading(path: str) -> Iterator[BinaryIO]:
    """Yield a file that can be read more than once, also if it comes through a pipe."""
    if path != STANDARD:
        with _explained(path, only_read=True):
            opened = Path(path).open("rb")  # noqa: SIM115 - what fails inside is not ours to explain
        with opened as file:
            yield file
        return
    with tempfile.TemporaryFile() as file:
        copyfileobj(sys.stdin.buffer, file)
        file.seek(0)
        yield file


@contextmanager
def _explained(path: str, *, only_read: bool = False) -> Iterator[None]:
    try:
        yield
    except PerdureError:
        raise
    except FileNotFoundError as error:
        missing = path if only_read else str(Path(path).parent)
        raise AbsentError(f"{missing!a} is not there. Fix: check its name, or make it.") from error
    except OSError as error:
        meaning = explain_reading if only_read else explain
        raise meaning(error, str(Path(path).parent), Path(path).name) from error


def _in_the_way(path: str) -> FileInTheWayError:
    return FileInTheWayError(
        f"{path!a} is there already, and was left as it is. Fix: name another file, or add --force."
    )
