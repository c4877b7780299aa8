"""Each test of the contract of a language model fails for a broken one."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from perdure.errors import LanguageModelError
from perdure.llm.contract import LLM
from perdure.testing import suite
from perdure.testing.llm import LLMSuite, Script
from tests.bites import Bite
from tests.llm import broken_llms as broken
from tests.llm import test_llms as conformance

pytestmark = pytest.mark.search

BITES = (
    Bite(broken.HasNoTools, "test_it_implements_the_protocol_of_a_language_model"),
    # JSON
    Bite(broken.ReturnsTheText, "test_an_answer_in_json_is_returned_as_a_dict"),
    Bite(broken.KeepsTheSchemaToItself, "test_the_model_gets_the_prompt_and_the_schema"),
    Bite(broken.AddsToThePrompt, "test_the_model_gets_the_prompt_and_the_schema"),
    Bite(broken.TrustsTheModel, "test_an_answer_that_does_not_fit_is_refused"),
    Bite(broken.MendsTheAnswer, "test_an_answer_that_does_not_fit_is_refused"),
    Bite(
        broken.TakesAnySchema,
        "test_an_unsupported_schema_is_refused_before_a_request",
    ),
    Bite(
        broken.AsksBeforeItLooks,
        "test_an_unsupported_schema_is_refused_before_a_request",
    ),
    # tools
    Bite(broken.ReturnsTheFirstCall, "test_every_call_of_a_tool_is_returned_in_order"),
    Bite(broken.ReturnsNoneForNoCall, "test_no_call_is_an_empty_list"),
    Bite(
        broken.InsistsOnATool,
        "test_the_model_is_offered_the_tools_and_left_the_choice",
        LanguageModelError,
    ),
    Bite(broken.ForgetsTheChoice, "test_the_model_gets_the_choice"),
    Bite(broken.LeavesBadCallsOut, "test_a_tool_call_that_is_not_valid_is_refused"),
    Bite(
        broken.OverlooksDisobedience,
        "test_an_answer_against_the_choice_is_refused",
    ),
    Bite(broken.OffersWhatItCan, "test_invalid_tools_are_refused_before_a_request"),
    Bite(broken.AsksBeforeItLooks, "test_an_unknown_choice_is_refused_before_a_request"),
    # conversations
    Bite(broken.ForgetsTheTalk, "test_the_model_gets_the_whole_conversation"),
    Bite(broken.DropsTheTextBesideCalls, "test_calls_and_text_are_returned_as_a_pair"),
    Bite(broken.HasNoTextForCalls, "test_the_text_is_empty_if_there_are_calls_only"),
    Bite(broken.AlwaysOffersATool, "test_without_tools_the_model_is_offered_none"),
    Bite(
        broken.SortsTheTalk,
        "test_an_invalid_conversation_is_refused_before_a_request",
    ),
    # no answer
    Bite(broken.SwallowsRefusals, "test_a_refusal_is_an_error_of_its_own", LanguageModelError),
    Bite(
        broken.SwallowsTruncations,
        "test_an_answer_that_was_cut_off_is_an_error_of_its_own",
        LanguageModelError,
    ),
    # callers
    Bite(broken.ClosesTheSchemaOfTheCaller, "test_arguments_are_not_changed"),
    Bite(broken.ReturnsWhatItKeeps, "test_a_returned_value_can_be_changed"),
    Bite(broken.SharesItsDesk, "test_threads_get_the_answers_to_their_own_questions"),
)


def run(make: Callable[[Script], Any], test: str) -> None:
    """Run one test of the suite as pytest would, with each of its parameters."""

    @contextmanager
    def open_llm(script: Script) -> Iterator[LLM]:
        yield make(script)

    tested: type[LLMSuite] = type("Tested", (LLMSuite,), {"open_llm": staticmethod(open_llm)})
    method = getattr(tested(), test)
    for parameters in _parameters(method):
        script = Script()
        with tested.open_llm(script) as llm:
            given = {"llm": llm, "script": script, **parameters}
            wanted = inspect.signature(method).parameters
            method(**{name: value for name, value in given.items() if name in wanted})


def _parameters(method: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a test
    for mark in getattr(method, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args
            if isinstance(names, str):
                return [{names: value} for value in values]
            return [dict(zip(names, value, strict=True)) for value in values]
    return [{}]


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.caught_by)


@pytest.mark.parametrize("test", dict.fromkeys(bite.caught_by for bite in BITES))
def test_the_healthy_pass(test: str) -> None:
    run(broken.Honest, test)


def test_every_test_of_the_contract_is_proved_to_bite() -> None:
    assert {bite.caught_by for bite in BITES} == set(suite.names_of_tests(LLMSuite))


def test_every_broken_llm_is_caught() -> None:
    llms = {
        each
        for name, each in inspect.getmembers(broken, inspect.isclass)
        if each.__module__ == broken.__name__ and name[0] != "_" and each is not broken.Honest
    }

    assert {bite.broken for bite in BITES} == llms


@pytest.mark.parametrize(
    "base",
    [
        LLMSuite,
        conformance.TestScripted,
        conformance.TestOpenAICompatible,
        conformance.TestAnthropic,
    ],
)
def test_nothing_of_the_contract_can_be_replaced(base: type[LLMSuite]) -> None:
    for name in (*suite.names_of_tests(base), "llm", "script"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})
