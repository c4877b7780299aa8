"""A note that can't be memory any more is named, and is never recorded as removed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from perdure.model.values import MAX_NOTE
from perdure.surfaces.cli import cli
from tests.vault.machines import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    created = Machine(tmp_path)
    monkeypatch.setenv("PERDURE_HOME", str(created.home))
    yield created
    created.memory.close()


def grow(path: Path) -> None:
    path.write_text("kale " * (MAX_NOTE // 5 + 1))


def change_encoding(path: Path) -> None:
    path.write_bytes("é".encode("latin-1"))


@pytest.mark.parametrize(
    ("spoil", "why"), [(grow, "too long to be memory"), (change_encoding, "UTF-8")]
)
def test_a_note_that_can_not_be_memory_any_more_is_named(
    machine: Machine, spoil: Callable[[Path], None], why: str
) -> None:
    note = machine.vault / "Big.md"
    note.write_text("Kohlrabi.\n")
    (machine.vault / "Other.md").write_text("Chard.\n")
    assert len(machine.recall("kohlrabi").hits) == 1

    spoil(note)
    assert machine.recall("kohlrabi").hits == ()
    machine.memory.record_edits()

    [problem] = machine.memory.lint().findings
    assert (problem.file, why in problem.what) == ("Big.md", True)
    doctor = CliRunner().invoke(cli, ["doctor"]).stdout
    assert "Big.md" in doctor
    assert why in doctor
    assert [each.cid is None for each in machine.memory.history("resources/Big")] == [False]
    note.write_text("Kohlrabi again.\n")
    assert len(machine.recall("kohlrabi").hits) == 1


def test_an_empty_note_of_its_owner_is_not_to_be_deleted_by_perdure(machine: Machine) -> None:
    (machine.vault / "Empty.md").write_text("\n")
    machine.recall("anything")

    [problem] = machine.memory.lint().findings

    assert problem.fix == "write something, or remove the file"


def test_a_memory_is_titled_by_its_file(machine: Machine) -> None:
    folder = machine.vault / "Perdure/Preferences"
    folder.mkdir(parents=True)
    (folder / "Tea.md").write_text("---\naliases: [Chai]\n---\nDrinks tea.\n")
    machine.recall("tea")

    assert machine.memory.lint().findings == []
