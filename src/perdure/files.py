"""Write whole files, lock and sync them, and move foreign files out of derived folders."""

import errno
import fcntl
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from perdure.errors import ConcurrentModificationError, storage_error

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_PAUSE = 0.05


class Closeable:
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_whole(
    path: Path,
    content: bytes,
    *,
    durable: bool = True,
    mode: int | None = None,
    place: Callable[[Path, Path], object] = Path.replace,
) -> None:
    """Write a file that only its owner may read, completely or not at all.

    `mode` sets other permissions. `place` moves the finished file to its path.
    """
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        place(unfinished, path)
        if durable:
            sync_path(path.parent)
            with suppress(PermissionError):  # a folder that is not ours, as /home may be
                sync_path(path.parent.parent)
    except OSError as error:
        raise storage_error(error, str(path.parent), path.name) from error
    finally:
        with suppress(OSError):  # nearly always, it was renamed
            unfinished.unlink()


def replace_unchanged(path: Path, before: bytes | None, content: bytes | None) -> None:
    """Replace a file, with the permissions that it has, if it still has the content `before`.

    None means that there is no file. If another program wrote the file, it is left alone, and
    `ConcurrentModificationError` is raised. A link is followed, and stays a link.
    """
    path = Path(os.path.realpath(path))
    changed = ConcurrentModificationError(
        f"{str(path)!a} was changed by another program just now, and is left unchanged. "
        "Fix: close that program, and try again."
    )

    def is_there() -> bool:
        now = path.read_bytes() if path.exists() else None
        if (now or b"") != (before or b""):
            raise changed
        return now is not None

    def place(finished: Path, path: Path) -> None:
        if is_there():
            finished.replace(path)
            return
        try:
            os.link(finished, path)  # fails if the path exists by now
        except FileExistsError:
            raise changed from None

    if content is None:
        if is_there():
            path.unlink()
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_whole(path, content, mode=mode, place=place)


@contextmanager
def locked(path: Path, seconds: float = 0.0) -> Iterator[int | None]:
    """Lock a file or folder, and yield its descriptor; None if it stays locked for `seconds`.

    A file is created if nothing is there. The lock ends when the process that holds it ends, and
    those that it started with the descriptor.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        while not _is_free(descriptor):
            if time.monotonic() >= until:
                yield None
                return
            time.sleep(_LOCK_PAUSE)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def append_line(path: Path, line: bytes, max_bytes: int) -> None:
    """Append a line to a file that only its owner may read; several processes may do so.

    A file larger than `max_bytes` is first renamed to `NAME.1`, replacing an older one. The line is
    not synced: a power cut may lose it.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_size > max_bytes and _is_free(descriptor):
            _rotate(path, descriptor)
        os.write(descriptor, line + b"\n")
    finally:
        os.close(descriptor)


def _rotate(path: Path, descriptor: int) -> None:
    """Rename a full file, unless another process already did."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            path.replace(path.with_name(f"{path.name}.1"))


def read_lines(path: Path) -> list[bytes]:
    """Return the lines that `append_line` wrote and that still exist, oldest first."""
    lines: list[bytes] = []
    for each in (path.with_name(f"{path.name}.1"), path):
        with suppress(OSError):
            lines += each.read_bytes().splitlines()
    return lines


def sync_path(path: Path | str) -> None:
    """Sync a file, or the names in a folder, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync(descriptor: int) -> None:
    """Sync an open descriptor; file systems that can't sync folders are accepted."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def make_folder(path: Path) -> None:
    """Create a private folder and its parents, durably; an existing one is fine."""
    if not path.parent.is_dir():
        make_folder(path.parent)
    with suppress(FileExistsError):
        path.mkdir(0o700)
    sync_path(path.parent)


def set_aside(path: Path, *, unless: Callable[[Path], bool]) -> Path | None:
    """Rename what is at a path, unless `unless` accepts it; return the new path, or None.

    Nothing is deleted, and no link is followed.
    """
    if not os.path.lexists(path) or unless(path):
        return None
    aside = path.with_name(f"{path.name}-aside-{time.time_ns()}")
    path.rename(aside)
    return aside


class Quarantine:
    """Moves foreign files out of the derived folders below a folder, and reports each once."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._set_aside: list[str] = []

    def clear_folder(self, folder: Path) -> None:
        """Rename what is not a folder where a folder is needed, and above it up to the top.

        A link to a folder counts as one. What can't be renamed stays, and creating the folder
        raises the reason.
        """
        below = folder.relative_to(self._top).parts
        for depth in range(len(below)):
            self._clear(self._top.joinpath(*below[: depth + 1]), Path.is_dir)

    def clear_file(self, file: Path) -> None:
        """Rename what is not a file where a file is needed, and what is not a folder above it."""
        self.clear_folder(file.parent)
        self._clear(file, Path.is_file)

    def _clear(self, path: Path, is_right: Callable[[Path], bool]) -> None:
        with suppress(OSError):
            aside = set_aside(path, unless=is_right)
            if aside is not None:
                self._set_aside.append(
                    f"{str(path)!a} had the path of something derived. It is now {aside.name!a}, "
                    "and the file that belongs there is rebuilt"
                )

    def report(self) -> str:
        """Return what was renamed since the last report; empty if nothing was."""
        reported, self._set_aside = self._set_aside, []
        return "; ".join(reported)
