"""Where the indexes of moments lie: a folder for each of the last few that somebody asked about."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import utime
from pathlib import Path
from shutil import rmtree
from time import time

from perdure.app.shelf import open_installed
from perdure.config import SQLITE
from perdure.engine.past import KEPT, Origin
from perdure.errors import PerdureError
from perdure.index.contract import KeptIndex
from perdure.index.stores.sqlite import SqliteIndex
from perdure.way import Way

_UNFINISHED = ".unfinished"
_AN_HOUR = 3600


class SqliteMoments:
    """The indexes of moments in files, beside that of the present."""

    def __init__(
        self, folder: Path, present: Path, way: Way | None = None, provider: str = SQLITE
    ) -> None:
        self._folder = folder
        self._provider = provider
        self._present = present
        self._way = way or Way(folder)

    def open(self, position: int) -> KeptIndex:
        """Open the index of a moment, and throw away those that nobody asked for in a while."""
        folder = self._at(position)
        self._way.free(folder)
        with suppress(OSError):  # then it is read, if it is there
            self._tidy(folder)
        if self._provider != SQLITE:
            return open_installed(self._provider, folder)
        return SqliteIndex(str(folder), self._way)

    def unkept(self) -> KeptIndex:
        """Return an empty index for a moment that can't be kept."""
        from perdure.index.stores.memory import MemoryIndex

        return MemoryIndex()

    def _tidy(self, folder: Path) -> None:
        """Make the folder of a moment, and remove what nobody needs any more."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        utime(folder)
        every = [path for path in self._folder.iterdir() if path.name.isdigit()]
        others = [path for path in every if path != folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[KEPT - 1 :]:
            rmtree(old, ignore_errors=True)
        for left in folder.glob(f"*{_UNFINISHED}"):
            if left.stat().st_mtime < time() - _AN_HOUR:
                rmtree(left, ignore_errors=True)

    def near(self, account_id: str, position: int) -> list[Origin]:
        """Return the indexes of an account that are finished, the nearest to a moment first.

        Only those of the built-in index can be duplicated.
        """
        if self._provider != SQLITE:
            return []
        others = [each for each in self._folder.glob("[0-9]*") if each != self._at(position)]
        found = [
            Origin(int(folder.name))
            for folder in others
            if folder.name == str(_cursor(folder, account_id))
        ]
        if now := _cursor(self._present, account_id):
            found.append(Origin(now, is_present=True))
        return sorted(found, key=lambda origin: abs(origin.position - position))

    @contextmanager
    def duplicated(self, account_id: str, origin: Origin, position: int) -> Iterator[SqliteIndex]:
        """Give a duplicate of an index; when all went well, it becomes that of the moment."""
        source = self._present if origin.is_present else self._at(origin.position)
        work = self._at(position) / f"{secrets.token_hex(8)}{_UNFINISHED}"
        try:
            with SqliteIndex(str(source)) as index:
                made = index.duplicate(account_id, str(work))
            with made:
                yield made
                is_finished = made.cursor(account_id) == position
            if is_finished:
                SqliteIndex(str(self._at(position))).adopt(account_id, made)
        finally:
            rmtree(work, ignore_errors=True)

    def _at(self, position: int) -> Path:
        return self._folder / str(position)


def _cursor(folder: Path, account_id: str) -> int:
    """Return how far the index in a folder is; 0 also if it can't be read."""
    try:
        with SqliteIndex(str(folder)) as index:
            return index.cursor(account_id)
    except PerdureError:
        return 0
