"""The three backends that ship pass the whole contract."""

from pathlib import Path

from perdure.storage import StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance


class TestMemory(StorageConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MemoryBackend()


class TestDeviceLocal(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return DeviceLocalBackend(str(place / "memory"), str(place / "home"))


class TestVault(StorageConformance):
    promises = frozenset({"concurrent_writers", "conflict_files", "sync", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        (place / "vault").mkdir(exist_ok=True)
        return VaultBackend(str(place / "vault"), str(place / "home"))

    @staticmethod
    def plant(place: Path, key: str, text: str) -> None:
        (place / "vault" / key).write_bytes(text.encode())
