"""The contract of an index as a suite that any implementation can run.

class TestMyIndex(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        return MyIndex(place / "index")
"""

from perdure.testing.index.change_tests import IndexChangeTests
from perdure.testing.index.concurrency import IndexConcurrencyTests
from perdure.testing.index.searches import IndexSearchTests


class IndexSuite(IndexSearchTests, IndexChangeTests, IndexConcurrencyTests):
    """All tests of an index."""
