"""The times that a question names, as periods of the calendar in UTC.

A date that does not exist raises `ValueError` or `OverflowError` inside, and is ignored. Every
repetition in a pattern is bounded, so that matching takes linear time.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from perdure.dataclass import dataclass
from perdure.patterns import later, table

_DAYS_IN = {"hour": 1 / 24, "day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = timedelta(days=1)


# ---------------------------------------------------------------- the calendar
@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Cycle:
    """A recurring period: a month, a day of the year, a day of the week.

    `at` returns the period of a numbered year or week; `index` returns that number for a time.
    """

    at: Callable[[int], Period]
    index: Callable[[datetime], int]

    def latest(self, now: datetime) -> Period:
        """Return the one that began last; it may not be over."""
        this = self.at(self.index(now))
        return this if this.start <= now else self.at(self.index(now) - 1)

    def last(self, now: datetime) -> Period:
        """Return the last one that is over."""
        latest = self.latest(now)
        return latest if latest.end <= now else self.at(self.index(latest.start) - 1)

    def this(self, now: datetime) -> Period:
        """Return the one that is not over, or that of this year or week."""
        latest = self.latest(now)
        return latest if now < latest.end else self.at(self.index(now))

    def next(self, now: datetime) -> Period:
        """Return the next one that has not begun."""
        this = self.at(self.index(now))
        return this if this.start > now else self.at(self.index(now) + 1)


def _weekly(weekday: int, days: int = 1) -> Cycle:
    def at(week: int) -> Period:
        return _day_at(datetime.fromordinal(week * 7 + 1 + weekday), days)

    return Cycle(at, lambda moment: (moment.toordinal() - 1) // 7)


_WEEKEND = _weekly(5, 2)


def _day_at(moment: datetime, days: int = 1) -> Period:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    return Period(start, start + days * _DAY)


def _date_of(year: int, month: int, day: int) -> Period:
    return _day_at(datetime(year, month, day, tzinfo=UTC))


def _months_of(year: int, month: int, count: int = 1) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Period(start, _shifted(start, "month", count))


def _shifted(moment: datetime, unit: str, count: int) -> datetime:
    """Return the time `count` units later; the day is limited to the length of its month."""
    if unit in _DAYS_IN:
        return moment + timedelta(days=_DAYS_IN[unit] * count)
    year, month = divmod(moment.year * 12 + moment.month - 1 + _MONTHS_IN[unit] * count, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _around(unit: str, moment: datetime) -> Period:
    """Return the whole day, week (from Monday), weekend, month … that contains a time."""
    midnight = _day_at(moment).start
    monday = midnight - min(midnight.weekday(), midnight.toordinal() - 1) * _DAY
    if unit == "weekend":
        return _WEEKEND.at(_WEEKEND.index(moment))
    if unit in _DAYS_IN:
        return _day_at(monday, 7) if _DAYS_IN[unit] > 1 else _day_at(midnight)
    length = _MONTHS_IN[unit]
    first = (midnight.year * 12 + midnight.month - 1) // length * length
    return _months_of(first // 12, first % 12 + 1, length)


def _ago(now: datetime, unit: str, fewest: int, most: int) -> Period:
    """Return the whole units from the one `most` ago to the one `fewest` ago."""
    return Period(
        _around(unit, _shifted(now, unit, -most)).start,
        _around(unit, _shifted(now, unit, -fewest)).end,
    )


def _rolling(now: datetime, unit: str, count: int) -> Period:
    """Return `count` units up to the end of today; from today on if `count` is negative."""
    today = _day_at(now)
    if count < 0:
        return Period(today.start, _shifted(today.end, unit, -count))
    return Period(_shifted(today.start, unit, -count), today.end)


# ---------------------------------------------------------------- words that name a time
Meaning = Cycle | Callable[[datetime], Period]
_Reading = tuple[Meaning, str] | None
_WORDS = table(__file__, "periods.txt")
_PATTERNS = {
    kind: later(rf"(?<!\w)(?<!\d[.,])(?:{pattern})(?!\w)", re.IGNORECASE | re.ASCII)
    for kind, pattern in table(__file__, "periods.txt", "anchors").items()
}
_LONELY = later(_WORDS["LONELY"])
_SURE_MONTH = later(r"january|february|july|(?:sept|nov|dec)ember|october", re.IGNORECASE)
_STEPS = {"last": -1, "this": 0, "next": 1}
_NEAR = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
_CENTURY_TURN = 70
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: (number, number) for number, word in enumerate(_NUMBERS, start=1)}
_COUNTS |= {"a": (1, 1), "an": (1, 1), "couple": (1, 3), "few": (2, 6), "several": (3, 9)}


@dataclass(frozen=True, slots=True)
class Anchor:
    """Words that name a time, their position in the text, and their meaning as seen from a time.

    Ambiguous words need certain words before them to be a time: `needs` is a key of the section
    `supports` of `periods.txt`, or empty.
    """

    start: int
    end: int
    meaning: Meaning
    needs: str


def anchors_in(text: str) -> list[Anchor]:
    """Return the anchors in text order; of overlapping ones, the first and longest."""
    found = [anchor for kind, words in _PATTERNS.items() for anchor in _found(text, kind, words)]
    chosen: list[Anchor] = []
    for anchor in sorted(found, key=lambda anchor: (anchor.start, -anchor.end)):
        if not chosen or anchor.start >= chosen[-1].end:
            chosen.append(anchor)
    return chosen


def _found(text: str, kind: str, words: re.Pattern[str]) -> Iterator[Anchor]:
    for match in words.finditer(text):
        reading = _READERS[kind](match)
        if reading:
            yield Anchor(match.start(), match.end(), *reading)


def _iso(match: re.Match[str]) -> _Reading:
    year, month = int(match["year"]), int(match["number"])
    if match["day"]:
        return lambda _now: _date_of(year, month, int(match["day"])), ""
    if match["mark"] != "-" or len(match["number"]) == 1:
        return None
    return lambda _now: _months_of(year, month), ""


def _date(match: re.Match[str]) -> _Reading:
    month, day = _month(match), int(match["day"])
    if _is_verb(match) and not (match["ordinal"] or match["year"] or match["which"]):
        return None
    return _in_year(lambda year: _date_of(year, month, day), match), ""


def _of_month(match: re.Match[str]) -> _Reading:
    month = _month(match)
    meaning = _in_year(lambda year: _months_of(year, month), match)
    if _SURE_MONTH.match(match["month"]) or match["year"] or match["which"]:
        return meaning, ""
    return meaning, "verb" if _is_verb(match) else "month"


def _whole_year(match: re.Match[str]) -> _Reading:
    return lambda _now: _months_of(int(match[0]), 1, 12), "year"


def _weekday(match: re.Match[str]) -> _Reading:
    day = _weekly(_WEEKDAYS.index(match[0][:3].lower()))
    return day, "weekday" if match[0].lower().endswith("day") else "short weekday"


def _near(match: re.Match[str]) -> _Reading:
    words = match[0].lower()
    if words.endswith("before yesterday"):
        return lambda now: _ago(now, "day", 2, 2), ""
    step = -1 if words.startswith("last") else _NEAR.get(words, 0)
    return lambda now: _ago(now, "day", -step, -step), ""


def _unit(match: re.Match[str]) -> _Reading:
    unit, step = match["unit"].lower(), _STEPS[match["which"].lower()]
    return lambda now: _ago(now, unit, -step, -step), ""


def _so_long_ago(match: re.Match[str]) -> _Reading:
    fewest, most = _counted(match["count"])
    slack = max(1, most // 4) if match["about"] else 0
    unit = match["unit"].lower()
    return lambda now: _ago(now, unit, max(fewest - slack, 0), most + slack), ""


def _last_ones(match: re.Match[str]) -> _Reading:
    _, most = _counted(match["count"] or "a")
    sign = -1 if match["which"].lower() == "next" else 1
    return lambda now: _rolling(now, match["unit"].lower(), sign * most), ""


def _counted(words: str) -> tuple[int, int]:
    if words.isdecimal():
        return int(words), int(words)
    bare = words.lower().split()
    return next(_COUNTS[word] for word in reversed(bare) if word != "of")


def _in_year(at: Callable[[int], Period], match: re.Match[str]) -> Meaning:
    """Return a yearly cycle, or the period of the year that the words name."""
    if match["year"]:
        return lambda _now: at(_year(match["year"]))
    if match["which"]:
        return lambda now: at(now.year + _STEPS[match["which"].lower()])
    return Cycle(at, lambda moment: moment.year)


def _year(digits: str) -> int:
    number = int(digits.lstrip("'\u2019"))
    if digits.isdecimal():
        return number
    return 2000 + number if number < _CENTURY_TURN else 1900 + number


def _month(match: re.Match[str]) -> int:
    return _MONTHS.index(match["month"][:3].lower()) + 1


def _is_verb(match: re.Match[str]) -> bool:
    """Whether "may" or "march" is likely a verb: in lower case, and followed by words."""
    return match["month"] in {"may", "march"} and not _LONELY.match(match.string, match.end())


_READERS: dict[str, Callable[[re.Match[str]], _Reading]] = {
    "iso": _iso,
    "day and month": _date,
    "month and day": _date,
    "month": _of_month,
    "year": _whole_year,
    "weekday": _weekday,
    "near": _near,
    "unit": _unit,
    "ago": _so_long_ago,
    "rolling": _last_ones,
    "rolling one": _last_ones,
}


# ---------------------------------------------------------------- in a question
def _before(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})\Z", re.IGNORECASE | re.ASCII)


_REACH = 48
"""How many characters before an anchor may change its meaning."""
_WHICH = _before(_WORDS["WHICH"])
_SUPPORTS = {
    name: _before(words) for name, words in table(__file__, "periods.txt", "supports").items()
}


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time that a question names: from `start` up to, but not including, `end`, in UTC.

    If no year was named, it is `recurring`: the span is the nearest before now, and that of
    another year may be meant. `question[position.start : position.stop]` is `text`.
    """

    start: datetime
    end: datetime
    text: str
    position: range
    recurring: bool = False


def times_in(question: str, now: datetime) -> tuple[TimeSpan, ...]:
    """Return the times that a question names, in text order, as seen from `now`.

    Ambiguous words count only if the words around them support it. A `now` without a time zone is
    in UTC.
    """
    return tuple(_spans(question, _utc(now)))


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        return now.replace(tzinfo=UTC)
    try:
        return now.astimezone(UTC)
    except OverflowError:
        return now.replace(tzinfo=UTC)


def _spans(question: str, now: datetime) -> Iterator[TimeSpan]:
    for anchor in anchors_in(question):
        with suppress(ValueError, OverflowError):
            span = _span(question, anchor, now)
            if span and span.start < span.end:
                yield span


def _span(text: str, anchor: Anchor, now: datetime) -> TimeSpan | None:
    """Return the span of an anchor with the words before it; None if it is not a time."""
    meaning, needs, begin = anchor.meaning, anchor.needs, anchor.start
    is_weekday, is_chosen = needs.endswith("weekday"), False
    if not isinstance(meaning, Cycle):
        period = meaning(now)
    elif needs != "verb" and (match := _search(_WHICH, text, begin)):
        chosen = {"this": meaning.this, "next": meaning.next}
        period = chosen.get(match["which"].lower(), meaning.last)(now)
        begin, is_chosen = match.start(), True
    else:
        period = meaning.last(now) if is_weekday else meaning.latest(now)
    is_sure = needs in {"", "weekday"} or begin < anchor.start
    if not is_sure and not _search(_SUPPORTS[needs], text, begin):
        return None
    recurring = isinstance(meaning, Cycle) and not (is_chosen or is_weekday)
    position = range(begin, anchor.end)
    return TimeSpan(period.start, period.end, text[begin : anchor.end], position, recurring)


def _search(words: re.Pattern[str], text: str, stop: int) -> re.Match[str] | None:
    return words.search(text, max(0, stop - _REACH), stop)
