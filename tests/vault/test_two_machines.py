"""Two machines, one vault: nothing is lost, nothing is there twice, both come to the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

import perdure
from perdure.errors import NodeNotFoundError
from tests import tiers
from tests.tiers import searched
from tests.vault.machines import Machine, SyncClient

STEPS = 14


class Schedule:
    """One random course of saves, edits, recalls and arrivals on two machines."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.machines = Machine(folder / "one"), Machine(folder / "other")
        one, other = self.machines
        self.sync = SyncClient(one.vault, other.vault, self.random)
        self._tokens = 0
        self.written: list[str] = []

    def close(self) -> None:
        for machine in self.machines:
            machine.memory.close()

    def run(self) -> None:
        acts: list[Callable[[Machine], object]] = [
            self.save,
            self.revise,
            self.make_note,
            self.edit_by_hand,
            self.edit_memory,
        ]
        acts += [
            self.delete_note,
            self.rename_memory,
            self.look,
            self.bring,
            self.bring,
            self.bring,
        ]
        acts += [lambda _: self.sync.disturb()]
        for _ in range(STEPS):
            self.random.choice(acts)(self.random.choice(self.machines))

    # ------------------------------------------------------------ acts
    def token(self) -> str:
        self._tokens += 1
        self.written.append(f"tok{self._tokens:03d}q")
        return self.written[-1]

    def save(self, machine: Machine) -> None:
        token = self.token()
        machine.memory.save(f"Prefers {token} over others.", category="preference", slug=token)
        assert [hit for hit in machine.recall(token).hits if token in hit.snippet], token

    def revise(self, machine: Machine) -> None:
        machine.recall("anything")  # takes in what arrived
        if machine.memories():
            uri = self.random.choice(_entries(machine, "preference")).uri
            node = machine.memory.read(uri)
            machine.memory.write(uri, f"{node.content}\nAlso {self.token()}.", replace=True)

    def make_note(self, machine: Machine) -> None:
        token = self.token()
        (machine.vault / f"Note {token}.md").write_text(f"# A note\n\nIt has {token}.\n")

    def edit_by_hand(self, machine: Machine) -> None:
        self._append(machine.notes())

    def edit_memory(self, machine: Machine) -> None:
        self._append(machine.memories())

    def _append(self, paths: list[Path]) -> None:
        if paths:
            path = self.random.choice(paths)
            path.write_text(f"{path.read_text()}\nBy hand {self.token()}.\n")

    def delete_note(self, machine: Machine) -> None:
        if len(machine.notes()) > 1:
            path = self.random.choice(machine.notes())
            for token in [each for each in self.written if each in path.read_text()]:
                machine.recall(token)  # so that its last text is in history
            path.unlink()

    def rename_memory(self, machine: Machine) -> None:
        if machine.memories():
            path = self.random.choice(machine.memories())
            renamed = path.with_name(f"Renamed {path.stem}.md")
            if not renamed.exists():  # as in Obsidian: no file is overwritten by a rename
                path.rename(renamed)

    def bring(self, _: Machine) -> None:
        for _step in range(self.random.randint(1, 3)):
            self.sync.step()

    def look(self, machine: Machine) -> None:
        """Recall never claims to be current when it is not."""
        if not self.written:
            return
        token = self.random.choice(self.written)
        result = machine.recall(token)
        hits = [hit for hit in result.hits if token in hit.snippet]
        holders = machine.holders(token)
        if result.index_lag == 0 and not result.hints:
            assert bool(hits) == bool(holders), (token, holders, hits)
        assert len(hits) <= max(1, len(holders)), (token, holders, hits)

    # ------------------------------------------------------------ afterwards
    def check(self) -> None:
        self.sync.finish()
        one, other = self.machines
        texts = one.everything() + other.everything()
        assert [token for token in self.written if token not in texts] == []
        for token in self.written:
            for machine in self.machines:
                hits = [hit for hit in machine.recall(token).hits if token in hit.snippet]
                assert len(hits) == len(machine.holders(token)), (token, hits)
        self.sync.finish()  # to recall wrote nothing that both would write
        assert _nodes(one) == _nodes(other)


def _nodes(machine: Machine) -> dict[str, str]:
    entries = (*_entries(machine, "preference"), *_entries(machine, "resources"))
    return {entry.uri: machine.memory.read(entry.uri).content for entry in entries}


def _entries(machine: Machine, folder: str) -> tuple[perdure.Entry, ...]:
    try:
        return machine.memory.list(folder)
    except NodeNotFoundError:  # nothing was ever there
        return ()


@contextmanager
def schedule(folder: Path, seed: int) -> Iterator[Schedule]:
    created = Schedule(folder, seed)
    try:
        yield created
    finally:
        created.close()


def test_of_three_files_with_one_id_both_machines_choose_the_same(tmp_path: Path) -> None:
    with schedule(tmp_path, 3_378_869_977) as created:  # the one in use goes as another arrives
        created.run()
        created.check()


@pytest.mark.parametrize("part", range(20))
def test_random_schedules_lose_nothing_and_double_nothing(tmp_path: Path, part: int) -> None:
    for number in range(part, max(50, searched(2_000)), 20):
        with schedule(tmp_path / str(number), tiers.seed(number)) as created:
            created.run()
            created.check()
