"""The folders of a memory's indexes, one for each embedder that it has had."""

from contextlib import AbstractContextManager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Protocol, cast

from perdure.config import SQLITE
from perdure.errors import DamageError, PluginError
from perdure.index.account.file import SUFFIX, turn
from perdure.index.account.schema import FORMAT
from perdure.index.contract import KeptIndex
from perdure.index.stores.sqlite import SqliteIndex
from perdure.model import IndexRecord
from perdure.model.uri import name_of, segment_of
from perdure.plugins import Group, create, offered
from perdure.way import Way

if TYPE_CHECKING:
    from perdure.engine.upkeep import ListedIndex

_GONE = ".gone"
_OF = "+"
"""Between the format and the provider in a folder's name; neither part has it unquoted."""


def suffix_of(provider: str) -> str:
    """Return how the folder names of a provider's indexes end."""
    return f"-{FORMAT}" if provider == SQLITE else f"-{FORMAT}{_OF}{segment_of(provider)}"


def open_index(folder: Path, way: Way | None = None) -> "OpenIndex":
    """Open the index in a folder, whose name ends with the suffix of its provider."""
    _, of, segment = folder.name.rpartition(_OF)
    if not of:
        return SqliteIndex(str(folder), way)
    provider = name_of(segment) or segment
    if provider not in offered(Group.INDEX):
        raise PluginError(
            f"{folder} was made by the index {provider!a}, which is not installed any more. "
            "Fix: install its package again, or remove the folder with `perdure index prune`."
        )
    return open_installed(provider, folder)


def open_installed(provider: str, folder: Path) -> "OpenIndex":
    """Open the index of an installed package; `PluginError` if it can't be used."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = create(Group.INDEX, provider, KeptIndex, str(folder))  # type: ignore[type-abstract] # only for isinstance
    return cast("OpenIndex", _Installed(index, folder))


class OpenIndex(KeptIndex, Protocol):
    """What a memory asks of its index besides the contract."""

    def making(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Let one process or thread at a time make the index; say whether it is this one."""

    def places(self, account_id: str) -> int:
        """Return how many URIs have records."""

    def size(self, account_id: str) -> int:
        """Return how many bytes are kept for an account."""

    def vectors(self, account_id: str, owner_space: str) -> list[tuple[IndexRecord, bytes]]:
        """Return the records of an owner with their vectors, as far as they can be had."""

    def scrub(self, account_id: str) -> None:
        """Leave no byte of records that were removed."""


class _Installed:
    """An index of an installed package; what the contract lacks is answered by its verbs."""

    def __init__(self, index: KeptIndex, folder: Path) -> None:
        self._index = index
        self._folder = folder

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the verbs of the contract
        return getattr(self._index, name)

    def making(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        name = f"{self._folder.name}.{segment_of(account_id)}{SUFFIX}"
        return turn(self._folder.with_name(name), wait=wait)

    def places(self, account_id: str) -> int:
        return len(self._index.stamps(account_id))

    def size(self, account_id: str) -> int:
        """Return the bytes of the whole folder: which of them are an account's is not known."""
        return _size(self._folder) if self._index.owner_spaces(account_id) else 0

    def vectors(self, *_: str) -> list[tuple[IndexRecord, bytes]]:
        return []

    def scrub(self, account_id: str) -> None:
        self._index.delete_account_data(account_id)


class Shelf:
    """Opens each index once, and knows which ones there are."""

    def __init__(self, folder: Path, way: Way) -> None:
        self.folder = folder
        self._way = way
        self._open: dict[str, OpenIndex] = {}

    def open(self, name: str) -> OpenIndex:
        if name not in self._open:
            self._open[name] = open_index(self.folder / name, self._way)
        return self._open[name]

    def close(self) -> None:
        for index in self._open.values():
            index.close()

    def names(self) -> list[str]:
        """Return the names of the indexes that there are by now, whoever made them."""
        return sorted(path.name for path in self.folder.glob("*") if path.is_dir())

    def every(self) -> list[OpenIndex]:
        return [self.open(name) for name in self.names()]

    def name_of(self, index: KeptIndex) -> str:
        """Return the name of an index that was opened here."""
        return next(name for name, each in self._open.items() if each is index)

    def listed(self, account_id: str, answering: KeptIndex) -> "list[ListedIndex]":
        """Return each index that has something of an account."""
        from perdure.engine.upkeep import ListedIndex

        found = []
        for name in self.names():
            index = self.open(name)
            if size := index.size(account_id):
                told = _looked_at(index, account_id)
                found.append(ListedIndex(name, *told, size, answers=index is answering))
        return found

    def remove(self, name: str) -> int:
        """Remove an index, for all accounts; return how many bytes it had."""
        if name in self._open:
            self._open.pop(name).close()
        return removed(self.folder / name)


def _looked_at(index: OpenIndex, account_id: str) -> tuple[int, int]:
    """Return how many places an index has, and its cursor; nothing of one that is damaged."""
    try:
        return index.places(account_id), index.cursor(account_id)
    except DamageError:
        return 0, 0


def removed(folder: Path) -> int:
    """Remove a folder, so that nobody finds half of it; return how many bytes it had."""
    size = _size(folder)
    away = folder.with_name(f"{folder.name}{_GONE}")
    folder.rename(away)
    rmtree(away, ignore_errors=True)
    return size


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
