"""Commit a session: archive its messages, then learn from them, one window at a time.

The memories of a window are one commit, with the mark that its messages were learned from. After
an interruption the next commit of the session continues at the mark, so nothing is learned twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial

from perdure.context.nodes import Nodes, SessionMarks
from perdure.dataclass import dataclass, field, replace
from perdure.engine.forgotten import of_caller
from perdure.engine.learn.evidence import evidence_of, verified, with_anchors
from perdure.engine.learn.extractors import EXTRACTORS, CandidateExtractor
from perdure.engine.learn.merge import KnownMemory, NodeChange
from perdure.engine.learn.prose import sentence_id, sentences
from perdure.engine.present import match_words
from perdure.engine.services import Services
from perdure.engine.sessions import (
    WHOLE,
    Addition,
    LearnedMarks,
    LearnedNodes,
    SessionArchive,
    Sessions,
    learned_count,
)
from perdure.errors import (
    ConcurrentModificationError,
    ContextError,
    NodeExistsError,
    PerdureError,
    VersionMismatchError,
)
from perdure.model import CandidateMemory, RequestContext, WriteAction, WritePlan
from perdure.model.anchors import Anchors
from perdure.model.messages import SkippedContent
from perdure.model.transcript import Message
from perdure.model.trust import ORIGINS
from perdure.model.uri import OF_THE_PERSON
from perdure.safety.secrets import SecretPolicy
from perdure.safety.validation import MaskedMessage, validate


class Outcome(Enum):
    """The result of a candidate. Each candidate has one, so their counts add up."""

    CREATED = "created"
    """It is a memory of its own."""
    MERGED = "merged"
    """It says the same as a stored statement, or supersedes one."""
    APPENDED = "appended"
    """It was added to the statements of its topic."""
    SKIPPED = "skipped"
    """It was known."""
    FILTERED = "filtered"
    """It is not certain enough, or not the user's own, or was forgotten."""
    FAILED = "failed"
    """It could not be stored; `reason` explains it."""


_OF_ACTION = {
    WriteAction.CREATE: Outcome.CREATED,
    WriteAction.MERGE: Outcome.MERGED,
    WriteAction.APPEND: Outcome.APPENDED,
    WriteAction.SKIP: Outcome.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class CandidateResult:
    candidate: CandidateMemory
    outcome: Outcome
    reason: str
    plan: WritePlan | None = None

    @classmethod
    def by(cls, candidate: CandidateMemory, plan: WritePlan) -> "CandidateResult":
        return cls(candidate, _OF_ACTION[plan.action], plan.reason, plan)

    @property
    def uri(self) -> str:
        return self.plan.uri if self.plan else ""

    @property
    def superseded(self) -> tuple[str, ...]:
        return tuple(each.uri for each in self.plan.former) if self.plan else ()


@dataclass(frozen=True, slots=True)
class SessionCommit:
    session_id: str
    uris: tuple[str, ...]
    messages: int
    added: int
    plans: tuple[CandidateResult, ...] = ()
    """The result of each candidate, in the order of the messages."""
    changes: tuple[NodeChange, ...] = ()
    """The nodes that changed, or would on a dry run."""
    masked_messages: tuple[MaskedMessage, ...] = ()
    """The new messages in which secrets were masked."""
    replaced: int = 0
    """How many messages of a last answer the new ones replaced; history has them."""
    left_out: tuple[SkippedContent, ...] = ()
    """What can't be stored of the given messages: images, reasoning, empty ones, unknown keys."""
    hidden: int = 0
    """How many of their sentences are hidden, because the user forgot them."""

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
        return self.counts["created"]

    @property
    def merged(self) -> int:
        return self.counts["merged"]

    @property
    def appended(self) -> int:
        return self.counts["appended"]

    @property
    def skipped(self) -> int:
        return self.counts["skipped"]

    @property
    def filtered(self) -> int:
        return self.counts["filtered"]

    @property
    def failed(self) -> int:
        return self.counts["failed"]

    @property
    def superseded(self) -> int:
        return sum(len(each.superseded) for each in self.plans)

    @property
    def diff(self) -> str:
        return "".join(each.diff for each in self.changes)


# ---------------------------------------------------------------- messages
WINDOW_MESSAGES = 200
"""Learn from at most this many new messages in one commit."""
_BEFORE = 20


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """Some messages of a session, by their indexes; those from `start` on are new."""

    session: Sequence[Message]
    start: int
    end: int
    project: str = ""
    """The project of its statements, except those about the person."""

    @property
    def indexes(self) -> list[int]:
        first: dict[tuple[str, str], int] = {}
        before = self.session[: self.start] if isinstance(self.session, list) else ()
        for index, message in enumerate(before):  # a lazy session has only its end in memory
            first.setdefault((message.role, message.name), index)
        recent = range(max(0, self.start - _BEFORE), self.end)
        return sorted({*first.values(), *recent})

    @property
    def messages(self) -> list[Mapping[str, object]]:
        return [_as_mapping(self.session[index]) for index in self.indexes]

    def placed(self, candidates: Sequence[CandidateMemory]) -> list[CandidateMemory]:
        """Return the candidates with new evidence, whose indexes are now those of the session."""
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
    more = {"name": message.name, "time": message.time}
    named = {name: value for name, value in more.items() if value}
    return {"role": message.role, "content": message.content, **named}


# ---------------------------------------------------------------- committing
_ATTEMPTS = 20
_SLACK = timedelta(days=1)
"""The most that clocks and time zones may differ."""
_DATED = frozenset({"event", "case"})
"""The categories of candidates whose time may be in the future."""
LEAST_CONFIDENCE = 0.6
"""A less certain candidate is not stored; recall finds its message."""


@dataclass(frozen=True, slots=True)
class CommitOptions:
    least_confidence: float = LEAST_CONFIDENCE
    extract: bool = True
    """Learn from the messages; False only archives them."""
    dry_run: bool = False
    again: bool = False
    """Learn from all messages, also from those that were learned from before."""
    anchors_for: Callable[[str, datetime | None], Anchors | None] = lambda _text, _when: None
    """Returns the anchors of a statement in the checkout that the session worked in."""
    addition: Addition = WHOLE
    progress: Callable[[int, int], None] = lambda _done, _all: None
    """Called after each window with the number of messages that are done, and of all."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Sentences that are not the user's own, by id, with their source."""


class SessionCommitter:
    """Commits sessions. The same commit twice, or again after a crash, changes nothing."""

    def __init__(
        self,
        nodes: Nodes,
        known: KnownMemory,
        *,
        extractors: Sequence[CandidateExtractor] = EXTRACTORS,
        options: CommitOptions | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._nodes = nodes
        self._marks = SessionMarks(nodes)
        self._known = known
        self._extractors = extractors
        self._clock = clock
        self._options = options or CommitOptions()

    def commit(
        self,
        messages: Iterable[object],
        session_id: str,
        ctx: RequestContext,
        *,
        settle: Callable[[], None] = lambda: None,
    ) -> SessionCommit:
        """Archive the messages and learn from them; call `settle` after each commit."""
        options, early = self._options, list[_Learned]()

        def learn(archive: SessionArchive, inside: RequestContext) -> LearnedNodes:
            early.clear()
            planned = self._known.fresh()
            windows = list(self._windows(archive))
            if len(windows) == 1 and not options.again:
                with suppress(PerdureError):  # which learning after the commit reports
                    early.append((self._results(windows[0], planned, inside), planned))
                    mark = LearnedMarks(archive.messages).mark(len(archive.messages))
                    return LearnedNodes(planned.planned(), mark)
            return LearnedNodes()

        archive = Sessions(self._nodes, learn).archive(
            messages, session_id, ctx, addition=options.addition, dry_run=options.dry_run
        )
        if not options.dry_run:
            settle()
        count = len(archive.messages)
        with_messages = early if archive.learned == count else []
        results: list[CandidateResult] = []
        changes: dict[str, NodeChange] = {}
        inside = replace(ctx, session_id=session_id)
        for found, planned in with_messages or self._learned(archive, inside):
            results += found
            for each in planned.changes():
                before = changes.get(each.uri, each).before
                changes[each.uri] = replace(each, before=before)
            if with_messages:
                options.progress(count, count)
            elif not options.dry_run:
                settle()
        return SessionCommit(
            session_id,
            archive.uris,
            count,
            archive.added,
            tuple(results),
            tuple(changes.values()),
            archive.masked,
            archive.replaced,
            archive.left_out,
            archive.hidden,
        )

    def _windows(self, archive: SessionArchive) -> Iterator[MessageWindow]:
        """Yield the messages that were not learned from yet, or all with `again`."""
        count = len(archive.messages) if self._options.extract else 0
        first = 0 if self._options.again else archive.learned
        for start in range(first, count, WINDOW_MESSAGES):
            end = min(start + WINDOW_MESSAGES, count)
            yield MessageWindow(archive.messages, start, end, archive.project)

    def _learned(self, archive: SessionArchive, ctx: RequestContext) -> Iterator["_Learned"]:
        planned, marks = self._known.fresh(), LearnedMarks(archive.messages)
        for window in self._windows(archive):
            if self._options.dry_run:
                yield self._results(window, planned, ctx), planned
            else:
                yield self._learn(window, archive, marks, ctx)
            self._options.progress(window.end, len(archive.messages))

    def _learn(
        self,
        window: MessageWindow,
        archive: SessionArchive,
        marks: LearnedMarks,
        ctx: RequestContext,
    ) -> "_Learned":
        before, after = marks.mark(window.start), marks.mark(window.end)
        for _ in range(_ATTEMPTS):
            planned = self._known.fresh()
            mark = self._marks.read(archive.place, ctx)
            is_learned = mark != before and learned_count(mark, archive.messages) >= window.end
            if is_learned and not self._options.again:
                return [], planned
            moved = self._marks.moved(archive.place, mark, mark if is_learned else after)
            try:
                results = self._results(window, planned, ctx)
                self._nodes.because("session").exchange(planned.planned(), (), ctx, also=moved)
            except (VersionMismatchError, NodeExistsError, ConcurrentModificationError):
                continue  # another writer was faster: plan again
            return results, planned
        raise ConcurrentModificationError(
            f"other writers changed the same memories during {_ATTEMPTS} attempts. "
            "The messages are archived. Fix: commit the session again."
        )

    # ------------------------------------------------------------ candidates
    def _results(
        self, window: MessageWindow, planned: KnownMemory, ctx: RequestContext
    ) -> list[CandidateResult]:
        candidates, unfit = self._candidates(window, ctx)
        return [*unfit, *(self._plan(candidate, planned, ctx) for candidate in candidates)]

    def _candidates(
        self, window: MessageWindow, ctx: RequestContext
    ) -> tuple[list[CandidateMemory], list[CandidateResult]]:
        """Return the candidates in the order of the messages, and the results of unfit ones."""
        messages = window.messages
        found: list[CandidateMemory] = []
        unfit: list[CandidateResult] = []
        for extractor in self._extractors:
            accepted, refused = verified(extractor.extract(messages, ctx), messages)
            unfit += (CandidateResult(each, Outcome.FAILED, reason) for each, reason in refused)
            found += window.placed(accepted)
        fit: list[CandidateMemory] = []
        for candidate in sorted(found, key=lambda each: evidence_of(each)[0].message):
            if reason := self._doubt(candidate, window):
                unfit.append(CandidateResult(candidate, Outcome.FILTERED, reason))
                continue
            try:
                clean = self._timed(validate(candidate, SecretPolicy.MASK).candidate)
                anchors = self._options.anchors_for(clean.content, clean.when)
                fit.append(with_anchors(_of_project(clean, window.project), anchors))
            except ContextError as error:
                unfit.append(CandidateResult(candidate, Outcome.FAILED, str(error)))
        return fit, unfit

    def _doubt(self, candidate: CandidateMemory, window: MessageWindow) -> str:
        """Return why a candidate is filtered; empty if it is not."""
        if origin := self._origin(candidate, window):
            return f"Its words are not the user's own: {ORIGINS[origin]}."
        if candidate.confidence < self._options.least_confidence:
            return f"Its confidence is {candidate.confidence:g}."
        return ""

    def _origin(self, candidate: CandidateMemory, window: MessageWindow) -> str:
        """Return the source of the words of a candidate; empty if they are the user's own."""
        if not self._options.foreign:
            return ""
        stated = (
            sentence.text
            for each in evidence_of(candidate)
            for sentence in sentences(window.session[each.message].content)
            if each.quote in sentence.text or sentence.text in each.quote
        )
        found = (self._options.foreign.get(sentence_id(text), "") for text in stated)
        return next(filter(None, found), "")

    def _timed(self, candidate: CandidateMemory) -> CandidateMemory:
        """Return a candidate, without its time if that is in the future because a clock was wrong.

        With it, nothing that is stated until then would supersede it. Events may be in the future.
        """
        is_future = candidate.when is not None and candidate.when > self._clock() + _SLACK
        if is_future and candidate.category not in _DATED:
            return replace(candidate, when=None)
        return candidate

    def _plan(
        self, candidate: CandidateMemory, planned: KnownMemory, ctx: RequestContext
    ) -> CandidateResult:
        from perdure.engine.learn.policies import policy_for  # noqa: PLC0415 - 16 ms if none is

        if of_caller(self._nodes, ctx).matches(candidate.content):
            return CandidateResult(candidate, Outcome.FILTERED, "The user forgot it.")
        try:
            plan = policy_for(candidate.category, planned, self._clock).plan(candidate, ctx)
            for node in plan.former:
                if planned.taken(node.place, ctx):
                    raise NodeExistsError(
                        f"the statement that it supersedes is archived at {node.uri!a}. "
                        "Fix: unarchive or delete it."
                    )
        except ContextError as error:
            return CandidateResult(candidate, Outcome.FAILED, str(error))
        planned.take(plan, ctx)
        return CandidateResult.by(candidate, plan)


def _of_project(candidate: CandidateMemory, project: str) -> CandidateMemory:
    if not project or candidate.category in OF_THE_PERSON:
        return candidate
    return replace(candidate, metadata={**candidate.metadata, "project": project})


_Learned = tuple[list[CandidateResult], KnownMemory]


def committer_for(services: Services, options: CommitOptions) -> SessionCommitter:
    known = KnownMemory(services.nodes, partial(match_words, services))
    return SessionCommitter(services.nodes, known, options=options)
