"""Joining a candidate to a page: merged with what says the same, put beside what differs.

What a candidate contradicts is superseded: it leaves its page for a node of its own, which says how
long the statement held, and leads to the page. Nothing is destroyed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from perdure.engine.learn import pages
from perdure.engine.learn.grounds import (
    MOST_SAID,
    Grounds,
    Merge,
    as_metadata,
    grounds_of,
    with_merge,
)
from perdure.engine.learn.judge import Judge, Verdict, is_rewording
from perdure.engine.learn.pages import Statement
from perdure.engine.learn.places import former_place
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
from perdure.model.record import VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON, MAX_ABSTRACT, read_moment, shortened

DATE = "date"
_ONE_DAY = timedelta(days=1)
_KEPT = ("project", "kind")
"""What a new node says of itself as its first statement does."""
APART = "kept_apart_from"
"""What its owner took apart: it is never merged with these again."""


@dataclass(frozen=True, slots=True)
class Match:
    """A statement of a page that a candidate has to do with, and why."""

    page: ContextNode
    statement: Statement
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How a candidate stands to a page."""

    page: ContextNode
    same: Match | None = None
    against: tuple[Match, ...] = ()


class Past(NamedTuple):
    """What is known of a page before now."""

    when: datetime
    """When the candidate was said."""
    last: datetime
    """When that was said which holds now."""
    formers: Sequence[ContextNode]


class Until(NamedTuple):
    """When a statement ceased to hold, and what was said then."""

    when: datetime
    said: str

    @property
    def reason(self) -> str:
        return shortened(f"On {self.when.date()}: {self.said}", MAX_ABSTRACT)


@dataclass(frozen=True, slots=True)
class Joining:
    """Makes plans for candidates and the pages they may join."""

    judge: Judge
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    # ------------------------------------------------------------ looking
    def judged(self, candidate: CandidateMemory, page: ContextNode) -> Judged:
        """Say which statement of a page says the same, and which can't hold beside it."""
        said = pages.statement_of(candidate.content)
        if said.cid in kept_apart(page):
            return Judged(page)
        stands = pages.statements(page.content)
        for statement in stands:
            if statement.text == said.text:
                return Judged(page, Match(page, statement, ""))
        same = next(
            (each for each in map(partial(self._kept_twice, candidate, page), stands) if each), None
        )
        against: list[Match] = []
        for statement in stands:
            stood = statement.dated if said.since else statement.text
            compared = self.judge(stood, said.dated)
            match = Match(page, statement, compared.reason)
            if compared.verdict is Verdict.SAME and same is None:
                same = match
            elif compared.verdict is Verdict.CONTRADICTS:
                against.append(match)
        return Judged(page, same, tuple(against))

    def _kept_twice(
        self, candidate: CandidateMemory, page: ContextNode, stands: Statement
    ) -> Match | None:
        """Return a statement that a tool kept and a rule learned, on one day, in other words."""
        known = grounds_of(page).get(stands.cid)
        by_tool = bool(candidate.metadata.get("by"))
        if known is None or bool(known.by) == by_tool:
            return None
        apart = abs((candidate.when or self.clock()) - (known.when or page.updated_at))
        if apart > _ONE_DAY or not is_rewording(stands.text, candidate.content):
            return None
        return Match(page, stands, "Both were kept on one day, one by a tool.")

    # ------------------------------------------------------------ planning
    def created(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Plan a page that says this and nothing else."""
        grounds = {pages.cid_of(candidate.content): Grounds.of(candidate, ctx.session_id)}
        node = ContextNode(uri=str(place), content=pages.item(candidate.content))
        of = {name: candidate.metadata[name] for name in _KEPT if candidate.metadata.get(name)}
        node = replace(node, metadata={**told(node.content, grounds), **of})
        return WritePlan(
            action=Action.CREATE, uri=node.uri, reason="Nothing like it was known.", node=node
        )

    def merged(self, match: Match, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Plan for what is known already: it was said once more, and here is where."""
        page, text = match.page, match.statement.text
        known = grounds_of(page).get(match.statement.cid, Grounds())
        new = Grounds.of(candidate, ctx.session_id)
        joined = known.joined(new)
        is_known = not new.said and replace(joined, when=known.when) == known
        if (new.said and known.said_in(ctx.session_id)) or (
            is_known and not match.statement.doubted
        ):
            reason = "This session said so before." if new.said else "It is known."
            return _skipped(page, reason, text)
        if len(known.said) >= MOST_SAID:
            return _skipped(page, f"It was said {len(known.said)} times before.", text)
        if text != pages.statement_of(candidate.content).dated:
            worded = (replace(each, wording=candidate.content) for each in new.said)
            new = replace(new, said=tuple(worded))
        grounds = {**grounds_of(page), match.statement.cid: known.joined(new)}
        reason = f"It says the same as {quoted(text)}. {match.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx, into=match.statement.cid)
        content = page.content
        if match.statement.doubted:  # it was said again, so it holds
            standing = _again(content, match.statement)
            content = pages.replaced(content, standing, pages.item(text, standing.since))
        return replace(changed(page, content, grounds, merge, reason=reason), same=text)

    def doubted(self, matches: Sequence[Match], candidate: CandidateMemory) -> ContextNode:
        """Return a page on which some statements are marked: they may be outdated since then."""
        page = matches[0].page
        content, day = page.content, (candidate.when or self.clock()).date()
        for each in matches:
            standing = _again(content, each.statement)
            if standing.doubted is None:
                doubt = pages.item(standing.text, standing.since, day)
                content = pages.replaced(content, standing, doubt)
        return page if content == page.content else page.revised(content=content)

    def appended(
        self, page: ContextNode, candidate: CandidateMemory, ctx: RequestContext
    ) -> WritePlan:
        """Plan to let a statement stand beside the others of its page, in the order of time."""
        known = grounds_of(page)
        new = Grounds.of(candidate, ctx.session_id)
        before = _next_after(page, known, candidate)
        content = pages.inserted(page.content, pages.item(candidate.content), before)
        grounds = {**known, pages.cid_of(candidate.content): new}
        reason = "It is of the same topic, and says something else."
        merge = merge_of(Action.APPEND, candidate, ctx)
        return changed(page, content, grounds, merge, reason=reason)

    # ------------------------------------------------------------ superseding
    def superseded(
        self,
        matches: Sequence[Match],
        candidate: CandidateMemory,
        ctx: RequestContext,
        formers: Callable[[], Sequence[ContextNode]],
    ) -> WritePlan:
        """Plan for a candidate that can't hold together with some statements of one page.

        The one that was said last is what holds. `formers` tells what the page superseded before.
        """
        page = matches[0].page
        known = grounds_of(page)
        when = candidate.when or self.clock()
        last = max(_said_at(page, known, each.statement) for each in matches)
        if when < last:
            return self._held_before(matches, candidate, ctx, Past(when, last, formers()))
        first, *others = matches
        content = pages.replaced(
            page.content, first.statement, pages.item(candidate.content, when.date())
        )
        for each in others:
            content = pages.without(content, _again(content, each.statement))
        gone = {each.statement.cid for each in matches}
        kept = {cid: each for cid, each in known.items() if cid not in gone}
        grounds = {**kept, pages.cid_of(candidate.content): Grounds.of(candidate, ctx.session_id)}
        until = Until(when, candidate.content)
        gone_once = {each.statement.text: each.statement for each in matches}
        former = tuple(_former(page, each, known, until) for each in gone_once.values())
        reason = f"It supersedes {_listed(matches)} {first.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx)
        return changed(page, content, grounds, merge, reason=reason, former=former)

    def _held_before(
        self, matches: Sequence[Match], candidate: CandidateMemory, ctx: RequestContext, past: Past
    ) -> WritePlan:
        """Plan for what held before, and was told later: it goes where it would have gone."""
        for each in past.formers:
            again = self.judged(candidate, each).same
            if again is not None and past.when < _until(each):
                return self.merged(again, candidate, ctx)
        plan = self._placed_in_time(matches, candidate, ctx, past)
        return replace(plan, former=(*plan.former, *self._ended_then(candidate, past)))

    def _placed_in_time(
        self, matches: Sequence[Match], candidate: CandidateMemory, ctx: RequestContext, past: Past
    ) -> WritePlan:
        """Plan for what nobody told of yet: it held until the next thing was said."""
        page = matches[0].page
        later = self._held_next(candidate, past)
        if later is not None:
            until = Until(_said_first(later), later.content.strip())
            begun = later.revised(metadata={**later.metadata, VALID_FROM: until.when.isoformat()})
            return _told_late(page, candidate, until, ctx, _before(matches), former=(begun,))
        until = Until(past.last, matches[0].statement.text)
        content = _since(page.content, matches, past.last)
        plan = _told_late(page, candidate, until, ctx, _before(matches))
        if content == page.content or plan.node is None:
            return plan
        merge = merge_of(Action.MERGE, candidate, ctx)
        return changed(
            page, content, grounds_of(page), merge, reason=plan.reason, former=(plan.node,)
        )

    def _held_next(self, candidate: CandidateMemory, past: Past) -> ContextNode | None:
        """Return what held after a candidate, before what holds now; None if nobody told of it."""
        later = [
            each
            for each in past.formers
            if past.when < _said_first(each) and self.judged(candidate, each).against
        ]
        return min(later, key=_said_first, default=None)

    def _ended_then(self, candidate: CandidateMemory, past: Past) -> list[ContextNode]:
        """Return what held until a candidate was said, and was taken to have held longer."""
        until = Until(past.when, candidate.content)
        return [
            _ended(each, until)
            for each in past.formers
            if _said_first(each) < past.when < _until(each) and self.judged(candidate, each).against
        ]


def merge_of(
    action: Action, candidate: CandidateMemory, ctx: RequestContext, into: str = ""
) -> Merge:
    """Return what a page is to remember of how a candidate joined it."""
    return Merge(0, action.value, pages.cid_of(candidate.content), into, ctx.session_id)


def changed(  # noqa: PLR0913 - what such a plan is made of, each once
    page: ContextNode,
    content: str,
    grounds: Mapping[str, Grounds],
    merge: Merge,
    *,
    reason: str,
    former: tuple[ContextNode, ...] = (),
) -> WritePlan:
    """Plan the next version of a page, which remembers how it came about."""
    uris = tuple(each.uri for each in former)
    made = replace(merge, version=page.version + 1, former=uris)
    metadata = {**page.metadata, **told(content, grounds), **with_merge(page, made)}
    node = page.revised(content=content, metadata=metadata)
    return WritePlan(
        action=Action(merge.action), uri=page.uri, reason=reason, node=node, former=former
    )


# ---------------------------------------------------------------- what a node says of itself
def told(content: str, grounds: Mapping[str, Grounds]) -> dict[str, JSON]:
    """Return what a page says of itself: what it rests on, its day, and since when it holds."""
    stands = pages.statements(content)
    cids = {each.cid for each in stands}
    kept = {cid: each for cid, each in grounds.items() if cid in cids}
    times = [each.when for each in kept.values() if each.when is not None]
    since = [each.since for each in stands if each.since is not None]
    begins = min(since).isoformat() if since and len(since) == len(stands) else None
    newest = max(times, default=None)
    return {**as_metadata(kept), DATE: newest.isoformat() if newest else None, VALID_FROM: begins}


def kept_apart(page: ContextNode) -> frozenset[str]:
    """Return the statements that must not be merged into a page."""
    told = page.metadata.get(APART)
    if isinstance(told, str) or not isinstance(told, Sequence):
        return frozenset()
    return frozenset(each for each in told if isinstance(each, str))


def _next_after(
    page: ContextNode, known: Mapping[str, Grounds], candidate: CandidateMemory
) -> Statement | None:
    """Return the first of the last statements that were said later; what is by hand ends them."""
    new, found = _order(candidate.when, pages.plain(candidate.content)), None
    for statement in reversed(pages.statements(page.content)):
        grounds = known.get(statement.cid)
        if grounds is None or not statement.is_item:
            break
        if _order(grounds.when, statement.text) < new:
            break
        found = statement
    return found


def _order(when: datetime | None, text: str) -> tuple[bool, float, str]:
    return when is None, when.timestamp() if when else 0.0, text


# ---------------------------------------------------------------- words for people
def _skipped(page: ContextNode, reason: str, same: str) -> WritePlan:
    return WritePlan(action=Action.SKIP, uri=page.uri, reason=reason, same=same)


def quoted(text: str) -> str:
    return f'"{shortened(" ".join(text.split()), MAX_ABSTRACT).rstrip(".")}"'


# ---------------------------------------------------------------- what held once
def _former(
    page: ContextNode, gone: Statement, known: Mapping[str, Grounds], until: Until
) -> ContextNode:
    """Return the node in which a statement is kept that no longer holds."""
    end = until.when.isoformat()
    place = former_place(page.place, gone.text, end)
    grounds = {gone.cid: known[gone.cid]} if gone.cid in known else {}
    metadata: dict[str, JSON] = {
        **as_metadata(grounds),
        VALID_FROM: gone.since.isoformat() if gone.since else None,
        VALID_UNTIL: end,
        "project": page.metadata.get("project"),
    }
    told = {name: value for name, value in metadata.items() if value is not None}
    edge = RelationEdge(str(place), page.uri, SUPERSEDED_BY, reason=until.reason)
    return ContextNode(
        uri=str(place), content=pages.alone(gone.text), metadata=told, relations=(edge,)
    )


def _ended(former: ContextNode, until: Until) -> ContextNode:
    """Return what held once, with another end."""
    edges = (
        replace(edge, reason=until.reason) if edge.relation_type == SUPERSEDED_BY else edge
        for edge in former.relations
    )
    metadata = {**former.metadata, VALID_UNTIL: until.when.isoformat()}
    return former.revised(metadata=metadata, relations=tuple(edges))


def _told_late(  # noqa: PLR0913 - what such a plan is made of, each once
    page: ContextNode,
    candidate: CandidateMemory,
    until: Until,
    ctx: RequestContext,
    reason: str,
    *,
    former: tuple[ContextNode, ...] = (),
) -> WritePlan:
    gone = pages.statement_of(candidate.content)
    node = _former(page, gone, {gone.cid: Grounds.of(candidate, ctx.session_id)}, until)
    return WritePlan(action=Action.CREATE, uri=node.uri, reason=reason, node=node, former=former)


def _since(content: str, matches: Sequence[Match], when: datetime) -> str:
    """Return a page that says of some statements since when they hold, if it did not."""
    for match in matches:
        standing = _again(content, match.statement)
        if standing.since is None and standing.is_item:
            since = pages.item(standing.text, when.date())
            content = pages.replaced(content, standing, since)
    return content


def _until(former: ContextNode) -> datetime:
    return read_moment(former.metadata.get(VALID_UNTIL)) or former.updated_at


def _said_first(former: ContextNode) -> datetime:
    """Return when what held once began to, or was said."""
    begun = read_moment(former.metadata.get(VALID_FROM))
    times = [each.when for each in grounds_of(former).values() if each.when is not None]
    return begun or min(times, default=_until(former))


def _said_at(page: ContextNode, known: Mapping[str, Grounds], statement: Statement) -> datetime:
    grounds = known.get(statement.cid)
    return (grounds.when if grounds else None) or page.updated_at


def _again(content: str, statement: Statement) -> Statement:
    """Return the same statement where it stands now."""
    return next(each for each in pages.statements(content) if each.text == statement.text)


def _before(matches: Sequence[Match]) -> str:
    return f"It held before {_listed(matches)} {matches[0].reason}".strip()


def _listed(matches: Sequence[Match]) -> str:
    return f"{' and '.join(quoted(each.statement.text) for each in matches)}."
