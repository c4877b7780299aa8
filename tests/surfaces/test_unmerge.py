"""`perdure unmerge`: what was merged is by itself again."""

import json
from pathlib import Path

import pytest

from perdure.errors import AccessDeniedError, InvalidValueError, NodeNotFoundError
from tests.surfaces.nodes import content_of, one, perdure, refusal, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")

PROFILE = "ctx://local/users/ana/memories/profile"


def commit(session: str, text: str, day: str) -> None:
    printed = {"role": "user", "name": "Ana", "time": f"{day}T10:00:00Z", "content": text}
    stdout_of("commit", "-", "--session", session, typed=f"{json.dumps(printed)}\n".encode())


@pytest.fixture
def moved(memory: Path) -> Path:
    commit("march", "I live in Berlin.", "2026-03-02")
    commit("may", "I live in Lisbon.", "2026-05-02")
    return memory


def test_it_says_what_became_of_both(moved: Path) -> None:
    first, second, third = stdout_of("unmerge", "profile").splitlines()

    assert first == f"{PROFILE} version 3"
    assert second.startswith("apart/ana-lives-in-lisbon-")
    assert second.endswith(" is now separate: - Ana lives in Lisbon.")
    assert third == "profile holds again: - Ana lives in Berlin."
    assert stdout_of("read", "profile") == "- Ana lives in Berlin.\n"


def test_json_names_the_separate_node(moved: Path) -> None:
    superseded = one("why", "profile")["superseded"]
    assert isinstance(superseded, list)

    done = one("unmerge", "profile")

    assert (done["uri"], done["version"], done["back"]) == (PROFILE, 3, [superseded[0]["uri"]])
    assert stdout_of("read", str(done["apart"])) == "- Ana lives in Lisbon.\n"


def test_a_statement_can_be_named(moved: Path) -> None:
    commit("june", "I work as a nurse.", "2026-06-01")

    stdout_of("unmerge", "profile", "Ana lives in Lisbon.")

    assert stdout_of("read", "profile") == "- Ana lives in Berlin.\n- Ana works as a nurse.\n"


def test_what_it_was_merged_with_is_not_merged_again(moved: Path) -> None:
    stdout_of("unmerge", "profile")
    printed = stdout_of("read", "profile")
    commit("july", "I live in Lisbon.", "2026-07-01")

    assert stdout_of("read", "profile") == printed


def test_where_nothing_was_merged_nothing_is_changed(moved: Path) -> None:
    stdout_of("write", "preference/tea", "No milk.")

    error = refusal("unmerge", "preference/tea")

    assert isinstance(error, InvalidValueError)
    assert "Nothing was changed" in str(error)
    assert stdout_of("read", "preference/tea") == "No milk."


def test_what_was_taken_out_by_hand_is_not_guessed_at(moved: Path) -> None:
    content_of(moved, "users/ana/memories/profile").write_text("- Ana lives in Rome.\n")

    assert isinstance(refusal("unmerge", "profile"), InvalidValueError)
    assert stdout_of("read", "profile") == "- Ana lives in Rome.\n"


def test_nobody_takes_apart_what_is_not_theirs(moved: Path) -> None:
    assert isinstance(refusal("unmerge", PROFILE, "--user", "ben"), AccessDeniedError)
    assert isinstance(refusal("unmerge", "habit/none"), NodeNotFoundError)
    assert perdure("unmerge").exit_code == 2
