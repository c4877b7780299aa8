"""From the start of the command line to its first answer."""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recalling.corpus import Corpus
from recalling.memories import ACCOUNT, environment, folder, opened, write
from recalling.timing import Goal

NOTES = 10_000
_ROUNDS = 9
_MOST = 4.0


class Spent(NamedTuple):
    """Seconds that a process took, as a clock has it and as its processor does."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock * 1e3:.0f} ms ({self.processor * 1e3:.0f} of a processor)"


def start_to_answer(command: Path) -> Goal:
    """Compare `perdure recall` on 10,000 notes with a Python that imports what it needs."""
    corpus = Corpus()
    (question,) = corpus.questions(1)
    with folder() as home:
        with opened(home) as context:
            write(context, (corpus.note(f"n{number:06}") for number in range(NOTES)))
            context.indexes.configured.follower.rebuild(ACCOUNT)
            context.memory.save("The last one, alone as most are.", category="note")
        ours = [str(command), "recall", question]
        bare = [sys.executable, "-c", "import sqlite3, json"]
        environ = {**os.environ, **environment(home, lexical=True)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
        recall, python = _in_turns((ours, bare), environ)
    print(f"  recall {recall}, python {python}")
    print(f"  {recall.processor / python.processor:.2f} times as much of a processor")
    return Goal("start to first answer / python", recall.clock / python.clock, _MOST)


def _in_turns(commands: Sequence[Sequence[str]], environ: dict[str, str]) -> list[Spent]:
    """Return the medians of each, after one that does not count."""
    taken: list[list[Spent]] = [[] for _ in commands]
    for turn in range(_ROUNDS + 1):
        for command, spent in zip(commands, taken, strict=True):
            once = _run(command, environ)
            if turn:
                spent.append(once)
    return [Spent(*map(statistics.median, zip(*spent, strict=True))) for spent in taken]


def _run(command: Sequence[str], environ: dict[str, str]) -> Spent:
    begun, before = time.perf_counter(), _of_processors()
    subprocess.run(command, env=environ, check=True, capture_output=True)  # noqa: S603 - our own
    return Spent(time.perf_counter() - begun, _of_processors() - before)


def _of_processors() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime
