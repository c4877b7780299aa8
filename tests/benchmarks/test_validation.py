"""The benchmark of validation prints both figures for both halves, and whether they are enough."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_prints_both_halves_and_meets_its_goals() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.validation", "--check", "--misses"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert run.stdout.count("precision  recall") == 2
    assert run.stdout.count("  held ") == 2
    assert "characters takes" in run.stdout
    assert run.stdout.count("looking for secrets in") == 2
