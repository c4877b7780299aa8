"""Artifacts, and the canonical encoding of their structures.

The encoding is canonical CBOR (DAG-CBOR), one for each value: keys are sorted by length, then
bytes; floats have 64 bits; links are tag 42. The same value has the same bytes on every machine,
and IPFS tools can read them. An artifact is literal bytes, or is derived from others.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import cbor2

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.dataclass import dataclass, field
from perdure.errors import CycleError, InvalidArtifactError

# ---------------------------------------------------------------- canonical encoding
Value = None | bool | int | float | str | bytes | CID | Sequence["Value"] | Mapping[str, "Value"]
"""The values that can be encoded."""

_LINK_TAG = 42
_LINK_PREFIX = b"\0"
_INTEGERS = range(-(2**64), 2**64)
_DEEPEST = 100
_PLAIN = frozenset({type(None), bool, str, bytes})


def encode_canonical(value: Value) -> bytes:
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


def decode_canonical(data: bytes) -> Value:
    """Decode canonical CBOR; `InvalidArtifactError` for any other bytes."""
    try:
        value = _from_cbor(cbor2.loads(data), _DEEPEST)
    except (cbor2.CBORDecodeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidArtifactError(f"it is not canonical CBOR: {error}") from error
    if encode_canonical(value) != data:
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


# ---------------------------------------------------------------- artifacts
SID = CID
"""The hash of an artifact's structure, written as the CID of that structure in DAG-CBOR."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal bytes."""

    data: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise InvalidArtifactError(f"a literal is bytes, not {type(self.data).__name__}")


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """The result of a version of an operation on other artifacts.

    The same operation, version, parameters and children are the same artifact everywhere.
    """

    operation: str
    version: str
    children: tuple["Artifact | SID", ...] = ()
    """Artifacts, or the SIDs of registered ones."""
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.operation or not self.version:
            raise InvalidArtifactError("a derived artifact names its operation and its version")
        for child in self.children:
            if isinstance(child, CID) and child.codec is not Codec.DAG_CBOR:
                raise InvalidArtifactError(
                    f"{child} names content, but a child is named by its structure. Fix: use a "
                    "Literal, or the SID that `sid_of` returns."
                )


Artifact = Literal | Derived


class Structure(NamedTuple):
    """An artifact with its children named by SID, as it is registered."""

    sid: SID
    encoded: bytes
    children: tuple[SID, ...]


def structure_of(artifact: Artifact, children: tuple[SID, ...], algorithm: Hash) -> Structure:
    if isinstance(artifact, Literal):
        return literal_structure(CID.of(artifact.data, algorithm))
    described: Value = [
        _FORMAT,
        "derived",
        artifact.operation,
        artifact.version,
        artifact.parameters,
        children,
    ]
    return _structure(encode_canonical(described), children, algorithm)


def literal_structure(cid: CID) -> Structure:
    return _structure(encode_canonical([_FORMAT, "literal", cid]), (), cid.hash)


def _structure(encoded: bytes, children: tuple[SID, ...], algorithm: Hash) -> Structure:
    return Structure(CID.of(encoded, algorithm, Codec.DAG_CBOR), encoded, children)


class Recipe(NamedTuple):
    """How a registered artifact is derived."""

    operation: str
    version: str
    parameters: Mapping[str, Value]
    children: tuple[SID, ...]


def decode_structure(encoded: bytes) -> CID | Recipe:
    """Read a structure: the CID of a literal, or the recipe of a derived artifact."""
    match decode_canonical(encoded):
        case [int(version), "literal", CID() as cid] if version == _FORMAT:
            return cid
        case [int(version), "derived", str(name), str(of), dict(parameters), list(children)] if (
            version == _FORMAT and all(isinstance(child, CID) for child in children)
        ):
            return Recipe(name, of, parameters, tuple(children))
    raise InvalidArtifactError("it is not a structure that this version knows")


def in_order(root: Artifact) -> Iterator[Artifact]:
    """Yield `root` and every artifact below it, once each, children first.

    Depth is bounded by memory only. An artifact that is derived from itself raises `CycleError`.
    """
    done: set[int] = set()
    open_: set[int] = set()
    pending: list[tuple[Artifact, bool]] = [(root, False)]
    while pending:
        artifact, children_done = pending.pop()
        if children_done:
            open_.discard(id(artifact))
            done.add(id(artifact))
            yield artifact
        elif id(artifact) in open_:
            raise CycleError(f"{_shown(artifact)} is derived from itself. Fix: remove the cycle.")
        elif id(artifact) not in done:
            open_.add(id(artifact))
            pending.append((artifact, True))
            if isinstance(artifact, Derived):
                below = reversed(artifact.children)
                pending.extend((child, False) for child in below if not isinstance(child, CID))


def structures(
    root: Artifact, algorithm: Hash = Hash.SHA2_256
) -> Iterator[tuple[Artifact, Structure]]:
    sids: dict[int, SID] = {}
    for artifact in in_order(root):
        below = artifact.children if isinstance(artifact, Derived) else ()
        children = tuple(child if isinstance(child, CID) else sids[id(child)] for child in below)
        structure = structure_of(artifact, children, algorithm)
        sids[id(artifact)] = structure.sid
        yield artifact, structure


def sid_of(artifact: Artifact, algorithm: Hash = Hash.SHA2_256) -> SID:
    *_, (_, structure) = structures(artifact, algorithm)
    return structure.sid


def _shown(artifact: Artifact) -> str:
    return (
        f"{artifact.operation} {artifact.version}" if isinstance(artifact, Derived) else "a literal"
    )
