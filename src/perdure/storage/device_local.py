"""Folders of plain files as backends: the base of all, and the default, on this device."""

import errno
import os
import stat
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perdure.errors import (
    LockLostError,
    NotTextError,
    PathIsDirectoryError,
    StorageError,
    StorageUnavailableError,
    absent_error,
    storage_error,
    storage_read_error,
)
from perdure.files import make_folder
from perdure.storage import openat
from perdure.storage.changes import (
    Changes,
    Conditions,
    Expectation,
    TextChange,
    check_changes,
    check_expectation,
    check_removal,
    encode_text,
)
from perdure.storage.contract import (
    ROOT,
    Capabilities,
    Finding,
    FindingKind,
    Info,
    Listing,
    Skip,
    StorageBackend,
)
from perdure.storage.locator import (
    MAX_KEY_BYTES,
    TEMPORARY_SUFFIX,
    Locator,
    children_named,
    is_key_segment,
    is_plain_name,
    trusted,
)
from perdure.storage.openat import (
    DIRECTORY,
    FILE,
    LOOK,
    Identity,
    PlainNames,
    identify,
    is_plain,
    is_plain_mode,
    read_all,
)
from perdure.storage.registry import BackendOptions

if TYPE_CHECKING:
    from perdure.storage.batch import WriteBatch
    from perdure.storage.mutex import HeldLock, LockTiming, Mutex

_ATTEMPTS_AFTER_A_STALL = 3
_ABSENT_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR})


class FolderBackend(StorageBackend):
    """Texts as files below `root`; locks are in `home`, which must not be synced."""

    clock = staticmethod(time.time_ns)

    def __init__(self, root: str, home: str, timing: "LockTiming | None" = None) -> None:
        self._root = os.path.realpath(root)
        if os.path.exists(self._root) and not os.path.isdir(self._root):
            raise StorageUnavailableError(
                f"{self._root!a} is a file, not a folder. Fix: name a folder, or move the file."
            )
        self._lock_settings = os.path.join(home, "locks"), timing
        self._identity = self._identify()
        self._open_below = openat.opener(self._root)
        self._names = PlainNames()

    @cached_property
    def _mutex(self) -> "Mutex":
        from perdure.storage.mutex import Mutex  # noqa: PLC0415 - only for writes

        return Mutex(self._root, *self._lock_settings)

    @property
    def whereabouts(self) -> str:
        return self._root

    @property
    def identity(self) -> str:
        return self._root

    # ------------------------------------------------------------ reading

    def read(self, locator: Locator) -> str:
        try:
            descriptor = self._open(locator.key, FILE)
            try:
                data = read_all(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._refuse_root(locator)
            raise self._explain_reading(error, locator) from error
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"{locator.key!a} in {self._root!a} is not UTF-8 text: byte {error.start} is "
                f"{data[error.start]:#04x}. Fix: save it as UTF-8, or move it out of the store."
            ) from error

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)
        if not all(map(is_plain_name, wanted)):  # may be spelled differently on disk
            return super().read_all(directory, wanted)
        try:
            folder = self._open(directory.key, DIRECTORY)
        except FileNotFoundError:
            self._check_root()
            return {}
        except OSError:
            return super().read_all(directory, wanted)
        found = {}
        try:
            for name in wanted:
                with suppress(OSError, UnicodeDecodeError):  # `read` raises the error
                    found[name] = _read_in(folder, name)
        finally:
            os.close(folder)
        return found

    def list(self, locator: Locator) -> list[Locator]:
        with self._opened(locator) as directory:
            names = [] if directory is None else self._names.in_directory(directory)
        return children_named(locator, names)

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        """As in the contract; a stamp has the inode, the size and both times of a file."""
        try:
            start = directory.key
            if start and not is_plain_name(directory.name):  # may be spelled differently on disk
                start = self._spelled(start)
            for key, stamps in openat.scan(self._open_below, start, skip, self.clock):
                yield Listing(trusted(key), stamps)
        except OSError as error:
            if error.errno not in _ABSENT_ERRNOS:
                raise self._explain_reading(error, directory) from error
        self._check_root()

    def exists(self, locator: Locator) -> bool:
        if not locator.key:
            self._check_root()
            return True
        return self._status(locator) is not None

    def info(self, locator: Locator) -> Info:
        status = self._status(locator)
        if not locator.key:
            self._check_root()
            if status is None:
                return Info(locator, is_dir=True, size=0, mtime=0.0)  # not created yet
        if status is None:
            raise absent_error(self._root, locator.key)
        is_dir = stat.S_ISDIR(status.st_mode)
        return Info(locator, is_dir, 0 if is_dir else status.st_size, status.st_mtime)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        entries = self._entries(locator)
        names = {entry.name for entry in entries}
        found = (_finding(entry, locator, names) for entry in entries)
        return sorted(filter(None, found), key=lambda finding: finding.name)

    def _entries(self, locator: Locator) -> Sequence["os.DirEntry[str]"]:
        with self._opened(locator) as directory:
            if directory is None:
                return ()
            with os.scandir(directory) as entries:
                return tuple(entries)

    @contextmanager
    def _opened(self, locator: Locator) -> Iterator[int | None]:
        """Open a directory to list it; None if a text or nothing is there."""
        try:
            directory = self._open(locator.key, DIRECTORY)
        except OSError as error:
            if error.errno not in _ABSENT_ERRNOS:
                raise self._explain_reading(error, locator) from error
            self._check_root()
            yield None
            return
        try:
            if not locator.key:
                self._check_root()
            yield directory
        except StorageError:
            raise
        except OSError as error:
            raise self._explain_reading(error, locator) from error
        finally:
            os.close(directory)

    def _status(self, locator: Locator) -> os.stat_result | None:
        try:
            descriptor = self._open(locator.key, LOOK)
        except OSError as error:
            if error.errno in _ABSENT_ERRNOS:
                self._check_root()
                return None
            if error.errno == errno.ELOOP:
                return None
            raise self._explain_reading(error, locator) from error
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return status if is_plain_mode(status.st_mode) else None

    def _open(self, key: str, flags: int) -> int:
        try:
            return self._open_below(key, flags)
        except FileNotFoundError:
            if key.isascii():
                raise
            return self._open_below(self._spelled(key), flags)

    def _spelled(self, key: str) -> str:
        """Return the NFC `key` as its names are spelled on disk."""
        spelled = ""
        for segment in key.split("/"):
            spelled = f"{spelled}/{self._spelled_in(spelled, segment)}".lstrip("/")
        return spelled

    def _spelled_in(self, directory_key: str, segment: str) -> str:
        if segment.isascii():
            return segment
        try:
            with openat.opened(self._root, directory_key, DIRECTORY) as directory:
                names = os.listdir(directory)
        except OSError:
            return segment
        if segment in names:
            return segment
        same = (name for name in names if unicodedata.normalize("NFC", name) == segment)
        return next(same, segment)

    # ------------------------------------------------------------ changing

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        data = encode_text(content, locator)
        check_expectation(expect)
        self._refuse_root(locator)
        self._land([TextChange(locator, data, expect)])
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_removal(expect)
        self._refuse_root(locator)
        status = self._status(locator)
        if expect is None and status is not None and stat.S_ISDIR(status.st_mode):
            self._commit(locator, lambda held: self._remove_directory(held, locator))
        elif not self._land([TextChange(locator, None, expect)]):
            raise absent_error(self._root, locator.key)

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        wanted = check_changes(changes, expect)
        if wanted:
            self._land(wanted)

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        wanted = check_changes(changes, expect)
        if wanted:
            self._land(wanted, durable=not self.defers_sync)

    def sync(self, locators: Iterable[Locator]) -> None:
        from perdure.storage.batch import sync_below  # noqa: PLC0415 - only for writes

        try:
            sync_below(self._root, self._open_below, [each.key for each in locators])
        except OSError as error:
            raise storage_error(error, self._root, "") from error

    def _land(self, changes: Sequence[TextChange], *, durable: bool = True) -> int:
        """Make the changes; return how many of them changed something."""
        from perdure.storage.batch import WriteBatch  # noqa: PLC0415 - only for writes

        batch = WriteBatch(self._root, self._open_below, changes, durable=durable)
        try:
            self._commit(batch, batch.apply)
        except StorageError as error:
            raise batch.explain_partial(error) from error
        return batch.changed

    def mkdir(self, locator: Locator) -> Locator:
        self._commit(locator, lambda _: self._make(locator))
        return locator

    def _make(self, locator: Locator) -> None:
        from perdure.storage.batch import DirectoryCache  # noqa: PLC0415 - as before

        try:
            with DirectoryCache(self._root, self._open_below) as directories:
                directories.create(locator.key)
                directories.sync_created()
        except NotADirectoryError as error:
            if self._status(locator) is None:
                raise
            raise FileExistsError(errno.EEXIST, "") from error

    def _remove_directory(self, held: "HeldLock", locator: Locator) -> None:
        """Remove an empty directory; the kernel checks that it is empty."""
        from perdure.storage.batch import DirectoryCache  # noqa: PLC0415 - as before

        with DirectoryCache(self._root, self._open_below) as directories:
            above, _, name = directories.find(locator.key).rpartition("/")
            held.verify()
            os.rmdir(name, dir_fd=directories.open(above))
            directories.sync([above])

    def _commit(self, place: "Locator | WriteBatch", change: Callable[["HeldLock"], None]) -> None:
        """Make a change under the lock; try again if the lock was taken over."""
        for _ in range(_ATTEMPTS_AFTER_A_STALL):
            try:
                return self._change(place, change)
            except LockLostError:
                continue
        return self._change(place, change)

    def _change(self, place: "Locator | WriteBatch", change: Callable[["HeldLock"], None]) -> None:
        from perdure.storage.mutex import signals_blocked  # noqa: PLC0415 - as before

        mutex = self._mutex
        with signals_blocked() as pause:
            held = mutex.ask()
            try:
                mutex.acquire(held, pause)
                self._prepare_root()
                change(held)
            except StorageError:
                raise
            except OSError as error:
                self._check_root()
                raise storage_error(error, self._root, place.key) from error
            finally:
                mutex.release(held)

    def _prepare_root(self) -> None:
        """Check, under the lock, that the folder to write into is the one that was opened."""
        self._check_root()

    # ------------------------------------------------------------ the root

    def _identify(self) -> Identity | None:
        try:
            return identify(self._root)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _check_root(self) -> None:
        """Raise if the root was replaced: an unmounted drive must not look like an empty store."""
        if self._identity is not None and self._identify() != self._identity:
            raise StorageUnavailableError(
                f"{self._root!a} is gone or was replaced while it was in use. Nothing was changed. "
                "Fix: mount the drive or put the folder back, then open it again."
            )

    def _refuse_root(self, locator: Locator) -> None:
        if not locator.key:
            raise PathIsDirectoryError(
                f"the root of {self._root!a} is a directory. Fix: name a text below it."
            )

    def _explain_reading(self, error: OSError, locator: Locator) -> StorageError:
        if error.errno in _ABSENT_ERRNOS:
            self._check_root()
            error = FileNotFoundError(errno.ENOENT, "")
        return storage_read_error(error, self._root, locator.key)


def _finding(
    entry: "os.DirEntry[str]", directory: Locator, siblings: Collection[str]
) -> Finding | None:
    name = entry.name
    composed = unicodedata.normalize("NFC", name)
    if not is_plain(entry):
        advice = "a link or device is never followed; replace it with a file"
        return Finding(FindingKind.LINK, directory, name, advice)
    if name.endswith(TEMPORARY_SUFFIX):
        advice = "unfinished; if no write is in progress, a crash left it and you can remove it"
        return Finding(FindingKind.LEFTOVER, directory, name, advice)
    if not is_key_segment(composed):
        return Finding(
            FindingKind.UNUSABLE_NAME, directory, name, "the name is not valid in a key; rename it"
        )
    if len(directory.key.encode()) + 1 + len(composed.encode()) > MAX_KEY_BYTES:
        advice = f"its path has more than {MAX_KEY_BYTES} bytes; move it further up"
        return Finding(FindingKind.UNUSABLE_NAME, directory, name, advice)
    if name != composed and composed in siblings:
        advice = "hidden by the same name in another Unicode form; rename one of the two"
        return Finding(FindingKind.UNUSABLE_NAME, directory, name, advice)
    return None


def _read_in(directory: int, name: str) -> str:
    descriptor = os.open(name, FILE | os.O_NOFOLLOW, dir_fd=directory)
    try:
        return read_all(descriptor).decode()
    finally:
        os.close(descriptor)


class DeviceLocalBackend(FolderBackend):
    """Texts in a private folder that only Perdure writes. The first write creates it."""

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        given = BackendOptions("device-local", options, known={"root"})
        return cls(given.folder("root") or os.path.join(home, "memory"), home)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True)

    @property
    def defers_sync(self) -> bool:
        """True if a restart of the machine can be detected, so that a redo is rare."""
        from perdure.artifacts.disk import boot_id  # noqa: PLC0415 - only for writes

        return bool(boot_id())

    def _prepare_root(self) -> None:
        if self._identity is None:
            make_folder(Path(self._root))
            self._identity = self._identify()
        self._check_root()
