"""Each fault of the judge that asks is caught by a test."""

import inspect

import pytest

from tests.bites import Bite, repeatable_search, run_with_each_parameter
from tests.engine.learn import broken_asking as broken
from tests.engine.learn import test_asking as tests

__all__ = ["repeatable_search"]

pytestmark = pytest.mark.search

KINDS = "test_whatever_the_model_says_what_differs_by_more_than_words_is_kept_apart"
WORDS = "test_what_may_be_more_than_words_is_not_asked_about"
BITES = (
    Bite(broken.asks_about_everything, KINDS),
    Bite(broken.takes_names_for_words, KINDS),
    Bite(broken.takes_limits_for_words, WORDS),
    Bite(broken.takes_states_for_words, WORDS),
    Bite(broken.does_not_care_how_much_more_is_said, WORDS),
    Bite(broken.does_not_care_when, "test_another_time_is_not_asked_about"),
    Bite(broken.pays_for_anything, "test_what_has_little_in_common_is_not_worth_a_question"),
    Bite(
        broken.asks_in_the_order_that_was_given,
        "test_the_order_of_the_two_does_not_matter_to_what_is_asked",
    ),
    Bite(
        broken.shows_statements_as_they_are,
        "test_a_statement_can_not_end_the_record_it_stands_in",
    ),
    Bite(broken.tells_reasons_as_they_are, "test_a_reason_is_one_short_line_that_steers_nothing"),
)


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: bite.broken.__name__)
def test_the_broken_are_caught(bite: Bite, monkeypatch: pytest.MonkeyPatch) -> None:
    bite.broken(monkeypatch)

    with pytest.raises(bite.shown_as):
        run_with_each_parameter(getattr(tests, bite.caught_by))


@pytest.mark.parametrize("test", sorted({bite.caught_by for bite in BITES}))
def test_the_healthy_pass(test: str) -> None:
    run_with_each_parameter(getattr(tests, test))


def test_every_fault_is_caught() -> None:
    faults = {
        each
        for _, each in inspect.getmembers(broken, inspect.isfunction)
        if each.__module__ == broken.__name__
    }

    assert {bite.broken for bite in BITES} == faults
