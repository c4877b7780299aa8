"""Canonical CBOR (DAG-CBOR): one encoding for each value.

Keys are sorted by length, then bytes; floats have 64 bits; links are tag 42. The same value has the
same bytes on every machine, and IPFS tools can read them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import cbor2

from perdure.artifacts.cid import CID
from perdure.errors import InvalidArtifactError

Value = None | bool | int | float | str | bytes | CID | Sequence["Value"] | Mapping[str, "Value"]
"""The values that can be encoded."""

_LINK_TAG = 42
_LINK_PREFIX = b"\0"
_INTEGERS = range(-(2**64), 2**64)
_DEEPEST = 100
_PLAIN = frozenset({type(None), bool, str, bytes})


def encode(value: Value) -> bytes:
    """Return the encoding of `value`; `InvalidArtifactError` if it has none."""
    try:
        return cbor2.dumps(_canonical(value, _DEEPEST))
    except UnicodeEncodeError as error:
        raise InvalidArtifactError("a text in it has a lone surrogate") from error


def _canonical(value: Value, depth: int) -> object:
    if depth == 0:
        raise InvalidArtifactError(f"it is nested more than {_DEEPEST} deep")
    if type(value) in _PLAIN or isinstance(value, str | bytes):  # the first check is the quicker
        return value
    if isinstance(value, int):
        if value not in _INTEGERS:
            raise InvalidArtifactError(f"{value} does not fit into 64 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArtifactError(f"{value} is not a finite number")
        return value
    if isinstance(value, CID):
        return cbor2.CBORTag(_LINK_TAG, _LINK_PREFIX + bytes(value))
    if isinstance(value, Mapping):
        items = ((key, value[key]) for key in _sorted(value))
        return {
            key: v if depth > 1 and type(v) in _PLAIN else _canonical(v, depth - 1)
            for key, v in items
        }
    if isinstance(value, Sequence):
        return [v if depth > 1 and type(v) in _PLAIN else _canonical(v, depth - 1) for v in value]
    raise InvalidArtifactError(f"{type(value).__name__} has no canonical form")


def _sorted(keys: Iterable[str]) -> list[str]:
    if all(type(key) is str and key.isascii() for key in keys):
        return sorted(sorted(keys), key=len)  # same order as `_key_order`, and faster
    return sorted(keys, key=_key_order)


def _key_order(key: object) -> tuple[int, bytes]:
    encoded = _text(key).encode()
    return len(encoded), encoded


def decode(data: bytes) -> Value:
    """Decode canonical CBOR; `InvalidArtifactError` for any other bytes."""
    try:
        value = _from_cbor(cbor2.loads(data), _DEEPEST)
    except (cbor2.CBORDecodeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidArtifactError(f"it is not canonical CBOR: {error}") from error
    if encode(value) != data:
        raise InvalidArtifactError("it is CBOR, but not in the canonical form")
    return value


def _from_cbor(value: object, depth: int) -> Value:
    if depth == 0:
        raise InvalidArtifactError(f"it is nested more than {_DEEPEST} deep")
    if type(value) in _PLAIN or isinstance(value, int | float):
        return value  # type: ignore[return-value] # one of those
    if isinstance(value, cbor2.CBORTag):
        return _link(value)
    if isinstance(value, Mapping):
        return {_text(key): _from_cbor(item, depth - 1) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_from_cbor(item, depth - 1) for item in value]
    raise InvalidArtifactError(f"{type(value).__name__} is not supported")


def _link(tag: cbor2.CBORTag) -> CID:
    content = tag.value
    if tag.tag != _LINK_TAG or not isinstance(content, bytes) or content[:1] != _LINK_PREFIX:
        raise InvalidArtifactError(f"the tag {tag.tag} is not supported")
    return CID.from_bytes(content[1:])


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidArtifactError(f"a key must be text, not {type(key).__name__}")
    return key
