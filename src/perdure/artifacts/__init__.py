"""Bytes named by their content, visible as of a log position."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.artifacts.artifact import SID, Artifact, Derived, Literal
    from perdure.artifacts.cid import CID, Codec, Hash
    from perdure.artifacts.state import ArtifactLocation, BlockSlice, Change, IndexState, Logged
    from perdure.artifacts.store import ArtifactStore
else:
    __getattr__ = exports(
        __name__,
        {
            "artifact": "SID Artifact Derived Literal",
            "cid": "CID Codec Hash",
            "state": "ArtifactLocation BlockSlice Change IndexState Logged",
            "store": "ArtifactStore",
        },
    )

__all__ = ["SID", "Artifact", "Derived", "Literal"]
__all__ += ["CID", "Codec", "Hash"]
__all__ += ["ArtifactLocation", "ArtifactStore", "BlockSlice", "Change", "IndexState", "Logged"]
