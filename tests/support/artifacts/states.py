"""What a power cut can leave of recorded work."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, product
from typing import NamedTuple

from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import Acknowledged, Recording, SyncFile, SyncFolder
from tests.support.artifacts.weak import (
    Choice,
    Content,
    Entries,
    WeakFile,
    WeakFileSystem,
    WeakFolder,
)

_DIGEST_BYTES = 16
_TRIES_IN_VAIN = 50


class CrashState(NamedTuple):
    """What a power cut left, and what must hold all the same."""

    files: dict[str, bytes]
    digest: bytes
    """Differs where the files do."""
    promises: tuple[object, ...]
    """What had been acknowledged before, in order."""
    operations: int
    """How many had been begun."""

    def disk(self) -> MemoryDisk:
        """Return the disk as it is found when the power is back."""
        return MemoryDisk(self.files, boot=self.digest.hex())


def crash_states(
    recording: Recording, *, since: int = 0, most: int = 1000, seed: int = 0
) -> Iterator[CrashState]:
    """Yield what a power cut could leave, at any moment after the first `since` operations.

    At each moment all that is possible, if there are no more than `most` ways; else the states that
    differ in one thing from all or nothing, and then some at random. The same seed gives the same.

    Between two syncs the last moment stands for all: what could be left before can be left then,
    and more has been promised.
    """
    system = WeakFileSystem(recording.start, seed)
    promises: list[object] = []
    for number, operation in enumerate(recording.operations):
        if isinstance(operation, SyncFile | SyncFolder) and number >= since:
            yield from _at(system, most, seed, (tuple(promises), number))
        if isinstance(operation, Acknowledged):
            promises.append(operation.promise)
        else:
            system.apply(operation)
    yield from _at(system, most, seed, (tuple(promises), len(recording.operations)))


def _at(
    system: WeakFileSystem, most: int, seed: int, moment: tuple[tuple[object, ...], int]
) -> Iterator[CrashState]:
    for image in images(system, most, seed):
        yield CrashState(*image, *moment)


class Image(NamedTuple):
    files: dict[str, bytes]
    digest: bytes


def images(system: WeakFileSystem, most: int, seed: int = 0) -> Iterator[Image]:
    """Yield what a power cut could leave now, each image once and no more than `most`."""
    dice = random.Random(seed)
    ways = _Ways(system)
    if ways.count() <= most:
        yield from _distinct(ways.all(), most, tries=math.inf)
    else:
        some = chain(ways.corners(most // 2, dice), ways.at_random(dice))
        yield from _distinct(some, most, tries=_TRIES_IN_VAIN)


def _distinct(found: Iterator[Image], most: int, tries: float) -> Iterator[Image]:
    seen: set[bytes] = set()
    in_vain = 0
    for image in found:
        if image.digest in seen:
            in_vain += 1
            if in_vain > tries:
                return
            continue
        in_vain = 0
        seen.add(image.digest)
        yield image
        if len(seen) == most:
            return


class _Ways:
    """How the folders and files can turn out at one moment."""

    def __init__(self, system: WeakFileSystem) -> None:
        self._files: list[WeakFile] = system.files
        self._names = list(system.folders)
        self._folders: list[WeakFolder] = list(system.folders.values())

    def count(self) -> int:
        return sum(
            math.prod(math.prod(self._files[file].options) for file in shown.values())
            for shown in self._shown()
        )

    def all(self) -> Iterator[Image]:
        for shown in self._shown():
            contents = [_contents(self._files[file]) for file in shown.values()]
            for chosen in product(*contents):
                yield _image(dict(zip(shown, chosen, strict=True)))

    def _shown(self) -> Iterator[Entries]:
        for options in product(*(folder.options for folder in self._folders)):
            yield self._paths(options)

    def _paths(self, options: Sequence[Entries]) -> Entries:
        return {
            folder + name: file
            for folder, entries in zip(self._names, options, strict=True)
            for name, file in entries.items()
        }

    def corners(self, most: int, dice: random.Random) -> Iterator[Image]:
        """Yield images in which all is new or all is old, but for one thing at most."""
        newest = self._newest()
        oldest = (0,) * len(newest)
        yield self._chosen(newest)
        yield self._chosen(oldest)
        single = [
            (base, place, option)
            for place, options in enumerate(self._options())
            for option in range(options)
            for base in (newest, oldest)
        ]
        for base, place, option in dice.sample(single, min(most, len(single))):
            yield self._chosen((*base[:place], option, *base[place + 1 :]))

    def at_random(self, dice: random.Random) -> Iterator[Image]:
        """Yield mixtures for ever, some of them mostly new and some mostly old."""
        newest, options = self._newest(), self._options()
        oldest = (0,) * len(newest)
        while True:
            share = dice.choice((0.0, 0.5, 0.9))
            base = dice.choice((newest, oldest))
            yield self._chosen(
                tuple(
                    usual if dice.random() < share else dice.randrange(count)
                    for usual, count in zip(base, options, strict=True)
                )
            )

    def _options(self) -> list[int]:
        """Return how many options there are for each folder, and then for each part of a file."""
        files = chain.from_iterable(file.options for file in self._files)
        return [*(len(folder.options) for folder in self._folders), *files]

    def _newest(self) -> Choice:
        files = chain.from_iterable(file.newest for file in self._files)
        return (*(folder.newest for folder in self._folders), *files)

    def _chosen(self, choice: Choice) -> Image:
        rest = iter(choice)
        options = [folder.options[next(rest)] for folder in self._folders]
        choices = [tuple(next(rest) for _ in file.options) for file in self._files]
        shown = self._paths(options).items()
        return _image({path: self._files[file].content(choices[file]) for path, file in shown})


def _contents(file: WeakFile) -> list[Content]:
    """Return all that the file might hold, each once."""
    return list(dict.fromkeys(map(file.content, product(*map(range, file.options)))))


def _image(chosen: Mapping[str, Content]) -> Image:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted(chosen):
        digest.update(path.encode() + b"\0" + chosen[path].digest)
    return Image({path: content.data for path, content in chosen.items()}, digest.digest())
