"""Device-local storage against the bare system calls on the same disk, in one run.

    python benchmarks/storage.py [--check]

Ours and theirs take turns, so that whatever else the machine does hits both; the ratio is between
their medians. With --check the exit code says whether every ratio is within its limit.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perdure.storage import Locator
from perdure.storage.device_local import DeviceLocalBackend

TEXT = "x" * 1023 + "\n"
DATA = TEXT.encode()
NOTE = Locator("notes/today.md")
SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Comparison:
    name: str
    ours: float
    bare: float
    limit: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.bare

    @property
    def ok(self) -> bool:
        return self.limit is None or self.ratio <= self.limit

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"limit {self.limit:g}  {'ok' if self.ok else 'OVER'}"
        microseconds = f"{self.ours * 1e6:12.1f} us {self.bare * 1e6:12.1f} us"
        return f"{self.name:34} {microseconds} {self.ratio:7.2f}x  {limit}"


def take_turns(
    ours: Callable[[], object], bare: Callable[[], object], rounds: int, batch: int
) -> tuple[float, float]:
    """Return the median seconds that one call of each takes."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        pair = [(ours, times[0]), (bare, times[1])]
        for action, taken in pair if turn % 2 else reversed(pair):
            begun = time.perf_counter()
            for _ in range(batch):
                action()
            taken.append((time.perf_counter() - begun) / batch)
    return statistics.median(times[0]), statistics.median(times[1])


def bare_write(folder: Path) -> None:
    temporary, target = folder / "bare.tmp", folder / "bare.md"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(file, DATA)
    os.fsync(file)
    os.close(file)
    os.rename(temporary, target)  # noqa: PTH104 - as bare as it gets
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def bare_read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    data = os.read(file, 2048)
    os.close(file)
    return data


def bare_scandir(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def fill(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"note-{number * 7919 % count:06}.md").touch()


def compare(root: Path, backend: DeviceLocalBackend) -> list[Comparison]:
    backend.write(NOTE, TEXT)
    notes = root / "notes"
    path = str(notes / "today.md")
    results = [
        Comparison(
            "write 1 KiB, durable",
            *take_turns(lambda: backend.write(NOTE, TEXT), lambda: bare_write(notes), 600, 1),
            limit=1.3,
        ),
        Comparison(
            "read 1 KiB",
            *take_turns(lambda: backend.read(NOTE), lambda: bare_read(path), 200, 200),
            limit=2.0,
        ),
    ]
    for size in SIZES:
        fill(root / f"of-{size}", size)
        listed = take_turns(
            lambda size=size: backend.list(Locator(f"of-{size}")),  # type: ignore[misc]
            lambda size=size: bare_scandir(root / f"of-{size}"),  # type: ignore[misc]
            max(5, 300_000 // size),
            1,
        )
        limit = 2.0 if size == 10_000 else None  # noqa: PLR2004 - the promise is for this size
        results.append(Comparison(f"list {size:,} entries / scandir", *listed, limit=limit))
    return results


def compare_first_listing(root: Path, home: str) -> Comparison:
    """Compare a listing by a backend that has never seen the directory."""
    folder = root / "of-10000"
    listed = take_turns(
        lambda: DeviceLocalBackend(str(root), home).list(Locator(folder.name)),
        lambda: bare_scandir(folder),
        30,
        1,
    )
    return Comparison("list 10,000 for the first time", *listed)


def slope(results: list[Comparison]) -> float:
    """Return the power of the directory's size that listing it grows with."""
    smallest, *_, largest = results[-len(SIZES) :]
    return math.log(largest.ours / smallest.ours) / math.log(SIZES[-1] / SIZES[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        root, home = Path(folder, "memory"), str(Path(folder, "home"))
        results = compare(root, DeviceLocalBackend(str(root), home))
        first = compare_first_listing(root, home)
    print(f"{'':34} {'perdure':>15} {'bare':>15} {'ratio':>8}")
    for result in results:
        print(result)
    print(first)
    print(f"list grows with entries to the power of {slope(results):.2f}")
    return int(arguments.check and not all(result.ok for result in results))


if __name__ == "__main__":
    sys.exit(main())
