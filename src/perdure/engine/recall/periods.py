"""Stretches of the calendar, in UTC, and the English words for them.

A date that the calendar does not have raises `ValueError` or `OverflowError`. Every repetition in
a pattern is bounded, so that looking for words takes linear time.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from perdure.dataclass import dataclass
from perdure.patterns import later
from perdure.tables import table

DAYS_IN = {"hour": 1 / 24, "day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14}
MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` on, up to but without `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Cycle:
    """What comes again: a month, a holiday, a day of the week.

    `at` gives the one that begins in a year or a week, `index` the number of that of a moment.
    """

    at: Callable[[int], Period]
    index: Callable[[datetime], int]

    def latest(self, now: datetime) -> Period:
        """Return the one that began last; it may still go on."""
        this = self.at(self.index(now))
        return this if this.start <= now else self.at(self.index(now) - 1)

    def last(self, now: datetime) -> Period:
        """Return the last one that is over."""
        latest = self.latest(now)
        return latest if latest.end <= now else self.at(self.index(latest.start) - 1)

    def this(self, now: datetime) -> Period:
        """Return the one that goes on, or else that of this year or week."""
        latest = self.latest(now)
        return latest if now < latest.end else self.at(self.index(now))

    def next(self, now: datetime) -> Period:
        """Return the first that is still to begin."""
        this = self.at(self.index(now))
        return this if this.start > now else self.at(self.index(now) + 1)


def yearly(at: Callable[[int], Period]) -> Cycle:
    return Cycle(at, lambda moment: moment.year)


def weekly(weekday: int, days: int = 1) -> Cycle:
    def at(week: int) -> Period:
        return day_at(datetime.fromordinal(week * 7 + 1 + weekday), days)

    return Cycle(at, lambda moment: (moment.toordinal() - 1) // 7)


WEEKEND = weekly(5, 2)


def day_at(moment: datetime, days: int = 1) -> Period:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    return Period(start, start + days * _DAY)


def date_of(year: int, month: int, day: int) -> Period:
    return day_at(datetime(year, month, day, tzinfo=UTC))


def months_of(year: int, month: int, count: int = 1) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Period(start, shifted(start, "month", count))


def shifted(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment so many units later; the day is cut to the length of its month."""
    if unit in DAYS_IN:
        return moment + timedelta(days=DAYS_IN[unit] * count)
    year, month = divmod(moment.year * 12 + moment.month - 1 + MONTHS_IN[unit] * count, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def around(unit: str, moment: datetime) -> Period:
    """Return the whole day, week (from Monday), weekend of the week, month … of a moment."""
    midnight = day_at(moment).start
    monday = midnight - min(midnight.weekday(), midnight.toordinal() - 1) * _DAY
    if unit == "weekend":
        return WEEKEND.at(WEEKEND.index(moment))
    if unit in DAYS_IN:
        return day_at(monday, 7) if DAYS_IN[unit] > 1 else day_at(midnight)
    length = MONTHS_IN[unit]
    first = (midnight.year * 12 + midnight.month - 1) // length * length
    return months_of(first // 12, first % 12 + 1, length)


def ago(now: datetime, unit: str, fewest: int, most: int) -> Period:
    """Return the whole units from the one `most` ago to the one `fewest` ago."""
    return Period(
        around(unit, shifted(now, unit, -most)).start,
        around(unit, shifted(now, unit, -fewest)).end,
    )


def rolling(now: datetime, unit: str, count: int) -> Period:
    """Return so many units up to the end of today; from today on if there are fewer than none."""
    today = day_at(now)
    if count < 0:
        return Period(today.start, shifted(today.end, unit, -count))
    return Period(shifted(today.start, unit, -count), today.end)


def part(period: Period, number: int, count: int) -> Period:
    """Return one of so many equal parts, the first is 0: of months if it can be, else of days.

    Fewer days than parts stay whole.
    """
    for unit, length in (("month", _months(period)), ("day", (period.end - period.start).days)):
        if length >= count and (unit == "day" or length % count == 0):
            cuts = [length * cut // count for cut in (number, number + 1)]
            return Period(*(shifted(period.start, unit, cut) for cut in cuts))
    return period


def _months(period: Period) -> int:
    """Return how many whole months a period is; 0 if it is none."""
    if (period.start.day, period.end.day) != (1, 1):
        return 0
    return (period.end.year - period.start.year) * 12 + period.end.month - period.start.month


def before(moment: datetime, unit: str | Cycle, count: int) -> Period:
    """Return the first of so many units that lead up to a moment."""
    if isinstance(unit, Cycle):
        return unit.at(unit.index(unit.last(moment).start) + 1 - count)
    return Period(shifted(moment, unit, -count), shifted(moment, unit, 1 - count))


def after(moment: datetime, unit: str | Cycle, count: int) -> Period:
    """Return the last of so many units that follow a moment."""
    if isinstance(unit, Cycle):
        return unit.at(unit.index(unit.next(moment - _INSTANT).start) - 1 + count)
    return Period(shifted(moment, unit, count - 1), shifted(moment, unit, count))


def nearest_weekend(moment: datetime) -> Period:
    """Return the weekend of a moment, or else the nearer of the two around it."""
    return WEEKEND.at(WEEKEND.index(moment - 2 * _DAY))


def easter(year: int) -> Period:
    century, golden = year // 100, year % 19
    epact = (15 + century - century // 4 - (13 + 8 * century) // 25 + 19 * golden) % 30
    epact -= epact // 28 * (1 - 29 // (epact + 1) * ((21 - golden) // 11))
    sunday = epact - (year + year // 4 + epact + 2 - century + century // 4) % 7
    month = 3 + (sunday + 40) // 44
    return day_at(datetime(year, month, sunday + 28 - 31 * (month // 4), tzinfo=UTC), 2)


def thanksgiving(year: int) -> Period:
    first = datetime(year, 11, 1, tzinfo=UTC)
    return day_at(first + timedelta(days=(3 - first.weekday()) % 7 + 21))


WORDS = table(__file__, "times.txt")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first months of the northern seasons; a winter is named by the year that it begins in."""

PARTS = {"q": 3, "h": 6}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: (number, number) for number, word in enumerate(_NUMBERS, start=1)}
_COUNTS |= {"a": (1, 1), "an": (1, 1), "couple": (1, 3), "few": (2, 6), "several": (3, 9)}


def counted(words: str) -> tuple[int, int]:
    if words.isdecimal():
        return int(words), int(words)
    bare = words.lower().split()
    return next(_COUNTS[word] for word in reversed(bare) if word != "of")


def _fixed(month: int, day: int, days: int = 1) -> Callable[[int], Period]:
    return lambda year: day_at(datetime(year, month, day, tzinfo=UTC), days)


HOLIDAYS = {
    "new_years_eve": _fixed(12, 31),
    "new_year": _fixed(1, 1),
    "valentine": _fixed(2, 14),
    "patrick": _fixed(3, 17),
    "easter": easter,
    "fourth_of_july": _fixed(7, 4),
    "halloween": _fixed(10, 31),
    "thanksgiving": thanksgiving,
    "christmas_eve": _fixed(12, 24),
    "christmas_day": _fixed(12, 25),
    "christmas": _fixed(12, 24, 3),
    "boxing_day": _fixed(12, 26),
}

ANCHORS = {
    kind: later(rf"(?<!\w)(?<!\d[.,])(?:{pattern})(?!\w)", re.IGNORECASE | re.ASCII)
    for kind, pattern in table(__file__, "times.txt", "anchors").items()
}

SURE_MONTH = later(r"january|february|july|(?:sept|nov|dec)ember|october", re.IGNORECASE)
LONELY = later(WORDS["LONELY"])
