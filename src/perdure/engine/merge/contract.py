"""What a merge policy promises, and whom it may ask."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri, WritePlan


class Known(Protocol):
    """What memory knows already, as far as somebody may see it."""

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        """Return the node at a place; None if none is in use there."""

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether something is there that is not in use: put away, or broken."""

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return nodes of the same owner and category that may speak of the same."""

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return what a page superseded."""


@runtime_checkable
class MergePolicy(Protocol):
    """Decides what becomes of a candidate. It writes nothing.

    The same candidate, with memory as it was left, gives a plan to skip: nothing is said twice.
    What is superseded is in the plan too, as a node of its own; no plan destroys anything.
    """

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Return the plan for a candidate that was validated; `ctx` says in which session."""
