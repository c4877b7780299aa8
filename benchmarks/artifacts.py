"""The artifact store against its peers and against the limits of disk and hash, in one run.

    python benchmarks/artifacts.py [--check] [--quick] [figure ...]

All contestants take turns at the same bytes, so that whatever else the machine does hits them all,
and the best of five rounds counts; what matters is the ratio. With --check the exit code says
whether every figure is within its limit. The peers are in requirements/bench.txt.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from artifact_store import openings, reads, writes
from artifact_store.peers import FlatFile, absent
from artifact_store.races import Figure, run
from artifact_store.scale import FULL, KIB, MIB, QUICK, Scale, payloads

FIGURES: dict[str, Callable[[Path, Scale], list[Figure]]] = {
    "put": writes.one_caller,
    "threads": writes.many_callers,
    "batch": writes.batches,
    "known": writes.known,
    "get": reads.warm_get,
    "as-of": reads.as_of,
    "verify": reads.verify,
    "open": openings.opening,
    "recovery": openings.recovery,
    "growth": openings.growing,
}


def measure(name: str, scale: Scale) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        return FIGURES[name](Path(folder), scale)


def weather() -> str:
    """Say how the machine is doing: with a disk that is held up, ratios of puts say little."""
    (data,) = payloads(1, KIB)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        flat = FlatFile(Path(folder), MIB)
        seconds = run({"": flat.put}, lambda: data, legs=20)[""] / 20
        flat.close()
    load, *_ = os.getloadavg()
    return f"write and fdatasync {seconds * 1e6:.0f} us, load {load:.1f} on {os.cpu_count()} CPUs"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("figures", nargs="*", metavar="figure", help=", ".join(FIGURES))
    arguments = parser.parse_args()
    if unknown := set(arguments.figures) - set(FIGURES):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    if missing := absent():
        parser.error(
            f"{', '.join(missing)} can't be compared with, not being installed. "
            "Fix: pip install --require-hashes -r requirements/bench.txt"
        )
    print(weather())
    begun = time.monotonic()
    over = []
    for name in arguments.figures or FIGURES:
        for figure in measure(name, QUICK if arguments.quick else FULL):
            print(*figure.lines(), sep="\n", flush=True)
            over += [] if figure.ok else [figure.title]
    print(f"\n{weather()}")
    print(f"{len(over)} over their limit, in {time.monotonic() - begun:.0f} s")
    return int(arguments.check and bool(over))


if __name__ == "__main__":
    sys.exit(main())
