"""`status`: reports what is stored without changing it, even if a part is broken."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from perdure.app import find_history, health, open_context
from tests.surfaces.nodes import one, perdure, stdout_of

NAMES = [
    "config",
    "storage",
    "nodes",
    "edits",
    "history",
    "index",
    "outbox",
    "model",
    "llm",
    "disk",
]


@pytest.fixture
def folder(memory: Path) -> Path:
    """Give Ana two notes, a session, and an index that is one note behind; return its folder."""
    stdout_of("write", "preference/tea", "Tea, no milk.")
    stdout_of("write", "habit/walks", "Walks on Sundays.")
    stdout_of("write", "sessions/monday/notes", "It rained.")
    stdout_of("recall", "tea")
    stdout_of("write", "profile", "Ana.")
    return find_history(os.environ)


def seen(root: Path) -> dict[str, bytes]:
    """Return all files below, but for those by which SQLite's readers agree."""
    return {
        str(path): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal", "-journal"))
    }


def status(*words: str) -> tuple[int, dict[str, Any]]:
    done = perdure("status", "--json", *words)
    assert done.stderr == ""
    return done.exit_code, json.loads(done.stdout)


def test_status_of_nothing_makes_nothing(memory: Path) -> None:
    code, facts = status()

    assert code == 0
    assert list(facts) == ["ok", *NAMES]
    assert facts["nodes"]["memories"] == 0
    assert facts["index"]["built"] is False
    assert not Path(os.environ["HOME"]).exists()


def test_status_counts_what_there_is(folder: Path, memory: Path) -> None:
    code, facts = status()

    assert code == 0
    nodes = facts["nodes"]
    assert nodes["categories"] == {"habit": 1, "preference": 1, "profile": 1}
    assert (nodes["memories"], nodes["sessions"], nodes["resources"]) == (3, 1, 0)
    assert facts["storage"]["where"] == str(memory)
    assert facts["history"]["versions"] == 2 * 3 + 3  # a session has content, meta and owner
    outbox = facts["outbox"]
    assert (outbox["waiting"], outbox["dead"], outbox["since"][:2]) == (1, 0, "20")
    assert facts["disk"]["source"]["bytes"] == sum(map(len, seen(memory).values()))
    assert facts["disk"]["index"]["bytes"] > 0


def test_status_says_how_far_the_index_is_behind(folder: Path) -> None:
    _, facts = status()
    assert facts["index"]["behind"] > 0
    assert facts["index"]["places_behind"] > 0
    assert "behind, about" in stdout_of("status")

    stdout_of("recall", "tea")

    _, facts = status()
    assert (facts["index"]["behind"], facts["index"]["places_behind"]) == (0, 0)
    assert "up to date" in stdout_of("status")


def test_status_changes_nothing(folder: Path, tmp_path: Path) -> None:
    names = seen(tmp_path).keys()
    stdout_of("status")  # lets SQLite put its logs into their files
    before = seen(tmp_path)
    assert before.keys() == names

    for words in ((), ("--exact",), ("--json",)):
        stdout_of("status", *words)

    assert seen(tmp_path) == before


def test_what_is_archived_or_of_others_counts_rightly(folder: Path) -> None:
    stdout_of("archive", "habit/walks")
    stdout_of("write", "ctx://local/users/ben/memories/preference/tea", "Milk.", "--user", "ben")

    _, facts = status()

    assert facts["nodes"]["categories"] == {"preference": 2, "profile": 1}


def test_only_an_administrator_of_the_account_is_answered(folder: Path) -> None:
    done = perdure("status", "--user", "ben")

    assert done.exit_code == 1
    assert "Fix: ask an admin, or" in str(done.exception)


# ---------------------------------------------------------------- broken parts
def broken(facts: dict[str, Any]) -> set[str]:
    assert facts["ok"] is False
    return {name for name in NAMES if name in facts and facts[name]["trouble"]}


def test_a_wrong_config_is_reported_with_its_line(folder: Path) -> None:
    home = Path(os.environ["HOME"]) / ".perdure"
    (home / "config.toml").write_text("[storage]\nbackand = 'vault'\n")

    code, facts = status()

    assert code == 1
    assert broken(facts) == {"config"}
    assert "line 2" in str(facts["config"]["trouble"])


def test_a_damaged_index_is_reported_and_left_alone(folder: Path) -> None:
    (index,) = (folder / "index").rglob("*.sqlite")
    for path in (folder / "index").rglob("*.sqlite-*"):
        path.unlink()
    index.write_bytes(b"nonsense" * 1000)

    code, facts = status()

    assert (code, broken(facts)) == (1, {"index"})
    assert "Fix: " in str(facts["index"]["trouble"])
    assert index.read_bytes() == b"nonsense" * 1000
    assert facts["nodes"]["memories"] == 3
    assert "FAIL" in perdure("status").stdout


def test_a_history_that_is_damaged_leaves_the_rest(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and ".sqlite" not in path.name:
            path.write_bytes(b"x" * path.stat().st_size)

    code, facts = status()

    assert code == 1
    assert {"history", "index"} <= broken(facts)
    assert facts["nodes"]["memories"] == 3
    for name in broken(facts):
        assert "Fix: " in str(facts[name]["trouble"])


def test_a_vault_that_is_gone_leaves_the_rest(folder: Path, memory: Path) -> None:
    shutil.rmtree(memory)

    code, facts = status()

    assert (code, broken(facts)) == (1, {"storage", "nodes", "edits"})
    assert facts["history"]["versions"] == 9


def test_a_model_that_is_unavailable_is_reported(folder: Path) -> None:
    home = Path(os.environ["HOME"]) / ".perdure"
    (home / "config.toml").write_text('[embedding]\nprovider = "minilm"\n')

    _, facts = status()

    assert broken(facts) == {"index", "model"}
    assert "perdure models install" in str(facts["model"]["trouble"])


def test_dead_letters_are_counted(folder: Path) -> None:
    with open_context(os.environ) as context:
        uri, event = context.outbox.list_pending("local")[0]
        context.outbox.move_to_dlq(event, uri)

    _, facts = status()

    assert facts["outbox"] == {"waiting": 1, "dead": 1, "since": None, "trouble": None}
    assert "perdure outbox dead" in perdure("status").stderr


def test_the_budget_is_shown_if_there_is_one(folder: Path) -> None:
    home = Path(os.environ["HOME"]) / ".perdure"
    (home / "config.toml").write_text(
        '[llm]\nprovider = "openai"\nmodel = "m"\ntokens_per_day = 1000\n'
    )

    assert one("status")["llm"] == {
        "provider": "openai",
        "model": "m",
        "tokens_today": 0,
        "tokens_per_day": 1000,
        "trouble": None,
    }
    assert "0 of 1,000 tokens today" in stdout_of("status")


# ---------------------------------------------------------------- bounds
def test_of_very_many_files_it_says_how_much_the_first_take(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = status("--exact")[1]["disk"]["source"]
    monkeypatch.setattr(health, "_FILE_LIMIT", 3)

    part = status()[1]["disk"]["source"]

    assert (whole["whole"], part["whole"]) == (True, False)
    assert 0 < part["bytes"] < whole["bytes"]
    assert "more than" in stdout_of("status")
    assert status("--exact")[1]["disk"]["source"] == whole


def test_resources_and_skills_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("resources/a", "resources/b", "skills/bake"):
        stdout_of("write", name, "Text.")
    nodes = status()[1]["nodes"]
    assert (nodes["resources"], nodes["more_resources"]) == (2, False)
    assert nodes["categories"]["skills"] == 1

    monkeypatch.setattr(health, "_RESOURCE_LIMIT", 1)
    nodes = status()[1]["nodes"]
    assert (nodes["resources"], nodes["more_resources"]) == (1, True)
    assert "more than 1 resource" in stdout_of("status")
