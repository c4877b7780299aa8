import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.learn import prose
from perdure.patterns import required_literals

PATTERNS = prose._compiled("patterns")
MATCHES = st.one_of(*(st.from_regex(each, fullmatch=False) for each in PATTERNS.values()))


@given(text=MATCHES)
def test_each_match_has_one_of_the_texts_that_it_needs(text: str) -> None:
    for pattern in PATTERNS.values():
        if pattern.search(text):
            needs = required_literals(pattern.pattern)
            assert not needs or any(each in text for each in needs)


@given(text=MATCHES)
def test_no_pattern_is_passed_over_that_matches(text: str) -> None:
    small = text.lower()
    found = {
        name
        for name, pattern in PATTERNS.items()
        if pattern.search(text if name in prose._CASED else small)
    }

    assert prose.matched(text) == found


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"\b(?:always|any)\b", {"always", "any", "lways", "ny"}),
        (r"(?:is|in) (?:\w+ )?here", {"here"}),
        (r"x?", set()),
        (r"(?i:always)", set()),
        (r"a|(?:b|\w)c", {"a", "c"}),
        (r"(?:ab){2}c*", {"ab"}),
        (r"[^a]", set()),
    ],
)
def test_required_literals_of_a_pattern_are_listed_or_none(pattern: str, texts: set[str]) -> None:
    assert set(required_literals(pattern)) <= texts
    assert bool(required_literals(pattern)) == bool(texts)
