"""Numbers, units, dates and times of day, each in one way of writing.

Two that are written alike here are equal; what is not understood stays as it was written.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from perdure.engine.merge.english import lines_of, list_of
from perdure.engine.merge.tokens import Kind, Token

Taken = tuple[list[Token], int]
"""What stands there instead, and where to go on."""

_ONES = list_of("ones")
_TENS = list_of("tens")
_VALUES = {word: value for value, word in enumerate(_ONES)}
_VALUES |= {word: 10 * value for value, word in enumerate(_TENS, start=2)}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_ORDINALS = {word: value for value, word in enumerate(list_of("ordinals"), 1)}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_UNITS = {spelled: line.split()[0] for line in lines_of("units") for spelled in line.split()}
_MONTHS = list_of("months")
_MONTH = {month: number for number, month in enumerate(_MONTHS, 1)}
_SHORT_MONTH = {month[:3]: number for month, number in _MONTH.items()} | {"sept": 9}
_DAYS = list_of("days")
_WEEKDAY = {day: day for day in _DAYS}
_SHORT_DAYS = {day[:3]: day for day in _DAYS} | {
    "tues": "tuesday",
    "thur": "thursday",
    "thurs": "thursday",
}
MEASURING = frozenset(
    {*_VALUES, *_SCALES, *_ORDINALS, *_TIMES, *_UNITS, *_MONTH, *_SHORT_MONTH, *_DAYS, *_SHORT_DAYS}
)
"""Words that numbers, measures, dates and times are made of."""
_NUMBER = re.compile(
    r"v?(?P<money>[$\u20ac\u00a3\u00a5])?(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*)"
    r"(?P<suffix>%|[^\W\d_]{1,4}|\u00b0[A-Za-z])?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?P<half>am|pm)?", re.IGNORECASE)
_ISO = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)")
_DOTTED = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})")
_DAY = re.compile(r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", re.IGNORECASE)
_YEAR = re.compile(r"[12]\d{3}")
_TO = frozenset({"to", "until", "till", "through", "-"})


def measured(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with each quantity as one, in its one way of writing."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        for take in _TAKERS:
            if taken := take(tokens, at):
                found += taken[0]
                at = taken[1]
                break
        else:
            found.append(tokens[at])
            at += 1
    return found


def _written(text: str) -> Token:
    return Token(text, Kind.QUANTITY)


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].word if 0 <= at < len(tokens) else ""


def _digits(tokens: Sequence[Token], at: int) -> str:
    is_number = 0 <= at < len(tokens) and tokens[at].kind is Kind.NUMBER
    return tokens[at].text if is_number else ""


# ---------------------------------------------------------------- dates
def _date(tokens: Sequence[Token], at: int) -> Taken | None:
    if found := _ISO.fullmatch(_digits(tokens, at)) or _DOTTED.fullmatch(_digits(tokens, at)):
        month, day = int(found["month"]), int(found["day"])
        if 1 <= month <= 12 and 1 <= day <= 31:  # noqa: PLR2004 - a calendar
            return [_written(f"{found['year']}-{month:02}-{day:02}")], at + 1
        return None
    return _days_of_month(tokens, at) or _month_and_day(tokens, at)


def _day(tokens: Sequence[Token], at: int) -> int:
    """Return the day of a month that stands there, or 0."""
    found = _DAY.fullmatch(_digits(tokens, at))
    day = int(found["day"]) if found else 0
    return day if day <= 31 else 0  # noqa: PLR2004 - a calendar


def _month(tokens: Sequence[Token], at: int) -> int:
    return _MONTH.get(_word(tokens, at), 0) or _SHORT_MONTH.get(_word(tokens, at), 0)


def _year(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the year that follows a date, and where to go on."""
    after = at
    while after < len(tokens) and after < at + 2 and tokens[after].text in {",", ".", "of"}:
        after += 1
    if _YEAR.fullmatch(_digits(tokens, after)):
        return _digits(tokens, after), after + 1
    return "-", at


def _days_of_month(tokens: Sequence[Token], at: int) -> Taken | None:
    day, after = _day(tokens, at), at + 1
    until = 0
    if day and after < len(tokens) and tokens[after].text in _TO and _day(tokens, after + 1):
        until, after = _day(tokens, after + 1), after + 2
    if day and _word(tokens, after) == "of":
        after += 1
    month = _month(tokens, after)
    if not day or not month:
        return None
    year, end = _year(tokens, after + 1)
    dates = [_written(f"{year}-{month:02}-{each:02}") for each in (day, until) if each]
    return (dates if len(dates) == 1 else [dates[0], Token("until", Kind.WORD), dates[1]]), end


def _month_and_day(tokens: Sequence[Token], at: int) -> Taken | None:
    month = _month(tokens, at)
    if not month:
        return None
    after = at + 1
    if after < len(tokens) and tokens[after].text == "." and _digits(tokens, after + 1):
        after += 1
    if day := _day(tokens, after):
        year, end = _year(tokens, after + 1)
        return [_written(f"{year}-{month:02}-{day:02}")], end
    year, end = _year(tokens, at + 1)
    if year != "-" or (_word(tokens, at) in _MONTH and _is_month(tokens[at])):
        return [_written(f"{year}-{month:02}")], end
    return None


def _is_month(token: Token) -> bool:
    return token.is_name or (token.is_first and token.word not in {"may", "march"})


def _weekday(tokens: Sequence[Token], at: int) -> Taken | None:
    word = _word(tokens, at)
    if word in {"every", "each"} and _word(tokens, at + 1) in _WEEKDAY:
        return [_written(f"every {_word(tokens, at + 1)}")], at + 2
    if word in _WEEKDAY:
        return [_written(word)], at + 1
    if word.removesuffix("s") in _WEEKDAY:
        return [_written(f"every {word[:-1]}")], at + 1
    if word in _SHORT_DAYS and tokens[at].text[0].isupper() and not tokens[at].is_first:
        return [_written(_SHORT_DAYS[word])], at + 1
    return None


# ---------------------------------------------------------------- times of day
def _clock(tokens: Sequence[Token], at: int) -> Taken | None:
    if _word(tokens, at) in {"noon", "midnight"}:
        return [_written("12:00" if _word(tokens, at) == "noon" else "0:00")], at + 1
    found = _CLOCK.fullmatch(_digits(tokens, at))
    if not found:
        return None
    half, end = (found["half"] or "").lower(), at + 1
    if not half and _word(tokens, end) in {"am", "pm"}:
        half, end = _word(tokens, end), end + 1
    if not half and found["minute"] is None:
        return None
    return _time(int(found["hour"]), int(found["minute"] or 0), half, end)


def _time(hour: int, minute: int, half: str, end: int) -> Taken | None:
    if minute > 59 or hour > (12 if half else 23) or (half and hour == 0):  # noqa: PLR2004 - a clock
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return [_written(f"{hour}:{minute:02}")], end


# ---------------------------------------------------------------- numbers
def _number(tokens: Sequence[Token], at: int) -> Taken | None:
    text = _digits(tokens, at)
    if not text:
        return None
    found = _NUMBER.fullmatch(text)
    if not found:
        return [_written(text)], at + 1
    value, suffix = found["value"].replace(",", ""), found["suffix"] or ""
    if suffix.lower() in {"st", "nd", "rd", "th"}:
        return [_written(f"{value}th")], at + 1
    if suffix.lower() == "k":
        value, suffix = _scaled(value, 1000), ""
    if suffix:
        return [_written(f"{value} {_unit(suffix) or suffix.lower()}")], at + 1
    if scale := _SCALES.get(_word(tokens, at + 1)):
        value, at = _scaled(value, scale), at + 1
    if found["money"]:
        return [_written(f"{value} {_UNITS[found['money']]}")], at + 1
    return _with_unit(value, tokens, at + 1)


def _scaled(value: str, scale: int) -> str:
    if value.count(".") > 1 or len(value) > 30:  # noqa: PLR2004 - no number that is scaled
        return f"{value}x{scale}"
    return f"{(Decimal(value) * scale).normalize():f}"


def _unit(spelled: str) -> str:
    return _UNITS.get(spelled) or _UNITS.get(spelled.lower(), "")


def _with_unit(value: str, tokens: Sequence[Token], after: int) -> Taken:
    if after < len(tokens) and tokens[after].text == "-" and _unit(_word(tokens, after + 1)):
        after += 1
    if after < len(tokens) and (unit := _unit(tokens[after].text)):
        return [_written(f"{value} {unit}")], after + 1
    return [_written(value)], after


def _spelled(tokens: Sequence[Token], at: int) -> Taken | None:
    word = _word(tokens, at)
    if word == "no" and _word(tokens, at + 1) == "one":
        return [Token("nobody", Kind.WORD, is_first=True)], at + 2
    if word in _TIMES:
        return [_written(f"{_TIMES[word]} times")], at + 1
    if word in _ORDINALS and not (
        word == "second" and _word(tokens, at - 1) in {"per", "a", "each"}
    ):
        return [_written(f"{_ORDINALS[word]}th")], at + 1
    if word in {"a", "an"} and _word(tokens, at + 1) in _SCALES:
        return _with_unit(str(_SCALES[_word(tokens, at + 1)]), tokens, at + 2)
    if word not in _VALUES and word not in _SCALES:
        return None
    return _with_unit(*_value(tokens, at))


def _value(tokens: Sequence[Token], at: int) -> tuple[str, Sequence[Token], int]:
    """Return the number that is spelled out there."""
    total, part, last = 0, 0, 10**12
    while at < len(tokens):
        word = _word(tokens, at)
        if word in _VALUES and _fits(_VALUES[word], last):
            part, last = part + _VALUES[word], _VALUES[word]
        elif word in _SCALES:
            part, last = max(part, 1) * _SCALES[word], _SCALES[word]
            total, part = (total + part, 0) if _SCALES[word] > 100 else (total, part)  # noqa: PLR2004
        elif not _goes_on(tokens, at, last):
            break
        at += 1
    return str(total + part), tokens, at


def _goes_on(tokens: Sequence[Token], at: int, last: int) -> bool:
    """Whether a hyphen or an "and" there joins two parts of one number."""
    value = _VALUES.get(_word(tokens, at + 1))
    return value is not None and _joins(tokens[at], last) and _fits(value, last)


def _fits(value: int, last: int) -> bool:
    """Whether a number can follow one in the same: "twenty four", not "four twenty"."""
    return last >= 100 or (last >= 20 and 0 < value < 10)  # noqa: PLR2004 - tens and hundreds


def _joins(token: Token, last: int) -> bool:
    return token.text == "-" or (token.word == "and" and last in _SCALES.values())


_TAKERS: tuple[Callable[[Sequence[Token], int], Taken | None], ...] = (
    _date,
    _weekday,
    _clock,
    _number,
    _spelled,
)
