"""An agent in a project sees what belongs to it, and forgets by the ids that it sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Memory
from perdure.harness.project import identity_at
from tests.surfaces.mcp.agents import Agent, in_process

RULE = "Never write to the folder of the importer."
SALARY = "My salary is 900000 kroner."


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """Fill a home with memories of two projects and of none; the agent works in the harbour."""
    folder = tmp_path / "harbour"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("USER", "ana")
    home, identity = tmp_path / "home" / ".perdure", identity_at(str(folder))
    with perdure.open(home=home, project=identity.slug) as opened:
        opened.save("Deploys run on Fridays.", category="decision", slug="deploys")
        opened.save("Tea without milk.", category="note", slug="tea", project="")
        opened.save("The tide gauge is secret.", category="note", slug="tide", project="dam")
        opened.save("The dam is closed.", category="dams", slug="closed", project="dam")
        given_text = [{"role": "user", "content": f"Look at the build. {RULE} {SALARY}"}]
        opened.commit_session(given_text, session_id="ours", extract=False)
        opened.commit_session(given_text, session_id="theirs", extract=False, project="dam")
        yield opened


@pytest.fixture
def agent(memory: Memory, tmp_path: Path) -> Iterator[Agent]:
    with in_process(tmp_path / "home") as agent:
        yield agent


def id_of(memory: Memory, text: str) -> str:
    return next(item.id for item in memory.briefing().items if item.text == text)


def test_a_list_leaves_out_other_projects_and_names_each(memory: Memory, agent: Agent) -> None:
    notes = agent.answer("list", folder="note")
    top = {each["name"]: each["says"] for each in agent.answer("list")["entries"]}
    decided = agent.answer("list", folder="decision")["entries"]
    sessions = agent.answer("list", folder="sessions")["entries"]

    assert [(each["name"], each["project"]) for each in notes["entries"]] == [("note/tea", "")]
    assert notes["total"] == 1
    assert top == {"decision": "1 entry", "note": "1 entry"}
    assert [each["project"] for each in decided] == [memory.project]
    assert [(e["name"], e["project"]) for e in sessions] == [("sessions/ours", memory.project)]


def test_an_archived_memory_of_another_project_is_not_listed(memory: Memory, agent: Agent) -> None:
    memory.archive("note/tide")
    memory.archive("note/tea")

    found = agent.answer("list", archived=True)["entries"]

    assert [each["name"] for each in found] == ["note/tea"]


def test_python_lists_all_projects_unless_asked(memory: Memory) -> None:
    assert [each.name for each in memory.list("note")] == ["note/tea", "note/tide"]
    assert [each.name for each in memory.list("note", projects="own")] == ["note/tea"]
    assert [e.name for e in memory.at("2999-01-01").list("note", projects="own")] == ["note/tea"]


def test_outside_of_a_project_all_are_listed(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with in_process(tmp_path / "home") as agent:
        found = agent.answer("list", folder="note")["entries"]

    assert memory.project
    assert [(each["name"], each["project"]) for each in found] == [
        ("note/tea", ""),
        ("note/tide", "dam"),
    ]


def test_an_agent_forgets_by_the_id_that_it_sees(memory: Memory, agent: Agent) -> None:
    deploys, rule = id_of(memory, "Deploys run on Fridays."), id_of(memory, RULE)

    stored = agent.answer("forget", uri=deploys)
    given_text = agent.answer("forget", uri=rule)

    assert (stored["uri"], stored["state"]) == (memory.uri("decision/deploys"), "archived")
    assert (given_text["state"], given_text["changed"], given_text["undo"]) == (
        "hidden",
        True,
        "perdure remember TEXT",
    )
    assert given_text["uri"].endswith("sessions/ours/messages#0")
    assert given_text["hidden"]["sentences"] >= 2
    assert RULE not in memory.read("sessions/ours/messages").content
    assert "Fridays" not in memory.briefing().text


def test_an_agent_forgets_words(memory: Memory, agent: Agent) -> None:
    given_text = agent.answer("forget", uri=SALARY)

    assert (given_text["uri"], given_text["state"], given_text["changed"]) == (
        SALARY,
        "hidden",
        True,
    )
    assert given_text["hidden"] == {"statements": 1, "sentences": 2, "messages": 2, "sessions": 2}
    assert "900000" not in memory.read("sessions/theirs/messages").content
    assert agent.answer("forget", uri=SALARY)["changed"] is False


def test_a_message_is_not_deleted_with_its_session(memory: Memory, agent: Agent) -> None:
    refused = agent.refusal("forget", uri=id_of(memory, RULE), delete=True)

    assert "Fix:" in refused
    assert RULE in memory.read("sessions/ours/messages").content


def test_why_of_a_message_names_session_index_and_day(memory: Memory, agent: Agent) -> None:
    found = agent.answer("why", uri=id_of(memory, RULE))

    (statement,) = found["statements"]
    (quote,) = statement["evidence"]
    assert (found["kind"], statement["origin"]) == ("session", "learned")
    assert (quote["session"], quote["message"], quote["holds"]) == ("ours", 0, True)
    assert statement["date"] == f"{memory.read('sessions/ours/messages').updated_at:%Y-%m-%d}"
    assert RULE in statement["text"]
