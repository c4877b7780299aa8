"""Projects are named, merged, split and moved; no statement is ever in two, or in the wrong one."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from perdure import Memory, ProjectError
from perdure.app import import_memory
from perdure.harness.project import identity_at, resolve_project
from perdure.model.project_aliases import ProjectAliases, ProjectIdentity
from tests.engine.killing import killed
from tests.harness.conftest import git

pytestmark = pytest.mark.usefixtures("agfs")

ASKED = [{"role": "user", "content": "Always moor the harbour boats before noon."}]


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", str(folder))
    if remote:
        git(folder, "remote", "add", "origin", f"git@github.com:{remote}.git")
    return folder


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home") as opened:
        yield opened


def save(home: Path, folder: Path, text: str) -> None:
    with perdure.open(home=home, project=folder) as memory:
        memory.save(text, category="decision", slug=f"d{abs(hash(text))}")


def texts_in(memory: Memory, project: str) -> set[str]:
    """Return what a list and a recall have of a project: both must have the same."""
    listed = {entry.node.content for entry in memory.list(project=project) if entry.node}
    found = memory.recall("harbour", project=project, projects="own", top_k=50).hits
    nodes = [memory.read(hit.uri) for hit in found if hit.project]
    recalled = {node.content for node in nodes if not node.place.session}
    assert recalled == listed
    return listed


def counts(memory: Memory) -> dict[str, tuple[int, int]]:
    return {each.name: (each.sessions, each.memories) for each in memory.projects.list()}


# ---------------------------------------------------------------- what becomes of repositories
def test_a_repository_that_gets_a_remote_is_the_same_project(
    memory: Memory, tmp_path: Path
) -> None:
    top = repository(tmp_path / "a")
    save(tmp_path / "home", top, "The harbour has a wall.")
    before = memory.projects.at(str(top))

    git(top, "remote", "add", "origin", "git@github.com:ana/harbour.git")

    assert memory.projects.at(str(top)) == before
    save(tmp_path / "home", top, "The harbour has a crane.")
    assert texts_in(memory, before) == {"The harbour has a wall.", "The harbour has a crane."}
    assert memory.projects.at(str(top)) == before
    assert [each.name for each in memory.projects.list()] == [before]


def test_a_fork_with_another_remote_is_another_project(memory: Memory, tmp_path: Path) -> None:
    top = repository(tmp_path / "a")
    save(tmp_path / "home", top, "The harbour has a wall.")
    fork = shutil.copytree(top, tmp_path / "fork")
    git(top, "remote", "add", "origin", "git@github.com:ana/harbour.git")
    save(tmp_path / "home", top, "The harbour has a crane.")  # it took the first name over
    save(tmp_path / "home", repository(tmp_path / "b"), "The harbour has a mole.")

    git(fork, "remote", "add", "origin", "git@github.com:ben/harbour.git")

    assert memory.projects.at(str(fork)) == "ben-harbour" != memory.projects.at(str(top))


def test_repositories_of_one_name_stay_two_and_copies_and_worktrees_are_one(
    memory: Memory, tmp_path: Path
) -> None:
    one, other = repository(tmp_path / "x" / "api"), repository(tmp_path / "y" / "api")
    git(one, "worktree", "add", "-q", str(tmp_path / "tree"))
    shutil.copytree(one, tmp_path / "copy")
    at = memory.projects.at

    assert at(str(one)) != at(str(other))
    assert at(str(one)) == at(str(tmp_path / "tree")) == at(str(tmp_path / "copy"))
    one.rename(tmp_path / "renamed")
    assert at(str(tmp_path / "renamed")) == at(str(tmp_path / "copy"))


def test_the_home_and_temporary_folders_are_no_project_to_move_to(
    memory: Memory, tmp_path: Path
) -> None:
    save(tmp_path / "home", repository(tmp_path / "a", "ana/a"), "The harbour has a wall.")

    with pytest.raises(ProjectError, match="does not belong to a project"):
        memory.projects.move("ana-a", "/tmp")  # noqa: S108 - it is only named
    with pytest.raises(ProjectError, match="does not belong to a project"):
        memory.projects.move("ana-a", os.path.expanduser("~"))  # noqa: PTH111 - a text


# ---------------------------------------------------------------- the verbs
def test_a_merge_is_seen_at_once_and_undone_to_the_last_statement(
    memory: Memory, tmp_path: Path
) -> None:
    one, two = repository(tmp_path / "a", "ana/one"), repository(tmp_path / "b", "ana/two")
    for folder, thing in ((one, "wall"), (two, "crane")):
        save(tmp_path / "home", folder, f"The harbour has a {thing}.")
        memory.commit_session(ASKED, session_id=thing, project=memory.projects.at(str(folder)))
    before = counts(memory)
    written = memory.read(next(e.uri for e in memory.list(project="ana-one"))).updated_at

    done = memory.projects.merge("ana-one", "ana-two")

    assert (done.sessions, done.memories) == before["ana-one"]
    assert {"The harbour has a wall.", "The harbour has a crane."} <= texts_in(memory, "ana-two")
    assert memory.projects.at(str(one)) == memory.projects.at(str(two)) == "ana-two"
    assert texts_in(memory, "ana-one") == texts_in(memory, "ana-two")
    assert {each.project for each in memory.sessions()} == {"ana-two"}
    assert "noon" in memory.for_caller(project="ana-two").briefing().text
    assert min(e.node.updated_at for e in memory.list(project="ana-two") if e.node) <= written

    memory.projects.split("ana-two", "ana-one")

    assert counts(memory) == before
    assert memory.projects.at(str(one)) == "ana-one"
    assert "The harbour has a crane." not in texts_in(memory, "ana-one")


def test_an_old_name_is_an_alias_and_a_used_name_is_refused(memory: Memory, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "a", "ana/one"), repository(tmp_path / "b", "ana/two")
    save(tmp_path / "home", one, "The harbour has a wall.")
    save(tmp_path / "home", two, "The harbour has a crane.")

    memory.projects.rename("ana-one", "quay")

    assert memory.projects.at(str(one)) == "quay"
    assert texts_in(memory, "quay") == texts_in(memory, "ana-one") == {"The harbour has a wall."}
    with pytest.raises(ProjectError, match="is another project"):
        memory.projects.rename("quay", "ana-two")
    with pytest.raises(ProjectError, match="there is no project 'pier'"):
        memory.projects.rename("pier", "dock")
    memory.projects.rename("quay", "ana-one")
    assert memory.projects.at(str(one)) == "ana-one"
    with pytest.raises(ProjectError, match="is 'ana-one' already"):
        memory.projects.merge("quay", "ana-one")


def test_sessions_are_split_off_with_what_rests_on_them_alone(memory: Memory) -> None:
    for name, text in (
        ("s1", "From now on we always deploy the harbour on Mondays."),
        ("s2", "From now on we never paint the harbour wall red."),
    ):
        messages = [{"role": "user", "content": text}]
        memory.commit_session(messages, session_id=name, project="one")
    memory.remember(
        "The harbour is repaired in May.",
        kind="decision",
        project="one",
        evidence=[perdure.Citation("s1", 0, "harbour on Mondays")],
        session_id="s1",
    )
    for session, quote in (("s1", "deploy the harbour"), ("s2", "harbour wall")):
        memory.remember(
            "The harbour opens in June.",
            kind="decision",
            project="one",
            evidence=[perdure.Citation(session, 0, quote)],
            session_id=session,
        )
    memory.save("The harbour is old.", category="note", slug="old", project="one")

    done = memory.projects.split("one", "two", sessions=["s1"])

    assert {each.id: each.project for each in memory.sessions()} == {"s1": "two", "s2": "one"}
    assert "The harbour is old." in texts_in(memory, "one")
    assert done.sessions == 1
    assert any("May" in text for text in texts_in(memory, "two"))
    assert not any("May" in text for text in texts_in(memory, "one"))
    assert any("June" in text for text in texts_in(memory, "one"))
    assert [memory.read(uri).content for uri in done.stayed] == ["- The harbour opens in June.\n"]
    with pytest.raises(perdure.InvalidValueError, match="no session 's1' is in 'one'"):
        memory.projects.split("one", "three", sessions=["s1"])
    with pytest.raises(ProjectError, match="was not merged into"):
        memory.projects.split("one", "three")


def test_a_folder_of_a_repository_becomes_a_project(memory: Memory, tmp_path: Path) -> None:
    top = repository(tmp_path / "mono", "ana/mono")
    part = top / "packages" / "api"
    part.mkdir(parents=True)
    for name, folder in (("top", top), ("part", part)):
        memory.commit_session(ASKED, session_id=name, project="ana-mono")
        memory.write(f"sessions/{name}/messages", metadata={"cwd": str(folder)}, replace=True)

    done = memory.projects.split("ana-mono", "api", folder=str(part))

    assert done.sessions == 1
    assert {each.id: each.project for each in memory.sessions()} == {
        "top": "ana-mono",
        "part": "api",
    }
    (part / "deep").mkdir()
    assert memory.projects.at(str(part / "deep")) == "api"
    assert memory.projects.at(str(top / "packages")) == "ana-mono"
    copy = shutil.copytree(top, tmp_path / "copy")
    assert memory.projects.at(str(copy / "packages" / "api")) == "api"
    with pytest.raises(ProjectError, match="or all of it"):
        memory.projects.split("ana-mono", "rest", folder=str(top))


def test_a_project_follows_a_repository_to_another_remote(memory: Memory, tmp_path: Path) -> None:
    top = repository(tmp_path / "a", "ana/old")
    save(tmp_path / "home", top, "The harbour has a wall.")
    git(top, "remote", "set-url", "origin", "git@github.com:ben/new.git")
    save(tmp_path / "home", top, "The harbour has a crane.")

    memory.projects.move("ana-old", str(top))

    assert memory.projects.at(str(top)) == "ana-old"
    assert len(texts_in(memory, "ana-old")) == 2
    assert memory.projects.move("ana-old", str(top)).memories == 0
    (top / "part").mkdir()
    with pytest.raises(ProjectError, match="a part of a repository"):
        memory.projects.move("ana-old", str(top / "part"))


def test_archived_memories_stay_archived_and_come_back_to_the_merged_project(
    memory: Memory,
) -> None:
    memory.save("The harbour has a wall.", category="decision", slug="wall", project="one")
    memory.save("The harbour has a crane.", category="decision", slug="crane", project="two")
    memory.archive("decision/wall")

    memory.projects.merge("one", "two")

    assert texts_in(memory, "two") == {"The harbour has a crane."}
    memory.unarchive("decision/wall")
    assert memory.read("decision/wall").project == "two"


def test_what_is_written_under_an_old_name_is_found(memory: Memory) -> None:
    """A process that was started before a merge may not know of it."""
    memory.save("The harbour has a wall.", category="decision", slug="wall", project="one")
    memory.save("The harbour has a crane.", category="decision", slug="crane", project="two")
    memory.projects.merge("one", "two")
    memory.save("The harbour is old.", category="note", slug="old", metadata={"project": "one"})

    assert "The harbour is old." in texts_in(memory, "two")
    assert len(texts_in(memory, "one")) == 3


def test_a_member_changes_only_their_own(memory: Memory) -> None:
    ben = memory.for_caller(user="ben")
    for each in (memory, ben):
        each.save("The harbour has a wall.", category="decision", slug="wall", project="one")
        each.save("The harbour has a crane.", category="decision", slug="crane", project="two")

    ben.projects.merge("one", "two")

    assert counts(ben) == {"two": (0, 2)}
    assert memory.read("decision/wall").project == "one"
    assert memory.projects.aliases() == ProjectAliases()


def test_the_table_outlives_an_export_and_a_lost_index(memory: Memory, tmp_path: Path) -> None:
    memory.save("The harbour has a wall.", category="decision", slug="wall", project="one")
    memory.save("The harbour has a crane.", category="decision", slug="crane", project="two")
    memory.projects.merge("one", "two")
    memory.export(tmp_path / "export", everything=True)
    memory.index.rebuild()

    assert len(texts_in(memory, "one")) == 2
    environ = {**os.environ, "PERDURE_HOME": str(tmp_path / "other")}
    import_memory(environ, tmp_path / "export")
    with perdure.open(home=tmp_path / "other") as other:
        assert len(texts_in(other, "one")) == 2
        other.projects.split("two", "one")
        assert texts_in(other, "one") == {"The harbour has a wall."}


def test_killed_anywhere_a_merge_is_done_or_not(tmp_path: Path) -> None:
    home = tmp_path / "home"

    def begin() -> None:
        shutil.rmtree(home, ignore_errors=True)
        with perdure.open(home=home) as memory:
            memory.save("The harbour has a wall.", category="decision", slug="w", project="one")
            memory.save("The harbour has a mole.", category="decision", slug="m", project="one")
            memory.save("The harbour has a crane.", category="decision", slug="c", project="two")

    def merge() -> None:
        with perdure.open(home=home) as memory:
            memory.projects.merge("one", "two")

    begin()
    calls = killed(merge, 0)
    seen = set()
    for after in range(1, calls + 1):
        begin()
        killed(merge, after)
        with perdure.open(home=home) as memory:
            found = counts(memory), memory.projects.aliases().project("one")
        assert found in (({"one": (0, 2), "two": (0, 1)}, "one"), ({"two": (0, 3)}, "two"))
        seen.add(found[1])
    assert seen == {"one", "two"}


# ---------------------------------------------------------------- the table
@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"projects": []}',
        '{"projects": {"a": "../b"}}',
        '{"projects": {"a": ""}}',
        '{"projects": {"a": "b", "b": "a"}}',
        '{"remotes": {"x": 1}}',
        '{"projects": {"/": "a"}}',
    ],
)
def test_a_table_that_cannot_be_understood_is_refused_by_name(memory: Memory, text: str) -> None:
    memory.save("The harbour has a wall.", category="decision", slug="wall", project="one")
    key = memory.key("decision/wall").partition("/memories/")[0]
    Path(memory.home, "memory", key, ".projects").write_text(text, encoding="utf-8")

    with pytest.raises(ProjectError, match=r"\.projects.*Fix: correct it"):
        memory.projects.at("/somewhere")


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")))
def test_every_table_leads_to_one_project_or_is_refused(projects: dict[str, str]) -> None:
    try:
        aliases = ProjectAliases.parse(ProjectAliases(projects).text())
    except ProjectError:
        return
    for name in "abcdef":
        found = aliases.project(name)
        assert aliases.project(found) == found
        assert (name == found) or name in aliases.names(found)


# ---------------------------------------------------------------- random sequences
@dataclass
class World:
    """What should be: the repositories, the projects, and the project of each statement."""

    place: Path
    memory: Memory
    folders: list[Path] = field(default_factory=list)
    remotes: dict[Path, str] = field(default_factory=dict)
    roots: dict[Path, int] = field(default_factory=dict)
    home: dict[object, str] = field(default_factory=dict)
    """The project of each identity that was written under: a remote, or a root."""
    claimed: set[int] = field(default_factory=set)
    statements: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def next(self) -> int:
        self.made += 1
        return self.made

    def init(self, _: int) -> None:
        folder = repository(self.place / str(self.next()) / "api")
        self.folders.append(folder)
        self.roots[folder] = self.made

    def pick(self, number: int) -> Path:
        if not self.folders:
            self.init(0)
        return self.folders[number % len(self.folders)]

    def clone(self, number: int) -> None:
        folder = self.pick(number)
        copy = shutil.copytree(folder, self.place / str(self.next()) / "api")
        self._follows(folder, copy)

    def rename(self, number: int) -> None:
        folder = self.pick(number)
        moved = folder.rename(self.place / f"moved{self.next()}")
        self._follows(folder, moved)
        self.folders.remove(folder)

    def _follows(self, folder: Path, other: Path) -> None:
        self.folders.append(other)
        self.roots[other] = self.roots[folder]
        if folder in self.remotes:
            self.remotes[other] = self.remotes[folder]

    def remote(self, number: int) -> None:
        folder = self.pick(number)
        name = f"ana/r{self.next()}"
        verb = "set-url" if folder in self.remotes else "add"
        git(folder, "remote", verb, "origin", f"git@github.com:{name}.git")
        self.remotes[folder] = name

    def save(self, number: int) -> None:
        folder, text = self.pick(number), f"The harbour has the number {self.next()}."
        project = self.expected(folder)
        if (remote := self.remotes.get(folder)) is None:
            self.home[self.roots[folder]] = project
        else:
            if remote not in self.home and project == self.home.get(self.roots[folder]):
                self.claimed.add(self.roots[folder])
            self.home[remote] = project
        self.statements[text] = project
        save(Path(self.memory.home), folder, text)

    def expected(self, folder: Path) -> str:
        root, remote = self.roots[folder], self.remotes.get(folder)
        if remote is not None and remote in self.home:
            return self.home[remote]
        if remote is None or (root in self.home and root not in self.claimed):
            return self.home.get(root) or identity_at(str(folder)).slug
        return remote.replace("/", "-")

    def merge(self, number: int) -> None:
        known = sorted(set(self.statements.values()))
        if len(known) > 1:
            old, new = known[number % len(known)], known[(number + 1) % len(known)]
            self.memory.projects.merge(old, new)
            for each in (self.statements, self.home):
                each.update({key: new for key, value in each.items() if value == old})  # type: ignore[misc]

    def check(self) -> None:
        projects = set(self.statements.values())
        for folder in self.folders:
            assert self.memory.projects.at(str(folder)) == self.expected(folder)
        for project in projects:
            wanted = {text for text, each in self.statements.items() if each == project}
            assert texts_in(self.memory, project) == wanted
        assert sum(each.memories for each in self.memory.projects.list()) == len(self.statements)


STEPS = st.tuples(
    st.sampled_from(["init", "clone", "rename", "remote", "save", "save", "save", "merge"]),
    st.integers(0, 7),
)


@settings(max_examples=max(6, settings().max_examples // 4))
@given(st.lists(STEPS, min_size=4, max_size=14))
def test_every_statement_is_in_one_project_and_changes_it_only_by_a_merge(
    steps: list[tuple[str, int]],
) -> None:
    with TemporaryDirectory() as folder, perdure.open(home=Path(folder, "home")) as memory:
        world = World(Path(folder), memory)
        for verb, number in steps:
            getattr(world, verb)(number)
        world.check()


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_a_project_is_found_by_its_repository_and_never_by_the_name_of_a_folder(
    name: str, within: str
) -> None:
    aliases = ProjectAliases({"ana-one": "quay", "ana-one/api": "api"})

    found = aliases.project(ProjectIdentity("ana-one", within))

    assert found == ("api" if within.split("/", maxsplit=1)[0] == "api" else "quay")
    assert aliases.project(ProjectIdentity("other", name)) == "other"
    assert aliases.project(ProjectIdentity("", name)) == ""


def test_resolving_twice_gives_the_same(tmp_path: Path) -> None:
    top = repository(tmp_path / "a")
    aliases = ProjectAliases().noted(identity_at(str(top)))

    assert resolve_project(str(top), None, aliases) == resolve_project(str(top), None, aliases)
    assert resolve_project(str(top), None, aliases).slug == identity_at(str(top)).slug
