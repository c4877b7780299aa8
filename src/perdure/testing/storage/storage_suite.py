"""The base of the storage suite."""

from pathlib import Path

import pytest

from perdure.dataclass import fields
from perdure.storage import Capabilities, Locator, StorageBackend
from perdure.testing.suite import Suite

NOTE = Locator("notes/today.md")
FOLDER = Locator("notes")
ROOT = Locator("")

SURVIVES_REOPENING = "survives_reopening"
"""A promise beside the capabilities: a store that is opened again has what was written."""


class StorageSuite(Suite):
    hooks = frozenset({"promises", "open_backend", "plant", "make_maintenance", "layout"})
    known_promises = frozenset({SURVIVES_REOPENING, *(f.name for f in fields(Capabilities))})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        """Open the backend under test, in the empty folder `place` or in storage of its own.

        The same `place`, opened again or in another process, is the same store.
        """
        raise NotImplementedError("define open_backend to open the backend under test")

    @staticmethod
    def plant(place: Path, key: str, text: str) -> None:
        """Put a text into the store as a sync client would, without the backend.

        Only needed by backends that promise `conflict_files`.
        """
        raise NotImplementedError("define plant to write into the store as a sync client would")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path

    @pytest.fixture
    def backend(self, place: Path) -> StorageBackend:
        return self.open_backend(place)

    def promised_capabilities(self) -> Capabilities:
        return Capabilities(**{f.name: f.name in self.promises for f in fields(Capabilities)})


def tree(backend: StorageBackend, root: Locator = ROOT) -> dict[str, str | None]:
    """Return the contents of a backend below `root`: key to text, or None for a directory."""
    found: dict[str, str | None] = {}
    for child in backend.list(root):
        if backend.info(child).is_dir:
            found[child.key] = None
            found.update(tree(backend, child))
        else:
            found[child.key] = backend.read(child)
    return found
