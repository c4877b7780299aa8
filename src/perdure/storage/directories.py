"""The directories that a batch of changes touches: found or made once, and few open at a time."""

import os
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from perdure.storage.commit import make_directory, take_back
from perdure.storage.confined import DIRECTORY, Opener
from perdure.storage.syncing import MOST_OPEN


class Directories:
    """Directories below a root, by their keys as spelled on disk.

    As a context it closes them, and if the changes failed takes back those that were made.
    """

    def __init__(self, root: str, open_below: Opener) -> None:
        self._root = root
        self._open_below = open_below
        self._descriptors: dict[str, int] = {}
        self._spelled: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        self.made: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        if kind is not None:
            take_back(self._root, tuple(self.made))

    def opened(self, spelled: str) -> int:
        """Return the descriptor of a directory; it stays open while no other few are asked for."""
        descriptor = self._descriptors.pop(spelled, None)
        if descriptor is None:
            descriptor = self._open_below(spelled, DIRECTORY)
            if len(self._descriptors) >= MOST_OPEN:
                os.close(self._descriptors.pop(next(iter(self._descriptors))))
        self._descriptors[spelled] = descriptor
        return descriptor

    def those_there(self, spelled: Iterable[str]) -> list[int]:
        """Return the descriptors of some directories; those that somebody took away are left out.

        They are `MOST_OPEN` at most, so that all of them stay open.
        """
        descriptors = []
        for each in spelled:
            with suppress(FileNotFoundError):
                descriptors.append(self.opened(each))
        return descriptors

    def find(self, key: str) -> str:
        """Return how the directory `key` is spelled; `FileNotFoundError` if there is none."""
        if key not in self._spelled:
            self._spelled[key] = self._found(key)
        return self._spelled[key]

    def make(self, key: str) -> str:
        """Make sure that there is a directory `key`, and those above; return how it is spelled."""
        try:
            return self.find(key)
        except FileNotFoundError:
            if not key:
                raise
        parent, _, segment = key.rpartition("/")
        above = self.make(parent)
        name = self.spelled_in(above, segment)
        spelled = f"{above}/{name}" if above else name
        if make_directory(name, self.opened(above)):
            self.made[spelled] = None
        self._spelled[key] = spelled
        return spelled

    def spelled_in(self, spelled: str, segment: str) -> str:
        """Return how the name `segment`, which is composed, is spelled in a directory."""
        if segment.isascii() or spelled in self.made:
            return segment
        if spelled not in self._names:
            names = os.listdir(self.opened(spelled))
            composed = {unicodedata.normalize("NFC", name): name for name in names}
            self._names[spelled] = composed | {name: name for name in names}
        return self._names[spelled].get(segment, segment)

    def _found(self, key: str) -> str:
        try:
            self.opened(key)
        except FileNotFoundError:
            if key.isascii():
                raise
        else:
            return key
        parent, _, segment = key.rpartition("/")
        above = self.find(parent)
        name = self.spelled_in(above, segment)
        spelled = f"{above}/{name}" if above else name
        self.opened(spelled)
        return spelled
