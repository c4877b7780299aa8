"""`perdure history` as a program of its own: at a terminal, in a pipe, interrupted."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("agfs")

PERDURE = str(Path(sys.executable).with_name("perdure"))
HEAVY = "sqlite3 cbor2 google_crc32c cryptography perdure.artifacts perdure.storage.text_history"


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "PERDURE_LAYOUT": "agfs", **more}


def perdure(
    home: Path, *words: str, typed: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PERDURE, "history", *words],
        env=environment(home, **environ),
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def at_a_terminal(home: Path, *words: str, typed: str = "", **environ: str) -> tuple[int, str]:
    """Run it with a terminal for everything; return the exit code and what was seen."""
    ours, theirs = pty.openpty()
    environ = environment(home, TERM="xterm", **environ)
    command = [PERDURE, "history", *words]
    with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = b""
        try:
            while data := os.read(ours, 4096):
                seen += data
        except OSError:  # the other end was closed
            pass
        os.close(ours)
    return run.returncode, seen.decode().replace("\r\n", "\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of a user who has written two versions of a text."""
    write(tmp_path, "one\n")
    perdure(tmp_path, "log")
    write(tmp_path, "two\n")
    perdure(tmp_path, "log")
    return tmp_path


def write(home: Path, text: str) -> Path:
    file = home / ".perdure" / "memory" / "note.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_refusal_is_one_line_with_a_fix(home: Path) -> None:
    done = perdure(home, "show", "note.md", "--version", "9")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("perdure: 'note.md' has no version 9. Fix: ")
    assert done.stderr.count("\n") == 1


def test_what_the_system_refuses_is_one_line_too(home: Path) -> None:
    folder = next((home / ".perdure" / "histories").iterdir())
    (folder / "segment-00000001").rename(folder / "elsewhere")
    (folder / "segment-00000001").mkdir()

    done = perdure(home, "log")

    assert done.returncode == 1
    assert done.stderr.startswith("perdure: ")
    assert done.stderr.count("\n") == 1


def test_wrong_usage_has_a_code_of_its_own(home: Path) -> None:
    assert perdure(home, "show").returncode == 2
    assert perdure(home, "lgo").returncode == 2


def test_times_are_local_and_json_is_in_utc(home: Path) -> None:
    shown = perdure(home, "log", "--limit", "1", TZ="Asia/Kolkata").stdout.splitlines()[-1]
    plain = perdure(home, "log", "--limit", "1", TZ="UTC").stdout.splitlines()[-1]
    stored = perdure(home, "log", "--limit", "1", "--json", TZ="Asia/Kolkata").stdout

    assert shown.split()[1].endswith("+05:30")
    assert plain.split()[1].endswith("Z")
    assert f'"time": "{plain.split()[1][:-1]}.' in stored


def test_any_encoding_of_the_terminal_will_do(home: Path) -> None:
    write(home, "café\n")

    assert perdure(home, "show", "note.md", PYTHONIOENCODING="ascii").stdout == "café\n"


def test_a_closed_reader_is_not_an_error(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [PERDURE, "history", "log"],
            env=environment(home),
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("words", ["log", "show note.md"])
def test_an_answer_that_can_not_be_written_is_an_error(home: Path, words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PERDURE, "history", *words.split()],
            env=environment(home),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )

    assert done.returncode != 0
    assert "the system reported 'No space left on device'." in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_leaves_no_traceback_and_no_change(home: Path) -> None:
    with subprocess.Popen(
        [PERDURE, "history", "prove", "--check", "-", "--key", "any"],
        env=environment(home),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdin is not None
        run.stdin.write("x" * (1 << 20))  # more than a pipe holds: when this returns, it is read
        run.send_signal(signal.SIGINT)
        _, stdout_of = run.communicate(timeout=60)

    assert run.returncode == 130
    assert "Traceback" not in stdout_of
    assert perdure(home, "verify").returncode == 0


class TestAtATerminal:
    def test_a_diff_is_coloured(self, home: Path) -> None:
        _, seen = at_a_terminal(home, "diff", "note.md")

        assert "\x1b[31m-one\x1b[0m\n\x1b[32m+two\x1b[0m\n" in seen

    def test_a_diff_is_plain_if_colours_are_not_wanted(self, home: Path) -> None:
        _, seen = at_a_terminal(home, "diff", "note.md", NO_COLOR="1")

        assert seen.endswith("@@ -1 +1 @@\n-one\n+two\n")

    def test_a_bar_shows_how_far_it_is(self, home: Path) -> None:
        code, seen = at_a_terminal(home, "verify")

        assert code == 0
        assert "verifying" in seen
        assert "100%" in seen
        assert "verifying" not in perdure(home, "verify").stderr

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
    def test_gc_asks_first(self, home: Path, answer: str, code: int) -> None:
        ended, seen = at_a_terminal(home, "gc", "--before", "9999-12-31", typed=answer)

        assert ended == code
        assert "This can't be undone.\nContinue? [y/N]" in seen
        assert ("erased nothing; states before position 4 " in seen) == (code == 0)


@pytest.mark.parametrize("words", ["--help", "completion bash"])
def test_other_commands_do_not_pay_for_history(tmp_path: Path, words: str) -> None:
    script = (
        "import sys\nfrom perdure.surfaces.cli import cli\n"
        "try: cli(sys.argv[1:])\nexcept SystemExit: pass\n"
        f"print('heavy:', *set({HEAVY.split()!r}) & set(sys.modules))"
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
