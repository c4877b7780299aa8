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
"""Opens the place with this key, for reading, with these flags; returns the descriptor."""

_FIRST_READ_BYTES = 1 << 16

_SYS_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04
Identity = tuple[int, int, int]
"""Device, number and time of birth: a new folder may get the number of one that is gone."""
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
"""How long a file system may give all changes one time: some count seconds, some pairs of them."""
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
    """Return the best way to open below `root`, which is a real path, without links."""
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
"""How `rename` treats a file that has the new name: refuse, or give it the old name."""
_NO_SUCH_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def rename(old: str, new: str, old_directory: int, new_directory: int, how: int) -> bool:
    """Rename in a way that `os.rename` has not; False if neither does the system or the disk."""
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


def stepwise_opener(root: str) -> Opener:
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
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.ELOOP, "neither a file nor a directory")
    chunks = []
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
    """Tell a folder from every other one, also from one that is made in its place later."""
    told = _told_by_statx(path)
    if told is not None:
        return told
    status = os.stat(path)
    birth = getattr(status, "st_birthtime", 0.0)
    return status.st_dev, status.st_ino, int(birth * 1e9)


def _told_by_statx(path: str) -> Identity | None:
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
    """Return the system's own call, which the standard library does not offer, where there is."""
    return getattr(system_library(), "statx", None)


class PlainNames:
    """Lists directories, and remembers which of them hold nothing but files and directories.

    Asking each entry what it is costs more than listing them all. A directory that didn't change
    since it was asked, which its change time tells, needn't be asked again. A very recent change
    is not trusted: another one may bear the same time. Should a file system lie about that time,
    the worst is a link's name in a list; every verb still refuses to follow it.
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
"""The key of a directory, and the stamps of its files by their names; None if it can't be read."""


def scan(
    opened: Opener, start: str, skip: Callable[[str], bool], clock: Callable[[], int]
) -> "Iterator[Listed]":
    """Yield a directory and those below; `start` is its name on disk."""
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
            stamps, folders = _look_into(descriptor, clock())
        finally:
            os.close(descriptor)
        yield key, _named(stamps, key) if stamps else stamps
        if not folders:
            continue
        prefix, below = f"{key}/" if key else "", f"{path}/" if path else ""
        names = sorted(_named({name: name for name in folders}, key).items(), reverse=True)
        pending += [(prefix + segment, below + name) for segment, name in names]


def _look_into(directory: int, now: int) -> tuple[dict[str, bytes], list[str]]:
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
    """Return when a file was modified, as `stat` has it; None for a stamp of another kind."""
    if len(stamp) != _STAMP.size:
        return None
    seconds, rest = divmod(_STAMP.unpack(stamp)[2], _SECOND)
    return float(seconds + 1e-9 * rest)


def _is_settled(modified: int, changed: int, now: int) -> bool:
    """Whether a file that changes again can't bear the same times, within one tick of a clock.

    Others set the time of modification to what they like, also to one that is yet to come.
    """
    is_coarse = not (modified % _SECOND or changed % _SECOND)
    settled = now - (_COARSE if is_coarse else _FINE)
    return changed < settled and not settled <= modified <= now


def _named(found: dict[str, Value], directory: str) -> dict[str, Value]:
    """Return what has a key, by the last segment of it."""
    names = segments_named(found)
    room = MAX_KEY_BYTES - len(directory.encode()) - 1
    if room < MAX_SEGMENT_BYTES:
        names = {segment: name for segment, name in names.items() if len(segment.encode()) <= room}
    elif len(names) == len(found) and found.keys() == names.keys():
        return found
    return {segment: found[name] for segment, name in names.items()}


def is_plain(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry is a file or a directory, and no link to one."""
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def is_plain_mode(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
