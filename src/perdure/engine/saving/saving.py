"""Saving a session: its messages first, then what can be learned from them, a part at a time.

Each part is one commit: all that was learned from some messages, and the mark that they were
learned from. So who is stopped anywhere goes on where the mark stands, and nothing is there twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from perdure.context.draft import Marks
from perdure.context.nodes import Nodes
from perdure.dataclass import dataclass, field, replace
from perdure.engine.answering import Answering
from perdure.engine.forgotten import of_caller
from perdure.engine.learn.evidence import evidence_of, verified, with_anchors
from perdure.engine.learn.prose import sentences
from perdure.engine.learn.review import id_of
from perdure.engine.parts import Parts
from perdure.engine.saving.knowing import Ahead, KnownNodes
from perdure.engine.saving.outcome import Change, Learning, Outcome, Planned, SessionCommit
from perdure.engine.sessions import WHOLE, Addition, Archived, Beginnings, Sessions, learned_from
from perdure.engine.validate.secrets import SecretPolicy
from perdure.engine.validate.validating import validated
from perdure.errors import (
    ConcurrentModificationError,
    ContextError,
    NodeExistsError,
    VersionMismatchError,
)
from perdure.model import CandidateMemory, RequestContext, WritePlan
from perdure.model.anchors import Anchors
from perdure.model.transcript import Message
from perdure.model.trust import ORIGINS
from perdure.model.uri import OF_THE_PERSON

if TYPE_CHECKING:
    from perdure.engine.learn.policies import Known

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
        learning: Learning,
        *,
        wishes: Wishes | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._nodes = nodes
        self._sessions = Sessions(nodes)
        self._marks = Marks(nodes)
        self._known = known
        self._learning = learning
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
        """Keep the messages, then learn from them; `settle` is called when something is kept."""
        wishes = self._wishes
        archived = self._sessions.archive(
            messages, session_id, ctx, addition=wishes.addition, dry_run=wishes.dry_run
        )
        self._wishes = replace(wishes, project=archived.project)
        if not self._wishes.dry_run:
            settle()
        plans: list[Planned] = []
        changes: dict[str, Change] = {}
        for found, changed in self._parts(archived, replace(ctx, session_id=session_id)):
            plans += found
            for each in changed:
                before = changes.get(each.uri, each).before
                changes[each.uri] = replace(each, before=before)
            if not self._wishes.dry_run:
                settle()
        return SessionCommit(
            session_id,
            archived.uris,
            len(archived.said),
            archived.added,
            tuple(plans),
            tuple(changes.values()),
            archived.masked,
            archived.replaced,
            archived.left_out,
            archived.hidden,
        )

    def _parts(self, archived: Archived, ctx: RequestContext) -> Iterator["_Learned"]:
        ahead, beginnings = Ahead(self._known), Beginnings(archived.said)
        for window in self._windows(archived):
            if self._wishes.dry_run:
                yield self._foresee(window, ahead, ctx)
            else:
                yield self._learn(window, archived, beginnings, ctx)
            self._wishes.progress(window.end, len(archived.said))

    def _windows(self, archived: Archived) -> Iterator[Window]:
        """Yield what nobody has learned from yet, or everything if that is to be done again."""
        said, first = archived.said, 0 if self._wishes.again else archived.learned
        for start in range(first, len(said) if self._wishes.extract else 0, AT_ONCE):
            yield Window(said, start, min(start + AT_ONCE, len(said)))

    # ------------------------------------------------------------ one part
    def _foresee(self, window: Window, ahead: Ahead, ctx: RequestContext) -> "_Learned":
        candidates, unfit = self._candidates(window, ctx)
        return [*unfit, *self._plans(candidates, ahead, ctx)], list(ahead.changes())

    def _learn(
        self, window: Window, archived: Archived, beginnings: Beginnings, ctx: RequestContext
    ) -> "_Learned":
        candidates, unfit = self._candidates(window, ctx)
        before, after = beginnings.mark(window.start), beginnings.mark(window.end)
        for _ in range(_ATTEMPTS):
            mark = self._marks.read(archived.place, ctx)
            is_learned = mark != before and learned_from(mark, archived.said) >= window.end
            if is_learned and not self._wishes.again:
                return [], []
            fresh = Ahead(self._known)
            moved = self._marks.moved(archived.place, mark, mark if is_learned else after)
            try:
                plans = self._plans(candidates, fresh, ctx)
                self._nodes.because("session").exchange(fresh.nodes(), (), ctx, also=moved)
            except (VersionMismatchError, NodeExistsError, ConcurrentModificationError):
                continue  # somebody was faster: plan with what is there now
            return [*unfit, *plans], list(fresh.changes())
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
        for extractor in self._learning.extractors:
            kept, refused = verified(extractor.extract(messages, ctx), messages)
            unfit += (Planned(each, Outcome.FAILED, reason) for each, reason in refused)
            fit += window.placed(kept)
        sure: list[CandidateMemory] = []
        for candidate in sorted(fit, key=_said_at):
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

    def _plans(
        self, candidates: Sequence[CandidateMemory], ahead: Ahead, ctx: RequestContext
    ) -> list[Planned]:
        return [self._plan(candidate, ahead, ctx) for candidate in candidates]

    def _plan(self, candidate: CandidateMemory, ahead: Ahead, ctx: RequestContext) -> Planned:
        from perdure.engine.learn.policies import policy_for  # noqa: PLC0415 - 16 ms if none is

        if of_caller(self._nodes, ctx).says(candidate.content):
            return Planned(candidate, Outcome.FILTERED, "The user forgot it.")
        policy = policy_for(candidate.category, ahead, self._learning.judge, self._clock)
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


def saving_for(parts: Parts, ctx: RequestContext, wishes: Wishes) -> Saving:
    known = KnownNodes(parts.nodes, Answering(parts).match)
    return Saving(parts.nodes, known, parts.learning(ctx), wishes=wishes)


def _said_at(candidate: CandidateMemory) -> int:
    return evidence_of(candidate)[0].message
