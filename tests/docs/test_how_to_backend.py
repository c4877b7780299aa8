"""The backend of the how-to is held to the contract by the suite that the how-to shows.

The document itself runs the whole suite; here, that this proves something.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance
from tests.docs.blocks import REPOSITORY, documentation

HOW_TO = REPOSITORY / "docs" / "how-to" / "write-your-own-backend.md"
MODULE = "perdure_one_file.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the Python files of the how-to."""
    for example in documentation(REPOSITORY).parse(HOW_TO):
        if example.parsed.language == "python":
            (tmp_path / example.parsed.title).write_text(example.parsed.source, encoding="utf-8")
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


class Promised(StorageConformance):
    """What a backend with the promises of the how-to's has to pass."""

    promises = frozenset({"concurrent_writers", SURVIVES_REOPENING})


def is_test(name: str) -> bool:
    return name.startswith("test_") and getattr(Promised, name) is not None


def test_the_how_to_runs_every_test_that_its_promises_switch_on(folder: Path) -> None:
    collected = run_pytest(folder, "--collect-only").stdout

    names = {line.rpartition("::")[2] for line in collected.splitlines() if "::" in line}
    assert names == {name for name in dir(Promised) if is_test(name)}


@pytest.mark.parametrize(
    ("right", "wrong", "caught_by"),
    [
        (
            'Mutex(folder, f"{home}/locks")',
            'Mutex(folder, f"{home}/locks/{time.time_ns()}")',
            "test_processes_lose_no_conditional_write",
        ),
        (
            "check_found(data_at(entries, locator), expect, locator)",
            "pass",
            "test_another_text_is_never_replaced",
        ),
        ("return sorted(", "return list(", "test_list_is_in_key_order"),
    ],
)
def test_the_suite_of_the_how_to_bites(
    folder: Path, right: str, wrong: str, caught_by: str
) -> None:
    module = folder / MODULE
    source = module.read_text(encoding="utf-8")
    assert right in source
    assert run_pytest(folder, "-k", caught_by).returncode == pytest.ExitCode.OK

    module.write_text(source.replace(right, wrong), encoding="utf-8")

    assert run_pytest(folder, "-k", caught_by).returncode == pytest.ExitCode.TESTS_FAILED
