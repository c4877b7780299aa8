"""The contract of an index as a suite that any implementation can run."""

from perdure.testing.index.fixtures import CONCURRENT_PROCESSES, SURVIVES_REOPENING
from perdure.testing.index.index_suite import IndexSuite
from perdure.testing.index.reference import MemoryIndex

__all__ = ["CONCURRENT_PROCESSES", "SURVIVES_REOPENING", "IndexSuite", "MemoryIndex"]
