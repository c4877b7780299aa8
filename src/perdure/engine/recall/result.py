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
    """The passage to the letter. For a prompt, take the `context` of the result instead."""
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
    valid_from: datetime | None = None
    """Since when it holds, if its node says so; a message holds since it was said."""
    valid_until: datetime | None = None
    """When it ceased to hold, or will."""
    holds: bool = True
    """Whether it held at the time that the answer is of: now, or what `at` or `valid_at` said."""

    @property
    def where(self) -> str:
        """The part of its node to cite: which message, or which lines; empty if it is all."""
        if self.message_indexes:
            return f"message {', '.join(map(str, self.message_indexes))}"
        return f"lines {self.lines[0]}-{self.lines[1]}" if self.lines else ""

    @property
    def about(self) -> str:
        """Title, day, speaker, and when it holds, in one line.

        A note that is called by how it begins, and begins the snippet, is named by its category.
        """
        return " · ".join(self.told)

    @property
    def told(self) -> tuple[str, ...]:
        """The parts of `about`, as they were written by whomever."""
        name = self.category if self._begins_with_title else self.title
        parts = name, _day(self.date), self.speaker, self.validity
        return tuple(each for each in parts if each)

    @property
    def validity(self) -> str:
        """When it holds, in words: "since" a day, "until" one, or both; empty if nobody said."""
        if self.valid_until is None:
            return f"since {_day(self.valid_from)}" if self.valid_from else ""
        began = f"from {_day(self.valid_from)} " if self.valid_from else ""
        return f"{began}until {_day(self.valid_until)}"

    @property
    def _begins_with_title(self) -> bool:
        line = " ".join(self.snippet.strip().partition("\n")[0].split())
        title = self.title.removesuffix("…")
        return line == title or (line.startswith(title) and title != self.title)


def _day(time: datetime | None) -> str:
    return time.date().isoformat() if time else ""


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
    """The hits as Markdown for a prompt, within the budget that was asked for.

    Orders in what is remembered are marked as quoted, HTML does nothing, and secrets are masked.
    """
    tokens: int = 0
    """How many tokens the context has, counted so as not to be too few."""
