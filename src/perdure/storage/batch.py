"""Many texts of one folder under one lock: all files are written and synced, then renamed in turn.

Nothing can be seen before the first rename. From then on the texts change one after another, each
by a rename of its own that is fenced like any other. The directories are synced when all is done.
"""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from perdure.errors import StorageError, StorageFaultError
from perdure.storage import confined
from perdure.storage.changes import Change, partly_done
from perdure.storage.commit import (
    begin_to_sync,
    content_in,
    rename_fenced,
    status_in,
    sync_directory,
    write_new,
)
from perdure.storage.content import check_found
from perdure.storage.directories import Directories
from perdure.storage.mutex import Held
from perdure.storage.syncing import MOST_OPEN, Syncing


class _Write(NamedTuple):
    """A text that gets another content."""

    key: str
    directory: str
    name: str
    data: bytes
    before: os.stat_result | None


class _Removal(NamedTuple):
    """A text that goes away."""

    key: str
    directory: str
    name: str


_Step = _Write | _Removal | None
"""What a change does on disk; None where nothing is left to remove."""


class Batch:
    """Changes below one root that are made in their order.

    It remembers how far it came. Should the lock be lost, what is made stays made, and the rest is
    tried again.
    """

    def __init__(self, root: str, open_below: confined.Opener, changes: Sequence[Change]) -> None:
        self._root = root
        self._open_below = open_below
        self._changes = changes
        self._done = 0
        self._unsynced: dict[str, None] = {}
        self.key = changes[0].locator.key
        """Where it is at; what an error is about."""

    def told(self, error: StorageError) -> StorageError:
        """Return `error` as it must be told when only some of the changes are made."""
        total = len(self._changes)
        return partly_done(error, self._done, total) if 0 < self._done < total else error

    def land(self, held: Held) -> None:
        """Make the changes that are not made yet, durably."""
        try:
            with Directories(self._root, self._open_below) as directories:
                steps = [self._look(change, directories) for change in self._changes[self._done :]]
                self._unsynced.update(dict.fromkeys(map(_parent, directories.made)))
                self._change(steps, held, directories)
                self._sync(directories)
        except FileNotFoundError:
            held.verify()
            raise

    def _look(self, change: Change, directories: Directories) -> _Step:
        """Say where on disk the change happens; raise if it can't."""
        self.key = change.locator.key
        if change.data is None:
            return _look_for_removal(change, directories)
        return _look_for_write(change, change.data, directories)

    def _change(self, steps: Sequence[_Step], held: Held, directories: Directories) -> None:
        writes = [step for step in steps if isinstance(step, _Write)]
        burials = dict.fromkeys(step.directory for step in steps if isinstance(step, _Removal))
        names = held.temporaries([*(write.directory for write in writes), *burials])
        graves = dict(zip(burials, names[len(writes) :], strict=True))
        try:
            self._write_files(writes, names, directories)
            for directory, grave in graves.items():
                os.mkdir(grave, 0o700, dir_fd=directories.opened(directory))
            self._rename(steps, names, graves, held, directories)
        except BaseException:
            for write, name in zip(writes, names, strict=False):
                _discard(directories, write.directory, name)
            raise
        finally:
            for directory, grave in graves.items():
                _discard(directories, directory, grave)

    def _write_files(
        self, writes: Sequence[_Write], names: Sequence[str], directories: Directories
    ) -> None:
        with Syncing(len(writes)) as syncing:
            for start in range(0, len(writes), MOST_OPEN):
                written: list[int] = []
                try:
                    for place, write in enumerate(writes[start : start + MOST_OPEN], start):
                        self.key = write.key
                        directory = directories.opened(write.directory)
                        written.append(write_new(directory, names[place], write.data, write.before))
                        begin_to_sync(written[-1])
                    syncing.sync(written, os.fsync)
                finally:
                    for descriptor in written:
                        os.close(descriptor)

    def _rename(
        self,
        steps: Sequence[_Step],
        names: Iterable[str],
        graves: dict[str, str],
        held: Held,
        directories: Directories,
    ) -> None:
        temporaries = iter(names)
        for step in steps:
            if step is not None:
                self.key = step.key
                directory = directories.opened(step.directory)
                if isinstance(step, _Write):
                    rename_fenced(held, next(temporaries), directory, step.name, directory)
                else:
                    grave = directories.opened(_joined(step.directory, graves[step.directory]))
                    self._bury(step, directory, grave, held)
                self._unsynced[step.directory] = None
            self._done += 1

    def _bury(self, removal: _Removal, directory: int, grave: int, held: Held) -> None:
        try:
            rename_fenced(held, removal.name, directory, str(self._done), grave)
        except FileNotFoundError:
            if status_in(directory, removal.name) is not None:
                raise

    def _sync(self, directories: Directories) -> None:
        """Make durable what everybody can see already."""
        unsynced = list(self._unsynced)
        try:
            with Syncing(len(unsynced)) as syncing:
                for start in range(0, len(unsynced), MOST_OPEN):
                    some = directories.those_there(unsynced[start : start + MOST_OPEN])
                    syncing.sync(some, sync_directory)
        except OSError as error:
            raise StorageFaultError(
                f"the changes are done and can be seen, but the disk does not confirm that they "
                f"would outlast a power cut: {error.strerror}. Fix: check the disk, then write "
                "them again."
            ) from error


def _look_for_write(change: Change, data: bytes, directories: Directories) -> _Write:
    locator, _, expect = change
    parent, _, segment = locator.key.rpartition("/")
    directory = directories.make(parent)
    if directory in directories.made:
        check_found(None, expect, locator)
        return _Write(locator.key, directory, segment, data, None)
    name = directories.spelled_in(directory, segment)
    descriptor = directories.opened(directory)
    before = status_in(descriptor, name)
    _refuse_directory(before)
    if expect is not None:
        check_found(content_in(descriptor, name), expect, locator)
    return _Write(locator.key, directory, name, data, before)


def _look_for_removal(change: Change, directories: Directories) -> _Removal | None:
    locator, _, expect = change
    parent, _, segment = locator.key.rpartition("/")
    try:
        directory = directories.find(parent)
    except (FileNotFoundError, NotADirectoryError):
        check_found(None, expect, locator)
        return None
    name = directories.spelled_in(directory, segment)
    descriptor = directories.opened(directory)
    before = status_in(descriptor, name)
    _refuse_directory(before)
    if expect is not None:
        check_found(content_in(descriptor, name), expect, locator)
    return None if before is None else _Removal(locator.key, directory, name)


def _refuse_directory(before: os.stat_result | None) -> None:
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")


def _discard(directories: Directories, directory: str, temporary: str) -> None:
    with suppress(OSError):  # what can't go now goes with the next holder of the lock
        confined.discard_entry(temporary, directories.opened(directory))


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def _joined(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
