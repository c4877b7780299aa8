"""Where the abstracts of folders are kept: files that anybody may throw away at any time."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from perdure.errors import NotTextError
from perdure.storage import Locator
from perdure.storage.backends.device_local import DeviceLocalBackend
from perdure.way import Way

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Abstracts:
    """The tier beside the index. Nothing of it is held open, and what is in its way put aside.

    To look takes next to nothing, for it is done with every save; to write, as long as elsewhere.
    """

    def __init__(self, folder: Path, home: str, way: Way) -> None:
        self._folder = folder
        self._home = home
        self._way = way

    def read(self, locator: Locator) -> str:
        """Return a text; `NotTextError` if something else is there, or above it."""
        try:
            return _read(f"{self._folder}/{locator.key}")
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise NotTextError(f"{locator.key!a} is no text. Fix: none, it is replaced.") from error

    def write_all(self, changes: Mapping[Locator, str | None]) -> None:
        for text in changes:
            self._way.free_file(self._folder / text.key)
        DeviceLocalBackend(str(self._folder), home=self._home).write_all(changes)


def _read(path: str) -> str:
    with open(os.open(path, _FLAGS), "rb") as file:  # noqa: PTH123 - no link is followed
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise IsADirectoryError(path)
        return file.read().decode()
