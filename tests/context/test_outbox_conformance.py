"""The outboxes that ship, and the double that tests use, pass the whole contract."""

from pathlib import Path

from perdure.context.events import Clock, Siblings
from perdure.engine.indexing.outbox_store import OutboxStore
from tests.support.context.index_outbox import IndexOutbox, SqliteOutbox
from tests.support.context.memory_outbox import MemoryOutbox
from tests.support.context.outbox import CONCURRENT_WORKERS, SURVIVES_REOPENING, OutboxSuite


class TestMemory(OutboxSuite):
    promises = frozenset()

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        return MemoryOutbox(clock=clock, siblings=siblings)


class TestSqlite(OutboxSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_WORKERS})

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        return IndexOutbox(str(place / "home" / "index"), clock=clock, siblings=siblings)


class TestDatabase(OutboxSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_WORKERS})

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        return SqliteOutbox(str(place / "home" / "outbox.db"), clock=clock, siblings=siblings)
