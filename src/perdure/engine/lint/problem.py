"""One thing that is wrong with a note."""

from dataclasses import dataclass
from enum import Enum


class Code(Enum):
    """What may be wrong, by the name that people and programs know it by."""

    CONTENT_EMPTY = "content-empty"
    TITLE_MISSING = "title-missing"
    NAME_DIFFERS = "name-differs"
    """The frontmatter calls it otherwise than its folder does."""
    NAME_UNUSABLE = "name-unusable"
    DATE_UNREADABLE = "date-unreadable"
    DATE_ORDER = "date-order"
    """It would end before it began."""
    DATE_FUTURE = "date-future"
    LINK_BROKEN = "link-broken"
    RELATION_BROKEN = "relation-broken"
    SUPERSESSION_CYCLE = "supersession-cycle"
    SUPERSESSION_FORK = "supersession-fork"
    CONFLICT_COPY = "conflict-copy"
    NODE_UNREADABLE = "node-unreadable"
    NO_NODE = "no-node"
    """A text that nobody finds, for it is no node yet."""
    FILE_LINK = "file-link"
    LEFTOVER = "leftover"


_WARNINGS = {
    Code.TITLE_MISSING,
    Code.NAME_DIFFERS,
    Code.DATE_FUTURE,
    Code.SUPERSESSION_FORK,
    Code.NO_NODE,
    Code.FILE_LINK,
    Code.LEFTOVER,
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    file: str
    """The key of the file, or of the folder."""
    line: int
    """From 1; 0 if it is about no line."""
    code: str
    what: str
    fix: str
    uri: str = ""
    """The node; empty if it is about none."""

    @property
    def is_error(self) -> bool:
        """Whether something is wrong, rather than perhaps not meant."""
        return Code(self.code) not in _WARNINGS
