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


def test_a_copy_is_listed_with_the_base_of_both(memory: Memory, vault: Path) -> None:
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
def test_a_settled_file_has_the_choice_and_history_has_all(
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


def test_a_copy_of_a_missing_file_can_be_chosen(memory: Memory, vault: Path) -> None:
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


class TestLayoutNotes:
    """Where each memory is one file, and notes are memory in place."""

    @pytest.fixture
    def vault(self, vault: Path) -> Path:
        config = vault.parent / "home/config.toml"
        config.write_text(config.read_text().replace("\n\n", '\nlayout = "notes"\n\n', 1))
        return vault

    def test_a_second_copy_is_compared_with_its_base(self, memory: Memory, vault: Path) -> None:
        conflicting(memory, vault, theirs=BASE.replace("Sleep.", "Rest at nine."))
        tablet = vault / "Plan (Tablet's conflicted copy 2026-03-02).md"
        tablet.write_text(BASE.replace("Sleep.", "Rest at noon."))

        memory.settle_conflict(COPY, "merge")

        assert memory.conflict(tablet.name).base == BASE
        with pytest.raises(ConcurrentModificationError, match="same lines in 1 place"):
            memory.settle_conflict(tablet.name, "merge")
        assert "Rest at nine." in (vault / "Plan.md").read_text()
        assert tablet.exists()

    @pytest.mark.parametrize("mine", [MINE, BASE])
    def test_the_chosen_text_is_blamed_on_its_author(
        self, memory: Memory, vault: Path, mine: str
    ) -> None:
        conflicting(memory, vault, mine=mine)
        key = "accounts/local/resources/%50lan/content.md"
        before = [(line.text, line.version.position) for line in memory.log.blame(key)]

        memory.settle_conflict(COPY, "mine")

        assert THEIRS in versions_of(memory, key)
        assert [(line.text, line.version.position) for line in memory.log.blame(key)] == before

    def test_properties_are_merged_one_by_one(self, memory: Memory, vault: Path) -> None:
        head = "---\ntags: [a]\nstatus: open\ndue: 1\n---\n"
        conflicting(memory, vault, mine=BASE)  # so that history has an older version
        for text in (head + BASE, head.replace("[a]", "[a, b]") + MINE):
            (vault / "Plan.md").write_text(text)
            memory.record_edits()
        theirs = head.replace("open", "done").replace("due: 1\n", "new: 2\n") + THEIRS
        (vault / COPY).write_text(theirs)

        shown = memory.conflict(COPY).changes
        memory.settle_conflict(COPY, "merge")

        assert "+tags: [a, b]" in shown[0]
        assert "+status: done" in shown[1]
        assert (vault / "Plan.md").read_text() == (
            "---\ntags: [a, b]\nstatus: done\nnew: 2\n---\n" + MINE.replace("Sleep", "Rest")
        )

    def test_one_property_changed_by_both_is_a_clash(self, memory: Memory, vault: Path) -> None:
        for status in ("open", "mine"):
            (vault / "Plan.md").write_text(f"---\nstatus: {status}\n---\n{BASE}")
            memory.record_edits()
        (vault / COPY).write_text(f"---\nstatus: theirs\n---\n{BASE}")

        with pytest.raises(ConcurrentModificationError, match="same lines in 1 place"):
            memory.settle_conflict(COPY, "merge")

        assert "theirs" in (vault / COPY).read_text()

    def test_a_memory_that_both_changed_has_both(self, memory: Memory, vault: Path) -> None:
        memory.save("One.\n\nTwo.\n\nThree.", category="preference", slug="numbers")
        file = vault / "Perdure/Preferences/Numbers.md"
        copy = file.with_name("Numbers (Phone's conflicted copy 2026-03-02).md")
        before = file.read_text()
        memory.save("One!\n\nTwo.\n\nThree.", category="preference", slug="numbers")
        theirs = before.replace("Three.", "Three!").replace("---\n", "---\ntags: [x]\n", 1)
        copy.write_text(theirs)

        memory.settle_conflict(copy.relative_to(vault).as_posix(), "merge")

        node = memory.read("preference/numbers")
        assert node.content == "One!\n\nTwo.\n\nThree!"
        assert "tags: [x]\n" in file.read_text()
        assert node.version == 3
        assert not copy.exists()

    def test_a_deleted_file_stays_deleted_if_mine_is_chosen(
        self, memory: Memory, vault: Path
    ) -> None:
        for number in range(12):
            (vault / f"{number}.md").write_text(f"so that few are gone {number}\n")
        conflicting(memory, vault)
        (vault / "Plan.md").unlink()

        with pytest.raises(ConcurrentModificationError, match="does not exist any more"):
            memory.settle_conflict(COPY, "merge")
        memory.settle_conflict(COPY, "mine")

        assert not (vault / "Plan.md").exists()
        assert not (vault / COPY).exists()
        assert THEIRS in versions_of(memory, "accounts/local/resources/%50lan/content.md")
        assert not memory.record_edits().recorded


def versions_of(memory: Memory, key: str) -> list[str]:
    return [memory.log.text(each) for each in memory.log.versions(key) if each.cid is not None]
