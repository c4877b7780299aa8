"""Each test of saving catches who breaks it."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import PerdureError
from tests.bites import Bite, repeatable_search
from tests.engine.saving import broken_savers as broken
from tests.engine.saving import test_crashes, test_properties, test_saving
from tests.engine.saving.sessions import ANA, open_home
from tests.support.context.crashes import MemoryGround

__all__ = ["repeatable_search"]

pytestmark = pytest.mark.search

TWICE = "test_the_same_session_twice_changes_nothing"
DELETED = "test_what_its_owner_deleted_does_not_come_back_with_the_same_session"
LEARNED = "test_the_statements_of_a_session_become_memories"
GOES_ON = "test_a_session_that_goes_on_is_learned_from_where_it_stopped"
PUT_AWAY = "test_an_archived_node_stays_archived"
LATER = "test_if_learning_fails_the_messages_are_archived_and_it_continues_later"
KILLED = "test_who_is_killed_while_saving_loses_nothing_and_goes_on"
BITES = (
    Bite(broken.forgets_how_far_it_was, TWICE),
    Bite(
        broken.learns_what_it_knows,
        DELETED,
    ),
    Bite(broken.marks_what_it_has_not_learned, LEARNED, PerdureError),
    Bite(broken.marks_in_a_commit_of_its_own, KILLED),
    Bite(broken.writes_one_memory_after_the_other, KILLED),
    Bite(broken.drops_what_it_supersedes, KILLED),
    Bite(broken.keeps_secrets, "test_secrets_are_masked_before_anything_is_stored"),
    Bite(broken.keeps_names, "test_a_name_and_hidden_characters_keep_no_secret"),
    Bite(
        broken.compares_to_the_letter,
        "test_a_session_archived_when_fewer_secrets_were_known_goes_on",
        PerdureError,
    ),
    Bite(broken.trusts_slugs, "test_a_secret_names_no_session_and_no_memory"),
    Bite(broken.saves_whatever_it_is_given, "test_a_secret_is_refused_or_masked_when_it_is_saved"),
    Bite(broken.saves_whatever_it_is_given, "test_orders_in_what_is_saved_are_marked_as_quoted"),
    Bite(broken.accepts_unverified_candidates, "test_nothing_is_remembered_without_its_quote"),
    Bite(broken.is_sure_of_everything, "test_every_candidate_has_one_outcome"),
    Bite(broken.writes_on_a_dry_run, "test_a_dry_run_tells_and_writes_nothing"),
    Bite(
        broken.starts_from_the_first_message_again,
        GOES_ON,
    ),
    Bite(broken.forgets_who_spoke, "test_a_part_knows_who_spoke_before_it"),
    Bite(broken.does_not_look_at_its_own_plans, LEARNED),
    Bite(
        broken.writes_over_what_was_put_away,
        PUT_AWAY,
        PerdureError,
    ),
    Bite(
        broken.learns_before_it_keeps,
        LATER,
        PerdureError,
    ),
    Bite(broken.learns_for_the_first_user, "test_each_learns_for_themselves"),
)


def caught_by(bite: Bite) -> Callable[..., None]:
    for module in (test_saving, test_crashes, test_properties):
        if hasattr(module, bite.caught_by):
            found = getattr(module, bite.caught_by)
            assert callable(found)
            return found  # type: ignore[no-any-return] # a test
    raise AssertionError(bite.caught_by)


@contextmanager
def given(bite: Bite, place: Path, patch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield what the test of a bite asks for, as pytest would."""
    wanted = inspect.signature(caught_by(bite)).parameters
    found: dict[str, Any] = {"tmp_path": place, "monkeypatch": patch, "kind": "recorded"}
    with ExitStack() as stack:
        if {"context", "memory"} & wanted.keys():
            context = stack.enter_context(open_home(place / "home"))
            found |= {"context": context, "memory": context.memory.for_caller(ANA)}
        if "ground" in wanted:
            patch.setattr("perdure.engine.session_commit.WINDOW_MESSAGES", 2)
            found["ground"] = MemoryGround(place / "ground")
        yield {name: found[name] for name in wanted}


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bite.broken(monkeypatch)

    with pytest.raises(bite.shown_as), given(bite, tmp_path, monkeypatch) as fixtures:
        caught_by(bite)(**fixtures)


def test_every_broken_saver_is_caught() -> None:
    made = {
        name
        for name, value in vars(broken).items()
        if inspect.isfunction(value) and value.__module__ == broken.__name__
    }
    assert made == {bite.broken.__name__ for bite in BITES}
