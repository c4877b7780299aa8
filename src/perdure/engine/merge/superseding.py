"""Superseding: what a candidate contradicts leaves its page for a node of its own.

That node says how long the statement held, and leads to the page. Nothing is destroyed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from perdure.engine.merge import pages
from perdure.engine.merge.grounds import Grounds, as_metadata, grounds_of
from perdure.engine.merge.joining import Joining, Match, changed, merge_of, quoted
from perdure.engine.merge.pages import Statement
from perdure.engine.merge.places import former_place
from perdure.model import (
    SUPERSEDED_BY,
    Action,
    CandidateMemory,
    ContextNode,
    RelationEdge,
    RequestContext,
    WritePlan,
)
from perdure.model.record import VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON, MAX_ABSTRACT, read_moment, shortened


@dataclass(frozen=True, slots=True)
class Superseding:
    """Makes plans for candidates that can't hold together with what is known."""

    joining: Joining
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def superseded(
        self,
        matches: Sequence[Match],
        candidate: CandidateMemory,
        ctx: RequestContext,
        formers: Callable[[], Sequence[ContextNode]] = tuple,
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
        for gone in others:
            content = pages.without(content, _again(content, gone.statement))
        kept = {cid: each for cid, each in known.items() if cid not in _cids(matches)}
        grounds = {**kept, pages.cid_of(candidate.content): Grounds.of(candidate, ctx.session_id)}
        until = Until(when, candidate.content)
        gone_once = {each.statement.text: each.statement for each in matches}
        former = tuple(_former(page, each, known, until) for each in gone_once.values())
        reason = f"It supersedes {_listed(matches)} {first.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx)
        return changed(page, content, grounds, merge, reason=reason, former=former)

    def _held_before(
        self,
        matches: Sequence[Match],
        candidate: CandidateMemory,
        ctx: RequestContext,
        past: "Past",
    ) -> WritePlan:
        """Plan for what held before, and was told later: it goes where it would have gone."""
        for each in past.formers:
            again = self.joining.judged(candidate, each).same
            if again is not None and past.when < _until(each):
                return self.joining.merged(again, candidate, ctx)
        plan = self._placed_in_time(matches, candidate, ctx, past)
        return replace(plan, former=(*plan.former, *self._ended_then(candidate, past)))

    def _placed_in_time(
        self,
        matches: Sequence[Match],
        candidate: CandidateMemory,
        ctx: RequestContext,
        past: "Past",
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

    def _held_next(self, candidate: CandidateMemory, past: "Past") -> ContextNode | None:
        """Return what held after a candidate, before what holds now; None if nobody told of it."""
        later = [
            each
            for each in past.formers
            if past.when < _said_first(each) and self.joining.judged(candidate, each).against
        ]
        return min(later, key=_said_first, default=None)

    def _ended_then(self, candidate: CandidateMemory, past: "Past") -> list[ContextNode]:
        """Return what held until a candidate was said, and was taken to have held longer."""
        until = Until(past.when, candidate.content)
        return [
            _ended(each, until)
            for each in past.formers
            if _said_first(each) < past.when < _until(each)
            and self.joining.judged(candidate, each).against
        ]


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


def _cids(matches: Iterable[Match]) -> set[str]:
    return {each.statement.cid for each in matches}


def _before(matches: Sequence[Match]) -> str:
    return f"It held before {_listed(matches)} {matches[0].reason}".strip()


def _listed(matches: Sequence[Match]) -> str:
    return f"{' and '.join(quoted(each.statement.text) for each in matches)}."
