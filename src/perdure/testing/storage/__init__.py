"""The contract of the storage seam as a suite that any backend can run.

class TestMyBackend(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MyBackend(place / "store")
"""

from perdure.testing.storage.conditions import ConditionTests, WriteAllTests
from perdure.testing.storage.maintenance import ConflictTests, DerivedTests, MirrorMaintenance
from perdure.testing.storage.processes import ProcessTests
from perdure.testing.storage.storage_machine import StorageMachineTests
from perdure.testing.storage.storage_suite import SURVIVES_REOPENING, StorageSuite
from perdure.testing.storage.verbs import KeyTests, ReadAllTests, ScanTests, VerbTests

__all__ = ["SURVIVES_REOPENING", "MirrorMaintenance", "StorageConformance", "StorageSuite"]


class StorageConformance(
    VerbTests,
    ReadAllTests,
    ScanTests,
    ConditionTests,
    WriteAllTests,
    KeyTests,
    ConflictTests,
    DerivedTests,
    StorageMachineTests,
    ProcessTests,
):
    """Everything that a backend must do."""
