"""The tests of the night: all at full size, with fresh seeds, in parts that can be interrupted.

    python -m tests.nightly crash

A part that is run again on the same day goes on with what has not passed yet, with the same seed;
`FRESH=1` begins again. `.nightly/REPORT-<date>.md` tells what was run, with which seed, and what
failed. What it finds becomes an `@example` in a faster tier.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

import pytest

from tests.mutation import survivors

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / ".nightly"
BUDGET_SECONDS = 50 * 60
_MILLION_PARTS = 20
_DONE = "PERDURE_NIGHTLY_DONE"
_UNTIL = "PERDURE_NIGHTLY_UNTIL"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one part."""

    part: str
    day: str
    seed: int
    until: float

    @property
    def done(self) -> Path:
        """Where the names of what has passed are kept, one in each line."""
        return FOLDER / f"{self.day}-{self.part}.done"

    @property
    def log(self) -> Path:
        return FOLDER / f"{self.day}-{self.part}.log"


@dataclass(slots=True)
class Outcome:
    said: str
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What to look at, though nothing is known to be wrong."""


Part = Callable[[Run], Outcome]

# ---------------------------------------------------------------- tests, as a part


def tested(*selection: str) -> Part:
    """Return a part that runs the selected tests in the tier `nightly`."""

    def part(run: Run) -> Outcome:
        options = ("-n", "2", "--dist", "loadfile", "-p", "tests.nightly", "-o", "timeout=3000")
        seeds = (f"--fresh={run.seed}", f"--hypothesis-seed={run.seed}")
        command = ("-m", "pytest", "-q", *options, "--tier=nightly", *seeds, *selection)
        environment = {_DONE: str(run.done), _UNTIL: str(run.until)}
        code, lines = logged((sys.executable, *command), run, environment)
        failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} and not failed:
            failed = [f"pytest ended with {code}: {run.log.name}"]
        return Outcome(lines[-1] if lines else "", failed)

    return part


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed on this day."""
    done = set(_lines(Path(os.environ[_DONE])))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ and report.when == "call" and report.passed:
        with Path(os.environ[_DONE]).open("a", encoding="utf-8") as done:
            done.write(f"{report.nodeid}\n")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if time.time() > float(os.environ[_UNTIL]):
        pytest.skip("this part has had its time; run it again")


# ---------------------------------------------------------------- commands, as a part


def crash(run: Run) -> Outcome:
    """Cut the power in a million ways, of the store and of its files; run the tests of crashes."""
    outcome = tested(
        "tests/artifacts/test_crash.py",
        "tests/artifacts/test_archive_crash.py",
        "tests/artifacts/test_faults.py",
        "tests/context/test_crash.py",
        "tests/engine/erase/test_crashes.py",
        "tests/engine/saving/test_crashes.py",
        "tests/storage/test_commits.py",
        "tests/storage/test_redo.py",
        "tests/storage/test_write_all_faults.py",
    )(run)
    states = ("--states", str(1_000_000 // _MILLION_PARTS))

    def searched(part: int) -> tuple[str, ...]:
        long = ["--long"] if part else []
        return ("tests.support.artifacts.crash", *states, "--seed", str(run.seed + part), *long)

    def redone(part: int) -> tuple[str, ...]:
        return ("tests.storage.redo_search", *states, "--seed", str(run.seed + part))

    _in_parts(run, outcome, "a million states of files and their log", redone)
    _in_parts(run, outcome, "a million states", searched)
    return outcome


def faults(run: Run) -> Outcome:
    """Kill 2,000 processes, and let 2,000 calls fail, in a memory that is saved to and erased."""
    outcome, each = Outcome(""), 2000 // _MILLION_PARTS

    def kills(part: int) -> tuple[str, ...]:
        seed = ("--seed", str(run.seed + part))
        return ("tests.engine.faults", "--kills", str(each), "--errors", "0", *seed)

    def errors(part: int) -> tuple[str, ...]:
        begin = ("--begin", str(part * each))
        return ("tests.engine.faults", "--kills", "0", "--errors", str(each), *begin)

    _in_parts(run, outcome, "kills", kills)
    _in_parts(run, outcome, "errors", errors)
    return outcome


def _in_parts(
    run: Run, outcome: Outcome, what: str, command: Callable[[int], tuple[str, ...]]
) -> None:
    """Run a module in parts, those that have not passed on this day, while there is time."""
    for part in range(_MILLION_PARTS):
        name = f"{what}, part {part + 1} of {_MILLION_PARTS}"
        if name in _lines(run.done):
            continue
        if time.time() > run.until:
            outcome.notes.append(f"{name}: no time was left; run it again")
            return
        code, _ = logged((sys.executable, "-m", *command(part)), run)
        if code:
            outcome.failures.append(f"{name}: see {run.log.name}")
        else:
            _keep(run.done, name)


def mutation(run: Run) -> Outcome:
    """Change one place of the artifact store or the seam at a time: some test must fail."""
    tried = 0
    found = []
    for name, survived in survivors(run.seed, set(_lines(run.done)), run.until):
        tried += 1
        _keep(run.done, name)
        if survived:
            found.append(name)
    return Outcome(f"{tried} mutants, {len(found)} survived", notes=found)


AGENTS = (
    "@anthropic-ai/claude-code",
    "@openai/codex",
    "@google/gemini-cli",
    "opencode-ai",
    "node@22",
)
"""What npm installs: the agents, and the Node that some of them want."""


def clients(run: Run) -> Outcome:
    """Run real agents against a scripted model; npm installs them, unless CLIENTS names where."""
    if "CLIENTS" not in os.environ:
        if shutil.which("npm") is None:
            return Outcome("skipped: npm is not installed, and CLIENTS names no folder with agents")
        folder = FOLDER / "clients" / "npm"
        folder.mkdir(parents=True, exist_ok=True)
        code, lines = logged(("npm", "install", "--prefix", str(folder), *AGENTS), run)
        if code:
            return Outcome("npm could not install the agents", [lines[-1] if lines else str(code)])
    return tested("tests/clients", "--dist", "load", "-rA")(run)


PARTS: dict[str, Part] = {
    "crash": crash,
    "faults": faults,
    "kill": tested("tests", "-k", "killed or dies or died or dying or processes"),
    "hostile": tested("tests", "-k", "hostile or fuzz or damage or harm or odd or forged"),
    "mutation": mutation,
    "clients": clients,
    "servers": tested(
        "tests/llm",
        "tests/index/test_openai_compatible.py",
        "tests/surfaces/mcp",
    ),
    "searches": tested("tests", "-m", "search or hypothesis"),
    "net": tested("tests", "-m", "net_recall"),
}

# ---------------------------------------------------------------- running


def begun(part: str) -> Run:
    """Return the run of a part: the one of this day that goes on, or a new one."""
    FOLDER.mkdir(exist_ok=True)
    day = datetime.now(tz=UTC).date().isoformat()
    seed = FOLDER / f"{day}-{part}.seed"
    if os.environ.get("FRESH") or not seed.exists():
        seed.write_text(str(SystemRandom().getrandbits(32)), encoding="utf-8")
        (FOLDER / f"{day}-{part}.done").unlink(missing_ok=True)
    return Run(part, day, int(seed.read_text(encoding="utf-8")), time.time() + BUDGET_SECONDS)


def logged(
    command: tuple[str, ...], run: Run, environment: dict[str, str] | None = None
) -> tuple[int, list[str]]:
    """Run a command; return its code and its output, which is shown and added to the log."""
    lines = []
    with (
        run.log.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            lines.append(line.rstrip("\n"))
            print(line, end="", flush=True)  # noqa: T201 - somebody may be watching
    return process.returncode, lines


def report(run: Run, outcome: Outcome, seconds: float) -> None:
    verdict = f"{len(outcome.failures)} failures" if outcome.failures else "nothing failed"
    again = f"pytest --tier=nightly --fresh={run.seed} --hypothesis-seed={run.seed} <test>"
    section = [
        f"## {run.part}: {verdict}",
        "",
        f"seed {run.seed}, {seconds / 60:.0f} minutes. {outcome.said}",
        *([f"Again: `{again}`"] if outcome.failures else []),
        *[f"- {each}" for each in (*outcome.failures, *outcome.notes)],
        "",
    ]
    with (FOLDER / f"REPORT-{run.day}.md").open("a", encoding="utf-8") as file:
        file.write("\n".join(section) + "\n")
    print("\n".join(section))  # noqa: T201 - somebody may be watching


def main(names: list[str]) -> int:
    wanted = list(PARTS) if names in ([], ["all"]) else names
    if unknown := [name for name in wanted if name not in PARTS]:
        print(f"no part is called {unknown[0]!r}. Fix: use one of {', '.join(PARTS)}.")  # noqa: T201
        return 2
    failed = False
    for name in wanted:
        run, before = begun(name), time.time()
        outcome = PARTS[name](run)
        report(run, outcome, time.time() - before)
        failed = failed or bool(outcome.failures)
    return int(failed)


def _lines(path: Path) -> Iterator[str]:
    return iter(path.read_text(encoding="utf-8").splitlines() if path.exists() else ())


def _keep(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
