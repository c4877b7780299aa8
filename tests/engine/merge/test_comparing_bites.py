"""Each rule of the judge is held by a test that fails for who breaks it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.bites import FAILED, repeatable_search  # noqa: F401 - the fixture is used by being here
from tests.engine.learn import broken_judges as broken
from tests.engine.learn import test_comparing

pytestmark = pytest.mark.search


@dataclass(frozen=True, slots=True)
class Bite:
    broken: Callable[[pytest.MonkeyPatch], None]
    caught_by: str
    given: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the test."""

    def __str__(self) -> str:
        return f"{self.broken.__name__}-{self.caught_by}"

    def run(self) -> None:
        getattr(test_comparing, self.caught_by)(**self.given)


APART = "test_what_is_said_otherwise_is_not_the_same"
VALUES = "test_the_newer_of_two_values_supersedes"
HELD = {"half": "held"}
BITES = (
    Bite(broken.ignores_digits, "test_another_digit_is_never_the_same"),
    Bite(broken.ignores_digits, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(broken.ignores_units, VALUES, {"old": "The pot holds 3 l.", "new": "The pot holds 3 ml."}),
    Bite(broken.ignores_negation, "test_a_not_more_is_never_the_same"),
    Bite(broken.ignores_negation, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(broken.ignores_names, "test_a_name_or_an_identifier_more_is_never_the_same"),
    Bite(broken.ignores_names, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(broken.ignores_persons, APART, {"old": "He sings.", "new": "She sings."}),
    Bite(broken.ignores_tense, APART, {"old": "Lives in Ghent.", "new": "Lived in Ghent."}),
    Bite(broken.ignores_order, APART, {"old": "Al calls Bo.", "new": "Bo calls Al."}),
    Bite(broken.ignores_order, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(broken.goes_by_similarity, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(broken.goes_by_similarity, "test_another_digit_is_never_the_same"),
    Bite(broken.leaves_out_what_is_more, "test_what_must_not_be_merged_is_kept_apart", HELD),
    Bite(
        broken.stems_as_porter_did,
        APART,
        {"old": "Has experience with lasers.", "new": "Has experiments with lasers."},
    ),
    Bite(broken.stems_names, APART, {"old": "Andrea sings.", "new": "Andreas sings."}),
    Bite(broken.knows_no_synonyms, "test_most_of_what_says_the_same_is_found", HELD),
    Bite(broken.knows_no_inflection, "test_most_of_what_says_the_same_is_found", HELD),
    Bite(broken.merges_nothing, "test_most_of_what_says_the_same_is_found", HELD),
    Bite(broken.believes_the_longer_one, "test_the_order_of_the_two_does_not_matter"),
    Bite(broken.contradicts_everything, "test_what_is_superseded_is_contradicted", HELD),
    Bite(broken.contradicts_nothing, VALUES, {"old": "Eats soup.", "new": "No longer eats soup."}),
    Bite(broken.reads_whole_books, "test_long_texts_are_the_same_word_for_word_only"),
    Bite(broken.gives_no_reason, "test_the_reason_names_what_decided"),
)


@pytest.mark.parametrize("bite", BITES, ids=str)
def test_the_broken_are_caught(bite: Bite, monkeypatch: pytest.MonkeyPatch) -> None:
    bite.broken(monkeypatch)

    with pytest.raises(FAILED):
        bite.run()


@pytest.mark.parametrize("bite", BITES, ids=str)
def test_the_healthy_pass(bite: Bite) -> None:
    bite.run()


def test_every_broken_judge_is_caught() -> None:
    made = {
        each
        for name, each in inspect.getmembers(broken, inspect.isfunction)
        if each.__module__ == broken.__name__ and not name.startswith("_")
    }

    assert {bite.broken for bite in BITES} == made
