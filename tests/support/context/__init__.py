"""The contracts of canonical state as suites that any implementation can run."""

from tests.support.context.base import KEEPS_HISTORY, ON_THE_SEAM, Stores
from tests.support.context.filesystem import ContextFSSuite
from tests.support.context.outbox import OutboxSuite
from tests.support.context.relations import RelationSuite

__all__ = [
    "KEEPS_HISTORY",
    "ON_THE_SEAM",
    "ContextFSSuite",
    "OutboxSuite",
    "RelationSuite",
    "Stores",
]
