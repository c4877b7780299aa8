"""What an erasure would do, or has done."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perdure.artifacts import CID
from perdure.engine.erasing.quotes import Quoted
from perdure.engine.erasing.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Kept:
    """Content that stays, because something else has it too."""

    cid: CID
    key: str
    """Of what has it; empty if that is in another account."""


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """What goes, and what stays although it says the same."""

    uris: tuple[str, ...]
    """As they were asked for."""
    former: tuple[str, ...]
    """Other places that the same texts were at; what they were there goes too."""
    owner_space: str
    """Whose everything goes; empty if it is about places."""
    files: tuple[str, ...]
    """The keys of the texts that are there now."""
    versions: int
    """How many versions have one of the contents that go."""
    contents: tuple[CID, ...]
    size: int
    """Their bytes."""
    kept: tuple[Kept, ...]
    moved: tuple[tuple[str, str], ...]
    """From which key to which other a text went, where it stays."""
    quoted: tuple[Quoted, ...]
    leading: tuple[str, ...]
    """Nodes that lead to what goes; their links will lead nowhere."""
    derived: Mapping[str, int]
    """How much of what is derived goes, by what it is."""
    elsewhere: tuple[str, ...]
    """What else may hold the same, and is not touched."""
    names: tuple[str, ...]
    """Names of what goes that are made of its words; they stay in the log."""
    withheld: int
    """How many versions go as soon as nobody else has their contents; a receipt is to say so."""

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.contents and not self.withheld


@dataclass(frozen=True, slots=True)
class Erased:
    """An erasure that is done."""

    uris: tuple[str, ...]
    owner_space: str
    versions: int
    contents: tuple[CID, ...]
    kept: tuple[Kept, ...]
    moved: tuple[tuple[str, str], ...]
    derived: Mapping[str, int]
    receipt: Receipt
    path: Path
    """Where the receipt is kept."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of what was to be forgotten."""

    archived: tuple[str, ...] = ()
    """Put away now."""
    before: tuple[str, ...] = ()
    """Put away before."""
    plan: ErasurePlan | None = None
    """What would be erased, or was."""
    erased: Erased | None = None
