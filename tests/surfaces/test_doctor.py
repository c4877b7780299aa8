"""`doctor`: every way in which a memory can be unwell is named, with its fix."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.app import find_history, health, open_context
from perdure.storage.mutex import HolderIdentity
from tests.index.minilm_cache import installed_model
from tests.surfaces.nodes import one, perdure, stdout_of

NAMES = [
    "config",
    "home",
    "writing",
    "store",
    "history",
    "edits",
    "index",
    "outbox",
    "worker",
    "locks",
    "extras",
    "recall",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give Ana a note that is indexed, and one that waits; return her home."""
    for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    stdout_of("write", "preference/tea", "Tea, no milk.")
    stdout_of("recall", "tea")
    stdout_of("write", "preference/milk", "None.")
    return tmp_path / ".perdure"


def levels(*words: str) -> dict[str, str]:
    done: dict[str, Any] = one("doctor", *words)
    return {check["name"]: check["level"] for check in done["checks"]}


def unwell(code: int) -> dict[str, str]:
    """Return what doctor says of what is not well, after the lines about the storage."""
    done = perdure("doctor")
    assert done.exit_code == code, done.stdout
    lines = [line for line in done.stdout.splitlines() if not line.startswith("     ")][1:]
    assert all("Fix: " in line for line in lines)
    return {line[5:14].strip(): line[:4].strip() for line in lines}


def test_all_checks_run_and_passing_ones_are_shown_on_request(home: Path) -> None:
    home.chmod(0o700)

    found = levels()

    assert list(found) == NAMES
    assert set(found.values()) <= {"ok", "note"}
    assert unwell(0) == {}
    assert [line[5:14].strip() for line in stdout_of("doctor", "--all").splitlines()[3:]] == NAMES


def test_every_line_that_is_not_ok_has_its_fix(home: Path) -> None:
    for line in stdout_of("doctor", "--all").splitlines():
        assert line.startswith(("ok  ", "    ")) or "Fix: " in line


def test_dead_letters_are_a_warning(home: Path) -> None:
    with open_context(os.environ) as context:
        uri, event = context.outbox.list_pending("local")[0]
        context.outbox.move_to_dlq(event, uri)

    assert unwell(0) == {"outbox": "warn"}


def test_what_waits_for_long_wants_a_worker(home: Path) -> None:
    with open_context(os.environ) as context:
        uri, event = context.outbox.list_pending("local")[0]
        context.outbox.release(event, uri)
    (index,) = find_history(os.environ).glob("index/*/local.sqlite")
    with closing(sqlite3.connect(index)) as db:
        db.execute("UPDATE events SET created_at = created_at - 3700 * 1000000")
        db.commit()

    assert unwell(0) == {"worker": "warn"}
    stdout_of("worker", "--once")
    assert unwell(0) == {}


def test_the_lock_of_a_dead_process_is_reported_until_the_next_write(home: Path) -> None:
    (lock,) = (home / "locks").glob("*/lock")
    signing = f"import {HolderIdentity.__module__} as m; print(m.HolderIdentity().sign()[1])"
    died = subprocess.run(
        [sys.executable, "-c", signing], capture_output=True, text=True, check=True, timeout=60
    )
    (lock / "free").rename(lock / f"held.{died.stdout.strip()}")

    assert unwell(0) == {"locks": "warn"}
    stdout_of("write", "preference/sugar", "None.")
    assert unwell(0) == {}


def test_a_lock_that_is_held_and_alive_is_fine(home: Path) -> None:
    (lock,) = (home / "locks").glob("*/lock")
    token = lock / f"held.{HolderIdentity().sign()[1]}"
    (lock / "free").rename(token)
    os.utime(token)
    assert unwell(0) == {}

    os.utime(token, (1, 1))
    assert unwell(0) == {"locks": "warn"}


def test_what_is_no_lock_is_passed_over(home: Path) -> None:
    (home / "locks" / "notes.txt").write_text("mine")
    (lock,) = (home / "locks").glob("*/lock")
    (lock / "held.nonsense").touch()

    assert unwell(0) == {}


@pytest.mark.parametrize(("mode", "level"), [(0o700, "ok"), (0o755, "note"), (0o777, "warn")])
def test_who_may_read_the_home_is_shown(home: Path, mode: int, level: str) -> None:
    home.chmod(mode)

    assert levels()["home"] == level


def test_what_cant_be_written_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere

    assert unwell(1) == {"home": "FAIL", "writing": "FAIL"}


def spoil_index(folder: Path) -> None:
    for path in (folder / "index").rglob("*.sqlite-*"):
        path.unlink()
    for path in (folder / "index").rglob("*.sqlite"):
        path.write_bytes(b"nonsense" * 1000)


def spoil_history(folder: Path) -> None:
    for path in folder.glob("segment-*"):
        path.write_bytes(b"x" * path.stat().st_size)


@pytest.mark.parametrize(
    ("spoil", "code", "says"),
    [
        (spoil_index, 0, {"index": "warn"}),
        (spoil_history, 1, {"history": "FAIL"}),
    ],
)
def test_what_is_damaged_is_named(
    home: Path, spoil: Callable[[Path], None], code: int, says: dict[str, str]
) -> None:
    spoil(find_history(os.environ))

    assert unwell(code) == says


def test_a_log_that_a_crash_cut_off_is_reported(home: Path) -> None:
    segment = max(find_history(os.environ).glob("segment-*"))
    with segment.open("ab") as file:
        file.write(b"torn")

    assert unwell(0) == {"history": "warn"}


def test_a_model_that_was_changed_fails(home: Path) -> None:
    (home / "config.toml").write_text('[embedding]\nprovider = "minilm"\n')

    assert unwell(1) == {"recall": "FAIL"}


def test_extras_that_are_missing_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_is_installed", lambda name: name != "cryptography")

    line = next(
        line for line in stdout_of("doctor", "--all").splitlines() if line[5:11] == "extras"
    )
    assert "not installed: " in line
    assert "proofs" in line
    assert "vectors" not in line


def test_a_wrong_config_is_reported_once(home: Path) -> None:
    (home / "config.toml").write_text("[storage")

    done = perdure("doctor")

    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 2
    assert levels_of_wrong()["config"] == "fail"


def levels_of_wrong() -> dict[str, str]:
    done = json.loads(perdure("doctor", "--json").stdout)
    return {check["name"]: check["level"] for check in done["checks"]}


def test_doctor_changes_nothing(home: Path) -> None:
    stdout_of("doctor", "--all")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    stdout_of("doctor", "--all")

    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert {p for p in before if ".sqlite-" not in p.name} == {
        p for p in after if ".sqlite-" not in p.name
    }
    assert all(before[p] == after[p] for p in before if ".sqlite" not in p.name)


def test_a_model_is_read_to_the_last_byte(home: Path) -> None:
    installed = installed_model().folder
    shutil.copytree(installed, home / "models" / installed.name)
    assert levels()["recall"] == "ok"
    assert "by meaning, with" in stdout_of("doctor", "--all")

    graph = home / "models" / installed.name / "model.onnx"
    graph.chmod(0o600)
    with graph.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))

    assert unwell(1) == {"recall": "FAIL"}


def test_a_config_without_a_model_is_reported_as_words_only(home: Path) -> None:
    (home / "config.toml").write_text('[embedding]\nprovider = "none"\n')

    assert (levels()["recall"], levels()["config"]) == ("ok", "ok")
    assert "as configured" in stdout_of("doctor", "--all")


def test_a_backend_for_texts_alone_is_no_failure(home: Path) -> None:
    (home / "config.toml").write_text('[storage]\nbackend = "memory"\n')

    assert levels()["history"] == "note"
    assert "index" not in levels()
