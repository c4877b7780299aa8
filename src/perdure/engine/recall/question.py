"""What a question asks for: its words and times, and whom it speaks to."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from perdure.patterns import later
from perdure.tables import table

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

_TABLE = table(__file__, "questions.txt")
STOP_WORDS = frozenset(_TABLE["STOP_WORDS"].split())
_WORD = later(r"[^\W_]+")
_COURTESY = later(_TABLE["COURTESY"], re.IGNORECASE)
_TO_ASSISTANT = later(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_MAY_NAME_A_TIME = later(_TABLE["MAY_NAME_A_TIME"], re.IGNORECASE)
_PAST = later(_TABLE["PAST"], re.IGNORECASE)
_MOST_CHARACTERS = 10_000
"""More of a question than that is no question."""


class ParsedQuestion(NamedTuple):
    question: str
    words: tuple[str, ...]
    """Those that say something, each once; all of them if none does."""
    times: tuple["TimeSpan", ...]
    timeless: tuple[str, ...]
    """The words that are not of a time; all of them if there are no others."""
    to_assistant: bool
    """Whether it speaks to the assistant, or of a conversation with it."""
    asks_for_past: bool
    """Whether it asks for what was, rather than for what is."""


def parse_question(question: str, now: datetime) -> ParsedQuestion:
    asked = question[:_MOST_CHARACTERS]
    words = content_words(asked)
    times = _times(asked, now)
    of_times = {word for time in times for word in content_words(time.text)}
    return ParsedQuestion(
        question=asked,
        words=words,
        times=times,
        timeless=tuple(word for word in words if word not in of_times) or words,
        to_assistant=bool(_TO_ASSISTANT.search(_COURTESY.sub(" ", asked))),
        asks_for_past=bool(_PAST.search(asked)),
    )


def _times(question: str, now: datetime) -> "tuple[TimeSpan, ...]":
    if not _MAY_NAME_A_TIME.search(question):
        return ()
    from perdure.engine.recall.periods import times_in  # noqa: PLC0415 - who needs it pays

    return times_in(question, now)


def content_words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    return tuple(word for word in words if word not in STOP_WORDS) or words
