"""The contract of the relations as a suite; it is opened as that of the nodes."""

from perdure.testing.context.relations.incoming import IncomingTests
from perdure.testing.context.relations.links import LinkTests
from perdure.testing.context.relations.writing import EdgeTests

__all__ = ["RelationSuite"]


class RelationSuite(EdgeTests, LinkTests, IncomingTests):
    """Everything that the relations must do."""
