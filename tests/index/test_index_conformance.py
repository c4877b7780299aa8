"""The two indexes that ship pass the whole contract."""

from pathlib import Path

from holdfast.index.contract import KeptIndex
from holdfast.index.stores import MemoryIndex, SqliteIndex
from holdfast.testing.index.base import CONCURRENT_PROCESSES, SURVIVES_REOPENING
from holdfast.testing.index.index import IndexSuite


class TestMemory(IndexSuite):
    promises = frozenset()

    @staticmethod
    def open_index(place: Path) -> KeptIndex:
        return MemoryIndex()


class TestSqlite(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> KeptIndex:
        return SqliteIndex(str(place / "home" / "index"))
