"""A question to a memory, and what its words ask for."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from perdure.dataclass import dataclass
from perdure.errors import InvalidValueError
from perdure.model import ContextType
from perdure.model.node import ACCOUNT, OWNER_SPACE
from perdure.model.values import JSON, count, encodable, utc_time
from perdure.patterns import later, table

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

_FILTERS = ("category", "context_type", "session_id", "uri")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    top_k: int = 10
    budget_tokens: int | None = None
    valid_at: date | None = None
    """Return only what held at this time or on this day; None ranks what holds now first.

    A `datetime` is a `date` too.
    """
    filters: Mapping[str, JSON] | None = None
    """Allowed keys: category, context_type, session_id, uri."""
    project: str = ""
    """The project whose memories rank first."""
    projects: tuple[str, ...] | None = None
    """Search only these projects, "" for memories of no project; None searches all projects."""

    def __post_init__(self) -> None:
        encodable(self.text, "question")
        encodable(self.project, "project")
        count(self.top_k, "number of hits", least=1)
        if self.budget_tokens is not None:
            count(self.budget_tokens, "budget of tokens")
        if type(self.valid_at) is not date and self.valid_at is not None:
            object.__setattr__(self, "valid_at", utc_time(self.valid_at, "valid time"))
        given = set(self.filters or {})
        if {ACCOUNT, OWNER_SPACE} & given:
            raise InvalidValueError(
                "a filter can't choose whose memory is searched. Fix: open it for that caller."
            )
        if unknown := given.difference(_FILTERS):
            raise InvalidValueError(
                f"recall has no filter {min(map(str, unknown))[:80]!a}. "
                f"Fix: use {', '.join(_FILTERS)}; for a time, valid_at."
            )
        if "context_type" in given:
            _demand_types((self.filters or {})["context_type"])


def _demand_types(value: JSON) -> None:
    """Refuse a type that no node has, because the result would be empty without a reason."""
    known = [kind.value for kind in ContextType]
    for each in (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value:
        if each not in known:
            raise InvalidValueError(
                f"no memory has the context_type {str(each)[:80]!a}. Fix: use {', '.join(known)}."
            )


# ---------------------------------------------------------------- parsing
_TABLE = table(__file__, "questions.txt")
STOP_WORDS = frozenset(_TABLE["STOP_WORDS"].split())
_WORD = later(r"[^\W_]+")
_COURTESY = later(_TABLE["COURTESY"], re.IGNORECASE)
_TO_ASSISTANT = later(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_MAY_NAME_A_TIME = later(_TABLE["MAY_NAME_A_TIME"], re.IGNORECASE)
_PAST = later(_TABLE["PAST"], re.IGNORECASE)
_MAX_CHARACTERS = 10_000
"""The rest of a longer question is ignored."""


class ParsedQuestion(NamedTuple):
    text: str
    words: tuple[str, ...]
    """The content words, each once; all words if there are no others."""
    times: tuple["TimeSpan", ...]
    timeless: tuple[str, ...]
    """The words that do not belong to a time; all words if there are no others."""
    to_assistant: bool
    """Whether it addresses the assistant, or asks about a conversation with it."""
    asks_for_past: bool
    """Whether it asks for what was rather than for what is."""


def parse_question(question: str, now: datetime) -> ParsedQuestion:
    text = question[:_MAX_CHARACTERS]
    words = content_words(text)
    times = _times(text, now)
    time_words = {word for time in times for word in content_words(time.text)}
    return ParsedQuestion(
        text=text,
        words=words,
        times=times,
        timeless=tuple(word for word in words if word not in time_words) or words,
        to_assistant=bool(_TO_ASSISTANT.search(_COURTESY.sub(" ", text))),
        asks_for_past=bool(_PAST.search(text)),
    )


def _times(question: str, now: datetime) -> "tuple[TimeSpan, ...]":
    if not _MAY_NAME_A_TIME.search(question):
        return ()
    from perdure.engine.recall.periods import times_in  # noqa: PLC0415 - few questions need it

    return times_in(question, now)


def content_words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    return tuple(word for word in words if word not in STOP_WORDS) or words
