"""Words that name a time by themselves: a date, a month, a holiday, "yesterday"."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from perdure.dataclass import dataclass
from perdure.engine.recall import periods
from perdure.engine.recall.periods import (
    ANCHORS,
    HOLIDAYS,
    LONELY,
    MONTHS,
    PARTS,
    SEASONS,
    SURE_MONTH,
    WEEKDAYS,
    Cycle,
    Period,
    counted,
)

Meaning = Cycle | Callable[[datetime], Period]
_Reader = Callable[[re.Match[str]], "tuple[Meaning, str] | None"]
_STEPS = {"last": -1, "this": 0, "next": 1}
_NEAR = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
_LAST_MONTH = 12
_CENTURY_TURN = 70


@dataclass(frozen=True, slots=True)
class Anchor:
    """Words that name a time, where they stand, and what they mean as seen from a moment.

    Words that may name something else say what they need before them to be a time: `needs` is a
    key of `SUPPORTS`, or empty.
    """

    start: int
    end: int
    meaning: Meaning
    needs: str


def anchors_in(text: str) -> list[Anchor]:
    """Return the anchors in the order of the text; of those that overlap the first and longest."""
    found = [anchor for kind, words in ANCHORS.items() for anchor in _found(text, kind, words)]
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


def _iso(match: re.Match[str]) -> tuple[Meaning, str] | None:
    year, month = int(match["year"]), int(match["number"])
    if match["day"]:
        return lambda _now: periods.date_of(year, month, int(match["day"])), ""
    if match["mark"] != "-" or len(match["number"]) == 1:
        return None
    return lambda _now: periods.months_of(year, month), ""


def _slashed(match: re.Match[str]) -> tuple[Meaning, str] | None:
    month, day = sorted((int(match["first"]), int(match["second"])))
    if month != day <= _LAST_MONTH:
        return None
    return lambda _now: periods.date_of(int(match["year"]), month, day), ""


def _date(match: re.Match[str]) -> tuple[Meaning, str] | None:
    month, day = _month(match), int(match["day"])
    if _is_verb(match) and not (match["ordinal"] or match["year"] or match["which"]):
        return None
    return _in_year(lambda year: periods.date_of(year, month, day), match), ""


def _dates(match: re.Match[str]) -> tuple[Meaning, str]:
    month, first, last = _month(match), int(match["day"]), int(match["until"])

    def at(year: int) -> Period:
        return Period(
            periods.date_of(year, month, first).start, periods.date_of(year, month, last).end
        )

    return _in_year(at, match), ""


def _of_month(match: re.Match[str]) -> tuple[Meaning, str]:
    month = _month(match)
    meaning = _in_year(lambda year: periods.months_of(year, month), match)
    if SURE_MONTH.match(match["month"]) or match["year"] or match["which"]:
        return meaning, ""
    return meaning, "verb" if _is_verb(match) else "month"


def _season(match: re.Match[str]) -> tuple[Meaning, str]:
    month = SEASONS[match["season"].lower()]
    sure = match["year"] or match["which"]
    return _in_year(lambda year: periods.months_of(year, month, 3), match), "" if sure else "season"


def _part(match: re.Match[str]) -> tuple[Meaning, str]:
    number = int(match["number"])
    length = PARTS[match["part"].lower()]
    first = length * (number - 1) + 1
    if match["before"]:
        return lambda _now: periods.months_of(int(match["before"]), first, length), ""
    sure = match["year"] or match["which"]
    meaning = _in_year(lambda year: periods.months_of(year, first, length), match)
    return meaning, "" if sure else "season"


def _whole_year(match: re.Match[str]) -> tuple[Meaning, str]:
    return lambda _now: periods.months_of(int(match[0]), 1, 12), "year"


def _decade(match: re.Match[str]) -> tuple[Meaning, str]:
    first = int(match["decade"]) if match["decade"] else 1900 + int(match["short"])
    return lambda _now: periods.months_of(first, 1, 120), ""


def _weekday(match: re.Match[str]) -> tuple[Meaning, str]:
    day = periods.weekly(WEEKDAYS.index(match[0][:3].lower()))
    return day, "weekday" if match[0].lower().endswith("day") else "short weekday"


def _near(match: re.Match[str]) -> tuple[Meaning, str]:
    words = match[0].lower()
    if words.endswith("before yesterday"):
        return lambda now: periods.ago(now, "day", 2, 2), ""
    if words.endswith("other day"):
        return lambda now: periods.ago(now, "day", 2, 9), ""
    step = -1 if words.startswith("last") else _NEAR.get(words, 0)
    return lambda now: periods.ago(now, "day", -step, -step), ""


def _unit(match: re.Match[str]) -> tuple[Meaning, str]:
    unit, step = match["unit"].lower(), _STEPS[match["which"].lower()]
    return lambda now: periods.ago(now, unit, -step, -step), ""


def _weekend(_match: re.Match[str]) -> tuple[Meaning, str]:
    """Read "over the weekend": the one that began last."""
    return periods.WEEKEND.latest, ""


def _before_last(match: re.Match[str]) -> tuple[Meaning, str]:
    return lambda now: periods.ago(now, match["unit"].lower(), 2, 2), ""


def _ago(match: re.Match[str]) -> tuple[Meaning, str]:
    fewest, most = counted(match["count"])
    slack = max(1, most // 4) if match["about"] else 0
    unit = match["unit"].lower()
    return lambda now: periods.ago(now, unit, max(fewest - slack, 0), most + slack), ""


def _rolling(match: re.Match[str]) -> tuple[Meaning, str]:
    _, most = counted(match["count"] or "a")
    sign = -1 if match["which"].lower() == "next" else 1
    return lambda now: periods.rolling(now, match["unit"].lower(), sign * most), ""


def _holiday(match: re.Match[str]) -> tuple[Meaning, str]:
    name = next(name for name in HOLIDAYS if match[name])
    return _in_year(HOLIDAYS[name], match), ""


def _in_year(at: Callable[[int], Period], match: re.Match[str]) -> Meaning:
    """Return what comes every year, or the one of the year that the words go on to name."""
    if match["year"]:
        return lambda _now: at(_year(match["year"]))
    if match["which"]:
        return lambda now: at(now.year + _STEPS[match["which"].lower()])
    return periods.yearly(at)


def _year(digits: str) -> int:
    number = int(digits.lstrip("'\u2019"))
    if digits.isdecimal():
        return number
    return 2000 + number if number < _CENTURY_TURN else 1900 + number


def _month(match: re.Match[str]) -> int:
    return MONTHS.index(match["month"][:3].lower()) + 1


def _is_verb(match: re.Match[str]) -> bool:
    """Say whether "may" or "march" stands where the verb would: not a capital, and words follow."""
    return match["month"] in {"may", "march"} and not LONELY.match(match.string, match.end())


_READERS: dict[str, _Reader] = {
    "iso": _iso,
    "slashed": _slashed,
    "day and month": _date,
    "month and day": _date,
    "days and month": _dates,
    "month and days": _dates,
    "month": _of_month,
    "season": _season,
    "part": _part,
    "part after year": _part,
    "year": _whole_year,
    "decade": _decade,
    "weekday": _weekday,
    "near": _near,
    "unit": _unit,
    "weekend": _weekend,
    "before last": _before_last,
    "ago": _ago,
    "rolling": _rolling,
    "rolling one": _rolling,
    "holiday": _holiday,
}
