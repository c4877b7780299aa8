"""The contract of an index as a suite that any implementation can run.

class TestMyIndex(IndexSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> KeptIndex:
        return MyIndex(place / "index")
"""

from holdfast.testing.index.changing import ChangeTests
from holdfast.testing.index.filtering import FilterTests
from holdfast.testing.index.keeping import KeepTests
from holdfast.testing.index.machine import MachineTests
from holdfast.testing.index.tenants import TenantTests
from holdfast.testing.index.texts import TextTests
from holdfast.testing.index.together import TogetherTests
from holdfast.testing.index.vectors import ChildrenTests, VectorTests


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
