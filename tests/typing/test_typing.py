"""The public names are typed: mypy and pyright agree on what a user's program has."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.engine.async_memory import AsyncMemory, AsyncPastMemory
from perdure.engine.memory import Memory, PastMemory
from tests.support.stubs import STUB, stub

PROGRAM = Path(__file__).with_name("program.py")
REPOSITORY = PROGRAM.parents[2]


def test_the_stub_is_what_the_signatures_of_memory_give() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "Fix: run `make stubs`."


@pytest.mark.parametrize(
    ("mirror", "source"), [(AsyncMemory, Memory), (AsyncPastMemory, PastMemory)]
)
def test_every_public_verb_can_be_awaited(mirror: type, source: type) -> None:
    verbs = [name for name, _ in inspect.getmembers(source) if not name.startswith("_")]
    missing = [name for name in verbs if not hasattr(mirror, name)]
    assert missing == []


def test_mypy_agrees() -> None:
    command = (sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(PROGRAM))
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pyright_agrees() -> None:
    program = str(Path(sys.executable).with_name("basedpyright"))
    command = (program, "--outputjson", "--pythonpath", sys.executable, "--level", "error")
    done = subprocess.run(
        (*command, str(PROGRAM)), cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    wrong = [each for each in found if each["severity"] == "error"]
    assert wrong == []
