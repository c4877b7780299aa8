"""From the start of the command line to its first answer."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from recalling.corpus import Corpus
from recalling.memories import ACCOUNT, environment, folder, opened, write
from recalling.timing import Goal

NOTES = 10_000
_ROUNDS = 9
_MOST = 4.0


def start_to_answer(command: Path) -> Goal:
    """Compare `holdfast recall` on 10,000 notes with a Python that imports what it needs."""
    corpus = Corpus()
    (question,) = corpus.questions(1)
    with folder() as home:
        with opened(home) as context:
            write(context, (corpus.note(f"n{number:06}") for number in range(NOTES)))
            context.indexes.upkeep.rebuild(ACCOUNT)
            context.memory.save("The last one, alone as most are.", category="note")
        ours = [str(command), "recall", question]
        bare = [sys.executable, "-c", "import sqlite3, json"]
        environ = {**os.environ, **environment(home, lexical=True)}
        taken = _in_turns((ours, bare), environ)
    print(f"  recall {taken[0] * 1e3:.0f} ms, python {taken[1] * 1e3:.0f} ms")
    return Goal("start to first answer / python", taken[0] / taken[1], _MOST)


def _in_turns(commands: Sequence[Sequence[str]], environ: dict[str, str]) -> list[float]:
    """Return the median seconds of each, after one that does not count."""
    taken: list[list[float]] = [[] for _ in commands]
    for turn in range(_ROUNDS + 1):
        for command, seconds in zip(commands, taken, strict=True):
            begun = time.perf_counter()
            subprocess.run(command, env=environ, check=True, capture_output=True)  # noqa: S603 - our own
            if turn:
                seconds.append(time.perf_counter() - begun)
    return [statistics.median(seconds) for seconds in taken]
