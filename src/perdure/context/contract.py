"""What the stores of canonical state promise."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from perdure.model import ContextNode, OutboxEvent, RelationEdge, RequestContext

LEASE_SECONDS = 300
"""How long a worker may keep an event without a sign of life."""

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
class TenantData(Protocol):
    """Whoever holds something of a tenant can be told to forget it."""

    def delete_account_data(self, account_id: str) -> int:
        """Remove all that belongs to an account; return how much that was. None left is 0."""

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Remove all that belongs to one user or agent of an account; return how much."""


class OutboxStore(TenantData, Protocol):
    """What happened to nodes and is not in the index yet. Events survive a restart.

    An event waits, is leased to one worker at a time, and goes when it is done. One that failed
    waits until `next_retry_at`. One that failed too often is in the dead-letter queue until an
    operator takes it out. A lease that was not extended in time lapses, and the event waits again.
    A verb that is told a `worker_id` does nothing for an event that another worker has by now, and
    says so with `LeaseError`.
    """

    def register_write(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Say that a node was written; after that succeeded."""

    def register_writes(
        self, nodes: Iterable[ContextNode], ctx: RequestContext
    ) -> list[OutboxEvent]:
        """Say it of many at once: all are registered, or none."""

    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        """Say that a node was deleted. `owner_space` is for places whose name doesn't tell."""

    def register_archive(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        """Say that a node was put away, so that no search finds it any more."""

    def register_move(self, from_uri: str, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Say that a node has another name now; `node` is as it is there."""

    def register_relations(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Say that the edges of a node changed, and nothing else of it."""

    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        """Say that the folder of a node changed, with the abstracts of at most 20 in it."""

    def list_pending(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        """Return what can be worked on now, oldest first, each with the URI of its node.

        Left out are events that are leased, dead, or to be tried later.
        """

    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        """Note that an event is being worked on."""

    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        """Remove an event for good; one that is gone already is no error."""

    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        """Put an event aside for an operator, and end its lease."""

    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        """Count one more failure, end the lease, and let the event wait until a time, if told."""

    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        """Lease an event to a worker; of many who ask at once, one gets True.

        False also if the event is done, dead, or to be tried later. The same worker that asks
        again has it still, and its time starts anew.
        """

    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        """Let the lease of a worker last longer; False if it is not its own any more."""

    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        """End a lease; the event waits for the next worker. None to end is no error."""

    def list_unfinished(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        """Return every event that is not done, oldest first: waiting, leased and dead ones."""

    def list_dead(self, account_id: str) -> list[tuple[str, OutboxEvent]]:
        """Return the dead-letter queue of an account, oldest first."""

    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        """Let dead events wait again, with no failure counted; all, unless told which."""

    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        """Remove dead events for good; all, unless told which."""
