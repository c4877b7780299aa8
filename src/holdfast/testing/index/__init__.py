"""The contracts of derived state as suites that any implementation can run."""

from holdfast.testing.index.base import CONCURRENT_PROCESSES, SURVIVES_REOPENING
from holdfast.testing.index.embedder import EmbedderSuite
from holdfast.testing.index.index import IndexSuite

__all__ = ["CONCURRENT_PROCESSES", "SURVIVES_REOPENING", "EmbedderSuite", "IndexSuite"]
