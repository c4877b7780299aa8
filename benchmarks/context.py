"""Nodes against the same files written, read and listed bare, in one run on one disk.

    python benchmarks/context.py [--check] [--quick]

Ours and theirs take turns, so that whatever else the machine does hits both; the ratio is between
their medians. Ours has a history, an outbox and, for each node, one commit. With --check the exit
code says whether every ratio is within its limit, and nothing grows faster than linearly.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from perdure.app import Context, open_context
from perdure.model import ContextNode
from storage import Comparison, take_turns

FOLDER = "ctx://local/users/ana/memories/note"
NODES = 10_000
SIZES = (1_000, 10_000, 100_000)
CHUNK = 100
BATCH = 1_000
LINEAR = 1.1
"""The power of growth that still counts as linear, on a machine that others use too."""
BARE_LIST = "list all, by scandir alone"


def node(number: int) -> ContextNode:
    return ContextNode(
        uri=f"{FOLDER}/n{number:07}",
        content=f"# Note {number}\n\n" + "What a person wrote about a thing. " * 20,
        abstract=f"Note {number}: what a person wrote.",
        overview="What a person wrote, in a few more words than that. " * 4,
        metadata={"number": number},
    )


@contextmanager
def memory() -> Iterator[tuple[Context, Path]]:
    """Give an empty memory on this disk, and the folder that it lies in."""
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as home,
        open_context({"HOME": home, "USER": "ana"}) as context,
    ):
        yield context, Path(home)


class Bare:
    """The same file as a node has, written and synced, with its folder."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._data = model.read_bytes()
        self._above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def write(self, number: int) -> None:
        file = os.open(f"{self.folder}/n{number:07}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(file, self._data)
        os.fsync(file)
        os.close(file)
        os.fsync(self._above)

    def read(self, number: int) -> None:
        with open(f"{self.folder}/n{number:07}", encoding="utf-8", newline="") as file:  # noqa: PTH123 - as bare as it gets
            file.read()

    def read_bytes(self, number: int) -> None:
        file = os.open(f"{self.folder}/n{number:07}", os.O_RDONLY)
        os.read(file, 4096)
        os.close(file)

    def close(self) -> None:
        os.close(self._above)


def note_file(home: Path) -> Path:
    """Return the file of the only node."""
    [file] = (home / ".perdure/memory").rglob("*9999999*.md")
    return file


def writing(nodes: int) -> list[Comparison]:
    """Compare writing one by one, in batches, and reading."""
    with memory() as (context, home):
        write, ctx = context.nodes.write_node, context.request
        write(node(9_999_999), ctx)
        model = note_file(home)
        bare = Bare(home / "bare", model)
        single = _in_turns(
            each(lambda number: write(node(number), ctx)),
            each(bare.write),
            nodes,
            CHUNK,
        )
        again = Bare(home / "again", model)
        batch = _in_turns(
            lambda chunk: context.nodes.write_nodes([node(1_000_000 + n) for n in chunk], ctx),
            each(again.write),
            nodes,
            BATCH,
        )
        read = each(lambda number: context.nodes.read_node(f"{FOLDER}/n{number:07}", ctx))
        texts = _in_turns(read, each(bare.read), nodes, 1)
        data = _in_turns(read, each(bare.read_bytes), nodes, 1)
        bare.close()
        again.close()
    return [
        Comparison("write one node, with history", *single, limit=2),
        Comparison(f"write {BATCH:,} in a batch, each", *batch, limit=1),
        Comparison("read one node; its text", *texts, limit=3),
        Comparison("read one node; the mere bytes", *data),
    ]


def each(action: Callable[[int], object]) -> Callable[[Sequence[int]], None]:
    def run(numbers: Sequence[int]) -> None:
        for number in numbers:
            action(number)

    return run


def _in_turns(
    ours: Callable[[Sequence[int]], object],
    bare: Callable[[Sequence[int]], object],
    total: int,
    chunk: int,
) -> tuple[float, float]:
    """Return the median seconds that one number takes each of them."""
    times: tuple[list[float], list[float]] = ([], [])
    for begin in range(0, total, chunk):
        numbers = range(begin, begin + chunk)
        pair = [(ours, times[0]), (bare, times[1])]
        for action, taken in pair if begin // chunk % 2 else reversed(pair):
            begun = time.perf_counter()
            action(numbers)
            taken.append((time.perf_counter() - begun) / chunk)
    return statistics.median(times[0]), statistics.median(times[1])


def growing(sizes: Sequence[int]) -> tuple[list[Comparison], dict[str, dict[int, float]]]:
    """Return how listing compares at 10,000, and the seconds of each verb at each size."""
    grown: dict[str, dict[int, float]] = {}
    listing: list[Comparison] = []
    with memory() as (context, home):
        nodes, ctx = context.nodes, context.request
        there = 0
        for size in sizes:
            begun = time.perf_counter()
            for begin in range(there, size, BATCH):
                nodes.write_nodes(map(node, range(begin, min(begin + BATCH, size))), ctx)
            spent = (time.perf_counter() - begun) / (size - there)
            there = size
            folder = next((home / ".perdure/memory").rglob("*0000000*.md")).parent
            _note(grown, "write in batches, each", size, spent)
            _note(grown, "write one", size, _median(lambda n: nodes.write_node(node(n), ctx), 50))
            _note(grown, "read one", size, _median(_reader(context, size), 200))
            _note(grown, "incoming edges", size, _incoming(context, size))
            ours, bare = take_turns(
                lambda: nodes.list_children(FOLDER, ctx),
                partial(_scan, folder),
                9,
                1,
            )
            _note(grown, "list all", size, ours)
            _note(grown, BARE_LIST, size, bare)
            if size == NODES or size == max(sizes) < NODES:
                listing.append(Comparison(f"list {size:,} children", ours, bare, limit=3))
    return listing, grown


def _scan(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        return [entry.name for entry in entries]


def _reader(context: Context, size: int) -> Callable[[int], object]:
    step = max(size // 211, 1)
    return lambda n: context.nodes.read_node(f"{FOLDER}/n{n * step % size:07}", context.request)


def _incoming(context: Context, size: int) -> float:
    """Return the seconds that a second question takes; the first follows what was written since."""
    uri = f"{FOLDER}/n{size // 2:07}"
    context.relations.get_incoming(uri, context.request)
    return _median(lambda _: context.relations.get_incoming(uri, context.request), 20)


_numbers = iter(range(5_000_000, 9_000_000))


def _median(action: Callable[[int], object], count: int) -> float:
    taken = []
    for number in range(count):
        one = next(_numbers) if count == 50 else number  # noqa: PLR2004 - writes need new ones
        begun = time.perf_counter()
        action(one)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def _note(grown: dict[str, dict[int, float]], name: str, size: int, seconds: float) -> None:
    grown.setdefault(name, {})[size] = seconds


def power(by_size: dict[int, float]) -> float:
    """Return p where the time grows as size ** p, from the smallest to the largest."""
    (small, first), *_, (large, last) = sorted(by_size.items())
    return math.log(last / first) / math.log(large / small)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    arguments = parser.parse_args()
    part = 10 if arguments.quick else 1
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'':34} {'ours':>15} {'bare':>15}   ratio")
    comparisons = writing(NODES // part)
    for comparison in comparisons:
        print(comparison, flush=True)
    listing, grown = growing([size // part for size in SIZES])
    for comparison in listing:
        print(comparison)
    print(f"\n{'growth':34}" + "".join(f"{size // part:>14,}" for size in SIZES) + "   power")
    for name, by_size in grown.items():
        shown = "".join(f"{seconds * 1e6:11.1f} us" for seconds in by_size.values())
        print(f"{name:34}{shown}   {power(by_size):5.2f}")
    within = all(comparison.ok for comparison in [*comparisons, *listing])
    most = max(LINEAR, power(grown[BARE_LIST]))  # no listing grows slower than the system's own
    linear = all(power(by_size) <= most for by_size in grown.values())
    return 0 if (within and linear) or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
