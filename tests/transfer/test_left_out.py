"""Every record of a source goes in, or is counted in a finding."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.model import ContextNode
from perdure.testing.importer import found_in, items_of
from perdure.transfer.importers.agent_rules import RulesFormat
from perdure.transfer.importers.specstory import SpecStoryFormat
from perdure.transfer.imports import ImportOptions, ImportReport
from tests.engine.remembering import of, opened
from tests.transfer import samples
from tests.transfer.import_runs import EVERYTHING, OWNER, counted, position, run_import
from tests.transfer.samples import as_json

MEMORIES = "ctx://local/users/ana/memories"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path / "home", semantic=False) as context:
        yield context


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "source"


def texts_of(report: ImportReport) -> list[str]:
    return [each.what for each in report.findings if not each.refused]


def memories(context: Context) -> dict[str, ContextNode]:
    children = context.nodes.list_children
    uris = [uri for folder in children(MEMORIES, OWNER) for uri in children(folder, OWNER)]
    found = (context.nodes.read_node(uri, OWNER) for uri in uris)
    return {node.content.strip(): node for node in found}


def export(*nodes: dict[str, object], current: str, **more: object) -> dict[str, object]:
    return samples.chatgpt("boat", *nodes, current=current, **more)


# ---------------------------------------------------------------- ChatGPT
def test_what_chatgpt_remembers_is_facts_with_the_message_they_rest_on(
    context: Context, place: Path
) -> None:
    report = run_import(context, place, "chatgpt", EVERYTHING["chatgpt"])

    assert counted(report) == {"sessions": {"new": 2}, "memories": {"new": 5}}
    found = memories(context)
    assert found["Has a blue sail."].category == "entity"
    (claim,) = of(context, OWNER).why(found["Sails a dinghy."].uri).statements
    assert claim.holds
    assert [(each.session, each.quotes[0].message) for each in claim.evidence] == [
        ("chatgpt-boat", 2)
    ]


def test_custom_instructions_are_preferences(context: Context, place: Path) -> None:
    run_import(context, place, "chatgpt", EVERYTHING["chatgpt"])

    found = memories(context)
    assert found["Answer in metres."].category == "preference"
    assert found["A sailor from Faro."].category == "preference"


def test_the_newest_custom_instructions_go_in_and_older_ones_are_counted(
    context: Context, place: Path
) -> None:
    old, new = json.loads(json.dumps([samples.INSTRUCTED, samples.INSTRUCTED]))
    old["message"]["content"]["user_instructions"] = "Answer in feet."
    newer = samples.chatgpt("new", new, current="i", update_time=1_772_445_700.0)
    older = samples.chatgpt("old", old, current="i", update_time=1_772_445_600.0)

    report = run_import(context, place, "chatgpt", {"conversations.json": as_json([newer, older])})

    assert "older custom instructions were left out: 1" in texts_of(report)
    assert "Answer in metres." in memories(context)
    again = run_import(context, place, "chatgpt", {"conversations.json": as_json([older])})
    assert counted(again)["memories"] == {"same": 2}


def test_what_chatgpt_never_shows_is_counted(context: Context, place: Path) -> None:
    tool = samples.chatgpt_node("t", "a", "tool", "found")
    forget = samples.chatgpt_node("f", "t", "assistant", "Forget the sail.", recipient="bio")
    files = {
        "conversations.json": as_json([export(samples.ASKED, tool, forget, current="f")]),
        "chat.html": b"x",
        "pictures/a.png": b"x",
    }

    report = run_import(context, place, "chatgpt", files)

    assert texts_of(report) == [
        "messages of the role tool were left out: 1",
        "facts that ChatGPT was asked to forget were left out: 1",
        "files that this format does not use were left out: 2 ('chat.html', 'pictures/a.png')",
    ]


def test_a_private_session_gives_no_memory_of_chatgpt(context: Context, place: Path) -> None:
    private = samples.chatgpt_node("p", "root", "user", "/private on")
    noted = samples.chatgpt_node("q", "p", "assistant", "Likes rum.", recipient="bio")
    asked = {**samples.ASKED, "parent": "q"}
    files = {"conversations.json": as_json([export(private, noted, asked, current="a")])}

    run_import(context, place, "chatgpt", files)

    assert "Likes rum." not in memories(context)


def test_what_was_forgotten_does_not_come_back_as_a_memory_of_chatgpt(
    context: Context, place: Path
) -> None:
    run_import(context, place, "chatgpt", EVERYTHING["chatgpt"])
    memory = of(context, OWNER)
    memory.forget(memories(context)["Sails a dinghy."].uri)

    run_import(context, place, "chatgpt", EVERYTHING["chatgpt"])

    assert "Sails a dinghy." not in memories(context)


# ---------------------------------------------------------------- Claude
def test_projects_and_memories_of_claude_go_in(context: Context, place: Path) -> None:
    report = run_import(context, place, "claude", EVERYTHING["claude"])

    assert counted(report) == {
        "memories": {"new": 4},
        "documents": {"new": 1},
        "sessions": {"new": 2},
    }
    found = memories(context)
    rule = found["Always weigh in grams."]
    assert (rule.category, rule.project) == ("pattern", "the-bakery")
    assert found["The bakery opens at six."].project == "the-bakery"
    assert found["Bakes rye bread on Sundays."].project == ""
    (folder,) = context.nodes.list_children("ctx://local/resources/claude", OWNER)
    (document,) = context.nodes.list_children(folder, OWNER)
    assert context.nodes.read_node(document, OWNER).content == "# Oven\n\nHeat it first."
    assert "documents without a text: 1" in texts_of(report)


def test_an_archive_of_another_name_is_the_same_export(context: Context, tmp_path: Path) -> None:
    run_import(context, tmp_path / "export-1", "claude", EVERYTHING["claude"])
    before = position(context)

    report = run_import(context, tmp_path / "export-2", "claude", EVERYTHING["claude"])

    assert all({*states} == {"same"} for states in counted(report).values())
    assert position(context) == before


# ---------------------------------------------------------------- mem0
def test_relations_of_mem0_go_in_with_what_they_are_between(context: Context, place: Path) -> None:
    report = run_import(context, place, "mem0", EVERYTHING["mem0"])

    assert counted(report) == {"memories": {"new": 2}, "relations": {"new": 1}}
    (edge,) = of(context, OWNER).relations(f"{MEMORIES}/entity/ana").outgoing
    assert (edge.to_uri, edge.relation_type) == (f"{MEMORIES}/entity/tea", "drinks")


def test_several_users_in_one_export_are_a_finding(context: Context, place: Path) -> None:
    files = {"a.json": as_json([samples.TEA, samples.MOVED, samples.DOG])}

    assert texts_of(run_import(context, place, "mem0", files)) == [
        "the memories of several users were imported as yours: 2 ('ana', 'bob')"
    ]
    report = run_import(context, place, "mem0", files, options=ImportOptions(of="bob"))
    assert texts_of(report) == ["memories of others were left out: 2, of users: 1 ('ana')"]


# ---------------------------------------------------------------- Letta
def test_an_agent_of_letta_is_its_blocks_messages_files_and_the_rest_counted(
    context: Context, place: Path
) -> None:
    report = run_import(context, place, "letta", EVERYTHING["letta"])

    assert counted(report) == {
        "memories": {"new": 3},
        "sessions": {"new": 1},
        "documents": {"new": 1},
    }
    assert memories(context)["Steers a ferry in Lagos."].category == "preference"
    (session,) = of(context, OWNER).sessions()
    assert (session.title, session.messages) == ("pilot", 2)
    assert sorted(texts_of(report)) == [
        "files without a text were left out: 1",
        "messages of the role system without a text for the user were left out: 1",
        "messages of the role user without a text for the user were left out: 1",
        "system prompts were left out: 1",
        "tools were left out: 1",
    ]


def test_an_older_agent_file_is_one_agent(context: Context, place: Path) -> None:
    old = {
        "name": "old",
        "agent_type": "memgpt_agent",
        "core_memory": [{"label": "human", "value": "Likes fog."}],
        "messages": [samples.letta_message("user", [{"type": "text", "text": "Is it foggy?"}])],
    }

    report = run_import(context, place, "letta", {"old.af": as_json(old)})

    assert counted(report) == {"memories": {"new": 1}, "sessions": {"new": 1}}


# ---------------------------------------------------------------- Markdown of others
def test_an_id_with_what_can_not_be_seen_is_the_same_the_second_time(
    context: Context, place: Path
) -> None:
    files = {"a.md": samples.COFFEE.replace("drinks/", "dri\ufeffnks/").encode()}
    run_import(context, place, "basic-memory", files)

    assert counted(run_import(context, place, "basic-memory", files)) == {"entities": {"same": 1}}


def test_notes_of_basic_memory_are_entities_with_relations(context: Context, place: Path) -> None:
    report = run_import(context, place, "basic-memory", samples.BASIC)

    assert counted(report) == {"entities": {"new": 2}, "relations": {"new": 1}}
    (node,) = (each for each in memories(context).values() if "How roasts differ." in each.content)
    assert node.content.startswith("# Coffee Roasts\n\nType: note\n\n- [fact] Light roasts")
    assert "- [ ] buy beans" in node.content
    assert node.metadata["source_tags"] == "coffee"
    assert texts_of(report) == ["relations to missing notes were left out: 1 ('A Grinder')"]


def test_a_story_is_a_session_without_thoughts_and_what_tools_returned() -> None:
    (item, finding) = found_in(
        SpecStoryFormat(), {".specstory/history/a.md": samples.STORY.encode()}
    )

    assert [each["content"] for each in item.messages] == [  # type: ignore[union-attr]
        "Sort the harbours by name.\n\n```text\n_**User**_\n```",
        "[called Bash: `ls harbours`]",
        "They are sorted.",
    ]
    assert item.title == "Sort the harbours (2026-03-02 10:00Z)"  # type: ignore[union-attr]
    assert item.source_id == "11aa-22bb"  # type: ignore[union-attr]
    assert item.cwd.endswith("/source")  # type: ignore[union-attr]
    assert "other agents" in finding.what  # type: ignore[union-attr]


def test_a_story_whose_code_never_ends_is_read_all_the_same() -> None:
    text = samples.OLD_STORY.replace("Rename the pier.\n", "Rename\n```\n")

    (item,) = items_of(found_in(SpecStoryFormat(), {"a.md": text.encode()}))

    assert len(item.messages) == 2  # type: ignore[attr-defined]


def test_a_rule_includes_its_introduction() -> None:
    (item,) = items_of(found_in(RulesFormat(), {"CLAUDE.md": samples.AGENT_RULES.encode()}))

    assert item.content == (  # type: ignore[attr-defined]
        "## Harbour\n\n- This is the harbour's code.\n\n## Style\n\n- Use tabs.\n"
        "- Name tests as sentences, never as numbers.\n- Never: commit to main\n"
        "- Never: skip `make check`\n\n## Don't\n\n- Don't: Print secrets.\n"
    )


def test_rules_belong_to_the_project_of_their_folder_and_name_their_line(
    context: Context, place: Path
) -> None:
    report = run_import(context, place, "rules", {**samples.RULES, ".git/HEAD": b""})

    assert counted(report) == {"memories": {"new": 2}}
    assert "lines of code were left out: 3" in texts_of(report)
    (node,) = (each for each in memories(context).values() if "Use tabs." in each.content)
    memory = of(context, OWNER)
    assert node.project == memory.projects.at(str(place)) != ""
    claims = {each.text: each.line for each in memory.why(node.uri).statements}
    assert claims["Use tabs."] == "CLAUDE.md, line 7"
    kinds = {item.kind for item in memory.for_caller(OWNER, project=node.project).briefing().items}
    assert kinds == {"rule"}


def test_a_rule_that_moved_in_its_file_names_its_new_line(context: Context, place: Path) -> None:
    run_import(context, place, "rules", {"CLAUDE.md": b"- Use tabs.\n"})

    report = run_import(context, place, "rules", {"CLAUDE.md": b"\n\n- Use tabs.\n"})

    assert counted(report) == {"memories": {"changed": 1}}
    (node,) = memories(context).values()
    assert of(context, OWNER).why(node.uri).statements[0].line == "CLAUDE.md, line 3"
    before = position(context)
    run_import(context, place, "rules", {"CLAUDE.md": b"\n\n- Use tabs.\n"})
    assert position(context) == before


def test_two_projects_have_a_file_of_rules_each(context: Context, tmp_path: Path) -> None:
    run_import(context, tmp_path / "one", "rules", {"CLAUDE.md": b"- Use tabs.\n"})

    report = run_import(context, tmp_path / "two", "rules", {"CLAUDE.md": b"- Use spaces.\n"})

    assert counted(report) == {"memories": {"new": 1}}
    assert len(memories(context)) == 2


def test_merges_in_frontmatter_are_listed_and_do_not_hang(context: Context, place: Path) -> None:
    bomb = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)
    )
    files = {**samples.BASIC, "bomb.md": f"---\npermalink: b\n{bomb}---\nx\n".encode()}

    report = run_import(context, place, "basic-memory", files)

    assert [each.file for each in report.findings if each.refused] == ["bomb.md"]
