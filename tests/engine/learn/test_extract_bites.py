"""Each test of the extractor's contract catches who breaks it, and lets the honest pass."""

import inspect
from collections.abc import Callable

import pytest

from perdure.engine.learn.extractors import (
    CandidateExtractor,
    EntityEventExtractor,
    ProfileExtractor,
)
from perdure.testing import suite
from tests.bites import Bite, repeatable_search
from tests.engine.learn import broken_extractors as broken
from tests.engine.learn import test_extract_conformance as conformance
from tests.support.extract.suite import HOSTILE, ExtractorSuite

pytestmark = pytest.mark.search

__all__ = ["repeatable_search"]

BITES = (
    # shape
    Bite(broken.WantsATime, "test_it_takes_messages_with_role_and_content"),
    Bite(broken.IsAlwaysSure, "test_a_candidate_has_a_confidence_an_owner_and_a_sentence"),
    Bite(broken.ForgetsTheSession, "test_a_candidate_has_a_confidence_an_owner_and_a_sentence"),
    Bite(broken.PassesOverWhatIsNoMessage, "test_what_is_no_message_is_refused"),
    Bite(broken.RemembersEverything, "test_a_conversation_without_statements_has_no_candidates"),
    # evidence
    Bite(broken.MakesUpAQuote, "test_the_words_it_rests_on_are_there_to_the_letter"),
    Bite(broken.NamesAnotherMessage, "test_the_words_it_rests_on_are_there_to_the_letter"),
    Bite(broken.HasNoEvidence, "test_the_words_it_rests_on_are_there_to_the_letter"),
    Bite(broken.AttributesToTheWrongSpeaker, "test_the_speaker_is_that_of_the_message"),
    Bite(broken.AttributesItToAnotherSpeaker, "test_the_speaker_is_that_of_the_message"),
    Bite(broken.MakesUpAQuote, "test_no_message_gives_a_candidate_without_evidence"),
    # what is meant
    Bite(broken.TakesQuestionsAsFacts, "test_a_question_is_no_fact"),
    Bite(broken.IgnoresNegation, "test_what_is_denied_is_not_claimed"),
    Bite(broken.IgnoresDoubt, "test_a_doubt_lowers_the_confidence"),
    Bite(broken.TakesSuppositionsAsFacts, "test_a_supposition_is_no_fact"),
    Bite(broken.ReadsCodeBlocks, "test_code_is_nobody_s_word"),
    Bite(broken.ReadsIndentedCode, "test_code_is_nobody_s_word"),
    Bite(broken.ReadsQuotedLines, "test_a_quotation_is_not_the_users_own"),
    Bite(broken.ReadsQuotations, "test_a_quotation_is_not_the_users_own"),
    Bite(broken.ReadsPastedTexts, "test_a_quotation_is_not_the_users_own"),
    Bite(broken.TakesAStoryForTheTruth, "test_what_is_played_is_no_fact"),
    Bite(broken.NeverTakesBack, "test_what_is_taken_back_is_not_claimed"),
    Bite(broken.ReadsMails, "test_a_pasted_mail_is_not_the_users_own"),
    Bite(broken.ForgetsTheDateAnchor, "test_a_time_is_relative_to_the_day_of_its_message"),
    Bite(broken.LeavesTheWordYesterday, "test_a_time_is_relative_to_the_day_of_its_message"),
    # always the same
    Bite(broken.CountsItsCalls, "test_the_same_messages_give_the_same_candidates"),
    Bite(
        broken.LooksAtTheFirstMessageOnly,
        "test_unrelated_messages_change_nothing_wherever_they_stand",
    ),
    Bite(broken.EmptiesTheMessages, "test_messages_are_left_as_they_were"),
    # any text
    Bite(broken.KnowsASCIIOnly, "test_any_text_is_taken", UnicodeEncodeError),
    Bite(broken.GivesUpOnLongTexts, "test_a_statement_after_any_length_is_found"),
)


def run(make: Callable[[], CandidateExtractor], test: str) -> None:
    """Run one test of the suite as pytest would, with each of its texts."""
    of_events = isinstance(make(), EntityEventExtractor)
    base = conformance.TestEntityEvent if of_events else conformance.TestProfile
    tested: type[ExtractorSuite] = type("Tested", (base,), {"open_extractor": staticmethod(make)})
    method = getattr(tested(), test)
    wanted = inspect.signature(method).parameters
    for text in HOSTILE.values() if "text" in wanted else [None]:
        given = [make()] if "extractor" in wanted else []
        method(*given, *([] if text is None else [text]))


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.caught_by)


@pytest.mark.parametrize("test", dict.fromkeys(bite.caught_by for bite in BITES))
def test_the_healthy_pass(test: str) -> None:
    dated = test == "test_a_time_is_relative_to_the_day_of_its_message"
    run(EntityEventExtractor if dated else ProfileExtractor, test)


def test_every_test_of_the_contract_is_proved_to_bite() -> None:
    tests = suite.names_of_tests(conformance.TestEntityEvent)

    assert {bite.caught_by for bite in BITES} == set(tests)


def test_every_broken_extractor_is_caught() -> None:
    extractors = {
        each
        for _, each in inspect.getmembers(broken, inspect.isclass)
        if each.__module__ == broken.__name__
    }

    assert {bite.broken for bite in BITES} == extractors - {broken.Reading}


@pytest.mark.parametrize(
    "base",
    [
        ExtractorSuite,
        conformance.TestProfile,
        conformance.TestPreference,
        conformance.TestEntityEvent,
        conformance.TestProcedure,
    ],
)
def test_nothing_of_the_contract_can_be_replaced(base: type[ExtractorSuite]) -> None:
    for name in (*suite.names_of_tests(base), "extractor"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})
