"""`perdure models`, as its users run it."""

import json
from pathlib import Path
from shutil import copytree

import click
import pytest
from click.testing import CliRunner, Result

from perdure.errors import InstallError
from perdure.surfaces.cli.models import models_command
from tests.index.minilm_cache import installed_model, published_files

NAME = "all-MiniLM-L6-v2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Become a user who has installed nothing yet; return their home of Perdure."""
    home = tmp_path / "perdure"
    monkeypatch.setenv("PERDURE_HOME", str(home))
    return home


def models(*words: str) -> Result:
    return CliRunner().invoke(models_command, words)


def stdout_of(*words: str) -> Result:
    done = models(*words)
    assert (done.exception, done.exit_code) == (None, 0), done.stderr
    return done


def test_a_model_is_installed_and_then_listed(home: Path) -> None:
    done = stdout_of("install", "--from", str(published_files()))
    folder = home / "models" / f"{NAME}-build-1"

    assert done.stdout == f"{NAME} is in {folder}\n"
    assert done.stderr.splitlines()[1:] == [
        "building the graph",
        "checking the graph",
        f"{NAME} is installed",
    ]
    heads, row = stdout_of("list").stdout.splitlines()
    assert heads.split() == ["model", "size", "sha256", "state", "folder"]
    assert row.split() == [NAME, "23.9", "MB", installed_model().digest[:12], "intact", str(folder)]


@pytest.mark.parametrize("words", [("list",), ("install", "--from", "nowhere")])
def test_as_json_the_digest_is_whole(home: Path, words: tuple[str, ...]) -> None:
    home.mkdir()
    (home / "models").mkdir()
    installed = installed_model()
    (home / "models" / installed.folder.name).symlink_to(installed.folder)

    printed = json.loads(stdout_of(*words, "--json").stdout)

    assert printed.pop("whole", True)
    assert printed == {
        "model": NAME,
        "size": installed.size,
        "sha256": installed.digest,
        "folder": str(home / "models" / installed.folder.name),
    }


def test_one_flipped_bit_is_reported_with_its_fix(home: Path) -> None:
    copytree(installed_model().folder, home / "models" / installed_model().folder.name)
    graph = home / "models" / installed_model().folder.name / "model.onnx"
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 1
    graph.write_bytes(data)

    done = stdout_of("list")

    assert " damaged " in done.stdout
    assert "its content has changed. Fix: run `perdure models install`" in done.stderr
    assert json.loads(stdout_of("list", "--json").stdout)["whole"] is False


@pytest.mark.usefixtures("home")
def test_without_a_model_the_list_says_how_to_get_one() -> None:
    done = stdout_of("list")

    assert done.stdout == ""
    assert done.stderr == "no model; `perdure models install` installs one\n"
    assert stdout_of("list", "--json").stdout == ""


def test_to_look_makes_nothing(home: Path) -> None:
    stdout_of("list")

    assert not home.exists()


@pytest.mark.usefixtures("home")
def test_a_second_time_it_says_that_it_is_there() -> None:
    stdout_of("install", "--from", str(published_files()))

    assert stdout_of("install").stderr == f"{NAME} is installed already\n"


@pytest.mark.usefixtures("home")
def test_what_holds_no_weights_is_refused(tmp_path: Path) -> None:
    done = models("install", "--from", str(tmp_path / "nowhere"))

    assert done.exit_code == 1
    assert isinstance(done.exception, InstallError)


@pytest.mark.usefixtures("home")
def test_there_is_one_source_only() -> None:
    done = models("install", "--from", "here", "--source", "hub")

    assert done.exit_code == click.UsageError.exit_code
    assert "exclude each other" in done.stderr


@pytest.mark.usefixtures("home")
def test_an_unknown_source_is_refused() -> None:
    assert "'pypi', 'hub'" in models("install", "--source", "elsewhere").stderr


def test_an_emptied_model_is_called_damaged(home: Path) -> None:
    copytree(installed_model().folder, home / "models" / installed_model().folder.name)
    (home / "models" / installed_model().folder.name / "model.onnx").write_bytes(b"")

    done = stdout_of("list")

    assert "model.onnx of the model in " in done.stderr
    assert "it is not complete. Fix: run `perdure models install`" in done.stderr
