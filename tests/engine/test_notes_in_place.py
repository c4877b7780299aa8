"""The notes that a user already has in a vault are memory where they lie."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Memory
from perdure.errors import AccessRefusedError, ConfigError, NodeNotFoundError
from perdure.frontmatter import NO_END

SOURDOUGH = """\
---
title: The sourdough
tags: [baking, bread]
aliases: [levain]
always_load: true
project: evil
kind: rule
created: 2026-02-03
---
# Feeding

Feed the starter with rye flour. See [[Oven]] and [the oven](Oven.md#heat).

> [!note] Callout
> $$ x^2 $$

| a | b |
|---|---|
| 1 | 2 |
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    files = {
        "Kitchen/Sourdough.md": SOURDOUGH,
        "Kitchen/Oven.md": "Heat it to 240 degrees.\n",
        "Daily/2026-03-02.md": "Baked two loaves, one burnt.\n",
        "Templates/Meeting.md": "Meeting with zebras\n",
        ".obsidian/templates.json": '{"folder": "Templates"}',
        ".trash/Old.md": "Old zebras\n",
        "Long.md": "word " * 401_000,
        "Rule.md": "---\n" + "no end of a rule\n",
        "日本/ノート.md": "東京 is far.\r\n",
        "Kitchen/bread.png": "png",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (folder / "latin.md").write_bytes(b"caf\xe9")
    (folder / "loop").symlink_to(folder)
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


def found(memory: Memory, query: str) -> list[str]:
    return [hit.uri for hit in memory.recall(query).hits]


def test_recall_finds_notes_where_they_lie(memory: Memory, vault: Path) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}

    assert found(memory, "rye starter")[0] == "ctx://local/resources/Kitchen/Sourdough"
    assert found(memory, "loaves burnt")[0] == "ctx://local/resources/Daily/2026-03-02"
    assert found(memory, "東京")[0].startswith("ctx://local/resources/")
    assert found(memory, "zebras") == []
    assert {path: path.read_bytes() for path in before} == before
    assert memory.recall("rye starter").index_lag == 0


def test_a_note_is_read_to_the_letter(memory: Memory) -> None:
    memory.recall("rye")
    node = memory.read("resources/Kitchen/Sourdough")

    assert f"---\n{node.frontmatter}---\n{node.content}" == SOURDOUGH
    assert node.created_at.isoformat() == "2026-02-03T00:00:00+00:00"
    assert node.metadata["tags"] == ("baking", "bread")
    assert memory.read("resources/Daily/2026-03-02").metadata["date"] == "2026-03-02T00:00:00Z"
    assert memory.read("resources/Rule").content == "---\nno end of a rule\n"


def test_frontmatter_of_a_note_grants_nothing(memory: Memory) -> None:
    memory.recall("rye")
    node = memory.read("resources/Kitchen/Sourdough")

    assert node.project == ""
    assert node.declared("always_load") is None
    assert "rye" not in memory.briefing().text


def test_a_link_leads_to_a_note_by_its_name_or_path(memory: Memory, vault: Path) -> None:
    memory.recall("oven")
    (vault / "Daily/2026-03-04.md").write_text("Cleaned [[Kitchen/Oven#Heat|the oven]].\n")
    memory.recall("cleaned")

    edges = memory.relations("resources/Kitchen/Oven").incoming
    assert {edge.from_uri for edge in edges} == {
        "ctx://local/resources/Kitchen/Sourdough",
        "ctx://local/resources/Daily/2026-03-04",
    }


def test_no_verb_changes_a_note(memory: Memory, vault: Path) -> None:
    uri = "resources/Kitchen/Oven"
    memory.recall("oven")
    (vault / "Kitchen/Oven.md").write_text("Heat it to 250 degrees.\n")
    memory.recall("oven")
    first, _ = memory.history(uri)
    before = len(list(memory.log.entries()))

    for change in (
        lambda: memory.restore(uri, str(first.cid)),
        lambda: memory.write(uri, "Colder.", replace=True),
        lambda: memory.delete(uri),
        lambda: memory.archive(uri),
        lambda: memory.move(uri, "resources/elsewhere"),
        lambda: memory.relate(uri, "resources/Kitchen/Sourdough", "part_of"),
        lambda: memory.forget(uri),
    ):
        with pytest.raises(AccessRefusedError, match="note of its owner's"):
            change()
    assert (vault / "Kitchen/Oven.md").read_text() == "Heat it to 250 degrees.\n"
    assert len(list(memory.log.entries())) == before
    assert found(memory, "heat degrees")[0] == f"ctx://local/{uri}"


def test_an_edit_of_a_note_is_found_by_the_next_recall(memory: Memory, vault: Path) -> None:
    memory.recall("oven")
    before = memory.position
    (vault / "Kitchen/Oven.md").write_text("Heat it with a zeppelin.\n")
    (vault / "Kitchen/New.md").write_text("A quokka came by.\n")
    (vault / "Daily/2026-03-02.md").rename(vault / "Daily/2026-03-03.md")

    assert found(memory, "zeppelin")[0] == "ctx://local/resources/Kitchen/Oven"
    assert found(memory, "quokka")[0] == "ctx://local/resources/Kitchen/New"
    assert found(memory, "loaves burnt") == ["ctx://local/resources/Daily/2026-03-03"]
    assert len(memory.history("resources/Kitchen/Oven")) == 2
    assert "240" in memory.at(before).read("resources/Kitchen/Oven").content


def test_a_deleted_note_is_gone(memory: Memory, vault: Path) -> None:
    memory.recall("oven")
    (vault / "Kitchen/Oven.md").unlink()

    assert "ctx://local/resources/Kitchen/Oven" not in found(memory, "heat degrees")
    with pytest.raises(NodeNotFoundError):
        memory.read("resources/Kitchen/Oven")


def test_memories_lie_beside_the_notes(memory: Memory, vault: Path) -> None:
    memory.save("Prefers tabs.", category="preference", slug="indentation")

    assert (vault / "Perdure/Preferences/Indentation.md").is_file()
    assert memory.read("preference/indentation").content == "Prefers tabs."
    details = {each.uri: each.detail for each in memory.repair().findings}
    assert "UTF-8" in details.pop("ctx://local/resources/latin")
    assert ["too long" in each for each in details.values()] == [True]


def perdure_says(*words: str) -> str:
    ran = [str(Path(sys.executable).with_name("perdure")), *words]
    return subprocess.run(ran, capture_output=True, text=True, check=True).stdout


def test_a_note_without_a_date_shows_none(memory: Memory, vault: Path) -> None:
    rule = vault / "Perdure/Rules/Fridays.md"
    rule.parent.mkdir(parents=True)
    rule.write_text("Never deploy on Fridays.\n")
    (vault / "Perdure/Preferences").mkdir()
    (vault / "Perdure/Preferences/Tabs.md").write_text("---\ncreated: 2026-02-03\n---\nTabs.\n")
    assert {hit.date for hit in memory.recall("deploy fridays").hits} == {None}
    memory.close()

    assert "- Never deploy on Fridays. ~" in (briefing := perdure_says("briefing"))
    assert "6y" not in briefing  # which is how old something of 1970 would be
    for words in (
        ["recall", "heat degrees"],
        ["recall", "deploy fridays", "--json"],
        ["list", "pattern"],
        ["list", "resources/Kitchen", "--json"],
        ["read", "pattern/fridays", "--all"],
        ["read", "pattern/fridays", "--json"],
        ["why", "pattern/fridays"],
    ):
        assert "1970" not in perdure_says(*words), words
    assert "2026-02-03" in perdure_says("list", "preference")


def test_status_counts_notes_and_nothing_else(memory: Memory, vault: Path) -> None:
    memory.close()
    (vault / "latin.md").unlink()
    perdure_says("init")

    assert "edits     5 notes not indexed yet; the next recall does it" in perdure_says("status")
    perdure_says("recall", "rye")
    assert "edits     all indexed" in perdure_says("status")
    (vault / "Kitchen/bread.png").write_text("another png")
    assert json.loads(perdure_says("status", "--json"))["edits"]["unrecorded"] == 0


def test_what_its_owner_ignores_is_not_memory(memory: Memory, vault: Path) -> None:
    for number in range(30):
        (vault / f"Archive {number}.md").write_text(f"An old zebra, number {number}.\n")
    memory.save("Zebras are striped.", category="entity", slug="zebra")
    assert len(found(memory, "zebra")) > 1
    memory.close()
    config = vault.parent / "home/config.toml"
    before = config.read_text()
    config.write_text(before + '[vault]\nignore = ["Archive*", "/Kitchen/", "Perdure/", "*"]\n')

    with perdure.open() as opened:  # and that so many are gone is no loss
        assert found(opened, "zebra") == ["ctx://local/users/ana/memories/entity/zebra"]
        assert found(opened, "rye starter") == []
        assert opened.recall("zebra").hints == opened.recall("rye").hints
    config.write_text(before + '[vault]\nignore = ["*.tmp.md"]\n')
    with perdure.open() as opened:
        assert found(opened, "rye starter")
    config.write_text(before + '[vault]\nignore = ["!"]\n')
    with pytest.raises(ConfigError, match=r"ignore in .vault.*Fix"), perdure.open() as opened:
        opened.recall("rye")


def test_list_tree_and_read_notice_what_changed(memory: Memory, vault: Path) -> None:
    memory.save("Prefers tabs.", category="preference", slug="tabs")
    memory.list("resources")
    (vault / "Kitchen/Pan.md").write_text("Iron.\n")
    (vault / "Kitchen/Oven.md").unlink()
    (vault / "Perdure/Preferences/Tabs.md").rename(vault / "Perdure/Preferences/Indentation.md")

    assert memory.read("preference/tabs").content == "Prefers tabs."
    (vault / "Kitchen/Wok.md").write_text("Steel.\n")
    (kitchen,) = (each for each in memory.list("resources") if each.name == "resources/Kitchen")
    names = [each.name for each in kitchen.below]
    assert names == [f"resources/Kitchen/{each}" for each in ("Pan", "Sourdough", "Wok")]
    (vault / "Kitchen/Wok.md").rename(vault / "Kitchen/Big wok.md")
    assert "resources/Kitchen/Big wok" in str(memory.tree("/"))
    with pytest.raises(NodeNotFoundError):
        memory.read("resources/Kitchen/Wok")
    assert memory.warnings() == ""


def test_a_list_that_may_be_behind_says_so(memory: Memory, vault: Path) -> None:
    memory.recall("rye")
    for number in range(30):
        (vault / f"{number}.md").write_text(f"{number}\n")
    memory.list("resources")
    for number in range(30):
        (vault / f"{number}.md").unlink()

    memory.list("resources")
    assert "texts are gone" in memory.warnings()


def test_links_lead_to_the_only_note_of_that_name(memory: Memory, vault: Path) -> None:
    (vault / "Daily/Links.md").write_text(
        "[[oven]], [[Levain|it]], [rule](../Rule.md), [far](<../日本/ノート.md>), [no](https://a.b/Rule.md)\n"
        "`[[2026-03-02]]` [[Twice]]\n"
    )
    (vault / "Twice.md").write_text("Once.\n")
    (vault / "Kitchen/Twice.md").write_text("Twice.\n")
    (vault / "Kitchen/Guess.md").write_text("See [[Twice]] and [[Nowhere]].\n")
    (vault / "Deep/Er").mkdir(parents=True)
    (vault / "Deep/Er/Twice.md").write_text("[[Kitchen/Twice]]\n")
    (vault / "Twice.md").rename(vault / "Deep/Twice.md")
    memory.recall("rye")

    def led(name: str) -> set[str]:
        edges = memory.relations(f"resources/{name}").outgoing
        return {memory.name(edge.to_uri).removeprefix("resources/") for edge in edges}

    assert led("Daily/Links") == {"Kitchen/Oven", "Kitchen/Sourdough", "Rule", "日本/ノート"}
    assert led("Kitchen/Guess") == {"Kitchen/Twice"}  # which is beside it
    assert led("Deep/Er/Twice") == {"Kitchen/Twice"}
    incoming = memory.relations("resources/Kitchen/Sourdough").incoming
    assert [edge.from_uri for edge in incoming] == ["ctx://local/resources/Daily/Links"]


def test_a_conflict_copy_without_a_mark_is_not_a_note(memory: Memory, vault: Path) -> None:
    text = "Knead the dough for ten minutes, then let it rest in the fridge over night.\n"
    oven, rest = vault / "Kitchen/Dough.md", vault / "Kitchen/Dough 2.md"
    oven.write_text(text)
    rest.write_text(text)
    name = "ctx://local/resources/Kitchen/Dough"
    assert found(memory, "knead dough fridge") == [name]
    assert [each.path for each in memory.conflicts()] == ["Kitchen/Dough 2.md"]

    rest.write_text("Pizza dough wants a hot stone instead, and another flour.\n")
    assert {*found(memory, "dough")} == {name, f"{name}%202"}
    oven.write_text(rest.read_text())
    assert found(memory, "pizza dough stone") == [name]
    oven.unlink()
    assert found(memory, "pizza dough stone") == [f"{name}%202"]


def test_memories_with_numbers_are_not_copies(memory: Memory, vault: Path) -> None:
    for slug in ("python", "python-2"):
        memory.save("Use the newest Python, with a venv.", category="rule", slug=slug)
    path = next(vault.glob("Perdure/**/Python*2*.md"))
    path.rename(path.with_name("Python 2.md"))

    assert memory.recall("newest python").hits
    names = {each.name for each in memory.list("rule")}
    assert names == {"rule/python", "rule/python-2"}


def test_doctor_names_notes_that_are_not_memory(memory: Memory, vault: Path) -> None:
    (vault / "Kitchen/Oven 2.md").write_text((vault / "Kitchen/Oven.md").read_text())
    (vault / "Rule.sync-conflict-20260302-101500-ABCDEF7.md").write_text("Another.\n")
    (vault / "Kale\nbed.md").write_text("Kale.\n")

    messages = {check.message for check in memory.doctor().checks if check.name == "notes"}

    copies = "Kitchen/Oven 2.md, Rule.sync-conflict-20260302-101500-ABCDEF7.md"
    assert messages == {
        "1 too long to be memory: Long.md. Fix: split what has more than 2,000,000 characters",
        f"2 left as copies by sync: {copies}. Fix: `perdure conflicts list` shows them",
        "1 with names that can't be used: Kale\\nbed.md. Fix: rename them",
        f"'Rule.md': its {NO_END}",
        "1 links or devices, never followed: loop. Fix: none needed",
        "1 not UTF-8, so not memory: latin.md. Fix: save them as UTF-8",
    }


def test_init_says_what_it_found(memory: Memory, vault: Path) -> None:
    memory.close()
    output = perdure_says("init", "--vault", str(vault))
    report = json.loads(perdure_says("init", "--vault", str(vault), "--json"))

    assert "notes    5 notes are memory now" in output
    assert report["notes"] == 5
    assert report["others"] == {".png": 1, "too long": 1, "not UTF-8": 1, "link": 1}
    assert "1 too long to be memory: Long.md. Fix: split" in output


def test_a_memory_outside_of_its_folder_is_a_note_until_it_comes_back(
    memory: Memory, vault: Path
) -> None:
    memory.save("Never feed zebras.", category="pattern", slug="zebras")
    inside, outside = vault / "Perdure/Rules/Zebras.md", vault / "Kitchen/Zebras.md"
    assert inside.exists()
    memory.recall("zebras")
    inside.rename(outside)

    assert found(memory, "zebras") == ["ctx://local/resources/Kitchen/Zebras"]
    with pytest.raises(NodeNotFoundError):
        memory.read("pattern/zebras")
    with pytest.raises(AccessRefusedError):
        memory.write("resources/Kitchen/Zebras", "Feed them.", replace=True)
    assert "Never feed zebras." in outside.read_text()

    outside.rename(inside.parent.parent / "My zebras.md")

    assert [memory.name(uri) for uri in found(memory, "zebras")] == ["pattern/zebras"]
    memory.save("Feed zebras.", category="pattern", slug="zebras")
    contents = [version.cid for version in memory.history("pattern/zebras") if version.cid]
    assert contents[0] == contents[-2] != contents[-1]


def test_notes_that_are_memory_are_not_imported(
    memory: Memory, vault: Path, tmp_path: Path
) -> None:
    (vault / "Kitchen/New.md").write_text("Nobody recalled this.\n")
    (tmp_path / "link").symlink_to(vault)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Other.md").write_text("Of another folder.\n")

    for path, number in (
        (vault / "Kitchen", "3 notes are memory already"),
        (tmp_path / "link/Kitchen", "3 notes are memory already"),
        (vault / "Kitchen/Oven.md", "1 note is memory already"),
    ):
        report = memory.import_from(path)
        assert report.totals() == {}
        assert any(number in finding.what for finding in report.findings)
    assert not (vault / "Perdure/Resources").exists()
    assert memory.import_from(outside).totals()["documents"]["new"] == 1
    templates = memory.import_from(vault / "Templates")
    assert templates.totals()["documents"]["new"] == 1  # they are not memory


# ---------------------------------------------------------------- frontmatter that can't be read
HOSTILE = {
    "list": ("mood: [open", 3),
    "merges": ("a: &a {b: 1}\nc:\n  <<: *a", 4),
    "twice": ("mood: one\nmood: two", 3),
    "tab": ("mood:\n\t- one", 3),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_frontmatter_that_cannot_be_read_hides_nothing(
    name: str, memory: Memory, vault: Path
) -> None:
    lines, line = HOSTILE[name]
    memory.save("Prefers tabs.", category="preference", slug="indentation")
    (own,) = vault.rglob("Indentation.md")
    theirs = vault / "Zoo.md"
    theirs.write_text(f"---\n{lines}\n---\n# Zoo\n\nThe giraffe sleeps. [[Oven]]\n")
    own.write_text(own.read_text().replace("---\n", f"---\n{lines}\n", 1).replace("tabs", "llamas"))
    before = {path: path.read_bytes() for path in (own, theirs)}

    assert found(memory, "giraffe")[0] == "ctx://local/resources/Zoo"
    assert found(memory, "llamas")[0].endswith("preference/indentation")
    assert memory.read("preference/indentation").content == "Prefers llamas."
    assert lines in str(memory.read("preference/indentation").frontmatter)
    problems = [each for each in memory.lint().findings if each.code == "frontmatter-unreadable"]
    assert [(each.file, each.line) for each in problems if each.file != "Rule.md"] == [
        ("Perdure/Preferences/Indentation.md", line),
        ("Zoo.md", line),
    ]
    assert all(each.fix for each in problems)
    assert {path: path.read_bytes() for path in before} == before


def test_a_memory_with_broken_frontmatter_is_written_around_it(memory: Memory, vault: Path) -> None:
    memory.save("Prefers tabs.", category="preference", slug="indentation")
    (own,) = vault.rglob("Indentation.md")
    own.write_text(own.read_text().replace("---\n", "---\nmood: [open\n", 1))
    memory.write("preference/indentation", "Prefers spaces.", replace=True)

    assert "mood: [open\n" in own.read_text()
    assert own.read_text().endswith("---\nPrefers spaces.\n")
