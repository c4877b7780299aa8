"""The result of a recall: hits that can be cited, hints, and a trace of how they were found."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from perdure.dataclass import dataclass, field
from perdure.errors import DamageError

if TYPE_CHECKING:
    from perdure.context.reader import NodeReader, StoredNode
    from perdure.index.contract import Embedder, NodeIndex

_WORDS_OF_AN_INSTRUCTION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage of a memory, as canonical state has it."""

    uri: str
    cid: str
    """The CID of exactly this version of the content in history."""
    title: str
    date: datetime | None
    """The time of the message, the time that the node is about, or its last write."""
    snippet: str
    """The passage verbatim. For a prompt, use the `context` of the result instead."""
    score: float
    score_terms: Mapping[str, float] = field(default_factory=dict)
    """The named terms whose sum is the score."""
    lines: tuple[int, int] | None = None
    """The first and last line of the passage in the content."""
    speaker: str = ""
    role: str = ""
    session_id: str = ""
    message_indexes: tuple[int, ...] = ()
    """The messages of the session that it comes from, counted from 0."""
    evidence: tuple[tuple[str, int], ...] = ()
    """The messages that it rests on, each as session id and index; a message rests on itself."""
    category: str = ""
    owner_space: str = ""
    project: str = ""
    """The project that it belongs to; empty for none."""
    valid_from: datetime | None = None
    """The time since which it holds, if its node states one; for a message, its own time."""
    valid_until: datetime | None = None
    """The time at which it ceases to hold; None if it has no end."""
    holds: bool = True
    """Whether it holds at the time of the result: now, or the time given by `at` or `valid_at`."""

    @property
    def where(self) -> str:
        """The part of the node to cite: the messages or the lines; empty for the whole node."""
        if self.message_indexes:
            return f"message {', '.join(map(str, self.message_indexes))}"
        return f"lines {self.lines[0]}-{self.lines[1]}" if self.lines else ""

    @property
    def about(self) -> str:
        """Title, day, speaker and validity in one line.

        A speaker's name of three words or more may be an instruction, and is then marked as quoted.
        """
        if len(self.speaker.split()) < _WORDS_OF_AN_INSTRUCTION:
            return " · ".join(self.labels)
        from perdure.safety.validation import presentable_line  # noqa: PLC0415 - only a long name needs it

        return " · ".join(map(presentable_line, self.labels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The items of `about`, verbatim.

        If the title only repeats how the snippet begins, the category stands in its place.
        """
        name = self.category if self._begins_with_title else self.title
        labels = name, _day(self.date), self.speaker, self.validity
        return tuple(each for each in labels if each)

    @property
    def validity(self) -> str:
        """When it holds, in words: "since" a day, "until" one, or both; empty if unknown."""
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


def hit_of(stored: "StoredNode") -> Hit:
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
    """One step of a recall, for `recall --explain`."""

    name: str
    text: str


class HintKind(Enum):
    NO_MODEL = "no model"
    """No embedding model is installed, so only words were compared."""
    MODEL_FAILED = "model failed"
    """The embedding model failed, so only words were compared."""
    VECTORS_PENDING = "vectors pending"
    """The vectors of the configured model are not computed yet."""
    INDEX_REBUILT = "index rebuilt"
    """The index was damaged, and was built again before it answered."""
    INDEX_BEHIND = "index behind"
    """The index could not be brought up to date."""
    EDIT_NOT_RECORDED = "edit not recorded"
    """An edit made outside Perdure could not be recorded."""
    EDITS_UNCHECKED = "edits unchecked"
    """Not every text was checked for edits made outside Perdure."""
    TEXTS_GONE = "texts gone"
    """Many texts are gone at once, so no edit was recorded: the owner decides."""
    NOT_STORED = "not stored"
    """The index of a past state could not be stored."""
    QUARANTINED = "quarantined"
    """A foreign file was moved out of a derived folder."""
    FORGOTTEN = "forgotten"
    """Something was withheld, because the user forgot it."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A limit of a result that the caller should know about."""

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
    """The words of the question that were searched."""
    index_lag: int = 0
    """How many changed places are not in the index yet; 0 if the result reflects every write."""
    stale: frozenset[str] = frozenset()
    """Nodes that were edited since they were indexed; their present text was not searched."""
    semantic: bool = False
    """Whether vectors were compared, and not only words."""
    left_out: int = 0
    """How many hits did not fit the token budget."""
    withheld: int = 0
    """How many matching statements are withheld because the user forgot them."""
    says_forgotten: bool = False
    """Whether the question itself states something that the user forgot."""
    hints: tuple[Hint, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    context: str = ""
    """The hits as Markdown for a prompt, within the token budget.

    Instructions in memories are marked as quoted, HTML is inert, and secrets are masked.
    """
    tokens: int = 0
    """An estimate of the tokens in the context that is rarely too low."""


NO_MODEL = Hint(
    HintKind.NO_MODEL,
    "no model is installed, so only words were compared. "
    "Fix: run `perdure models install`, then `perdure index rebuild`",
)


@dataclass(frozen=True, slots=True)
class Sources:
    """The index that a recall searches, and the nodes that confirm its hits."""

    reader: "NodeReader"
    index: "NodeIndex"
    embedder: "Embedder | None" = None
    why_words: Hint | None = NO_MODEL
    """Why only words are compared, if there is no embedder; None if that is configured."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
