"""What became of a session: where its messages are, and what was learned from them."""

from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from enum import Enum

from perdure.dataclass import dataclass
from perdure.engine.learn.extractors import CandidateExtractor
from perdure.engine.learn.judge import Judge
from perdure.engine.validate.validating import Masked
from perdure.model import Action, CandidateMemory, WritePlan
from perdure.model.messages import LeftOut


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


@dataclass(frozen=True, slots=True)
class Learning:
    """The extractors that find what is worth keeping, and the judge of what is known."""

    extractors: Sequence[CandidateExtractor]
    judge: Judge
