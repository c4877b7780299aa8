"""The order of hits by validity: what holds first, a superseded hit after its successors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from perdure.dataclass import replace
from perdure.engine.recall.question import ParsedQuestion
from perdure.engine.recall.result import Hit, TraceStep
from perdure.engine.recall.score import CONFIG

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

Successors = Callable[[Hit], Sequence[Hit]]
"""Returns what superseded a hit, newest first."""


def holds(hit: Hit, now: datetime) -> bool:
    """Whether a hit holds. A message holds even if the clock of its session was ahead."""
    begun = hit.session_id or hit.valid_from is None or hit.valid_from <= now
    return bool(begun) and (hit.valid_until is None or now < hit.valid_until)


class ValidityOrder:
    """Orders the hits of one question so that those that hold come first.

    A hit that does not hold comes later, and is never left out. Its successors take its place. If
    the question is about the time when it held, it keeps its place, and its successors follow.
    Successors are looked up only for the first `most` hits that do not hold, because no others can
    be among the results.
    """

    def __init__(
        self,
        asked: ParsedQuestion,
        now: datetime,
        successors: Successors,
        *,
        most: int,
    ) -> None:
        self._asked = asked
        self._now = now
        self._successors = successors
        self._most = most
        self._seen: set[tuple[str, str]] = set()
        """What was yielded, or waits in the heap."""
        self._waiting: list[tuple[float, int, Hit]] = []
        self._numbers = count()
        self._demoted = self._former = 0

    def ordered(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yield hits, given best first; reads no more of them than needed."""
        for hit in hits:
            if self._waiting:
                yield from self._due(hit.score)
            if self._is_new(hit):
                yield from self._placed(hit)
        yield from self._due(float("-inf"))

    def steps(self) -> Iterator[TraceStep]:
        if self._former:
            text = f"{self._former} that do not hold now, {self._demoted} demoted"
            yield TraceStep("validity", text)

    # ------------------------------------------------------------ hits that do not hold
    def _placed(self, hit: Hit) -> Iterator[Hit]:
        """Yield a hit, or its successors while it waits."""
        if holds(hit, self._now):
            yield hit
            return
        former = replace(hit, holds=False)
        if self._is_wanted(former):
            yield former
            yield from reversed(self._after(former, former.score))
            return
        demoted = self._demote(former)
        for each in self._after(former, demoted.score):
            if each.holds:
                yield _scored(each, former.score)
            else:
                self._wait(each)
        self._wait(demoted)

    def _after(self, hit: Hit, score: float) -> list[Hit]:
        """Return the successors of a hit that are new, with a score."""
        self._former += 1
        if self._former > self._most:
            return []
        found = [each for each in self._successors(hit) if self._is_new(each)]
        return [_scored(replace(each, holds=holds(each, self._now)), score) for each in found]

    def _demote(self, hit: Hit) -> Hit:
        """Return a hit with a share of its score, which shrinks with each demoted hit."""
        self._demoted += 1
        terms = {name: value for name, value in hit.score_terms.items() if name != "former"}
        own = sum(terms.values())
        terms["validity"] = -max(own, 0.0) * (1 - CONFIG.lapsed**self._demoted)
        return replace(hit, score=sum(terms.values()), score_terms=terms)

    def _is_wanted(self, hit: Hit) -> bool:
        """Whether the question is about a time when a hit held, other than now."""
        is_over = hit.valid_until is not None and hit.valid_until <= self._now
        if self._asked.asks_for_past and is_over:
            return True
        return any(
            _overlaps(hit, span) and not _contains(span, self._now) for span in self._asked.times
        )

    # ------------------------------------------------------------ waiting
    def _is_new(self, hit: Hit) -> bool:
        key = hit.uri, hit.snippet
        is_seen = key in self._seen
        self._seen.add(key)
        return not is_seen

    def _wait(self, hit: Hit) -> None:
        heappush(self._waiting, (-hit.score, next(self._numbers), hit))

    def _due(self, score: float) -> Iterator[Hit]:
        """Yield the waiting hits whose score is at least this one."""
        while self._waiting and -self._waiting[0][0] >= score:
            yield heappop(self._waiting)[2]


def _scored(hit: Hit, score: float) -> Hit:
    return replace(hit, score=score, score_terms={"supersedes": score})


def _contains(span: "TimeSpan", now: datetime) -> bool:
    return span.start <= now < span.end


def _overlaps(hit: Hit, span: "TimeSpan") -> bool:
    began = hit.valid_from is None or hit.valid_from < span.end
    return began and (hit.valid_until is None or span.start < hit.valid_until)
