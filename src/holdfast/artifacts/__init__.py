"""Bytes named by their content, visible as of a log position."""

from holdfast.artifacts.artifact import SID, Artifact, Derived, Literal
from holdfast.artifacts.cid import CID, Codec, Hash
from holdfast.artifacts.state import ArtifactLocation, BlockSlice, Change, IndexState, Logged
from holdfast.artifacts.store import ArtifactStore

__all__ = [
    "CID",
    "SID",
    "Artifact",
    "ArtifactLocation",
    "ArtifactStore",
    "BlockSlice",
    "Change",
    "Codec",
    "Derived",
    "Hash",
    "IndexState",
    "Literal",
    "Logged",
]
