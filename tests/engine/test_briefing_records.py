"""Notes that are shown unasked are kept ready by the index, and go when they do."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import perdure
from perdure.context.node_files import CONTENT, META
from perdure.engine.briefing_records import with_lasting
from perdure.engine.learn.prose import sentence_id
from perdure.engine.memory import Memory
from perdure.errors import DamageError
from perdure.index.sql import SHOWN_FILES, BriefingRecords, read_briefing_records
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import ContextNode, IndexRecord
from perdure.model.node import Level
from perdure.model.values import JSON

ME = "ctx://local/users/ana/memories"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setenv("USER", "ana")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[embedding]\nprovider = "none"\n')
    return perdure.open(home=tmp_path / "home")


def database(tmp_path: Path) -> Path:
    (path,) = tmp_path.rglob("index/*/local.sqlite")
    return path


def notes(tmp_path: Path, project: str = "ours", most: int = 10) -> BriefingRecords:
    found = read_briefing_records(database(tmp_path), project, most)
    assert found is not None
    return found


def test_the_files_that_decide_are_those_of_a_node() -> None:
    assert SHOWN_FILES == (META, CONTENT)


@pytest.mark.parametrize(
    ("metadata", "always", "of_project"),
    [
        ({"project": "ours"}, 0, 1),
        ({"project": "theirs"}, 0, 0),
        ({"project": "Not A Slug"}, 0, 0),
        ({"project": 5}, 0, 0),
        ({"always_load": True}, 1, 0),
        ({"always_load": "true"}, 1, 0),
        ({"always_load": "no"}, 0, 0),
        ({"always_load": False, "project": "ours"}, 0, 1),
        ({"always_load": True, "project": "ours"}, 1, 0),
        ({"always_load": True, "project": "theirs"}, 0, 0),
        ({}, 0, 0),
    ],
)
def test_a_note_is_one_by_what_it_says(
    memory: Memory, tmp_path: Path, metadata: dict[str, JSON], always: int, of_project: int
) -> None:
    with memory:
        memory.save("Tabs, never spaces.", category="note", slug="style", metadata=metadata)

        found = notes(tmp_path)

    assert (len(found.always), len(found.of_project)) == (always, of_project)
    for note in (*found.always, *found.of_project):
        assert note.uri == f"{ME}/note/style"
        assert "Tabs, never spaces." in note.snippet


def test_a_note_that_is_none_any_more_is_gone(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.save("One.", category="note", slug="a", metadata={"project": "ours"})
        memory.save("Two.", category="note", slug="b", metadata={"project": "ours"})
        memory.save("One.", category="note", slug="a", metadata={"project": None})
        memory._services.nodes.delete_node(f"{ME}/note/b", memory.caller)
        memory.settle()

        assert notes(tmp_path) == BriefingRecords(notes(tmp_path).cursor, [], [])


def test_only_the_newest_are_read(memory: Memory, tmp_path: Path) -> None:
    with memory:
        for number in range(4):
            memory.save(
                f"{number}.", category="note", slug=f"n{number}", metadata={"project": "ours"}
            )

        found = notes(tmp_path, most=2).of_project

    assert [note.uri for note in found] == [f"{ME}/note/n3", f"{ME}/note/n2"]


def test_a_long_note_has_no_entry(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.save("long " * 5000, category="note", slug="a", metadata={"project": "ours"})

        (note,) = notes(tmp_path).of_project

    assert note.snippet == ""


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM notes", "UPDATE notes SET noted = 'theirs'", "UPDATE notes SET always = 1"],
)
def test_a_check_sees_notes_that_are_not_those_of_the_records(
    memory: Memory, tmp_path: Path, change: str
) -> None:
    with memory:
        memory.save("One.", category="note", slug="a", metadata={"project": "ours"})
    with SqliteIndex(str(database(tmp_path).parent)) as index:
        assert index.check("local") == []
    with closing(sqlite3.connect(database(tmp_path), isolation_level=None)) as db:
        db.execute(change)

    with (
        SqliteIndex(str(database(tmp_path).parent)) as index,
        pytest.raises(DamageError, match="notes are not those of its records"),
    ):
        index.check("local")


def test_what_is_no_index_has_no_notes(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"nonsense" * 999)

    assert read_briefing_records(tmp_path / "x.sqlite", "ours", 10) is None


def test_what_may_last_is_the_same_whether_it_was_known_or_is_found_out(memory: Memory) -> None:
    messages = [
        {"role": "user", "content": f"From now on, always run step {n} before a release."}
        for n in range(3)
    ]
    with memory:
        memory.append("s", messages[:2], project="ours", extract=False)
        memory.append("s", messages[2:], project="ours", extract=False)  # two of them are known
        grown = memory._services.indexes.current("local").follower.index.stamps("local")
        memory.index.rebuild()
        assert memory._services.indexes.current("local").follower.index.stamps("local") == grown


def test_a_text_that_changed_is_judged_again(memory: Memory) -> None:
    node = ContextNode(uri="ctx://local/sessions/s/messages", content="x", owner_space="user:ana")

    def record(text: str) -> IndexRecord:
        filters: dict[str, JSON] = {"account_id": "local", "owner_space": "user:ana"}
        return IndexRecord(
            id="1",
            uri=node.uri,
            level=Level.CONTENT,
            text=text,
            filters=filters,
            payload={"role": "user", "message": 0},
        )

    rule, other = record("From now on, never push to main."), record("Look at line 3 again.")
    (found,) = with_lasting([rule], node)
    (known,) = with_lasting([rule], node, lambda _: {"1": found.with_payload({"lasting": 0.111})})
    (again,) = with_lasting([rule], node, lambda _: {"1": other})

    assert known.payload["lasting"] == 0.111  # and not found out again
    assert again == found

    project = replace(node, metadata={"project": "p", "foreign": {sentence_id(rule.text): "web"}})
    dated = rule.with_payload({"date": "2026-03-02T10:00:00+00:00"})
    (own,) = with_lasting([dated], replace(project, metadata={"project": "p"}))
    (foreign,) = with_lasting([dated], project, lambda _: {"1": own})

    assert own.payload["sentences"]
    assert not foreign.payload["sentences"]  # words of a web page are proposed, and never shown
