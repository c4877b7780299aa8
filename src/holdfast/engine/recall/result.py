"""What recall answers with: hits that can be cited, and how they were found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage of a memory that was found, as it stands in canonical state."""

    uri: str
    cid: str
    """The name of the content in history: of just this version."""
    title: str
    date: datetime | None
    """When it was said, or when it is about, or when it was last written."""
    snippet: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the score is the sum of."""
    lines: tuple[int, int] | None = None
    """The first and last line of the passage in the content."""
    speaker: str = ""
    role: str = ""
    session_id: str = ""
    message_indexes: tuple[int, ...] = ()
    """Which messages of the session it is from, counted from 0."""
    category: str = ""
    owner_space: str = ""

    @property
    def where(self) -> str:
        """The part of its node to cite: which message, or which lines; empty if it is all."""
        if self.message_indexes:
            return f"message {', '.join(map(str, self.message_indexes))}"
        return f"lines {self.lines[0]}-{self.lines[1]}" if self.lines else ""

    @property
    def about(self) -> str:
        """Title, day and speaker, in one line.

        A note that is called by how it begins, and begins the snippet, is named by its category.
        """
        day = self.date.date().isoformat() if self.date else ""
        name = self.category if self._begins_with_title else self.title
        return " · ".join(filter(None, (name, day, self.speaker)))

    @property
    def _begins_with_title(self) -> bool:
        line = " ".join(self.snippet.strip().partition("\n")[0].split())
        title = self.title.removesuffix("…")
        return line == title or (line.startswith(title) and title != self.title)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that recall did, for whoever wants to know why."""

    name: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The answer to a question."""

    query: str
    hits: tuple[Hit, ...]
    index_lag: int = 0
    """How many places changed that it does not know of yet; 0 if it reflects every write."""
    stale: frozenset[str] = frozenset()
    """Nodes that were edited since they were indexed: what they say now was not looked at."""
    semantic: bool = False
    """Whether vectors took part; if not, only words were compared."""
    notes: tuple[str, ...] = ()
    """What the caller should know of how the answer came about."""
    trace: tuple[Step, ...] = ()
    context: str = ""
    """The hits as Markdown for a prompt, within the budget that was asked for."""
    tokens: int = 0
    """How many tokens the context has, counted so as not to be too few."""
