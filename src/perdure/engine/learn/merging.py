"""Merging a candidate into a node: one with what says the same, beside what differs.

What a candidate contradicts is superseded: it leaves its node for one of its own, which says how
long the statement held, and leads to the node. Nothing is destroyed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

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
    texts_of,
)
from perdure.engine.learn.judge import Judge, Verdict, is_rewording
from perdure.engine.learn.naming import former_place
from perdure.engine.learn.statements import Statement
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
APART = "kept_apart_from"
"""CIDs that the owner took apart from a node; they are never merged into it again."""


class Match(NamedTuple):
    """A statement of a node that a candidate is compared with, and what decided."""

    node: ContextNode
    statement: Statement
    reason: str


class Judged(NamedTuple):
    """How a candidate relates to a node."""

    node: ContextNode
    same: Match | None = None
    against: tuple[Match, ...] = ()


class Until(NamedTuple):
    """When a statement ceased to hold, and the statement that ended it."""

    when: datetime
    text: str

    @property
    def reason(self) -> str:
        return shortened(f"On {self.when.date()}: {self.text}", MAX_ABSTRACT)


@dataclass(frozen=True, slots=True)
class Merging:
    """Makes plans for candidates and the nodes they may be merged into."""

    judge: Judge
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def judged(self, candidate: CandidateMemory, node: ContextNode) -> Judged:
        """Return which statement of a node says the same, and which ones it contradicts."""
        new = Statement.read(candidate.content)
        if new.cid in kept_apart(node):
            return Judged(node)
        known = statements.statements(node.content)
        for each in known:
            if each.text == new.text:
                return Judged(node, Match(node, each, ""))
        twice = (each for each in known if self._is_kept_twice(candidate, node, each))
        same = [Match(node, each, "Both are of one day, one by a tool.") for each in twice]
        against: list[Match] = []
        for each in known:
            compared = self.judge(each.dated if new.since else each.text, new.dated)
            match = Match(node, each, compared.reason)
            if compared.verdict is Verdict.SAME:
                same.append(match)
            elif compared.verdict is Verdict.CONTRADICTS:
                against.append(match)
        return Judged(node, same[0] if same else None, tuple(against))

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
        """Plan a node with this statement and no other."""
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
        """Plan a node of its own for what happened, with the people and the place of it."""
        plan = self.created(place, candidate, ctx)
        assert plan.node is not None  # noqa: S101 - what is created is a node
        given = {**plan.node.metadata, "who": candidate.who, "where": candidate.where}
        metadata = {n: v for n, v in given.items() if v not in (None, (), "")}
        content = statements.alone(candidate.content)
        return replace(plan, node=replace(plan.node, content=content, metadata=metadata))

    def merged(self, match: Match, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
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

    def doubted(self, matches: Sequence[Match], candidate: CandidateMemory) -> ContextNode:
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
        matches: Sequence[Match],
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
        last = max(_made_at(node, known, each.statement) for each in matches)
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
        until = Until(when, candidate.content)
        former = tuple(_former(node, each, known, until) for each in gone.values())
        reason = f"It supersedes {_listed(matches)} {first.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx)
        return changed(node, content, support, merge, reason=reason, former=former)

    def _held_before(
        self,
        matches: Sequence[Match],
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
        own = Until(when, candidate.content)
        ended = [_ended(each, own) for each in against if _began(each) < when < _until(each)]
        if later:
            next_one = min(later, key=_began)
            until = Until(_began(next_one), next_one.content.strip())
            begun = {**next_one.metadata, VALID_FROM: until.when.isoformat()}
            ended.insert(0, next_one.revised(metadata=begun))
            content = node.content
        else:
            until = Until(last, matches[0].statement.text)
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
    """Return what a node keeps of how a candidate was merged into it."""
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
    """Plan the next version of a node, which keeps how it came about."""
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


def kept_apart(node: ContextNode) -> frozenset[str]:
    """Return the CIDs of statements that must not be merged into a node."""
    return frozenset(texts_of(node.metadata.get(APART)))


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


def _listed(matches: Sequence[Match]) -> str:
    return f"{' and '.join(quoted(each.statement.text) for each in matches)}."


def _former(
    node: ContextNode, gone: Statement, known: Mapping[str, Support], until: Until
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


def _ended(former: ContextNode, until: Until) -> ContextNode:
    edges = (
        replace(edge, reason=until.reason) if edge.relation_type == SUPERSEDED_BY else edge
        for edge in former.relations
    )
    metadata = {**former.metadata, VALID_UNTIL: until.when.isoformat()}
    return former.revised(metadata=metadata, relations=tuple(edges))


def _since(content: str, matches: Sequence[Match], when: datetime) -> str:
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


def _made_at(node: ContextNode, known: Mapping[str, Support], statement: Statement) -> datetime:
    support = known.get(statement.cid)
    return (support.when if support else None) or node.updated_at


def _again(content: str, statement: Statement) -> Statement:
    return next(each for each in statements.statements(content) if each.text == statement.text)
