"""Bytes named by their content, visible as of a log position."""

from typing import TYPE_CHECKING

from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.artifacts.artifact import CID, SID, Artifact, Codec, Derived, Hash, Literal
    from perdure.artifacts.artifact_store import ArtifactStore
    from perdure.artifacts.entry import (
        ArtifactLocation,
        BlockSlice,
        IndexState,
        LogEntry,
        NewBinding,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "artifact": "CID Codec Hash SID Artifact Derived Literal",
            "entry": "ArtifactLocation BlockSlice NewBinding IndexState LogEntry",
            "artifact_store": "ArtifactStore",
        },
    )

__all__ = ["CID", "SID", "Artifact", "Codec", "Derived", "Hash", "Literal"]
__all__ += [
    "ArtifactLocation",
    "ArtifactStore",
    "BlockSlice",
    "IndexState",
    "LogEntry",
    "NewBinding",
]
