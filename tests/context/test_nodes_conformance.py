"""Nodes and relations pass their contracts on every backend."""

import secrets
from collections.abc import Callable
from pathlib import Path

from perdure.context.events import Clock
from perdure.context.links import ScannedLinks
from perdure.context.nodes import Nodes, Relations
from perdure.context.note_names import NoteNames
from perdure.context.note_table import NoteTable
from perdure.context.notes import NotesLayout
from perdure.storage import Locator, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.storage.vault import VaultBackend
from tests.support.context import (
    KEEPS_HISTORY,
    ON_THE_SEAM,
    ContextFSSuite,
    RelationSuite,
    Stores,
)
from tests.support.context.index_outbox import LoggedOutbox, indexed_links

Seam = Callable[[StorageBackend], StorageBackend]


def plain(backend: StorageBackend, place: Path, clock: Clock) -> Stores:
    """Return stores that look for links in every node."""
    history = History.open(str(place / "home" / "history"))
    nodes = Nodes(Recorded(backend, history), clock=clock)
    outbox = LoggedOutbox(history, nodes, clock=clock)
    return Stores(nodes, Relations(nodes, ScannedLinks(nodes)), outbox, history.close)


def recorded(backend: StorageBackend, place: Path, clock: Clock) -> Stores:
    history = History.open(str(place / "home" / "history"))
    texts = Recorded(backend, history)
    links = indexed_links(history, texts, str(place / "home" / "index"))
    nodes = Nodes(texts, backlinks=links, clock=clock)

    def close() -> None:
        links.index.close()
        history.close()

    outbox = LoggedOutbox(history, nodes, clock=clock)
    return Stores(nodes, Relations(nodes, links), outbox, close)


def vault(place: Path) -> VaultBackend:
    (place / "vault").mkdir(exist_ok=True)
    return VaultBackend(str(place / "vault"), str(place / "home"))


def device_local(place: Path) -> DeviceLocalBackend:
    return DeviceLocalBackend(str(place / "memory"), str(place / "home"))


def notes(backend: StorageBackend, place: Path, folder: str = "") -> NotesLayout:
    """Return the layout of notes on a backend; its table is made again by each opener."""
    table = place / "home" / f"{secrets.token_hex(4)}.sqlite"
    return NotesLayout(backend, NoteTable(str(table)), NoteNames("acme", "ana"), Locator(folder))


class OnMemory:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return plain(seam(MemoryBackend()), place, clock)


class OnRecordedMemory:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(MemoryBackend()), place, clock)


class OnRecordedDeviceLocal:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(device_local(place)), place, clock)


class OnRecordedVault:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(vault(place)), place, clock)


class NotesInMemory:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(notes(MemoryBackend(), place)), place, clock)


class NotesOnDeviceLocal:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(notes(device_local(place), place)), place, clock)


class NotesInAVault:
    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        return recorded(seam(notes(vault(place), place, "Perdure")), place, clock)


class TestNodesInMemory(OnMemory, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedNodesInMemory(OnRecordedMemory, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedNodesOnDeviceLocal(OnRecordedDeviceLocal, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedNodesInAVault(OnRecordedVault, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRelationsInMemory(OnMemory, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedRelationsInMemory(OnRecordedMemory, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedRelationsOnDeviceLocal(OnRecordedDeviceLocal, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRecordedRelationsInAVault(OnRecordedVault, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class BeyondTheSeam:
    """Stands for somebody whose nodes are no files; the rest of the contracts holds for it."""

    @staticmethod
    def open_stores(place: Path, clock: Clock, seam: Seam) -> Stores:
        del seam
        return plain(MemoryBackend(), place, clock)


class TestNodesBeyondTheSeam(BeyondTheSeam, ContextFSSuite):
    promises = frozenset()


class TestRelationsBeyondTheSeam(BeyondTheSeam, RelationSuite):
    promises = frozenset()


class TestNodesAsNotesInMemory(NotesInMemory, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestNodesAsNotesOnDeviceLocal(NotesOnDeviceLocal, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestNodesAsNotesInAVault(NotesInAVault, ContextFSSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRelationsAsNotesInMemory(NotesInMemory, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRelationsAsNotesOnDeviceLocal(NotesOnDeviceLocal, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})


class TestRelationsAsNotesInAVault(NotesInAVault, RelationSuite):
    promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})
