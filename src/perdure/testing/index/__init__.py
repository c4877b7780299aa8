"""The contract of an index as a suite that any implementation can run."""

from perdure.testing.index.base import CONCURRENT_PROCESSES, SURVIVES_REOPENING
from perdure.testing.index.index import IndexSuite
from perdure.testing.index.reference import MemoryIndex

__all__ = ["CONCURRENT_PROCESSES", "SURVIVES_REOPENING", "IndexSuite", "MemoryIndex"]
