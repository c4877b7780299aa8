"""Opens files and directories below a root without ever following a link.

A link that is created while a path is resolved must not lead out of the root, so nothing here
checks first and opens later: the kernel refuses links in the same step that opens (`openat2`), or,
where it can't, each directory of the path is opened from the one above it.

All functions raise plain `OSError`; a link in a path is `ELOOP`.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
import time
import unicodedata
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from perdure.storage.locator import (
    MAX_KEY_BYTES,
    MAX_SEGMENT_BYTES,
    TEMPORARY_SUFFIX,
    segments_named,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make us wait
LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC

Value = TypeVar("Value")
Opener = Callable[[str, int], int]
"""Opens a key for reading, with these flags; returns the descriptor."""

_FIRST_READ_BYTES = 1 << 16

_SYS_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04
Identity = tuple[int, int, int]
"""Device, inode and time of birth: a new folder may get the inode of a removed one."""
_STATX_INO = 0x100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_NUMBER = struct.Struct("=Q")
_BIRTH = struct.Struct("=qI")
_DEVICE = struct.Struct("=II")
_SETTLED_SECONDS = 0.05  # five ticks of the slowest kernel clock
_SECOND = 1_000_000_000
_FINE = int(_SETTLED_SECONDS * _SECOND)
_COARSE = 2 * _SECOND
"""The coarsest resolution of a file system's times: some count pairs of seconds."""
_STAMP = struct.Struct("=QQqq")
_REFUSED = frozenset({errno.EACCES, errno.EPERM})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_REMEMBERED_DIRECTORIES = 4096


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def opener(root: str) -> Opener:
    """Return the best opener for this kernel below `root`, a real path without links."""
    return single_step_opener(root) if _kernel_can_refuse_links() else stepwise_opener(root)


@cache
def _kernel_can_refuse_links() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(single_step_opener("/")("", DIRECTORY))
    except OSError:  # an older kernel, or a sandbox that forbids it
        return False
    return True


@cache
def system_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


NO_REPLACE, EXCHANGE = 1, 2
"""How `rename` treats a file with the new name: fail, or exchange the two."""
_NO_SUCH_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def rename(old: str, new: str, old_directory: int, new_directory: int, how: int) -> bool:
    """Rename with these flags; return False if the kernel or the file system has none of them."""
    call = getattr(system_library(), "renameat2", None)
    if call is None:
        return False
    if call(old_directory, os.fsencode(old), new_directory, os.fsencode(new), how):
        number = ctypes.get_errno()
        if number not in _NO_SUCH_RENAME:
            raise OSError(number, os.strerror(number), old, None, new)
        return False
    return True


def single_step_opener(root: str) -> Opener:
    """Return an opener that resolves the path in one system call."""
    prefix = os.fsencode(root) + b"/"
    system_call: Callable[..., int] = system_library().syscall
    arguments = {
        flags: ctypes.byref(_OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS))
        for flags in (DIRECTORY, FILE, LOOK)
    }

    def open_at_once(key: str, flags: int) -> int:
        path = prefix + key.encode("utf-8", "surrogateescape")
        while (opened := system_call(_SYS_OPENAT2, _AT_FDCWD, path, arguments[flags], 24)) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number), os.fsdecode(path))
        return opened

    return open_at_once


def stepwise_opener(root: str) -> Opener:
    """Return an opener that opens each directory in turn, for systems without `openat2`."""

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
    """Return the whole content; raises for anything but a plain file.

    Most texts fit into the first read. It reads at an offset, which pipes and sockets refuse.
    """
    try:
        data = os.pread(descriptor, _FIRST_READ_BYTES, 0)
        if data and not os.pread(descriptor, 1, len(data)):
            return data
    except OSError as error:
        if error.errno != errno.ESPIPE:
            raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.ELOOP, "neither a file nor a directory")
    chunks = []
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; the kernel may take it in pieces."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def discard_temporary(root: str, key: str) -> None:
    """Remove an unfinished file, or a directory of them, if there is one."""
    parent, _, name = key.rpartition("/")
    if not name.endswith(TEMPORARY_SUFFIX):
        raise ValueError(f"{key!a} is not a temporary name; it was not removed")
    with suppress(FileNotFoundError), opened(root, parent, DIRECTORY) as directory:
        discard_entry(name, directory)


def discard_entry(name: str, directory: int) -> None:
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


def identify(path: str) -> Identity:
    """Return the identity of a folder, which differs from one created in its place later."""
    identity = _identity_by_statx(path)
    if identity is not None:
        return identity
    status = os.stat(path)
    birth = getattr(status, "st_birthtime", 0.0)
    return status.st_dev, status.st_ino, int(birth * 1e9)


def _identity_by_statx(path: str) -> Identity | None:
    statx = _statx()
    if statx is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_INO | _STATX_BTIME, buffer) != 0:
        return None
    raw = buffer.raw
    major, minor = _DEVICE.unpack_from(raw, 136)
    seconds, nanoseconds = _BIRTH.unpack_from(raw, 80)
    (number,) = _NUMBER.unpack_from(raw, 32)
    return os.makedev(major, minor), number, seconds * 1_000_000_000 + nanoseconds


@cache
def _statx() -> Callable[..., int] | None:
    """Return the C library's `statx`, which the standard library lacks, if there is one."""
    return getattr(system_library(), "statx", None)


class PlainNames:
    """Lists directories, and caches which of them hold only files and directories.

    Checking the type of each entry costs more than listing them all. A directory whose change time
    is the same as at the last check is not checked again. A very recent change time is not trusted:
    another change may have the same. If a file system reports a wrong time, the worst result is a
    link's name in a list; every verb still refuses to follow it.
    """

    def __init__(self) -> None:
        self._plain: set[tuple[int, int, int]] = set()

    def in_directory(self, descriptor: int) -> list[str]:
        status = os.fstat(descriptor)  # before the listing, so that a change after it shows
        version = (status.st_dev, status.st_ino, status.st_ctime_ns)
        if version in self._plain:
            return os.listdir(descriptor)
        with os.scandir(descriptor) as entries:
            every = list(entries)
        plain = [entry.name for entry in every if is_plain(entry)]
        if len(plain) == len(every) and time.time() - status.st_ctime > _SETTLED_SECONDS:
            if len(self._plain) >= _REMEMBERED_DIRECTORIES:
                self._plain.clear()
            self._plain.add(version)
        return plain


Listed = tuple[str, dict[str, bytes] | None]
"""The key of a directory, and the stamps of its files by name; None if it can't be read."""


def scan(
    opened: Opener, start: str, skip: Callable[[str], bool], clock: Callable[[], int]
) -> "Iterator[Listed]":
    """Yield a directory and those below it; `start` is its name on disk."""
    pending = [(unicodedata.normalize("NFC", start), start)]
    while pending:
        key, path = pending.pop()
        if path != start and skip(key):
            continue
        try:
            descriptor = opened(path, DIRECTORY)
        except OSError as error:
            if error.errno in _REFUSED:
                yield key, None
            elif error.errno not in _GONE or path == start:
                raise
            continue
        try:
            stamps, folders = _read_directory(descriptor, clock())
        finally:
            os.close(descriptor)
        yield key, _named(stamps, key) if stamps else stamps
        if not folders:
            continue
        prefix, below = f"{key}/" if key else "", f"{path}/" if path else ""
        names = sorted(_named({name: name for name in folders}, key).items(), reverse=True)
        pending += [(prefix + segment, below + name) for segment, name in names]


def _read_directory(directory: int, now: int) -> tuple[dict[str, bytes], list[str]]:
    """Return the stamps of files by their names on disk, and the names of directories."""
    stamps, folders = dict[str, bytes](), list[str]()
    settled, pack = now - _COARSE, _STAMP.pack
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # removed since it was listed
                    continue
                modified, changed = status.st_mtime_ns, status.st_ctime_ns
                if (modified < settled and changed < settled) or _is_settled(
                    modified, changed, now
                ):
                    stamp = pack(status.st_ino, status.st_size, modified, changed)
                    stamps[entry.name] = stamp
                else:
                    stamps[entry.name] = b""
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return stamps, folders


def modified_in(stamp: bytes) -> float | None:
    """Return when a file was modified, as `stat` has it; None for a stamp of another backend."""
    if len(stamp) != _STAMP.size:
        return None
    seconds, rest = divmod(_STAMP.unpack(stamp)[2], _SECOND)
    return float(seconds + 1e-9 * rest)


def _is_settled(modified: int, changed: int, now: int) -> bool:
    """Whether these times are too old for another change to have the same, within one tick.

    Other programs may set the modification time to any value, even one in the future.
    """
    is_coarse = not (modified % _SECOND or changed % _SECOND)
    settled = now - (_COARSE if is_coarse else _FINE)
    return changed < settled and not settled <= modified <= now


def _named(found: dict[str, Value], directory: str) -> dict[str, Value]:
    """Return the items whose name is valid in a key, by that name in NFC."""
    names = segments_named(found)
    room = MAX_KEY_BYTES - len(directory.encode()) - 1
    if room < MAX_SEGMENT_BYTES:
        names = {segment: name for segment, name in names.items() if len(segment.encode()) <= room}
    elif len(names) == len(found) and found.keys() == names.keys():
        return found
    return {segment: found[name] for segment, name in names.items()}


def is_plain(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry is a file or a directory, and not a link to one."""
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def is_plain_mode(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
