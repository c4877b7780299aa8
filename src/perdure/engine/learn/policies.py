"""The merge policies: what they promise, and how candidates of each kind become memories."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, runtime_checkable

from perdure.engine.learn import pages
from perdure.engine.learn.changes import (
    Certainty,
    change_in,
    completed,
    is_fragment,
    outdates,
    searched,
)
from perdure.engine.learn.grounds import grounds_of
from perdure.engine.learn.joining import Joining, Judged, Match, kept_apart
from perdure.engine.learn.judge import Judge
from perdure.engine.learn.places import (
    apart_place,
    beside,
    differ_by_value,
    is_near,
    is_profile,
    of_project,
    place_of,
)
from perdure.errors import NodeExistsError
from perdure.model import Action, CandidateMemory, ContextNode, RequestContext, Uri, WritePlan
from perdure.model.record import PROJECT


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
        candidate, ended = self._completed(candidate, ctx)
        place = self._place(candidate, ctx)
        page = self._known.at(place, ctx)
        found = list(self._pages(page, candidate, ctx))
        judged = [self._joining.judged(candidate, each) for each in found]
        for each in judged:
            if each.same is not None:
                return self._joining.merged(each.same, candidate, ctx)
        ends, doubts = self._outdated(candidate, [*ended, *found], ctx)
        plan = self._planned(candidate, page, place, ctx, (judged, ends))
        changed = {node.uri for node in (plan.node, *plan.former) if node is not None}
        doubted = (self._joining.doubted(each, candidate) for each in doubts)
        return replace(plan, doubted=tuple(n for n in doubted if n.uri not in changed))

    def _planned(
        self,
        candidate: CandidateMemory,
        page: ContextNode | None,
        place: Uri,
        ctx: RequestContext,
        found: tuple[Sequence[Judged], Sequence[Match]],
    ) -> WritePlan:
        """Return the plan for something new: it supersedes, stands beside others, or alone."""
        judged, ends = found
        against = [
            each.against for each in judged if each.against and self._is_of(each, place, candidate)
        ]
        for matches in ([ends] if ends else []) + against:
            formers = partial(self._known.formers, matches[0].page, ctx)
            return self._joining.superseded(matches, candidate, ctx, formers)
        if page is not None:
            return self._added(page, candidate, ctx)
        return self._joining.created(place, candidate, ctx)

    # ------------------------------------------------------------ what changed
    def _completed(
        self, candidate: CandidateMemory, ctx: RequestContext
    ) -> tuple[CandidateMemory, list[ContextNode]]:
        """Return a candidate that names only a new value as the whole statement it makes."""
        if not is_fragment(candidate.content):
            return candidate, []
        near = [each for each in self._related(candidate, ctx) if _is_of_project(each, candidate)]
        known = {each.text: page for page in near for each in pages.statements(page.content)}
        told = completed(candidate.content, known)
        if told is None:
            return candidate, []
        whole, old = told
        more = {**candidate.metadata, "replaces": [pages.cid_of(old)]}
        slug = candidate.slug and (known[old].place.name or candidate.slug)
        return replace(candidate, content=whole, slug=slug, metadata=more), [known[old]]

    def _outdated(
        self, candidate: CandidateMemory, found: Sequence[ContextNode], ctx: RequestContext
    ) -> tuple[list[Match], list[list[Match]]]:
        """Return what ends with a candidate, all of one page, and by page what may be outdated."""
        ends: dict[str, list[Match]] = {}
        doubts: dict[str, list[Match]] = {}
        named = _named(candidate)
        changed = change_in(candidate.content) is not None
        more = self._related(candidate, ctx) if changed or named else ()
        every = {each.uri: each for each in (*found, *self._at(named, ctx), *more)}
        for page in every.values():
            if not _is_of_project(page, candidate) and page.uri not in named:
                continue
            stands = pages.statements(page.content)
            for each in stands:
                is_named = each.cid in named or (page.uri in named and len(stands) == 1)
                sure = Certainty.CERTAIN if is_named else outdates(candidate.content, each.text)
                if sure is None or each.text == pages.plain(candidate.content):
                    continue
                match = Match(page, each, "The newer one says that it changed.")
                chosen = ends if sure is Certainty.CERTAIN else doubts
                chosen.setdefault(page.uri, []).append(match)
        first, *others = ends.values() or [[]]
        return first, [*others, *doubts.values()]

    def _at(self, named: frozenset[str], ctx: RequestContext) -> Iterator[ContextNode]:
        for uri in sorted(named):
            if uri.startswith("ctx://") and (page := self._known.at(Uri.parse(uri), ctx)):
                yield page

    def _related(self, candidate: CandidateMemory, ctx: RequestContext) -> list[ContextNode]:
        """Return nodes of any category that may speak of what changed."""
        found: dict[str, ContextNode] = {}
        wanted = searched(candidate.content)
        for category in _CHANGING:
            slug = candidate.slug or "any"
            other = replace(candidate, category=category, slug=slug, content=wanted)
            found |= {each.uri: each for each in self._known.near(other, ctx)}
        return list(found.values())

    def _added(
        self, page: ContextNode, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        return self._joining.appended(page, candidate, ctx)

    def _pages(
        self, page: ContextNode | None, candidate: CandidateMemory, ctx: RequestContext
    ) -> Iterator[ContextNode]:
        if page is not None:
            yield page
        for each in self._near(candidate, ctx):
            if (page is None or each.uri != page.uri) and _is_of_project(each, candidate):
                yield each

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
        if page is not None and not _is_of_project(page, candidate):
            place = self._free(of_project(place, _project(candidate)), candidate, ctx)
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


_CHANGING = ("pattern", "entity", "preference", "skill")
"""The categories in which a change of one is looked for."""


def _project(candidate: CandidateMemory) -> str:
    named = candidate.metadata.get(PROJECT)
    return named if isinstance(named, str) else ""


def _is_of_project(page: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a candidate may join a page: both are of one project, or of none."""
    return is_profile(page.place) or page.project == _project(candidate)


def _named(candidate: CandidateMemory) -> frozenset[str]:
    """Return the URIs and CIDs of what a candidate says that it replaces."""
    told = candidate.metadata.get("replaces")
    listed = told if isinstance(told, Sequence) and not isinstance(told, str) else ()
    return frozenset(each for each in listed if isinstance(each, str))


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
