"""A backend that knows only how to change one text passes the contract for several, too."""

from pathlib import Path

import pytest

from perdure.errors import LockLostError, StorageFullError
from perdure.storage import ABSENT, Expectation, Locator, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance
from perdure.testing.storage.storage_suite import tree

A, B, C = (Locator(name) for name in "abc")


class OneByOneInMemory(MemoryBackend):
    write_all = StorageBackend.write_all


class OneByOne(DeviceLocalBackend):
    write_all = StorageBackend.write_all


class TestInMemory(StorageConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return OneByOneInMemory()


class TestOnDisk(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return OneByOne(str(place / "memory"), str(place / "home"))


class FullAfterOne(OneByOneInMemory):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if self._texts:
            raise StorageFullError("no space is left. Fix: free some.")
        return super().write(locator, content, expect=expect)


def test_a_failure_in_between_leaves_those_before_it_and_says_so() -> None:
    backend = FullAfterOne()
    with pytest.raises(StorageFullError, match="Of 3 changes, the 1 before it are made"):
        backend.write_all({B: "1", A: "2", C: "3"})

    assert tree(backend) == {"b": "1"}


class Overtaken(OneByOneInMemory):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        super().write(C, "theirs")
        return super().write(locator, content, expect=expect)


def test_a_writer_that_came_between_is_not_called_a_failed_condition() -> None:
    backend = Overtaken()
    with pytest.raises(LockLostError, match="Of 2 changes, the 1 before it are made"):
        backend.write_all({A: "1", C: "mine"}, expect={C: ABSENT})

    assert tree(backend) == {"a": "1", "c": "theirs"}
