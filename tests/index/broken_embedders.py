"""Embedders with one fault each. The name says the fault."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import count

from perdure.errors import InvalidValueError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model.values import JSON

A_MOMENT = 0.0005
"""Seconds between two steps: long enough for another thread to come in between."""


class HasNoParameters:
    """Embeds well, and says nothing of what that depends on."""

    dimension = 256

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return HashingEmbedder().embed_texts(texts)


# ---------------------------------------------------------------- shape
class SortsTheTexts(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return super().embed_texts(texts if isinstance(texts, str) else sorted(texts))


class SortsTheTextsOfTheCaller(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        if isinstance(texts, list):
            texts.sort()
        return vectors


class EmbedsTheSameOnlyOnce(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return super().embed_texts(texts if isinstance(texts, str) else list(dict.fromkeys(texts)))


class StopsAfterABatch(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return super().embed_texts(texts)[:128]


class MixesUpItsBatches(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        return [*vectors[64:], *vectors[:64]] if len(vectors) > 64 else vectors


class NeedsATextAtLeast(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        return [vectors[0], *vectors[1:]]


class TellsAnotherDimension(HashingEmbedder):
    @property
    def dimension(self) -> int:
        return super().dimension + 1


class MakesNothingOfNothing(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        return [vector if text else [] for text, vector in zip(texts, vectors, strict=True)]


class ForgetsTheLength(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return [[3 * number for number in vector] for vector in super().embed_texts(texts)]


class HasNoDirectionForNothing(HashingEmbedder):
    def _embed(self, text: str) -> list[float]:
        return super()._embed(text) if text else [0.0] * self.dimension


class IsNoNumberForNothing(HashingEmbedder):
    def _embed(self, text: str) -> list[float]:
        return super()._embed(text) if text else [math.nan] * self.dimension


class ReturnsTuples(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return [tuple(vector) for vector in super().embed_texts(texts)]  # type: ignore[misc]


# ---------------------------------------------------------------- always the same
class LooksAtTheNeighbours(HashingEmbedder):
    """Scales by what the whole batch has, as rounding does if it is done for all at once."""

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        step = max((abs(number) for vector in vectors for number in vector), default=1) / 127
        return [_unit([round(number / step) for number in vector]) for vector in vectors]


class PadsToTheLongest(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if isinstance(texts, str):
            return super().embed_texts(texts)
        longest = max((len(text.split()) for text in texts), default=0)
        padded = [" ".join([text, *["pad"] * (longest - len(text.split()))]) for text in texts]
        return super().embed_texts(padded)


_instances = count()


class IsAnotherOneEachTime(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self._seed = next(_instances) % 97

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = super().embed_texts(texts)
        return [[*vector[self._seed :], *vector[: self._seed]] for vector in vectors]


class TellsItsAddress(HashingEmbedder):
    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {**super().parameters, "instance": id(self)}


class ReturnsWhatItKeeps(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self._stored: dict[str, list[float]] = {}

    def _embed(self, text: str) -> list[float]:
        return self._stored.setdefault(text, super()._embed(text))


class ReturnsOneListTwice(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        known = dict(zip(texts, super().embed_texts(texts), strict=True))
        return [known[text] for text in texts]


class SharesItsDesk(HashingEmbedder):
    """Keeps the text at hand where other threads put theirs."""

    _text = ""

    def _embed(self, text: str) -> list[float]:
        self._text = text
        if threading.active_count() > 1:
            time.sleep(A_MOMENT)
        return super()._embed(self._text)


# ---------------------------------------------------------------- parameters
class NamesNoModel(HashingEmbedder):
    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {"dimension": self.dimension}


class TellsWhatIsNoJSON(HashingEmbedder):
    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {**super().parameters, "layers": (1, 2)}


class CountsInItsParameters(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {**super().parameters, "count": self._count}

    def _embed(self, text: str) -> list[float]:
        self._count += 1
        return super()._embed(text)


# ---------------------------------------------------------------- texts
class GuessesForNothing(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self._guess = 0

    def _embed(self, text: str) -> list[float]:
        if text:
            return super()._embed(text)
        self._guess = (self._guess + 1) % self.dimension
        vector = [0.0] * self.dimension
        vector[self._guess] = 1.0
        return vector


class RefusesLongTexts(HashingEmbedder):
    def _embed(self, text: str) -> list[float]:
        if len(text) > 50_000:
            raise InvalidValueError("the text is too long. Fix: shorten it.")
        return super()._embed(text)


class KnowsASCIIOnly(HashingEmbedder):
    def _embed(self, text: str) -> list[float]:
        return super()._embed(text.encode("ascii").decode())


class EndsAtZero(HashingEmbedder):
    """Reads past the end of a text that C takes to be empty."""

    def _embed(self, text: str) -> list[float]:
        if text.startswith("\0"):
            text = str(id(text)) + str(time.monotonic_ns())
        return super()._embed(text)


class MendsHalfCharacters(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if isinstance(texts, str):
            return super().embed_texts(texts)
        return super().embed_texts([text.encode(errors="replace").decode() for text in texts])


class EmbedsLetters(HashingEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return super().embed_texts(list(texts))


class KnowsNoLikeness(HashingEmbedder):
    def _embed(self, text: str) -> list[float]:
        return super()._embed(text[::-1].replace(" ", "") if text.startswith("Tabs") else text)


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length else [1.0] + [0.0] * (len(vector) - 1)
