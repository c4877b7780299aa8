"""What every part of the storage suite starts from."""

from pathlib import Path

import pytest

from perdure.dataclass import fields
from perdure.storage import Capabilities, Locator, StorageBackend
from perdure.testing.suite import Suite

NOTE = Locator("notes/today.md")
FOLDER = Locator("notes")
ROOT = Locator("")

SURVIVES_REOPENING = "survives_reopening"
"""A promise beside the capabilities: opening the same place again finds what was written."""


class StorageSuite(Suite):
    hooks = frozenset({"promises", "open_backend", "plant", "make_maintenance", "layout"})
    known_promises = frozenset({SURVIVES_REOPENING, *(f.name for f in fields(Capabilities))})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        """Open the backend under test, on the empty folder `place` or on something of its own.

        The same place opened again, also in another process, is the same store.
        """
        raise NotImplementedError("say how to open the backend under test")

    @staticmethod
    def plant(place: Path, key: str, text: str) -> None:
        """Put a text into the store as a sync client would, behind the backend's back.

        Only needed by backends that promise `conflict_files`.
        """
        raise NotImplementedError("say how a sync client would write into the store")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path

    @pytest.fixture
    def backend(self, place: Path) -> StorageBackend:
        return self.open_backend(place)

    def promised_capabilities(self) -> Capabilities:
        return Capabilities(**{f.name: f.name in self.promises for f in fields(Capabilities)})


def tree(backend: StorageBackend, root: Locator = ROOT) -> dict[str, str | None]:
    """Return all that a backend holds below `root`: key to text, or None for a directory."""
    found: dict[str, str | None] = {}
    for child in backend.list(root):
        if backend.info(child).is_dir:
            found[child.key] = None
            found.update(tree(backend, child))
        else:
            found[child.key] = backend.read(child)
    return found
