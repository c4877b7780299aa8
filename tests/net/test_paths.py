"""One warm save and one warm recall do no more than recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.net.recording import HERE, RECORDING, same_as_recorded

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "paths.py"
SLACK = {"calls": 1.02, "files": 1.02}
"""How many times the recorded count is still right; of all others, no more than recorded."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    command = [sys.executable, str(BENCHMARK), "--json"]
    folder = tmp_path_factory.mktemp("paths")
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    counts: dict[str, dict[str, int]] = json.loads(done.stdout)
    return counts


def test_paths_are_no_longer_than_recorded(counted: dict[str, dict[str, int]]) -> None:
    if RECORDING:
        same_as_recorded("paths.json", json.dumps(counted, indent=1) + "\n")
    recorded = json.loads((HERE / "paths.json").read_text(encoding="utf-8"))

    longer = [
        f"one warm {verb}: {counted[verb][name]} {name}, recorded {number}"
        for verb, counts in recorded.items()
        for name, number in counts.items()
        if counted[verb][name] > number * SLACK.get(name, 1)
    ]
    assert not longer, "`python benchmarks/paths.py --where` shows where they are"
