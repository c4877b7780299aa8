"""Budgets of lines: a ratchet that only goes down. Raising one needs a decision record."""

from pathlib import Path

import pytest

import perdure

PACKAGE = Path(perdure.__file__).parent


def lines_in(*paths: Path) -> int:
    files = {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


BUDGETS = {
    "agents": 4_421,
    "app": 2_691,
    "artifacts": 6_666,
    "context": 5_065,
    "engine": 27_062,
    "harness": 2_026,
    "index": 4_633,
    "llm": 1_623,
    "model": 3_120,
    "process": 583,
    "proofs": 668,
    "safety": 1_351,
    "storage": 6_022,
    "surfaces": 7_241,
    "testing": 4_365,
    "transfer": 4_993,
}


@pytest.mark.parametrize("package", BUDGETS)
def test_a_package_keeps_to_its_budget(package: str) -> None:
    assert lines_in(PACKAGE / package) <= BUDGETS[package]


def test_every_package_has_a_budget() -> None:
    assert BUDGETS.keys() == {file.parent.name for file in PACKAGE.glob("*/__init__.py")}


def test_learning_keeps_to_its_budget_with_its_tables() -> None:
    files = [file for file in (PACKAGE / "engine" / "learn").iterdir() if file.is_file()]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 3_421


def test_all_without_the_suites_keeps_to_its_budget() -> None:
    assert lines_in(PACKAGE) - lines_in(PACKAGE / "testing") <= 76_924
