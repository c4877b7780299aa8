"""A repository keeps its memories from before its first commit; no other repository gets them."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from perdure import Memory, ProjectError
from tests.engine.test_projects import save, texts_in
from tests.harness.conftest import git

WALL, CRANE = "The harbour has a wall.", "The harbour has a crane."


@pytest.fixture(autouse=True, scope="module")
def everywhere() -> Iterator[None]:
    """Folders in the temporary folder belong to projects here."""
    with patch("perdure.harness.project._has_no_project", return_value=False):
        yield


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home") as opened:
        yield opened


def begun(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    return folder


def commit(folder: Path, *more: str) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", f"in {folder}", *more)


def remote(folder: Path, name: str) -> None:
    git(folder, "remote", "add", "origin", f"git@github.com:{name}.git")


def seen(memory: Memory, folder: Path) -> set[str]:
    return texts_in(memory, memory.projects.at(str(folder)))


def test_a_repository_keeps_its_project_at_its_first_commit_and_remote(
    memory: Memory, tmp_path: Path
) -> None:
    top = begun(tmp_path / "a")
    save(tmp_path / "home", top, WALL)
    before = memory.projects.at(str(top))

    commit(top)
    assert memory.projects.at(str(top)) == before
    save(tmp_path / "home", top, CRANE)
    commit(top, "--amend")
    assert memory.projects.at(str(top)) == before
    remote(top, "ana/harbour")

    assert memory.projects.at(str(top)) == before
    assert seen(memory, top) == {WALL, CRANE}
    assert [each.name for each in memory.projects.list()] == [before]
    assert not any("git-new-" in each for each in memory.projects.list()[0].identities)


def test_a_remote_before_the_first_commit_changes_no_project(
    memory: Memory, tmp_path: Path
) -> None:
    top = begun(tmp_path / "a")
    save(tmp_path / "home", top, WALL)

    remote(top, "ana/harbour")

    assert seen(memory, top) == {WALL}
    commit(top)
    save(tmp_path / "home", top, CRANE)
    git(top, "remote", "set-url", "origin", "git@github.com:ben/harbour.git")
    assert memory.projects.at(str(top)) == "ben-harbour"


def test_a_folder_keeps_its_project_when_it_becomes_a_repository(
    memory: Memory, tmp_path: Path
) -> None:
    top = tmp_path / "a"
    top.mkdir()
    save(tmp_path / "home", top, WALL)

    begun(top)

    assert seen(memory, top) == {WALL}
    commit(top)
    remote(top, "ana/harbour")
    assert seen(memory, top) == {WALL}
    save(tmp_path / "home", top, CRANE)
    top.rename(tmp_path / "b")
    assert seen(memory, tmp_path / "b") == {WALL, CRANE}
    top.mkdir()
    assert seen(memory, top) == set()  # another folder, at the path that the first one had


@pytest.mark.parametrize("is_repository", [True, False])
def test_a_clone_at_the_path_of_another_repository_gets_nothing_of_it(
    memory: Memory, tmp_path: Path, *, is_repository: bool
) -> None:
    other, top = begun(tmp_path / "other"), tmp_path / "a"
    top.mkdir()
    if is_repository:
        begun(top)
    save(tmp_path / "home", top, WALL)
    commit(other)
    for each in top.iterdir():  # so that the folder itself stays the same
        shutil.rmtree(each)

    git(top, "clone", "-q", str(other), ".")

    assert seen(memory, top) == set()
    assert memory.projects.at(str(top)) == memory.projects.at(str(other))


def test_the_history_of_another_repository_is_not_taken_over(
    memory: Memory, tmp_path: Path
) -> None:
    other, top = begun(tmp_path / "other"), begun(tmp_path / "a")
    save(tmp_path / "home", top, WALL)
    commit(other)

    git(top, "pull", "-q", str(other))
    save(tmp_path / "home", top, CRANE)

    assert seen(memory, other) == {CRANE}


def test_a_remote_that_has_memories_stays_its_own_project(memory: Memory, tmp_path: Path) -> None:
    used, top = begun(tmp_path / "used"), begun(tmp_path / "a")
    remote(used, "ana/harbour")
    save(tmp_path / "home", used, WALL)
    save(tmp_path / "home", top, "The harbour has a mole.")

    remote(top, "ana/harbour")
    save(tmp_path / "home", top, CRANE)

    assert seen(memory, used) == seen(memory, top) == {WALL, CRANE}


def test_without_times_of_birth_nothing_is_taken_over(memory: Memory, tmp_path: Path) -> None:
    top = begun(tmp_path / "a")
    with patch("perdure.harness.project._birth", return_value=""):
        save(tmp_path / "home", top, WALL)
        assert seen(memory, top) == {WALL}
        commit(top)
        assert seen(memory, top) == set()


def test_a_project_is_merged_into_that_of_a_folder_which_has_nothing_yet(
    memory: Memory, tmp_path: Path
) -> None:
    memory.save(WALL, category="decision", slug="wall", project="old")
    top = begun(tmp_path / "a")
    commit(top)

    memory.projects.merge("old", str(top))

    assert seen(memory, top) == {WALL}
    remote(top, "ana/harbour")
    assert seen(memory, top) == {WALL}
    with pytest.raises(perdure.PerdureError):
        memory.projects.merge("old", str(tmp_path / "absent"))
    with pytest.raises(ProjectError, match="there is no project 'absent'"):
        memory.projects.merge("old", "absent")


# ---------------------------------------------------------------- random sequences
@dataclass(eq=False)
class Repository:
    top: Path
    line: object = field(default_factory=object)
    """What it shares with its clones: a root commit."""
    statements: set[str] = field(default_factory=set)
    trees: list[Path] = field(default_factory=list)
    is_plain: bool = False
    is_committed: bool = False
    remote: str = ""


@dataclass
class World:
    place: Path
    memory: Memory
    all: list[Repository] = field(default_factory=list)
    gone: list[Repository] = field(default_factory=list)
    count: int = 0

    def next(self) -> int:
        self.count += 1
        return self.count

    def path(self, number: int) -> Path:
        """Return a free path: one that another had, if there is one."""
        free = [each.top for each in self.gone if not each.top.exists()]
        return free[number % len(free)] if free and number % 3 else self.place / f"r{self.next()}"

    def pick(self, number: int) -> Repository:
        if not self.all:
            self.init(number)
        return self.all[number % len(self.all)]

    def is_alone(self, one: Repository) -> bool:
        return sum(each.line is one.line for each in (*self.all, *self.gone)) == 1

    # ------------------------------------------------------------ steps
    def folder(self, number: int) -> None:
        top = self.path(number)
        top.mkdir()
        self.all.append(Repository(top, is_plain=True))

    def init(self, number: int) -> None:
        plain = [each for each in self.all if each.is_plain]
        one = plain[0] if plain else Repository(self.path(number))
        begun(one.top)
        one.is_plain = False
        if not plain:
            self.all.append(one)

    def commit(self, number: int) -> None:
        one = self.pick(number)
        if not one.is_plain:
            amends = one.is_committed and not one.trees and self.is_alone(one)
            git(one.top, "commit", "-q", "--allow-empty", "-m", f"{self.next()}",
                *(["--amend"] if amends else []))  # fmt: skip
            one.is_committed = True

    def remote(self, number: int) -> None:
        one = self.pick(number)
        if not (one.is_plain or one.remote) and self.is_alone(one):
            one.remote = f"ana/r{self.next()}"
            remote(one.top, one.remote)

    def save(self, number: int) -> None:
        one, text = self.pick(number), f"The harbour has the number {self.next()}."
        one.statements.add(text)
        save(Path(self.memory.home), [one.top, *one.trees][number % (1 + len(one.trees))], text)

    def rename(self, number: int) -> None:
        one = self.pick(number)
        if not one.is_plain:
            self.gone.append(Repository(one.top))  # its path is free for another one
            one.top = one.top.rename(self.path(0))
            if one.trees:
                git(one.top, "worktree", "repair")

    def clone(self, number: int) -> None:
        one = self.pick(number)
        if one.is_committed and (one.remote or not one.statements or number % 2):
            copy = Repository(self.path(number), one.line, is_committed=True, remote=one.remote)
            git(self.place, "clone", "-q", str(one.top), str(copy.top))
            if one.remote:
                git(copy.top, "remote", "set-url", "origin", f"git@github.com:{one.remote}.git")
            self.all.append(copy)

    def worktree(self, number: int) -> None:
        one = self.pick(number)
        if one.is_committed:
            tree = self.place / f"tree{self.next()}"
            git(one.top, "worktree", "add", "-q", str(tree))
            one.trees.append(tree)

    def delete(self, number: int) -> None:
        one = self.pick(number)
        if not one.is_plain:
            for each in (one.top, *one.trees):
                shutil.rmtree(each)
            self.all.remove(one)
            self.gone.append(one)

    def check(self) -> None:
        for one in self.all:
            kin = [each for each in (*self.all, *self.gone) if each.line is one.line]
            for folder in (one.top, *one.trees):
                found = seen(self.memory, folder)
                assert one.statements <= found
                assert found <= set().union(*(each.statements for each in kin))


VERBS = ["folder", "init", "init", "commit", "commit", "remote", "save", "save", "save"]
VERBS += ["rename", "clone", "worktree", "delete"]


@settings(max_examples=max(10, settings().max_examples // 4))
@given(st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 7)), min_size=4, max_size=14))
def test_memories_stay_with_their_repository_and_reach_no_other(
    steps: list[tuple[str, int]],
) -> None:
    with TemporaryDirectory() as folder, perdure.open(home=Path(folder, "home")) as memory:
        world = World(Path(folder), memory)
        for verb, number in steps:
            getattr(world, verb)(number)
        world.check()
