"""Many processes that ask the same memory at once."""

import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from recalling.memories import StandIn, opened
from recalling.timing import Goal

PROCESSES = 8
_SECONDS = 2.0
_ROUNDS = 2
"""The better one counts: others use the machine too."""
_SHARE = 0.8
"""Of what processes reach that have nothing in common; the machine has other work too."""


def throughput(home: Path, questions: Sequence[str]) -> Goal:
    """Compare what 8 processes answer with what one does; print both.

    How far they could get is told by processes that count, and share nothing.
    """
    ours, bare = defaultdict[int, float](float), defaultdict[int, float](float)
    for many in (1, PROCESSES) * _ROUNDS:
        ours[many] = max(ours[many], _per_second(many, _asking, home, questions))
        bare[many] = max(bare[many], _per_second(many, _counting, home, questions))
    gain, most = ours[PROCESSES] / ours[1], bare[PROCESSES] / bare[1]
    print(
        f"  1 process {ours[1]:.1f} answers/s, {PROCESSES} processes {ours[PROCESSES]:.1f}: "
        f"{gain:.2f}x; processes that share nothing: {most:.2f}x"
    )
    return Goal(
        f"{PROCESSES} readers, share of what is possible", gain / most, _SHARE, at_least=True
    )


def _per_second(many: int, work: Callable[..., None], *arguments: object) -> float:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(many), context.SimpleQueue()
    started = [context.Process(target=work, args=(ready, done, *arguments)) for _ in range(many)]
    for process in started:
        process.start()
    total = sum(done.get() for _ in started)
    for process in started:
        process.join()
    return float(total)


def _asking(ready: Any, done: Any, home: Path, questions: Sequence[str]) -> None:  # noqa: ANN401 - made by a context
    with opened(home, StandIn()) as context, _counted(ready, done) as times:
        for question in questions[:3]:
            context.memory.recall(question)
        for question in times(questions):
            context.memory.recall(question)


def _counting(ready: Any, done: Any, _: Path, questions: Sequence[str]) -> None:  # noqa: ANN401 - as before
    with _counted(ready, done) as times:
        for question in times(questions):
            sum(map(hash, question * 500))


@contextmanager
def _counted(ready: Any, done: Any) -> Iterator[Callable[[Sequence[str]], Iterator[str]]]:  # noqa: ANN401 - as before
    """Give who hands out questions until the time is up, from when all are ready.

    What is told is answers for each second that was used: the last answer counts, and its time too.
    """
    rate = 0.0

    def times(questions: Sequence[str]) -> Iterator[str]:
        nonlocal rate
        ready.wait()
        begun = time.perf_counter()
        for answered, question in enumerate(cycle(questions), 1):
            yield question
            spent = time.perf_counter() - begun
            if spent > _SECONDS:
                rate = answered / spent
                return

    yield times
    done.put(rate)
