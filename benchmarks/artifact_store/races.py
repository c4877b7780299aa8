"""Who is faster: contestants that take turns, and figures that are within a limit or not."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

OURS = "perdure"
ROUNDS = 5

_Course = TypeVar("_Course")


@dataclass(frozen=True)
class Race:
    """Seconds that each contestant takes for the same, against one of them."""

    title: str
    seconds: Mapping[str, float]
    against: str
    limits: Mapping[str, float] = field(default_factory=dict)
    """The most that a contestant may take, as a multiple of what it is up against."""

    def ratio(self, name: str) -> float:
        return self.seconds[name] / self.seconds[self.against]

    @property
    def ok(self) -> bool:
        return all(self.ratio(name) <= limit for name, limit in self.limits.items())

    def lines(self) -> Iterator[str]:
        yield self.title
        for name in sorted(self.seconds, key=self.seconds.__getitem__):
            ratio = self.ratio(name)
            line = f"  {name:40} {self.seconds[name] * 1e6:12,.2f} us {ratio:8.2f}x"
            yield line + _judged(ratio, self.limits.get(name))


@dataclass(frozen=True)
class Reading:
    """A number that must not be above its limit."""

    title: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def ok(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def lines(self) -> Iterator[str]:
        yield f"{self.title:42} {self.value:12,.2f} {self.unit:11}" + _judged(
            self.value, self.limit
        )


Figure = Race | Reading


def _judged(value: float, limit: float | None) -> str:
    return "" if limit is None else f"  limit {limit:<5.3g} {'ok' if value <= limit else 'OVER'}"


def run(
    contestants: Mapping[str, Callable[[_Course], object]],
    course: Callable[[], _Course],
    *,
    legs: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the seconds of each one's best round of five.

    In each leg of a round all of them run the same course, one after the other, and in each leg
    another one goes first. What `course` does to prepare it is not counted.
    """
    os.sync()  # what was written to prepare for this is not to get in its way
    names = list(contestants)
    best = dict.fromkeys(names, math.inf)
    for turn in range(ROUNDS):
        taken = dict.fromkeys(names, 0.0)
        for leg in range(legs):
            prepared = course()
            first = (turn + leg) % len(names)
            for name in names[first:] + names[:first]:
                begun = clock()
                contestants[name](prepared)
                taken[name] += clock() - begun
        best = {name: min(best[name], taken[name]) for name in names}
    return best


def per(count: float, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds for one of `count`."""
    return {name: taken / count for name, taken in seconds.items()}


def growth(seconds: Mapping[int, float]) -> float:
    """Return the power of the size that the time grows with, from the smallest to the largest."""
    smallest, largest = min(seconds), max(seconds)
    return math.log(seconds[largest] / seconds[smallest]) / math.log(largest / smallest)
