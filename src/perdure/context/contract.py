"""What the stores of canonical state promise."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from perdure.model import ContextNode, RelationEdge, RequestContext

ONE_HOP = 3
"""How many neighbours are asked for, unless somebody says."""


@runtime_checkable
class ContextFS(Protocol):
    """The nodes. Each verb asks first whether the caller may, and tells the others nothing.

    A place in another account, or in a space out of the caller's reach, is `AccessDeniedError`,
    whether something is there or not. A verb that raises has changed nothing.
    """

    def write_node(self, node: ContextNode, ctx: RequestContext) -> None:
        """Make a node, or the next version of one, and register that for the index.

        Written in this order: content, relations, abstract and overview, and last the meta, which
        makes it visible all at once. Version 1 must not be there yet (`NodeExistsError`); any
        other must follow the one that is there (`VersionMismatchError`). Metadata that it does not
        name stays, and so does the time of creation.
        """

    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        """Return a node, wholly as it was written, or as its owner edited it since.

        Edges that lead out of the caller's reach are left out; a write by the caller keeps them.
        `NodeNotFoundError` if there is none that is active; `BrokenNodeError` if its files can't
        be understood.
        """

    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        """Remove a node, in whatever state it is, and its edges; `NodeNotFoundError` if none is."""

    def archive_node(self, uri: str, ctx: RequestContext) -> None:
        """Put a node away: its files stay, but nobody reads or finds it."""

    def unarchive_node(self, uri: str, ctx: RequestContext) -> None:
        """Take an archived node back into use."""

    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        """Give a node another name. Edges and links to it follow, and so does its history.

        A link follows only if all who read it may know of both places: both are in the space of
        the node that holds it, or shared by the account.
        """

    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        """Return the URIs right below a place that the caller may see, in order; none archived."""

    def exists(self, uri: str, ctx: RequestContext) -> bool:
        """Whether an active node is there that the caller may see; it never raises for reach."""


class RelationStore(Protocol):
    """The edges. Each belongs to the node that it starts from."""

    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        """Return all edges from a node that the caller may see, links in its content among them."""

    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        """Add edges, or put them in place of those with the same start, target and type."""

    def remove_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        """Take away the edges with these starts, targets and types, if they are there."""

    def get_one_hop(
        self, uri: str, ctx: RequestContext, limit: int = ONE_HOP
    ) -> list[RelationEdge]:
        """Return the heaviest edges that start at a node, at most `limit`."""

    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        """Return the edges that lead to a node, from all that the caller may see."""


@runtime_checkable
class TenantStore(Protocol):
    """Whoever holds something of a tenant can be told to forget it."""

    def delete_account_data(self, account_id: str) -> int:
        """Remove all that belongs to an account; return how much that was. None left is 0."""

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Remove all that belongs to one user or agent of an account; return how much."""
