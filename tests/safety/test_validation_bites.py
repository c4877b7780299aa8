"""Each rule of validation catches who breaks it, and lets the honest pass."""

import inspect
from typing import Any

import pytest

from perdure.errors import EvidenceError
from tests.bites import Bite, repeatable_search
from tests.safety import broken_validators as broken
from tests.safety.test_validation import TestValidation as Rules

pytestmark = pytest.mark.search

__all__ = ["repeatable_search"]

BITES = (
    Bite(broken.EscapesEverything, "test_a_plain_text_stays_as_it_is"),
    Bite(broken.DropsJoiners, "test_a_plain_text_stays_as_it_is"),
    Bite(broken.ForgetsImages, "test_nothing_runs_or_loads_when_it_is_viewed"),
    Bite(broken.TrustsAllTicks, "test_nothing_runs_or_loads_when_it_is_viewed"),
    Bite(broken.ForgetsImages, "test_nothing_runs_or_loads_in_any_mixture"),
    Bite(broken.DeletesTags, "test_no_visible_text_is_lost"),
    Bite(broken.KeepsHiddenCharacters, "test_nothing_hides_between_characters"),
    Bite(broken.EscapesAgain, "test_neutralising_twice_is_neutralising_once"),
    Bite(broken.ShowsTheLength, "test_a_mask_tells_the_kind_and_nothing_of_the_value"),
    Bite(broken.MasksTheWholeLine, "test_only_the_password_of_an_address_is_masked"),
    Bite(broken.LooksAtTheSurface, "test_hidden_characters_hide_no_secret"),
    Bite(broken.KnowsServicesOnly, "test_a_value_that_is_called_a_secret_is_one"),
    Bite(broken.FearsEveryHash, "test_hashes_and_identifiers_are_no_secrets"),
    Bite(broken.FearsPlaceholders, "test_placeholders_are_no_secrets"),
    Bite(broken.MasksTheFirstOnly, "test_what_is_masked_holds_no_secret"),
    Bite(broken.MarksTheWholeText, "test_an_order_is_marked_on_its_line"),
    Bite(broken.LeavesTokensWhole, "test_tokens_of_a_template_are_broken"),
    Bite(broken.FearsTheWord, "test_reports_of_orders_and_preferences_are_not_orders"),
    Bite(broken.TrustsPoliteOrders, "test_an_order_that_does_harm_is_one_whatever_it_wears"),
    Bite(broken.MarksInLists, "test_a_marked_line_is_not_marked_again_where_it_is_put"),
    Bite(broken.TrustsMarks, "test_a_foreign_mark_leaves_no_token_intact"),
    Bite(broken.MarksAgain, "test_marking_twice_is_marking_once_and_can_be_undone"),
    Bite(broken.ForgetsTheEnd, "test_marking_twice_is_marking_once_and_can_be_undone"),
    Bite(broken.SeesMarkedOrders, "test_marking_twice_is_marking_once_and_can_be_undone"),
    Bite(broken.MarksAndMasksOnly, "test_cleaning_twice_is_cleaning_once"),
    Bite(broken.Repeats, "test_any_text_is_clean_soon"),
    Bite(broken.TellsTheValue, "test_a_refusal_tells_kind_and_line_and_not_the_value"),
    Bite(broken.ForgetsNames, "test_every_text_of_a_candidate_is_cleaned"),
    Bite(broken.ForgetsMetadata, "test_a_key_of_the_metadata_makes_its_value_a_secret"),
    Bite(broken.ForgetsMetadata, "test_a_key_of_the_metadata_is_plain"),
    Bite(broken.MasksEvidence, "test_evidence_stays_to_the_letter", EvidenceError),
    Bite(
        broken.ForgetsTheQuote,
        "test_evidence_with_a_secret_is_refused_even_if_secrets_are_masked",
    ),
    Bite(broken.ForgetsTheAbstract, "test_an_abstract_with_an_order_is_marked_and_fits"),
    Bite(broken.CutsContent, "test_a_content_that_is_too_long_once_it_is_clean_is_refused"),
    Bite(broken.NotesEachTime, "test_validating_twice_is_validating_once"),
)
OF_THE_VIEWER = "test_the_viewer_of_these_tests_runs_and_loads"


def run(rules: type[Rules], test: str) -> None:
    """Run one rule as pytest would, with each of its texts."""
    method = getattr(rules(), test)
    marks = [each for each in getattr(method, "pytestmark", []) if each.name == "parametrize"]
    given: list[Any] = [text for mark in marks for text in mark.args[1]]
    for text in given:
        method(text)
    if not marks:
        method()


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.caught_by)


def test_every_rule_is_proved_to_bite() -> None:
    tests = {name for name, _ in inspect.getmembers(Rules, callable) if name.startswith("test_")}

    assert {bite.caught_by for bite in BITES} == tests - {OF_THE_VIEWER}


def test_every_broken_validator_is_caught() -> None:
    validators = {
        each
        for _, each in inspect.getmembers(broken, inspect.isclass)
        if each.__module__ == broken.__name__
    }

    assert {bite.broken for bite in BITES} == validators
