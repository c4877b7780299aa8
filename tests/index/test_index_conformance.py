"""The index that ships, in files and in memory, and what it is compared with pass the contract."""

from pathlib import Path

from perdure.index.contract import NodeIndex
from perdure.index.sqlite_index import SqliteIndex
from perdure.testing.index.fixtures import CONCURRENT_PROCESSES, SURVIVES_REOPENING
from perdure.testing.index.index_suite import IndexSuite
from perdure.testing.index.reference import MemoryIndex


class TestMemory(IndexSuite):
    promises = frozenset()

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        return MemoryIndex()


class TestSqlite(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        return SqliteIndex(str(place / "home" / "index"))


class TestSqliteInMemory(IndexSuite):
    promises = frozenset()

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        return SqliteIndex.in_memory()
