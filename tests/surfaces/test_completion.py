"""Completion, in a real bash and as the other shells ask for it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from perdure.surfaces.cli import SECTIONS, cli
from perdure.surfaces.cli.completion import SHELLS
from tests.surfaces.terminals import PERDURE, environment, perdure

TYPING = """
eval "$(perdure completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_perdure_completion perdure
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Does what bash does when Tab is pressed after the last of these words."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("preference/tea", "preference/milk", "habit/walks", "skills/bake"):
        assert perdure(home, "write", name, "Text.").returncode == 0
    assert perdure(home, "write", "habit/old", "Text.").returncode == 0
    assert perdure(home, "archive", "habit/old").returncode == 0
    for session in ("a b;$(touch x)", "c*"):
        assert perdure(home, "write", f"sessions/{session}/n", "Text.").returncode == 0
    return home


def typed(home: Path, *words: str) -> list[str]:
    bash = shutil.which("bash")
    assert bash is not None
    path = f"{Path(PERDURE).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", TYPING, "bash", "perdure", *words],
        env={**environment(home), "PATH": path},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def test_bash_completes_commands(home: Path) -> None:
    assert typed(home, "rec") == ["recall"]
    assert set(typed(home, "")) == {name for part in SECTIONS.values() for name in part}
    assert typed(home, "outbox", "re") == ["requeue"]


def test_bash_completes_options(home: Path) -> None:
    assert typed(home, "cost", "--by", "d") == ["day"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("history", "ver"), ["verify"]),
        (("doctor", "--re"), ["--requires"]),
        (("read", "pref"), ["preference/milk", "preference/tea"]),
        (("read", ""), ["habit/", "preference/"]),
        (("read", "preference/t"), ["preference/tea"]),
        (("read", "skills/"), ["skills/bake"]),
        (("edit", "nothing"), []),
        (("relate", "preference/tea", "ha"), ["habit/walks"]),
        (("why", "habit/"), ["habit/walks"]),
        (("unarchive", "habit/"), ["habit/old"]),
        (("list", "pre"), []),
        (("list", ""), ["habit/", "preference/"]),
        (("read", "../../"), []),
        (("read", "ctx://other/"), []),
    ],
)
def test_names_of_nodes_are_completed(
    home: Path, words: tuple[str, ...], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    *before, last = words
    asked = ShellComplete(cli, {}, "perdure", "_PERDURE_COMPLETE")

    assert [item.value for item in asked.get_completions(before, last)] == found


def test_bash_completes_names_of_nodes(home: Path) -> None:
    assert typed(home, "read", "pref") == ["preference/milk", "preference/tea"]
    assert typed(home, "unarchive", "habit/") == ["habit/old"]


def test_no_name_can_run_anything(home: Path) -> None:
    assert typed(home, "read", "sessions/") == []
    assert not (home / "x").exists()


def test_completing_without_a_memory_makes_none_and_says_nothing(tmp_path: Path) -> None:
    assert typed(tmp_path, "read", "pref") == []
    assert list(tmp_path.iterdir()) == []

    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure" / "config.toml").write_text("[storage")
    assert typed(tmp_path, "read", "pref") == []


@pytest.mark.parametrize(
    ("shell", "line", "cword"),
    [
        ("zsh_complete", "perdure read preference/t", "2"),
        ("fish_complete", "perdure read preference/t", "preference/t"),
    ],
)
def test_other_shells_get_the_same_names(home: Path, shell: str, line: str, cword: str) -> None:
    done = perdure(home, _PERDURE_COMPLETE=shell, COMP_WORDS=line, COMP_CWORD=cword)

    assert "preference/tea" in done.stdout
    assert "preference/milk" not in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_names_the_program_and_the_variable(home: Path, shell: str) -> None:
    done = perdure(home, "completion", shell)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"_PERDURE_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_that_nobody_knows_is_refused(home: Path) -> None:
    assert perdure(home, "completion", "tcsh").returncode == 2
