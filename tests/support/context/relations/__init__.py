"""The contract of the relations as a suite; it is opened as that of the nodes."""

from tests.support.context.relations.edges import EdgeTests
from tests.support.context.relations.links import IncomingTests, LinkTests

__all__ = ["RelationSuite"]


class RelationSuite(EdgeTests, LinkTests, IncomingTests):
    """Everything that the relations must do."""
