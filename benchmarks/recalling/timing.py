"""What was measured: how long the middle and the last of a hundred took, and what that is worth."""

import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

Ask = Callable[[str], object]
"""Answers a question."""
RUNS = 3
_WARM_UP = 2
_PATIENCE = 2.0
"""Seconds that who is hurried may take for the first run."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds that questions took, each in the best of its runs: others use the machine too."""

    seconds: tuple[float, ...]

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[math.ceil(0.99 * len(self.seconds)) - 1]

    def __str__(self) -> str:
        asked = len(self.seconds)
        return f"p50 {self.p50 * 1e3:9.2f} ms  p99 {self.p99 * 1e3:9.2f} ms  of {asked}"


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that was promised, and what came of it."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def ok(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        least = "at least" if self.at_least else "at most"
        verdict = "ok" if self.ok else "MISSED"
        return f"{self.name:58} {self.value:8.2f}  {least} {self.limit:g}  {verdict}"


@dataclass(slots=True)
class _Turn:
    ask: Ask
    clock: Callable[[], float]
    runs: list[list[float]] = field(default_factory=list)
    spent: float = 0.0

    def take(self, at: int, question: str) -> None:
        begun = self.clock()
        self.ask(question)
        seconds = self.clock() - begun
        self.spent += seconds
        if at == len(self.runs):
            self.runs.append([])
        self.runs[at].append(seconds)


def in_turns(
    asked: Mapping[str, Ask],
    questions: Sequence[str],
    hurried: Collection[str] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Taken]:
    """Ask everybody the same questions in turns, so that whatever the machine does hits all.

    Who is hurried and has taken long is asked no more new questions.
    """
    turns = {name: _Turn(ask, clock) for name, ask in asked.items()}
    for turn in turns.values():
        for question in questions[:_WARM_UP]:
            turn.ask(question)
    for run in range(RUNS):
        for at, question in enumerate(questions):
            order = list(turns.items())
            for name, turn in order if (at + run) % 2 else reversed(order):
                is_new = run == 0 and (name not in hurried or turn.spent < _PATIENCE)
                if at < len(turn.runs) or is_new:
                    turn.take(at, question)
    return {name: Taken(tuple(map(min, turn.runs))) for name, turn in turns.items()}


def power(by_size: Mapping[int, float]) -> float:
    """Return p where the time grows as size ** p, from the smallest to the largest."""
    (small, first), *_, (large, last) = sorted(by_size.items())
    return math.log(last / first) / math.log(large / small)
