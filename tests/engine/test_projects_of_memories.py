"""What belongs to a project is found there, and nowhere else unless it is asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Memory
from perdure.agents.hook_log import ShownTexts

RULES = [{"role": "user", "content": "Always run make test before you commit to the harbour."}]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home") as opened:
        opened.save("The harbour uses SQLite.", category="decision", slug="db", project="one")
        opened.save("The harbour uses Postgres.", category="decision", slug="db", project="two")
        opened.save("The harbour is old.", category="note", slug="old")
        opened.commit_session(RULES, session_id="s", project="one", extract=False)
        yield opened


def found(memory: Memory, **more: str) -> set[str]:
    return {hit.project for hit in memory.recall("harbour", **more).hits}  # type: ignore[arg-type]


def test_recall_finds_its_own_project_and_what_is_of_none(memory: Memory) -> None:
    assert found(memory, project="one") == {"one", ""}
    assert found(memory, project="two") == {"two", ""}
    assert found(memory, project="two", projects="all") == {"one", "two", ""}
    assert found(memory) == {"one", "two", ""}
    assert found(memory, projects="own") == {""}


def test_a_slug_that_another_project_has_is_not_overwritten(memory: Memory) -> None:
    texts = {entry.node.content for entry in memory.list(project="one") if entry.node}

    assert texts == {"The harbour uses SQLite."}
    assert memory.read("decision/db--two").content == "The harbour uses Postgres."


def test_a_memory_that_moved_since_it_was_indexed_does_not_leak(memory: Memory) -> None:
    memory.write("decision/db", metadata={"project": "two"}, replace=True)

    assert all("SQLite" not in hit.snippet for hit in memory.recall("SQLite", project="one").hits)


def test_a_briefing_has_the_rules_of_its_project_only(memory: Memory) -> None:
    one = memory.for_caller(project="one").briefing()
    two = memory.for_caller(project="two").briefing()

    assert "Always run make test" in one.text
    assert "SQLite" in one.text
    assert "Postgres" not in one.text
    assert "make test" not in two.text
    assert one.tokens <= 300
    assert (
        "make test" not in memory.for_caller(project="one").briefing(known=RULES[0]["content"]).text
    )


def test_what_was_shown_is_known_until_it_is_cleared(tmp_path: Path) -> None:
    ShownTexts(tmp_path, "codex", "s").add(["Use tabs."])

    again = ShownTexts(tmp_path, "codex", "s")
    assert "use  tabs." in again
    assert "Use tabs." not in ShownTexts(tmp_path, "codex", "other")
    assert again.may_hint("words")
    assert not again.may_hint("other words")  # so soon
    again.brief([])
    assert "Use tabs." not in ShownTexts(tmp_path, "codex", "s")
