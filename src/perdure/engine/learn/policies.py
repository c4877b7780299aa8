"""The merge policies: what they promise, and how candidates of each kind become memories."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

from perdure.dataclass import replace
from perdure.engine.learn import statements
from perdure.engine.learn.changes import change_in, completions, is_fragment, outdates, searched
from perdure.engine.learn.evidence import support_of, text_of, texts_of
from perdure.engine.learn.judge import Judge
from perdure.engine.learn.merging import Judged, Match, Merging, kept_apart
from perdure.engine.learn.naming import (
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
    """What memory knows already, as far as the caller may see it."""

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        """Return the node at a place; None if none is in use there."""

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether something is there that is not in use: archived, or broken."""

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return nodes of the same owner and category that may speak of the same."""

    def formers(self, node: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        """Return what a node superseded."""


@runtime_checkable
class MergePolicy(Protocol):
    """Decides what becomes of a candidate. It writes nothing.

    Planned for again after it was written, the same candidate is skipped: nothing is there twice.
    What is superseded is in the plan too, as a node of its own; no plan destroys anything.
    """

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Return the plan for a candidate that was validated; `ctx` has its session."""


class _TopicPolicy:
    """Merges a candidate into a node: the one that says the same, else the one of its name."""

    looks_near: ClassVar = False
    """Whether nodes of other names are compared too."""
    added_by: ClassVar = Action.APPEND

    def __init__(self, known: Known, merging: Merging) -> None:
        self._known = known
        self._merging = merging

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        candidate, ended = self._completed(candidate, ctx)
        place = self._place(candidate, ctx)
        if is_fragment(candidate.content) and not ended and not candidate.metadata.get("by"):
            reason = "It names only a new value, and no known statement has the old one."
            return WritePlan(action=Action.SKIP, uri=str(place), reason=reason)
        node = self._known.at(place, ctx)
        others = self._known.near(candidate, ctx) if self.looks_near else ()
        near = [each for each in others if _is_for(each, candidate)]
        found = list({each.uri: each for each in ([node] if node else []) + near}.values())
        judged = [self._merging.judged(candidate, each) for each in found]
        for each in judged:
            if each.same is not None:
                return self._merging.merged(each.same, candidate, ctx)
        ends, doubts = self._outdated(candidate, [*ended, *found], ctx)
        against = (each.against for each in judged if self._is_about(each, place, candidate))
        if matches := next(filter(None, (ends, *against)), None):
            formers = partial(self._known.formers, matches[0].node, ctx)
            plan = self._merging.superseded(matches, candidate, ctx, formers)
        elif node is not None:
            plan = self._merging.appended(node, candidate, ctx)
            plan = replace(plan, action=self.added_by)
        else:
            plan = self._merging.created(place, candidate, ctx)
        changed = {each.uri for each in (plan.node, *plan.former) if each is not None}
        doubted = (self._merging.doubted(each, candidate) for each in doubts)
        return replace(plan, doubted=tuple(each for each in doubted if each.uri not in changed))

    # ------------------------------------------------------------ what changed
    def _completed(
        self, candidate: CandidateMemory, ctx: RequestContext
    ) -> tuple[CandidateMemory, list[ContextNode]]:
        """Return a candidate that names only a new value as the whole statement it makes.

        The nodes that it may be about come with it; only if there is one, it is certain.
        """
        if not is_fragment(candidate.content):
            return candidate, []
        near = [each for each in self._related(candidate, ctx) if _is_for(each, candidate)]
        known = {each.text: node for node in near for each in statements.statements(node.content)}
        found = completions(candidate.content, known)
        if len(found) != 1:
            return candidate, [known[old] for _, old in found]
        whole, old = found[0]
        more = {**candidate.metadata, "replaces": [statements.cid_of(old)]}
        slug = candidate.slug and (known[old].place.name or candidate.slug)
        return replace(candidate, content=whole, slug=slug, metadata=more), [known[old]]

    def _outdated(
        self, candidate: CandidateMemory, found: Sequence[ContextNode], ctx: RequestContext
    ) -> tuple[list[Match], list[list[Match]]]:
        """Return what ends with a candidate, all of one node, and by node what may be outdated."""
        ends: dict[str, list[Match]] = {}
        doubts: dict[str, list[Match]] = {}
        named = _named(candidate)
        uris = (Uri.parse(each) for each in sorted(named) if each.startswith("ctx://"))
        others = filter(None, (self._known.at(each, ctx) for each in uris))
        more = self._related(candidate, ctx) if named or change_in(candidate.content) else ()
        for node in {each.uri: each for each in (*found, *others, *more)}.values():
            if not _is_for(node, candidate) and node.uri not in named:
                continue
            known = statements.statements(node.content)
            for each in known:
                is_named = each.cid in named or (node.uri in named and len(known) == 1)
                certain = is_named or outdates(candidate.content, each.text)
                if certain is None and completions(candidate.content, [each.text]):
                    certain = False
                if certain is None or each.text == statements.plain(candidate.content):
                    continue
                match = Match(node, each, "The newer one says that it changed.")
                (ends if certain else doubts).setdefault(node.uri, []).append(match)
        first, *rest = ends.values() or [[]]
        return first, [*rest, *doubts.values()]

    def _related(self, candidate: CandidateMemory, ctx: RequestContext) -> list[ContextNode]:
        found: dict[str, ContextNode] = {}
        wanted = searched(candidate.content)
        for category in _CHANGING:
            slug = candidate.slug or "any"
            other = replace(candidate, category=category, slug=slug, content=wanted)
            found |= {each.uri: each for each in self._known.near(other, ctx)}
        return list(found.values())

    # ------------------------------------------------------------ where it goes
    def _is_about(self, judged: Judged, place: Uri, candidate: CandidateMemory) -> bool:
        there = judged.node.place
        if not judged.against or there == place or is_near(there.name, place.name):
            return True
        old = judged.against[0].statement.text
        return differ_by_value((there.name, old), (place.name, candidate.content))

    def _place(self, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return the place of a candidate; its own if its owner took it out of a node."""
        place = self._free(place_of(candidate, ctx.account_id), candidate, ctx)
        node = self._known.at(place, ctx)
        if node is not None and not _is_for(node, candidate):
            place = self._free(of_project(place, _project(candidate)), candidate, ctx)
            node = self._known.at(place, ctx)
        if node is None or statements.cid_of(candidate.content) not in kept_apart(node):
            return place
        return self._free(apart_place(place, statements.plain(candidate.content)), candidate, ctx)

    def _free(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return the place of a candidate; another one if its owner archived what was there."""
        if not self._known.taken(place, ctx):
            return place
        if is_profile(place):
            raise NodeExistsError(
                f"{str(place)!a} is archived or broken, and there is one profile. "
                "Fix: unarchive it, delete it, or run `perdure repair`."
            )
        return beside(place, candidate.content)


_CHANGING = ("pattern", "entity", "preference", "skill")
"""The categories in which a change of one is looked for."""


def _project(candidate: CandidateMemory) -> str:
    return text_of(candidate.metadata.get(PROJECT))


def _is_for(node: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a candidate may be merged into a node: both are of one project, or of none."""
    return is_profile(node.place) or node.project == _project(candidate)


def _named(candidate: CandidateMemory) -> frozenset[str]:
    return frozenset(texts_of(candidate.metadata.get("replaces")))


class ProfilePolicy(_TopicPolicy):
    """What is about the user: every statement is merged into one node, always the same.

    Its merges say that a statement was added, or was there.
    """

    added_by = Action.MERGE


class SkillToolPolicy(_TopicPolicy):
    """How something is done: one node for each skill or tool, by its name."""


class AggregateTopicPolicy(_TopicPolicy):
    """A statement about a topic joins the node of its name, or another one that says the same.

    A node of nearly the same name is compared for contradictions too.
    """

    looks_near = True


class AppendOnlyPolicy:
    """What happened is a memory of its own, and never changed by another one."""

    def __init__(self, known: Known, merging: Merging) -> None:
        self._known = known
        self._merging = merging

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        first = place_of(candidate, ctx.account_id)
        day = candidate.when.date().isoformat() if candidate.when else ""
        for place in (first, beside(first, f"{day} {statements.plain(candidate.content)}")):
            known = self._known.at(place, ctx)
            if known is not None and _is_same_event(known, candidate):
                return WritePlan(action=Action.SKIP, uri=known.uri, reason="It is known.")
            if known is None and not self._known.taken(place, ctx):
                return self._merging.event(place, candidate, ctx)
        raise NodeExistsError(
            f"something else is at {str(first)!a}, and beside it. Fix: move it elsewhere."
        )


def _is_same_event(node: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a node is about the same event, on the same day as far as both say."""
    cid = statements.cid_of(candidate.content)
    if [each.cid for each in statements.statements(node.content)] != [cid]:
        return False
    known = support_of(node).get(cid)
    days = {each.date() for each in (known and known.when, candidate.when) if each}
    return len(days) <= 1


_KINDS: Mapping[str, Callable[[Known, Merging], MergePolicy]] = {
    "profile": ProfilePolicy,
    "event": AppendOnlyPolicy,
    "case": AppendOnlyPolicy,
    "skill": SkillToolPolicy,
    "tool": SkillToolPolicy,
}


def policy_for(
    category: str, known: Known, judge: Judge, clock: Callable[[], datetime]
) -> MergePolicy:
    """Return how candidates of a category are merged; as topics by default."""
    return _KINDS.get(category, AggregateTopicPolicy)(known, Merging(judge, clock))
