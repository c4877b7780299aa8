"""The contract of the storage seam as a suite that any backend can run.

class TestMyBackend(StorageConformance):
    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MyBackend(place / "store")
"""

from perdure.testing.storage.base import SURVIVES_REOPENING, StorageSuite
from perdure.testing.storage.conditions import ConditionTests
from perdure.testing.storage.conflicts import ConflictTests
from perdure.testing.storage.derived import DerivedTests, Mirror
from perdure.testing.storage.keys import KeyTests
from perdure.testing.storage.machine import MachineTests
from perdure.testing.storage.many import WriteAllTests
from perdure.testing.storage.processes import ProcessTests
from perdure.testing.storage.together import ReadAllTests, ScanTests
from perdure.testing.storage.verbs import VerbTests

__all__ = ["SURVIVES_REOPENING", "Mirror", "StorageConformance", "StorageSuite"]


class StorageConformance(
    VerbTests,
    ReadAllTests,
    ScanTests,
    ConditionTests,
    WriteAllTests,
    KeyTests,
    ConflictTests,
    DerivedTests,
    MachineTests,
    ProcessTests,
):
    """Everything that a backend must do."""
