"""When a question is about: the times and events that it names, as stretches of the calendar.

The words around an anchor change its meaning: "since early June", "the week before 9 June".
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from perdure.dataclass import dataclass, replace
from perdure.engine.recall import periods
from perdure.engine.recall.anchors import Anchor, anchors_in
from perdure.engine.recall.periods import LONELY, WEEKDAYS, WORDS, Cycle, Period, counted
from perdure.tables import table

_REACH = 48
"""How many characters before an anchor may change its meaning."""

_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_PLACES = {"first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3}
_FRACTIONS = {"half": 2, "quarter": 4}


def _before(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})\Z", re.IGNORECASE | re.ASCII)


_WHICH = _before(WORDS["WHICH"])
_THIRD = _before(WORDS["THIRD"])
_PLACE = _before(WORDS["PLACE"])
_NEIGHBOUR = _before(WORDS["NEIGHBOUR"])
_RELATION = _before(WORDS["RELATION"])
_END_OF = re.compile(r"\s(?:the\s)?end\sof\s", re.IGNORECASE)
_FROM = _before(WORDS["FROM"])
_ONWARDS = re.compile(r"\s(?:onwards?|on)(?!\w)(?!\sthe)", re.IGNORECASE)
_LINK = re.compile(WORDS["LINK"], re.IGNORECASE)
_OPENING = _before(WORDS["OPENING"])
_EVERY = _before(WORDS["EVERY"])
_SUPPORTS = {
    name: _before(words) for name, words in table(__file__, "times.txt", "supports").items()
}


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


@dataclass(frozen=True, slots=True)
class _Reading:
    """An anchor with the words that choose one of many, or a part of it."""

    anchor: Anchor
    begin: int
    period: Period
    chosen: bool

    @property
    def recurring(self) -> bool:
        return isinstance(self.anchor.meaning, Cycle) and not self.chosen


def _span_at(text: str, anchors: list[Anchor], now: datetime) -> Span | None:
    """Return the whole phrase that ends with the last of the anchors; None if it is no time.

    Raises `ValueError` or `OverflowError` for a time that the calendar does not have.
    """
    later = _read(text, anchors[-1], now)
    if _is_habit(text, later):
        return None
    joined = _range(text, anchors[-2], later, now) if len(anchors) > 1 else None
    return joined or _related(text, later)


def _read(text: str, anchor: Anchor, now: datetime) -> _Reading:
    reading = _chosen(text, anchor, now)
    for _ in range(2):
        reading = _narrowed(text, reading)
    return reading


def _chosen(text: str, anchor: Anchor, now: datetime) -> _Reading:
    meaning = anchor.meaning
    if not isinstance(meaning, Cycle):
        return _Reading(anchor, anchor.start, meaning(now), chosen=False)
    match = _search(_WHICH, text, anchor.start)
    if not match or (anchor.needs == "verb"):
        is_weekday = anchor.needs.endswith("weekday")
        period = meaning.last(now) if is_weekday else meaning.latest(now)
        return _Reading(anchor, anchor.start, period, chosen=is_weekday)
    choose = {"this": meaning.this, "next": meaning.next}.get(match["which"].lower(), meaning.last)
    return _Reading(anchor, match.start(), choose(now), chosen=True)


def _narrowed(text: str, reading: _Reading) -> _Reading:
    """Return a part or a neighbour of the period where the words before say so."""
    if reading.anchor.needs == "verb":
        return reading
    for words, read in ((_PLACE, _placed), (_THIRD, _third), (_NEIGHBOUR, _neighbour)):
        match = _search(words, text, reading.begin)
        if match:
            return replace(reading, begin=match.start(), period=read(match, reading.period))
    return reading


def _third(match: re.Match[str], period: Period) -> Period:
    return periods.part(period, _THIRDS[(match["part"] or match["of"]).lower()], 3)


def _placed(match: re.Match[str], period: Period) -> Period:
    unit, place = match["unit"].lower(), match["place"].lower()
    if unit in _FRACTIONS:
        count = _FRACTIONS[unit]
        return periods.part(period, count - 1 if place == "last" else _PLACES[place], count)
    if place == "last":
        return periods.before(period.end, _unit(unit), 1)
    return periods.after(period.start, _unit(unit), _PLACES[place] + 1)


def _neighbour(match: re.Match[str], period: Period) -> Period:
    unit = (match["unit"] or match["weekday"]).lower()
    side = match["side"].lower()
    count, _ = counted(match["count"] or "a")
    if side in {"after", "following"}:
        return periods.after(period.end, _unit(unit), count)
    if side != "of":
        return periods.before(period.start, _unit(unit), count)
    if unit == "weekend":
        return periods.nearest_weekend(period.start)
    if match["weekday"]:
        return periods.after(periods.around("week", period.start).start, _unit(unit), count)
    return periods.around(unit, period.start)


def _unit(name: str) -> str | Cycle:
    if name == "weekend":
        return periods.WEEKEND
    return (
        periods.weekly(WEEKDAYS.index(name[:3])) if name.endswith("day") and name != "day" else name
    )


def _range(text: str, first: Anchor, later: _Reading, now: datetime) -> Span | None:
    link = _search(_LINK, text, later.begin)
    if not link or link.start() != first.end:
        return None
    earlier = _read(text, first, later.period.start if isinstance(first.meaning, Cycle) else now)
    opening = _search(_OPENING, text, earlier.begin)
    if (link["and"] and not (opening and opening["between"])) or not (opening or _is_sure(later)):
        return None
    end = _end_after(earlier, later)
    position = range(opening.start() if opening else earlier.begin, later.anchor.end)
    recurring = earlier.recurring and later.recurring
    return _span(text, position, earlier.period.start, end, recurring=recurring)


def _end_after(earlier: _Reading, later: _Reading) -> datetime:
    """Return the end of a range; where only its start has a year, the first end that follows."""
    meaning = later.anchor.meaning
    if isinstance(meaning, Cycle) and later.recurring and not earlier.recurring:
        return meaning.next(earlier.period.start).end
    return later.period.end


def _related(text: str, reading: _Reading) -> Span | None:
    """Return what is meant if the words before the period are "since", "before" or the like."""
    relation = _search(_RELATION, text, reading.begin)
    if relation and _may_follow(text, relation["relation"].lower(), reading):
        return _opened(relation, reading)
    source = _search(_FROM, text, reading.begin)
    onwards = _ONWARDS.match(text, reading.anchor.end)
    period = reading.period
    if source and onwards:
        return _span(text, range(source.start(), onwards.end()), period.start, None)
    needs, begin = reading.anchor.needs, reading.begin
    if not _is_sure(reading) and not _search(_SUPPORTS[needs], text, begin):
        return None
    position = range(begin, reading.anchor.end)
    return _span(text, position, period.start, period.end, recurring=reading.recurring)


def _opened(match: re.Match[str], reading: _Reading) -> Span:
    period, relation = reading.period, match["relation"].lower()
    if _END_OF.match(match.string, match.end("relation")):
        relation = "until"
    start, end = {
        "since": (period.start, None),
        "after": (period.end, None),
        "before": (None, period.start),
        "prior to": (None, period.start),
    }.get(relation, (None, period.end))
    return _span(match.string, range(match.start(), reading.anchor.end), start, end)


def _span(
    text: str,
    position: range,
    start: datetime | None,
    end: datetime | None,
    *,
    recurring: bool = False,
) -> Span:
    return Span(start, end, text[position.start : position.stop], position, recurring)


def _may_follow(text: str, relation: str, reading: _Reading) -> bool:
    """Say whether a relation makes a time of words that may be a name or a verb."""
    if reading.anchor.needs not in {"month", "verb"} or reading.chosen or relation == "since":
        return True
    is_name = relation == "by" or not LONELY.match(text, reading.anchor.end)
    return reading.begin < reading.anchor.start or not is_name


def _is_sure(reading: _Reading) -> bool:
    is_weak = reading.anchor.needs not in {"", "weekday"}
    return not is_weak or reading.begin < reading.anchor.start


def _is_habit(text: str, reading: _Reading) -> bool:
    """Say whether a day of every week is meant, which is no time."""
    is_weekday = reading.anchor.needs.endswith("weekday")
    return is_weekday and bool(_search(_EVERY, text, reading.begin))


def _search(words: re.Pattern[str], text: str, stop: int) -> re.Match[str] | None:
    return words.search(text, max(0, stop - _REACH), stop)


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
        span = None
        with suppress(ValueError, OverflowError):
            span = _span_at(question, anchors, now)
        begin = anchors.pop().start
        if span and (span.start is None or span.end is None or span.start < span.end):
            yield span
            begin = span.position.start
        while anchors and anchors[-1].end > begin:
            anchors.pop()


Direction = Literal["before", "after", "during"]

_DIRECTIONS: dict[str, Direction] = {
    "before": "before",
    "prior to": "before",
    "until": "before",
    "till": "before",
    "after": "after",
    "since": "after",
    "following": "after",
    "during": "during",
    "throughout": "during",
    "while": "during",
}
_EVENT = re.compile(WORDS["EVENT"], re.IGNORECASE)
_LOOSE_END = re.compile(WORDS["LOOSE_END"], re.IGNORECASE)
_NO_EVENT = re.compile(WORDS["NO_EVENT"], re.IGNORECASE)
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventReference:
    """What happened, in the question's own words, and on which side of it the answer lies.

    `question[position.start : position.stop]` is `phrase`.
    """

    direction: Direction
    phrase: str
    position: range


def events_in(question: str) -> tuple[EventReference, ...]:
    """Return the events that a question refers to, in its order; what is a date is none."""
    return tuple(_references(question, times_in(question, _ANY_DAY)))


def _references(question: str, times: tuple[Span, ...]) -> Iterator[EventReference]:
    stops = [time.position.stop for time in times]
    for match in _EVENT.finditer(question):
        first = bisect_right(stops, match.start("phrase"))
        phrase = _before_time(match, times[first] if first < len(times) else None)
        phrase = _LOOSE_END.sub("", phrase.rstrip()).rstrip()
        if phrase and not _NO_EVENT.match(phrase):
            begin = match.start("phrase")
            direction = _DIRECTIONS[" ".join(match["cue"].lower().split())]
            yield EventReference(direction, phrase, range(begin, begin + len(phrase)))


def _before_time(match: re.Match[str], time: Span | None) -> str:
    length = time.position.start - match.start("phrase") if time else len(match["phrase"])
    return match["phrase"][: max(length, 0)]
