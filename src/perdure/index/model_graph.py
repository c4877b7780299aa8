"""Builds the graph of the model: BERT, with its large matrices as 8-bit integers, in an ONNX file.

Weights are quantised with a scale per column, activations at run time with one scale for the whole
text. A text is computed alone and never padded, so its vector depends on nothing else.

The file is written here because its digest is part of every stored vector's name (decision 0105).
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.index.minilm import DIMENSION, HEADS, LAYERS, MAX_TOKENS, NAME

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]

_IR_VERSION = 8
_OURS = "com.microsoft"
"""The domain of the operations that only onnxruntime has."""
_OPSETS = {"": 18, _OURS: 1}
_TYPES = {"float32": 1, "int8": 3, "int64": 7}
_VARINT, _BYTES, _FLOAT = 0, 2, 5
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2
_LENGTH = 8
"""Bytes of the length of a safetensors header."""
_LARGEST = 64
"""The limit of a weight. Older CPUs add two products in 16 bits, and 2 * 255 * 64 fits."""
_LOUD = (63, 99, 127, 223)
"""Components of the hidden state that are up to thirty times the others, in any text.

Quantised with them, the others would lose precision; so they are multiplied separately, as floats.
"""
_LOUD_INSIDE: Sequence[tuple[int, ...]] = ((856,), (607,), (218, 1004), (358,), (637,), ())
"""The same between the two halves of each layer's network."""
_EPSILON = 1e-12


def read_weights(path: Path) -> Weights:
    """Return the float arrays of a safetensors file, by name; its digest was checked before."""
    file = np.memmap(path, mode="r")
    start = _LENGTH + int.from_bytes(file[:_LENGTH].tobytes(), "little")
    header = json.loads(file[_LENGTH:start].tobytes())
    weights: dict[str, Floats] = {}
    for name, tensor in header.items():
        if tensor.get("dtype") == "F32":
            first, end = tensor["data_offsets"]
            data = file[start + first : start + end].tobytes()  # copied, because of alignment
            weights[name] = np.frombuffer(data, "<f4").reshape(tensor["shape"])
    return weights


def build_graph(weights: Weights) -> bytes:
    """Return the model as an ONNX file: the tokens of one text in, a vector of unit length out."""
    return _Bert(weights).build()


# ---------------------------------------------------------------- the file
class Graph:
    """An ONNX graph; nodes and constants are added in the order of computation."""

    def __init__(self, name: str) -> None:
        self._fields = [_text(2, name)]
        self._count = 0

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Add an array to the file; return its name."""
        values = np.ascontiguousarray(array)
        tensor = [_number(1, size) for size in values.shape]
        tensor += [_number(2, _TYPES[values.dtype.name]), _text(8, name)]
        self._fields.append(_message(5, *tensor, _bytes(9, values.tobytes())))
        return name

    def node(self, operation: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        """Add an operation; return the name of its result."""
        return self.nodes(operation, *inputs, results=1, domain=domain, **attributes)[0]

    def nodes(
        self, operation: str, *inputs: str, results: int, domain: str = "", **attributes: float
    ) -> list[str]:
        self._count += 1
        names = [f"{operation}_{self._count}_{place}" for place in range(results)]
        fields = [_text(1, each) for each in inputs] + [_text(2, each) for each in names]
        fields += [_text(4, operation), *(_attribute(*each) for each in attributes.items())]
        self._fields.append(_message(1, *fields, _text(7, domain)))
        return names

    def add_input(self, name: str, kind: str, shape: Iterable[int | str]) -> str:
        """Add an input; a dimension that is not fixed is a word."""
        self._fields.append(_message(11, *_described(name, kind, shape)))
        return name

    def add_output(self, name: str, kind: str, shape: Iterable[int | str]) -> None:
        self._fields.append(_message(12, *_described(name, kind, shape)))

    def to_bytes(self) -> bytes:
        """Return the whole file. The same graph always gives the same bytes."""
        opsets = [_message(8, _text(1, name), _number(2, v)) for name, v in _OPSETS.items()]
        return b"".join([_number(1, _IR_VERSION), _message(7, *self._fields), *opsets])


def _described(name: str, kind: str, shape: Iterable[int | str]) -> list[bytes]:
    sizes = [_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape]
    dimensions = _message(2, *[_message(1, size) for size in sizes])
    tensor = _message(1, _number(1, _TYPES[kind]), dimensions)
    return [_text(1, name), _message(2, tensor)]


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        fields = [_number(3, value), _number(20, _INT_ATTRIBUTE)]
    else:
        fields = [_tag(2, _FLOAT) + struct.pack("<f", value), _number(20, _FLOAT_ATTRIBUTE)]
    return _message(5, _text(1, name), *fields)


def _message(field: int, *fields: bytes) -> bytes:
    return _bytes(field, b"".join(fields))


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _tag(field, _BYTES) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _tag(field, _VARINT) + _varint(value % 2**64)


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, lowest first; the top bit is set on all but one."""
    groups = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


# ---------------------------------------------------------------- the model
class _Bert(Graph):
    def __init__(self, weights: Weights) -> None:
        super().__init__(NAME)
        self._weights = weights
        self._tokens = self.add_input("tokens", "int64", [1, "length"])
        self._first, self._second, self._third = (
            self.constant(f"axis.{axis}", np.array([axis], np.int64)) for axis in range(3)
        )

    def build(self) -> bytes:
        state = self._embedded()
        for layer in range(LAYERS):
            state = self._layer(layer, state)
        mean = self.node("ReduceMean", state, self._second, keepdims=0)
        unit = self.node("LpNormalization", mean, axis=-1, p=2)
        self.add_output(unit, "float32", [1, DIMENSION])
        return self.to_bytes()

    def _embedded(self) -> str:
        rounded, scales = _quantised(self._weights["embeddings.word_embeddings.weight"].T, 127)
        words = self.node("Gather", self.constant("words", rounded.T), self._tokens)
        scale = self.node("Gather", self.constant("words.scale", scales[:, None]), self._tokens)
        meaning = self.node("Mul", self.node("Cast", words, to=_TYPES["float32"]), scale)
        length = self.node("Slice", self.node("Shape", self._tokens), self._second, self._third)
        positions = self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        only_kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        places = self.constant("places", np.asarray(positions + only_kind, np.float32))
        place = self.node("Slice", places, self._first, length, self._first)
        return self._normalised(self.node("Add", meaning, place), "embeddings.LayerNorm")

    def _layer(self, layer: int, state: str) -> str:
        name = f"encoder.layer.{layer}"
        looked = self._linear(self._attention(name, state), f"{name}.attention.output.dense")
        seen = self.node("Add", looked, state)
        state = self._normalised(seen, f"{name}.attention.output.LayerNorm")
        wide = self._linear(state, f"{name}.intermediate.dense", loud=_LOUD)
        wide = self.node("Gelu", wide, domain=_OURS)
        thought = self._linear(wide, f"{name}.output.dense", loud=_LOUD_INSIDE[layer])
        return self._normalised(self.node("Add", thought, state), f"{name}.output.LayerNorm")

    def _attention(self, name: str, state: str) -> str:
        heads = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        joined = self._linear(state, *heads, loud=_LOUD)
        sizes = self.constant(f"{name}.sizes", np.array([DIMENSION] * 3, np.int64))
        split = self.nodes("Split", joined, sizes, results=3, axis=-1)
        return self.node("MultiHeadAttention", *split, domain=_OURS, num_heads=HEADS)

    def _linear(self, state: str, *names: str, loud: Sequence[int] = ()) -> str:
        """Multiply by the weights of these names, side by side, and add their biases."""
        matrix = np.concatenate([self._weights[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        if not loud:
            return self._quantised_product(state, names[0], matrix, bias)
        indexes = self.constant(f"{names[0]}.loud", np.array(loud, np.int64))
        gathered = self.node("Gather", state, indexes, axis=2)
        weight = self.constant(f"{names[0]}.loud.weight", matrix[list(loud)])
        separate = self.node("MatMul", gathered, weight)
        quiet = np.ones(len(matrix), np.float32)
        quiet[list(loud)] = 0
        state = self.node("Mul", state, self.constant(f"{names[0]}.quiet", quiet))
        rest = self._quantised_product(state, names[0], matrix * quiet[:, None], bias)
        return self.node("Add", rest, separate)

    def _quantised_product(self, state: str, name: str, matrix: Floats, bias: Floats) -> str:
        rounded, scales = _quantised(matrix, _LARGEST)
        return self.node(
            "DynamicQuantizeMatMul",
            state,
            self.constant(f"{name}.weight", rounded),
            self.constant(f"{name}.scale", scales),
            self.constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
            self.constant(f"{name}.bias", bias),
            domain=_OURS,
        )

    def _normalised(self, state: str, name: str) -> str:
        gain = self.constant(f"{name}.weight", self._weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self._weights[f"{name}.bias"])
        return self.node("LayerNormalization", state, gain, bias, axis=-1, epsilon=_EPSILON)


def _quantised(matrix: Floats, largest: int) -> tuple[NDArray[np.int8], Floats]:
    """Return a matrix as integers up to `largest`, and the scale of each column."""
    scales = np.abs(matrix).max(axis=0) / np.float32(largest)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales
