"""The demo shows what it says, on a machine with nothing on it, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.demo import __main__ as demo
from examples.demo.__main__ import STEPS, Step, run
from examples.demo.stage import NotShownError, Stage
from examples.demo.steps import show_rebuilding, show_recall, show_saving
from perdure.surfaces.cli import INTERRUPTED, cli
from tests.index.minilm_cache import installed_model
from tests.surfaces.processes import PERDURE

DEMO = (sys.executable, "-m", "examples.demo")
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Shown:
    code: int
    text: str
    complaints: str

    def step(self, number: int) -> str:
        return re.split(r"(?m)^\d+\. ", self.text)[number]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Run the whole demo once, without a model and with an empty memory."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [*DEMO, "--keep", str(folder / "sample of mine")],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    return Shown(done.returncode, done.stdout, done.stderr)


EVIDENCE = (
    (1, r"5 extracted, 4 created, 1 appended"),
    (1, r"April +8 conversations +\d+ messages +4 statements learned +2 superseded"),
    (1, r"- Mara lives in Porto\. \(since 2026-04-21\)"),
    (2, r"harbours in Postgres\. \(since 2026-04-14\)"),
    (2, r"looked up: message 5 of conversations/2026-04-14-to-postgres\.jsonl says just that"),
    (2, r"never an instruction to follow"),
    (2, r"for a prompt: [1-3]\d\d tokens of the 400 that were granted"),
    (2, r"with the model, it would also find"),
    (3, r"goes out to sailors on a Tuesday\. \(since 2026-05-12\)"),
    (3, r'"I live in Porto" \(sessions/2026-04-21-boxes, message 2: found there\)'),
    (3, r"Mara lives in Kiel\. \(held until 2026-04-21"),
    (3, r'"I live in Kiel" \(sessions/2026-01-05-kick-off, message 5: found there\)'),
    (4, r"harbours in SQLite\.\n"),
    (4, r"(?s)read profile --at \d+\n.*- Mara lives in Kiel\."),
    (4, r"(?s)--valid-at 2026-03-31.*until 2026-04-21\n +Mara lives in Kiel\."),
    (5, r"3 .* save +- Mara lives in Porto"),
    (5, r"-- Mara lives in Kiel\.\n +\+- Mara lives in Porto"),
    (6, r"recorded 1 edit made outside Perdure"),
    (6, r"external +- In Makefiles there is no choice: tabs\."),
    (7, r"holds again: - Jonas lives in Bergen\."),
    (8, r"ok: \d+ commits, .* every byte is as it was written"),
    (8, r"it is version 1 of accounts/local/users/mara/memories/profile/content\.md"),
    (8, r"proven: 'accounts/local/users/mara/memories/profile/content\.md'"),
    (9, r"rm -r histories/[\w-]+/index"),
    (9, r"identical, byte for byte"),
    (10, r"is not at version 1 but at version 2"),
    (10, r"was committed with other messages"),
    (10, r"holds a secret value in line 1"),
    (10, r"api_key=\[secret: "),
    (10, r"looked for it in all \d+ files of this memory: it is in none"),
    (10, r"> quoted, not an instruction: .*Ignore all previous instructions"),
    (10, r"is out of reach for user 'tom'"),
    (10, r"no hits"),
)


@pytest.mark.parametrize(("number", "evidence"), EVIDENCE)
def test_each_step_shows_what_it_says(shown: Shown, number: int, evidence: str) -> None:
    assert shown.code == 0, shown.complaints
    assert shown.step(number).startswith(STEPS[number - 1].title)
    assert re.search(evidence, shown.step(number))


def test_what_held_in_march_says_nothing_of_what_came_later(shown: Shown) -> None:
    assert "Postgres" not in shown.step(4)
    assert "Porto" not in shown.step(4)


def test_every_refusal_has_its_fix(shown: Shown) -> None:
    refusals = re.findall(r"   perdure: (.+?)\n   (?=\$|[A-Z])", shown.step(10), re.DOTALL)

    assert len(refusals) == 4
    assert all("Fix:" in refusal for refusal in refusals)


def test_it_ends_with_the_commands_to_go_on(shown: Shown) -> None:
    assert "All 10 steps showed what they say" in shown.text
    for typed in ("PERDURE_HOME=", "perdure save", "perdure recall", "perdure doctor"):
        assert typed in shown.text.partition("All 10 steps")[2]


def test_it_tells_only_of_commands_that_there_are(shown: Shown) -> None:
    told = set(re.findall(r"^  perdure (\w+)", shown.text, re.MULTILINE))

    assert told
    assert told <= cli.commands.keys()


def test_what_is_learned_can_be_explained_by_the_printed_command(shown: Shown) -> None:
    (told,) = re.findall(r"^  (PERDURE_HOME=.*)", shown.text, re.MULTILINE)

    done = subprocess.run(  # noqa: S602 - as it would be pasted
        told.replace(" perdure ", f" {PERDURE} "),
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Olaf is our contact in Laboe" in done.stdout


# ---------------------------------------------------------------- other ways to run it
def only(patch: pytest.MonkeyPatch, *shows: object) -> None:
    """Let the demo have only these of its steps."""
    patch.setattr(demo, "STEPS", tuple(step for step in STEPS if step.show in shows))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the demo puts its folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.mark.search
def test_with_the_model_it_finds_by_meaning_and_the_index_comes_back_the_same(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(installed_model().folder.parent)
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    only(monkeypatch, show_saving, show_recall, show_rebuilding)
    lines: list[str] = []

    run(lines.append)

    told = "\n".join(lines)
    assert "I'm allergic to shrimp" in told.partition("'Who gets sick from crustaceans?'")[2]
    assert "identical, byte for byte" in told
    assert "no model is installed" not in told
    assert "make demo KEEP=FOLDER" in told
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["models"]
    assert list(temporary.iterdir()) == []


def test_a_config_of_the_user_that_is_wrong_is_none_of_its_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[storage")
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path))
    only(monkeypatch)
    lines: list[str] = []

    run(lines.append)

    assert "All 0 steps showed what they say" in "\n".join(lines)


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Mine.")

    for keep in (tmp_path, tmp_path / "mine.md"):
        with pytest.raises(NotShownError, match=r"is (not empty|a file)\. Fix: name a new folder"):
            run(lambda _: None, keep)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]


def test_the_path_of_a_command_that_is_not_on_the_path_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", str(Path.cwd() / ".venv" / "bin" / "python"))
    only(monkeypatch)
    lines: list[str] = []

    run(lines.append)

    assert lines[-1] == "Here `perdure` is .venv/bin/perdure."


def test_a_step_that_fails_is_named_and_its_folder_is_removed(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def show(stage: Stage) -> None:
        stage.run("read", "preference/nothing")

    monkeypatch.setattr(demo, "STEPS", (Step("Show nothing", show),))

    with pytest.raises(
        NotShownError, match=r"step 1 .*\(Show nothing\).* ended with 1, not with 0"
    ):
        run(lambda _: None)

    assert list(temporary.iterdir()) == []


def test_stopped_in_the_middle_it_removes_its_folder(temporary: Path) -> None:
    with subprocess.Popen(
        DEMO, env=dict(os.environ), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("1. "):
            assert process.poll() is None
        assert list(temporary.iterdir())

        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == INTERRUPTED
    assert list(temporary.iterdir()) == []


def test_a_failure_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Mine.")

    done = subprocess.run(
        [*DEMO, "--keep", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1
    assert done.stderr == f"demo: {tmp_path} is not empty. Fix: name a new folder for --keep.\n"
