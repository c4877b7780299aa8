"""The verbs for nodes as a program of its own: at a terminal, in a pipe, several at once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.terminals import PERDURE, at_a_terminal, environment, perdure

pytestmark = pytest.mark.usefixtures("agfs")

HEAVY = (
    "sqlite3 yaml cbor2 google_crc32c cryptography perdure.app perdure.artifacts "
    "perdure.context perdure.engine perdure.model perdure.storage"
)
HOSTILE = "A lamp \x1b[2J\x1b]0;pwned\x07 \u202e \x9b"
TABS = "ctx://local/users/ana/memories/preference/indentation"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of a user who has one memory."""
    done = perdure(tmp_path, "write", "preference/indentation", "Prefers tabs.")
    assert done.returncode == 0, done.stderr
    return tmp_path


# ---------------------------------------------------------------- pipes
def test_a_content_goes_through_pipes_unchanged(home: Path) -> None:
    text = "# Café\r\n\r\nno end"
    command = [PERDURE, "write", "a/b"]
    subprocess.run(command, env=environment(home), input=text.encode(), check=True, timeout=60)

    command = [PERDURE, "read", "a/b"]
    done = subprocess.run(
        command, env=environment(home), capture_output=True, check=True, timeout=60
    )
    assert done.stdout == text.encode()


def test_a_refusal_is_one_line_with_a_fix(home: Path) -> None:
    for words in (
        ("read", "preference/x"),
        ("read", "ctx://no/such/place"),
        ("write", "preference/indentation", "x"),
        ("delete", "preference/indentation"),
        ("edit", "preference/indentation"),
        ("list", "nowhere"),
        ("account", "delete", "nobody", "--yes"),
    ):
        done = perdure(home, *words)

        assert (done.returncode, done.stdout) == (1, ""), words
        assert done.stderr.startswith("perdure: ")
        assert " Fix: " in done.stderr
        assert done.stderr.count("\n") == 1


def test_bytes_that_are_no_text_are_refused_without_a_traceback(home: Path) -> None:
    for words in (
        (b"read", b"resources/\xff\x1b[31m"),
        (b"write", b"resources/a", b"\xff"),
        (b"write", b"a/b", b"x", b"--meta", b"a=\xff"),
        (b"write", b"a/b", b"x", b"--reason", b"\xff"),
        (b"user", b"create", b"\xff"),
        (b"list", b"--user", b"\x1b\xff"),
        (b"relate", b"preference/indentation", b"\xff"),
    ):
        done = perdure(home, *words)

        assert done.returncode == 1, words
        assert done.stderr.startswith("perdure: ")
        assert "\x1b" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_closed_reader_is_not_an_error(home: Path) -> None:
    for words in (("read", "preference/indentation"), ("tree", "/"), ("list", "--json")):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                [PERDURE, *words],
                env=environment(home),
                stdout=writer,
                stderr=subprocess.PIPE,
                check=False,
                timeout=60,
            )
        finally:
            os.close(writer)

        assert (done.returncode, done.stderr) == (141, b""), words


def test_an_answer_that_can_not_be_written_is_an_error(home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PERDURE, "read", "preference/indentation"],
            env=environment(home),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )

    assert done.returncode == 1
    assert "the system reported 'No space left on device'." in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_interrupt_leaves_no_traceback_and_no_change(home: Path) -> None:
    with subprocess.Popen(
        [PERDURE, "write", "preference/indentation", "--replace"],
        env=environment(home),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdin is not None
        run.stdin.write("x" * (1 << 18))  # more than a pipe holds: when this returns, it is read
        run.stdin.flush()
        run.send_signal(signal.SIGINT)
        _, stdout_of = run.communicate(timeout=60)

    assert run.returncode == 130
    assert "Traceback" not in stdout_of
    assert perdure(home, "read", "preference/indentation").stdout == "Prefers tabs."


# ---------------------------------------------------------------- several at once
def test_of_two_who_write_the_next_version_one_is_refused(home: Path) -> None:
    def write(text: str) -> subprocess.Popen[str]:
        command = [PERDURE, "write", "preference/indentation", text, "--version", "1"]
        return subprocess.Popen(
            command,
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    runs = [write("Prefers spaces."), write("Prefers both.")]
    stdout_of = [run.communicate(timeout=60) for run in runs]

    assert sorted(run.returncode for run in runs) == [0, 1]
    assert sorted(out for out, _ in stdout_of) == ["", f"{TABS} version 2\n"]
    assert any("is not at version 1 but at version 2" in err for _, err in stdout_of)


def test_all_who_replace_are_heard_one_after_the_other(home: Path) -> None:
    runs = [
        subprocess.Popen(
            [PERDURE, "write", "preference/indentation", f"Text {n}.", "--replace", "--json"],
            env=environment(home),
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    versions = [json.loads(run.communicate(timeout=60)[0])["version"] for run in runs]

    assert sorted(versions) == [2, 3, 4, 5]


# ---------------------------------------------------------------- terminals
class TestAtATerminal:
    def test_a_content_ends_its_line(self, home: Path) -> None:
        _, seen = at_a_terminal(home, "read", "preference/indentation")

        assert seen == "Prefers tabs.\n"

    def test_long_lines_are_cut_to_the_terminal(self, home: Path) -> None:
        perdure(home, "write", "a/b", "x", "--abstract", "long " * 39)
        for words in (("list", "a"), ("tree",)):
            _, seen = at_a_terminal(home, *words, NO_COLOR="1")
            assert any(line.endswith("…") for line in seen.splitlines())
            assert max(map(len, seen.splitlines())) <= 80
            assert "…" not in perdure(home, *words).stdout

    def test_colours_are_for_terminals_that_want_them(self, home: Path) -> None:
        for words in (("tree",), ("read", "preference/indentation", "--all")):
            assert "\x1b[1m" in at_a_terminal(home, *words)[1]
            assert "\x1b" not in at_a_terminal(home, *words, NO_COLOR="1")[1]
            assert "\x1b" not in perdure(home, *words).stdout

    def test_a_text_does_nothing_to_it(self, home: Path) -> None:
        for text in ("The red lamp.\n", f"{HOSTILE}\n"):
            perdure(home, "write", "a/lamp", "--replace", typed=text)
        file = "accounts/local/users/ana/memories/a/lamp/content.md"

        for words in (
            ("read", "a/lamp"),
            ("read", "a/lamp", "--all"),
            ("recall", "lamp"),
            ("recall", "lamp", "--budget", "600"),
            ("history", "show", file),
            ("history", "diff", file),
            ("history", "blame", file),
        ):
            _, seen = at_a_terminal(home, *words, NO_COLOR="1")
            hidden = "--budget" in words  # what is for a prompt has nothing in it that nobody sees
            assert (r"lamp \x1b[2J\x1b]0;pwned\x07 \u202e \x9b" in seen) is not hidden
            assert "lamp" in seen
            assert not set(seen) & set("\x1b\x07\u202e\x9b")

    def test_elsewhere_a_text_is_what_it_is(self, home: Path) -> None:
        perdure(home, "write", "a/lamp", typed=HOSTILE)
        file = "accounts/local/users/ana/memories/a/lamp/content.md"

        assert perdure(home, "read", "a/lamp").stdout == HOSTILE
        assert perdure(home, "history", "show", file).stdout.endswith(HOSTILE)

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
    def test_delete_asks_first(self, home: Path, answer: str, code: int) -> None:
        ended, seen = at_a_terminal(home, "delete", "preference/indentation", typed=answer)

        assert ended == code
        assert f"this deletes {TABS}: Prefers tabs.\nContinue? [y/N]" in seen
        assert perdure(home, "read", "preference/indentation").returncode == 1 - code

    @pytest.mark.parametrize("words", ["user delete ana", "account delete local"])
    def test_so_do_all_that_remove_much(self, home: Path, words: str) -> None:
        ended, seen = at_a_terminal(home, *words.split(), typed="n\n")

        assert ended == 1
        assert "and everything in it\nContinue? [y/N]" in seen
        assert perdure(home, "read", "preference/indentation").returncode == 0

    def test_a_text_that_is_forgotten_is_not_waited_for(self, home: Path) -> None:
        ended, seen = at_a_terminal(home, "write", "a/b")

        assert ended == 2
        assert "there is no text. Fix: " in seen


# ---------------------------------------------------------------- starting up
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("--help", ""),
        ("--version", ""),
        ("history --help", ""),
        ("nonsense", ""),
        ("completion bash", ""),
    ],
)
def test_starting_up_imports_no_more_than_it_needs(
    tmp_path: Path, words: str, allowed: str
) -> None:
    script = (
        "import sys\nfrom perdure.surfaces.cli import cli\n"
        "try: cli(sys.argv[1:])\nexcept SystemExit: pass\n"
        f"print('heavy:', *set({HEAVY.split()!r}) & set(sys.modules) - set({allowed.split()!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split()],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_reading_does_not_import_yaml(home: Path) -> None:
    script = (
        "import sys\nfrom perdure.surfaces.cli import cli\n"
        "try: cli(['read', 'preference/indentation', '--json'])\nexcept SystemExit: pass\n"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "False"
