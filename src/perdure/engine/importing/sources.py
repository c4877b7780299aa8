"""What is to be imported: a file, a folder, or a zip archive, which is never unpacked to disk."""

import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perdure.engine.importing.bounds import DAMAGED, Bounded, opened, unpacked
from perdure.errors import UnreadableSourceError
from perdure.faults import explain_reading
from perdure.model.values import shown

MOST_FILES = 100_000
HEAD = 65_536
"""So much of a file is looked at to tell what it is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a source, by its path there, with slashes. The path is never opened as such."""

    name: str
    size: int
    open: Callable[[], BinaryIO]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]


class Source:
    """The files at a path. Links below it are not followed, and hidden files are left out.

    A path that itself is a link is what its owner meant.
    """

    def __init__(self, path: Path) -> None:
        self.path = _real(path)
        self.links: list[str] = []
        """What was passed over because it is a link or a device."""
        self.unlisted: list[tuple[str, str]] = []
        """What can't be looked into, and why."""
        self.bytes_read = 0
        self._archive: zipfile.ZipFile | None = None
        mode = self._mode()
        self.is_folder = stat.S_ISDIR(mode)
        self.entries = tuple(sorted(self._found(mode), key=lambda entry: entry.name))
        if len(self.entries) > MOST_FILES:
            raise UnreadableSourceError(
                f"{str(path)!a} has more than {MOST_FILES:,} files. Fix: import a part of them."
            )

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()

    def named(self, *suffixes: str) -> list[Entry]:
        """Return the files whose names end so."""
        return [entry for entry in self.entries if entry.name.lower().endswith(suffixes)]

    def meant(self, *suffixes: str) -> list[Entry]:
        """Return the files whose names end so, or the one file that was named, however it ends."""
        alone = not self.is_folder and self._archive is None
        return list(self.entries) if alone else self.named(*suffixes)

    def open(self, entry: Entry) -> BinaryIO:
        """Open a file, to be read in bounds; whatever is wrong is `UnreadableSourceError`."""
        return io.BufferedReader(Bounded(entry.open, self._count), HEAD)

    def head(self, entry: Entry) -> bytes:
        """Return how a file begins; nothing of one that can't be read."""
        before = self.bytes_read
        try:
            with self.open(entry) as stream:
                return stream.read(HEAD)
        except UnreadableSourceError:
            return b""
        finally:
            self.bytes_read = before

    def _count(self, read: int) -> None:
        self.bytes_read += read

    # ------------------------------------------------------------ what is there
    def _mode(self) -> int:
        try:
            return self.path.stat().st_mode
        except OSError as error:
            raise explain_reading(error, str(self.path.parent), self.path.name) from error

    def _found(self, mode: int) -> Iterator[Entry]:
        if stat.S_ISDIR(mode):
            return self._below()
        if not stat.S_ISREG(mode):
            raise UnreadableSourceError(
                f"{str(self.path)!a} is no file and no folder. Fix: name one of them."
            )
        try:
            packed = zipfile.is_zipfile(self.path)
        except OSError as error:
            raise explain_reading(error, str(self.path.parent), self.path.name) from error
        return self._packed() if packed else iter([self._file(self.path)])

    def _below(self) -> Iterator[Entry]:
        for count, path in enumerate(self._paths()):
            if count > MOST_FILES:
                return  # more than are taken, which is refused
            try:
                plain = stat.S_ISREG(path.lstat().st_mode)
            except OSError as error:
                self._note(error)
                continue
            if plain:
                yield self._file(path)
            else:
                self.links.append(self._inside(path))

    def _paths(self) -> Iterator[Path]:
        for above, folders, names in os.walk(self.path, onerror=self._note):
            place = Path(above)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            linked = [name for name in folders if (place / name).is_symlink()]
            for name in (*linked, *names):
                if not name.startswith("."):
                    yield place / name

    def _note(self, error: OSError) -> None:
        self.unlisted.append((self._inside(Path(error.filename)), str(error.strerror)))

    def _file(self, path: Path) -> Entry:
        return Entry(self._inside(path), path.lstat().st_size, lambda: opened(path))

    def _inside(self, path: Path) -> str:
        return path.name if path == self.path else path.relative_to(self.path).as_posix()

    def _packed(self) -> Iterator[Entry]:
        try:
            self._archive = archive = zipfile.ZipFile(self.path)
        except (*DAMAGED, OSError) as error:
            raise UnreadableSourceError(
                f"{str(self.path)!a} is a damaged archive: {shown(str(error))}. "
                "Fix: download it again."
            ) from error
        for packed in archive.infolist():
            if not packed.is_dir():
                yield Entry(packed.filename, packed.file_size, _unpacking(archive, packed))


def _unpacking(archive: zipfile.ZipFile, packed: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    return lambda: unpacked(archive, packed)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a NUL
        raise UnreadableSourceError(
            f"{str(path)!a} leads nowhere: {shown(str(error))}. Fix: name a file or a folder."
        ) from error
