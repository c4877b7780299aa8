"""The contract of the relations as a suite; it is opened as that of the nodes."""

from tests.support.context.relations.incoming import IncomingTests
from tests.support.context.relations.links import LinkTests
from tests.support.context.relations.writing import EdgeTests

__all__ = ["RelationSuite"]


class RelationSuite(EdgeTests, LinkTests, IncomingTests):
    """Everything that the relations must do."""
