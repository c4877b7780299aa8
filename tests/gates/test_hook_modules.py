"""What each hook loads: agents wait for it, and most of its time is starting. A ratchet, as lines.

Counts, not times: those depend on the machine. `benchmarks/hooks.py` measures times.
"""

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import perdure

HOOKS: Any = import_module("benchmarks.hooks")
_LOOKING = """
import atexit, os, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
os._exit = sys.exit
from perdure.surfaces.start import main
main()
"""
MOST_OF_OURS = {
    "session-start": 85,
    "prompt": 92,
    "action, silent": 57,
    "action, a rule": 106,
    "failure": 56,
    "subagent": 84,
    "stop": 20,
}
"""How many of our modules a hook may load, in the layout `notes`, whose own are among them."""
NEVER = {
    *(
        "asyncio",
        "click",
        "dataclasses",
        "difflib",
        "email",
        "html",
        "httpx2",
        "inspect",
        "logging",
    ),
    *("markdown_it", "mcp", "multiprocessing", "numpy", "pydantic", "random", "rich", "secrets"),
    *("shutil", "socket", "tempfile", "tomlkit", "uuid", "yaml"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    HOOKS.fill(place / "home", place / "project", 20)
    time.sleep(0.1)  # files that are as young as a tick of the clock are read again
    with perdure.open(home=place / "home") as memory:
        memory.recall("the first look at all files")
    return place


@pytest.mark.parametrize("name", MOST_OF_OURS)
def test_a_hook_loads_no_more_than_it_did(name: str, place: Path) -> None:
    event, given = HOOKS.events(place / "project", [*MOST_OF_OURS].index(name))[name]
    environ = {**os.environ, "PERDURE_HOME": str(place / "home")}
    environ.pop("COVERAGE_PROCESS_CONFIG", None)  # which loads much that we don't
    done = subprocess.run(
        (sys.executable, "-c", _LOOKING, "hook", event),
        env=environ,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    ours = {each for each in loaded if each.split(".")[0] == perdure.__name__}

    assert not loaded & NEVER
    assert len(ours) <= MOST_OF_OURS[name], sorted(ours)
    assert bool(done.stdout) == (name in {"session-start", "prompt", "action, a rule", "subagent"})


def test_there_is_a_ceiling_for_every_hook_that_is_measured(place: Path) -> None:
    assert HOOKS.events(place, 1).keys() == MOST_OF_OURS.keys()
