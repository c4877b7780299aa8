"""The contracts of canonical state as suites that any implementation can run."""

from perdure.testing.context.base import KEEPS_HISTORY, ON_THE_SEAM, Stores
from perdure.testing.context.filesystem import ContextFSSuite
from perdure.testing.context.outbox import OutboxSuite
from perdure.testing.context.relations import RelationSuite

__all__ = [
    "KEEPS_HISTORY",
    "ON_THE_SEAM",
    "ContextFSSuite",
    "OutboxSuite",
    "RelationSuite",
    "Stores",
]
