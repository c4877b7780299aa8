"""What a recall needs, and no more, is loaded: most of its time goes into starting."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import perdure

_LOOKING = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count(), *sys.modules, file=sys.stderr))
from perdure.surfaces.start import main
main()
"""
"""Runs the command line, and in the very end tells what was loaded."""

PYTHONS_OWN = {
    "asyncio",
    "concurrent.futures",
    "difflib",
    "email",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "socket",
    "subprocess",
    "tempfile",
    "tomlkit",
}
NOT_THIS_QUESTION = {
    "perdure.engine.recall.periods",
    "perdure.safety.validation",
    "perdure.index.minilm",
    "perdure.index.matrix",
    "numpy",
}
WRITING = {
    "perdure.engine.session_commit",
    "perdure.engine.sessions",
    "perdure.engine.upkeep",
    "perdure.index.records",
    "perdure.model.candidate",
    "perdure.model.transcript",
    "perdure.storage.batch",
    "perdure.storage.reconciliation",
}
LOOKING_BACK = {
    "perdure.engine.provenance",
    "perdure.artifacts.catalogue",
    "perdure.artifacts.lines",
    "perdure.artifacts.sweeper",
    "perdure.artifacts.verification",
}
OTHER_BACKENDS = {
    "perdure.storage.in_memory",
    "perdure.storage.vault",
    "perdure.storage.personal",
}


def recalled(home: Path, *arguments: str) -> tuple[str, int, set[str]]:
    """Run a recall; return its answer, how much the collector passes over, and what was loaded."""
    environ = {**os.environ, "PERDURE_HOME": str(home)}
    environ.pop("COVERAGE_PROCESS_CONFIG", None)  # which loads much that we don't
    done = subprocess.run(
        (sys.executable, "-c", _LOOKING, "recall", *arguments),
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    passed_over, *loaded = done.stderr.splitlines()[-1].split()
    return done.stdout, int(passed_over), set(loaded)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "config.toml").write_text('[embedding]\nprovider = "none"\n')
    with perdure.open(home=home) as memory:
        memory.save("Tabs, never spaces.", category="preference", slug="indentation")
        time.sleep(0.3)  # a file that is younger than the last check is looked at again
        memory.recall("tabs")  # the first one looks at every file
    return home


def test_a_recall_loads_no_more_than_it_needs(home: Path) -> None:
    stdout_of, _, loaded = recalled(home, "tabs or spaces")

    assert "Tabs, never spaces." in stdout_of
    assert not loaded & PYTHONS_OWN
    assert not loaded & NOT_THIS_QUESTION
    assert not loaded & WRITING
    assert not loaded & LOOKING_BACK
    assert not loaded & OTHER_BACKENDS


def test_all_that_it_must_not_load_is_there(home: Path) -> None:
    """A module that was renamed would be missed by nobody."""
    named = PYTHONS_OWN | NOT_THIS_QUESTION | WRITING | LOOKING_BACK | OTHER_BACKENDS
    for name in named - {"numpy", "perdure.index.minilm"}:
        __import__(name)


def test_a_question_about_a_time_loads_the_calendar(home: Path) -> None:
    _, _, loaded = recalled(home, "tabs since May")

    assert "perdure.engine.recall.periods" in loaded


def test_no_garbage_is_looked_for_when_all_ends(home: Path) -> None:
    _, passed_over, _ = recalled(home, "tabs")

    assert passed_over > 10_000
