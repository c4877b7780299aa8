"""The benchmark of saving runs, finds what it saved, and says how a save grows."""

import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "save.py"


def test_it_tells_rates_beside_bare_writes_and_how_a_save_grows(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, BENCHMARK, "--quick"]
    run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)

    for told in ("save, found by", "the same files and commits", "one file", "one row of SQLite"):
        assert re.search(rf"  {told}.* ms, processor .* ms .* /s", run.stdout)
    for told in ("messages only", "a file for each message", "all in one commit of SQLite"):
        assert re.search(rf"  {told} .* messages/s", run.stdout)
    assert "2 of 2 recalls found what was saved just before, with no lag" in run.stdout
    assert len(re.findall(r"  slope [+-]\d\.\d{3}, of the processor's time", run.stdout)) == 2
    assert list(tmp_path.iterdir()) == []
