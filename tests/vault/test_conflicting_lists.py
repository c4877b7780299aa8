"""What two machines changed is one memory: lists are united, files with one id are one."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import unquote

import pytest

from tests.vault.machines import Machine, SyncClient

STATEMENTS = {
    "allergy": "Ana is allergic to penicillin.",
    "garden": "The garden gate code is four nine two.",
}


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    yield one, other
    one.memory.close()
    other.memory.close()


def forget_on_both(one: Machine, other: Machine) -> SyncClient:
    """Let each machine forget another thing before it knows of the other."""
    sync = SyncClient(one.vault, other.vault, Random(0))
    for slug, text in STATEMENTS.items():
        one.memory.save(text, category="preference", slug=slug)
    sync.finish()
    other.recall("garden")
    one.memory.forget("preference/allergy")
    other.memory.forget("preference/garden")
    sync.finish()
    assert len(lists(one)) == 2
    return sync


def lists(machine: Machine) -> list[Path]:
    return [*machine.vault.glob("Perdure/System/Forgotten*")]


def test_what_each_machine_forgot_is_forgotten_on_both(
    machines: tuple[Machine, Machine],
) -> None:
    sync = forget_on_both(*machines)

    for machine in machines:
        for text in STATEMENTS.values():
            assert machine.recall(text).says_forgotten, text
    sync.finish()

    one, other = (lists(machine) for machine in machines)
    assert len(one) == len(other) == 1
    assert one[0].read_text() == other[0].read_text()
    assert machines[0].memory.conflicts() == ()


def test_nothing_forgotten_is_accepted_before_the_copy_is_settled(
    machines: tuple[Machine, Machine],
) -> None:
    forget_on_both(*machines)

    for number, machine in enumerate(machines):
        messages = [{"role": "user", "content": text} for text in STATEMENTS.values()]
        machine.memory.commit_session(messages, session_id=f"s{number}", extract=True)
        stored = machine.memory.read(f"sessions/s{number}/messages").content
        assert [text for text in STATEMENTS.values() if text in stored] == []


def test_a_copy_of_a_list_is_merged_without_a_clash(machines: tuple[Machine, Machine]) -> None:
    one, other = machines
    forget_on_both(one, other)
    [found] = one.memory.conflicts()

    one.memory.settle_conflict(found.path, "merge")

    assert [one.recall(text).says_forgotten for text in STATEMENTS.values()] == [True, True]


def test_projects_named_on_two_machines_are_both_known(
    machines: tuple[Machine, Machine],
) -> None:
    one, other = machines
    sync = SyncClient(one.vault, other.vault, Random(0))
    for project in ("kale", "chard"):
        one.memory.remember(f"Use tabs in {project}.", kind="rule", project=project)
    sync.finish()
    other.recall("tabs")
    one.memory.projects.rename("kale", "kohlrabi")
    other.memory.projects.rename("chard", "mangold")
    sync.finish()

    for machine in machines:
        machine.recall("tabs")
        assert machine.memory.projects.aliases().projects == {
            "kale": "kohlrabi",
            "chard": "mangold",
        }


# ---------------------------------------------------------------- one id
def rename_and_edit(one: Machine, other: Machine) -> SyncClient:
    """Rename a memory on one machine, and write its next version on the other."""
    sync = SyncClient(one.vault, other.vault, Random(0))
    one.memory.save("Prefers tabs over spaces.", category="preference", slug="indent")
    sync.finish()
    other.recall("tabs")
    file = one.vault / "Perdure/Preferences/Indent.md"
    file.rename(file.with_name("How I indent.md"))
    one.recall("tabs")
    other.memory.write("preference/indent", "Prefers four spaces.", replace=True)
    sync.finish()
    assert len(one.memories()) == 2
    return sync


def test_of_two_files_with_one_id_the_newest_version_is_the_memory(
    machines: tuple[Machine, Machine],
) -> None:
    rename_and_edit(*machines)

    for machine in machines:
        hits = machine.recall("indent spaces tabs").hits
        assert [hit.uri.rpartition("/")[2] for hit in hits] == ["indent"]
        assert machine.memory.read("preference/indent").content == "Prefers four spaces."


def test_the_other_file_with_the_id_is_a_conflict_that_can_be_merged(
    machines: tuple[Machine, Machine],
) -> None:
    sync = rename_and_edit(*machines)
    one, _ = machines
    one.recall("spaces")

    [found] = one.memory.conflicts()
    codes = [problem.code for problem in one.memory.lint().findings]
    one.memory.settle_conflict(found.path, "merge")
    sync.finish()

    assert found.path == "Perdure/Preferences/How I indent.md"
    assert found.original == "Perdure/Preferences/Indent.md"
    assert "conflict-copy" in codes
    for machine in machines:
        assert len(machine.memories()) == 1
        assert len(machine.recall("spaces").hits) == 1
        assert machine.memory.read("preference/indent").content == "Prefers four spaces."
        assert machine.memory.conflicts() == ()


def test_if_the_file_with_the_id_goes_the_other_is_the_memory(
    machines: tuple[Machine, Machine],
) -> None:
    rename_and_edit(*machines)
    one, _ = machines
    one.recall("spaces")

    (one.vault / "Perdure/Preferences/Indent.md").unlink()

    assert [hit.snippet for hit in one.recall("tabs").hits] == ["Prefers tabs over spaces."]
    assert one.memory.conflicts() == ()


def test_one_sentence_saved_on_both_machines_merges(machines: tuple[Machine, Machine]) -> None:
    one, other = machines
    sync = SyncClient(one.vault, other.vault, Random(0))
    for machine in machines:
        machine.memory.save("Prefers tabs.", category="preference", slug="indent")
    files = [machine.vault / "Perdure/Preferences/Indent.md" for machine in machines]
    early = [line for line in files[0].read_text().splitlines() if line.startswith("created:")]
    files[1].write_text(files[1].read_text().replace("created: 20", "created: 21"))
    sync.finish()

    [found] = [each for each in one.memory.conflicts() if "Indent" in each.path]
    one.memory.settle_conflict(found.path, "merge")

    assert early[0] in files[0].read_text()


# ---------------------------------------------------------------- names that people choose
@pytest.mark.parametrize("name", ["Packing 2", "Packing (1)", "Packing-LIST"])
def test_a_numbered_note_of_its_own_is_found(machines: tuple[Machine, Machine], name: str) -> None:
    one, _ = machines
    text = "# Packing\n\nTent, stove, lamp, rope, map, knife, boots, coat, soap, tea.\n"
    (one.vault / "Packing.md").write_text(text)
    (one.vault / f"{name}.md").write_text(text.replace("tea", "kohlrabi"))

    assert [unquote(hit.uri).rpartition("/")[2] for hit in one.recall("kohlrabi").hits] == [name]
    assert one.memory.conflicts() == ()
