"""Every code block of the documentation is run, and a wrong one fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sybil.example import SybilFailure

from tests.docs.blocks import CONFIG, LANGUAGES, REPOSITORY, documentation, user_of_our_own

DOCUMENTS = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "CHANGELOG.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
NOT_COLLECTED = ["CONTRIBUTING.md"]
"""Documents with blocks that lie outside pytest's testpaths, and so are run from here."""


def shown(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def languages(text: str) -> list[str]:
    """Return the language of each fenced block, by the plainest means: line by line."""
    fences = re.findall(r"^[ >]*(?:```+|~~~+)(.*)$", text, re.MULTILINE)
    assert len(fences) % 2 == 0, "a fence is not closed"
    assert not any(closing.strip() for closing in fences[1::2]), "a fence is not closed"
    return [info.split()[0] if info.split() else "" for info in fences[::2]]


def run(text: str, place: Path) -> None:
    """Run the blocks of a document with this text."""
    document = place / "page.md"
    document.write_text(text, encoding="utf-8")
    with user_of_our_own(place):
        for example in documentation(place).parse(document).examples():
            example.evaluate()


def block(info: str, *lines: str) -> str:
    return "\n".join((f"```{info}", *lines, "```", ""))


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_block_is_in_a_language_that_is_run_or_is_text(document: Path) -> None:
    assert set(languages(document.read_text(encoding="utf-8"))) <= {*LANGUAGES, "text"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_no_block_is_overlooked(document: Path) -> None:
    found = [example.parsed.language for example in documentation(REPOSITORY).parse(document)]
    written = languages(document.read_text(encoding="utf-8"))

    assert found == [language for language in written if language != "text"]


@pytest.mark.parametrize("name", NOT_COLLECTED)
def test_blocks_outside_the_collected_documents_run_too(name: str, tmp_path: Path) -> None:
    run((REPOSITORY / name).read_text(encoding="utf-8"), tmp_path)


RIGHT = {
    "python": block("python", "one = 1", "assert one"),
    "one namespace": block("python", "one = 1") + block("pycon", ">>> one", "1"),
    "session": block("pycon", ">>> print('a b c')", "a ... c"),
    "refusal in a session": block(
        "pycon", ">>> int('x')", "Traceback (most recent call last):", "  ...", "ValueError: ..."
    ),
    "config": block(f'toml title="{CONFIG}"', "[storage]", 'backend = "memory"'),
    "vault": block(
        f'toml title="{CONFIG}"', "[storage]", 'backend = "vault"', 'vault.path = "~/Notes"'
    ),
    "wrong config": block(f'toml title="{CONFIG}" wrong', "[storage]", 'backend = "memroy"'),
    "other file": block('toml title="other.toml"', "a = 1") + block("sh", "cat other.toml"),
    "answer": block("console", "$ perdure --version", "perdure, version ..."),
    "two answers": block("console", "$ mkdir a", "$ ls", "a"),
    "home": block("console", "$ perdure doctor", "ok ... at /home/ana/.perdure/memory", "..."),
    "refusal": block("console wrong", "$ perdure doctor --requires sync", "FAIL ... sync..."),
    "make": block("sh", "make test", "make demo"),
    "setting": block("sh", "PERDURE_HOME=~/elsewhere perdure doctor"),
    "indented": "1. First\n\n   ```python\n   if True:\n       one = 1\n   ```\n",
    "text": block("text", "}{ is no language"),
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_right_block_passes(text: str, tmp_path: Path) -> None:
    run(text, tmp_path)


WRONG: dict[str, tuple[str, type[BaseException], str]] = {
    "python that raises": (block("python", "1 / 0"), ZeroDivisionError, "division"),
    "python that asserts": (block("python", "assert 0, 'no'"), AssertionError, "no"),
    "python that is none": (block("python", "one ="), SyntaxError, "syntax"),
    "session": (block("pycon", ">>> 1 + 1", "3"), SybilFailure, "Expected"),
    "session without a question": (block("pycon", "3"), SybilFailure, ">>>"),
    "config": (
        block(f'toml title="{CONFIG}"', "[storage]", 'backend = "memroy"'),
        SybilFailure,
        "no backend is called 'memroy'",
    ),
    "option of the config": (
        block(f'toml title="{CONFIG}"', "[storage.device-local]", 'rot = "~/x"'),
        SybilFailure,
        "'rot'",
    ),
    "config that is not wrong": (
        block(f'toml title="{CONFIG}" wrong', "[storage]", 'backend = "memory"'),
        SybilFailure,
        "ended with 0",
    ),
    "file without a name": (block("toml", "a = 1"), SybilFailure, "which file"),
    "file that is no toml": (block('toml title="a.toml"', "a ="), ValueError, "line 1"),
    "file outside": (block('toml title="../a.toml"', "a = 1"), ValueError, "can't be"),
    "file in the real root": (block('python title="/a.py"', "a = 1"), ValueError, "can't be"),
    "vault outside": (
        block(f'toml title="{CONFIG}"', "[storage.vault]", 'path = "/Notes"'),
        ValueError,
        "below ~",
    ),
    "answer": (block("console", "$ perdure --version", "2"), SybilFailure, "expected to say"),
    "answer too short": (block("console", "$ perdure doctor", "ok"), SybilFailure, "but said"),
    "answer too long": (block("console", "$ mkdir a", "made"), SybilFailure, "expected to say"),
    "second answer": (block("console", "$ mkdir a", "$ ls", "b"), SybilFailure, "'ls'"),
    "exit code": (block("console", "$ perdure nonsense", "..."), SybilFailure, "ended with 2"),
    "refusal that does not come": (
        block("console wrong", "$ perdure --version", "..."),
        SybilFailure,
        "ended with 0",
    ),
    "console without a command": (block("console", "perdure"), SybilFailure, "behind"),
    "no command at all": (block("sh"), SybilFailure, "no command"),
    "command that fails": (block("sh", "perdure nonsense"), SybilFailure, "ended with 2"),
    "second command": (block("sh", "mkdir a", "mkdir a"), SybilFailure, "ended with 1"),
    "target that is not there": (block("sh", "make nonsense"), SybilFailure, "nonsense"),
    "command of a stranger": (block("sh", "curl example.org"), ValueError, "may not run"),
    "language": (block("pythno", "1"), SybilFailure, "nobody runs 'pythno'"),
    "no language": (block("", "1"), SybilFailure, "nobody runs ''"),
    "word": (block("python wrong", "1"), SybilFailure, "understand"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_wrong_block_fails(case: tuple[str, type[BaseException], str], tmp_path: Path) -> None:
    text, error, told = case

    with pytest.raises(error, match=re.escape(told)):
        run(text, tmp_path)


@pytest.mark.parametrize("text", ["```python\n1\n", "```\n```python\n1\n```\n"])
def test_a_fence_that_is_not_closed_is_noticed(text: str) -> None:
    with pytest.raises(AssertionError, match="not closed"):
        languages(text)


def test_the_blocks_see_nothing_of_the_real_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_HOME", "/real")
    monkeypatch.setenv("MEMORY_VAULT_PATH", "/real")
    before, folder = dict(os.environ), Path.cwd()
    lines = (
        "import os, pathlib",
        "assert not {'PERDURE_HOME', 'MEMORY_VAULT_PATH', 'USER'} & set(os.environ)",
        "assert list(pathlib.Path.home().iterdir()) == list(pathlib.Path().iterdir()) == []",
        f"assert pathlib.Path({str(tmp_path)!r}) in pathlib.Path.home().parents",
    )

    run(block("python", *lines), tmp_path)

    assert (dict(os.environ), Path.cwd()) == (before, folder)


@pytest.mark.parametrize(("text", "outcome"), [("assert True", "passed"), ("1 / 0", "failed")])
def test_pytest_runs_the_blocks_of_a_document(text: str, outcome: str, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "conftest.py", tmp_path)
    (tmp_path / "page.md").write_text(block("python", text), encoding="utf-8")

    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "page.md"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert f"1 {outcome} in" in done.stdout
    assert (done.returncode == 0) == (outcome == "passed")
