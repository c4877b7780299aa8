"""What holds comes first, and what was superseded comes after what superseded it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from perdure.dataclass import replace
from perdure.engine.recall.question import ParsedQuestion
from perdure.engine.recall.result import Hit, TraceStep
from perdure.engine.recall.score import RetrievalConfig

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

Superseded = Callable[[Hit], Sequence[Hit]]
"""Returns what superseded a hit, the newest first."""


def holds(hit: Hit, now: datetime) -> bool:
    """Whether a hit holds. What was said in a session does, whatever the clock there showed."""
    begun = hit.session_id or hit.valid_from is None or hit.valid_from <= now
    return bool(begun) and (hit.valid_until is None or now < hit.valid_until)


class ValidityOrder:
    """Puts the hits of one question into an order that prefers what holds.

    What does not hold is told later, and never left out. What superseded it takes its place. If
    the question is about the time when it held, it keeps its place, and what superseded it follows.
    Only the first `most` that do not hold are asked what superseded them: no others can be told.
    """

    def __init__(
        self,
        plan: ParsedQuestion,
        now: datetime,
        superseded: Superseded,
        *,
        most: int,
        config: RetrievalConfig,
    ) -> None:
        self._plan = plan
        self._now = now
        self._superseded = superseded
        self._most = most
        self._config = config
        self._known: set[tuple[str, str]] = set()
        """What was told, or waits to be."""
        self._waiting: list[tuple[float, int, Hit]] = []
        self._numbers = count()
        self._demoted = self._asked = 0

    def ordered(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yield hits that come best first; none is read before it is needed."""
        for hit in hits:
            if self._waiting:
                yield from self._due(hit.score)
            if self._is_news(hit):
                yield from self._placed(hit)
        yield from self._due(float("-inf"))

    def steps(self) -> Iterator[TraceStep]:
        if self._asked:
            told = f"{self._asked} that do not hold now, {self._demoted} demoted"
            yield TraceStep("validity", told)

    # ------------------------------------------------------------ what does not hold
    def _placed(self, hit: Hit) -> Iterator[Hit]:
        """Yield a hit, or what takes its place while it waits."""
        if holds(hit, self._now):
            yield hit
            return
        former = replace(hit, holds=False)
        if self._is_wanted(former):
            yield former
            yield from reversed(self._after(former, former.score))
            return
        lapsed = self._lapsed(former)
        for each in self._after(former, lapsed.score):
            if each.holds:
                yield _scored(each, former.score)
            else:
                self._wait(each)
        self._wait(lapsed)

    def _after(self, hit: Hit, score: float) -> list[Hit]:
        """Return what superseded a hit and is not known yet, with a score."""
        self._asked += 1
        if self._asked > self._most:
            return []
        found = [each for each in self._superseded(hit) if self._is_news(each)]
        return [_scored(replace(each, holds=holds(each, self._now)), score) for each in found]

    def _lapsed(self, hit: Hit) -> Hit:
        """Return a hit with less of its score; the more there were before, the less."""
        self._demoted += 1
        parts = {name: value for name, value in hit.score_terms.items() if name != "former"}
        own = sum(parts.values())
        parts["validity"] = -max(own, 0.0) * (1 - self._config.lapsed**self._demoted)
        return replace(hit, score=sum(parts.values()), score_terms=parts)

    def _is_wanted(self, hit: Hit) -> bool:
        """Whether the question is about a time when a hit held, and that is not now."""
        if (
            self._plan.asks_for_past
            and hit.valid_until is not None
            and hit.valid_until <= self._now
        ):
            return True
        return any(
            _overlaps(hit, span) and not _contains(span, self._now) for span in self._plan.times
        )

    # ------------------------------------------------------------ waiting
    def _is_news(self, hit: Hit) -> bool:
        key = hit.uri, hit.snippet
        known = key in self._known
        self._known.add(key)
        return not known

    def _wait(self, hit: Hit) -> None:
        heappush(self._waiting, (-hit.score, next(self._numbers), hit))

    def _due(self, score: float) -> Iterator[Hit]:
        """Yield those that wait and are no worse than a score."""
        while self._waiting and -self._waiting[0][0] >= score:
            yield heappop(self._waiting)[2]


def _scored(hit: Hit, score: float) -> Hit:
    return replace(hit, score=score, score_terms={"supersedes": score})


def _contains(span: "TimeSpan", now: datetime) -> bool:
    return span.start <= now < span.end


def _overlaps(hit: Hit, span: "TimeSpan") -> bool:
    began = hit.valid_from is None or hit.valid_from < span.end
    return began and (hit.valid_until is None or span.start < hit.valid_until)
