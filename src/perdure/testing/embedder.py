"""The contract of an embedder as a suite that any implementation can run.

class TestMyEmbedder(EmbedderSuite):
    promises = frozenset()

    @staticmethod
    def open_embedder() -> Embedder:
        return MyEmbedder()
"""

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import Embedder
from perdure.testing.requirement import requirement
from perdure.testing.suite import Suite

TABS = "Ana prefers tabs over spaces."
TABS_AGAIN = "Tabs over spaces is what Ana prefers."
RIVER = "Last summer the river flooded our cellar."
LONG = " ".join(f"On day {day} it rained, and nobody went out." for day in range(60))
HOSTILE = {
    "white space": " \t\r\n ",
    "control": "\0\x01\x1b[31m\x7f",
    "invisible": "\ufeff\u200b\u200d\u202e\u2066",
    "a pile of accents": "e" + "\u0301" * 500,
    "joined": "👩‍👩‍👧‍👦🏳️‍🌈" * 20,
    "not assigned": "\U0010ffff\ufffe\ue000",
    "many scripts": "日本語のメモ قائمة المهام עברית ไทย",
    "tokens": "[CLS] [SEP] [PAD] [MASK] ##ing <|endoftext|>",
    "one long word": "x" * 5_000,
    "JSON": '{"input": "\\ud800"}',
}
MANY = tuple(f"Note {number} is about topic {number * 7 % 31}." for number in range(150))

_LENGTH_IS_OFF_BY = 1e-5


class EmbedderSuite(Suite):
    """All tests of an embedder."""

    hooks = frozenset({"promises", "open_embedder"})
    known_promises = frozenset()

    @staticmethod
    def open_embedder() -> Embedder:
        """Return the embedder under test; each call returns another object with the same model."""
        raise NotImplementedError("define how to open the embedder under test")

    @pytest.fixture
    def embedder(self) -> Embedder:
        return self.open_embedder()

    # ---------------------------------------------------------------- shape
    @requirement("003-embedder-runtime-checkable")
    def test_it_implements_the_protocol_of_an_embedder(self, embedder: Embedder) -> None:
        assert isinstance(embedder, Embedder)

    @requirement("003-embedder-one-vector-each")
    def test_there_is_one_vector_for_each_text_in_their_order(self, embedder: Embedder) -> None:
        given = [LONG, TABS, RIVER, TABS]

        vectors = embedder.embed_texts(given)

        assert vectors == [embed(embedder, text) for text in given]
        assert given == [LONG, TABS, RIVER, TABS]

    @requirement("003-embedder-one-vector-each")
    def test_of_many_texts_each_has_its_own_vector(self, embedder: Embedder) -> None:
        vectors = embedder.embed_texts(MANY)

        assert len(vectors) == len(MANY)
        assert len(set(map(tuple, vectors))) == len(MANY)
        for place in (0, 1, 63, 64, 127, 128, 149):
            assert vectors[place] == embed(embedder, MANY[place])

    @requirement("003-embedder-one-vector-each")
    def test_no_texts_have_no_vectors(self, embedder: Embedder) -> None:
        assert embedder.embed_texts([]) == []

    @requirement("003-embedder-same-dimension")
    def test_all_vectors_have_the_dimension_of_the_embedder(self, embedder: Embedder) -> None:
        vectors = embedder.embed_texts([TABS, "", LONG, *HOSTILE.values()])

        assert {len(vector) for vector in vectors} == {embedder.dimension}

    def test_every_vector_is_a_list_of_floats_of_unit_length(self, embedder: Embedder) -> None:
        for vector in embedder.embed_texts([TABS, "", LONG, *HOSTILE.values()]):
            assert type(vector) is list
            assert {type(number) for number in vector} == {float}
            assert abs(math.hypot(*vector) - 1) < _LENGTH_IS_OFF_BY

    # ---------------------------------------------------------------- always the same
    def test_a_text_has_the_same_vector_whatever_stands_beside_it(self, embedder: Embedder) -> None:
        alone = embed(embedder, TABS)

        for others in ([RIVER], [LONG, "", RIVER], [*HOSTILE.values(), LONG], [f"{TABS} Yes."] * 9):
            assert embedder.embed_texts([TABS, *others])[0] == alone
            assert embedder.embed_texts([*others, TABS])[-1] == alone

    def test_another_one_of_the_same_model_gives_the_same(self, embedder: Embedder) -> None:
        another = self.open_embedder()

        assert another.embed_texts([RIVER, TABS, ""]) == embedder.embed_texts([RIVER, TABS, ""])
        assert another.parameters == embedder.parameters

    def test_a_returned_value_can_be_changed(self, embedder: Embedder) -> None:
        expected = tuple(embed(embedder, TABS))
        one, other = embedder.embed_texts([TABS, TABS])

        one.clear()

        assert tuple(other) == expected
        assert tuple(embed(embedder, TABS)) == expected

    def test_threads_get_the_vectors_of_their_own_texts(self, embedder: Embedder) -> None:
        slices = [MANY[start : start + 5] for start in range(0, 40, 5)]
        expected = [embedder.embed_texts(part) for part in slices]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(embedder.embed_texts, slices))

        assert found == expected

    def test_its_parameters_are_json_that_names_the_model(self, embedder: Embedder) -> None:
        parameters = dict(embedder.parameters)

        assert parameters["model"]
        assert json.loads(json.dumps(parameters, allow_nan=False)) == parameters
        embedder.embed_texts([TABS])
        assert embedder.parameters == parameters

    # ---------------------------------------------------------------- texts
    def test_an_empty_text_has_a_vector_that_is_always_the_same(self, embedder: Embedder) -> None:
        assert embedder.embed_texts(["", TABS, ""])[2] == embed(embedder, "")

    def test_a_very_long_text_has_a_vector(self, embedder: Embedder) -> None:
        (vector,) = embedder.embed_texts([LONG * 40])

        assert len(vector) == embedder.dimension

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
    def test_any_utf_8_text_has_a_vector(self, embedder: Embedder, text: str) -> None:
        assert embedder.embed_texts([text, TABS, text])[2] == embed(embedder, text)

    def test_half_a_character_is_refused(self, embedder: Embedder) -> None:
        with pytest.raises(InvalidValueError, match="half a character"):
            embedder.embed_texts([TABS, "\ud800"])

    def test_a_text_that_is_not_in_a_list_is_refused(self, embedder: Embedder) -> None:
        with pytest.raises(InvalidValueError, match="list of texts"):
            embedder.embed_texts(TABS)

    def test_texts_with_the_same_meaning_are_nearer(self, embedder: Embedder) -> None:
        tabs, again, river = embedder.embed_texts([TABS, TABS_AGAIN, RIVER])

        assert cosine(tabs, again) > cosine(tabs, river) + 0.1
        assert cosine(tabs, again) > cosine(again, river) + 0.1


def embed(embedder: Embedder, text: str) -> list[float]:
    """Return the vector of a text that is embedded alone."""
    (vector,) = embedder.embed_texts([text])
    return vector


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))
