"""The command line, as a program of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.testing.requirement import requirement

PERDURE = str(Path(sys.executable).with_name("perdure"))


def perdure(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {"HOME": str(home), "PATH": os.environ["PATH"], **environ}
    return subprocess.run(
        [PERDURE, *words], env=clean, capture_output=True, text=True, check=False, timeout=60
    )


@requirement("001-doctor-shows-preview")
def test_doctor_says_where_memory_is_and_creates_nothing(tmp_path: Path) -> None:
    done = perdure(tmp_path, "doctor")

    assert done.returncode == 0
    assert done.stdout.startswith(f"ok   storage   device-local at {tmp_path}/.perdure/memory\n")
    assert list(tmp_path.iterdir()) == []


def test_doctor_fails_with_the_fix(tmp_path: Path) -> None:
    done = perdure(tmp_path, "doctor", MEMORY_VAULT_PATH=str(tmp_path / "absent"))

    assert done.returncode == 1
    assert done.stdout.startswith("FAIL storage")
    assert "Fix: mount" in done.stdout


def test_doctor_names_the_line_of_a_wrong_config(tmp_path: Path) -> None:
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure" / "config.toml").write_text("[storage]\nbackand = 'vault'\n")

    done = perdure(tmp_path, "doctor")

    assert done.returncode == 1
    assert "config.toml, line 2: " in done.stdout
    assert done.stderr == ""


def test_doctor_says_what_recall_would_say_of_a_model(tmp_path: Path) -> None:
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure" / "config.toml").write_text('[embedding]\nprovider = "minilm"\n')

    done = perdure(tmp_path, "doctor")

    refusal = perdure(tmp_path, "recall", "x").stderr.removeprefix("perdure: ").strip()
    assert "model is not installed" in refusal
    assert done.returncode == 1
    assert done.stdout.startswith("ok   storage ")
    assert done.stdout.endswith(f"FAIL recall    {refusal}\n")
    stdout_of = json.loads(perdure(tmp_path, "doctor", "--json").stdout)
    assert (stdout_of["ok"], stdout_of["embedding"]) == (False, refusal)


@requirement("001-doctor-requires")
@pytest.mark.parametrize(("requires", "code"), [("concurrent_writers", 0), ("sync, encryption", 1)])
def test_doctor_checks_what_is_required(tmp_path: Path, requires: str, code: int) -> None:
    done = perdure(tmp_path, "doctor", "--requires", requires)

    assert done.returncode == code
    assert ("does not promise encryption, sync" in done.stdout) == bool(code)


def test_doctor_refuses_a_promise_that_nobody_knows(tmp_path: Path) -> None:
    done = perdure(tmp_path, "doctor", "--requires", "speed")

    assert done.returncode == 2
    assert "unknown: speed. Fix: use concurrent_writers" in done.stderr


def test_doctor_speaks_json(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    done = perdure(tmp_path, "doctor", "--json", MEMORY_VAULT_PATH=str(tmp_path / "vault"))

    stdout_of = json.loads(done.stdout)
    assert stdout_of["ok"] is True
    assert stdout_of["protocol"] == "vault"
    assert stdout_of["capabilities"]["sync"] is True


def test_starting_up_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    script = (
        "import sys; before = set(sys.modules); import perdure.surfaces.cli; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"hypothesis", "pytest", "multiprocessing", "sqlite3", "numpy", "asyncio"}
    heavy |= {"openai", "anthropic", "tenacity", "httpx2", "pydantic", "decimal"}
    assert not heavy & set(done.stdout.split())
