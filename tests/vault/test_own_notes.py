"""What people write into the notes of their vault is understood as their editor shows it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import perdure
from perdure import Memory
from perdure.app.migration import change_layout
from perdure.app.setup import init_home
from perdure.dataclass import replace
from perdure.errors import AccessRefusedError
from perdure.model import Role
from perdure.surfaces.cli import cli
from tests.surfaces.terminals import at_a_terminal


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(vault: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    home = vault.parent / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[storage]\nbackend = "vault"\nlayout = "notes"\n[storage.vault]\npath = "{vault}"\n'
    )
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    with perdure.open() as opened:
        yield opened


def write(vault: Path, name: str, text: str) -> None:
    path = vault / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def found(memory: Memory, query: str) -> list[str]:
    return [hit.uri.removeprefix("ctx://local/resources/") for hit in memory.recall(query).hits]


# ---------------------------------------------------------------- properties
@pytest.mark.parametrize("query", ["kohlrabi handbook", "turnip cabbage", "brassica"])
def test_recall_finds_a_note_by_its_properties(memory: Memory, vault: Path, query: str) -> None:
    lines = "title: Kohlrabi Handbook\naliases: [Turnip Cabbage]\ntags: [brassica]\n"
    write(vault, "n1.md", f"---\n{lines}---\n# Introduction\n\nSow it in spring.\n")

    hit = memory.recall(query).hits[0]

    assert (hit.uri, hit.title) == ("ctx://local/resources/n1", "Kohlrabi Handbook")


def test_recall_finds_a_memory_by_its_aliases_and_the_name_of_its_file(
    memory: Memory, vault: Path
) -> None:
    memory.save("Likes small kangaroos.", category="preference", slug="animals")
    memory.save("Works at night.", category="preference", slug="hours")
    assert found(memory, "quokkas") == []

    file = vault / "Perdure/Preferences/Animals.md"
    file.write_text(file.read_text().replace("---\n", "---\naliases: [Setonix]\n", 1))
    hours = vault / "Perdure/Preferences/Hours.md"
    hours.rename(hours.with_name("Quokkas are the best.md"))

    [by_name], [by_alias] = memory.recall("quokkas").hits, memory.recall("setonix").hits
    assert by_name.uri.endswith("/preference/hours")
    assert by_alias.uri.endswith("/preference/animals")


def test_a_note_of_properties_alone_is_found(memory: Memory, vault: Path) -> None:
    write(vault, "Dune.md", "---\nauthor: Frank Herbert\nrating: 5\n---\n")
    write(vault, "n2.md", '---\ntitle: "Chard"\naliases:\n  - "Chard"\n---\n')

    hit = memory.recall("herbert").hits[0]

    assert (hit.title, "author: Frank Herbert" in hit.snippet) == ("Dune", True)
    assert found(memory, "chard") == ["n2"]


def test_names_of_a_note_are_bounded_in_the_index(memory: Memory, vault: Path) -> None:
    aliases = "".join(f"  - alias{number:04}\n" for number in range(1_000))
    write(vault, "n3.md", f"---\naliases:\n{aliases}---\nKale.\n")

    assert found(memory, "alias0001") == ["n3"]
    assert found(memory, "alias0999") == []


# ---------------------------------------------------------------- dates
@pytest.mark.parametrize("name", ["created", "date"])
@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("2026-03-05T10:11:12", "2026-03-05T10:11:12+00:00"),
        ("2026-03-05T10:11", "2026-03-05T10:11:00+00:00"),
        ("2026-03-05 10:11", "2026-03-05T10:11:00+00:00"),
        ('"2026-03-05 10:11"', "2026-03-05T10:11:00+00:00"),
        ("2026-03-05T10:11+02:00", "2026-03-05T08:11:00+00:00"),
    ],
)
def test_a_note_has_the_time_of_its_properties(
    memory: Memory, vault: Path, name: str, said: str, date: str
) -> None:
    write(vault, "n1.md", f"---\n{name}: {said}\n---\nKale.\n")

    hit = memory.recall("kale").hits[0]

    assert hit.date is not None
    assert hit.date.isoformat() == date


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("", "20260305"),
        ("", "202603051011 Kale"),
        ("", "2026-03-05 Kale"),
        ("", "Journal/2026/03/05"),
        ('{"format": "DD-MM-YYYY"}', "05-03-2026"),
        ('{"format": "YYYY/MM/DD", "folder": "Daily"}', "Daily/2026/03/05"),
        (
            '{"format": "YYYY/MM-MMMM/[day] D.M.YYYY", "folder": "/Daily/"}',
            "Daily/2026/03-March/day 5.3.2026",
        ),
    ],
)
def test_a_daily_note_has_the_day_of_its_name(
    memory: Memory, vault: Path, settings: str, path: str
) -> None:
    if settings:
        write(vault, ".obsidian/daily-notes.json", settings)
    write(vault, f"{path}.md", "Kale.\n")

    hit = memory.recall("kale").hits[0]

    assert hit.date is not None
    assert hit.date.isoformat() == "2026-03-05T00:00:00+00:00"


@pytest.mark.parametrize("path", ["20261305", "2026/03/05 Kale", "12345678901", "Room 20260305x"])
def test_numbers_that_are_not_a_day_give_no_date(memory: Memory, vault: Path, path: str) -> None:
    write(vault, ".obsidian/daily-notes.json", '{"format": ["("]}')
    write(vault, f"{path}.md", "Kale.\n")

    assert memory.recall("kale").hits[0].date is None


@pytest.mark.parametrize(
    "text", ["Likes kale.\n", "---\nid: preference/kale\ncreated: [\n---\nLikes kale.\n"]
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_memory_that_does_not_say_when_it_began_is_not_of_1970(
    memory: Memory, vault: Path, text: str, *, is_known: bool
) -> None:
    write(vault, "Perdure/Preferences/Kale.md", text)
    if is_known:
        memory.recall("kale")

    memory.write("preference/kale", "Likes kale and chard.", replace=True)

    first = memory.history("preference/kale")[0]
    assert memory.read("preference/kale").created_at.timestamp() == first.time / 1000
    assert "1970" not in (vault / "Perdure/Preferences/Kale.md").read_text()


# ---------------------------------------------------------------- links
def test_a_link_to_a_memory_that_moved_has_the_name_of_its_file(
    memory: Memory, vault: Path
) -> None:
    memory.save("Prefers tabs.", category="preference", slug="tabs")
    memory.save("Uses vim, see [[tabs]].", category="habit", slug="editor")

    memory.move("preference/tabs", "style/how-to-indent")

    assert memory.read("habit/editor").content == "Uses vim, see [[How to indent|tabs]]."
    assert [*vault.rglob("How to indent.md")]
    assert memory.lint().findings == []


def test_a_link_to_one_of_two_files_with_a_name_says_the_category(
    memory: Memory, vault: Path
) -> None:
    memory.save("Prefers tabs.", category="preference", slug="tabs")
    memory.save("Tabs of the browser.", category="browser", slug="open-tabs")
    memory.save("Uses vim, see [[tabs]].", category="habit", slug="editor")

    memory.move("preference/tabs", "style/open-tabs")

    assert memory.read("habit/editor").content == "Uses vim, see [[style/open-tabs|tabs]]."


# ---------------------------------------------------------------- size and endings
def test_a_long_note_is_memory_to_its_end(memory: Memory, vault: Path) -> None:
    write(vault, "Long.md", "# Long\n\n" + "Kale and chard.\n\n" * 10_000 + "Kohlrabi ends it.\n")

    hit = memory.recall("kohlrabi").hits[0]

    assert "Kohlrabi ends it." in hit.snippet
    assert len(memory.read("resources/Long").content) > 160_000


def test_the_ending_of_a_note_may_be_in_capitals(memory: Memory, vault: Path) -> None:
    write(vault, "Beds/Chard.MD", "Chard grows here.\n")

    assert found(memory, "chard") == ["Beds/Chard"]


# ---------------------------------------------------------------- the other layout
def test_a_vault_with_notes_changes_its_layout_and_back(memory: Memory, vault: Path) -> None:
    for number in range(8):
        write(vault, f"Beds/Bed {number}.md", f"Bed {number} has kale.\n")
    memory.save("Waters the kale in the morning.", category="preference", slug="water")
    assert len(memory.recall("kale").hits) == 9
    memory.close()
    environ = dict(os.environ)
    files = {path: path.read_bytes() for path in vault.rglob("*.md") if "Beds" in str(path)}

    away = change_layout(environ, "agfs")
    with perdure.open() as agfs:
        assert found(agfs, "kale") == ["ctx://local/users/ana/memories/preference/water"]
        assert not agfs.repair().findings
        reasons = [each.reason for each in agfs.history("resources/Beds/Bed 1")]
    back = change_layout(environ, "notes")
    with perdure.open() as again:
        assert len(again.recall("kale").hits) == 9
        assert not again.repair().findings
        assert again.read("resources/Beds/Bed 1").content == "Bed 1 has kale.\n"

    assert (away.notes, back.notes) == (8, 8)
    assert reasons == ["", "not memory in the layout agfs"]
    assert 'layout = "notes"' in (vault.parent / "home/config.toml").read_text()
    assert {path: path.read_bytes() for path in files} == files


def test_who_does_not_agree_keeps_the_layout(memory: Memory, vault: Path) -> None:
    write(vault, "Kale.md", "Kale.\n")
    memory.close()

    def refuse(notes: int) -> None:
        raise KeyboardInterrupt(notes)

    with pytest.raises(KeyboardInterrupt, match="1"):
        change_layout(dict(os.environ), "agfs", refuse)
    with perdure.open() as again:
        assert found(again, "kale") == ["Kale"]


# ---------------------------------------------------------------- another machine
def test_the_owner_of_a_vault_is_the_same_on_a_machine_with_another_login(
    memory: Memory, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.save("Waters the kale in the morning.", category="preference", slug="water")
    memory.close()
    synced, home = vault.parent / "synced", vault.parent / "other"
    shutil.copytree(vault, synced)
    for name in ("USER", "LOGNAME"):
        monkeypatch.setenv(name, "bob")
    monkeypatch.setenv("PERDURE_HOME", str(home))

    begun = init_home(dict(os.environ), vault=str(synced))
    with perdure.open(user=None) as other:
        kale = other.briefing().text
        other.save("Harvests chard at noon.", category="preference", slug="harvest")

    assert (("user",) in begun.changed, begun.config.user) == (True, "ana")
    assert "kale" in kale
    assert (synced / "Perdure/Preferences/Harvest.md").is_file()
    assert init_home(dict(os.environ), vault=str(synced)).changed == ()


# ---------------------------------------------------------------- verbs that do not change it
def test_a_note_is_refused_with_its_reason_to_any_caller(memory: Memory, vault: Path) -> None:
    write(vault, "Kale.md", "Kale.\n")
    memory.recall("kale")
    agent = memory.for_caller(replace(memory.caller, role=Role.MEMBER))

    for refused in (
        lambda: memory.deletable("resources/Kale"),
        lambda: agent.deletable("resources/Kale"),
        lambda: agent.forget("resources/Kale"),
        lambda: memory.restore("resources/Kale", "2020-01-01"),
    ):
        with pytest.raises(AccessRefusedError, match=r"'Kale\.md' is a note of its owner's.*--at"):
            refused()
    assert not memory.rewind("2020-01-01", "resources").steps


def test_relations_of_a_new_note_are_found(memory: Memory, vault: Path) -> None:
    memory.save("Waters the kale.", category="preference", slug="water")
    write(vault, "New.md", "Kale, as [[Newer]] says.\n")
    write(vault, "Newer.md", "More kale.\n")

    edge = memory.relate("preference/water", "resources/Newer", "depends_on")

    assert edge.to_uri == "ctx://local/resources/Newer"
    assert [each.to_uri for each in memory.relations("resources/New").outgoing] == [edge.to_uri]


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_store_that_is_adopted_elsewhere_is_the_configured_one(
    memory: Memory, vault: Path, *, is_gone: bool
) -> None:
    memory.save("Waters the kale.", category="preference", slug="water")
    memory.close()
    moved = vault.parent / "moved"
    shutil.copytree(vault, moved)
    if is_gone:
        shutil.rmtree(vault)

    reported = CliRunner().invoke(cli, ["store", "adopt", str(moved)])

    assert "the config now names this folder" in reported.output
    assert str(moved) in (vault.parent / "home/config.toml").read_text()
    with perdure.open() as again:
        assert again.recall("kale").hits


def test_the_first_index_shows_its_progress_at_a_terminal(vault: Path) -> None:
    for number in range(30):
        write(vault, f"Bed {number}.md", f"Bed {number} has kale.\n")
    home = vault.parent / "home"
    home.mkdir()

    _, begun = at_a_terminal(home, "init", "--vault", str(vault))
    (home / ".perdure/config.toml").rename(home / "config.toml")
    _, again = at_a_terminal(home, "recall", "kale", PERDURE_HOME=str(home))
    _, third = at_a_terminal(home, "recall", "kale", PERDURE_HOME=str(home))

    assert "indexing" in begun
    assert ("indexing" in again, "Bed " in again) == (True, True)
    assert ("indexing" in third, "Bed " in third) == (False, True)


def test_lint_names_a_note_that_git_could_not_merge(memory: Memory, vault: Path) -> None:
    write(vault, "Kale.md", "Kale.\n<<<<<<< HEAD\nGreen.\n=======\nRed.\n>>>>>>> other\n")
    write(vault, "Code.md", "Heading\n=======\n\n<<<<<<< shows where it is.\n")
    memory.recall("kale")

    problems = [(each.uri, each.line) for each in memory.lint().findings]

    assert problems == [("ctx://local/resources/Kale", 2)]
