"""The contract of the nodes as a suite that any implementation can run.

class TestMyNodes(ContextFSSuite):
    promises = frozenset({ON_THE_SEAM})

    @staticmethod
    def open_stores(place, outbox, clock, seam) -> Stores:
        nodes = MyNodes(seam(MyBackend(place / "store")), outbox, clock)
        return Stores(nodes, MyRelations(nodes))
"""

from tests.support.context.filesystem.access import AccessTests, ListTests
from tests.support.context.filesystem.edits import EditTests
from tests.support.context.filesystem.states import MoveTests, StateTests
from tests.support.context.filesystem.writes import VersionTests, WriteTests

__all__ = ["ContextFSSuite"]


class ContextFSSuite(
    WriteTests,
    VersionTests,
    AccessTests,
    StateTests,
    MoveTests,
    ListTests,
    EditTests,
):
    """Everything that the nodes must do."""
