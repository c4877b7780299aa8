"""The files to import: one file, a folder, or a zip archive, which is not unpacked to disk.

Files of a memory are never imported: neither those of the memory that is imported into, which are
recognised by device and inode, nor those of another memory, which are recognised by their names.
"""

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from perdure.context.node_files import CONTENT, META
from perdure.dataclass import dataclass
from perdure.errors import UnreadableSourceError, storage_read_error
from perdure.model.values import shown
from perdure.storage.locator import STORE_NOTE

MOST_BYTES = 8_000_000_000
"""The maximum size of one file, unpacked."""
MOST_RATIO = 200
"""The maximum ratio of unpacked to packed size; exports have about 20."""
SMALL = 1_000_000
"""Files up to this size are unpacked whatever their ratio."""

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What Python raises for an archive that is damaged, encrypted, or packed by an unknown method."""

Result = TypeVar("Result")


def translate_errors(read: Callable[[], Result]) -> Result:
    """Return the result of `read`; raise its errors as `UnreadableSourceError`."""
    try:
        return read()
    except UnreadableSourceError:
        raise
    except OSError as error:
        raise UnreadableSourceError(
            f"it can't be read: {error.strerror}. Fix: make it readable for this user."
        ) from error
    except DAMAGED as error:
        raise UnreadableSourceError(
            f"it can't be unpacked: {shown(str(error))}. Fix: download the archive again."
        ) from error


class BoundedStream(io.RawIOBase):
    """A stream that reads at most `MOST_BYTES`, and reports how much it has read."""

    def __init__(self, open_: Callable[[], BinaryIO], count: Callable[[int], None]) -> None:
        self._stream = translate_errors(open_)
        self._count = count
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io passes a memoryview
        data = translate_errors(lambda: self._stream.read(len(buffer)))
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableSourceError(f"it has more than {MOST_BYTES:,} bytes. Fix: split it.")
        self._count(len(data))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def open_plain_file(path: Path) -> BinaryIO:
    """Open a regular file; raise `UnreadableSourceError` if it is now a link or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    stream = os.fdopen(descriptor, "rb")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return stream
    stream.close()
    raise UnreadableSourceError("it is not a regular file. Fix: replace it by one.")


def open_packed_file(archive: zipfile.ZipFile, packed: zipfile.ZipInfo) -> BinaryIO:
    """Open a file of an archive; raise `UnreadableSourceError` for an archive bomb."""
    if packed.file_size > max(SMALL, MOST_RATIO * packed.compress_size):
        raise UnreadableSourceError(
            f"it would unpack to {packed.file_size:,} bytes from {packed.compress_size:,}. "
            "Fix: check where the archive comes from; unpack a genuine one with another tool."
        )
    if packed.flag_bits & 1:
        raise UnreadableSourceError("it is encrypted. Fix: unpack it, then import the files.")
    return archive.open(packed)  # type: ignore[return-value] # it can be read like one


MOST_FILES = 100_000
ENTERED = frozenset({".specstory", ".cursor"})
"""Hidden folders that are read."""
_SHOWN = frozenset({".cursorrules"})
HEAD = 65_536
"""The number of bytes of a file by which its format is detected."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source. `name` is its path in the source, with slashes; it is never opened."""

    name: str
    size: int
    open: Callable[[], BinaryIO]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]


class ImportSource:
    """The files at a path. Links below it are not followed, and hidden files are left out.

    The path itself may be a link. `store` names the folders of the memory that is imported into:
    they are skipped, and a path inside one of them is refused.
    """

    def __init__(self, path: Path, store: Iterable[Path] = ()) -> None:
        self.path = _real(path)
        self.links: list[str] = []
        """Links and devices, which were skipped."""
        self.hidden: list[str] = []
        self.memory_files = 0
        self.names_read: set[str] = set()
        self._store = {found for each in store if (found := _identity(each))}
        self._folders = {_identity(self.path)}
        self.unlisted: list[tuple[str, str]] = []
        self.bytes_read = 0
        self._archive: zipfile.ZipFile | None = None
        if self.path == self.path.parent:
            raise UnreadableSourceError(
                f"{str(path)!a} is the root folder. Fix: name the folder with the files."
            )
        self._refuse_inside_a_memory(path)
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

    def with_suffix(self, *suffixes: str) -> list[SourceFile]:
        return [entry for entry in self.entries if entry.name.lower().endswith(suffixes)]

    def selected(self, *suffixes: str) -> list[SourceFile]:
        """Return the files with these suffixes; a single file that was named has any suffix."""
        alone = not self.is_folder and self._archive is None
        return list(self.entries) if alone else self.with_suffix(*suffixes)

    def open(self, entry: SourceFile) -> BinaryIO:
        """Open a file; every error while it is read is an `UnreadableSourceError`."""
        self.names_read.add(entry.name)
        return io.BufferedReader(BoundedStream(entry.open, self._count), HEAD)

    def head(self, entry: SourceFile) -> bytes:
        try:
            with io.BufferedReader(BoundedStream(entry.open, lambda _read: None), HEAD) as stream:
                return stream.read(HEAD)
        except UnreadableSourceError:
            return b""

    def below(self, folder: Path, name: str) -> str | None:
        """Return the path of a file relative to a folder; None if it is not below that folder."""
        if self._archive is not None:
            return None
        wanted, file = _identity(folder), self.path / name if self.is_folder else self.path
        above = next((each for each in file.parents if _identity(each) == wanted), None)
        return None if wanted is None or above is None else file.relative_to(above).as_posix()

    def _count(self, read: int) -> None:
        self.bytes_read += read

    # ------------------------------------------------------------ listing
    def _refuse_inside_a_memory(self, given: Path) -> None:
        for each in (self.path, *self.path.parents):
            is_node = all(os.path.lexists(each / name) for name in (META, CONTENT))
            if is_node or _identity(each) in self._store:
                raise UnreadableSourceError(
                    f"{str(given)!a} is inside a memory, in {str(each)!a}: its files are "
                    "remembered already. Fix: name the folder that they were imported from."
                )

    def _mode(self) -> int:
        try:
            return self.path.stat().st_mode
        except OSError as error:
            raise storage_read_error(error, str(self.path.parent), self.path.name) from error

    def _found(self, mode: int) -> Iterator[SourceFile]:
        if stat.S_ISDIR(mode):
            return self._below()
        if not stat.S_ISREG(mode):
            raise UnreadableSourceError(
                f"{str(self.path)!a} is neither a file nor a folder. Fix: name one of them."
            )
        try:
            packed = zipfile.is_zipfile(self.path)
        except OSError as error:
            raise storage_read_error(error, str(self.path.parent), self.path.name) from error
        return self._packed() if packed else iter([self._file(self.path)])

    def _below(self) -> Iterator[SourceFile]:
        for count, path in enumerate(self._paths()):
            if count > MOST_FILES:
                return  # the constructor refuses so many
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
            if STORE_NOTE.name in names and _names_a_store(place / STORE_NOTE.name):
                self.memory_files += sum(len(below) for _, _, below in os.walk(place))
                folders.clear()
                continue
            is_node = {META, CONTENT} <= {*names}
            self.memory_files += len(names) if is_node else 0
            files = [] if is_node else names
            hidden = {each for each in (*folders, *files) if each.startswith(".")}
            hidden -= ENTERED | _SHOWN
            self.hidden += [self._inside(place / name) for name in sorted(hidden)]
            linked = [name for name in folders if (place / name).is_symlink()]
            passed = hidden.union(linked)
            folders[:] = sorted(
                name for name in folders if name not in passed and self._enters(place / name)
            )
            yield from (place / name for name in (*linked, *files) if name not in hidden)

    def _enters(self, folder: Path) -> bool:
        """Return whether to enter a folder: not if it is the memory's, or was entered before."""
        identity = _identity(folder)
        if identity in self._store:
            self.memory_files += sum(len(names) for _, _, names in os.walk(folder))
            return False
        if (
            identity is not None and identity in self._folders
        ):  # it is mounted twice, or inside itself
            self.links.append(self._inside(folder))
            return False
        self._folders.add(identity)
        return True

    def _note(self, error: OSError) -> None:
        self.unlisted.append((self._inside(Path(error.filename)), str(error.strerror)))

    def _file(self, path: Path) -> SourceFile:
        return SourceFile(self._inside(path), path.lstat().st_size, lambda: open_plain_file(path))

    def _inside(self, path: Path) -> str:
        return path.name if path == self.path else path.relative_to(self.path).as_posix()

    def _packed(self) -> Iterator[SourceFile]:
        try:
            self._archive = archive = zipfile.ZipFile(self.path)
        except (*DAMAGED, OSError) as error:
            raise UnreadableSourceError(
                f"{str(self.path)!a} is a damaged archive: {shown(str(error))}. "
                "Fix: download it again."
            ) from error
        names = [packed.filename for packed in archive.infolist()]
        nodes = {name.removesuffix(META) for name in names if name.endswith(f"/{META}")}
        nodes &= {name.removesuffix(CONTENT) for name in names}
        stores = [
            name.removesuffix(STORE_NOTE.name)
            for name in names
            if f"/{name}".endswith(f"/{STORE_NOTE.key}")
        ]
        for packed in archive.infolist():
            if packed.is_dir():
                continue
            name = packed.filename
            if name.rpartition("/")[0] + "/" in nodes or name.startswith(tuple(stores)):
                self.memory_files += 1
            else:
                yield SourceFile(
                    packed.filename, packed.file_size, partial(open_packed_file, archive, packed)
                )


def _names_a_store(note: Path) -> bool:
    """Return whether a note marks its folder as the store of a memory."""
    try:
        with note.open("rb") as file:
            return b"\nperdure-store:" in file.read(HEAD)
    except OSError:
        return False


_Identity = tuple[int, int]


def _identity(path: Path) -> _Identity | None:
    """Return what identifies a file or folder whatever its path; None if there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a NUL
        raise UnreadableSourceError(
            f"{str(path)!a} is unusable: {shown(str(error))}. Fix: name a file or a folder."
        ) from error
