"""Saving a session: its messages first, then what can be learned from them, a part at a time.

Each part is one commit: all that was learned from some messages, and the mark that they were
learned from. So who is stopped anywhere goes on where the mark stands, and nothing is there twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from enum import Enum
from functools import lru_cache, partial
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from perdure.context.draft import Marks
from perdure.context.files import META
from perdure.context.nodes import Nodes
from perdure.dataclass import dataclass, field, replace
from perdure.engine.forgotten import of_caller
from perdure.engine.learn.evidence import (
    evidence_of,
    merges_as_metadata,
    merges_of,
    verified,
    with_anchors,
)
from perdure.engine.learn.extractors import EXTRACTORS, CandidateExtractor
from perdure.engine.learn.prose import sentences
from perdure.engine.learn.review import id_of
from perdure.engine.present import match_words
from perdure.engine.recall.question import content_words
from perdure.engine.services import Services
from perdure.engine.sessions import (
    WHOLE,
    Addition,
    Archived,
    Beginnings,
    Learned,
    Sessions,
    learned_from,
)
from perdure.errors import (
    AccessDeniedError,
    BrokenNodeError,
    ConcurrentModificationError,
    ContextError,
    NodeExistsError,
    NodeNotFoundError,
    PerdureError,
    VersionMismatchError,
)
from perdure.index.contract import Filters
from perdure.model import (
    SUPERSEDED_BY,
    Action,
    CandidateMemory,
    ContextNode,
    Level,
    NodeStatus,
    RequestContext,
    Uri,
    WritePlan,
)
from perdure.model.anchors import Anchors
from perdure.model.messages import LeftOut
from perdure.model.record import ACCOUNT, OWNER_SPACE
from perdure.model.transcript import Message
from perdure.model.trust import ORIGINS
from perdure.model.uri import OF_THE_PERSON
from perdure.safety.secrets import SecretPolicy
from perdure.safety.texts import Masked, validated

if TYPE_CHECKING:
    from perdure.engine.learn.merging import Known


class Outcome(Enum):
    """What becomes of a candidate. Each has one, so that they add up to all that was extracted."""

    CREATED = "created"
    """It is a memory of its own."""
    MERGED = "merged"
    """A memory says the same, or said what it supersedes."""
    APPENDED = "appended"
    """It stands beside others of its topic."""
    SKIPPED = "skipped"
    """It was known."""
    FILTERED = "filtered"
    """Nobody is sure enough of it."""
    FAILED = "failed"
    """It could not be kept; the reason says why."""


_OF_ACTION = {
    Action.CREATE: Outcome.CREATED,
    Action.MERGE: Outcome.MERGED,
    Action.APPEND: Outcome.APPENDED,
    Action.SKIP: Outcome.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Planned:
    candidate: CandidateMemory
    outcome: Outcome
    reason: str
    plan: WritePlan | None = None

    @classmethod
    def by(cls, candidate: CandidateMemory, plan: WritePlan) -> "Planned":
        return cls(candidate, _OF_ACTION[plan.action], plan.reason, plan)

    @property
    def uri(self) -> str:
        return self.plan.uri if self.plan else ""

    @property
    def superseded(self) -> tuple[str, ...]:
        return tuple(each.uri for each in self.plan.former) if self.plan else ()


@dataclass(frozen=True, slots=True)
class Change:
    """A node as it was and as it is to be; what was not there is empty."""

    uri: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        before, after = self.before.splitlines(), self.after.splitlines()
        lines = unified_diff(before, after, self.uri, self.uri, lineterm="")
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class SessionCommit:
    session_id: str
    uris: tuple[str, ...]
    messages: int
    added: int
    plans: tuple[Planned, ...] = ()
    """What became of each candidate, in the order in which they were said."""
    changes: tuple[Change, ...] = ()
    """The nodes that changed, or would."""
    masked_messages: tuple[Masked, ...] = ()
    """Those of the new messages that held secrets, which are masked."""
    replaced: int = 0
    """How many messages of a last answer the new ones replaced; history keeps them."""
    left_out: tuple[LeftOut, ...] = ()
    """What of the given messages can't be kept: images, reasoning, empty messages, odd keys."""
    hidden: int = 0
    """How many sentences of them are kept back, because the user forgot them."""

    @property
    def masked(self) -> int:
        return sum(len(each.kinds) for each in self.masked_messages)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(each.outcome for each in self.plans)
        return {"extracted": len(self.plans), **{each.value: found[each] for each in Outcome}}

    @property
    def extracted(self) -> int:
        return len(self.plans)

    @property
    def created(self) -> int:
        return self._count(Outcome.CREATED)

    @property
    def merged(self) -> int:
        return self._count(Outcome.MERGED)

    @property
    def appended(self) -> int:
        return self._count(Outcome.APPENDED)

    @property
    def skipped(self) -> int:
        return self._count(Outcome.SKIPPED)

    @property
    def filtered(self) -> int:
        return self._count(Outcome.FILTERED)

    @property
    def failed(self) -> int:
        return self._count(Outcome.FAILED)

    @property
    def superseded(self) -> int:
        return sum(len(each.superseded) for each in self.plans)

    @property
    def diff(self) -> str:
        return "".join(each.diff for each in self.changes)

    def _count(self, outcome: Outcome) -> int:
        return sum(each.outcome is outcome for each in self.plans)


_NEAR = 8
"""So many nodes are looked at that may speak of the same."""
_PASSAGES = Level.CONTENT.value

Match = Callable[[Sequence[str], Filters, int], dict[str, float]]
"""Returns the URIs of what has one of some words, best first."""


class KnownNodes:
    """What is in canonical state. Who speaks of the same is found by the index, and then read."""

    def __init__(self, nodes: Nodes, match: Match) -> None:
        self.nodes = nodes
        self._match = match

    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        try:
            return self.nodes.read_node(str(place), ctx)
        except NodeNotFoundError:
            return None

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        self.nodes.reach.changed(str(place), ctx)
        while True:
            try:
                stored = self.nodes.load(place)
            except BrokenNodeError:
                return True
            if stored is not None:
                return stored.meta.status is not NodeStatus.ACTIVE
            files = self.nodes.files(place)
            if files[META] is None:  # else somebody wrote it between the two looks
                return any(found is not None for found in files.values())

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        filters: Filters = {
            ACCOUNT: ctx.account_id,
            OWNER_SPACE: candidate.owner_space,
            "category": candidate.category,
            "level": _PASSAGES,
        }
        words = content_words(f"{candidate.content} {candidate.slug.replace('-', ' ')}")
        found = self._match(words, filters, _NEAR) if words else {}
        return [node for uri in found if (node := self._readable(uri, ctx)) is not None]

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        found = (self._readable(str(place), ctx) for place in self.nodes.leading_to(page.place))
        return [node for node in found if node is not None and _leads(node, page)]

    def _readable(self, uri: str, ctx: RequestContext) -> ContextNode | None:
        try:
            return self.nodes.read_node(uri, ctx)
        except (NodeNotFoundError, BrokenNodeError, AccessDeniedError):
            return None


class Ahead:
    """What will be known once some plans are carried out, all of them at once."""

    def __init__(self, known: "Known") -> None:
        self._known = known
        self._base: dict[str, ContextNode | None] = {}
        self._planned: dict[str, ContextNode] = {}

    # ------------------------------------------------------------ knowing
    def at(self, place: Uri, ctx: RequestContext) -> ContextNode | None:
        uri = str(place)
        if uri in self._planned:
            return self._planned[uri]
        if uri not in self._base:
            self._base[uri] = self._known.at(place, ctx)
        return self._base[uri]

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        return str(place) not in self._planned and self._known.taken(place, ctx)

    def near(self, candidate: CandidateMemory, ctx: RequestContext) -> Sequence[ContextNode]:
        there = self._known.near(candidate, ctx)
        for node in there:
            self._base.setdefault(node.uri, node)
        others = (each for each in there if each.uri not in self._planned)
        return [*self._planned_near(candidate), *(self._base[each.uri] or each for each in others)]

    def _planned_near(self, candidate: CandidateMemory) -> Sequence[ContextNode]:
        words = _words(candidate.content)
        wanted = candidate.category, candidate.owner_space
        akin = [n for n in self._planned.values() if (n.category, n.owner_space) == wanted]
        shared = [(len(words & _words(node.content)), node) for node in akin]
        return [node for count, node in nlargest(_NEAR, shared, key=itemgetter(0)) if count]

    def formers(self, page: ContextNode, ctx: RequestContext) -> Sequence[ContextNode]:
        there = [each for each in self._known.formers(page, ctx) if each.uri not in self._planned]
        for node in there:
            self._base.setdefault(node.uri, node)
        return [*there, *(each for each in self._planned.values() if _leads(each, page))]

    # ------------------------------------------------------------ planning
    def take(self, plan: WritePlan, ctx: RequestContext) -> None:
        for node in filter(None, (plan.node, *plan.former, *plan.doubted)):
            self.at(node.place, ctx)
            self._planned[node.uri] = node

    def nodes(self) -> list[ContextNode]:
        return [self._next(node) for node in self._planned.values() if self._is_change(node)]

    def changes(self) -> Iterator[Change]:
        for node in self.nodes():
            base = self._base.get(node.uri)
            yield Change(node.uri, base.content if base else "", node.content)

    def _next(self, node: ContextNode) -> ContextNode:
        base = self._base.get(node.uri)
        version = base.version + 1 if base else 1
        merges = [replace(each, version=min(each.version, version)) for each in merges_of(node)]
        metadata = {**node.metadata, **(merges_as_metadata(merges) if merges else {})}
        if base is None:
            metadata = {name: value for name, value in metadata.items() if value is not None}
        basis = base.basis if base else ""
        return replace(node, version=version, basis=basis, metadata=metadata)

    def _is_change(self, node: ContextNode) -> bool:
        """Whether it is not there already: what held once is told again by who repeats it."""
        base = self._base.get(node.uri)
        return base is None or base.content != node.content or base.metadata != node.metadata


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _leads(node: ContextNode, page: ContextNode) -> bool:
    return any(
        edge.to_uri == page.uri and edge.relation_type == SUPERSEDED_BY for edge in node.relations
    )


AT_ONCE = 200
"""So many new messages are learned from at a time; what was learned then is kept at once."""
_BEFORE = 20


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a session, by their indexes; those from `start` on are new."""

    said: Sequence[Message]
    start: int
    end: int

    @property
    def indexes(self) -> list[int]:
        first: dict[tuple[str, str], int] = {}
        before = self.said[: self.start] if isinstance(self.said, list) else ()
        for index, message in enumerate(before):  # of a long session, only the end is at hand
            first.setdefault((message.role, message.name), index)
        recent = range(max(0, self.start - _BEFORE), self.end)
        return sorted({*first.values(), *recent})

    @property
    def messages(self) -> list[Mapping[str, object]]:
        return [_as_mapping(self.said[index]) for index in self.indexes]

    def placed(self, candidates: Sequence[CandidateMemory]) -> list[CandidateMemory]:
        """Return what rests on something new, with its evidence counted as the session counts."""
        indexes = self.indexes
        placed = (_placed(candidate, indexes) for candidate in candidates)
        return [
            each
            for each in placed
            if any(evidence.message >= self.start for evidence in evidence_of(each))
        ]


def _placed(candidate: CandidateMemory, indexes: Sequence[int]) -> CandidateMemory:
    found = evidence_of(candidate)
    evidence = [replace(each, message=indexes[each.message]).as_json() for each in found]
    return replace(candidate, metadata={**candidate.metadata, "evidence": evidence})


def _as_mapping(message: Message) -> dict[str, object]:
    told = {"role": message.role, "content": message.content}
    more = {"name": message.name, "time": message.time}
    return {**told, **{name: value for name, value in more.items() if value}}


_ATTEMPTS = 20
_SLACK = timedelta(days=1)
"""So far clocks and time zones may differ."""
_HAPPENINGS = frozenset({"event", "case"})
LEAST_CONFIDENCE = 0.6
"""What is less sure is left in the session, where recall finds it."""


@dataclass(frozen=True, slots=True)
class Wishes:
    least_confidence: float = LEAST_CONFIDENCE
    extract: bool = True
    """Learn from the messages; else only keep them."""
    dry_run: bool = False
    again: bool = False
    """Learn from all messages, those too that were learned from before."""
    project: str = ""
    """The project that its statements belong to, but for those about the person."""
    anchored: Callable[[str, datetime | None], Anchors | None] = lambda _text, _when: None
    """Returns what a statement of a time names of the checkout that the session worked in."""
    addition: Addition = WHOLE
    progress: Callable[[int, int], None] = lambda _done, _all: None
    """Told after each part how many messages are done, of how many."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Sentences of users that are not their own, by id, and where their words stem from."""


class Saving:
    """Saves sessions. The same twice, or again after a crash, changes nothing."""

    def __init__(
        self,
        nodes: Nodes,
        known: "Known",
        *,
        extractors: Sequence[CandidateExtractor] = EXTRACTORS,
        wishes: Wishes | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._nodes = nodes
        self._sessions = Sessions(nodes, self._at_once)
        self._learned: list[_Learned] = []
        self._marks = Marks(nodes)
        self._known = known
        self._extractors = extractors
        self._clock = clock
        self._wishes = wishes or Wishes()

    def commit(
        self,
        messages: Iterable[object],
        session_id: str,
        ctx: RequestContext,
        *,
        settle: Callable[[], None] = lambda: None,
    ) -> SessionCommit:
        """Keep the messages and learn from them; `settle` is called when something is kept."""
        wishes, self._learned = self._wishes, []
        archived = self._sessions.archive(
            messages, session_id, ctx, addition=wishes.addition, dry_run=wishes.dry_run
        )
        self._wishes = replace(wishes, project=archived.project)
        if not wishes.dry_run:
            settle()
        plans: list[Planned] = []
        changes: dict[str, Change] = {}
        count = len(archived.said)
        at_once = self._learned if archived.learned == count else []
        for found, changed in at_once or self._parts(archived, replace(ctx, session_id=session_id)):
            plans += found
            for each in changed:
                before = changes.get(each.uri, each).before
                changes[each.uri] = replace(each, before=before)
            if at_once:
                wishes.progress(count, count)
            elif not wishes.dry_run:
                settle()
        return SessionCommit(
            session_id,
            archived.uris,
            count,
            archived.added,
            tuple(plans),
            tuple(changes.values()),
            archived.masked,
            archived.replaced,
            archived.left_out,
            archived.hidden,
        )

    def _at_once(self, archived: Archived, ctx: RequestContext) -> Learned:
        """Learn from what is about to be written, unless it is much; what fails is tried after."""
        self._learned = []
        self._wishes = replace(self._wishes, project=archived.project)
        windows, fresh = list(self._windows(archived)), Ahead(self._known)
        if len(windows) != 1 or self._wishes.again:
            return Learned()
        with suppress(PerdureError):
            plans = self._planned(windows[0], fresh, ctx)
            self._learned = [(plans, list(fresh.changes()))]
            return Learned(fresh.nodes(), Beginnings(archived.said).mark(len(archived.said)))
        return Learned()

    def _parts(self, archived: Archived, ctx: RequestContext) -> Iterator["_Learned"]:
        ahead, beginnings = Ahead(self._known), Beginnings(archived.said)
        for window in self._windows(archived):
            if self._wishes.dry_run:
                yield self._planned(window, ahead, ctx), list(ahead.changes())
            else:
                yield self._learn(window, archived, beginnings, ctx)
            self._wishes.progress(window.end, len(archived.said))

    def _windows(self, archived: Archived) -> Iterator[Window]:
        """Yield what nobody has learned from yet, or everything if that is to be done again."""
        said, first = archived.said, 0 if self._wishes.again else archived.learned
        for start in range(first, len(said) if self._wishes.extract else 0, AT_ONCE):
            yield Window(said, start, min(start + AT_ONCE, len(said)))

    # ------------------------------------------------------------ one part
    def _learn(
        self, window: Window, archived: Archived, beginnings: Beginnings, ctx: RequestContext
    ) -> "_Learned":
        before, after = beginnings.mark(window.start), beginnings.mark(window.end)
        for _ in range(_ATTEMPTS):
            mark = self._marks.read(archived.place, ctx)
            is_learned = mark != before and learned_from(mark, archived.said) >= window.end
            if is_learned and not self._wishes.again:
                return [], []
            fresh = Ahead(self._known)
            moved = self._marks.moved(archived.place, mark, mark if is_learned else after)
            try:
                plans = self._planned(window, fresh, ctx)
                self._nodes.because("session").exchange(fresh.nodes(), (), ctx, also=moved)
            except (VersionMismatchError, NodeExistsError, ConcurrentModificationError):
                continue  # somebody was faster: plan with what is there now
            return plans, list(fresh.changes())
        raise ConcurrentModificationError(
            f"others change the same memories all the time; {_ATTEMPTS} attempts came too late. "
            "The messages are kept. Fix: commit the session again."
        )

    def _candidates(
        self, window: Window, ctx: RequestContext
    ) -> tuple[list[CandidateMemory], list[Planned]]:
        """Return what may be remembered, as it was said; and what may not, with the reason."""
        messages = window.messages
        fit: list[CandidateMemory] = []
        unfit: list[Planned] = []
        for extractor in self._extractors:
            kept, refused = verified(extractor.extract(messages, ctx), messages)
            unfit += (Planned(each, Outcome.FAILED, reason) for each, reason in refused)
            fit += window.placed(kept)
        sure: list[CandidateMemory] = []
        for candidate in sorted(fit, key=lambda each: evidence_of(each)[0].message):
            if origin := self._origin(candidate, window):
                reason = f"Its words are not the user's own: {ORIGINS[origin]}."
                unfit.append(Planned(candidate, Outcome.FILTERED, reason))
                continue
            if candidate.confidence < self._wishes.least_confidence:
                reason = f"Its confidence is {candidate.confidence:g}."
                unfit.append(Planned(candidate, Outcome.FILTERED, reason))
                continue
            try:
                fit_one = self._timed(validated(candidate, SecretPolicy.MASK).candidate)
                anchors = self._wishes.anchored(fit_one.content, fit_one.when)
                sure.append(with_anchors(self._of_project(fit_one), anchors))
            except ContextError as error:
                unfit.append(Planned(candidate, Outcome.FAILED, str(error)))
        return sure, unfit

    def _origin(self, candidate: CandidateMemory, window: Window) -> str:
        """Return where the words stem from that a candidate rests on; empty if the user's own."""
        if not self._wishes.foreign:
            return ""
        stated = (
            sentence.text
            for each in evidence_of(candidate)
            for sentence in sentences(window.said[each.message].content)
            if each.quote in sentence.text or sentence.text in each.quote
        )
        found = (self._wishes.foreign.get(id_of(text), "") for text in stated)
        return next(filter(None, found), "")

    def _timed(self, candidate: CandidateMemory) -> CandidateMemory:
        """Return a candidate; one that was said in the future has no time, for a clock was wrong.

        Else nothing that is said until then would hold beside it. What happens may well be ahead.
        """
        ahead = candidate.when is not None and candidate.when > self._clock() + _SLACK
        if ahead and candidate.category not in _HAPPENINGS:
            return replace(candidate, when=None)
        return candidate

    def _of_project(self, candidate: CandidateMemory) -> CandidateMemory:
        project = self._wishes.project
        if not project or candidate.category in OF_THE_PERSON:
            return candidate
        return replace(candidate, metadata={**candidate.metadata, "project": project})

    def _planned(self, window: Window, ahead: Ahead, ctx: RequestContext) -> list[Planned]:
        candidates, unfit = self._candidates(window, ctx)
        return [*unfit, *(self._plan(candidate, ahead, ctx) for candidate in candidates)]

    def _plan(self, candidate: CandidateMemory, ahead: Ahead, ctx: RequestContext) -> Planned:
        from perdure.engine.learn.merging import policy_for  # noqa: PLC0415 - 16 ms if none is

        if of_caller(self._nodes, ctx).says(candidate.content):
            return Planned(candidate, Outcome.FILTERED, "The user forgot it.")
        policy = policy_for(candidate.category, ahead, self._clock)
        try:
            plan = policy.plan(candidate, ctx)
            self._refuse_put_away(plan, ahead, ctx)
        except ContextError as error:
            return Planned(candidate, Outcome.FAILED, str(error))
        ahead.take(plan, ctx)
        return Planned.by(candidate, plan)

    def _refuse_put_away(self, plan: WritePlan, ahead: Ahead, ctx: RequestContext) -> None:
        for node in plan.former:
            if ahead.taken(node.place, ctx):
                raise NodeExistsError(
                    f"what it supersedes is put away at {node.uri!a}. Fix: unarchive or delete it."
                )


_Learned = tuple[list[Planned], list[Change]]


def saving_for(parts: Services, wishes: Wishes) -> Saving:
    known = KnownNodes(parts.nodes, partial(match_words, parts))
    return Saving(parts.nodes, known, wishes=wishes)
