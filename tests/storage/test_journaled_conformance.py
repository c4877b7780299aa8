"""A backend whose commits are all or nothing is a backend: the whole contract holds for it."""

from pathlib import Path

from perdure.artifacts.disk import FolderDisk
from perdure.storage import StorageBackend
from perdure.storage.backends.device_local import DeviceLocalBackend
from perdure.storage.backends.memory import MemoryBackend
from perdure.storage.backends.vault import VaultBackend
from perdure.storage.wrappers.journaled import Journaled
from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance
from tests.support.artifacts.memory_disk import MemoryDisk


def test_it_says_of_itself_what_the_backend_inside_says(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    inner = VaultBackend(str(tmp_path / "vault"), str(tmp_path / "home"))
    journaled = Journaled(inner, MemoryDisk())
    said = [name for name, value in vars(StorageBackend).items() if isinstance(value, property)]

    for name in said:
        assert getattr(journaled, name) == getattr(inner, name)


class TestJournaledMemory(StorageConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return Journaled(MemoryBackend(), MemoryDisk())


class TestJournaledDeviceLocal(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        inner = DeviceLocalBackend(str(place / "memory"), str(place / "home"))
        return Journaled(inner, FolderDisk(place / "home" / "journal"))
