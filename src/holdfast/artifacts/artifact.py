"""What can be stored: bytes, and what is derived from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.artifacts import canonical
from holdfast.artifacts.canonical import Value
from holdfast.artifacts.cid import CID, Codec, Hash
from holdfast.errors import CycleError, InvalidArtifactError

SID = CID
"""The hash of an artifact's structure, written as the CID of that structure in DAG-CBOR."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes as they are."""

    data: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise InvalidArtifactError(f"a literal is bytes, not {type(self.data).__name__}")


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """What an operation of some version makes of other artifacts.

    The same operation, version, parameters and children are the same artifact, whoever writes it
    down and wherever.
    """

    operation: str
    version: str
    children: tuple["Artifact", ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.operation or not self.version:
            raise InvalidArtifactError("a derived artifact names its operation and its version")


Artifact = Literal | Derived


@dataclass(frozen=True, slots=True)
class Structure:
    """An artifact with its children named by SID, as it is registered."""

    sid: SID
    encoded: bytes
    children: tuple[SID, ...]


def structure_of(artifact: Artifact, children: tuple[SID, ...], algorithm: Hash) -> Structure:
    """Return the structure of one artifact whose children have these SIDs."""
    if isinstance(artifact, Literal):
        described: Value = [_FORMAT, "literal", CID.of(artifact.data, algorithm)]
    else:
        described = [
            _FORMAT,
            "derived",
            artifact.operation,
            artifact.version,
            artifact.parameters,
            children,
        ]
    encoded = canonical.encode(described)
    return Structure(CID.of(encoded, algorithm, Codec.DAG_CBOR), encoded, children)


def in_order(root: Artifact) -> Iterator[Artifact]:
    """Yield every artifact below `root`, each once, children before those derived from them.

    Depth is bounded by memory only. An artifact that is derived from itself is a `CycleError`.
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
            raise CycleError(f"{_shown(artifact)} is derived from itself. Fix: take the loop out.")
        elif id(artifact) not in done:
            open_.add(id(artifact))
            pending.append((artifact, True))
            if isinstance(artifact, Derived):
                pending.extend((child, False) for child in reversed(artifact.children))


def structures(
    root: Artifact, algorithm: Hash = Hash.SHA2_256
) -> Iterator[tuple[Artifact, Structure]]:
    """Yield every artifact below `root` with its structure, children first."""
    sids: dict[int, SID] = {}
    for artifact in in_order(root):
        below = artifact.children if isinstance(artifact, Derived) else ()
        structure = structure_of(artifact, tuple(sids[id(child)] for child in below), algorithm)
        sids[id(artifact)] = structure.sid
        yield artifact, structure


def sid_of(artifact: Artifact, algorithm: Hash = Hash.SHA2_256) -> SID:
    *_, (_, structure) = structures(artifact, algorithm)
    return structure.sid


def _shown(artifact: Artifact) -> str:
    return (
        f"{artifact.operation} {artifact.version}" if isinstance(artifact, Derived) else "a literal"
    )
