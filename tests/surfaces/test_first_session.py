"""A user who has only the README installs, uses and uninstalls it, at a terminal."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped] # it has no types
import pytest

REPOSITORY = Path(__file__).parents[2]
PROMPT = "ready> "
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A shell at a terminal, for a user called Ana whose home is empty."""

    def __init__(self, home: Path, venv: Path) -> None:
        env = {
            "HOME": str(home),
            "USER": "ana",
            "PATH": f"{venv / 'bin'}:/usr/bin:/bin",
            "PS1": PROMPT,
            "TERM": "xterm",
            "EDITOR": "sed -i s/9:30/10:00/",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self._shell = pexpect.spawn(
            "/bin/sh", ["-i"], env=env, cwd=str(home), encoding="utf-8", timeout=120, echo=False
        )
        self._shell.setwinsize(40, 100)
        self._shell.expect_exact(PROMPT)

    def type(self, command: str, code: int = 0) -> str:
        """Type a command; return what is seen until the shell is ready again."""
        self._shell.sendline(f"{command}; echo code=$?")
        self._shell.expect(rf"code=(\d+)\r\n{re.escape(PROMPT)}")
        seen = _ESCAPES.sub("", str(self._shell.before).replace("\r\n", "\n"))
        assert int(self._shell.match.group(1)) == code, f"{command}\n{seen}"
        return seen

    def close(self) -> None:
        self._shell.close(force=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Give a terminal with an empty environment of Python, in which what we need can be found."""
    home, venv = tmp_path / "home", tmp_path / "venv"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, capture_output=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    ours = next(each for each in sys.path if each.endswith("site-packages"))
    (site / "packages.pth").write_text(f"import sys; sys.path.append({ours!r})\n")
    opened = Terminal(home, venv)
    yield opened
    opened.close()


def test_who_has_only_the_readme_gets_in_and_out_again(terminal: Terminal, tmp_path: Path) -> None:
    home = tmp_path / "home"
    install = "pip --no-cache-dir install --quiet --no-deps --no-index --no-build-isolation"
    terminal.type(f"{install} {REPOSITORY}")  # as in the README, but with what is here already
    assert "site-packages" in terminal.type("python -c 'import perdure; print(perdure.__file__)'")

    seen = terminal.type("perdure init")
    assert "opened and writable" in seen
    assert 'perdure save "I like my tea without milk"' in seen

    seen = terminal.type('perdure save "Standup is at 9:30." --category team --slug standup')
    assert "team/standup version 1" in seen
    assert "Standup is at 9:30." in terminal.type('perdure recall "When is standup?"')
    then = terminal.type("date -u +%Y-%m-%dT%H:%M:%SZ; sleep 1").strip()

    assert "version 2" in terminal.type("perdure edit team/standup")
    seen = terminal.type('perdure recall "When is standup?"')
    assert "Standup is at 10:00." in seen
    assert "9:30" not in seen

    assert "restored" in terminal.type(f"perdure rewind {then}")
    assert "1 node rewound" in terminal.type(f"perdure rewind {then} --apply")
    assert "Standup is at 9:30." in terminal.type('perdure recall "When is standup?"')
    seen = terminal.type("perdure status")
    assert re.search(r"nodes\s+1 memory", seen)

    terminal.type("pip --no-cache-dir uninstall --yes --quiet perdure && rm -r ~/.perdure")
    assert "not found" in terminal.type("perdure", code=127)
    assert [each.name for each in home.iterdir()] == []


def test_the_readme_says_each_step() -> None:
    readme = (REPOSITORY / "README.md").read_text()

    for printed in (
        "$ pip install .",
        "$ perdure init",
        "perdure save ",
        "perdure recall ",
        "`perdure edit`",
        "`perdure rewind 2026-05-01`",
        "`pip uninstall perdure`",
        "`rm -r ~/.perdure`",
    ):
        assert printed in readme, printed
