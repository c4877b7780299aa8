"""An ONNX file, written by hand: the few messages of its protobuf that a graph needs."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Attribute = int | float

_IR_VERSION = 8
_OPSETS = {"": 18, "com.microsoft": 1}
_TYPES = {"float32": 1, "int8": 3, "int64": 7}
_VARINT, _BYTES, _FLOAT = 0, 2, 5
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2


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
        """Add an operation with several results; return their names."""
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
