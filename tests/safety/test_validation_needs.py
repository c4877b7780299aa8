"""What is looked for before a pattern is tried is in every text that the pattern matches."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.safety import injection, secrets
from perdure.testing.suite import examples
from tests.support.validate.scoring import labelled

ORDERS = [(needed, each) for needed, patterns in injection._orders() for _, each in patterns]
TEXTS = [each.text for each in labelled(Path(__file__).parents[1] / "data" / "secrets.json")]


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_an_order_has_what_its_pattern_needs(number: int) -> None:
    needed, pattern = ORDERS[number]

    @given(text=st.from_regex(re.compile(pattern.pattern)))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        assert not text.isascii() or any(part in text for part in needed)

    check()


@pytest.mark.parametrize("name", secrets.PATTERNS)
def test_a_pattern_finds_the_same_from_where_its_words_begin(name: str) -> None:
    pattern = re.compile(secrets.PATTERNS[name].pattern)

    @given(text=st.lists(st.from_regex(pattern) | st.sampled_from(TEXTS), max_size=3).map("".join))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        found = [each.span() for each in secrets.find_names(text).matches(name)]
        assert found == [each.span() for each in pattern.finditer(text)]

    check()


def test_words_are_found_in_every_letter_that_a_pattern_takes_for_theirs() -> None:
    smalls = sorted(set("".join(secrets._WORDS)))
    any_of_them = re.compile(f"(?i)[{re.escape(''.join(smalls))}]")
    letters = [each for each in map(chr, range(0x110000)) if any_of_them.fullmatch(each)]
    for small in smalls:
        word = next(each for each in sorted(secrets._WORDS) if small in each)
        for letter in letters:
            if re.fullmatch(re.escape(small), letter, re.IGNORECASE):
                assert secrets.find_names("\u00e9 " + word.replace(small, letter)).words[word] == [
                    2
                ]


@pytest.mark.parametrize("number", range(len(secrets._services())))
def test_a_key_without_white_space_is_a_long_word_with_its_hint(number: int) -> None:
    _, hints, pattern, spaced = secrets._services()[number]

    @given(text=st.from_regex(re.compile(pattern), fullmatch=True))
    @settings(max_examples=examples(20), deadline=None)
    def check(text: str) -> None:
        is_long = secrets._LONG.fullmatch(text) is not None
        assert spaced or (is_long and any(hint in text for hint in hints))

    check()
