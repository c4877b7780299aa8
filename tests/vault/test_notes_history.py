"""History of a user's own notes: the operator's writes, moves, conflicts, links of the past."""

import json
from pathlib import Path

import pytest

import perdure
from perdure.app import open_recorded
from perdure.errors import (
    AccessRefusedError,
    ConcurrentModificationError,
    InvalidLocatorError,
    PersonalWriteRefusedError,
)
from perdure.storage import Authorisation, Locator, content_hash
from tests.vault.test_hostile import Home

PLAN = Locator("Work/Plan.md")
KEY = "accounts/local/resources/%57ork/%50lan/content.md"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    vault = tmp_path / "vault"
    (vault / "Work").mkdir(parents=True)
    (vault / PLAN.key).write_text("# Plan\n\nOne.\n")
    created = Home(tmp_path / "home", vault)
    created.output("init", "--vault", str(vault))
    created.output("recall", "plan")
    return created


def versions(home: Home, key: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in home.output("history", "log", key, "--json").splitlines()]


# ---------------------------------------------------------------- the operator's way to write
def write(home: Home, place: Locator, text: str, expect: str | None = None) -> None:
    with open_recorded(home.environ) as recorded:
        leave = Authorisation.grant("ana", place, text)
        recorded.write_personal(place, text, authorisation=leave, expect=expect)


def test_an_operator_writes_a_note_in_place_with_history(home: Home) -> None:
    (home.vault / PLAN.key).write_text("# Plan\n\nBy hand.\n")

    write(home, PLAN, "# Plan\n\nTwo fernwords.\n")

    assert (home.vault / PLAN.key).read_text() == "# Plan\n\nTwo fernwords.\n"
    assert [(each["actor"], each["origin"]) for each in versions(home, KEY)] == [
        ("", "external"),
        ("", "external"),  # what was there by hand is not lost
        ("ana", "save"),
    ]
    assert home.found("fernwords") == 1


def test_an_operator_makes_a_new_note(home: Home) -> None:
    write(home, Locator("Journal/2026-03-02.md"), "Lunch with Tom, fernword.\n")

    assert home.found("fernword") == 1
    assert [each["actor"] for each in versions(home, "Journal/2026-03-02.md")] == ["ana"]


def test_the_memory_folder_and_other_texts_are_out_of_reach(home: Home) -> None:
    inside = Locator("perdure/Preferences/Tea.md")
    with pytest.raises(InvalidLocatorError, match="agent's own store"):
        write(home, inside, "Tea.\n")
    with pytest.raises(ConcurrentModificationError):
        write(home, PLAN, "Two.\n", expect=content_hash("stale"))
    with open_recorded(home.environ) as recorded:
        leave = Authorisation.grant("ana", PLAN, "Two.\n")
        with pytest.raises(PersonalWriteRefusedError, match="not the one that the operator saw"):
            recorded.write_personal(PLAN, "Three.\n", authorisation=leave)

    assert (home.vault / PLAN.key).read_text() == "# Plan\n\nOne.\n"


def test_an_agent_can_not_write_the_same_note(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ana")
    with perdure.open(home=home.environ["PERDURE_HOME"]) as memory:
        with pytest.raises(AccessRefusedError):
            memory.write("resources/Work/Plan", "Taken over.", replace=True)
        with pytest.raises(AccessRefusedError):
            memory.delete("resources/Work/Plan")

    assert (home.vault / PLAN.key).read_text() == "# Plan\n\nOne.\n"


# ---------------------------------------------------------------- moves
@pytest.mark.parametrize("edit", ["", "\nAnd cake.\n"])
def test_a_memory_in_the_folder_of_another_category_is_the_same(home: Home, edit: str) -> None:
    home.output("save", "Prefers green tea.", "--category", "preference", "--slug", "tea")
    before, rules = home.vault / "Perdure/Preferences/Tea.md", home.vault / "Perdure/Rules"
    rules.mkdir()
    before.rename(rules / "Tea.md")
    (rules / "Tea.md").write_text((rules / "Tea.md").read_text() + edit)

    assert home.found("green") == 1

    found = versions(home, "accounts/local/users/ana/memories/preference/tea/content.md")
    assert [each["origin"] for each in found] == ["save", *["external"] * bool(edit)]


def test_a_renamed_note_tells_where_it_was(home: Home) -> None:
    (home.vault / PLAN.key).rename(home.vault / "Old plan.md")
    home.output("recall", "plan")

    assert [each["more"] for each in versions(home, "Old plan.md")] == [{}, {"moved_from": KEY}]


# ---------------------------------------------------------------- conflicts
COPY = "Work/Plan.sync-conflict-20260302-101500-ABCDEFG.md"


def merged(home: Home, *texts: str, theirs: str) -> str:
    for text in texts:
        (home.vault / PLAN.key).write_text(text)
        home.output("recall", "plan")
    (home.vault / COPY).write_text(theirs)
    home.output("conflicts", "merge", COPY)
    return (home.vault / PLAN.key).read_text()


def test_a_note_with_one_version_is_merged_with_what_both_share(home: Home) -> None:
    found = merged(home, theirs="# Plan\n\nOne.\n\nTheirs.\n")
    assert found == "# Plan\n\nOne.\n\nTheirs.\n"

    (home.vault / "New.md").write_text("Mine.\n\nShared.\n")
    home.output("recall", "new")
    (home.vault / "New (Case Conflict 1).md").write_text("Shared.\n\nTheirs.\n")
    home.output("conflicts", "merge", "New (Case Conflict 1).md")
    assert (home.vault / "New.md").read_text() == "Mine.\n\nShared.\n\nTheirs.\n"


def test_a_merge_starts_at_the_version_that_was_copied(home: Home) -> None:
    mine = ("Two.\n\n# Plan\n\nOne.\n", "Three.\n\nTwo.\n\n# Plan\n\nOne.\n")

    found = merged(home, *mine, theirs="# Plan\n\nOne.\n\nTheirs.\n")

    assert found == "Three.\n\nTwo.\n\n# Plan\n\nOne.\n\nTheirs.\n"


# ---------------------------------------------------------------- links of the past
def test_a_link_by_name_or_alias_leads_to_the_note_as_of_a_moment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "ana")
    (home.vault / "Start.md").write_text("See [[plan]], [[The target]] and [[Later]].\n")
    (home.vault / "Work" / "Deep.md").write_text("---\naliases: [The target]\n---\nDeep.\n")
    home.output("recall", "start")
    position = home.position()
    (home.vault / "Work" / "Deep.md").unlink()
    (home.vault / "Work" / "Later.md").write_text("Later.\n")
    home.output("recall", "later")

    with perdure.open(home=home.environ["PERDURE_HOME"]) as memory:
        then = {edge.to_uri for edge in memory.at(position).relations("resources/Start").outgoing}
        now = {edge.to_uri for edge in memory.relations("resources/Start").outgoing}

    assert then == {"ctx://local/resources/Work/Plan", "ctx://local/resources/Work/Deep"}
    assert now == {"ctx://local/resources/Work/Plan", "ctx://local/resources/Work/Later"}
