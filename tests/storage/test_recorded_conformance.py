"""A backend with a history is a backend: the whole contract holds for it."""

from pathlib import Path

from perdure.storage import StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.storage.vault import VaultBackend
from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance


def history(place: Path) -> History:
    return History.open(str(place / "home" / "history"))


def test_it_says_of_itself_what_the_backend_inside_says(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    inner = VaultBackend(str(tmp_path / "vault"), str(tmp_path / "home"))
    recorded = Recorded(inner, history(tmp_path))
    names = [name for name, value in vars(StorageBackend).items() if isinstance(value, property)]

    assert {"capabilities", "whereabouts", "conflict_strategy"} <= set(names)
    for name in names:
        assert getattr(recorded, name) == getattr(inner, name)


class TestRecordedMemory(StorageConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return Recorded(MemoryBackend(), history(place))


class TestRecordedDeviceLocal(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        inner = DeviceLocalBackend(str(place / "memory"), str(place / "home"))
        return Recorded(inner, history(place))


class TestRecordedVault(StorageConformance):
    promises = frozenset({"concurrent_writers", "conflict_files", "sync", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        (place / "vault").mkdir(exist_ok=True)
        inner = VaultBackend(str(place / "vault"), str(place / "home"))
        return Recorded(inner, history(place))

    @staticmethod
    def plant(place: Path, key: str, text: str) -> None:
        (place / "vault" / key).write_bytes(text.encode())
