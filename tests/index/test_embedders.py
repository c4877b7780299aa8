"""Every embedder that ships passes the whole contract."""

from collections.abc import Iterator

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import Embedder
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.minilm import MiniLMEmbedder
from perdure.index.openai_embedder import Endpoint, OpenAIEmbedder
from perdure.testing.embedder import EmbedderSuite, cosine, embed
from tests.index.endpoints import serving
from tests.index.minilm_cache import installed_model


class TestHashing(EmbedderSuite):
    promises = frozenset()

    @staticmethod
    def open_embedder() -> Embedder:
        return HashingEmbedder()


class TestMiniLM(EmbedderSuite):
    promises = frozenset()

    @staticmethod
    def open_embedder() -> Embedder:
        return MiniLMEmbedder(installed_model())


class TestOpenAICompatible(EmbedderSuite):
    promises = frozenset()
    base_url = ""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls) -> Iterator[None]:
        with serving() as server:
            cls.base_url = server.base_url
            yield

    @staticmethod
    def open_embedder() -> Embedder:
        return OpenAIEmbedder(Endpoint(TestOpenAICompatible.base_url), "any")


# ---------------------------------------------------------------- hashing
def test_a_hash_is_the_same_on_every_machine_and_forever() -> None:
    vector = embed(HashingEmbedder(8), "Tabs over spaces")

    assert [round(number, 6) for number in vector] == [
        *(0.213201, 0.1066, 0.639602, 0.0),
        *(-0.1066, 0.639602, -0.1066, -0.319801),
    ]


@pytest.mark.parametrize("empty", ["", " ", "\n", "!?", "🙂"])
def test_a_text_without_words_has_one_fixed_vector(empty: str) -> None:
    assert embed(HashingEmbedder(8), empty) == [1.0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [("indent", "indented"), ("Café", "CAFE"), ("painting", "paints"), ("ﬁle", "file")],
)
def test_forms_of_a_word_are_near(one: str, other: str) -> None:
    hashing = HashingEmbedder()

    assert cosine(embed(hashing, one), embed(hashing, other)) > 0.5


def test_words_that_share_nothing_are_far_apart() -> None:
    words = ["river", "compiler", "Brazil", "quickly", "moth", "tax", "onion", "bug"]
    vectors = HashingEmbedder().embed_texts(words)
    near = [cosine(a, b) for at, a in enumerate(vectors) for b in vectors[:at]]

    assert max(map(abs, near)) < 0.3


@pytest.mark.parametrize("dimension", [-1, 0, 7, 65_537])
def test_a_dimension_that_makes_no_sense_is_refused(dimension: int) -> None:
    with pytest.raises(InvalidValueError, match="dimension"):
        HashingEmbedder(dimension)


def test_the_dimension_is_a_parameter() -> None:
    assert HashingEmbedder(64).dimension == len(embed(HashingEmbedder(64), "a"))
    assert HashingEmbedder(64).parameters != HashingEmbedder(65).parameters
