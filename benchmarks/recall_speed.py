"""How fast memory is found again, against plain peers on the same texts and vectors, in one run.

    python benchmarks/recall_speed.py [--quick] [--words] [--check] [--models FOLDER]

Texts are made up, with words as common as people's are. Vectors are as long as MiniLM's, and come
from a stand-in that takes next to no time: what the model takes is measured apart, and added. Ours
and theirs take turns, so that whatever else the machine does hits all. A question counts with the
best of its three runs; p50 and p99 are over questions. With --quick the largest size is left out,
and so are the goals that are for it. With --words only a memory that compares words is asked, and
plain FTS5, and CPU time is counted. With --check the exit code says whether every goal was met.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from recalling.models import minilm
from recalling.sizes import HYBRID, WORDS, AtSize, hundred_accounts, measured, words_alone
from recalling.starting import NOTES, start_to_answer
from recalling.timing import Goal, Taken, power

SIZES = (1_000, 10_000, 100_000)


def growth(at_sizes: Sequence[AtSize]) -> list[Goal]:
    goals = []
    for name in (HYBRID, WORDS):
        by_size = {each.size: each.taken[name].p50 for each in at_sizes}
        goals.append(Goal(f"power of growth, {name}", power(by_size), 1.0))
    for name in at_sizes[-1].taken:
        grown = power({each.size: each.taken[name].p50 for each in at_sizes})
        print(f"  {name:24} {grown:5.2f}")
    commits = {each.size: each.commit for each in at_sizes}
    print(f"  {'commit a session':24} {power(commits):5.2f}")
    return goals


def words(sizes: Sequence[int]) -> list[Goal]:
    goals, at_sizes = list[Goal](), dict[int, Mapping[str, Taken]]()
    for size in sizes:
        print(f"\n{size:,} passages", flush=True)
        at_sizes[size], goal = words_alone(size)
        goals.append(goal)
    print("\npower of growth")
    for name in at_sizes[sizes[-1]]:
        grown = power({size: taken[name].p50 for size, taken in at_sizes.items()})
        print(f"  {name:24} {grown:5.2f}")
    print(f"\ngoals, load {os.getloadavg()[0]:.1f}")
    for goal in goals:
        print(f"  {goal}")
    return goals


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="leave the largest size out")
    parser.add_argument("--words", action="store_true", help="compare words with plain FTS5 only")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    models = Path(__file__).parents[1] / ".venv" / "models"
    parser.add_argument("--models", type=Path, default=models, help="where MiniLM is installed")
    command = Path(sys.executable).with_name("perdure")
    parser.add_argument("--perdure", type=Path, default=command, help="the command to start")
    options = parser.parse_args()
    begun = time.perf_counter()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    sizes = SIZES[:-1] if options.quick else SIZES
    if options.words:
        goals = words(sizes)
        return int(options.check and not all(goal.ok for goal in goals))
    model = minilm(options.models)
    at_sizes, goals = [], list[Goal]()
    for size in sizes:
        print(f"\n{size:,} passages", flush=True)
        at_size, more = measured(size, model)
        at_sizes.append(at_size)
        goals += more
    print("\npower of growth")
    goals += growth(at_sizes)
    print("\none of a hundred accounts", flush=True)
    hundred_accounts(10 if options.quick else 100)
    print(f"\nfrom the start of a process to its first answer, {NOTES:,} notes", flush=True)
    goals.append(start_to_answer(options.perdure))
    print("\ngoals")
    for goal in goals:
        print(f"  {goal}")
    print(f"  {time.perf_counter() - begun:.0f} s, load {os.getloadavg()[0]:.1f}")
    return int(options.check and not all(goal.ok for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
