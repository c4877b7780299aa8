"""The demo answers as recorded, on a machine without a model."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.net.recording import same_as_recorded

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DEMO = [sys.executable, "-m", "examples.demo"]
"""How to start it."""
_CHANGING = (
    (re.compile(r"/tmp/perdure-demo-\w+"), "/tmp/perdure-demo-SOME"),  # noqa: S108 - its own name
    (re.compile(r"histories/[0-9a-f-]{36}"), "histories/ID"),
    (re.compile(r"perdure\+[0-9a-f]{8}\+[\w+/=]+"), "PUBLICKEY"),
    (re.compile(r"perdure/[0-9a-f]{32}"), "perdure/LOG"),
    (re.compile(r"root [0-9a-f]{64}"), "root HASH"),
    (re.compile(r"api_key=\w{4}\.\.\."), "api_key=SOME..."),
    (re.compile(r"\bin \d+ seconds"), "in SOME seconds"),
    (re.compile(r"\ball \d+ files"), "all SOME files"),  # a holder of the lock has one for a while
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b\d\d:\d\d:\d\dZ"), "HH:MM:SSZ"),
    (re.compile(r"(created|updated): 20\S+Z"), r"\1: TIME"),
)
"""What is another in each run: folders, ids, keys and times. The dates of the story stay."""


def _plain(text: str, days: set[str]) -> str:
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    for day in days:
        text = text.replace(day, "THIS-DAY--")
    return text


@pytest.mark.timeout(300)
def test_demo_answers_as_recorded(tmp_path: Path) -> None:
    # Lines are broken by the length of paths, so the folder always has a name of the same length.
    environ = {"PATH": f"{BIN}:{os.defpath}", "HOME": str(tmp_path), "TMPDIR": "/tmp", "TZ": "UTC"}  # noqa: S108

    began = _today()
    done = subprocess.run(
        DEMO, env=environ, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    same_as_recorded("demo.txt", _plain(done.stdout, {began, _today()}))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
