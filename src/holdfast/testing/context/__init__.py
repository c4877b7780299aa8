"""The contracts of canonical state as suites that any implementation can run."""

from holdfast.testing.context.base import KEEPS_HISTORY, ON_THE_SEAM, Stores
from holdfast.testing.context.filesystem import ContextFSSuite
from holdfast.testing.context.outbox import OutboxSuite
from holdfast.testing.context.relations import RelationSuite

__all__ = [
    "KEEPS_HISTORY",
    "ON_THE_SEAM",
    "ContextFSSuite",
    "OutboxSuite",
    "RelationSuite",
    "Stores",
]
