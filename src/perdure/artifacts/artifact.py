"""Artifacts: literal bytes, and artifacts derived from others."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perdure.artifacts import canonical
from perdure.artifacts.canonical import Value
from perdure.artifacts.cid import CID, Codec, Hash
from perdure.dataclass import dataclass, field
from perdure.errors import CycleError, InvalidArtifactError

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
    return _structure(canonical.encode(described), children, algorithm)


def literal_structure(cid: CID) -> Structure:
    return _structure(canonical.encode([_FORMAT, "literal", cid]), (), cid.hash)


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
    match canonical.decode(encoded):
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
