"""Open what lies below a root without ever following a link.

A link that is swapped in while we look must not lead out, so nothing here asks first and opens
later: the kernel refuses the link in the same step that opens (`openat2`), or, where it can't,
each directory on the way is opened from the one above it.

Everything raises plain `OSError`; a link on the way is `ELOOP`.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from holdfast.storage.locator import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make us wait
LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC

Opener = Callable[[str, str, int], int]

_SYS_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def open_below(root: str, key: str, flags: int) -> int:
    """Open `key` below `root` for reading; `root` itself is a real path, without links."""
    return opener()(root, key, flags)


@cache
def opener() -> Opener:
    """Return the best way to open on this system."""
    if not sys.platform.startswith("linux"):
        return open_by_steps
    try:
        os.close(open_at_once("/", "", DIRECTORY))
    except OSError:  # an older kernel, or a sandbox that forbids it
        return open_by_steps
    return open_at_once


def open_at_once(root: str, key: str, flags: int) -> int:
    """Open in one step of the kernel."""
    path = f"{root}/{key}" if key else root
    encoded = path.encode("utf-8", "surrogateescape")
    while True:
        descriptor: int = _system_call()(_SYS_OPENAT2, _AT_FDCWD, encoded, _how(flags), 24)
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), path)


@cache
def _how(flags: int) -> "ctypes._CArgObject":
    return ctypes.byref(_OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS))


@cache
def _system_call() -> Callable[..., int]:
    return ctypes.CDLL(None, use_errno=True).syscall


def open_by_steps(root: str, key: str, flags: int) -> int:
    """Open directory by directory, for systems without `openat2`."""
    if not key:
        return open_entry(root, flags)
    *above, name = key.split("/")
    directory = open_entry(root, DIRECTORY)
    try:
        for segment in above:
            inner = open_entry(segment, DIRECTORY, directory)
            os.close(directory)
            directory = inner
        return open_entry(name, flags, directory)
    finally:
        os.close(directory)


def open_entry(name: str, flags: int, directory: int | None = None) -> int:
    """Open `name` in an open directory; a link there is `ELOOP`."""
    try:
        descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError:
        if is_link(name, directory):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    if flags & getattr(os, "O_PATH", 0) and stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return descriptor


def is_link(name: str, directory: int | None) -> bool:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    return stat.S_ISLNK(status.st_mode)


@contextmanager
def opened(root: str, key: str, flags: int) -> "Iterator[int]":
    descriptor = open_below(root, key, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Return what is left to read; anything but a plain file is refused."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ELOOP, "neither a file nor a directory")
    chunk = os.read(descriptor, status.st_size + 1)
    if len(chunk) <= status.st_size:
        return chunk  # it ended where it said it would
    chunks = [chunk]
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def write_all(descriptor: int, data: bytes) -> None:
    """Write `data` wholly; the kernel may take it in pieces."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def discard_temporary(root: str, key: str) -> None:
    """Remove an unfinished file, or a directory of them; none there is fine."""
    parent, _, name = key.rpartition("/")
    if not name.endswith(TEMPORARY_SUFFIX):
        raise ValueError(f"{key!a} is no temporary name; it was not removed")
    with suppress(FileNotFoundError), opened(root, parent, DIRECTORY) as directory:
        discard_entry(name, directory)


def discard_entry(name: str, directory: int) -> None:
    """Remove the file or flat directory `name` from an open directory."""
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    inner = open_entry(name, DIRECTORY, directory)
    try:
        for entry in os.listdir(inner):
            os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=directory)
