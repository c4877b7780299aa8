"""What is looked for before a pattern is tried is in every text that the pattern matches."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.engine.validate import instructions, passwords, secrets
from perdure.testing.suite import examples

ORDERS = [(needed, each) for needed, patterns in instructions._orders() for _, each in patterns]
SPOKEN = (
    *("_ASSIGNED", "_SAID", "_OPTION", "_USER_OPTION", "_BESIDE_A_KEY", "_BESIDE_A_PASSWORD"),
    *("_LOGIN", "_IN_THE_EAST", "_PINS", "_CODES", "_CARD_CODE", "_SEED"),
)


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_an_order_has_what_its_pattern_needs(number: int) -> None:
    needed, pattern = ORDERS[number]

    @given(text=st.from_regex(re.compile(pattern.pattern)))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        assert not text.isascii() or any(part in text for part in needed)

    check()


@pytest.mark.parametrize("name", SPOKEN)
def test_a_secret_that_is_spoken_of_is_named(name: str) -> None:
    pattern = getattr(passwords, name)

    @given(text=st.from_regex(re.compile(pattern.pattern)))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        assert passwords.names_one(text)

    check()


@pytest.mark.parametrize("pattern", [secrets._CARD, secrets._IBAN])
def test_a_number_has_its_digits(pattern: re.Pattern[str]) -> None:
    @given(text=st.from_regex(re.compile(pattern.pattern)))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        assert sum(map(str.isdigit, text)) >= secrets._FEWEST_DIGITS

    check()
