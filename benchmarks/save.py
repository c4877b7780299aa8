"""Saving, against bare durable writes of the same texts in one run on one disk; and as it grows.

    python benchmarks/save.py [--quick] [--check]

Ours and theirs take turns, so that whatever else the machine does hits all; figures are medians.
A save has a history, files that people can read, an event, and an index that knows it at once. It
is compared with one file for each text, with one row of SQLite, and with all that it puts on the
disk, written bare. With --quick everything is small. With --check the exit code says whether every
goal was met.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from recalling.timing import Goal, power
from saving import texts
from saving.bare import Files, Rows, Same
from saving.growing import a_note, among_many, in_one_folder, sampled
from saving.sessions import ONE_COMMIT, committed
from saving.turns import Taken, in_turns, opened

SAVES = 1_000
MESSAGES = 2_000
SIZES = (1_000, 10_000, 100_000)
SAMPLE = 200
CHUNK = 20
QUICK = 25
GROWTH = 1.3
"""A save at the largest size may take so many times what it takes at the smallest."""
SAVE, SAME = "save, found by the next recall", "the same files and commits"


def saving(saves: int) -> list[Goal]:
    """Save one by one; after each turn the last one is looked for, which does not count."""
    found: list[bool] = []
    with opened() as (context, home):
        memory = context.memory

        def seek(text: str) -> None:
            result = memory.recall(text, top_k=1)
            seen = [hit.snippet for hit in result.hits]
            found.append(result.index_lag == 0 and bool(seen) and text in seen[0])

        bare = Same(home / "same", a_note(context, home))
        files, rows = Files(home / "files"), Rows(home / "rows")
        peers = {
            SAVE: lambda text: memory.save(text, category="event"),
            SAME: bare.write,
            "one file": files.write,
            "one row of SQLite": rows.write,
        }
        taken = in_turns(peers, [texts.memory(n) for n in range(saves)], CHUNK, after=seek)
        bare.close()
        rows.close()
    print(f"{saves:,} saves, each beside the same text written bare")
    tell(taken, SAVE)
    print(f"  {sum(found)} of {len(found)} recalls found what was saved just before, with no lag")
    return [
        Goal("saves that the next recall missed", len(found) - sum(found), 0),
        Goal("a save, of the same files and commits bare", _ratio(taken, SAVE, SAME), 5),
    ]


def tell(taken: dict[str, Taken], ours: str) -> None:
    for name, each in taken.items():
        ratio = "" if name == ours else f"   ours is {_ratio(taken, ours, name):6.2f}x of it"
        print(f"  {name:32} {each}{ratio}", flush=True)


def _ratio(taken: dict[str, Taken], ours: str, theirs: str) -> float:
    return taken[ours].median / taken[theirs].median


def committing(messages: int) -> None:
    taken, came_of_it = committed(messages)
    print(f"\na session of {messages:,} messages")
    for name, each in taken.items():
        ratio = each.median / taken[ONE_COMMIT].median
        rate = messages / each.median
        print(f"  {name:32} {each.median * 1e3:9.1f} ms {rate:9.0f} messages/s {ratio:8.2f}x")
    print(f"  {came_of_it}", flush=True)


def growing(sizes: Sequence[int], saves: int) -> list[Goal]:
    goals = []
    ways = {"in one folder": in_one_folder, "a thousand for everybody": among_many}
    for name, place in ways.items():
        print(f"\none save, memories {name}")
        at_size, bare = sampled(place, sizes, saves)
        for size, taken in at_size.items():
            print(f"  at {size:9,}  {taken}  {taken.median / bare.median:6.2f}x of the same bare")
        goals += _growth(name, at_size)
    return goals


def _growth(name: str, at_size: dict[int, Taken]) -> list[Goal]:
    seconds = {size: taken.median for size, taken in at_size.items()}
    at_work = {size: taken.processor for size, taken in at_size.items()}
    print(f"  slope {power(seconds):+.3f}, of the processor's time {power(at_work):+.3f}")
    return [
        Goal(f"largest to smallest, {name}", _last_to_first(seconds), GROWTH),
        Goal(f"largest to smallest, {name}, processor", _last_to_first(at_work), GROWTH),
    ]


def _last_to_first(by_size: dict[int, float]) -> float:
    return by_size[max(by_size)] / by_size[min(by_size)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small part of everything")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    part = QUICK if options.quick else 1
    goals = saving(SAVES // part)
    committing(MESSAGES // part)
    sizes = [size // part for size in SIZES[:-1]] if options.quick else list(SIZES)
    goals += growing(sizes, SAMPLE // part)
    print("\ngoals")
    for goal in goals:
        print(f"  {goal}")
    print(f"  load {os.getloadavg()[0]:.1f}")
    return int(options.check and not all(goal.ok for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
