"""An embedder without a model: stems and trigrams, hashed to components. For tests."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from perdure.errors import InvalidValueError
from perdure.index.contract import check_texts
from perdure.model.values import JSON

_LEAST, _MOST = 8, 65_536
_WORD = re.compile(r"[^\W_]+")
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "y", "e")
_SHORTEST_STEM = 3
_TRIGRAM = 3
_TRIGRAM_WEIGHT = 0.25


class HashingEmbedder:
    """Deterministic: texts are near if they share stems or trigrams."""

    def __init__(self, dimension: int = 256) -> None:
        if not _LEAST <= dimension <= _MOST:
            raise InvalidValueError(
                f"the dimension is {dimension}. Fix: choose one from {_LEAST} to {_MOST:,}."
            )
        self._dimension = dimension

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {"model": "hashing", "version": 1, "dimension": self._dimension}

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embed(text) for text in check_texts(texts)]

    def _embed(self, text: str) -> list[float]:
        counts = Counter(_features(text))
        # Sums are exact and in one order, so that every machine rounds them alike.
        terms: list[list[float]] = [[] for _ in range(self._dimension)]
        for feature, count in counts.items():
            place, sign = _hashed(feature, self._dimension)
            terms[place].append(sign * _weight(feature) * math.sqrt(count))
        vector = [math.fsum(each) for each in terms]
        length = math.hypot(*vector)
        if not length:  # without features, or they cancel out
            return [1.0] + [0.0] * (self._dimension - 1)
        return [each / length for each in vector]


def _features(text: str) -> Iterator[str]:
    """Yield the stem of each word, after a space, and its trigrams."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    for word in _WORD.findall(bare):
        yield f" {_stem(word)}"
        framed = f"<{word}>"
        for start in range(len(framed) - _TRIGRAM + 1):
            yield framed[start : start + _TRIGRAM]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def _weight(feature: str) -> float:
    return 1.0 if feature.startswith(" ") else _TRIGRAM_WEIGHT


def _hashed(feature: str, dimension: int) -> tuple[int, int]:
    """Return the component of a feature, and a sign, so that collisions cancel on average."""
    number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return (number >> 1) % dimension, 1 if number & 1 else -1
