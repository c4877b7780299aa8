"""What the store's verbs take and give."""

from collections.abc import Mapping
from typing import NamedTuple

from perdure.artifacts.canonical import Value
from perdure.artifacts.cid import CID
from perdure.artifacts.entry import Entry
from perdure.dataclass import dataclass, field


class IndexState(NamedTuple):
    """A moment of the content index: a snapshot, and the log up to a position, inclusive."""

    snapshot: int
    """0 if none had been taken."""
    position: int
    """0 if nothing had been logged."""


class BlockSlice(NamedTuple):
    """Bytes of a sealed block. A block is named by the position of its commit's first entry."""

    block: int
    offset: int
    length: int


ArtifactLocation = tuple[BlockSlice, ...]
"""Where content is: these slices, one after the other."""


class Logged(NamedTuple):
    """An entry in its place."""

    position: int
    commit: int
    """The last position of its commit, from which on all of the commit is visible."""
    time: int
    """When, in milliseconds since the epoch; never before that of an earlier entry."""
    entry: Entry


class Binding(NamedTuple):
    """What a name stood for from a position on."""

    name: str
    position: int
    commit: int
    time: int
    cid: CID | None
    circumstances: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Change:
    """A name is to stand for this content from now on, or for nothing."""

    name: str
    content: bytes | None
    circumstances: Mapping[str, Value] = field(default_factory=dict)
    """Who, when, why, from what; `Bind` keeps them."""
