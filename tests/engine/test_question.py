"""A question, taken apart."""

from datetime import UTC, datetime

import pytest
from hypothesis import given

from perdure.engine.recall.periods import times_in
from perdure.engine.recall.question import parse_question
from tests.engine.test_periods import EXAMPLES, TEXTS

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def test_words_that_say_nothing_are_left_out() -> None:
    assert parse_question("What did we decide about the Tabs?", NOW).words == ("decide", "tabs")


def test_if_no_word_says_anything_all_count() -> None:
    assert parse_question("who is it?", NOW).words == ("who", "is", "it")


@pytest.mark.parametrize("question", sorted({each[0] for each in EXAMPLES}))
def test_no_time_is_passed_over(question: str) -> None:
    assert parse_question(question, NOW).times == times_in(question, NOW)


@given(TEXTS)
def test_none_is_passed_over_in_any_text(question: str) -> None:
    test_no_time_is_passed_over(question)


def test_the_words_of_a_time_are_not_expected_in_a_text() -> None:
    found = parse_question("What did Ana read in May 2023?", NOW)

    assert found.words == ("ana", "read", "2023")
    assert found.timeless == ("ana", "read")


@pytest.mark.parametrize(
    ("question", "to_assistant"),
    [
        ("What did you suggest?", True),
        ("Can you remind me of the wine?", False),
        ("Which wine was it?", False),
        ("What was your recipe?", True),
    ],
)
def test_a_question_to_the_assistant_is_recognised(question: str, *, to_assistant: bool) -> None:
    assert parse_question(question, NOW).to_assistant is to_assistant


def test_a_very_long_question_is_cut() -> None:
    assert len(parse_question("tea " * 50_000, NOW).text) == 10_000
