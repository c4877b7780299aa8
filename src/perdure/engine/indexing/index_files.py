"""The files of derived data: indexes of each embedder and of past states, and abstracts."""

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

from perdure.config import SQLITE, EmbeddingSettings
from perdure.context.reader import Reach
from perdure.errors import DamageError, NotTextError, PluginError
from perdure.files import Quarantine, write_whole
from perdure.index.contract import NodeIndex
from perdure.index.sql import FORMAT, EventTable
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import IndexRecord, Uri
from perdure.model.uri import name_of, segment_of
from perdure.plugins import PluginGroup, create, offered
from perdure.storage import Locator
from perdure.storage.device_local import DeviceLocalBackend

FILE = "embedder.json"
_MAX_BYTES = 10_000
_TEXTS = ("provider", "base_url", "model")
_OTHERS = 0o077


def store_settings(folder: Path, settings: EmbeddingSettings) -> None:
    """Store settings atomically, readable only by this user, with the present as their time."""
    fields = {name: getattr(settings, name) for name in (*_TEXTS, "dimension")}
    content = f"{json.dumps(fields, indent=2)}\n".encode()
    path = folder / FILE
    if _content(path) == content:
        os.utime(path)
        return
    write_whole(path, content)


def last_used(folder: Path) -> float:
    """Return when these settings were last in use; 0 if that is unknown."""
    try:
        return (folder / FILE).lstat().st_mtime
    except OSError:
        return 0.0


def stored_settings(folder: Path) -> EmbeddingSettings:
    """Return the stored settings; `DamageError` if there are none that can be trusted."""
    content = _content(folder / FILE)
    if content is None:
        raise DamageError(f"they have no {FILE}. Fix: compute new vectors.")
    with suppress(ValueError, RecursionError):
        match json.loads(content):
            case {"dimension": int() | None, **texts} as fields if set(texts) == set(_TEXTS):
                is_number = not isinstance(fields["dimension"], bool)
                if is_number and all(isinstance(text, str) for text in texts.values()):
                    return EmbeddingSettings(**fields)
    raise DamageError(f"their {FILE} can't be parsed. Fix: compute new vectors.")


def _content(path: Path) -> bytes | None:
    """Return the content of a regular file that only this user can read or write; else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        plain = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not plain or found.st_mode & _OTHERS or found.st_size > _MAX_BYTES:
            return None
        return os.read(descriptor, _MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


_GONE = ".gone"
_OF = "+"
"""Between the format and the provider in a folder's name; neither part has it unquoted."""


def suffix_of(provider: str) -> str:
    return f"-{FORMAT}" if provider == SQLITE else f"-{FORMAT}{_OF}{segment_of(provider)}"


def open_index(folder: Path, quarantine: Quarantine | None = None) -> "OpenIndex":
    """Open the index in a folder, whose name ends with the suffix of its provider."""
    _, of, segment = folder.name.rpartition(_OF)
    if not of:
        return SqliteIndex(str(folder), quarantine)
    provider = name_of(segment) or segment
    if provider not in offered(PluginGroup.INDEX):
        raise PluginError(
            f"{folder} was built by the index {provider!a}, which is no longer installed. "
            "Fix: install its package again, or remove the folder with `perdure index prune`."
        )
    return open_installed(provider, folder)


def open_installed(provider: str, folder: Path) -> "OpenIndex":
    """Open the index of an installed package; `PluginError` if it can't be used."""
    own = folder / "installed"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = create(PluginGroup.INDEX, provider, NodeIndex, str(own))  # type: ignore[type-abstract] # only for isinstance
    return cast("OpenIndex", _InstalledIndex(index, folder))


class OpenIndex(NodeIndex, EventTable, Protocol):
    """What a memory needs of its index besides the contract."""

    def build_lock(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Let one process or thread at a time build the index; yield whether it is this one."""

    def count_uris(self, account_id: str) -> int:
        """Return how many URIs have records."""

    def size(self, account_id: str) -> int:
        """Return how many bytes are stored for an account."""

    def vectors(self, account_id: str, owner_space: str) -> list[tuple[IndexRecord, bytes]]:
        """Return the records of an owner with their vectors; empty if the index can't list them."""

    def scrub(self, account_id: str) -> None:
        """Leave no byte of records that were removed."""


class _InstalledIndex:
    """An index of an installed package, with what `OpenIndex` adds to the contract.

    Its table of events is in a built-in index that has no records.
    """

    def __init__(self, index: NodeIndex, folder: Path) -> None:
        self._index = index
        self._folder = folder
        self._events = events = SqliteIndex(str(folder))
        self.read_events, self.change_events = events.read_events, events.change_events
        self.wipe_events, self.build_lock = events.wipe_events, events.build_lock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the verbs of the contract
        return getattr(self._index, name)

    def close(self) -> None:
        self._events.close()
        self._index.close()

    def delete_account_data(self, account_id: str) -> int:
        self._events.delete_account_data(account_id)
        return self._index.delete_account_data(account_id)

    def count_uris(self, account_id: str) -> int:
        return len(self._index.stamps(account_id))

    def size(self, account_id: str) -> int:
        """Return the bytes of the whole folder: which of them are an account's is not known."""
        return _size(self._folder) if self._index.owner_spaces(account_id) else 0

    def vectors(self, *_: str) -> list[tuple[IndexRecord, bytes]]:
        return []

    def scrub(self, account_id: str) -> None:
        self._index.delete_account_data(account_id)


class IndexFolder:
    """The folder of all indexes of a memory; opens each index once."""

    def __init__(self, folder: Path, quarantine: Quarantine) -> None:
        self.folder = folder
        self._quarantine = quarantine
        self._open: dict[str, OpenIndex] = {}

    def open(self, name: str) -> OpenIndex:
        if name not in self._open:
            self._open[name] = open_index(self.folder / name, self._quarantine)
        return self._open[name]

    def close(self) -> None:
        for index in self._open.values():
            index.close()

    def names(self) -> list[str]:
        """Return the names of the indexes on disk, those of other processes too."""
        return sorted(path.name for path in self.folder.glob("*") if path.is_dir())

    def all(self) -> list[OpenIndex]:
        return [self.open(name) for name in self.names()]

    def name_of(self, index: NodeIndex) -> str:
        return next(name for name, each in self._open.items() if each is index)

    def remove(self, name: str) -> int:
        if name in self._open:
            self._open.pop(name).close()
        return remove_folder(self.folder / name)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents; errors are ignored."""
    from shutil import rmtree  # 2 ms, which a reader does not need

    rmtree(folder, ignore_errors=True)


def remove_folder(folder: Path) -> int:
    """Remove a folder, renamed first so that no process opens half of it; return its bytes."""
    size = _size(folder)
    away = folder.with_name(f"{folder.name}{_GONE}")
    folder.rename(away)
    remove_tree(away)
    return size


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class AbstractFiles:
    """The files of folder abstracts. None is held open; foreign files are quarantined.

    Reading is fast, because every save does it.
    """

    def __init__(self, folder: Path, home: str, quarantine: Quarantine) -> None:
        self._folder = folder
        self._home = home
        self._quarantine = quarantine

    def read(self, locator: Locator) -> str:
        """Return a text; `NotTextError` if something else is there, or above it."""
        try:
            with open(os.open(f"{self._folder}/{locator.key}", _FLAGS), "rb") as file:  # noqa: PTH123 - no link is followed
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise IsADirectoryError(locator.key)
                return file.read().decode()
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise NotTextError(
                f"{locator.key!a} is not a text. Fix: none needed, it is replaced."
            ) from error

    def write_all(self, changes: Mapping[Locator, str | None]) -> None:
        for text in changes:
            self._quarantine.clear_file(self._folder / text.key)
        DeviceLocalBackend(str(self._folder), home=self._home).write_unsynced(changes)


class IndexTenantData:
    """The data of a tenant in the indexes of all embedders."""

    def __init__(self, indexes: Callable[[], Sequence[NodeIndex]]) -> None:
        self._indexes = indexes

    def delete_account_data(self, account_id: str) -> int:
        return sum(index.delete_account_data(account_id) for index in self._indexes())

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        indexes = self._indexes()
        return sum(index.delete_by_owner_space(account_id, owner_space) for index in indexes)


class AbstractTenantData:
    """The abstracts of a tenant's folders, and of sessions that have no other owner."""

    def __init__(self, folder: Path, reach: Reach) -> None:
        self._folder = folder
        self._reach = reach

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(Uri(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        sessions = self._folder.joinpath(Uri(account_id, ("sessions",)).key).glob("*")
        keys = [path.relative_to(self._folder).as_posix() for path in sessions]
        places = filter(None, map(Uri.of_key, keys))
        gone = [each for each in places if self._reach.session_owner(each) in {None, owner_space}]
        return sum(map(self._remove, (Uri(account_id, (f"{kind}s", owner)), *gone)))

    def _remove(self, place: Uri) -> int:
        path = self._folder / place.key
        there = path.exists()
        remove_tree(path)
        return int(there)


class PastTenantData:
    """The indexes of past states, which are all deleted with any tenant."""

    def __init__(self, folder: Path, close: Callable[[], None]) -> None:
        self._folder = folder
        self._close = close

    def _delete_all(self, *_: str) -> int:
        self._close()
        remove_tree(self._folder)
        return 0

    delete_account_data = delete_by_owner_space = _delete_all
