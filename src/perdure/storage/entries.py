"""The names in a directory, without the links and devices among them."""

import os
import stat
import time

_SETTLED_SECONDS = 0.05  # five ticks of the slowest kernel clock
_REMEMBERED_DIRECTORIES = 4096


class PlainNames:
    """Lists directories, and remembers which of them hold nothing but files and directories.

    Asking each entry what it is costs more than listing them all. A directory that didn't change
    since it was asked, which its change time tells, needn't be asked again. A very recent change
    is not trusted: another one may bear the same time. Should a file system lie about that time,
    the worst is a link's name in a list; every verb still refuses to follow it.
    """

    def __init__(self) -> None:
        self._plain: set[tuple[int, int, int]] = set()

    def in_directory(self, descriptor: int) -> list[str]:
        status = os.fstat(descriptor)  # before the listing, so that a change after it shows
        version = (status.st_dev, status.st_ino, status.st_ctime_ns)
        if version in self._plain:
            return os.listdir(descriptor)
        plain: list[str] = []
        odd = 0
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
                    plain.append(entry.name)
                else:
                    odd += 1
        if not odd and time.time() - status.st_ctime > _SETTLED_SECONDS:
            self._remember(version)
        return plain

    def _remember(self, version: tuple[int, int, int]) -> None:
        if len(self._plain) >= _REMEMBERED_DIRECTORIES:
            self._plain.clear()
        self._plain.add(version)


def is_plain(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry is a file or a directory, and no link to one."""
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def is_plain_mode(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
