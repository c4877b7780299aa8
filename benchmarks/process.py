"""What a hook costs: `python -m perdure.process`, beside a Python that imports two modules.

    python benchmarks/process.py [--nodes 10000] [--rounds 21] [--check]

Processor time of whole processes, taking turns, on a memory of so many nodes of which 40 are of the
project. Byte code is compiled before, as it is in an installed package. With --check the exit code
says whether the hook stays within 4 times.
"""

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import perdure
from perdure.app import open_context
from perdure.model import ContextNode

GOAL = 4.0
PROJECT, NOTES = "project", 40
ASKED = {
    "python": ("-c", "import sqlite3, json"),
    "recall-here": ("-m", "perdure.process", "recall-here"),
    "state-path": ("-m", "perdure.process", "state-path", "plan"),
    "offer-save-here": ("-m", "perdure.process", "offer-save-here", "--kind", "a", "--slug", "b"),
    "recall-here, a query": ("-m", "perdure.process", "recall-here", "--query", "module 3"),
}


def fill(home: Path, nodes: int) -> None:
    """Make a memory of so many nodes, with some notes of the project among them."""
    with open_context({**os.environ, "PERDURE_HOME": str(home)}) as context:
        own = f"ctx://local/users/{context.request.user_id}/memories"
        for number in range(nodes):
            text = f"Note {number} is about topic {number % 97} and thing {number % 13}."
            node = ContextNode(uri=f"{own}/note/n{number}", content=text)
            context.nodes.write_node(node, context.request)
        context.memory.save("Never push to main.", category="rule", metadata={"always_load": True})
        for number in range(NOTES):
            text = f"Decision {number}: module {number % 7} is kept simple, and quick to start."
            context.memory.save(text, category="decision", metadata={"project": PROJECT})


def processor_time(command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> float:
    """Return the milliseconds of a processor that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=dict(environ), cwd=cwd, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measured(home: Path, cwd: Path, rounds: int) -> dict[str, float]:
    environ = {**os.environ, "PERDURE_HOME": str(home)}
    taken: dict[str, list[float]] = {name: [] for name in ASKED}
    for _ in range(rounds):
        for name, arguments in ASKED.items():
            taken[name].append(processor_time((sys.executable, *arguments), environ, cwd))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=10_000, help="how many there are; 10,000")
    parser.add_argument("--rounds", type=int, default=21, help="how often each is run; 21")
    parser.add_argument("--check", action="store_true", help="fail if the hook takes too long")
    options = parser.parse_args()
    compileall.compile_dir(str(Path(perdure.__file__).parent), quiet=2)
    with tempfile.TemporaryDirectory() as place:
        home, cwd = Path(place, "home"), Path(place, PROJECT)
        cwd.mkdir()
        fill(home, options.nodes)
        print(f"{options.nodes:,} nodes, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        taken = measured(home, cwd, options.rounds)
    for name, time in taken.items():
        print(f"  {name:22} {time:7.1f} ms {time / taken['python']:6.2f} times")
    missed = taken["recall-here"] > GOAL * taken["python"]
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
