"""Changes to a directory that are whole, durable, and ours: fsync, then a fenced rename."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from perdure.errors import StorageFaultError
from perdure.storage import confined
from perdure.storage.confined import is_plain_mode
from perdure.storage.lock.mutex import Held

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Directory:
    """A directory open for a change; a context that fails takes back those `made` for it."""

    __slots__ = ("_made", "_root", "descriptor", "key")

    def __init__(self, root: str, key: str, descriptor: int, made: Sequence[str] = ()) -> None:
        self._root = root
        self._made = made
        self.key = key
        self.descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        os.close(self.descriptor)
        if kind is not None and self._made:
            take_back(self._root, self._made)


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


def atomic_write(held: Held, key: str, data: bytes) -> None:
    """Make `data` the content of the file `key` below the root that `held` locks.

    Readers see the old content or the new, never a part; the new one is on disk when this returns.
    If the lock was taken over in the meantime, `LockLostError`, and nothing is changed.
    """
    parent, _, name = key.rpartition("/")
    descriptor = confined.opener(held.root)(parent, confined.DIRECTORY)
    with Directory(held.root, parent, descriptor) as directory:
        replace_file(held, directory, name, data, status_in(directory.descriptor, name))


def replace_file(
    held: Held, directory: Directory, name: str, data: bytes, before: os.stat_result | None
) -> None:
    """Put a file in place of the one that `before` describes; it keeps the permissions."""
    temporary = held.temporary(directory.key)
    try:
        descriptor = write_new(directory.descriptor, temporary, data, before)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        rename_fenced(held, temporary, directory.descriptor, name, directory.descriptor)
    except BaseException:
        _discard(directory, temporary)
        raise
    _confirm(directory, name)


def remove_file(held: Held, directory: Directory, name: str) -> None:
    """Rename a file into a temporary directory, which a successor removes: a late rename fails."""
    temporary = held.temporary(directory.key)
    try:
        os.mkdir(temporary, 0o700, dir_fd=directory.descriptor)
        grave = confined.open_entry(temporary, confined.DIRECTORY, directory.descriptor)
        try:
            rename_fenced(held, name, directory.descriptor, "removed", grave)
        finally:
            os.close(grave)
    finally:
        _discard(directory, temporary)
    _confirm(directory, name)


def remove_directory(held: Held, directory: Directory, name: str) -> None:
    """Remove an empty directory; the kernel itself makes sure that it is empty."""
    held.verify()
    os.rmdir(name, dir_fd=directory.descriptor)
    _confirm(directory, name)


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


def _confirm(directory: Directory, name: str) -> None:
    """Make a change durable that everybody can see already."""
    try:
        sync_directory(directory.descriptor)
    except OSError as error:
        raise StorageFaultError(
            f"the change of {name!a} is done and can be seen, but the disk does not confirm that "
            f"it would outlast a power cut: {error.strerror}. Fix: check the disk, then write it "
            "again."
        ) from error


def _discard(directory: Directory, temporary: str) -> None:
    with suppress(OSError):  # what can't go now goes with the next holder of the lock
        confined.discard_entry(temporary, directory.descriptor)


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
