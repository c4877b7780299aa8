"""A vault as memory, beside basic-memory, on the same notes in one run.

    python benchmarks/vault_beside.py VAULT --basic-memory PATH [--most 2000] [--seconds 1800]

VAULT is a folder of notes, such as `vault_tree.py` makes; each side gets a copy of its own. PATH is
the command of basic-memory, installed in an environment of its own. Both are used as a person in a
terminal uses them, with search by words and no model: basic-memory has one project, and its index
is brought up to date by `reindex --search`, which is what its server does when it starts; ours by
the recall itself.

first index    until everything can be found
second start   with nothing changed
one edit       until the next correct answer
search         one question with the index up to date

CPU seconds, user and system, are what counts; wall seconds are beside them. A side that is not done
with its first index within the seconds is stopped, and how far it came is printed.
"""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

QUESTION = "exceptionally CompletableFuture"


@dataclass(frozen=True, slots=True)
class Taken:
    cpu: float
    wall: float
    out: str

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.cpu + other.cpu, self.wall + other.wall, other.out)


@dataclass(frozen=True, slots=True)
class Side:
    command: tuple[str, ...]
    environment: dict[str, str]
    vault: Path
    seconds: float

    def run(self, *arguments: str) -> Taken:
        before, began = os.times(), time.perf_counter()
        done = subprocess.run(  # noqa: S603 - our own words
            [*self.command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        after, wall = os.times(), time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"{arguments} failed: {done.stderr or done.stdout}")
        used = after.children_user + after.children_system
        return Taken(used - before.children_user - before.children_system, wall, done.stdout)

    def edit(self, word: str) -> str:
        """Add a line to a note of the owner's; return the name of the note."""
        note = min(path for path in self.vault.rglob("*.md") if path.parent.name != "Perdure")
        note.write_text(f"{note.read_text()}\nA {word} lives here.\n")
        return note.stem


def ours(side: Side) -> dict[str, Taken]:
    first = side.run("init", "--vault", str(side.vault)) + side.run("recall", QUESTION, "--json")
    taken = {"first index": first}
    taken["second start"] = side.run("recall", QUESTION, "--json")
    name = side.edit("zebrafinch")
    taken["one edit"] = side.run("recall", "zebrafinch", "--json")
    demand_found(taken["one edit"].out, name)
    taken["search"] = side.run("recall", QUESTION, "--json")
    return taken


def basic_memory(side: Side) -> dict[str, Taken]:
    def search(words: str) -> Taken:
        return side.run("tool", "search-notes", words, "--json")

    taken = {"first index": side.run("reindex", "--search")}
    taken["second start"] = side.run("reindex", "--search")
    name = side.edit("zebrafinch")
    taken["one edit"] = side.run("reindex", "--search") + search("zebrafinch")
    demand_found(taken["one edit"].out, name)
    taken["search"] = search(QUESTION)
    return taken


def demand_found(out: str, word: str) -> None:
    if word not in out:
        raise SystemExit(f"{word} was not found in {out[:300]}")


def copied(vault: Path, to: Path, most: int) -> None:
    for number, note in enumerate(sorted(vault.rglob("*.md"))):
        if number == most:
            break
        copy = to / note.relative_to(vault)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(note, copy)


def configured(home: Path, vault: Path) -> None:
    """Configure one project of basic-memory, and no model."""
    (home / ".basic-memory").mkdir(parents=True)
    config = {
        "projects": {"main": {"path": str(vault), "mode": "local"}},
        "default_project": "main",
        "semantic_search_enabled": False,
        "auto_update": False,
        "cloud_promo_opt_out": True,
    }
    (home / ".basic-memory" / "config.json").write_text(json.dumps(config))


def indexed(home: Path) -> int:
    """Return how many notes basic-memory knows."""
    with closing(sqlite3.connect(home / ".basic-memory" / "memory.db")) as db:
        ((count,),) = db.execute("SELECT count(*) FROM entity")
    return int(count)


def report(here: dict[str, Taken], there: dict[str, Taken]) -> None:
    print(f"{'':14} {'perdure':>22} {'basic-memory':>24} {'CPU':>8}")
    for name, one in here.items():
        line = f"{name:14} {one.cpu:8.2f} s CPU {one.wall:7.1f} s"
        if name in there:
            other = there[name]
            line += f" {other.cpu:9.2f} s CPU {other.wall:7.1f} s {other.cpu / one.cpu:7.1f} x"
        print(line)
    faster = here["first index"].cpu / here["second start"].cpu
    print(f"our second start takes 1/{faster:.0f} of the first index")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vault", type=Path)
    parser.add_argument("--basic-memory", type=Path, help="its command; without it, only ours")
    parser.add_argument("--most", type=int, default=2_000, help="how many of the notes")
    parser.add_argument("--seconds", type=float, default=1_800, help="bound of each command")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="perdure-beside-"))
    try:
        for name in ("ours", "theirs"):
            copied(options.vault, place / name / "vault", options.most)
        count = sum(1 for _ in (place / "ours" / "vault").rglob("*.md"))
        print(
            f"{count:,} notes; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs", flush=True
        )
        environment = {name: os.environ.get(name, "") for name in ("PATH", "LANG")}
        home = place / "ours"
        command = (str(Path(sys.executable).parent / "perdure"),)
        own = {"HOME": str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        side = Side(command, environment | own, home / "vault", options.seconds)
        here, there = ours(side), dict[str, Taken]()
        if options.basic_memory:
            report(here, {})
            sys.stdout.flush()
            home = place / "theirs"
            configured(home, home / "vault")
            command = (str(options.basic_memory),)
            side = Side(command, environment | {"HOME": str(home)}, home / "vault", options.seconds)
            try:
                there = basic_memory(side)
            except subprocess.TimeoutExpired as late:
                print(f"basic-memory knew {indexed(home):,} notes after {late.timeout:g} s")
        report(here, there)
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
