"""`perdure projects`: the verbs of projects, typed."""

from pathlib import Path

import pytest

from perdure.errors import ProjectError
from tests.surfaces.nodes import objects, one, refusal, stdout_of


@pytest.fixture
def two(memory: Path) -> Path:
    for project in ("one", "two"):
        stdout_of(
            "save", f"Project {project} uses SQLite.", "--category", "decision", "--slug", project
        )
        stdout_of("write", f"decision/{project}", "--meta", f"project={project}", "--replace")
    return memory


def test_a_merge_and_its_undoing_are_reported(two: Path) -> None:
    assert (
        stdout_of("projects", "merge", "one", "two") == "assigned to two: 0 sessions and 1 memory\n"
    )
    assert stdout_of("projects").splitlines()[1].split() == ["two", "0", "2", "one"]
    assert "one uses" in stdout_of("list", "--project", "two")
    assert one("projects", "split", "two", "one") == {
        "project": "one",
        "sessions": 0,
        "memories": 1,
        "stayed": [],
    }
    assert "one uses" not in stdout_of("list", "--project", "two")


def test_a_folder_that_was_moved_is_given_its_project(two: Path, tmp_path: Path) -> None:
    (tmp_path / "work" / ".harness").mkdir(parents=True)
    (tmp_path / "work" / ".harness" / "project.json").write_text('{"slug": "here"}')
    stdout_of("projects", "move", "one", str(tmp_path / "work"))

    assert {each["name"] for each in objects("projects", "list")} == {"one", "two"}
    assert "one uses" in stdout_of("list", "--project", str(tmp_path / "work"))


def test_a_project_that_is_not_there_is_refused(two: Path) -> None:
    error = refusal("projects", "name", "x", "y")

    assert isinstance(error, ProjectError)
    assert "`perdure projects` lists them" in str(error)


def test_a_tree_is_of_one_project_if_that_is_named(two: Path) -> None:
    shown = stdout_of("tree", "--project", "one")

    assert "one uses" in shown
    assert "two uses" not in shown
    assert shown.endswith("\n1 node\n")


def test_a_list_shows_the_project_where_there_is_one(two: Path) -> None:
    heads, first, _ = stdout_of("list", "decision").splitlines()

    assert heads.split()[:4] == ["name", "version", "updated", "project"]
    assert first.split()[3] == "one"
    stdout_of("write", "note/free", "Of no project.")
    assert "project" not in stdout_of("list", "note").splitlines()[0]
