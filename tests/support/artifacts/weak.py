"""The weakest file system that a correct store must survive.

Nothing is certain until it is synced. Until then, and also while a sync runs, a power cut leaves

- of each sector of 512 bytes that was written to: any of the writes, or none; and in place of what
  a write brought there, or of the second half of it, perhaps noise. Bytes beside it, in the same
  sector, stay as they were;
- of the sizes that a file had: any, whatever became of its data, with zeros where none is;
- of the names that were made, removed or changed in a folder: any, in any order. A rename happened
  or did not, but never by halves.

A sync of a file makes its data and its size certain, but not its name. A sync that fails makes
nothing certain, and what was written before it stays uncertain for ever, until it is written again.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from tests.support.artifacts.recording import (
    Enter,
    FailSync,
    Leave,
    Operation,
    Rename,
    Resize,
    SyncFile,
    SyncFolder,
    Write,
    split,
)

SECTOR = 512

Entries = Mapping[str, int]
"""The names of a folder, and which files they stand for."""
Choice = tuple[int, ...]
"""Which of a file's sizes it is, and which content of each sector that is open."""

_DIGEST_BYTES = 16
_MOST_OPTIONS = 64
_Option = TypeVar("_Option")


class Content(NamedTuple):
    data: bytes
    digest: bytes

    @classmethod
    def of(cls, data: bytes) -> "Content":
        return cls(data, blake2b(data, digest_size=_DIGEST_BYTES).digest())


class WeakFileSystem:
    """Follows operations, and knows what a power cut could leave after each."""

    def __init__(self, start: Mapping[str, bytes], seed: int = 0) -> None:
        self._seed = seed
        self.files = [WeakFile(content, seed) for content in start.values()]
        self.folders: dict[str, WeakFolder] = {}
        for number, path in enumerate(start):
            folder, name = split(path)
            self._folder(folder).start(name, number)

    def apply(self, operation: Operation) -> None:
        match operation:
            case Write(file, offset, data):
                self.files[file].write(offset, data)
            case Resize(file, size):
                self.files[file].resize(size)
            case SyncFile(file):
                self.files[file].sync()
            case FailSync(file):
                self.files[file].fail_sync()
            case Enter(folder, name, file):
                self.files.append(WeakFile(b"", self._seed + file))
                self._folder(folder).enter(name, file)
            case Leave(folder, name):
                self._folder(folder).leave(name)
            case Rename(folder, old, new):
                self._folder(folder).rename(old, new)
            case SyncFolder(folder):
                self._folder(folder).sync()

    def _folder(self, name: str) -> "WeakFolder":
        return self.folders.setdefault(name, WeakFolder())


class WeakFile:
    """A file's certain bytes, and what each of its sectors and its size might be instead."""

    def __init__(self, content: bytes, seed: int) -> None:
        self._seed = seed
        self._certain = content
        self._latest = bytearray(content)
        self._sectors: dict[int, list[bytes]] = {}
        self._sizes = [len(content)]
        self._stuck: set[int] = set()
        self._built: dict[Choice, Content] = {}

    def write(self, offset: int, data: bytes) -> None:
        stop = offset + len(data)
        if stop > len(self._latest):
            self.resize(stop)
        self._latest[offset:stop] = data
        for sector, at, piece in _pieces(offset, data):
            noise = random.Random(f"{self._seed} {sector} {at} {len(piece)}")
            torn = piece[: len(piece) // 2] + noise.randbytes(-(-len(piece) // 2))
            self._may_become(sector, at, [noise.randbytes(len(piece)), torn, piece])
            self._stuck.discard(sector)

    def resize(self, size: int) -> None:
        cut = max(0, -(-len(self._latest) // SECTOR) * SECTOR - size)
        self._latest = self._latest[:size].ljust(size, b"\0")
        for sector, at, zeros in _pieces(size, bytes(cut)):
            self._may_become(sector, at, [zeros])
        if size not in self._sizes:
            self._sizes.append(size)
        self._built.clear()

    def _may_become(self, sector: int, at: int, pieces: Sequence[bytes]) -> None:
        before = self._sectors.get(sector) or [_sector(self._certain, sector)]
        after = dict.fromkeys(before)
        for piece in pieces:
            for content in before:
                after[content[:at] + piece + content[at + len(piece) :]] = None
        if len(after) > 1:
            self._sectors[sector] = _thinned(list(after), _sector(self._latest, sector))
            self._built.clear()

    def sync(self) -> None:
        self._certain = bytes(self._latest)
        self._sectors = {n: self._sectors[n] for n in sorted(self._stuck)}
        self._sizes = [len(self._latest)]
        self._built.clear()

    def fail_sync(self) -> None:
        self._stuck |= self._sectors.keys()

    @property
    def options(self) -> list[int]:
        """How many sizes it might have, and how many contents each open sector; the old first."""
        return [len(self._sizes), *map(len, self._sectors.values())]

    @property
    def newest(self) -> Choice:
        """The choice in which nothing was lost."""
        sectors = (
            contents.index(_sector(self._latest, sector))
            for sector, contents in self._sectors.items()
        )
        return (self._sizes.index(len(self._latest)), *sectors)

    def content(self, choice: Choice) -> Content:
        content = self._built.get(choice)
        if content is None:
            content = self._built[choice] = Content.of(self._make(choice))
        return content

    def _make(self, choice: Choice) -> bytes:
        size = self._sizes[choice[0]]
        content = bytearray(self._certain[:size].ljust(size, b"\0"))
        for (sector, contents), index in zip(self._sectors.items(), choice[1:], strict=True):
            start = sector * SECTOR
            length = max(0, min(SECTOR, size - start))
            content[start : start + length] = contents[index][:length]
        return bytes(content)


class WeakFolder:
    """The names that a folder might show."""

    def __init__(self) -> None:
        self._latest: Entries = {}
        self.options: list[Entries] = [{}]
        """What it might show; the old first."""

    def start(self, name: str, file: int) -> None:
        """Add a name that is certain from the first."""
        self._latest = {**self._latest, name: file}
        self.sync()

    def enter(self, name: str, file: int) -> None:
        self._change(lambda entries: {**entries, name: file})

    def leave(self, name: str) -> None:
        self._change(lambda entries: _without(entries, name))

    def rename(self, old: str, new: str) -> None:
        file = self._latest[old]
        self._change(lambda entries: {**_without(entries, old), new: file})

    def _change(self, change: Callable[[Entries], Entries]) -> None:
        self._latest = change(self._latest)
        options = [*self.options]
        options += [changed for changed in map(change, self.options) if changed not in options]
        self.options = _thinned(options, self._latest)

    def sync(self) -> None:
        self.options = [self._latest]

    @property
    def newest(self) -> int:
        return self.options.index(self._latest)


def _pieces(offset: int, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the sector, the place in it and the bytes for each part of a write."""
    stop = offset + len(data)
    at = offset
    while at < stop:
        sector, inside = divmod(at, SECTOR)
        end = min(stop, (sector + 1) * SECTOR)
        yield sector, inside, data[at - offset : end - offset]
        at = end


def _sector(content: bytes | bytearray, sector: int) -> bytes:
    return bytes(content[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")


def _thinned(options: list[_Option], newest: _Option) -> list[_Option]:
    """Return no more options than can be followed, the oldest and the newest among them."""
    if len(options) <= _MOST_OPTIONS:
        return options
    dice = random.Random(len(options))
    chosen = [options[0], *dice.sample(options[1:], _MOST_OPTIONS - 2)]
    return chosen if newest in chosen else [*chosen, newest]


def _without(entries: Entries, name: str) -> Entries:
    return {other: file for other, file in entries.items() if other != name}
