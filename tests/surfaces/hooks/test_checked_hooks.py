"""What a session learned of code is checked before a hook shows it to the next one."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.conftest import git
from tests.surfaces.hooks.calling import call, ending, environment, heard, log, transcript
from tests.surfaces.processes import PERDURE

RULE = "Never call `parse` in src/a.py without a limit."
CODE = "def parse(text):\n    return text.split()\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def app(home: Path) -> Path:
    app = home / "app"
    (app / "src").mkdir(parents=True)
    (app / "src" / "a.py").write_text(CODE)
    os.utime(app / "src" / "a.py", (0, 0))  # before the session
    git(app, "init", "-q", "-b", "main")
    git(app, "remote", "add", "origin", "https://github.com/ana/app.git")
    git(app, "add", "-A")
    git(app, "commit", "-q", "-m", "begin")
    return app


def learn(home: Path, app: Path, text: str = RULE) -> None:
    path = transcript(home, text, "Understood.")
    path.write_text(path.read_text().replace('"/srv/app"', f'"{app}"'))
    given = {**ending(path), "cwd": str(app)}
    assert call(home, "stop", "--foreground", payload=given) == (0, b"", "")
    assert log(home) == ""


def at_start(home: Path, app: Path) -> str:
    return str(heard(home, "session-start", payload={"cwd": str(app), "session_id": "next"}))


def at_prompt(home: Path, app: Path) -> str:
    prompt = "May I call parse in src/a.py without a limit?"
    given = {"prompt": prompt, "cwd": str(app), "session_id": "other"}
    return str(heard(home, "user-prompt-submit", payload=given))


def test_a_hook_says_that_the_code_of_a_rule_changed(home: Path, app: Path) -> None:
    learn(home, app)
    assert "changed since" not in at_start(home, app)
    (app / "src" / "a.py").write_text(CODE.replace("split", "lower"))

    assert "without a limit. (parse in src/a.py changed since 20" in at_start(home, app)
    assert "(parse in src/a.py changed since 20" in at_prompt(home, app)


def test_two_agents_in_one_worktree_are_shown_the_same(home: Path, app: Path) -> None:
    git(app, "checkout", "-q", "-b", "feature")
    git(app, "commit", "-q", "--allow-empty", "-m", "next")
    learn(home, app, "We decided to keep the words of a line in a trie.")
    git(app, "checkout", "-q", "main")
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(lambda _: at_start(home, app), range(4)))
    git(app, "checkout", "-q", "feature")

    assert ["- We decided" in each for each in shown] == [False] * 4
    assert "- We decided" in at_start(home, app)
    assert log(home) == ""


def run(home: Path, app: Path, *words: str) -> str:
    done = subprocess.run(
        [PERDURE, *words], cwd=app, env=environment(home), capture_output=True, check=True
    )
    return done.stdout.decode()


def test_commands_show_what_became_of_the_code_and_the_branch(home: Path, app: Path) -> None:
    git(app, "checkout", "-q", "-b", "feature")
    git(app, "commit", "-q", "--allow-empty", "-m", "next")
    stored = json.loads(run(home, app, "remember", RULE, "--kind", "decision", "--json"))
    (app / "src" / "a.py").write_text(CODE.replace("split", "lower"))
    [item] = json.loads(run(home, app, "briefing", "--json"))["items"]
    why = run(home, app, "why", stored["uri"])
    output = json.loads(run(home, app, "why", stored["uri"], "--json"))["statements"][0]

    assert (item["state"], output["verdict"]["state"]) == ("changed", "changed")
    assert item["note"].startswith("parse in src/a.py changed since 20")
    assert "names parse in src/a.py: changed (parse in src/a.py changed since 20" in why
    assert "stated on the branch feature, at the commit " in why
    assert output["anchors"]["branch"] == "feature"
    git(app, "commit", "-q", "-a", "-m", "change")
    git(app, "checkout", "-q", "main")
    (app / "src" / "a.py").unlink()
    git(app, "branch", "-q", "-D", "feature")
    [offer] = run(home, app, "review").splitlines()
    assert offer.endswith("(remove it? the branch feature is gone and was not merged)")
    assert "forgotten" in run(home, app, "review", "reject", offer.split()[0])
    assert run(home, app, "review") == ""
