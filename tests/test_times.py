"""Times as people and files write them."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from perdure.errors import InvalidValueError
from perdure.times import end_of, parse_when, read_time, start_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC))


@pytest.mark.parametrize("day", ["2026-03-01", "20260301", "2026-W09-7", date(2026, 3, 1)])
def test_a_date_is_its_whole_day(day: date | str) -> None:
    assert parse_when(day) == date(2026, 3, 1)
    assert (start_of(day), end_of(day)) == DAY


@pytest.mark.parametrize(
    "text", ["2026-03-01T12:00:00Z", "2026-03-01 12:00", "2026-03-01T14:00+02:00"]
)
def test_a_text_without_a_fraction_means_all_of_its_second(text: str) -> None:
    assert parse_when(text) == start_of(text) == NOON
    assert end_of(text) == NOON + timedelta(milliseconds=999)


def test_a_text_with_a_fraction_and_a_datetime_mean_themselves() -> None:
    assert end_of("2026-03-01T12:00:00.250Z") == NOON + timedelta(milliseconds=250)
    assert start_of(NOON) == end_of(NOON) == NOON


def test_what_has_no_zone_is_in_utc() -> None:
    assert start_of(datetime(2026, 3, 1, 12)).utcoffset() == timedelta(0)  # noqa: DTZ001 - that is the case
    assert start_of("2026-03-01T12:00:00") == NOON


@pytest.mark.parametrize(
    "nonsense", ["", "yesterday", "2026-13-01", "12:00", "2026-02-30", True, 7]
)
def test_what_is_not_a_time_is_refused_with_a_fix(nonsense: str) -> None:
    with pytest.raises(InvalidValueError, match=r"is not a time\. Fix: write a date as 2026-03-01"):
        parse_when(nonsense)


@pytest.mark.parametrize(
    "when", [date.min, date.max, "0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z"]
)
def test_the_ends_of_the_calendar_are_times(when: date | str) -> None:
    assert start_of(when) <= end_of(when)


def test_reading_is_in_utc_and_answers_none_for_anything_else() -> None:
    east = timezone(timedelta(hours=2))
    assert read_time("2026-03-01T14:00:00+02:00") == NOON.astimezone(east)
    assert read_time("2026-03-01") == DAY[0]
    assert [read_time(each) for each in (None, 5, "soon", "0001-01-01T00:00+02:00")] == [None] * 4
