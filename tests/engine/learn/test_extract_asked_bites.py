"""Each fault of an extractor that asks is caught by a test."""

import inspect

import pytest

from tests.bites import Bite, run_with_each_parameter
from tests.engine.learn import broken_asked as broken
from tests.engine.learn import test_extract_asked as tests

pytestmark = pytest.mark.search

ORDERS = "test_nothing_that_a_message_says_ends_the_record_or_adds_to_it"
BITES = (
    Bite(broken.shows_texts_as_they_are, ORDERS, (ValueError, IndexError)),
    Bite(broken.leaves_other_ends_of_lines, "test_nor_does_a_name"),
    Bite(broken.marks_every_record_alike, ORDERS),
    Bite(
        broken.asks_otherwise_each_time,
        "test_the_same_messages_give_the_same_prompt_to_the_byte",
    ),
    Bite(
        broken.asks_otherwise_each_time,
        "test_all_extractors_ask_the_same_so_that_one_answer_is_paid_for",
    ),
    Bite(
        broken.tells_no_times,
        "test_each_message_is_told_with_its_time_its_speaker_and_whose_it_is",
    ),
    Bite(broken.asks_before_it_looks, "test_a_wrong_message_is_refused_before_anybody_is_asked"),
    Bite(
        broken.shows_secrets,
        "test_no_secret_is_shown_to_the_model_and_no_quote_of_one_holds",
    ),
    Bite(
        broken.numbers_messages_from_the_first_of_the_session,
        "test_each_statement_of_a_long_conversation_is_found_once_where_it_stands",
        (AssertionError, IndexError),
    ),
    Bite(broken.shows_nothing_from_before, "test_a_window_begins_with_what_was_said_before"),
    Bite(
        broken.takes_again_what_was_before,
        "test_a_model_that_words_it_otherwise_each_time_still_gives_it_once",
    ),
    Bite(
        broken.cuts_anywhere,
        "test_each_statement_of_a_long_message_is_found_once_in_its_order",
    ),
    Bite(
        broken.goes_on_by_a_few_characters,
        "test_the_questions_are_about_as_many_as_the_text_is_long",
    ),
    Bite(
        broken.shows_all_that_tools_put_out,
        "test_of_what_a_tool_put_out_the_end_is_shown",
        ValueError,
    ),
    Bite(
        broken.mends_quotes,
        "test_a_quote_stays_as_the_model_gave_it_and_is_refused_where_all_are",
    ),
    Bite(broken.believes_every_name, "test_names_that_nobody_said_are_left_out"),
    Bite(broken.takes_everybody_for_the_owner, "test_what_others_say_of_themselves_is_an_entity"),
    Bite(
        broken.fails_with_the_first_bad_item,
        "test_an_item_that_can_be_no_candidate_leaves_the_others",
        ValueError,
    ),
    Bite(broken.names_likes_otherwise_than_dislikes, "test_liking_and_disliking_share_a_slug"),
    Bite(
        broken.finds_nothing_where_the_model_fails,
        "test_errors_of_the_model_go_up_as_they_are",
        pytest.fail.Exception,
    ),
)


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
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
        for name, each in inspect.getmembers(broken, inspect.isfunction)
        if each.__module__ == broken.__name__ and not name.startswith("_")
    }

    assert {bite.broken for bite in BITES} == faults
