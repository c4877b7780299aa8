"""The contract of an index as a suite that any implementation can run.

class TestMyIndex(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> KeptIndex:
        return MyIndex(place / "index")
"""

from perdure.testing.index.changing import ChangeTests
from perdure.testing.index.filtering import FilterTests
from perdure.testing.index.keeping import KeepTests
from perdure.testing.index.machine import MachineTests
from perdure.testing.index.tenants import TenantTests
from perdure.testing.index.texts import TextTests
from perdure.testing.index.together import TogetherTests
from perdure.testing.index.vectors import ChildrenTests, VectorTests


class IndexSuite(
    ChangeTests,
    VectorTests,
    ChildrenTests,
    TextTests,
    FilterTests,
    TenantTests,
    KeepTests,
    MachineTests,
    TogetherTests,
):
    """Everything that an index must do."""
