"""The contract of an index as a suite that any implementation can run.

class TestMyIndex(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        return MyIndex(place / "index")
"""

from perdure.testing.index.changes import ChangeTests, ReplaceTests, TenantTests
from perdure.testing.index.concurrency import ConcurrencyTests, MachineTests
from perdure.testing.index.searches import ChildrenTests, FilterTests, TextTests, VectorTests


class IndexSuite(
    ChangeTests,
    VectorTests,
    ChildrenTests,
    TextTests,
    FilterTests,
    TenantTests,
    ReplaceTests,
    MachineTests,
    ConcurrencyTests,
):
    """All tests of an index."""
