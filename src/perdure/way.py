"""Nothing stands in the way of what is derived: whatever does is put aside, and told of once."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def set_aside(path: Path, *, unless: Callable[[Path], bool]) -> Path | None:
    """Give what is at a path another name beside it, unless it is right; return where it is now.

    Nothing is deleted, and no link is followed.
    """
    if not os.path.lexists(path) or unless(path):
        return None
    aside = path.with_name(f"{path.name}-aside-{time.time_ns()}")
    path.rename(aside)
    return aside


class Way:
    """Keeps the way free to the derived folders and files below a folder."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._told: list[str] = []

    def free(self, folder: Path) -> None:
        """Let only folders be where a folder is to be made, and above it up to the top.

        A link to a folder is one. What can't be put aside stays: who makes the folder says why.
        """
        below = folder.relative_to(self._top).parts
        for depth in range(len(below)):
            self._free(self._top.joinpath(*below[: depth + 1]), Path.is_dir)

    def free_file(self, file: Path) -> None:
        """Let only a file be where a file is to be, and only folders above it."""
        self.free(file.parent)
        self._free(file, Path.is_file)

    def _free(self, path: Path, is_right: Callable[[Path], bool]) -> None:
        with suppress(OSError):
            aside = set_aside(path, unless=is_right)
            if aside is not None:
                self._told.append(
                    f"{str(path)!a} was in the place of something derived. It is {aside.name!a} "
                    "now, and what belongs there is made anew"
                )

    def told(self) -> str:
        """Say what was put aside since somebody last asked; nothing if nothing was."""
        told, self._told = self._told, []
        return "; ".join(told)
