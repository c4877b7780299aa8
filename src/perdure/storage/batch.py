"""Writes of many texts in one folder under one lock.

All files are written and synced, then renamed in turn: no change is visible before the first
rename, and each text changes by a rename that succeeds only while the lock is held. The directories
are synced when all is done.
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from perdure.errors import StorageError, StorageFaultError
from perdure.files import sync
from perdure.storage import openat
from perdure.storage.changes import TextChange, check_found, partial_error
from perdure.storage.locator import Locator
from perdure.storage.mutex import HeldLock
from perdure.storage.openat import DIRECTORY, Opener, is_plain_mode

MOST_OPEN = 64
"""Files, and directories, that a batch keeps open; some systems allow a process only 256."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THREADS = 8
_WORTH_THREADS = 100


def _sync_all(descriptors: Sequence[int], sync: Callable[[int], None], *, threaded: bool) -> None:
    """Call `sync` for each; raise if one fails. None is in use when this returns."""
    futures = []
    if threaded:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 8 ms of a hook

        with ThreadPoolExecutor(_THREADS) as threads, suppress(RuntimeError):  # no more threads
            for descriptor in descriptors:
                futures.append(threads.submit(sync, descriptor))  # noqa: PERF401 - may stop early
    for descriptor in descriptors[len(futures) :]:
        sync(descriptor)
    for future in futures:
        future.result()


class DirectoryCache:
    """Open directories below a root, by their keys as on disk.

    A context that fails removes the directories that it created.
    """

    def __init__(self, root: str, open_below: Opener) -> None:
        self._root = root
        self._open_below = open_below
        self._descriptors: dict[str, int] = {}
        self._spelled: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        self.created: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        if kind is None:
            return
        for key in reversed(self.created):
            with suppress(OSError), openat.opened(self._root, _parent(key), DIRECTORY) as directory:
                os.rmdir(
                    key.rpartition("/")[2], dir_fd=directory
                )  # fails if it got content meanwhile

    def open(self, spelled: str) -> int:
        """Return the descriptor of a directory; the `MOST_OPEN` last used stay open."""
        descriptor = self._descriptors.pop(spelled, None)
        if descriptor is None:
            descriptor = self._open_below(spelled, DIRECTORY)
            if len(self._descriptors) >= MOST_OPEN:
                os.close(self._descriptors.pop(next(iter(self._descriptors))))
        self._descriptors[spelled] = descriptor
        return descriptor

    def sync(self, unsynced: Sequence[str]) -> None:
        """Make changes durable that are visible already; directories that are gone are skipped."""
        try:
            for start in range(0, len(unsynced), MOST_OPEN):
                descriptors = []
                for each in unsynced[start : start + MOST_OPEN]:
                    with suppress(FileNotFoundError):
                        descriptors.append(self.open(each))
                _sync_all(descriptors, sync, threaded=len(unsynced) >= _WORTH_THREADS)
        except OSError as error:
            raise StorageFaultError(
                f"the changes are made and visible, but the disk does not confirm that they would "
                f"survive a power cut: {error.strerror}. Fix: check the disk, then write them "
                "again."
            ) from error

    def sync_created(self) -> None:
        for above in dict.fromkeys(map(_parent, self.created)):
            sync(self.open(above))

    def find(self, key: str) -> str:
        """Return how the directory `key` is spelled; `FileNotFoundError` if there is none."""
        if key not in self._spelled:
            self._spelled[key] = self._find(key)
        return self._spelled[key]

    def create(self, key: str) -> str:
        """Create the directory `key` and those above, if missing; return how it is spelled."""
        try:
            return self.find(key)
        except FileNotFoundError:
            if not key:
                raise
        parent, _, segment = key.rpartition("/")
        above = self.create(parent)
        name = self.spelling_in(above, segment)
        spelled = f"{above}/{name}" if above else name
        if make_directory(name, self.open(above)):
            self.created[spelled] = None
        self._spelled[key] = spelled
        return spelled

    def spelling_in(self, spelled: str, segment: str) -> str:
        """Return how the NFC name `segment` is spelled in a directory."""
        if segment.isascii() or spelled in self.created:
            return segment
        if spelled not in self._names:
            names = os.listdir(self.open(spelled))
            composed = {unicodedata.normalize("NFC", name): name for name in names}
            self._names[spelled] = composed | {name: name for name in names}
        return self._names[spelled].get(segment, segment)

    def _find(self, key: str) -> str:
        try:
            self.open(key)
        except FileNotFoundError:
            if key.isascii():
                raise
        else:
            return key
        parent, _, segment = key.rpartition("/")
        above = self.find(parent)
        name = self.spelling_in(above, segment)
        spelled = f"{above}/{name}" if above else name
        self.open(spelled)
        return spelled


class _FileChange(NamedTuple):
    """What a change does on disk."""

    change: TextChange
    directory: str
    name: str
    before: os.stat_result | None
    """The status of the file that is replaced or removed; None if there is none."""


class WriteBatch:
    """Changes below one root, in order; if the lock is lost, `apply` resumes with the rest."""

    def __init__(
        self,
        root: str,
        open_below: Opener,
        changes: Sequence[TextChange],
        *,
        durable: bool = True,
    ) -> None:
        self._root = root
        self._durable = durable
        self._open_below = open_below
        self._changes = changes
        self._done = 0
        self._unsynced: dict[str, None] = {}
        self.changed = 0
        """How many of the changes found something to do."""
        self.key = changes[0].locator.key
        """The key that is being changed, for error messages."""

    def explain_partial(self, error: StorageError) -> StorageError:
        """Return `error`, with a note if only some of the changes are made."""
        total = len(self._changes)
        return partial_error(error, self._done, total) if 0 < self._done < total else error

    def apply(self, held: HeldLock) -> None:
        """Make the changes that are not made yet; durably, unless the caller has a log of them."""
        try:
            with DirectoryCache(self._root, self._open_below) as directories:
                steps = [self._plan(change, directories) for change in self._changes[self._done :]]
                self._unsynced.update(dict.fromkeys(map(_parent, directories.created)))
                self._change(steps, held, directories)
                if self._durable:
                    directories.sync(list(self._unsynced))
        except FileNotFoundError:
            held.verify()
            raise

    def _plan(self, change: TextChange, directories: DirectoryCache) -> _FileChange | None:
        """Find where on disk the change is made; None if there is nothing to remove."""
        self.key = change.locator.key
        parent, _, segment = self.key.rpartition("/")
        try:
            is_removal = change.data is None
            directory = directories.find(parent) if is_removal else directories.create(parent)
        except (FileNotFoundError, NotADirectoryError):
            if change.data is not None:
                raise
            check_found(None, change.expect, change.locator)
            return None
        if directory in directories.created:
            check_found(None, change.expect, change.locator)
            return None if is_removal else _FileChange(change, directory, segment, None)
        name = directories.spelling_in(directory, segment)
        descriptor = directories.open(directory)
        before = _status_in(descriptor, name)
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
        _compare(change, descriptor, name)
        return (
            None if is_removal and before is None else _FileChange(change, directory, name, before)
        )

    def _change(
        self, steps: Sequence[_FileChange | None], held: HeldLock, directories: DirectoryCache
    ) -> None:
        """Write all files, then rename them; a removed text is renamed into a temporary folder."""
        writes = [step for step in steps if step and step.change.data is not None]
        removals = dict.fromkeys(s.directory for s in steps if s and s.change.data is None)
        names = held.temporaries([*(write.directory for write in writes), *removals])
        trash = dict(zip(removals, names[len(writes) :], strict=True))
        try:
            self._write_files(writes, names, directories)
            for directory, name in trash.items():
                os.mkdir(name, 0o700, dir_fd=directories.open(directory))
            self._rename(steps, names, trash, held, directories)
        except BaseException:
            for write, name in zip(writes, names, strict=False):
                _discard(directories, write.directory, name)
            raise
        finally:
            for directory, name in trash.items():
                _discard(directories, directory, name)

    def _write_files(
        self, writes: Sequence[_FileChange], names: Sequence[str], directories: DirectoryCache
    ) -> None:
        for start in range(0, len(writes), MOST_OPEN):
            written: list[int] = []
            try:
                for place, write in enumerate(writes[start : start + MOST_OPEN], start):
                    self.key, data = write.change.locator.key, write.change.data or b""
                    directory = directories.open(write.directory)
                    written.append(_write_new(directory, names[place], data, write.before))
                    if self._durable:
                        _start_sync(written[-1])
                if self._durable:
                    _sync_all(written, os.fsync, threaded=len(writes) >= _WORTH_THREADS)
            finally:
                for descriptor in written:
                    os.close(descriptor)

    def _rename(
        self,
        steps: Sequence[_FileChange | None],
        names: Iterable[str],
        trash: dict[str, str],
        held: HeldLock,
        directories: DirectoryCache,
    ) -> None:
        temporaries = iter(names)
        for step in steps:
            if step is not None:
                self.key = step.change.locator.key
                directory = directories.open(step.directory)
                if step.change.data is not None:
                    _replace(step, next(temporaries), directory, held)
                else:
                    name = trash[step.directory]
                    inner = f"{step.directory}/{name}" if step.directory else name
                    self._remove(step, directory, directories.open(inner), held)
                self._unsynced[step.directory] = None
                self.changed += 1
            self._done += 1

    def _remove(self, removal: _FileChange, directory: int, trash: int, held: HeldLock) -> None:
        temporary = str(self._done)
        try:
            _rename_locked(held, removal.name, directory, temporary, trash)
        except FileNotFoundError:
            if _status_in(directory, removal.name) is not None:
                raise
            return
        try:
            _compare(removal.change, trash, temporary)
        except BaseException:
            with suppress(FileExistsError):  # their owner has another one there by now
                if not openat.rename(temporary, removal.name, trash, directory, openat.NO_REPLACE):
                    os.rename(temporary, removal.name, src_dir_fd=trash, dst_dir_fd=directory)
            raise


def _replace(write: _FileChange, temporary: str, directory: int, held: HeldLock) -> None:
    """Rename a file to its name; restore what others wrote there since it was compared."""
    change, name = write.change, write.name
    if change.expect is None:
        _rename_locked(held, temporary, directory, name, directory)
        return
    how = openat.NO_REPLACE if write.before is None else openat.EXCHANGE
    try:
        is_exchanged = _rename_locked(held, temporary, directory, name, directory, how=how)
    except (FileExistsError, FileNotFoundError):  # it came or went meanwhile
        _compare(change, directory, name)
        raise
    if not is_exchanged:
        _rename_locked(held, temporary, directory, name, directory)
    elif how == openat.EXCHANGE:
        try:
            _compare(change, directory, temporary)
        except BaseException:
            openat.rename(temporary, name, directory, directory, how)
            if content_in(directory, temporary) != change.data:  # and another one came
                openat.rename(temporary, name, directory, directory, how)
            raise
        with suppress(OSError):  # then the next holder of the lock removes it
            os.unlink(temporary, dir_fd=directory)


def _compare(change: TextChange, directory: int, name: str) -> None:
    if change.expect is not None:
        check_found(content_in(directory, name), change.expect, change.locator)


def sync_below(root: str, open_below: Opener, keys: Sequence[str]) -> None:
    """Return when these files, and the directories above them, would survive a power cut."""
    folders: dict[str, None] = {}
    with DirectoryCache(root, open_below) as directories:
        for key in keys:
            above = _parent(key)
            with suppress(FileNotFoundError, NotADirectoryError):
                directory = directories.find(above)
                name = directories.spelling_in(directory, key.rpartition("/")[2])
                descriptor = openat.open_entry(name, openat.FILE, directories.open(directory))
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            while above not in folders:
                folders[above] = None
                above = _parent(above)
        for folder in folders:
            with suppress(FileNotFoundError, NotADirectoryError):
                sync(directories.open(directories.find(folder)))


def _discard(directories: DirectoryCache, directory: str, temporary: str) -> None:
    with suppress(OSError):  # then the next holder of the lock removes it
        openat.discard_entry(temporary, directories.open(directory))


# ---------------------------------------------------------------- single files
def _status_in(directory: int, name: str) -> os.stat_result | None:
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
        descriptor = openat.open_entry(name, openat.FILE, directory)
    except FileNotFoundError:
        return None
    try:
        return openat.read_all(descriptor)
    finally:
        os.close(descriptor)


def make_directory(name: str, directory: int) -> bool:
    """Make a directory in an open one; return whether it was missing."""
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return False
    return True


def _write_new(directory: int, name: str, data: bytes, before: os.stat_result | None) -> int:
    """Create a file with the permissions of `before`; return it open, to be synced."""
    descriptor = os.open(name, _NEW, 0o666, dir_fd=directory)
    try:
        if before is not None and os.fstat(descriptor).st_mode != before.st_mode:
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
        openat.write_all(descriptor, data)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _start_sync(descriptor: int) -> None:
    """Let the disk start on a file, so that it writes several at once before they are synced."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is only advice
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _rename_locked(  # noqa: PLR0913 - from where to where
    held: HeldLock, old: str, old_directory: int, new: str, new_directory: int, *, how: int = 0
) -> bool:
    """Commit by a rename, `how` as in `openat`, that succeeds only while the lock is held."""
    held.verify()
    try:
        if how:
            return openat.rename(old, new, old_directory, new_directory, how)
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
    except FileNotFoundError:
        held.verify()
        raise
    return True


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def atomic_write(held: HeldLock, key: str, data: bytes) -> None:
    """Make `data` the content of the file `key` below the root that `held` locks.

    Readers see the old content or the new, never a part; the new one is on disk when this returns.
    If the lock was taken over in the meantime, raises `LockLostError` and changes nothing.
    """
    change = TextChange(Locator(key), data, None)
    WriteBatch(held.root, openat.opener(held.root), [change]).apply(held)
