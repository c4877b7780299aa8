"""The model once more, in plain numpy and single floats, as the paper has it: slow, and exact."""

from collections.abc import Mapping, Sequence
from math import erf, sqrt
from typing import Any

import numpy as np

Floats = Any
"""An array; what numpy's operators make of arrays has no type of its own."""

_HEADS = 12
_LAYERS = 6
_gauss = np.vectorize(lambda x: (1 + erf(x / sqrt(2))) / 2)


class Reference:
    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights

    def embed(self, tokens: Sequence[int]) -> Floats:
        """Return the vector of a text of which these are the tokens."""
        state = self._norm("embeddings.LayerNorm", self._embedded(tokens))
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}"
            seen = self._linear(f"{name}.attention.output.dense", self._attend(name, state))
            state = self._norm(f"{name}.attention.output.LayerNorm", state + seen)
            wide = self._linear(f"{name}.intermediate.dense", state)
            narrow = self._linear(f"{name}.output.dense", wide * _gauss(wide))
            state = self._norm(f"{name}.output.LayerNorm", state + narrow)
        mean = state.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _embedded(self, tokens: Sequence[int]) -> Floats:
        words, places, kinds = (
            self._weights[f"embeddings.{part}_embeddings.weight"]
            for part in ("word", "position", "token_type")
        )
        return words[list(tokens)] + places[: len(tokens)] + kinds[0]

    def _attend(self, name: str, state: Floats) -> Floats:
        query, key, value = (
            self._heads(self._linear(f"{name}.attention.self.{part}", state))
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / sqrt(query.shape[2])
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        return (shares @ value).swapaxes(0, 1).reshape(state.shape)

    @staticmethod
    def _heads(state: Floats) -> Floats:
        return state.reshape(len(state), _HEADS, -1).swapaxes(0, 1)

    def _linear(self, name: str, state: Floats) -> Floats:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, name: str, state: Floats) -> Floats:
        centred = state - state.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        gain, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return centred / spread * gain + bias
