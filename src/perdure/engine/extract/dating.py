"""Times that a clause names, as dates that stay right when the day is long gone."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from perdure.engine.recall.times import Span, times_in

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\Z", re.IGNORECASE)
_KEPT = re.compile(
    r"\b(?:by|until|till|from|of|for|during|before|after|since|around)\s+\Z", re.IGNORECASE
)
_REPLACED = re.compile(r"\b(?:on|in|at)\s+\Z", re.IGNORECASE)
_PART_OF_A_NAME = re.compile(r"\b(?:an?|the)\s+\Z", re.IGNORECASE)
_REACH = 10
"""How many characters before a time lead up to it."""
_NO_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)
_OTHER_MOMENT = datetime(2013, 7, 17, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Dated:
    """A time that a clause names: where it stands there, and when it is."""

    begin: int
    finish: int
    when: datetime | None
    """None if the clause alone does not say, and nobody knows when it was said."""
    told: str
    """How to say it so that it stays true."""


def dated(clause: str, said_at: datetime | None, *, ahead: bool) -> Dated | None:
    """Return the first time of a clause, as seen from when it was said; None if it names none.

    A stretch that is open, as in "since May", is a state and no time of an event. What comes again
    and again is the next one if the clause looks ahead, else the last one.
    """
    span = _first(clause, said_at or _NO_MOMENT)
    if span is None:
        return None
    if said_at is None and _first(clause, _OTHER_MOMENT) != span:
        return Dated(_begin(clause, span), span.position.stop, None, "")
    if ahead and said_at:
        span = _next(span, said_at)
    return Dated(_begin(clause, span), span.position.stop, span.start, _told(clause, span))


def _first(clause: str, now: datetime) -> Span | None:
    """Return the first time that is whole, and no part of a name like "the Easter fair"."""
    for span in times_in(clause, now):
        begin = span.position.start
        named = span.recurring and _PART_OF_A_NAME.search(clause, max(0, begin - _REACH), begin)
        if span.start and span.end and not named:
            return span
    return None


def _begin(clause: str, span: Span) -> int:
    """Return where a time begins, with the word before it that another one takes the place of."""
    begin = span.position.start
    led = _REPLACED.search(clause, max(0, begin - _REACH), begin)
    return led.start() if led else begin


def _next(span: Span, said_at: datetime) -> Span:
    today = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    if span.start is None or span.end is None or span.end > today:
        return span
    try:
        if _WEEKDAY.match(span.text):
            return replace(span, start=span.start + _WEEK, end=span.end + _WEEK)
        if span.recurring:
            return replace(span, start=_a_year_on(span.start), end=_a_year_on(span.end))
    except (OverflowError, ValueError):  # there is no next 29 February, or no next year
        pass
    return span


def _a_year_on(moment: datetime) -> datetime:
    return moment.replace(year=moment.year + 1)


def _told(clause: str, span: Span) -> str:
    """Say a span as a date, with the word that leads up to it if there is none."""
    if span.start is None or span.end is None:
        return span.text
    word, date = _date(span.start, span.end)
    begin = span.position.start
    if _WEEKDAY.match(span.text):
        led = _REPLACED.search(clause, max(0, begin - _REACH), begin)
        return f"on {span.text} {date}" if led else f"{span.text} {date}"
    kept = _KEPT.search(clause, max(0, begin - _REACH), begin)
    return date if kept else f"{word} {date}"


def _date(start: datetime, end: datetime) -> tuple[str, str]:
    last = end - _DAY
    if last <= start:
        return "on", f"{start:%Y-%m-%d}"
    if start.day == 1 and end.day == 1:
        months = (end.year - start.year) * 12 + end.month - start.month
        if months == 1:
            return "in", f"{start:%Y-%m}"
        if (months, start.month) == (12, 1):
            return "in", f"{start:%Y}"
    if end - start == _WEEK:
        return "in", f"the week of {start:%Y-%m-%d}"
    return "between", f"{start:%Y-%m-%d} and {last:%Y-%m-%d}"
