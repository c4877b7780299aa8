"""What people do to files by hand: nothing that they wrote is overwritten unseen, or lost."""

import shutil
from pathlib import Path

import pytest

from perdure import Memory
from perdure.engine.recall.result import HintKind
from perdure.errors import NodeNotFoundError, TextsGoneError, VersionMismatchError
from tests.vault.test_own_notes import found, memory, vault, write

__all__ = ["memory", "vault"]  # fixtures


def file_of(vault: Path, name: str) -> Path:
    return next(vault.rglob(f"{name}.md"))


def says_gone(memory: Memory, query: str) -> bool:
    return HintKind.TEXTS_GONE in {hint.kind for hint in memory.recall(query).hints}


# ---------------------------------------------------------------- versions
@pytest.mark.parametrize("is_recorded", [False, True])
def test_an_edit_by_hand_is_the_next_version(
    memory: Memory, vault: Path, *, is_recorded: bool
) -> None:
    memory.write("preference/nut", "Likes nuts")
    file = file_of(vault, "Nut")
    file.write_text(f"{file.read_text()}Not walnuts!\n")
    if is_recorded:
        memory.recall("walnuts")

    with pytest.raises(VersionMismatchError):
        memory.write("preference/nut", "Likes all nuts", version=1)

    assert "walnuts" in file.read_text()
    assert memory.read("preference/nut").version == 2
    assert memory.write("preference/nut", "Likes most nuts", version=2).version == 3
    assert memory.repair().findings == ()


def test_a_text_that_another_machine_saved_has_the_version_that_it_says(
    memory: Memory, vault: Path
) -> None:
    memory.write("preference/nut", "Likes nuts")
    file = file_of(vault, "Nut")
    arrived = file.read_text().replace("---\nLikes nuts", "version: 2\n---\nLikes almonds")
    file.write_text(arrived)

    assert memory.read("preference/nut").version == 2


# ---------------------------------------------------------------- names
def test_swapped_names_are_noticed_by_the_next_read_and_write(memory: Memory, vault: Path) -> None:
    memory.write("preference/juice", "Likes apple juice")
    memory.write("preference/tea", "Likes green tea")
    memory.recall("tea")
    juice, tea = file_of(vault, "Juice"), file_of(vault, "Tea")
    juice.rename(vault / "aside")
    tea.rename(juice)
    (vault / "aside").rename(tea)

    assert memory.read("preference/juice").content.strip() == "Likes apple juice"
    memory.write("preference/juice", "Likes pear juice", replace=True)

    assert "pear" in tea.read_text()
    assert "green tea" in juice.read_text()


def test_a_note_that_took_the_name_of_another_is_itself(memory: Memory, vault: Path) -> None:
    memory.write("preference/juice", "Likes apple juice")
    memory.write("preference/tea", "Likes green tea")
    memory.recall("tea")
    file_of(vault, "Juice").replace(file_of(vault, "Tea"))

    assert memory.read("preference/juice").content.strip() == "Likes apple juice"
    with pytest.raises(NodeNotFoundError):
        memory.read("preference/tea")


def test_a_folder_in_place_of_a_note_stops_no_other_edit(memory: Memory, vault: Path) -> None:
    write(vault, "Daily.md", "breakfast")
    assert found(memory, "breakfast") == ["Daily"]
    (vault / "Daily.md").unlink()
    (vault / "Daily.md").mkdir()
    write(vault, "Other.md", "supper")

    assert found(memory, "supper") == ["Other"]
    assert found(memory, "breakfast") == []


# ---------------------------------------------------------------- many at once
@pytest.fixture
def away(memory: Memory, vault: Path) -> Path:
    """Take a folder of a vault away, as a drive that is not mounted; return where it was."""
    for number in range(40):
        write(vault, f"Note {number}.md", f"alpha {number}")
    for number in range(15):
        write(vault, f"Daily/Day {number}.md", f"tango {number}")
    assert len(memory.recall("tango", top_k=20).hits) == 15
    (vault / "Daily").rename(vault.parent / "away")
    return vault / "Daily"


def test_notes_that_come_back_are_found_whatever_was_asked_meanwhile(
    memory: Memory, vault: Path, away: Path
) -> None:
    for verb in (memory.record_edits, memory.index.rebuild):
        with pytest.raises(TextsGoneError, match=r"15 of 5\d .*'Daily/Day"):
            verb()
    assert says_gone(memory, "tango")
    (vault.parent / "away").rename(away)

    assert len(memory.recall("tango", top_k=20).hits) == 15
    assert len(memory.list("resources/Daily")) == 15


def test_removals_are_asked_about_until_they_are_accepted(
    memory: Memory, vault: Path, away: Path
) -> None:
    assert not away.exists()
    memory.repair(apply=True, accept_removals=True)
    write(vault, "New.md", "uniform")

    assert found(memory, "uniform") == ["New"]
    assert not says_gone(memory, "uniform")


def test_half_of_a_small_vault_does_not_go_unasked(memory: Memory, vault: Path) -> None:
    for number in range(10):
        write(vault, f"{'Away/' * (number > 3)}Note {number}.md", "alpha")
    assert len(memory.recall("alpha", top_k=20).hits) == 10
    shutil.rmtree(vault / "Away")

    assert says_gone(memory, "alpha")
