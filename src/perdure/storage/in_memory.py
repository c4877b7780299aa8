"""Texts in the memory of this process: for tests and experiments."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from perdure.errors import (
    AbsentError,
    DirectoryNotEmptyError,
    PathIsDirectoryError,
    PathIsFileError,
)
from perdure.storage.changes import (
    Changes,
    Conditions,
    Expectation,
    below_text,
    check_changes,
    check_expectation,
    check_found,
    check_removal,
    encode_text,
)
from perdure.storage.contract import ROOT, Capabilities, Info, Listing, Skip, StorageBackend
from perdure.storage.locator import Locator


class MemoryBackend(StorageBackend):
    """A dictionary of texts. Threads may share it; it is lost with the process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._texts: dict[Locator, bytes] = {}
        self._mtimes: dict[Locator, float] = {ROOT: clock()}
        self._writes: dict[Locator, int] = {}
        self._counted = count()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def read(self, locator: Locator) -> str:
        with self._lock:
            return self._bytes_at(locator).decode()

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        data = encode_text(content, locator)
        check_expectation(expect)
        with self._lock:
            self._refuse_directory(locator)
            self._missing_directories(locator.parent)
            check_found(self._texts.get(locator), expect, locator)
            self._put(locator, data)
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_removal(expect)
        with self._lock:
            if not locator.key or expect is not None:
                self._refuse_directory(locator)
            check_found(self._texts.get(locator), expect, locator)
            if locator not in self._mtimes:
                raise _absent(locator)
            if any(self._children(locator)):
                raise DirectoryNotEmptyError(
                    f"{str(locator)!a} is not empty. Fix: remove what it holds first."
                )
            self._texts.pop(locator, None)
            del self._mtimes[locator]

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        wanted = check_changes(changes, expect)
        with self._lock:
            for locator, data, condition in wanted:
                self._refuse_directory(locator)
                if data is not None:
                    self._missing_directories(locator.parent)
                check_found(self._texts.get(locator), condition, locator)
            for locator, data, _ in wanted:
                if data is None:
                    self._texts.pop(locator, None)
                    self._mtimes.pop(locator, None)
                else:
                    self._put(locator, data)

    def list(self, locator: Locator) -> list[Locator]:
        with self._lock:
            return sorted(self._children(locator))

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        for here, stamps in super().scan(directory, skip=skip):
            writes = {name: self._writes.get(here.child(name)) for name in stamps or ()}
            yield Listing(here, {name: str(number).encode() for name, number in writes.items()})

    def exists(self, locator: Locator) -> bool:
        return locator in self._mtimes

    def info(self, locator: Locator) -> Info:
        with self._lock:
            if locator not in self._mtimes:
                raise _absent(locator)
            text = self._texts.get(locator)
            return Info(locator, text is None, len(text or b""), self._mtimes[locator])

    def mkdir(self, locator: Locator) -> Locator:
        with self._lock:
            if locator in self._texts:
                raise PathIsFileError(
                    f"{str(locator)!a} is a text, so no directory can be created there. "
                    "Fix: choose another name, or remove the text."
                )
            missing = self._missing_directories(locator)
            self._mtimes.update(dict.fromkeys(missing, self._clock()))
        return locator

    def _put(self, locator: Locator, data: bytes) -> None:
        missing = self._missing_directories(locator.parent)
        self._texts[locator] = data
        self._writes[locator] = next(self._counted)
        self._mtimes.update(dict.fromkeys([*missing, locator], self._clock()))

    def _bytes_at(self, locator: Locator) -> bytes:
        self._refuse_directory(locator)
        if locator not in self._texts:
            raise _absent(locator)
        return self._texts[locator]

    def _refuse_directory(self, locator: Locator) -> None:
        if locator in self._mtimes and locator not in self._texts:
            raise PathIsDirectoryError(
                f"{str(locator)!a} is a directory. Fix: name a text below it."
            )

    def _missing_directories(self, locator: Locator) -> Sequence[Locator]:
        missing = []
        while locator not in self._mtimes:
            missing.append(locator)
            locator = locator.parent
        if locator in self._texts:
            raise below_text(locator)
        return missing

    def _children(self, locator: Locator) -> Iterator[Locator]:
        return (at for at in self._mtimes if at.key and at.parent == locator)


def _absent(locator: Locator) -> AbsentError:
    return AbsentError(
        f"nothing is at {str(locator)!a}. Fix: list the place above to see what is there."
    )
