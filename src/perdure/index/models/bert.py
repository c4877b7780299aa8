"""The graph of the model: BERT, with its large matrices as whole numbers of eight bits.

Weights are rounded to whole numbers with a scale for each column. What is multiplied by them is
rounded as it comes, with one scale for the whole text. So a text is computed alone and never
padded, and its vector depends on nothing but itself.
"""

from collections.abc import Sequence

import numpy as np

from perdure.index.models.onnx import Graph
from perdure.index.models.published import DIMENSION, HEADS, LAYERS, MAX_TOKENS
from perdure.index.models.weights import Floats, Weights

_FLOAT = 1
_LARGEST = 64
"""Of a weight. Older processors add two products in 16 bits, and 2 * 255 * 64 is what fits."""
_LOUD = (63, 99, 127, 223)
"""Numbers of the hidden state that are up to thirty times the others, in whatever text.

Rounded with them, the others would keep too little; so they are multiplied as they are, apart.
"""
_LOUD_INSIDE: Sequence[tuple[int, ...]] = ((856,), (607,), (218, 1004), (358,), (637,), ())
"""The same between the two halves of each layer's network."""
_EPSILON = 1e-12
_OURS = "com.microsoft"


def build_graph(weights: Weights) -> bytes:
    """Return the model as an ONNX file: the tokens of one text in, a vector of unit length out."""
    return _Builder(weights).build()


class _Builder:
    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._graph = Graph("all-MiniLM-L6-v2")
        self._tokens = self._graph.takes("tokens", "int64", [1, "length"])
        self._first, self._second, self._third = (
            self._graph.constant(f"axis.{axis}", np.array([axis], np.int64)) for axis in range(3)
        )

    def build(self) -> bytes:
        state = self._embedded()
        for layer in range(LAYERS):
            state = self._layer(layer, state)
        mean = self._graph.node("ReduceMean", state, self._second, keepdims=0)
        unit = self._graph.node("LpNormalization", mean, axis=-1, p=2)
        self._graph.gives(unit, "float32", [1, DIMENSION])
        return self._graph.to_bytes()

    def _embedded(self) -> str:
        """Return the tokens as vectors, each with its place in the text."""
        graph = self._graph
        rounded, scales = _rounded(self._weights["embeddings.word_embeddings.weight"].T, 127)
        words = graph.node("Gather", graph.constant("words", rounded.T), self._tokens)
        scale = graph.node("Gather", graph.constant("words.scale", scales[:, None]), self._tokens)
        meaning = graph.node("Mul", graph.node("Cast", words, to=_FLOAT), scale)
        length = graph.node("Slice", graph.node("Shape", self._tokens), self._second, self._third)
        places = graph.constant("places", self._places())
        place = graph.node("Slice", places, self._first, length, self._first)
        return self._normalised(graph.node("Add", meaning, place), "embeddings.LayerNorm")

    def _places(self) -> Floats:
        places = self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        only_kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        return np.asarray(places + only_kind, np.float32)

    def _layer(self, layer: int, state: str) -> str:
        graph, name = self._graph, f"encoder.layer.{layer}"
        looked = self._linear(self._attention(name, state), f"{name}.attention.output.dense")
        seen = graph.node("Add", looked, state)
        state = self._normalised(seen, f"{name}.attention.output.LayerNorm")
        wide = self._linear(state, f"{name}.intermediate.dense", loud=_LOUD)
        wide = graph.node("Gelu", wide, domain=_OURS)
        thought = self._linear(wide, f"{name}.output.dense", loud=_LOUD_INSIDE[layer])
        return self._normalised(graph.node("Add", thought, state), f"{name}.output.LayerNorm")

    def _attention(self, name: str, state: str) -> str:
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        joined = self._linear(state, *parts, loud=_LOUD)
        sizes = self._graph.constant(f"{name}.sizes", np.array([DIMENSION] * 3, np.int64))
        split = self._graph.nodes("Split", joined, sizes, results=3, axis=-1)
        return self._graph.node("MultiHeadAttention", *split, domain=_OURS, num_heads=HEADS)

    def _linear(self, state: str, *parts: str, loud: Sequence[int] = ()) -> str:
        """Multiply by the weights of these parts, side by side, and add their biases."""
        matrix = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        if not loud:
            return self._rounded_product(state, parts[0], matrix, bias)
        apart = self._graph.node(
            "MatMul",
            self._graph.node("Gather", state, self._places_of(parts[0], loud), axis=2),
            self._graph.constant(f"{parts[0]}.loud.weight", matrix[list(loud)]),
        )
        quiet = np.ones(len(matrix), np.float32)
        quiet[list(loud)] = 0
        state = self._graph.node("Mul", state, self._graph.constant(f"{parts[0]}.quiet", quiet))
        rest = self._rounded_product(state, parts[0], matrix * quiet[:, None], bias)
        return self._graph.node("Add", rest, apart)

    def _places_of(self, name: str, loud: Sequence[int]) -> str:
        return self._graph.constant(f"{name}.loud", np.array(loud, np.int64))

    def _rounded_product(self, state: str, name: str, matrix: Floats, bias: Floats) -> str:
        rounded, scales = _rounded(matrix, _LARGEST)
        return self._graph.node(
            "DynamicQuantizeMatMul",
            state,
            self._graph.constant(f"{name}.weight", rounded),
            self._graph.constant(f"{name}.scale", scales),
            self._graph.constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
            self._graph.constant(f"{name}.bias", bias),
            domain=_OURS,
        )

    def _normalised(self, state: str, name: str) -> str:
        gain = self._graph.constant(f"{name}.weight", self._weights[f"{name}.weight"])
        bias = self._graph.constant(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._graph.node("LayerNormalization", state, gain, bias, axis=-1, epsilon=_EPSILON)


def _rounded(matrix: Floats, largest: int) -> tuple[np.ndarray, Floats]:
    """Return a matrix as whole numbers up to `largest`, and what each column is to be times."""
    scales = np.abs(matrix).max(axis=0) / np.float32(largest)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales
