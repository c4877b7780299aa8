"""Each test of the contract of an embedder fails for a broken one, and passes for a correct one."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.testing import suite
from perdure.testing.embedder import HOSTILE, EmbedderSuite
from tests.bites import Bite
from tests.index import broken_embedders as broken
from tests.index import test_embedders as conformance

pytestmark = pytest.mark.search

BITES = (
    # shape
    Bite(broken.HasNoParameters, "test_it_implements_the_protocol_of_an_embedder"),
    Bite(broken.SortsTheTexts, "test_there_is_one_vector_for_each_text_in_their_order"),
    Bite(broken.SortsTheTextsOfTheCaller, "test_there_is_one_vector_for_each_text_in_their_order"),
    Bite(broken.EmbedsTheSameOnlyOnce, "test_there_is_one_vector_for_each_text_in_their_order"),
    Bite(broken.StopsAfterABatch, "test_of_many_texts_each_has_its_own_vector"),
    Bite(broken.MixesUpItsBatches, "test_of_many_texts_each_has_its_own_vector"),
    Bite(broken.NeedsATextAtLeast, "test_no_texts_have_no_vectors", IndexError),
    Bite(broken.TellsAnotherDimension, "test_all_vectors_have_the_dimension_of_the_embedder"),
    Bite(broken.MakesNothingOfNothing, "test_all_vectors_have_the_dimension_of_the_embedder"),
    Bite(broken.ForgetsTheLength, "test_every_vector_is_a_list_of_floats_of_unit_length"),
    Bite(broken.HasNoDirectionForNothing, "test_every_vector_is_a_list_of_floats_of_unit_length"),
    Bite(broken.IsNoNumberForNothing, "test_every_vector_is_a_list_of_floats_of_unit_length"),
    Bite(broken.ReturnsTuples, "test_every_vector_is_a_list_of_floats_of_unit_length"),
    # always the same
    Bite(
        broken.LooksAtTheNeighbours,
        "test_a_text_has_the_same_vector_whatever_stands_beside_it",
    ),
    Bite(broken.PadsToTheLongest, "test_a_text_has_the_same_vector_whatever_stands_beside_it"),
    Bite(broken.IsAnotherOneEachTime, "test_another_one_of_the_same_model_gives_the_same"),
    Bite(broken.TellsItsAddress, "test_another_one_of_the_same_model_gives_the_same"),
    Bite(broken.ReturnsWhatItKeeps, "test_a_returned_value_can_be_changed"),
    Bite(broken.ReturnsOneListTwice, "test_a_returned_value_can_be_changed"),
    Bite(broken.SharesItsDesk, "test_threads_get_the_vectors_of_their_own_texts"),
    Bite(broken.NamesNoModel, "test_its_parameters_are_json_that_names_the_model", KeyError),
    Bite(broken.TellsWhatIsNoJSON, "test_its_parameters_are_json_that_names_the_model"),
    Bite(broken.CountsInItsParameters, "test_its_parameters_are_json_that_names_the_model"),
    # texts
    Bite(broken.GuessesForNothing, "test_an_empty_text_has_a_vector_that_is_always_the_same"),
    Bite(broken.RefusesLongTexts, "test_a_very_long_text_has_a_vector", InvalidValueError),
    Bite(broken.KnowsASCIIOnly, "test_any_utf_8_text_has_a_vector", UnicodeEncodeError),
    Bite(broken.EndsAtZero, "test_any_utf_8_text_has_a_vector"),
    Bite(broken.MendsHalfCharacters, "test_half_a_character_is_refused"),
    Bite(broken.EmbedsLetters, "test_a_text_that_is_not_in_a_list_is_refused"),
    Bite(broken.KnowsNoLikeness, "test_texts_with_the_same_meaning_are_nearer"),
)


def run(make: Callable[[], Any], test: str) -> None:
    """Run one test of the suite as pytest would, with each of its texts."""
    tested: type[EmbedderSuite] = type(
        "Tested", (EmbedderSuite,), {"open_embedder": staticmethod(make)}
    )
    method = getattr(tested(), test)
    texts = HOSTILE.values() if "text" in inspect.signature(method).parameters else [None]
    for text in texts:
        method(make(), *([] if text is None else [text]))


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.caught_by)


@pytest.mark.parametrize("test", dict.fromkeys(bite.caught_by for bite in BITES))
def test_the_healthy_pass(test: str) -> None:
    run(HashingEmbedder, test)


def test_every_test_of_the_contract_is_proved_to_bite() -> None:
    assert {bite.caught_by for bite in BITES} == set(suite.names_of_tests(EmbedderSuite))


def test_every_broken_embedder_is_caught() -> None:
    embedders = {
        each
        for _, each in inspect.getmembers(broken, inspect.isclass)
        if each.__module__ == broken.__name__
    }

    assert {bite.broken for bite in BITES} == embedders


@pytest.mark.parametrize(
    "base",
    [
        EmbedderSuite,
        conformance.TestHashing,
        conformance.TestMiniLM,
        conformance.TestOpenAICompatible,
    ],
)
def test_nothing_of_the_contract_can_be_replaced(base: type[EmbedderSuite]) -> None:
    for name in (*suite.names_of_tests(base), "embedder"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})
