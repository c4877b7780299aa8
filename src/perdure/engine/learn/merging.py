"""Merging a candidate into a node: one with what says the same, beside what differs.

What a candidate contradicts is superseded: it leaves its node for one of its own, which says how
long the statement held, and leads to the node. Nothing is destroyed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from perdure.dataclass import dataclass, replace
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import (
    MOST_MENTIONS,
    Merge,
    Support,
    as_metadata,
    merges_as_metadata,
    merges_of,
    support_of,
    text_of,
    texts_of,
)
from perdure.engine.learn.judge import (
    Agreement,
    change_in,
    compare,
    completions,
    is_fragment,
    is_rewording,
    outdates,
    searched,
)
from perdure.engine.learn.slugs import (
    apart_place,
    beside,
    differ_by_value,
    former_place,
    is_near,
    is_profile,
    of_project,
    place_of,
)
from perdure.engine.learn.statements import Statement
from perdure.errors import NodeExistsError
from perdure.model import (
    SUPERSEDED_BY,
    Action,
    CandidateMemory,
    ContextNode,
    RelationEdge,
    RequestContext,
    Uri,
    WritePlan,
)
from perdure.model.record import PROJECT, VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON, MAX_ABSTRACT, shortened

DATE = "date"
_ONE_DAY = timedelta(days=1)
SEPARATED = "kept_apart_from"
"""CIDs that the owner took apart from a node; they are never merged into it again."""


class StatementMatch(NamedTuple):
    """A statement of a node that a candidate is compared with, and what decided."""

    node: ContextNode
    statement: Statement
    reason: str


class NodeComparison(NamedTuple):
    """How a candidate relates to a node."""

    node: ContextNode
    same: StatementMatch | None = None
    against: tuple[StatementMatch, ...] = ()


class Ending(NamedTuple):
    """When a statement ceased to hold, and the statement that ended it."""

    when: datetime
    text: str

    @property
    def reason(self) -> str:
        return shortened(f"On {self.when.date()}: {self.text}", MAX_ABSTRACT)


@dataclass(frozen=True, slots=True)
class Merging:
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def judged(self, candidate: CandidateMemory, node: ContextNode) -> NodeComparison:
        """Return which statement of a node says the same, and which ones it contradicts."""
        new = Statement.read(candidate.content)
        if new.cid in separated_cids(node):
            return NodeComparison(node)
        known = statements.statements(node.content)
        for each in known:
            if each.text == new.text:
                return NodeComparison(node, StatementMatch(node, each, ""))
        twice = (each for each in known if self._is_kept_twice(candidate, node, each))
        same = [StatementMatch(node, each, "Both are of one day, one by a tool.") for each in twice]
        against: list[StatementMatch] = []
        for each in known:
            compared = compare(each.dated if new.since else each.text, new.dated)
            match = StatementMatch(node, each, compared.reason)
            if compared.agreement is Agreement.SAME:
                same.append(match)
            elif compared.agreement is Agreement.CONTRADICTS:
                against.append(match)
        return NodeComparison(node, same[0] if same else None, tuple(against))

    def _is_kept_twice(
        self, candidate: CandidateMemory, node: ContextNode, known: Statement
    ) -> bool:
        """Whether a tool kept one and a rule learned the other, on one day, in other words."""
        support = support_of(node).get(known.cid)
        if support is None or bool(support.by) == bool(candidate.metadata.get("by")):
            return False
        apart = abs((candidate.when or self.clock()) - (support.when or node.updated_at))
        return apart <= _ONE_DAY and is_rewording(known.text, candidate.content)

    # ------------------------------------------------------------ planning
    def created(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        support = {statements.cid_of(candidate.content): Support.of(candidate, ctx.session_id)}
        content = statements.item(candidate.content)
        given = {name: candidate.metadata.get(name) for name in (PROJECT, "kind")}
        of = {name: value for name, value in given.items() if value}
        node = ContextNode(
            uri=str(place), content=content, metadata={**described(content, support), **of}
        )
        return WritePlan(
            action=Action.CREATE, uri=node.uri, reason="Nothing like it was known.", node=node
        )

    def event(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        plan = self.created(place, candidate, ctx)
        assert plan.node is not None  # noqa: S101 - what is created is a node
        given = {**plan.node.metadata, "who": candidate.who, "where": candidate.where}
        metadata = {n: v for n, v in given.items() if v not in (None, (), "")}
        content = statements.alone(candidate.content)
        return replace(plan, node=replace(plan.node, content=content, metadata=metadata))

    def merged(
        self, match: StatementMatch, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        """Plan for what is known: keep where it was mentioned again."""
        node, known = match.node, match.statement
        support = support_of(node)
        old = support.get(known.cid, Support())
        new = Support.of(candidate, ctx.session_id)
        reason = ""
        if len(old.mentions) >= MOST_MENTIONS:
            reason = f"It was mentioned {len(old.mentions)} times before."
        elif new.mentions and any(each.session == ctx.session_id for each in old.mentions):
            reason = "This session mentioned it before."
        elif (
            not new.mentions
            and not known.doubted
            and replace(old.joined(new), when=old.when) == old
        ):
            reason = "It is known."
        if reason:
            return WritePlan(action=Action.SKIP, uri=node.uri, reason=reason, same=known.text)
        if known.text != Statement.read(candidate.content).dated:
            worded = (replace(each, wording=candidate.content) for each in new.mentions)
            new = replace(new, mentions=tuple(worded))
        content = node.content
        if known.doubted:  # it was stated again, so it holds
            content = _redated(content, known, known.since)
        reason = f"It says the same as {quoted(known.text)}. {match.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx, into=known.cid)
        support[known.cid] = old.joined(new)
        return replace(changed(node, content, support, merge, reason=reason), same=known.text)

    def doubted(self, matches: Sequence[StatementMatch], candidate: CandidateMemory) -> ContextNode:
        """Return a node on which some statements are marked: they may be outdated since then."""
        node = matches[0].node
        content, day = node.content, (candidate.when or self.clock()).date()
        for each in matches:
            if each.statement.doubted is None:
                content = _redated(content, each.statement, each.statement.since, day)
        return node if content == node.content else node.revised(content=content)

    def appended(
        self, node: ContextNode, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        """Plan to add a statement to the others of its node, in the order of time."""
        support = support_of(node)
        before = _next_after(node, support, candidate)
        content = statements.inserted(node.content, statements.item(candidate.content), before)
        support[statements.cid_of(candidate.content)] = Support.of(candidate, ctx.session_id)
        reason = "It is of the same topic, and says something else."
        return changed(
            node, content, support, merge_of(Action.APPEND, candidate, ctx), reason=reason
        )

    # ------------------------------------------------------------ superseding
    def superseded(
        self,
        matches: Sequence[StatementMatch],
        candidate: CandidateMemory,
        ctx: RequestContext,
        formers: Callable[[], Sequence[ContextNode]],
    ) -> WritePlan:
        """Plan for a candidate that can't hold together with some statements of one node.

        The newest holds. `formers` returns what the node superseded before.
        """
        node = matches[0].node
        known = support_of(node)
        when = candidate.when or self.clock()
        last = max(_stated_at(node, known, each.statement) for each in matches)
        if when < last:
            return self._held_before(matches, candidate, ctx, (when, last, formers()))
        first, *others = matches
        content = statements.replaced(
            node.content, first.statement, statements.item(candidate.content, when.date())
        )
        for each in others:
            content = statements.without(content, _again(content, each.statement))
        gone = {each.statement.text: each.statement for each in matches}
        cids = {each.cid for each in gone.values()}
        support = {cid: each for cid, each in known.items() if cid not in cids}
        support[statements.cid_of(candidate.content)] = Support.of(candidate, ctx.session_id)
        until = Ending(when, candidate.content)
        former = tuple(_former(node, each, known, until) for each in gone.values())
        reason = f"It supersedes {_listed(matches)} {first.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx)
        return changed(node, content, support, merge, reason=reason, former=former)

    def _held_before(
        self,
        matches: Sequence[StatementMatch],
        candidate: CandidateMemory,
        ctx: RequestContext,
        past: tuple[datetime, datetime, Sequence[ContextNode]],
    ) -> WritePlan:
        """Plan for what held before, and is learned later: it goes where it would have gone.

        It ends when the next known statement begins, and ends what it superseded in its time.
        """
        node = matches[0].node
        when, last, formers = past
        judged = [self.judged(candidate, each) for each in formers]
        for each in judged:
            if each.same is not None and when < _until(each.node):
                return self.merged(each.same, candidate, ctx)
        against = [each.node for each in judged if each.against]
        later = [each for each in against if when < _began(each)]
        own = Ending(when, candidate.content)
        ended = [_ended(each, own) for each in against if _began(each) < when < _until(each)]
        if later:
            next_one = min(later, key=_began)
            until = Ending(_began(next_one), next_one.content.strip())
            begun = {**next_one.metadata, VALID_FROM: until.when.isoformat()}
            ended.insert(0, next_one.revised(metadata=begun))
            content = node.content
        else:
            until = Ending(last, matches[0].statement.text)
            content = _since(node.content, matches, last)
        gone = Statement.read(candidate.content)
        former = _former(node, gone, {gone.cid: Support.of(candidate, ctx.session_id)}, until)
        reason = f"It held before {_listed(matches)} {matches[0].reason}".strip()
        if content == node.content:
            return WritePlan(
                action=Action.CREATE,
                uri=former.uri,
                reason=reason,
                node=former,
                former=tuple(ended),
            )
        merge = merge_of(Action.MERGE, candidate, ctx)
        plan = changed(node, content, support_of(node), merge, reason=reason, former=(former,))
        return replace(plan, former=(former, *ended))


def merge_of(
    action: Action, candidate: CandidateMemory, ctx: RequestContext, into: str = ""
) -> Merge:
    return Merge(0, action.value, statements.cid_of(candidate.content), into, ctx.session_id)


def changed(  # noqa: PLR0913 - what such a plan is made of, each once
    node: ContextNode,
    content: str,
    support: Mapping[str, Support],
    merge: Merge,
    *,
    reason: str,
    former: tuple[ContextNode, ...] = (),
) -> WritePlan:
    made = replace(merge, version=node.version + 1, former=tuple(each.uri for each in former))
    merges = merges_as_metadata([*merges_of(node), made])
    metadata = {**node.metadata, **described(content, support), **merges}
    revised = node.revised(content=content, metadata=metadata)
    return WritePlan(
        action=Action(merge.action), uri=node.uri, reason=reason, node=revised, former=former
    )


def described(content: str, support: Mapping[str, Support]) -> dict[str, JSON]:
    """Return the metadata of a text: what it rests on, its day, and since when it holds."""
    known = statements.statements(content)
    cids = {each.cid for each in known}
    kept = {cid: each for cid, each in support.items() if cid in cids}
    newest = max((each.when for each in kept.values() if each.when), default=None)
    since = [each.since for each in known if each.since is not None]
    begins = min(since).isoformat() if since and len(since) == len(known) else None
    return {**as_metadata(kept), DATE: newest.isoformat() if newest else None, VALID_FROM: begins}


def separated_cids(node: ContextNode) -> frozenset[str]:
    return frozenset(texts_of(node.metadata.get(SEPARATED)))


def _next_after(
    node: ContextNode, support: Mapping[str, Support], candidate: CandidateMemory
) -> Statement | None:
    """Return the first of the last statements that are newer; one written by hand ends them."""
    new, found = _order(candidate.when, statements.plain(candidate.content)), None
    for statement in reversed(statements.statements(node.content)):
        known = support.get(statement.cid)
        is_later = known is not None and _order(known.when, statement.text) >= new
        if not is_later or not statement.is_item:
            break
        found = statement
    return found


def _order(when: datetime | None, text: str) -> tuple[bool, float, str]:
    return when is None, when.timestamp() if when else 0.0, text


def quoted(text: str) -> str:
    return f'"{shortened(" ".join(text.split()), MAX_ABSTRACT).rstrip(".")}"'


def _listed(matches: Sequence[StatementMatch]) -> str:
    return f"{' and '.join(quoted(each.statement.text) for each in matches)}."


def _former(
    node: ContextNode, gone: Statement, known: Mapping[str, Support], until: Ending
) -> ContextNode:
    """Return the node in which a statement is kept that no longer holds."""
    end = until.when.isoformat()
    place = former_place(node.place, gone.text, end)
    metadata: dict[str, JSON] = {
        **as_metadata({gone.cid: known[gone.cid]} if gone.cid in known else {}),
        VALID_FROM: gone.since.isoformat() if gone.since else None,
        VALID_UNTIL: end,
        PROJECT: node.metadata.get(PROJECT),
    }
    return ContextNode(
        uri=str(place),
        content=statements.alone(gone.text),
        metadata={name: value for name, value in metadata.items() if value is not None},
        relations=(RelationEdge(str(place), node.uri, SUPERSEDED_BY, reason=until.reason),),
    )


def _ended(former: ContextNode, until: Ending) -> ContextNode:
    edges = (
        replace(edge, reason=until.reason) if edge.relation_type == SUPERSEDED_BY else edge
        for edge in former.relations
    )
    metadata = {**former.metadata, VALID_UNTIL: until.when.isoformat()}
    return former.revised(metadata=metadata, relations=tuple(edges))


def _since(content: str, matches: Sequence[StatementMatch], when: datetime) -> str:
    """Return a text that says since when some of its items hold, if it did not."""
    for each in (match.statement for match in matches):
        if each.since is None and each.is_item:
            content = _redated(content, each, when.date())
    return content


def _redated(
    content: str, known: Statement, since: date | None, doubted: date | None = None
) -> str:
    item = statements.item(known.text, since, doubted)
    return statements.replaced(content, _again(content, known), item)


def _until(former: ContextNode) -> datetime:
    return former.valid_until or former.updated_at


def _began(former: ContextNode) -> datetime:
    """Return when what held once began to, or was first stated."""
    begun = former.valid_from
    times = [each.when for each in support_of(former).values() if each.when is not None]
    return begun or min(times, default=_until(former))


def _stated_at(node: ContextNode, known: Mapping[str, Support], statement: Statement) -> datetime:
    support = known.get(statement.cid)
    return (support.when if support else None) or node.updated_at


def _again(content: str, statement: Statement) -> Statement:
    return next(each for each in statements.statements(content) if each.text == statement.text)


class KnownMemory(Protocol):
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

    def __init__(self, known: KnownMemory, merging: Merging) -> None:
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
    ) -> tuple[list[StatementMatch], list[list[StatementMatch]]]:
        """Return what ends with a candidate, all of one node, and by node what may be outdated."""
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
        found: dict[str, ContextNode] = {}
        wanted = searched(candidate.content)
        for category in _CHANGING:
            slug = candidate.slug or "any"
            other = replace(candidate, category=category, slug=slug, content=wanted)
            found |= {each.uri: each for each in self._known.near(other, ctx)}
        return list(found.values())

    # ------------------------------------------------------------ where it goes
    def _is_about(self, judged: NodeComparison, place: Uri, candidate: CandidateMemory) -> bool:
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
        if node is None or statements.cid_of(candidate.content) not in separated_cids(node):
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

    def __init__(self, known: KnownMemory, merging: Merging) -> None:
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


_KINDS: Mapping[str, Callable[[KnownMemory, Merging], MergePolicy]] = {
    "profile": ProfilePolicy,
    "event": AppendOnlyPolicy,
    "case": AppendOnlyPolicy,
    "skill": SkillToolPolicy,
    "tool": SkillToolPolicy,
}


def policy_for(category: str, known: KnownMemory, clock: Callable[[], datetime]) -> MergePolicy:
    """Return how candidates of a category are merged; as topics by default."""
    return _KINDS.get(category, AggregateTopicPolicy)(known, Merging(clock))
