"""What every command keeps to: help, JSON, exit codes, errors with a fix, no colours for programs.

Each is looked for in the tree, so that a command that comes later is looked at too.
"""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perdure.errors import PerdureError
from perdure.surfaces import cli as cli_module
from perdure.surfaces.cli import cli
from perdure.surfaces.cli.options import Caller
from tests.surfaces.commands import COMMANDS, Found
from tests.surfaces.terminals import PERDURE, at_a_terminal, environment, perdure

WITHOUT_JSON = {
    "statusline": "an agent shows the line as it is",
    "watch": "it tells as it goes; programs follow `history log --after N --json`",
    "completion": "its answer is a script",
    "mcp": "it speaks a protocol of its own",
    "install": "its answer is a diff of files that are not ours",
}
RUNS_ON = {"watch", "worker", "init", "mcp"}
"""They run until a signal, take long, or set up the home that other commands are tried in."""
HOSTILE = [
    "",
    " ",
    "-",
    "--",
    "\n",
    "../../../etc/passwd",
    "/",
    "ctx://",
    "ctx://local/users/../../x",
    "ctx://other/users/ana/memories/x/y",
    "a" * 5000,
    "\x1b[31mred\x1b]0;title\x07",
    "\udcff",
    "%00",
    "%zz",
    "\u202egpj",
    "99999999999999999999999",
    "-1",
    "nan",
    "1e400",
    "٣",
    "2026-13-45",
    "{}",
    "a=b",
    "$(touch hacked)",
]
ESCAPE = "\x1b"
EACH = pytest.mark.parametrize("found", COMMANDS, ids=lambda found: found.name)


@pytest.fixture(scope="module")
def ana(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home in which there is a little of everything."""
    home = tmp_path_factory.mktemp("ana")
    assert perdure(home, "write", "preference/tea", "Tea.\nNo milk.").returncode == 0
    written = perdure(home, "write", "preference/tea", "Tea.\nMilk.", "--version", "1")
    assert written.returncode == 0, written.stderr
    return home


@pytest.fixture
def became_ana(ana: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in list(os.environ):
        if name.startswith(("PERDURE_", "MEMORY_")):
            monkeypatch.delenv(name)
    for name, value in environment(ana, EDITOR="true").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return ana


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, input=b"")


# ---------------------------------------------------------------- help
@EACH
def test_help_says_what_a_command_does_and_what_each_option_is(found: Found) -> None:
    done = run(*found.words, "--help")

    assert done.exit_code == 0
    assert found.command.help is not None
    assert re.search(r"[.:]\s", f"{found.command.help}\n")
    for option in found.options:
        assert option.help, option.name
    assert ESCAPE not in done.output


@EACH
def test_a_group_lists_a_command_with_its_own_help(found: Found) -> None:
    if len(found.words) > 1 and found.words[0] != "history":
        return  # only two groups list their commands before these are imported
    above = run(*found.words[:-1], "--help").output
    printed = re.sub(r"\s+", " ", above)
    first = re.sub(r"\s+", " ", (found.command.help or "")).partition(". ")[0].rstrip(".")
    assert found.words[-1] in printed
    assert first in printed


# ---------------------------------------------------------------- JSON
@EACH
def test_a_command_that_answers_speaks_json(found: Found) -> None:
    assert found.has("--json") != (found.name in WITHOUT_JSON)


def test_who_speaks_no_json_is_there_and_says_why() -> None:
    assert set(WITHOUT_JSON) <= {found.name for found in COMMANDS}
    assert all(WITHOUT_JSON.values())


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("doctor",),
        ("list",),
        ("tree",),
        ("recall", "tea"),
        ("read", "preference/tea"),
        ("relate", "preference/tea"),
        ("why", "preference/tea"),
        ("repair",),
        ("cost",),
        ("index", "status"),
        ("index", "verify"),
        ("index", "prune"),
        ("index", "rebuild"),
        ("worker", "--once"),
        ("outbox", "list"),
        ("account", "list"),
        ("models", "list"),
        ("history", "log"),
        ("history", "verify"),
    ],
    ids=" ".join,
)
def test_with_json_all_of_stdout_is_json(became_ana: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--json")

    assert done.exception is None or isinstance(done.exception, SystemExit)
    for line in done.stdout.splitlines():
        assert isinstance(json.loads(line), dict)


# ---------------------------------------------------------------- errors
@EACH
def test_an_option_that_nobody_knows_is_refused_with_the_fix(found: Found) -> None:
    done = run(*found.words, "--no-such-option")

    assert done.exit_code == 2
    assert "Fix: " in done.stderr.splitlines()[-1]


@EACH
def test_an_argument_that_is_missing_is_refused_with_the_fix(found: Found) -> None:
    if not found.is_required:
        return
    done = run(*found.words)

    assert done.exit_code == 2
    assert "Fix: " in done.stderr.splitlines()[-1]


def test_a_command_that_nobody_knows_is_refused_with_the_fix() -> None:
    for words in (("statsu",), ("history", "lgo"), ("--nonsense",), ("\x1b[31m",)):
        done = run(*words)
        assert done.exit_code == 2
        assert "Fix: " in done.stderr.splitlines()[-1]
        assert ESCAPE not in done.stderr


@pytest.mark.parametrize("words", [(), ("history",), ("outbox",)], ids=str)
def test_without_a_command_the_help_is_shown(words: tuple[str, ...]) -> None:
    done = run(*words)

    assert done.exit_code == 2
    assert done.stderr == run(*words, "--help").stdout


@pytest.mark.search
@EACH
def test_hostile_arguments_are_refused_or_done_and_never_a_traceback(
    became_ana: Path, found: Found
) -> None:
    if found.name in RUNS_ON:
        return
    for word in HOSTILE:
        if found.arguments or word != "--":  # which says that no argument follows
            words = [word] * max(found.is_required, 1)
            check_end(run(*found.words, *words), found.name, word)


@pytest.mark.search
@EACH
def test_hostile_options_are_refused_or_done_and_never_a_traceback(
    became_ana: Path, found: Found
) -> None:
    if found.name in RUNS_ON:
        return
    arguments = ["preference/tea"] * found.is_required
    for option in found.options:
        is_shared = option.name in Caller.__annotations__ and found.name != "list"
        if not option.is_flag and not is_shared:
            for word in HOSTILE[::3]:
                words = (*found.words, *arguments, option.opts[-1], word)
                check_end(run(*words), option.name or "", word)


def check_end(done: Result, *what: str) -> None:
    error = done.exception
    assert error is None or isinstance(error, PerdureError | SystemExit), (what, repr(error))
    if isinstance(error, PerdureError):
        assert "Fix: " in str(error), (what, str(error))
    if done.exit_code == 2:
        assert "Fix: " in done.stderr, (what, done.stderr)
    assert ESCAPE not in done.stderr, what
    assert not Path("hacked").exists(), what


# ---------------------------------------------------------------- ends
def test_who_is_interrupted_ends_with_130_and_no_traceback(ana: Path) -> None:
    process = subprocess.Popen(
        [PERDURE, "save", "-"],
        env=environment(ana),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"half")
    process.stdin.flush()
    stat = Path(f"/proc/{process.pid}/wchan")
    until = time.monotonic() + 5  # where the system does not say for what a process waits
    while "pipe" not in stat.read_text() and process.poll() is None and time.monotonic() < until:
        pass  # until it waits for the rest
    process.send_signal(signal.SIGINT)
    _, complained = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in complained


@pytest.mark.parametrize("words", [("tree", "/"), ("history", "log", "--json"), ("--help",)])
def test_a_closed_pipe_ends_quietly(ana: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [PERDURE, *words],
        env=environment(ana),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_reported(ana: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PERDURE, "status"],
            env=environment(ana),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert b"Fix: check where it goes" in done.stderr


def test_who_says_no_has_done_nothing_and_ends_with_1(ana: Path) -> None:
    code, seen = at_a_terminal(ana, "delete", "preference/tea", typed="n\n")

    assert code == 1
    assert "nothing was done" in seen
    assert perdure(ana, "read", "preference/tea").returncode == 0


def test_the_table_of_exit_codes_is_complete() -> None:
    page = Path(cli_module.__file__).parents[4] / "docs" / "reference" / "command-line.md"
    section = page.read_text().partition("## Exit codes")[2].partition("\n## ")[0]

    assert re.findall(r"^\| (\d+) \|", section, re.MULTILINE) == ["0", "1", "2", "130", "141"]


# ---------------------------------------------------------------- terminals
COLOURED = [("doctor", "--all"), ("tree",), ("history", "diff", "KEY"), ("recall", "tea")]
KEY = "accounts/local/users/ana/memories/preference/tea/content.md"


def given(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(KEY if word == "KEY" else word for word in words)


@pytest.mark.parametrize("words", COLOURED, ids=lambda words: words[0])
def test_colours_are_for_terminals_that_want_them(ana: Path, words: tuple[str, ...]) -> None:
    _, coloured = at_a_terminal(ana, *given(words))
    _, plain = at_a_terminal(ana, *given(words), NO_COLOR="1")

    assert ESCAPE in coloured
    assert ESCAPE not in plain
    assert ESCAPE not in perdure(ana, *given(words)).stdout


def test_a_bar_moves_only_where_it_may(ana: Path) -> None:
    assert ESCAPE in at_a_terminal(ana, "index", "rebuild")[1]
    assert ESCAPE not in at_a_terminal(ana, "index", "rebuild", NO_COLOR="1")[1]
    done = perdure(ana, "index", "rebuild")
    assert ESCAPE not in done.stdout + done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["tree", "doctor", "list /", "save", "save x"])
def test_what_is_closed_is_no_traceback(ana: Path, words: str, closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{PERDURE} {words} {closed}"],
        env=environment(ana),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert b"Traceback" not in done.stdout + done.stderr
    assert done.returncode in {0, 1, 2}
