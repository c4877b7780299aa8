"""What it costs to notice an edit, in vaults of some thousands of notes.

    python benchmarks/vault.py [--sizes 1000,10000,100000] [--times 20]

Notes of a few lines are made up, a hundred in each folder, and looked at in three ways, in one run:

files      what the disk itself takes: `os.scandir` and a `stat` of each file, and `find -newer`
check      `perdure.storage.stamps.check` of the same folder, as a recall runs it: in a process that
           has looked before, and in one that has just been started
recall     of the same notes in place, layout `notes`: the first index, a second start, recalls
           with and without the check, and the first recall after one edit

CPU seconds, user and system, are what counts; wall seconds stand beside them. The best of some runs
is printed, and how each grows with size. A hint is counted if an answer says that not all was
looked at.
"""

import argparse
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import perdure
from perdure.storage.stamps import StampTable, find_changes, save_scan
from perdure.storage.vault import VaultBackend

PER_FOLDER = 100
SETTLED = 0.1
"""Seconds after which a file that was written is not young any more."""
MOST_RECALLS = 10
"""A check that is out of time goes on with the next recall; on a busy machine more than once."""
CONFIG = """[storage]
backend = "vault"
layout = "notes"
[storage.vault]
path = "{vault}"
[embedding]
provider = "none"
"""


@dataclass(frozen=True, slots=True)
class Taken:
    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu * 1000:9.1f} ms CPU {self.wall * 1000:9.1f} ms wall"


def best(action: Callable[[], object], times: int) -> Taken:
    """Run it some times; return the least CPU and wall time that it took."""
    taken = []
    for _ in range(times):
        began, used = time.perf_counter(), cpu_ns()
        action()
        taken.append(((cpu_ns() - used) / 1e9, time.perf_counter() - began))
    return Taken(min(one for one, _ in taken), min(one for _, one in taken))


def cpu_ns() -> int:
    return time.process_time_ns()


def demand(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - as an assertion
    if not holds:
        raise SystemExit(otherwise)


def notes(root: Path, size: int) -> None:
    for number in range(size):
        folder = root / f"Folder {number // PER_FOLDER:04}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"Note {number:06}.md").write_text(f"# Note {number}\n\nAbout thing {number}.\n")


def stat_all(root: str) -> int:
    count, pending = 0, [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def find_newer(root: Path, than: Path) -> Taken:
    began, before = time.perf_counter(), os.times()
    command = ["find", str(root), "-newer", str(than)]
    subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own words
    after = os.times()
    used = after.children_user + after.children_system
    return Taken(used - before.children_user - before.children_system, time.perf_counter() - began)


def of_files(place: Path, size: int, times: int) -> dict[str, Taken]:
    root = place / "vault"
    notes(root, size)
    backend = VaultBackend(str(root), str(place / "home"))
    table = str(place / "seen.sqlite")
    mark = place / "mark"
    mark.touch()
    time.sleep(SETTLED)
    taken: dict[str, Taken] = {}
    with StampTable(table) as seen:
        taken["check: the first"] = best(lambda: save_scan(seen, find_changes(backend, seen)), 1)
        time.sleep(SETTLED)
        save_scan(seen, find_changes(backend, seen))
        taken["files: scandir and stat"] = best(lambda: stat_all(str(root)), times)
        taken["files: find -newer"] = find_newer(root, mark)
        taken["check: nothing changed"] = best(lambda: find_changes(backend, seen), times)

        turns = count()

        def edit_and_check() -> None:
            found = find_changes(backend, seen)
            demand(len(found.changed) == 1, f"one edit, and {found.changed} was found")
            save_scan(seen, found)
            note.write_text(f"edited {next(turns)}")

        note = next(root.rglob("*.md"))
        note.write_text("edited")
        taken["check: one edit"] = best(edit_and_check, times)

    def fresh() -> None:
        with StampTable(table) as other:
            find_changes(backend, other)

    taken["check: in a new process"] = best(fresh, times)
    return taken


def of_recalls(place: Path, size: int, times: int) -> tuple[dict[str, Taken], str]:
    os.environ["PERDURE_HOME"] = str(place / "home")
    vault = place / "vault"
    notes(vault, size)
    (place / "home").mkdir()
    config = place / "home" / "config.toml"
    config.write_text(CONFIG.format(vault=vault))
    hints = asked = 0

    def recall(memory: perdure.Memory, words: str) -> perdure.RecallResult:
        nonlocal hints, asked
        result = memory.recall(words)
        asked += 1
        hints += any(hint.kind is perdure.HintKind.EDITS_UNCHECKED for hint in result.hints)
        return result

    def start() -> None:
        with perdure.open() as memory:
            recall(memory, "About thing 7")

    taken = {"index: the first": best(start, 1)}
    time.sleep(SETTLED)
    start()
    hints = asked = 0
    taken["recall: a second start"] = best(start, min(times, 5))
    with perdure.open() as memory:
        recall(memory, "thing")
        taken["recall: with the check"] = best(lambda: recall(memory, "About thing 7"), times)
        unchanged = f"a hint in {hints} of {asked} recalls of an unchanged vault"
        note, late = next(vault.rglob("*.md")), 0
        after = list[Taken]()
        for number in range(min(times, 5)):
            word = f"zebra{number}"
            note.write_text(f"About thing 7: a {word} lives here.\n")
            found = list[perdure.RecallResult]()
            words = f"About thing 7, {word}"
            after.append(best(lambda: found.append(recall(memory, words)), 1))  # noqa: B023 - at once
            while not any(word in hit.snippet for hit in found[-1].hits):
                demand(found[-1].index_lag > 0, f"{word} was not found, and no hint says why")
                demand(len(found) < MOST_RECALLS, f"{word} was not found by {len(found)} recalls")
                found.append(recall(memory, words))
            late += len(found) > 1
        taken["recall: after one edit"] = min(after, key=lambda one: one.cpu)
    config.write_text(f"{config.read_text()}[index]\ncheck_seconds = 0\n")
    with perdure.open() as memory:
        memory.recall("thing")
        taken["recall: without the check"] = best(lambda: memory.recall("About thing 7"), times)
    return taken, f"{unchanged}; {late} of {len(after)} edits found only after a hint"


def power(small: tuple[int, float], large: tuple[int, float]) -> float:
    """Return the exponent by which a time grows with size."""
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def report(by_size: dict[int, dict[str, Taken]]) -> None:
    for size, taken in by_size.items():
        print(f"\n{size:,}")
        for name, one in taken.items():
            print(f"  {name:26} {one}")
    first, last = min(by_size), max(by_size)
    if first != last:
        print(f"\ngrowth from {first:,} to {last:,} (1.00 is as the size)")
        for name in by_size[last]:
            small, large = by_size[first][name].cpu, by_size[last][name].cpu
            if small and large:
                print(f"  {name:26} {power((first, small), (last, large)):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000", help="how many notes")
    parser.add_argument("--times", type=int, default=20, help="how often each is measured")
    parser.add_argument("--files-only", action="store_true", help="leave recalls out")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    files: dict[int, dict[str, Taken]] = {}
    recalls: dict[int, dict[str, Taken]] = {}
    for size in sizes:
        place = Path(tempfile.mkdtemp(prefix="perdure-vault-"))
        try:
            files[size] = of_files(place / "files", size, options.times)
            if not options.files_only:
                recalls[size], told = of_recalls(place / "recalls", size, options.times)
                print(f"{size:,} notes: {told}", flush=True)
        finally:
            shutil.rmtree(place)
    print("\nnotes as files")
    report(files)
    if recalls:
        print("\nrecalls of notes in place")
        report(recalls)
        for size, taken in recalls.items():
            after, without = (
                taken[f"recall: {how}"] for how in ("after one edit", "without the check")
            )
            more = Taken(after.cpu - without.cpu, after.wall - without.wall)
            print(f"{size:,} notes: an edit is found by a recall that takes {more} more")


if __name__ == "__main__":
    main()
