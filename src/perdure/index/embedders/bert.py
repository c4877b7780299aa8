"""The graph of the model: BERT, with its large matrices as whole numbers of eight bits.

Weights are rounded to whole numbers with a scale for each column. What is multiplied by them is
rounded as it comes, with one scale for the whole text. So a text is computed alone and never
padded, and its vector depends on nothing but itself.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.index.embedders.model_files import DIMENSION, HEADS, LAYERS, MAX_TOKENS

Array = NDArray[Any]
Attribute = int | float

_IR_VERSION = 8
_OPSETS = {"": 18, "com.microsoft": 1}
_TYPES = {"float32": 1, "int8": 3, "int64": 7}
_VARINT, _BYTES, _FLOAT = 0, 2, 5
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2
Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
_LENGTH = 8
"""How many bytes say how long the header is."""
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


class Graph:
    """Nodes and constants in the order in which they are computed."""

    def __init__(self, name: str) -> None:
        self._fields = [_text(2, name)]
        self._count = 0

    def constant(self, name: str, array: Array) -> str:
        """Add an array that is part of the file; return its name."""
        kept = np.ascontiguousarray(array)
        tensor = [_number(1, size) for size in kept.shape]
        tensor += [_number(2, _TYPES[kept.dtype.name]), _text(8, name), _bytes(9, kept.tobytes())]
        self._fields.append(_message(5, tensor))
        return name

    def node(self, operation: str, *inputs: str, domain: str = "", **attributes: Attribute) -> str:
        """Add an operation on what is there; return the name of its result."""
        return self.nodes(operation, *inputs, results=1, domain=domain, **attributes)[0]

    def nodes(
        self,
        operation: str,
        *inputs: str,
        results: int,
        domain: str = "",
        **attributes: Attribute,
    ) -> list[str]:
        self._count += 1
        names = [f"{operation}_{self._count}_{place}" for place in range(results)]
        fields = [_text(1, each) for each in inputs] + [_text(2, each) for each in names]
        fields += [_text(4, operation), *(_attribute(*each) for each in attributes.items())]
        self._fields.append(_message(1, [*fields, _text(7, domain)]))
        return names

    def takes(self, name: str, kind: str, shape: Sequence[int | str]) -> str:
        """Name an input; a size that is not known yet is a word."""
        self._fields.append(_message(11, _described(name, kind, shape)))
        return name

    def gives(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        self._fields.append(_message(12, _described(name, kind, shape)))

    def to_bytes(self) -> bytes:
        """Return the whole file. The same graph is always the same bytes."""
        model = [_number(1, _IR_VERSION), _message(7, self._fields)]
        model += [_message(8, [_text(1, name), _number(2, v)]) for name, v in _OPSETS.items()]
        return b"".join(model)


def _described(name: str, kind: str, shape: Sequence[int | str]) -> list[bytes]:
    sizes = [_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape]
    dimensions = _message(2, [_message(1, [size]) for size in sizes])
    tensor = _message(1, [_number(1, _TYPES[kind]), dimensions])
    return [_text(1, name), _message(2, [tensor])]


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        fields = [_number(3, value), _number(20, _INT_ATTRIBUTE)]
    else:
        fields = [_tag(2, _FLOAT) + struct.pack("<f", value), _number(20, _FLOAT_ATTRIBUTE)]
    return _message(5, [_text(1, name), *fields])


def _message(field: int, parts: Sequence[bytes]) -> bytes:
    return _bytes(field, b"".join(parts))


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _tag(field, _BYTES) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _tag(field, _VARINT) + _varint(value % 2**64)


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Return the number seven bits at a time, the lowest first; the top bit says that more come."""
    groups = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def read_weights(path: Path) -> Weights:
    """Return the float arrays of a safetensors file, by name; its digest was compared before."""
    file = np.memmap(path, mode="r")
    start = _LENGTH + int.from_bytes(file[:_LENGTH].tobytes(), "little")
    header = json.loads(file[_LENGTH:start].tobytes())
    return {name: _array(file[start:], told) for name, told in header.items() if _is_float(told)}


def _is_float(told: Mapping[str, Any]) -> bool:
    return told.get("dtype") == "F32"


def _array(file: NDArray[np.uint8], told: Mapping[str, Any]) -> Floats:
    first, end = told["data_offsets"]
    # Copied, because nobody promises that floats begin where floats may.
    return np.frombuffer(file[first:end].tobytes(), "<f4").reshape(told["shape"])


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
        graph = self._graph
        rounded, scales = _rounded(self._weights["embeddings.word_embeddings.weight"].T, 127)
        words = graph.node("Gather", graph.constant("words", rounded.T), self._tokens)
        scale = graph.node("Gather", graph.constant("words.scale", scales[:, None]), self._tokens)
        meaning = graph.node("Mul", graph.node("Cast", words, to=_TYPES["float32"]), scale)
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
