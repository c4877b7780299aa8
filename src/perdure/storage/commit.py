"""Changes to a directory that are whole, durable, and ours: fsync, then a fenced rename."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from perdure.storage import confined
from perdure.storage.confined import is_plain_mode
from perdure.storage.lock.mutex import Held

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def take_back(root: str, made: Sequence[str]) -> None:
    """Remove directories that were made in vain; those that got content meanwhile stay."""
    for key in reversed(made):
        parent, _, name = key.rpartition("/")
        with suppress(OSError), confined.opened(root, parent, confined.DIRECTORY) as directory:
            os.rmdir(name, dir_fd=directory)


def make_folder(path: str) -> None:
    """Make a private folder and those above it, durably; one that is there is fine."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        make_folder(above)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    descriptor = os.open(above, confined.DIRECTORY)
    try:
        sync_directory(descriptor)
    finally:
        os.close(descriptor)


def status_in(directory: int, name: str) -> os.stat_result | None:
    """Return the status of a file or directory; None if nothing is there; links are refused."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not is_plain_mode(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return status


def content_in(directory: int, name: str) -> bytes | None:
    try:
        descriptor = confined.open_entry(name, confined.FILE, directory)
    except FileNotFoundError:
        return None
    try:
        return confined.read_all(descriptor)
    finally:
        os.close(descriptor)


def make_directory(name: str, directory: int) -> bool:
    """Make a directory in an open one; say whether it was missing."""
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return False
    return True


def sync_directory(descriptor: int) -> None:
    """Make the names in a directory durable, on file systems that know of such a thing."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def write_new(directory: int, name: str, data: bytes, before: os.stat_result | None) -> int:
    """Make a file with the permissions that `before` tells; return it open, to be synced."""
    descriptor = os.open(name, _NEW, 0o666, dir_fd=directory)
    try:
        if before is not None and os.fstat(descriptor).st_mode != before.st_mode:
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
        confined.write_all(descriptor, data)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def begin_to_sync(descriptor: int) -> None:
    """Let the disk start on a file, so that of many synced later it does several at once."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is only advice
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def rename_fenced(held: Held, old: str, old_directory: int, new: str, new_directory: int) -> None:
    """Commit by a rename that can succeed only while the lock is ours."""
    held.verify()
    try:
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
    except FileNotFoundError:
        held.verify()
        raise
