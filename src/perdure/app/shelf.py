"""The folders of a memory's indexes, one for each embedder that it has had."""

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from perdure.errors import DamageError
from perdure.index.contract import KeptIndex
from perdure.index.stores.sqlite import SqliteIndex
from perdure.way import Way

_GONE = ".gone"


@dataclass(frozen=True, slots=True)
class Listed:
    """What there is of one index."""

    name: str
    places: int
    position: int
    """Up to where it is right; 0 if it is not finished."""
    size: int
    """Bytes on the disk."""
    answers: bool


class Shelf:
    """Opens each index once, and knows which ones there are."""

    def __init__(self, folder: Path, way: Way) -> None:
        self.folder = folder
        self._way = way
        self._open: dict[str, SqliteIndex] = {}

    def open(self, name: str) -> SqliteIndex:
        if name not in self._open:
            self._open[name] = SqliteIndex(str(self.folder / name), self._way)
        return self._open[name]

    def close(self) -> None:
        for index in self._open.values():
            index.close()

    def names(self) -> list[str]:
        """Return the names of the indexes that there are by now, whoever made them."""
        return sorted(path.name for path in self.folder.glob("*") if path.is_dir())

    def every(self) -> list[SqliteIndex]:
        return [self.open(name) for name in self.names()]

    def name_of(self, index: KeptIndex) -> str:
        """Return the name of an index that was opened here."""
        return next(name for name, each in self._open.items() if each is index)

    def listed(self, account_id: str, answering: KeptIndex) -> list[Listed]:
        """Tell of each index that has something of an account."""
        found = []
        for name in self.names():
            index = self.open(name)
            if size := index.size(account_id):
                told = _looked_at(index, account_id)
                found.append(Listed(name, *told, size, answers=index is answering))
        return found

    def remove(self, name: str) -> int:
        """Remove an index, for all accounts; return how many bytes it had."""
        self.open(name).close()
        del self._open[name]
        return removed(self.folder / name)


def _looked_at(index: SqliteIndex, account_id: str) -> tuple[int, int]:
    """Return how many places an index has, and its cursor; nothing of one that is damaged."""
    try:
        return index.places(account_id), index.cursor(account_id)
    except DamageError:
        return 0, 0


def removed(folder: Path) -> int:
    """Remove a folder, so that nobody finds half of it; return how many bytes it had."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    away = folder.with_name(f"{folder.name}{_GONE}")
    folder.rename(away)
    rmtree(away, ignore_errors=True)
    return size
