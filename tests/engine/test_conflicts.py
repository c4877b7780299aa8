"""Conflict copies are listed, shown and settled, and nothing of them is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Memory
from perdure.errors import AbsentError, AccessDeniedError, ConcurrentModificationError

COPY = "Plan.sync-conflict-20260302-101500-ABCDEF7.md"
BASE = "# Plan\n\nBuy bread.\nCall the bank.\nSleep.\n"
MINE = BASE.replace("bread", "cake")
THEIRS = BASE.replace("Sleep", "Rest")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[storage]\nbackend = "vault"\n\n[storage.vault]\npath = "{folder}"\n'
    )
    return folder


@pytest.fixture
def memory(vault: Path) -> Iterator[Memory]:
    with perdure.open(home=vault.parent / "home") as memory:
        yield memory


def conflicting(memory: Memory, vault: Path, mine: str = MINE, theirs: str = THEIRS) -> None:
    for text in (BASE, mine):
        (vault / "Plan.md").write_text(text)
        memory.record_edits()
    (vault / COPY).write_text(theirs)


def versions(memory: Memory) -> list[str]:
    [key] = {
        each.key
        for each in memory.log.entries()
        if "lan" in each.key and "onflict" not in each.key and not each.key.endswith("json")
    }
    return [memory.log.text(each) for each in memory.log.versions(key)]


def test_a_copy_is_listed_with_what_both_were_made_from(memory: Memory, vault: Path) -> None:
    conflicting(memory, vault)

    [found] = memory.conflicts()

    assert (found.path, found.original) == (COPY, "Plan.md")
    assert (found.base, found.mine, found.theirs) == (BASE, MINE, THEIRS)


def test_what_each_side_changed_is_shown(memory: Memory, vault: Path) -> None:
    conflicting(memory, vault)

    mine, theirs = memory.conflict(COPY).changes

    assert "+Buy cake." in mine
    assert "Rest" not in mine
    assert "+Rest." in theirs


@pytest.mark.parametrize(
    ("keep", "text"),
    [("mine", MINE), ("theirs", THEIRS), ("merge", MINE.replace("Sleep", "Rest"))],
)
def test_settled_the_file_has_what_was_kept_and_history_has_all(
    memory: Memory, vault: Path, keep: str, text: str
) -> None:
    conflicting(memory, vault)

    memory.settle_conflict("Plan.md", keep)

    assert (vault / "Plan.md").read_text() == text
    assert not (vault / COPY).exists()
    assert len(memory.edits()) == 2  # which `conflicting` made; what was settled is not an edit
    assert memory.conflicts() == ()
    assert {BASE, MINE, THEIRS, text} <= {*versions(memory)}


def test_a_clash_is_refused_and_nothing_changes(memory: Memory, vault: Path) -> None:
    conflicting(memory, vault, theirs=BASE.replace("bread", "milk"))

    with pytest.raises(ConcurrentModificationError, match="same lines in 1 place"):
        memory.settle_conflict(COPY, "merge")

    assert (vault / "Plan.md").read_text() == MINE
    assert (vault / COPY).exists()


def test_a_copy_of_a_file_that_is_gone_can_be_kept(memory: Memory, vault: Path) -> None:
    conflicting(memory, vault)
    (vault / "Other.md").write_text("so that not all is gone\n")
    (vault / "Plan.md").unlink()

    memory.settle_conflict(COPY, "theirs")

    assert (vault / "Plan.md").read_text() == THEIRS


def test_what_is_not_a_copy_is_refused(memory: Memory, vault: Path) -> None:
    with pytest.raises(AbsentError, match="is not a conflict copy"):
        memory.conflict("Plan.md")


def test_only_the_owner_of_the_store_sees_conflicts(memory: Memory) -> None:
    with pytest.raises(AccessDeniedError):
        memory.for_caller(user="bob").conflicts()
