"""What a question asks for: its words, names, phrases and times, and whom it speaks to."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from perdure.model import ContextType
from perdure.patterns import later
from perdure.tables import table

if TYPE_CHECKING:
    from perdure.engine.recall.times import EventReference, Span

_TABLE = table(__file__, "questions.txt")
STOP_WORDS = frozenset(_TABLE["STOP_WORDS"].split())
_WORD = later(r"[^\W_]+")
_QUOTED = later('["\u201c]([^"\u201c\u201d]{1,200})["\u201d]')
_NAME = later(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]+(?:\s[A-Z][\w'-]+)*")
_COURTESY = later(_TABLE["COURTESY"], re.IGNORECASE)
_TO_ASSISTANT = later(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_TYPES: Mapping[ContextType, re.Pattern[str]] = {
    ContextType.SKILL: later(r"\b(?:skill|procedure|runbook|how to|steps to)\b", re.IGNORECASE),
    ContextType.RESOURCE: later(r"\b(?:resource|document|manual|handbook)s?\b", re.IGNORECASE),
}
_MAY_NAME_A_TIME = later(_TABLE["MAY_NAME_A_TIME"], re.IGNORECASE)
_PAST = later(_TABLE["PAST"], re.IGNORECASE)
_EVENT = timedelta(days=3)
"""So long before and after its date an event may have been."""
_MOST_CHARACTERS = 10_000
"""More of a question than that is no question."""


class Plan(NamedTuple):
    question: str
    words: tuple[str, ...]
    """Those that say something, each once; all of them if none does."""
    names: tuple[str, ...]
    phrases: tuple[str, ...]
    """What stands in quotation marks."""
    times: tuple["Span", ...]
    events: tuple["EventReference", ...]
    timeless: tuple[str, ...]
    """The words that are not of a time; all of them if there are no others."""
    to_assistant: bool
    """Whether it speaks to the assistant, or of a conversation with it."""
    past: bool
    """Whether it asks for what was, rather than for what is."""
    types: frozenset[ContextType]
    """The kinds of node that it names, which then count more."""


def plan(question: str, now: datetime) -> Plan:
    asked = question[:_MOST_CHARACTERS]
    words = content_words(asked)
    times, events = _when(asked, now)
    of_times = {word for time in times for word in content_words(time.text)}
    return Plan(
        question=asked,
        words=words,
        names=tuple(dict.fromkeys(_NAME.findall(asked))),
        phrases=tuple(dict.fromkeys(_QUOTED.findall(asked))),
        times=times,
        timeless=tuple(word for word in words if word not in of_times) or words,
        events=events,
        to_assistant=bool(_TO_ASSISTANT.search(_COURTESY.sub(" ", asked))),
        past=bool(_PAST.search(asked)),
        types=frozenset(kind for kind, said in _TYPES.items() if said.search(asked)),
    )


def _when(question: str, now: datetime) -> "tuple[tuple[Span, ...], tuple[EventReference, ...]]":
    if not _MAY_NAME_A_TIME.search(question):
        return (), ()
    from perdure.engine.recall.times import events_in, times_in  # noqa: PLC0415 - who needs it pays

    return times_in(question, now), events_in(question)


def around(event: "EventReference", date: datetime) -> "Span":
    """Return the time that a question means by an event, once its date is known."""
    from perdure.engine.recall.times import Span  # noqa: PLC0415 - as before

    before = None if event.direction == "before" else date
    after = None if event.direction == "after" else date
    if event.direction == "during":
        before, after = date - _EVENT, date + _EVENT
    return Span(before, after, event.phrase, event.position)


def content_words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    return tuple(word for word in words if word not in STOP_WORDS) or words
