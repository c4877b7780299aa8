"""Look for a state, left by a power cut, in which the store breaks a promise.

    python -m tests.support.artifacts.crash --states 1000000

Goes through every workload of up to three steps, and those in which processes and syncs fail; then
through longer ones, until there were that many different states. The same seed gives the same
states, on however many processes.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from multiprocessing import Pool
from time import monotonic
from typing import NamedTuple

import click

from tests.support.artifacts.recording import RecordingDisk
from tests.support.artifacts.states import CrashState, crash_states
from tests.support.artifacts.verdict import Judge
from tests.support.artifacts.workloads import (
    STEPS,
    Run,
    Workload,
    long_workloads,
    open_store,
    placed_workloads,
    run,
    short_workloads,
    troubled_workloads,
)

_BATCH = len(STEPS) * 8
_SHOWN = 20


class Effort(NamedTuple):
    """How many states to look at, where not all can be."""

    states: int
    """At each moment of a workload."""
    again: int
    """At each moment of an opening that is itself interrupted."""
    share: int
    """One in so many states is opened with another power cut to follow."""
    seed: int = 0


class Violation(NamedTuple):
    """A promise that was broken, and how to see it again."""

    workload: Workload
    operations: int
    """How many had been begun when the power went."""
    cuts: int
    """1, or 2 if it went again while the store was opened."""
    digest: str
    error: str

    def __str__(self) -> str:
        cuts = ("", "a power cut", "a power cut and another one on opening")[self.cuts]
        return f"{list(self.workload)}, {cuts} after {self.operations} operations: {self.error}"


class Findings(NamedTuple):
    digests: frozenset[bytes]
    """Of the different states that were looked at."""
    violations: tuple[Violation, ...]


class Explorer:
    """Looks at what a power cut in the last step of a workload can leave.

    The steps before are the last ones of shorter workloads. What was found to hold in one workload
    is not checked again in another that begins alike.
    """

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._held: set[int] = set()

    def __call__(self, workload: Workload) -> Findings:
        return _Exploration(run(workload), self._effort, self._held).findings()


class _Exploration:
    def __init__(self, done: Run, effort: Effort, held: set[int]) -> None:
        self._run = done
        self._effort = effort
        self._held = held
        self._judge = Judge(done)
        self._seen: set[tuple[bytes, int]] = set()
        self._violations: list[Violation] = []

    def findings(self) -> Findings:
        recording, since = self._run.recording, self._run.last_step
        effort = self._effort
        for state in crash_states(recording, since=since, most=effort.states, seed=effort.seed):
            if self._is_new(state) and self._holds(state, 1) and self._is_opened_twice(state):
                self._interrupt(state)
        return Findings(frozenset(digest for digest, _ in self._seen), tuple(self._violations))

    def _interrupt(self, state: CrashState) -> None:
        """Look at what is left when the power goes again while a store is opened."""
        disk = RecordingDisk(state.disk())
        open_store(disk).close()
        for found in crash_states(disk.recording, most=self._effort.again, seed=self._effort.seed):
            second = found._replace(promises=state.promises, operations=state.operations)
            if self._is_new(second):
                self._holds(second, 2)

    def _is_new(self, state: CrashState) -> bool:
        key = state.digest, len(state.promises)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _is_opened_twice(self, state: CrashState) -> bool:
        return int.from_bytes(state.digest) % self._effort.share == 0

    def _holds(self, state: CrashState, cuts: int) -> bool:
        known = hash((state.digest, *state.promises[-1:]))
        if known in self._held:
            return True
        try:
            self._judge.check(state)
        except Exception as error:  # noqa: BLE001 - whatever it is, a promise is broken
            found = f"{type(error).__name__}: {error}"
            self._violations.append(
                Violation(self._run.workload, state.operations, cuts, state.digest.hex(), found)
            )
            return False
        self._held.add(known)
        return True


class Progress(NamedTuple):
    """What was found so far."""

    workloads: int
    states: int
    """Different ones."""
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        return (
            f"{self.states:,} different states of {self.workloads:,} workloads, "
            f"{len(self.violations):,} invalid"
        )


def search(
    states: int, effort: Effort, certain: Sequence[Workload], processes: int = 1
) -> Iterator[Progress]:
    """Look at these workloads, and at others until there were so many states; tell of it."""
    workloads = chain(certain, long_workloads(effort.seed))
    explorer = Explorer(effort)
    seen: set[bytes] = set()
    progress = Progress(0, 0, ())
    with ExitStack() as stack:
        pool = stack.enter_context(Pool(processes)) if processes > 1 else None
        each = partial(pool.map, chunksize=len(STEPS)) if pool else map
        while progress.workloads < len(certain) or progress.states < states:
            batch = list(islice(workloads, _BATCH))
            found = list(each(explorer, batch))
            seen.update(*(findings.digests for findings in found))
            broken = chain.from_iterable(findings.violations for findings in found)
            progress = Progress(
                progress.workloads + len(batch), len(seen), (*progress.violations, *broken)
            )
            yield progress


@click.command()
@click.option("--states", default=1_000_000, help="How many different states, at least.")
@click.option("--most", default=500, help="How many at each moment, where not all can be.")
@click.option("--again", default=30, help="As --most, for a power cut on opening.")
@click.option("--share", default=16, help="One in so many states is interrupted on opening.")
@click.option("--seed", default=0)
@click.option("--processes", default=os.cpu_count() or 1, show_default="all cores")
@click.option(
    "--long", is_flag=True, help="Leave out the short workloads, which are always the same."
)
@click.option("--workload", help="Look at this one only: its steps, with a semicolon between.")
def main(  # noqa: PLR0913 - options, each by its name
    *,
    states: int,
    most: int,
    again: int,
    share: int,
    seed: int,
    processes: int,
    long: bool,
    workload: str | None,
) -> None:
    """Look for a state, left by a power cut, in which the store breaks a promise."""
    begun = monotonic()
    effort = Effort(most, again, share, seed)
    if workload is None:
        certain = chain(short_workloads(3), placed_workloads(), troubled_workloads())
        found = search(states, effort, [] if long else list(certain), processes)
    else:
        alone = Explorer(effort)(tuple(workload.split("; ")))
        found = iter([Progress(1, len(alone.digests), alone.violations)])
    progress = Progress(0, 0, ())
    for progress in found:
        click.echo(f"{monotonic() - begun:6.0f} s  {progress}")
    for violation in progress.violations[:_SHOWN]:
        click.echo(str(violation), err=True)
    click.echo(f"{progress}, {monotonic() - begun:.0f} s")
    if progress.violations:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
