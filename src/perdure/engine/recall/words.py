"""The English words for times, and how they are put together.

Every repetition in a pattern is bounded, so that looking for them takes linear time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.engine.recall import periods
from perdure.engine.recall.periods import Period

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first months of the northern seasons; a winter is named by the year that it begins in."""

PARTS = {"q": 3, "h": 6}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: (number, number) for number, word in enumerate(_NUMBERS, start=1)}
_COUNTS |= {"a": (1, 1), "an": (1, 1), "couple": (1, 3), "few": (2, 6), "several": (3, 9)}


def counted(words: str) -> tuple[int, int]:
    """Return the fewest and the most that a count may mean."""
    if words.isdecimal():
        return int(words), int(words)
    bare = words.lower().split()
    return next(_COUNTS[word] for word in reversed(bare) if word != "of")


@dataclass(frozen=True, slots=True)
class Holiday:
    """What it is called, as a pattern, and when it is."""

    called: str
    at: Callable[[int], Period]


def _fixed(called: str, month: int, day: int, days: int = 1) -> Holiday:
    return Holiday(
        called, lambda year: periods.day_at(datetime(year, month, day, tzinfo=UTC), days)
    )


HOLIDAYS = {
    "new_years_eve": _fixed(r"new\syear['\u2019]?s\seve", 12, 31),
    "new_year": _fixed(r"new\syear['\u2019]?s(?:\sday)?", 1, 1),
    "valentine": _fixed(r"valentine['\u2019]?s(?:\sday)?", 2, 14),
    "patrick": _fixed(r"s(?:ain)?t\.?\spatrick['\u2019]?s(?:\sday)?", 3, 17),
    "easter": Holiday(r"easter(?:\ssunday)?", periods.easter),
    "fourth_of_july": _fixed(r"fourth\sof\sjuly|independence\sday", 7, 4),
    "halloween": _fixed(r"hallowe['\u2019]?en", 10, 31),
    "thanksgiving": Holiday(r"thanksgiving(?:\sday)?", periods.thanksgiving),
    "christmas_eve": _fixed(r"(?:christmas|xmas)\seve", 12, 24),
    "christmas_day": _fixed(r"(?:christmas|xmas)\sday", 12, 25),
    "christmas": _fixed(r"christmas|xmas", 12, 24, 3),
    "boxing_day": _fixed(r"boxing\sday", 12, 26),
}

COUNT = (
    r"(?P<count>\d{1,3}|(?:a\s)?couple(?:\sof)?|(?:a\s)?few|several|an?|"
    rf"{'|'.join(_NUMBERS)})"
)
UNIT = r"(?P<unit>hour|day|night|weekend|week|fortnight|month|quarter|year|decade)"
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?!\w)(?:\.(?=\s\d))?"
)
_YEAR = (
    r"(?:,?\s{0,2}(?:(?:of|in)\s)?(?:(?P<year>(?:19|20)\d\d|['\u2019]\d\d)(?!\w|[.,:/-]\d)"
    r"|(?P<which>last|this|next)\syear(?!\w)))?"
)
_ORDINAL = r"(?P<ordinal>st|nd|rd|th)?(?![\w:%]|\.\d|,(?!(?:19|20)\d\d(?!\d))\d)"
_ON = rf"(?:{WEEKDAY},?\s)?"
_DAY = rf"(?P<day>\d{{1,2}}){_ORDINAL}"
_DAYS = (
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:\s?[-\u2013\u2014]\s?|\s(?:to|and|until|till|through)\s(?:the\s)?)"
    rf"(?P<until>\d{{1,2}}){_ORDINAL}"
)
_NO_MEASURE = (
    r"(?!\s(?:steps?|met(?:er|re)s?|km|kilomet(?:er|re)s?|miles?|words?|calories|kcal|dollars?"
    r"|euros?|pounds?|people|times|days|hours|minutes|seconds|pages|lines|rows|users|files)\b)"
)
_NO_FEAST = "".join(
    rf"(?<!{feast}\s)" for feast in ("good", "black", "maundy", "ash", "palm", "cyber", "easter")
)
_WITHIN = r"(?:in|over|during|within|for|throughout)\s"
_WHICH = r"(?P<which>last|past|next|previous)\s"
_NAMED = "|".join(f"(?P<{name}>{holiday.called})" for name, holiday in HOLIDAYS.items())
_PATTERNS = {
    "iso": r"(?<![./-])(?P<year>(?:19|20)\d\d)(?P<mark>[-/.])(?P<number>\d{1,2})"
    r"(?:(?P=mark)(?P<day>\d{1,2})(?:[T\s]\d\d:[\d:.+]{2,20}Z?)?)?(?![./-]?\w)",
    "slashed": r"(?<![./-])(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)"
    r"(?P<year>(?:19|20)\d\d)(?![./-]\w)",
    "day and month": rf"{_ON}(?:the\s)?{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}",
    "month and day": rf"{_ON}{_MONTH}\s(?:the\s)?{_DAY}{_YEAR}",
    "days and month": rf"(?:the\s)?{_DAYS}\s(?:of\s)?{_MONTH}{_YEAR}",
    "month and days": rf"{_MONTH}\s(?:the\s)?{_DAYS}{_YEAR}",
    "month": rf"{_MONTH}{_YEAR}",
    "season": rf"(?P<season>spring|summer|autumn|fall|winter)(?:time)?{_YEAR}",
    "part": rf"(?P<before>(?!))?(?P<part>[qh])(?P<number>[1-4]){_YEAR}",
    "part after year": r"(?P<before>(?:19|20)\d\d)\s(?P<part>[qh])(?P<number>[1-4])",
    "year": rf"(?<![./$€£#])(?:19|20)\d\d(?![.,:/]\d|%){_NO_MEASURE}",
    "decade": r"(?P<decade>(?:19|20)\d0)['\u2019]?s"
    r"|(?:(?<=the\s)|(?<=early\s)|(?<=late\s)|(?<=mid[\s-]))['\u2019]?(?P<short>[6-9]0)['\u2019]?s",
    "weekday": rf"{_NO_FEAST}{WEEKDAY}"
    r"|(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)",
    "near": r"today|tonight|yesterday|tomorrow|this\s(?:morning|afternoon|evening)"
    r"|last\s(?:night|evening)|(?:the\s)?day\sbefore\syesterday|the\sother\sday",
    "unit": r"(?P<which>last|this|next)\s(?P<unit>weekend|week|month|quarter|year|decade)",
    "weekend": r"(?:over|at|on)\sthe\sweekend",
    "before last": rf"(?:the\s)?{UNIT}\sbefore\slast",
    "ago": r"(?:(?P<about>about|around|roughly|approximately|almost|nearly|some)\s)?"
    rf"{COUNT}\s{UNIT}s?\sago",
    "rolling": rf"(?:{_WITHIN})?(?:th(?:e|ese)\s)?{_WHICH}{COUNT}\s{UNIT}s?",
    "rolling one": rf"(?:{_WITHIN}the\s|(?:the\s)?(?=past)){_WHICH}(?P<count>){UNIT}",
    "holiday": rf"(?:{_NAMED}){_YEAR}",
}
ANCHORS = {
    kind: re.compile(rf"(?<!\w)(?<!\d[.,])(?:{pattern})(?!\w)", re.IGNORECASE | re.ASCII)
    for kind, pattern in _PATTERNS.items()
}

SURE_MONTH = re.compile(r"january|february|july|(?:sept|nov|dec)ember|october", re.IGNORECASE)
LONELY = re.compile(
    r"\s{0,3}(?:[?.!,;:)\"\u2013\u2014-]|\Z|(?:and|or|to|until|till|through|of|in)\s)"
)
