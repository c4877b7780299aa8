"""Joining a candidate to a page: merged with what says the same, put beside what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.engine.merge import pages
from perdure.engine.merge.comparing import Judge, Verdict
from perdure.engine.merge.grounds import MOST_SAID, Grounds, as_metadata, grounds_of
from perdure.engine.merge.merges import Merge, with_merge
from perdure.engine.merge.pages import Statement
from perdure.model import (
    Action,
    CandidateMemory,
    ContextNode,
    RequestContext,
    Uri,
    WritePlan,
)
from perdure.model.record import VALID_FROM
from perdure.model.values import JSON, MAX_ABSTRACT, shortened

DATE = "date"
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


@dataclass(frozen=True, slots=True)
class Joining:
    """Makes plans for candidates and the pages they may join."""

    judge: Judge

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
        same: Match | None = None
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

    # ------------------------------------------------------------ planning
    def created(self, place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Plan a page that says this and nothing else."""
        grounds = {pages.cid_of(candidate.content): Grounds.of(candidate, ctx.session_id)}
        node = ContextNode(uri=str(place), content=pages.item(candidate.content))
        node = replace(node, metadata=told(node.content, grounds))
        return WritePlan(
            action=Action.CREATE, uri=node.uri, reason="Nothing like it was known.", node=node
        )

    def merged(self, match: Match, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        """Plan for what is known already: it was said once more, and here is where."""
        page, text = match.page, match.statement.text
        known = grounds_of(page).get(match.statement.cid, Grounds())
        if known.said_in(ctx.session_id):
            return _skipped(page, "This session said so before.")
        if len(known.said) >= MOST_SAID:
            return _skipped(page, f"It was said {len(known.said)} times before.")
        new = Grounds.of(candidate, ctx.session_id)
        if text != pages.statement_of(candidate.content).dated:
            worded = (replace(each, wording=candidate.content) for each in new.said)
            new = replace(new, said=tuple(worded))
        grounds = {**grounds_of(page), match.statement.cid: known.joined(new)}
        reason = f"It says the same as {quoted(text)}. {match.reason}".strip()
        merge = merge_of(Action.MERGE, candidate, ctx, into=match.statement.cid)
        return changed(page, page.content, grounds, merge, reason=reason)

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
    return {
        **as_metadata(kept),
        DATE: newest.isoformat() if newest else None,
        VALID_FROM: begins,
    }


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
def _skipped(page: ContextNode, reason: str) -> WritePlan:
    return WritePlan(action=Action.SKIP, uri=page.uri, reason=reason)


def quoted(text: str) -> str:
    return f'"{shortened(" ".join(text.split()), MAX_ABSTRACT).rstrip(".")}"'
