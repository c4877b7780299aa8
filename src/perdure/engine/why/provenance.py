"""What is known of where a node comes from."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from perdure.model import RelationEdge
from perdure.storage.history import Version


class Kind(Enum):
    """What a node is, to somebody who asks where it comes from."""

    PAGE = "page"
    """It makes statements, and each may rest on something."""
    SESSION = "session"
    """What was said, word for word; statements rest on it."""
    DOCUMENT = "document"
    """A text that somebody wrote elsewhere."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that a statement rests on."""

    message: int
    """Which message of the session, from 0."""
    text: str
    trouble: str = ""
    """Why the words prove nothing; empty if the message is there and says them."""

    @property
    def holds(self) -> bool:
        return not self.trouble


@dataclass(frozen=True, slots=True)
class Said:
    """Where a statement was said."""

    session: str
    speaker: str
    quotes: tuple[Quote, ...]
    wording: str = ""
    """What was made of the words, if the statement is worded otherwise."""

    @property
    def holds(self) -> bool:
        return all(quote.holds for quote in self.quotes)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a page, and what it rests on."""

    text: str
    cid: str
    extracted: bool
    """Made out of what was said in a session; else somebody wrote it."""
    since: date | None = None
    when: datetime | None = None
    """When it was last said."""
    confidence: float | None = None
    topic: str = ""
    said: tuple[Said, ...] = ()
    out_of_reach: int = 0
    """In how many more places it was said that the caller may not see."""

    @property
    def holds(self) -> bool:
        """Whether all words that the caller may see are where they are said to be."""
        return all(each.holds for each in self.said)


@dataclass(frozen=True, slots=True)
class Merged:
    """Something that went into a page after it was made."""

    version: int
    action: str
    statement: str
    """The CID of what was said; empty if nobody knows any more what that is."""
    text: str
    when: datetime | None
    """When it was written; None if history does not tell."""
    former: tuple[str, ...]
    """Where that is which it superseded."""
    undoable: bool
    """Whether what went in is still there, and so is the page without it."""


@dataclass(frozen=True, slots=True)
class Former:
    """Something that held before, and why it no longer does."""

    uri: str
    text: str
    reason: str
    valid_from: datetime | None
    valid_until: datetime | None
    claims: tuple[Claim, ...]
    superseded: tuple["Former", ...] = ()
    """What it had superseded itself."""


@dataclass(frozen=True, slots=True)
class Successor:
    """What holds in the place of a node."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that is known of where a node comes from, as far as the caller may see it."""

    uri: str
    title: str
    kind: Kind
    version: int
    created_at: datetime
    updated_at: datetime
    messages: int = 0
    """How many messages of a session it has."""
    source: str = ""
    """The program that it was imported from."""
    claims: tuple[Claim, ...] = ()
    merges: tuple[Merged, ...] = ()
    """The oldest first."""
    superseded: tuple[Former, ...] = ()
    superseded_by: tuple[Successor, ...] = ()
    edges: tuple[RelationEdge, ...] = ()
    """Those that lead away, but for those to its successors."""
    incoming: tuple[RelationEdge, ...] = ()
    """Those that lead here, but for those from what it superseded."""
    versions: tuple[Version, ...] = ()
    """Of its content, the oldest first."""
    unrecorded: bool = False
    """Whether somebody edited the file since, and history was not told yet."""
    problems: tuple[str, ...] = ()
    """What an edit by hand broke."""

    @property
    def holds(self) -> bool:
        """Whether no evidence that the caller may see is amiss."""
        return all(claim.holds for claim in self.claims)
