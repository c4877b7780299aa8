"""The benchmark of extraction prints both figures for each category, and what is behind them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.extraction", *arguments]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout


def test_it_prints_both_halves_by_category() -> None:
    told = printed()

    assert told.count("precision  recall") == 2
    for category in ("profile", "preference", "entity", "event", "skill", "case", "pattern", "all"):
        assert told.count(f"  {category} ") == 2


def test_it_lists_what_was_missed_if_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "{half: held, style: x, user: ana, at: 2026-03-02T10:00:00Z,"
        " messages: [{user: I like tea}], expected: [[profile, 0, tea, [tea]]]}",
        encoding="utf-8",
    )
    told = printed(str(tmp_path), "--half", "held", "--verbose")

    assert "wrong   one                      preference  The user likes tea." in told
    assert "missed  one                      profile     tea" in told
