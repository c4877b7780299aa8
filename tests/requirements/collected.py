"""What is known of every test of the repository: its tier, and the requirements that it holds."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from perdure.testing.requirement import requirements_of
from tests import tiers

REPOSITORY = Path(__file__).parents[2]
_INTO = "PERDURE_COLLECTED_FILE"


@dataclass(frozen=True, slots=True)
class Held:
    tier: str
    requirements: tuple[str, ...]


Tests = dict[str, Held]
_KEY = pytest.StashKey[Tests]()


def tier_of(item: pytest.Item) -> str:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return tiers.tier_of(
        item.nodeid, (mark.name for mark in item.iter_markers()), parameters.values()
    )


def remember(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was collected, before anything is deselected, if that is the whole repository."""
    options = config.option
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or options.ignore:
        return
    # Examples of documents have no function of their own, and so hold nothing.
    config.stash[_KEY] = {
        item.nodeid: Held(tier_of(item), requirements_of(getattr(item, "function", None)))
        for item in items
    }
    if _INTO in os.environ:
        told = {node: asdict(test) for node, test in config.stash[_KEY].items()}
        Path(os.environ[_INTO]).write_text(json.dumps(told), encoding="utf-8")


def every_test(config: pytest.Config, folder: Path) -> Tests:
    """Return all tests, however the present run was selected.

    A run of a whole tier has collected them; any other run has another process do so.
    """
    if _KEY not in config.stash:
        config.stash[_KEY] = collect(folder)
    return config.stash[_KEY]


def collect(folder: Path) -> Tests:
    """Let another process collect all tests; it writes into `folder`."""
    into = folder / "collected.json"
    ours = ("PYTEST_ADDOPTS", "COVERAGE_PROCESS_CONFIG")  # nothing runs, so nothing is counted
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    collection = subprocess.run(
        (sys.executable, "-m", "pytest", "--collect-only", "-q"),
        cwd=REPOSITORY,
        env=environment | {_INTO: str(into)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert collection.returncode == pytest.ExitCode.OK, collection.stdout
    found = json.loads(into.read_text(encoding="utf-8"))
    return {node: Held(test["tier"], tuple(test["requirements"])) for node, test in found.items()}
