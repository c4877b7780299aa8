"""A vault under git: commits of others are edits, and the log shows them beside versions."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.vault.test_hostile import Home

_WHEN = "2026-03-02T10:00:00+00:00"


def git(folder: Path, *words: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_AUTHOR_DATE": _WHEN}
    names = {"GIT_AUTHOR_NAME": "Eve", "GIT_AUTHOR_EMAIL": "eve@example.org"}
    names |= {"GIT_COMMITTER_NAME": "Eve", "GIT_COMMITTER_EMAIL": "eve@example.org"}
    subprocess.run(
        ["git", "-C", str(folder), *words],  # noqa: S607 - as above
        env={**environ, **names},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home whose vault is a folder in a repository, with one note in two commits."""
    vault = tmp_path / "repository" / "Notes"
    vault.mkdir(parents=True)
    git(tmp_path, "init", "-q", "repository")
    note = vault / "My plan.md"
    created = Home(tmp_path / "home", vault)
    for text, subject in (("First.\n", "Begin"), ("Second.\n", "Go on"), ("First.\n", "Go back")):
        note.write_text(text)
        git(vault, "add", "-A")
        git(vault, "commit", "-qm", subject)
        if text == "First.\n" and subject == "Begin":
            created.output("init", "--vault", str(vault))
        created.output("recall", "plan")
    return created


def beside(home: Home, key: str) -> list[str | None]:
    lines = home.output("history", "log", key, "--git", "--json").splitlines()
    found = [json.loads(line)["git"] for line in lines]
    assert all(each is None or each["time"] == "2026-03-02T10:00:00.000Z" for each in found)
    return [each and each["subject"] for each in found]


def test_each_version_has_the_commit_with_its_bytes(home: Home) -> None:
    assert beside(home, "My plan.md") == ["Begin", "Go on", "Go back"]


def test_a_version_that_nobody_committed_has_no_commit(home: Home) -> None:
    (home.vault / "My plan.md").write_text("Third.\n")

    assert beside(home, "My plan.md") == ["Begin", "Go on", "Go back", None]
    table = home.output("history", "log", "My plan.md", "--git")
    assert " 2026-03-02 Go on" in table


def test_a_memory_is_found_in_the_commit_of_its_file(home: Home) -> None:
    home.output("save", "Prefers tea.", "--category", "preference", "--slug", "tea")
    git(home.vault, "add", "-A")
    git(home.vault, "commit", "-qm", "Tea\x1b[31m")

    assert beside(home, "Perdure/Preferences/Tea.md") == ["Tea\x1b[31m"]
    assert "\x1b" not in home.output("history", "log", "Perdure/Preferences/Tea.md", "--git")


def test_a_commit_of_another_program_is_an_edit(home: Home) -> None:
    git(home.vault, "checkout", "-q", "HEAD~1")

    assert home.found("Second") == 1
    assert beside(home, "My plan.md") == ["Begin", "Go on", "Begin", "Go on"]


@pytest.mark.parametrize("way", ["no git", "no repository", "no key"])
def test_what_git_can_not_answer_is_refused_with_a_fix(
    home: Home, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "no git":
        monkeypatch.setenv("PATH", "/nonexistent")
    elif way == "no repository":
        (home.vault.parent / ".git").rename(home.vault.parent / "gone")
    key = [] if way == "no key" else ["My plan.md"]

    done = home.run("history", "log", *key, "--git")

    assert done.exit_code != 0
    assert "Fix:" in f"{done.exception}{done.stderr}"
