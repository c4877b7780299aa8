"""The contract of the nodes as a suite that any implementation can run.

class TestMyNodes(ContextFSSuite):
    promises = frozenset({ON_THE_SEAM})

    @staticmethod
    def open_stores(place, outbox, clock, seam) -> Stores:
        nodes = MyNodes(seam(MyBackend(place / "store")), outbox, clock)
        return Stores(nodes, MyRelations(nodes))
"""

from perdure.testing.context.filesystem.access import AccessTests
from perdure.testing.context.filesystem.edits import EditTests
from perdure.testing.context.filesystem.listing import ListTests
from perdure.testing.context.filesystem.moving import MoveTests
from perdure.testing.context.filesystem.states import StateTests
from perdure.testing.context.filesystem.versions import VersionTests
from perdure.testing.context.filesystem.writing import WriteTests

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
