"""`related`: links that are missing, each with its reasons; none that would be beside the point."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.index.minilm_cache import installed_model
from tests.surfaces.nodes import MEMORIES, objects, perdure, told

ESPRESSO = "The espresso machine needs descaling with citric acid each month."
SCHEDULE = "Citric acid for descaling is bought in March; the espresso machine is due then."
NOISE = {
    "habit/walks": "Walks along the river on Sundays.",
    "habit/reading": "Reads novels before sleep.",
    "preference/tabs": "Prefers tabs to spaces in Python.",
    "event/trip": "Went to Lisbon in May, by train.",
}


@pytest.fixture
def notes(memory: Path) -> None:
    for name, text in NOISE.items():
        told("write", name, text)
    told("write", "case/machine", ESPRESSO)
    told("write", "event/shopping", SCHEDULE)


def related(*words: str) -> list[dict[str, Any]]:
    return objects("related", *words)


def pairs(found: list[dict[str, Any]]) -> set[frozenset[str]]:
    return {
        frozenset(each[key].removeprefix(f"{MEMORIES}/") for key in ("uri", "to")) for each in found
    }


def kinds(found: list[dict[str, Any]]) -> set[str]:
    (each,) = found
    return {reason["kind"] for reason in each["reasons"]}


MACHINE = {frozenset({"case/machine", "event/shopping"})}


# ---------------------------------------------------------------- found
@pytest.mark.usefixtures("notes")
def test_notes_about_the_same_are_found_from_either_side() -> None:
    assert pairs(related("case/machine")) == MACHINE
    assert pairs(related("event/shopping")) == MACHINE
    assert pairs(related()) == MACHINE
    assert related("habit/walks") == []


@pytest.mark.usefixtures("notes")
def test_what_is_told_says_why_and_how() -> None:
    said = told("related", "case/machine")

    assert "case/machine and event/shopping" in said
    assert re.search(r"both speak of .*(citric|descaling|espresso)", said)
    command = said.splitlines()[-1].split()
    assert command[:2] == ["perdure", "relate"]

    told(*command[1:])
    assert related("case/machine") == []
    assert related() == []


@pytest.mark.usefixtures("notes")
def test_a_name_without_a_link_is_found() -> None:
    told("write", "entity/rosalind", "A colleague.")
    told("write", "event/lunch", "Had soup with Rosalind.")

    found = related("event/lunch")
    assert pairs(found) == {frozenset({"event/lunch", "entity/rosalind"})}
    assert "named" in kinds(found)
    assert pairs(related("entity/rosalind")) == pairs(found)


@pytest.mark.usefixtures("notes")
def test_whom_both_speak_of_is_a_reason() -> None:
    told("write", "entity/acme-corp", "A customer.")
    told("write", "event/call", "Acme Corp wants a discount. [[entity/acme-corp]]")
    told("write", "pattern/discounts", "A discount for Acme Corp is approved. [[acme-corp]]")

    found = [each for each in related("event/call") if each["to"].endswith("pattern/discounts")]
    assert {"entity", "mention"} <= kinds(found)


@pytest.mark.usefixtures("notes")
def test_what_a_third_note_links_to_is_a_reason() -> None:
    told("write", "case/filter", "A water filter for the espresso machine.")
    told("write", "skills/coffee", "See it all.")
    told("write", "pattern/hub", "[[case/filter]] and [[case/machine]]")

    found = [each for each in related("case/filter") if each["to"].endswith("case/machine")]
    assert "mention" in kinds(found)


@pytest.mark.usefixtures("notes")
def test_one_conversation_is_a_reason() -> None:
    evidence = [{"message": 0, "cid": "c", "quote": "q"}]
    said = {"said": [{"session": 'mon"day', "evidence": evidence, "speaker": "ana"}]}
    meta = f"statements:={json.dumps({'x': said})}"
    told("write", "case/first", "Oat milk curdles in coffee that is hot.", "--meta", meta)
    told("write", "event/second", "Bought oat milk, a lamp and a hammer.", "--meta", meta)
    told("write", "event/third", "Sold a chair, milk and a saw.")

    found = related("case/first")

    assert pairs(found) == {frozenset({"case/first", "event/second"})}
    assert kinds(found) == {"session", "words"}


# ---------------------------------------------------------------- left out
@pytest.mark.usefixtures("notes")
def test_what_is_linked_already_is_left_out() -> None:
    told("write", "case/machine", f"{ESPRESSO} [[event/shopping]]", "--replace")

    assert related("case/machine") == []
    assert related("event/shopping") == []


@pytest.mark.usefixtures("notes")
def test_what_was_superseded_is_left_out() -> None:
    told("write", "event/newer", "Something else altogether.")
    told("relate", "event/shopping", "event/newer", "--type", "superseded_by")

    assert related("case/machine") == []
    assert related("event/shopping") == []


@pytest.mark.usefixtures("notes")
def test_what_ceased_to_hold_is_left_out() -> None:
    told("write", "event/shopping", SCHEDULE, "--replace", "--meta", "valid_until=2020-01-01")

    assert related("case/machine") == []


@pytest.mark.usefixtures("notes")
def test_what_is_archived_or_deleted_is_left_out() -> None:
    told("archive", "event/shopping")
    assert related("case/machine") == []

    told("unarchive", "event/shopping")
    told("delete", "event/shopping", "--yes")
    assert related("case/machine") == []


@pytest.mark.usefixtures("notes")
def test_messages_and_profiles_are_left_out() -> None:
    told("write", "sessions/monday/notes", ESPRESSO)
    told("write", "profile", f"Ana. {ESPRESSO}")

    assert not any("sessions" in each["to"] for each in related("case/machine"))
    assert pairs(related()) == MACHINE


@pytest.mark.usefixtures("notes")
def test_one_word_in_common_is_not_enough() -> None:
    told("write", "habit/river", "The river is cold.")

    assert related("habit/river") == []


@pytest.mark.usefixtures("notes")
def test_what_others_have_is_not_told() -> None:
    told("write", "ctx://local/users/ben/memories/case/acid", SCHEDULE)

    mine = related("case/machine", "--user", "ana")
    assert not any("ben" in each["to"] for each in mine)
    assert any("ben" in each["to"] for each in related("case/machine"))


# ---------------------------------------------------------------- bounds
@pytest.mark.usefixtures("notes")
def test_it_changes_no_note(memory: Path) -> None:
    before = {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()}

    related()

    assert {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("notes")
def test_a_sample_says_that_it_is_one() -> None:
    done = perdure("related", "--sample", "2")

    assert "looked at 2 of 6 notes; --sample looks at more" in done.stderr
    assert "looked at" not in perdure("related", "--sample", "6").stderr


@pytest.mark.usefixtures("notes")
def test_no_more_are_told_than_are_asked_for() -> None:
    for number in range(5):
        told("write", f"event/due-{number}", SCHEDULE.replace("March", f"month {number}"))

    assert len(related("case/machine", "--top", "3")) == 3
    assert len(related("--top", "2")) == 2


def test_a_node_that_is_not_there_is_refused(memory: Path) -> None:
    assert perdure("related", "preference/none").exit_code == 1
    assert perdure("related").exit_code == 0


def test_meaning_takes_part_where_there_is_a_model(memory: Path) -> None:
    home = Path(os.environ["HOME"]) / ".perdure"
    home.mkdir(parents=True, exist_ok=True)
    (home / "models").symlink_to(installed_model().folder.parent)
    told("write", "habit/coffee", "Lies awake after coffee in the afternoon.")
    told("write", "case/insomnia", "She can't sleep when she drinks espresso late in the day.")
    for name, text in NOISE.items():
        told("write", name, text)

    found = related()

    assert pairs(found) == {frozenset({"habit/coffee", "case/insomnia"})}
    assert "meaning" in kinds(found)
    assert "no meanings" not in perdure("related").stderr
