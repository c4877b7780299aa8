"""Lists of ours that two machines changed are united: what was forgotten stays so."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

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
        kept = machine.memory.read(f"sessions/s{number}/messages").content
        assert [text for text in STATEMENTS.values() if text in kept] == []


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
