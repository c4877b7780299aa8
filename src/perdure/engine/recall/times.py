"""When a question is about: the times that it names, as stretches of the calendar."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.engine.recall.anchors import anchors_in
from perdure.engine.recall.phrases import Phrase, phrase_at


@dataclass(frozen=True, slots=True)
class Span:
    """A time that a question names: from `start` on, up to but without `end`; None is open.

    Both are in UTC. `recurring` says that no year was named: the span is the nearest before now,
    and another year's may be meant. `question[position.start : position.stop]` is `text`.
    """

    start: datetime | None
    end: datetime | None
    text: str
    position: range
    recurring: bool = False


def times_in(question: str, now: datetime) -> tuple[Span, ...]:
    """Return the times that a question names, in its order, as seen from `now`.

    Words that may be no time are none, unless the words around them say so. A `now` without a
    time zone is in UTC.
    """
    return tuple(sorted(_spans(question, _utc(now)), key=lambda span: span.position.start))


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        return now.replace(tzinfo=UTC)
    try:
        return now.astimezone(UTC)
    except OverflowError:
        return now.replace(tzinfo=UTC)


def _spans(question: str, now: datetime) -> Iterator[Span]:
    """Yield the spans, the last one first: words before an anchor change what it means."""
    anchors = anchors_in(question)
    while anchors:
        phrase = None
        with suppress(ValueError, OverflowError):
            phrase = phrase_at(question, anchors, now)
        begin = anchors.pop().start
        if phrase and _is_ordered(phrase):
            yield _span(question, phrase)
            begin = phrase.begin
        while anchors and anchors[-1].end > begin:
            anchors.pop()


def _is_ordered(phrase: Phrase) -> bool:
    return phrase.start is None or phrase.end is None or phrase.start < phrase.end


def _span(question: str, phrase: Phrase) -> Span:
    position = range(phrase.begin, phrase.finish)
    text = question[position.start : position.stop]
    return Span(phrase.start, phrase.end, text, position, phrase.recurring)
