"""The contract of the storage seam as a suite that any backend can run.

class TestMyBackend(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MyBackend(place / "store")
"""

from holdfast.testing.storage.base import SURVIVES_REOPENING, StorageSuite
from holdfast.testing.storage.conditions import ConditionTests
from holdfast.testing.storage.conflicts import ConflictTests
from holdfast.testing.storage.derived import DerivedTests, Mirror
from holdfast.testing.storage.keys import KeyTests
from holdfast.testing.storage.machine import MachineTests
from holdfast.testing.storage.many import WriteAllTests
from holdfast.testing.storage.processes import ProcessTests
from holdfast.testing.storage.together import ReadAllTests
from holdfast.testing.storage.verbs import VerbTests

__all__ = ["SURVIVES_REOPENING", "Mirror", "StorageConformance", "StorageSuite"]


class StorageConformance(
    VerbTests,
    ReadAllTests,
    ConditionTests,
    WriteAllTests,
    KeyTests,
    ConflictTests,
    DerivedTests,
    MachineTests,
    ProcessTests,
):
    """Everything that a backend must do."""
