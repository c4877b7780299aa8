"""Whatever a power cut leaves, what was acknowledged is there, and nothing is there by halves."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain, combinations
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.artifacts.crash_bugs import BUGS, Bug, broken, opening
from tests.support.artifacts import crash, crash_states
from tests.support.artifacts.crash import Effort, Explorer, Progress, search
from tests.support.artifacts.verdict import Judge
from tests.support.artifacts.workloads import (
    Workload,
    erasing_workloads,
    open_store,
    placed_workloads,
    run,
    short_workloads,
)
from tests.tiers import searched, seed

pytestmark = pytest.mark.search

LITTLE = Effort(states=10, again=5, share=8)
BARELY = Effort(states=2, again=2, share=64)
ENOUGH_TO_BITE = 1500
ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- the store
def test_each_step_of_a_write_survives_a_power_cut() -> None:
    workload = ("put", "put many", "tombstone", "collect", "put sectors")

    assert Explorer(BARELY)(workload).violations == ()


@pytest.mark.timeout(900)
def test_very_many_states_and_none_is_invalid() -> None:
    wanted = searched(100_000)
    command = [sys.executable, "-m", "tests.support.artifacts.crash"]
    few = ["--most", str(searched(40)), "--again", str(searched(20)), "--share", "24"]
    options = ["--states", str(wanted), "--seed", str(seed(0)), *few]
    # In a process of its own, and not measured: what it covers, the tests below cover.
    plain = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}

    done = subprocess.run(
        [*command, *options], env=plain, cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    states, workloads, invalid = summary(done.stdout)
    assert states >= wanted
    assert workloads >= len(list(short_workloads(3)))
    assert invalid == 0


def summary(output: str) -> list[int]:
    last = output.splitlines()[-1]
    found = re.match(r"([\d,]+) different states of ([\d,]+) workloads, ([\d,]+) invalid", last)
    assert found is not None, last
    return [int(number.replace(",", "")) for number in found.groups()]


@pytest.mark.parametrize(
    "workload",
    [
        ("put 1100000",),
        ("put", "put 1100000"),
        ("put 1100000", "tombstone", "collect"),
        ("put, killed 5", "put sectors, failing 0", "put"),
    ],
    ids=", ".join,
)
def test_no_state_of_a_special_workload_is_invalid(workload: Workload) -> None:
    assert Explorer(LITTLE)(workload).violations == ()


def test_what_is_erased_is_gone_or_as_it_was_whenever_the_power_goes() -> None:
    explorer = Explorer(LITTLE)
    assert [found for each in erasing_workloads() for found in explorer(each).violations] == []


def test_the_same_seed_gives_the_same_states_and_another_one_others() -> None:
    def found(seed: int) -> frozenset[bytes]:
        return Explorer(LITTLE._replace(seed=seed))(("put sectors", "put many")).digests

    assert found(1) == found(1) != found(2)


def test_a_search_goes_on_until_it_has_seen_enough_and_finds_the_same_on_two_processes() -> None:
    def found(processes: int) -> list[Progress]:
        return list(search(300, BARELY, list(short_workloads(1)), processes))

    alone = found(processes=1)

    assert alone[-1].states >= 300
    assert alone[-1].violations == ()
    assert found(processes=2) == alone


# ---------------------------------------------------------------- broken stores
def states_to_bite(bugs: Sequence[Bug], most: int) -> int | None:
    """Return how many states it takes to find a broken promise; None if `most` don't suffice."""
    seen = 0
    for workload in chain(short_workloads(2), placed_workloads()):
        with broken(bugs):
            done = run(workload, opening(bugs))
        judge = Judge(done)
        for state in crash_states(done.recording, since=done.last_step, most=200):
            seen += 1
            disk = state.disk()
            try:
                with broken(bugs):
                    retained = judge.check_opened(opening(bugs)(disk), state)
                # One that is not broken must be able to go on from what the broken one left.
                judge.check_reopened(open_store(disk), retained)
            except Exception:  # noqa: BLE001 - whatever it is, a promise is broken
                return seen
            if seen >= most:
                return None
    return None


def test_a_store_without_a_bug_is_not_bitten() -> None:
    assert states_to_bite((), ENOUGH_TO_BITE) is None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_bitten(bug: Bug) -> None:
    assert states_to_bite((bug,), ENOUGH_TO_BITE) is not None


@pytest.mark.parametrize(
    "pair", [*combinations(BUGS, 2)], ids=lambda pair: f"{pair[0].name}, {pair[1].name}"
)
def test_no_bug_hides_another(pair: tuple[Bug, Bug]) -> None:
    assert states_to_bite(pair, ENOUGH_TO_BITE) is not None


# ---------------------------------------------------------------- the command
def test_the_command_looks_at_one_workload_if_asked_to() -> None:
    done = CliRunner().invoke(crash.main, ["--workload", "put; put sectors", "--most", "10"])

    assert done.exit_code == 0, done.output
    assert " different states of 1 workloads, 0 invalid" in done.output


def test_the_command_shows_what_is_invalid_and_fails() -> None:
    unchecked = next(bug for bug in BUGS if bug.name == "no check of the last payload")

    with broken([unchecked]):
        done = CliRunner().invoke(crash.main, ["--workload", "put sectors", "--most", "200"])

    assert done.exit_code == 1
    assert "['put sectors'], a power cut after" in done.output
    assert "are not what was put" in done.output
