"""Bytes named by their content, visible as of a log position."""

from typing import TYPE_CHECKING

from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.artifacts.artifact import SID, Artifact, Derived, Literal
    from perdure.artifacts.artifact_store import ArtifactStore
    from perdure.artifacts.cid import CID, Codec, Hash
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
            "artifact": "SID Artifact Derived Literal",
            "cid": "CID Codec Hash",
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
