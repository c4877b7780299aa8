"""A home that an earlier version made opens, verifies and answers as recorded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.net.golden_home import NODES, GoldenHome, as_text
from tests.net.recording import same_as_recorded


@pytest.fixture
def golden(tmp_path: Path) -> GoldenHome:
    return GoldenHome.unpacked(tmp_path)


@pytest.fixture
def _changes_no_text(golden: GoldenHome) -> Iterator[None]:
    before = golden.texts()
    yield
    assert golden.texts() == before


@pytest.mark.usefixtures("_changes_no_text")
def test_golden_home_answers_as_recorded(golden: GoldenHome) -> None:
    same_as_recorded("golden.json", as_text(golden.answers()) + "\n")


@pytest.mark.usefixtures("_changes_no_text")
def test_golden_home_answers_as_recorded_when_all_that_is_derived_is_made_again(
    golden: GoldenHome,
) -> None:
    golden.delete_derived()
    golden.run("index", "rebuild")
    golden.run("index", "rebuild", "--account", "club")

    same_as_recorded("golden.json", as_text(golden.answers()) + "\n", record=False)


def test_golden_home_is_sound(golden: GoldenHome) -> None:
    assert golden.run("history", "verify")["faults"] == []
    assert golden.run("doctor")["ok"]
    assert golden.run("status")["ok"]
    assert golden.run("index", "verify")["ok"]


def test_golden_home_keeps_its_layout_until_it_is_migrated_and_back(golden: GoldenHome) -> None:
    saved = golden.run("save", "Sardines.", "--category", "preference", "--slug", "fish")
    assert saved["version"] == 1
    golden.run("repair", "--apply")  # an edit by hand is a version, as it is where a node is a note
    five = golden.texts()
    assert "memory/accounts/local/users/ana/memories/preference/fish/content.md" in five
    reads = [golden.run("read", name, "--all") for name in NODES]

    assert golden.run("migrate", "--layout", "notes")["layout"] == "notes"
    notes = golden.texts()
    assert "memory/Preferences/Fish.md" in notes
    assert not any(name.startswith("memory/accounts/") for name in notes)
    assert [golden.run("read", name, "--all") for name in NODES] == reads

    assert golden.run("migrate", "--layout", "agfs")["layout"] == "agfs"
    about = "memory/Perdure/About this folder.md"
    again = golden.texts()
    assert (again | {about: b""}) == (five | {about: b""})
