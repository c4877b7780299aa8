"""The merge policies: what they promise, and how candidates of each kind become memories."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, runtime_checkable

from perdure.engine.learn import pages
from perdure.engine.learn.judge import Judge
from perdure.engine.learn.grounds import grounds_of
from perdure.engine.learn.joining import Joining, Judged, kept_apart
from perdure.engine.learn.places import (
    apart_place,
    beside,
    differ_by_value,
    is_near,
    is_profile,
    place_of,
)
from perdure.errors import NodeExistsError
from perdure.model import Action, CandidateMemory, ContextNode, RequestContext, Uri, WritePlan


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


class _PagePolicy:
    """Lets a candidate join a page: the one that says the same, else the one of its name."""

    def __init__(self, known: Known, joining: Joining) -> None:
        self._known = known
        self._joining = joining

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        place = self._place(candidate, ctx)
        page = self._known.at(place, ctx)
        judged = [
            self._joining.judged(candidate, each) for each in self._pages(page, candidate, ctx)
        ]
        for each in judged:
            if each.same is not None:
                return self._joining.merged(each.same, candidate, ctx)
        for each in judged:
            if each.against and self._is_of(each, place, candidate):
                return self._joining.superseded(
                    each.against, candidate, ctx, partial(self._known.formers, each.page, ctx)
                )
        if page is not None:
            return self._added(page, candidate, ctx)
        return self._joining.created(place, candidate, ctx)

    def _added(
        self, page: ContextNode, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        return self._joining.appended(page, candidate, ctx)

    def _pages(
        self, page: ContextNode | None, candidate: CandidateMemory, ctx: RequestContext
    ) -> Iterator[ContextNode]:
        if page is not None:
            yield page
        yield from (
            each for each in self._near(candidate, ctx) if page is None or each.uri != page.uri
        )

    def _near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        del candidate, ctx
        return ()

    def _is_of(self, judged: Judged, place: Uri, candidate: CandidateMemory) -> bool:
        """Whether a page is about what the candidate is about, so far as names tell."""
        there = judged.page.place
        if there == place or is_near(there.name, place.name):
            return True
        said = judged.against[0].statement.text
        return differ_by_value((there.name, said), (place.name, candidate.content))

    def _place(self, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return the place of a candidate; that of its own if its owner took it out of a page."""
        place = self._free(place_of(candidate, ctx.account_id), candidate, ctx)
        page = self._known.at(place, ctx)
        if page is None or pages.cid_of(candidate.content) not in kept_apart(page):
            return place
        return self._free(apart_place(place, pages.plain(candidate.content)), candidate, ctx)

    def _free(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return the place of a candidate; another one if its owner put away what was there."""
        if not self._known.taken(place, ctx):
            return place
        if is_profile(place):
            raise NodeExistsError(
                f"{str(place)!a} is put away or broken, and there is one profile. "
                "Fix: unarchive it, delete it, or run `perdure repair`."
            )
        return beside(place, candidate.content)


class ProfilePolicy(_PagePolicy):
    """Who somebody is: every statement is merged into one page, always at the same place.

    The page itself keeps what was done to it: that a statement was added, or was there.
    """

    def _added(
        self, page: ContextNode, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        return replace(super()._added(page, candidate, ctx), action=Action.MERGE)


class SkillToolPolicy(_PagePolicy):
    """How something is done: practice gathers on one page for each skill or tool, by its name."""


class AggregateTopicPolicy(_PagePolicy):
    """What is said of a topic joins the page of its name, or another one that says the same.

    A page of nearly the same name is asked for contradictions too.
    """

    def _near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        return self._known.near(candidate, ctx)


class AppendOnlyPolicy:
    """What happened is a memory of its own, and never changed by another one."""

    def __init__(self, known: Known, joining: Joining) -> None:
        self._known = known
        self._joining = joining

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        first = place_of(candidate, ctx.account_id)
        for place in (first, beside(first, _identity(candidate))):
            known = self._known.at(place, ctx)
            if known is not None and _tells(known, candidate):
                return WritePlan(action=Action.SKIP, uri=known.uri, reason="It is known.")
            if known is None and not self._known.taken(place, ctx):
                return self._created(place, candidate, ctx)
        raise NodeExistsError(
            f"something else is at {str(first)!a}, and beside it. Fix: move it elsewhere."
        )

    def _created(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        plan = self._joining.created(place, candidate, ctx)
        node = plan.node
        assert node is not None  # noqa: S101 - what is created is a node
        more = {"who": candidate.who or None, "where": candidate.where or None}
        metadata = {**node.metadata, **more}
        told = {name: value for name, value in metadata.items() if value is not None}
        return replace(
            plan, node=replace(node, content=pages.alone(candidate.content), metadata=told)
        )


def _identity(candidate: CandidateMemory) -> str:
    """Return what tells an event from others: what happened, and on which day."""
    day = candidate.when.date().isoformat() if candidate.when else ""
    return f"{day} {pages.plain(candidate.content)}"


def _tells(node: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a node is of the same event, as far as it says."""
    cid = pages.cid_of(candidate.content)
    if [each.cid for each in pages.statements(node.content)] != [cid]:
        return False
    known = grounds_of(node).get(cid)
    days = {each.date() for each in (known and known.when, candidate.when) if each}
    return len(days) < 2  # noqa: PLR2004 - one day, or nobody says which


_KINDS: Mapping[str, Callable[[Known, Joining], MergePolicy]] = {
    "profile": ProfilePolicy,
    "event": AppendOnlyPolicy,
    "case": AppendOnlyPolicy,
    "skill": SkillToolPolicy,
    "tool": SkillToolPolicy,
}


def policy_for(
    category: str, known: Known, judge: Judge, clock: Callable[[], datetime]
) -> MergePolicy:
    """Return how candidates of a category are merged; topics, unless something else is said."""
    return _KINDS.get(category, AggregateTopicPolicy)(known, Joining(judge, clock))
