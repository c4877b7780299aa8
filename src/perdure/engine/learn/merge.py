"""Merge a candidate into a node: plans to create, merge, append and supersede.

A candidate joins the statement that says the same, or is added beside those that differ. What it
contradicts is superseded: that statement moves to a node of its own, which records how long it
held, and links to the node that superseded it. Nothing is destroyed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from difflib import unified_diff
from functools import lru_cache
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from perdure.context.node_files import META
from perdure.context.nodes import Nodes
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
from perdure.engine.learn.judge import Agreement, compare, is_rewording
from perdure.engine.learn.slugs import former_place
from perdure.engine.learn.statements import Statement
from perdure.engine.recall.question import content_words
from perdure.errors import AccessDeniedError, BrokenNodeError, NodeNotFoundError
from perdure.index.contract import Filters
from perdure.model import (
    SUPERSEDED_BY,
    CandidateMemory,
    ContextNode,
    Level,
    NodeStatus,
    RelationEdge,
    RequestContext,
    Uri,
    WriteAction,
    WritePlan,
)
from perdure.model.node import ACCOUNT, OWNER_SPACE, PROJECT, VALID_FROM, VALID_UNTIL
from perdure.model.values import JSON, MAX_ABSTRACT, shortened

DATE = "date"
_ONE_DAY = timedelta(days=1)
SEPARATED = "kept_apart_from"
"""In metadata: CIDs that the owner separated from a node; they are never merged into it again."""


class StatementMatch(NamedTuple):
    """A statement of a node that a candidate is compared with, and the reason of the result."""

    node: ContextNode
    statement: Statement
    reason: str


class NodeComparison(NamedTuple):
    """How a candidate relates to the statements of a node."""

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


# ---------------------------------------------------------------- comparing
def separated_cids(node: ContextNode) -> frozenset[str]:
    return frozenset(texts_of(node.metadata.get(SEPARATED)))


def compared_with(candidate: CandidateMemory, node: ContextNode, when: datetime) -> NodeComparison:
    """Return which statement of a node says the same, and which ones a candidate contradicts."""
    new = Statement.read(candidate.content)
    if new.cid in separated_cids(node):
        return NodeComparison(node)
    known = statements.statements(node.content)
    for each in known:
        if each.text == new.text:
            return NodeComparison(node, StatementMatch(node, each, ""))
    twice = (each for each in known if _is_stored_twice(candidate, node, each, when))
    same = [StatementMatch(node, each, "Both are of one day, one by a tool.") for each in twice]
    against: list[StatementMatch] = []
    for each in known:
        found = compare(each.dated if new.since else each.text, new.dated)
        match = StatementMatch(node, each, found.reason)
        if found.agreement is Agreement.SAME:
            same.append(match)
        elif found.agreement is Agreement.CONTRADICTS:
            against.append(match)
    return NodeComparison(node, same[0] if same else None, tuple(against))


def _is_stored_twice(
    candidate: CandidateMemory, node: ContextNode, known: Statement, when: datetime
) -> bool:
    """Whether a tool stored one and a rule learned the other, on one day, in other words."""
    support = support_of(node).get(known.cid)
    if support is None or bool(support.by) == bool(candidate.metadata.get("by")):
        return False
    apart = abs(when - (support.when or node.updated_at))
    return apart <= _ONE_DAY and is_rewording(known.text, candidate.content)


# ---------------------------------------------------------------- plans
def created(place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
    """Return the plan to create a node with one statement."""
    content = statements.item(candidate.content)
    given = {name: candidate.metadata.get(name) for name in (PROJECT, "kind")}
    metadata = {
        **described(content, {statements.cid_of(candidate.content): _support(candidate, ctx)}),
        **{name: value for name, value in given.items() if value},
    }
    node = ContextNode(uri=str(place), content=content, metadata=metadata)
    reason = "Nothing like it was known."
    return WritePlan(action=WriteAction.CREATE, uri=node.uri, reason=reason, node=node)


def event(place: Uri, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
    plan = created(place, candidate, ctx)
    assert plan.node is not None  # noqa: S101 - a plan to create has a node
    given = {**plan.node.metadata, "who": candidate.who, "where": candidate.where}
    metadata = {n: v for n, v in given.items() if v not in (None, (), "")}
    content = statements.alone(candidate.content)
    return replace(plan, node=replace(plan.node, content=content, metadata=metadata))


def merged(match: StatementMatch, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
    """Return the plan for a known statement: record where it was mentioned again."""
    node, known = match.node, match.statement
    support = support_of(node)
    old, new = support.get(known.cid, Support()), _support(candidate, ctx)
    reason = ""
    if len(old.mentions) >= MOST_MENTIONS:
        reason = f"It was mentioned {len(old.mentions)} times before."
    elif new.mentions and any(each.session == ctx.session_id for each in old.mentions):
        reason = "This session mentioned it before."
    elif not new.mentions and not known.doubted and replace(old.joined(new), when=old.when) == old:
        reason = "It is known."
    if reason:
        return WritePlan(action=WriteAction.SKIP, uri=node.uri, reason=reason, same=known.text)
    if known.text != Statement.read(candidate.content).dated:
        worded = (replace(each, wording=candidate.content) for each in new.mentions)
        new = replace(new, mentions=tuple(worded))
    content = node.content
    if known.doubted:  # it was stated again, so it holds
        content = _redated(content, known, known.since)
    reason = f"It says the same as {quoted(known.text)}. {match.reason}".strip()
    support[known.cid] = old.joined(new)
    merge = _merge(WriteAction.MERGE, candidate, ctx, into=known.cid)
    return replace(changed(node, content, support, merge, reason=reason), same=known.text)


def appended(node: ContextNode, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
    """Return the plan to add a statement to those of a node, ordered by time."""
    support = support_of(node)
    before = _next_after(node, support, candidate)
    content = statements.inserted(node.content, statements.item(candidate.content), before)
    support[statements.cid_of(candidate.content)] = _support(candidate, ctx)
    reason = "It is of the same topic, and says something else."
    return changed(
        node, content, support, _merge(WriteAction.APPEND, candidate, ctx), reason=reason
    )


def doubted(matches: Sequence[StatementMatch], day: date) -> ContextNode:
    """Return a node in which some statements are marked: they may be outdated since a day."""
    node = matches[0].node
    content = node.content
    for each in matches:
        if each.statement.doubted is None:
            content = _redated(content, each.statement, each.statement.since, day)
    return node if content == node.content else node.revised(content=content)


def superseding(
    matches: Sequence[StatementMatch],
    candidate: CandidateMemory,
    ctx: RequestContext,
    when: datetime,
    formers: Callable[[], Sequence[ContextNode]],
) -> WritePlan:
    """Return the plan for a candidate that contradicts some statements of one node.

    The newest statement holds. `formers` returns the nodes that the node superseded before.
    """
    node = matches[0].node
    known = support_of(node)
    last = max(_stated_at(node, known, each.statement) for each in matches)
    if when < last:
        return _held_before(matches, candidate, ctx, (when, last, formers()))
    first, *others = matches
    content = statements.replaced(
        node.content, first.statement, statements.item(candidate.content, when.date())
    )
    for each in others:
        content = statements.without(content, _again(content, each.statement))
    gone = {each.statement.text: each.statement for each in matches}
    cids = {each.cid for each in gone.values()}
    support = {cid: each for cid, each in known.items() if cid not in cids}
    support[statements.cid_of(candidate.content)] = _support(candidate, ctx)
    ending = Ending(when, candidate.content)
    former = tuple(_former(node, each, known, ending) for each in gone.values())
    reason = f"It supersedes {_listed(matches)} {first.reason}".strip()
    merge = _merge(WriteAction.MERGE, candidate, ctx)
    return changed(node, content, support, merge, reason=reason, former=former)


def _held_before(
    matches: Sequence[StatementMatch],
    candidate: CandidateMemory,
    ctx: RequestContext,
    past: tuple[datetime, datetime, Sequence[ContextNode]],
) -> WritePlan:
    """Return the plan for a statement that is learned after the one that superseded it.

    It ends when the next known statement begins, and ends the one that held until then.
    """
    node = matches[0].node
    when, last, formers = past
    compared = [compared_with(candidate, each, when) for each in formers]
    for each in compared:
        if each.same is not None and when < _until(each.node):
            return merged(each.same, candidate, ctx)
    against = [each.node for each in compared if each.against]
    later = [each for each in against if when < _began(each)]
    own = Ending(when, candidate.content)
    ended = [_ended(each, own) for each in against if _began(each) < when < _until(each)]
    if later:
        next_one = min(later, key=_began)
        ending = Ending(_began(next_one), next_one.content.strip())
        begun = {**next_one.metadata, VALID_FROM: ending.when.isoformat()}
        ended.insert(0, next_one.revised(metadata=begun))
        content = node.content
    else:
        ending = Ending(last, matches[0].statement.text)
        content = _since(node.content, matches, last)
    gone = Statement.read(candidate.content)
    former = _former(node, gone, {gone.cid: _support(candidate, ctx)}, ending)
    reason = f"It held before {_listed(matches)} {matches[0].reason}".strip()
    if content == node.content:
        return WritePlan(
            action=WriteAction.CREATE,
            uri=former.uri,
            reason=reason,
            node=former,
            former=tuple(ended),
        )
    merge = _merge(WriteAction.MERGE, candidate, ctx)
    plan = changed(node, content, support_of(node), merge, reason=reason, former=(former,))
    return replace(plan, former=(former, *ended))


def _support(candidate: CandidateMemory, ctx: RequestContext) -> Support:
    return Support.of(candidate, ctx.session_id)


def _merge(
    action: WriteAction, candidate: CandidateMemory, ctx: RequestContext, into: str = ""
) -> Merge:
    return Merge(0, action.value, statements.cid_of(candidate.content), into, ctx.session_id)


def changed(  # noqa: PLR0913 - the fields of such a plan
    node: ContextNode,
    content: str,
    support: Mapping[str, Support],
    merge: Merge,
    *,
    reason: str,
    former: tuple[ContextNode, ...] = (),
) -> WritePlan:
    """Return the plan to revise a node, which records the merge."""
    new = replace(merge, version=node.version + 1, former=tuple(each.uri for each in former))
    merges = merges_as_metadata([*merges_of(node), new])
    metadata = {**node.metadata, **described(content, support), **merges}
    revised = node.revised(content=content, metadata=metadata)
    return WritePlan(
        action=WriteAction(merge.action), uri=node.uri, reason=reason, node=revised, former=former
    )


def described(content: str, support: Mapping[str, Support]) -> dict[str, JSON]:
    """Return the metadata of a text: the support of its statements, its day, and its validity."""
    known = statements.statements(content)
    cids = {each.cid for each in known}
    supported = {cid: each for cid, each in support.items() if cid in cids}
    newest = max((each.when for each in supported.values() if each.when), default=None)
    since = [each.since for each in known if each.since is not None]
    begins = min(since).isoformat() if since and len(since) == len(known) else None
    date_ = newest.isoformat() if newest else None
    return {**as_metadata(supported), DATE: date_, VALID_FROM: begins}


def _next_after(
    node: ContextNode, support: Mapping[str, Support], candidate: CandidateMemory
) -> Statement | None:
    """Return the first of the newer statements at the end; one written by hand stops the search."""
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


# ---------------------------------------------------------------- times
def _former(
    node: ContextNode, gone: Statement, known: Mapping[str, Support], ending: Ending
) -> ContextNode:
    """Return the node of a statement that no longer holds."""
    end = ending.when.isoformat()
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
        relations=(RelationEdge(str(place), node.uri, SUPERSEDED_BY, reason=ending.reason),),
    )


def _ended(former: ContextNode, ending: Ending) -> ContextNode:
    edges = (
        replace(edge, reason=ending.reason) if edge.relation_type == SUPERSEDED_BY else edge
        for edge in former.relations
    )
    metadata = {**former.metadata, VALID_UNTIL: ending.when.isoformat()}
    return former.revised(metadata=metadata, relations=tuple(edges))


def _since(content: str, matches: Sequence[StatementMatch], when: datetime) -> str:
    """Return a text in which each of some items has the day since which it holds."""
    for each in (match.statement for match in matches):
        if each.since is None and each.is_item:
            content = _redated(content, each, when.date())
    return content


def _redated(content: str, known: Statement, since: date | None, doubt: date | None = None) -> str:
    item = statements.item(known.text, since, doubt)
    return statements.replaced(content, _again(content, known), item)


def _until(former: ContextNode) -> datetime:
    return former.valid_until or former.updated_at


def _began(former: ContextNode) -> datetime:
    """Return when a former statement began to hold, or was first stated."""
    times = [each.when for each in support_of(former).values() if each.when is not None]
    return former.valid_from or min(times, default=_until(former))


def _stated_at(node: ContextNode, known: Mapping[str, Support], statement: Statement) -> datetime:
    support = known.get(statement.cid)
    return (support.when if support else None) or node.updated_at


def _again(content: str, statement: Statement) -> Statement:
    return next(each for each in statements.statements(content) if each.text == statement.text)


_NEAR = 8
"""Read at most this many nodes that may be about the same subject."""

Match = Callable[[Sequence[str], Filters, int], dict[str, float]]
"""Returns the URIs of records with one of some words, best first."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The contents of a node before and after a commit; empty before it exists."""

    uri: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        before, after = self.before.splitlines(), self.after.splitlines()
        lines = unified_diff(before, after, self.uri, self.uri, lineterm="")
        return "".join(f"{line}\n" for line in lines)


class KnownMemory:
    """What memory will have after some plans are written in one commit.

    The index finds stored nodes about the same subject. A node is read once: what another process
    writes after that is a conflict of the commit.
    """

    def __init__(self, nodes: Nodes, match: Match) -> None:
        self.nodes = nodes
        self._match = match
        self._stored: dict[str, ContextNode | None] = {}
        self._planned: dict[str, ContextNode] = {}

    def fresh(self) -> "KnownMemory":
        """Return the same memory without plans, which reads all nodes again."""
        return KnownMemory(self.nodes, self._match)

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        """Return the active node at a place; None if there is none."""
        return self._planned.get(str(place)) or self._stored_at(str(place), ctx)

    def _stored_at(self, uri: str, ctx: RequestContext) -> ContextNode | None:
        if uri not in self._stored:
            try:
                self._stored[uri] = self.nodes.read_node(uri, ctx)
            except NodeNotFoundError:
                self._stored[uri] = None
        return self._stored[uri]

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether an inactive node is there: archived, or broken."""
        if str(place) in self._planned:
            return False
        self.nodes.reach.require_writable(str(place), ctx)
        while True:
            try:
                stored = self.nodes.load(place)
            except BrokenNodeError:
                return True
            if stored is not None:
                return stored.meta.status is not NodeStatus.ACTIVE
            files = self.nodes.files(place)
            if files[META] is None:  # or another process wrote it since `load`
                return any(found is not None for found in files.values())

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> list[ContextNode]:
        """Return nodes of the same owner and category that may be about the same subject."""
        words = _words(candidate.content)
        wanted = candidate.category, candidate.owner_space
        akin = [n for n in self._planned.values() if (n.category, n.owner_space) == wanted]
        shared = [(len(words & _words(node.content)), node) for node in akin]
        best = nlargest(_NEAR, shared, key=itemgetter(0))
        filters: Filters = {
            ACCOUNT: ctx.account_id,
            OWNER_SPACE: candidate.owner_space,
            "category": candidate.category,
            "level": Level.CONTENT.value,
        }
        asked = content_words(f"{candidate.content} {candidate.slug.replace('-', ' ')}")
        found = self._match(asked, filters, _NEAR) if asked else {}
        return [*(node for count, node in best if count), *self._unplanned(found, ctx)]

    def formers(self, page: ContextNode, ctx: RequestContext) -> list[ContextNode]:
        """Return the nodes that a node superseded."""
        stored = self._unplanned(map(str, self.nodes.leading_to(page.place)), ctx)
        return [n for n in (*stored, *self._planned.values()) if _is_superseded_by(n, page)]

    def _unplanned(self, uris: Iterable[str], ctx: RequestContext) -> Iterator[ContextNode]:
        """Yield the stored nodes without a plan that can be read."""
        for uri in uris:
            try:
                node = None if uri in self._planned else self._stored_at(uri, ctx)
            except (BrokenNodeError, AccessDeniedError):
                continue
            if node is not None:
                yield node

    # ------------------------------------------------------------ plans
    def take(self, plan: WritePlan, ctx: RequestContext) -> None:
        for node in filter(None, (plan.node, *plan.former, *plan.doubted)):
            self.at(node.place, ctx)
            self._planned[node.uri] = node

    def planned(self) -> list[ContextNode]:
        """Return the planned nodes that differ from the stored ones."""
        return [self._next(node) for node in self._planned.values() if self._is_change(node)]

    def changes(self) -> Iterator[NodeChange]:
        for node in self.planned():
            stored = self._stored.get(node.uri)
            yield NodeChange(node.uri, stored.content if stored else "", node.content)

    def _next(self, node: ContextNode) -> ContextNode:
        stored = self._stored.get(node.uri)
        version = stored.version + 1 if stored else 1
        merges = [replace(each, version=min(each.version, version)) for each in merges_of(node)]
        metadata = {**node.metadata, **(merges_as_metadata(merges) if merges else {})}
        if stored is None:
            metadata = {name: value for name, value in metadata.items() if value is not None}
        basis = stored.basis if stored else ""
        return replace(node, version=version, basis=basis, metadata=metadata)

    def _is_change(self, node: ContextNode) -> bool:
        old = self._stored.get(node.uri)
        return old is None or old.content != node.content or old.metadata != node.metadata


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _is_superseded_by(node: ContextNode, page: ContextNode) -> bool:
    return any(
        edge.to_uri == page.uri and edge.relation_type == SUPERSEDED_BY for edge in node.relations
    )
