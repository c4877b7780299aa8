"""What recall answers with: hits that can be cited, and how they were found."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from perdure.dataclass import dataclass, field
from perdure.errors import DamageError

if TYPE_CHECKING:
    from perdure.context.reading import NodeReader, Stored
    from perdure.index.contract import Embedder, KeptIndex

_WORDS_OF_AN_INSTRUCTION = 3


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
    score_terms: Mapping[str, float] = field(default_factory=dict)
    """What the score is the sum of."""
    lines: tuple[int, int] | None = None
    """The first and last line of the passage in the content."""
    speaker: str = ""
    role: str = ""
    session_id: str = ""
    message_indexes: tuple[int, ...] = ()
    """Which messages of the session it is from, counted from 0."""
    evidence: tuple[tuple[str, int], ...] = ()
    """The messages that it rests on, each as session id and index: of a message, itself."""
    category: str = ""
    owner_space: str = ""
    project: str = ""
    """The project it belongs to; empty for none."""
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

        A note that is called by how it begins, and begins the snippet, is named by its category. A
        speaker can call themselves an instruction; then it is marked as quoted.
        """
        if len(self.speaker.split()) < _WORDS_OF_AN_INSTRUCTION:
            return " · ".join(self.labels)
        from perdure.safety.texts import presentable_line  # noqa: PLC0415 - only a long name needs it

        return " · ".join(map(presentable_line, self.labels))

    @property
    def labels(self) -> tuple[str, ...]:
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


def hit_of(stored: "Stored") -> Hit:
    node = stored.node
    return Hit(
        uri=node.uri,
        cid=stored.cid,
        title=node.title,
        date=node.date,
        snippet=node.content.strip(),
        score=0.0,
        category=node.category,
        owner_space=node.owner_space,
        project=node.project,
        valid_from=node.valid_from,
        valid_until=node.valid_until,
    )


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One thing that recall did, for whoever wants to know why."""

    name: str
    text: str


class HintKind(Enum):
    NO_MODEL = "no model"
    """No embedding model is installed, so only words were compared."""
    MODEL_FAILED = "model failed"
    """The embedding model failed, so only words were compared."""
    VECTORS_PENDING = "vectors pending"
    """The vectors of the configured model are not made yet."""
    INDEX_REBUILT = "index rebuilt"
    """The index was damaged, and was built again before it answered."""
    INDEX_BEHIND = "index behind"
    """The index could not be brought up to date."""
    EDIT_NOT_RECORDED = "edit not recorded"
    """An edit made outside Perdure could not be recorded."""
    EDITS_UNCHECKED = "edits unchecked"
    """Not every text was looked at for edits made outside Perdure."""
    TEXTS_GONE = "texts gone"
    """Many texts are gone at once, so no edit was recorded: the owner decides."""
    NOT_STORED = "not kept"
    """The index of a past state could not be stored."""
    QUARANTINED = "quarantined"
    """A foreign file was moved out of a derived folder."""
    FORGOTTEN = "forgotten"
    """Something was kept back, because the user forgot it."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What a caller should know of how an answer came about."""

    kind: HintKind
    text: str
    """One sentence, with the fix where there is one."""


def rebuilt_hint(damage: DamageError) -> Hint:
    what, _, _ = str(damage).partition(" Fix: ")
    return Hint(HintKind.INDEX_REBUILT, f"{what} It was built again")


def quarantine_hints(text: str) -> tuple[Hint, ...]:
    return (Hint(HintKind.QUARANTINED, text),) if text else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The answer to a question."""

    query: str
    hits: tuple[Hit, ...]
    words: tuple[str, ...] = ()
    """The words of the question that were compared."""
    index_lag: int = 0
    """How many places changed that it does not know of yet; 0 if it reflects every write."""
    stale: frozenset[str] = frozenset()
    """Nodes that were edited since they were indexed: what they say now was not looked at."""
    semantic: bool = False
    """Whether vectors took part; if not, only words were compared."""
    left_out: int = 0
    """How many hits did not fit into the budget of tokens."""
    withheld: int = 0
    """How many statements that the question is about are kept back: the user forgot them."""
    says_forgotten: bool = False
    """Whether the question itself says something that the user forgot."""
    hints: tuple[Hint, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    context: str = ""
    """The hits as Markdown for a prompt, within the budget that was asked for.

    Orders in what is remembered are marked as quoted, HTML does nothing, and secrets are masked.
    """
    tokens: int = 0
    """How many tokens the context has, counted so as not to be too few."""


NO_MODEL = Hint(
    HintKind.NO_MODEL,
    "no model is installed, so only words were compared. "
    "Fix: run `perdure models install`, then `perdure index rebuild`",
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What a recall searches and confirms with."""

    reader: "NodeReader"
    index: "KeptIndex"
    embedder: "Embedder | None" = None
    why_words: Hint | None = NO_MODEL
    """Why only words are compared, if there is no embedder; None if that is as it should be."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
