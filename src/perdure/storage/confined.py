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

from perdure.storage.locator import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make us wait
LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC

Opener = Callable[[str, int], int]
"""Opens the place with this key, for reading, with these flags; returns the descriptor."""

_FIRST_READ_BYTES = 1 << 16

_SYS_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def opener(root: str) -> Opener:
    """Return the best way to open below `root`, which is a real path, without links."""
    return at_once(root) if _kernel_can_refuse_links() else by_steps(root)


@cache
def _kernel_can_refuse_links() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(at_once("/")("", DIRECTORY))
    except OSError:  # an older kernel, or a sandbox that forbids it
        return False
    return True


@cache
def system_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def at_once(root: str) -> Opener:
    """Return a way to open in one step of the kernel."""
    prefix = os.fsencode(root) + b"/"
    system_call: Callable[..., int] = system_library().syscall
    ways = {
        flags: ctypes.byref(_OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS))
        for flags in (DIRECTORY, FILE, LOOK)
    }

    def open_at_once(key: str, flags: int) -> int:
        path = prefix + key.encode("utf-8", "surrogateescape")
        while (opened := system_call(_SYS_OPENAT2, _AT_FDCWD, path, ways[flags], 24)) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number), os.fsdecode(path))
        return opened

    return open_at_once


def by_steps(root: str) -> Opener:
    """Return a way to open directory by directory, for systems without `openat2`."""

    def open_by_steps(key: str, flags: int) -> int:
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

    return open_by_steps


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
    descriptor = opener(root)(key, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Return the whole content; anything but a plain file is refused.

    Most texts fit into the first read. It asks at an offset, which pipes and sockets refuse.
    """
    try:
        data = os.pread(descriptor, _FIRST_READ_BYTES, 0)
        if data and not os.pread(descriptor, 1, len(data)):
            return data
    except OSError as error:
        if error.errno != errno.ESPIPE:
            raise
    _refuse_unless_plain(os.fstat(descriptor).st_mode)
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def _refuse_unless_plain(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.ELOOP, "neither a file nor a directory")


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
