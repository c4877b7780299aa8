"""The contracts of canonical state: nodes, edges, and what belongs to a tenant."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from perdure.context.links import ONE_HOP
from perdure.model import ContextNode, RelationEdge, RequestContext


@runtime_checkable
class ContextFS(Protocol):
    """The nodes. Each verb first checks what the caller may do.

    A URI in another account, or in an owner space out of the caller's reach, raises
    `AccessDeniedError`, whether a node is there or not. A verb that raises has changed nothing.
    """

    def write_node(self, node: ContextNode, ctx: RequestContext) -> None:
        """Create a node, or write the next version of one, and register the event for the index.

        The files are written in this order: content, relations, abstract, overview, and last the
        meta, which makes the node visible. Version 1 raises `NodeExistsError` if a node is there;
        any other version raises `VersionMismatchError` unless it follows the stored one. Metadata
        that the node does not name stays, and so does the time of creation.
        """

    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        """Return a node as it was written, or as its owner edited it since.

        Edges that lead out of the caller's reach are omitted; a write by the caller keeps them.
        Raises `NodeNotFoundError` if no active node is there, and `BrokenNodeError` if its files
        can't be parsed.
        """

    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        """Delete a node of any status, and its edges; `NodeNotFoundError` if none is there."""

    def archive_node(self, uri: str, ctx: RequestContext) -> None:
        """Archive a node: its files stay, but it is neither read nor found."""

    def unarchive_node(self, uri: str, ctx: RequestContext) -> None:
        """Make an archived node active again."""

    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        """Give a node another URI. Edges and links to it follow, and so does its history.

        A link follows only if all its readers may know of both URIs: each is in the owner space of
        the node that holds the link, or shared by the account.
        """

    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        """Return the URIs directly below one that the caller may see, sorted, without archived."""

    def exists(self, uri: str, ctx: RequestContext) -> bool:
        """Whether an active node is there that the caller may see; never `AccessDeniedError`."""


class RelationStore(Protocol):
    """The edges. Each belongs to the node that it starts from."""

    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        """Return all edges from a node that the caller may see, including links in its content."""

    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        """Add edges; one with the same start, target and type is replaced."""

    def remove_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        """Remove the edges with these starts, targets and types, if they are there."""

    def get_one_hop(
        self, uri: str, ctx: RequestContext, limit: int = ONE_HOP
    ) -> list[RelationEdge]:
        """Return the heaviest edges that start at a node, at most `limit`."""

    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        """Return the edges that lead to a node, from all nodes that the caller may see."""


@runtime_checkable
class TenantStore(Protocol):
    """A store that can delete what belongs to a tenant."""

    def delete_account_data(self, account_id: str) -> int:
        """Delete all that belongs to an account; return how many things that were."""

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Delete all that belongs to one user or agent of an account; return how many."""
