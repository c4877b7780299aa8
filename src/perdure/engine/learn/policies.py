"""Merge policies: each decides what becomes of a candidate, by what memory has already."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

from perdure.dataclass import replace
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import support_of, text_of, texts_of
from perdure.engine.learn.judge import change_in, completions, is_fragment, outdates, searched
from perdure.engine.learn.merge import (
    KnownMemory,
    NodeComparison,
    StatementMatch,
    appended,
    compared_with,
    created,
    doubted,
    event,
    merged,
    separated_cids,
    superseding,
)
from perdure.engine.learn.slugs import (
    beside,
    differ_by_value,
    is_near,
    is_profile,
    of_project,
    place_of,
    separate_place,
)
from perdure.errors import NodeExistsError
from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri, WriteAction, WritePlan
from perdure.model.node import PROJECT

_CHANGING = ("pattern", "entity", "preference", "skill")
"""The categories in which a changed statement is looked for."""


@runtime_checkable
class MergePolicy(Protocol):
    """Decides what becomes of a candidate. It writes nothing.

    A candidate that is planned again after it was written is skipped. A superseded statement is in
    the plan too, as a node of its own; no plan destroys anything.
    """

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Return the plan for a validated candidate; `ctx` has its session."""


class _TopicPolicy:
    """Merges a candidate into the node that says the same, else into the one of its name."""

    looks_near: ClassVar = False
    """Whether nodes of other names are compared too."""
    added_by: ClassVar = WriteAction.APPEND

    def __init__(self, known: KnownMemory, clock: Callable[[], datetime]) -> None:
        self._known = known
        self._clock = clock

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        candidate, ended = self._completed(candidate, ctx)
        place = self._place(candidate, ctx)
        if is_fragment(candidate.content) and not ended and not candidate.metadata.get("by"):
            reason = "It names only a new value, and no known statement has the old one."
            return WritePlan(action=WriteAction.SKIP, uri=str(place), reason=reason)
        when = candidate.when or self._clock()
        node = self._known.at(place, ctx)
        others = self._known.near(candidate, ctx) if self.looks_near else ()
        near = [each for each in others if _is_for(each, candidate)]
        found = list({each.uri: each for each in ([node] if node else []) + near}.values())
        compared = [compared_with(candidate, each, when) for each in found]
        for each in compared:
            if each.same is not None:
                return merged(each.same, candidate, ctx)
        ends, doubts = self._outdated(candidate, [*ended, *found], ctx)
        against = (each.against for each in compared if _is_about(each, place, candidate))
        if matches := next(filter(None, (ends, *against)), None):
            formers = partial(self._known.formers, matches[0].node, ctx)
            plan = superseding(matches, candidate, ctx, when, formers)
        elif node is not None:
            plan = replace(appended(node, candidate, ctx), action=self.added_by)
        else:
            plan = created(place, candidate, ctx)
        changed_uris = {each.uri for each in (plan.node, *plan.former) if each is not None}
        marked = (doubted(each, when.date()) for each in doubts)
        return replace(plan, doubted=tuple(e for e in marked if e.uri not in changed_uris))

    # ------------------------------------------------------------ what it changes
    def _completed(
        self, candidate: CandidateMemory, ctx: RequestContext
    ) -> tuple[CandidateMemory, list[ContextNode]]:
        """Return a candidate that names only a new value as the whole statement that it makes.

        The nodes that it may be about are returned too. It is completed only if there is one.
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
    ) -> tuple[list[StatementMatch], list[list[StatementMatch]]]:
        """Return the statements of one node that a candidate ends, and by node the doubtful ones.

        A doubtful statement may be outdated.
        """
        ends: dict[str, list[StatementMatch]] = {}
        doubts: dict[str, list[StatementMatch]] = {}
        named = frozenset(texts_of(candidate.metadata.get("replaces")))  # URIs and CIDs
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
                match = StatementMatch(node, each, "The newer one says that it changed.")
                (ends if certain else doubts).setdefault(node.uri, []).append(match)
        first, *rest = ends.values() or [[]]
        return first, [*rest, *doubts.values()]

    def _related(self, candidate: CandidateMemory, ctx: RequestContext) -> list[ContextNode]:
        wanted = replace(
            candidate, slug=candidate.slug or "any", content=searched(candidate.content)
        )
        found = (self._known.near(replace(wanted, category=each), ctx) for each in _CHANGING)
        return list({node.uri: node for nodes in found for node in nodes}.values())

    # ------------------------------------------------------------ where it goes
    def _place(self, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return the place of a candidate; one of its own if its owner separated it from a node."""
        place = self._free(place_of(candidate, ctx.account_id), candidate, ctx)
        node = self._known.at(place, ctx)
        if node is not None and not _is_for(node, candidate):
            place = self._free(of_project(place, _project(candidate)), candidate, ctx)
            node = self._known.at(place, ctx)
        if node is None or statements.cid_of(candidate.content) not in separated_cids(node):
            return place
        apart = separate_place(place, statements.plain(candidate.content))
        return self._free(apart, candidate, ctx)

    def _free(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> Uri:
        """Return a place, or another one beside it if its owner archived the node there."""
        if not self._known.taken(place, ctx):
            return place
        if is_profile(place):
            raise NodeExistsError(
                f"{str(place)!a} is archived or broken, and there is one profile. "
                "Fix: unarchive it, delete it, or run `perdure repair`."
            )
        return beside(place, candidate.content)


class ProfilePolicy(_TopicPolicy):
    """Statements about the user: all are merged into one node.

    The action of its plans is always to merge.
    """

    added_by = WriteAction.MERGE


class SkillToolPolicy(_TopicPolicy):
    """How something is done: one node for each skill or tool, by its name."""


class AggregateTopicPolicy(_TopicPolicy):
    """A statement about a topic joins the node of its name, or another one that says the same.

    Nodes with similar names are compared for contradictions too.
    """

    looks_near = True


class AppendOnlyPolicy:
    """An event is a memory of its own, which no other one changes."""

    def __init__(self, known: KnownMemory, _clock: Callable[[], datetime]) -> None:
        self._known = known

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        first = place_of(candidate, ctx.account_id)
        day = candidate.when.date().isoformat() if candidate.when else ""
        for place in (first, beside(first, f"{day} {statements.plain(candidate.content)}")):
            known = self._known.at(place, ctx)
            if known is not None and _is_same_event(known, candidate):
                return WritePlan(action=WriteAction.SKIP, uri=known.uri, reason="It is known.")
            if known is None and not self._known.taken(place, ctx):
                return event(place, candidate, ctx)
        raise NodeExistsError(
            f"something else is at {str(first)!a}, and beside it. Fix: move it elsewhere."
        )


_POLICIES: Mapping[str, Callable[[KnownMemory, Callable[[], datetime]], MergePolicy]] = {
    "profile": ProfilePolicy,
    "event": AppendOnlyPolicy,
    "case": AppendOnlyPolicy,
    "skill": SkillToolPolicy,
    "tool": SkillToolPolicy,
}


def policy_for(category: str, known: KnownMemory, clock: Callable[[], datetime]) -> MergePolicy:
    """Return the policy of a category; `AggregateTopicPolicy` by default."""
    return _POLICIES.get(category, AggregateTopicPolicy)(known, clock)


def _project(candidate: CandidateMemory) -> str:
    return text_of(candidate.metadata.get(PROJECT))


def _is_for(node: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a candidate may be merged into a node: both have the same project, or none."""
    return is_profile(node.place) or node.project == _project(candidate)


def _is_about(compared: NodeComparison, place: Uri, candidate: CandidateMemory) -> bool:
    there = compared.node.place
    if not compared.against or there == place or is_near(there.name, place.name):
        return True
    old = compared.against[0].statement.text
    return differ_by_value((there.name, old), (place.name, candidate.content))


def _is_same_event(node: ContextNode, candidate: CandidateMemory) -> bool:
    """Whether a node is about the same event, and on the same day if both have one."""
    cid = statements.cid_of(candidate.content)
    if [each.cid for each in statements.statements(node.content)] != [cid]:
        return False
    known = support_of(node).get(cid)
    days = {each.date() for each in (known and known.when, candidate.when) if each}
    return len(days) <= 1
