"""What times are found in a question, and what is left alone."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.recall.periods import TimeSpan, times_in

WEDNESDAY = datetime(2024, 6, 12, 15, 30, tzinfo=UTC)
SUNDAY = datetime(2024, 6, 16, 9, 0, tzinfo=UTC)
JANUARY = datetime(2024, 1, 3, 9, 0, tzinfo=UTC)
NIGHT_IN_TOKYO = datetime(2024, 6, 13, 0, 30, tzinfo=timezone(timedelta(hours=9)))
NO_TIME: list[str] = []

EXAMPLES: list[tuple[str, datetime, list[str]]] = [
    # dates
    ("What happened on 2023-05-08?", WEDNESDAY, ["2023-05-08 = 2023-05-08 .. 2023-05-09"]),
    (
        "Log of 2023-05-08T10:15:00Z?",
        WEDNESDAY,
        ["2023-05-08T10:15:00Z = 2023-05-08 .. 2023-05-09"],
    ),
    ("What was decided in 2023-05?", WEDNESDAY, ["2023-05 = 2023-05-01 .. 2023-06-01"]),
    ("Notes of 2023/05/08", WEDNESDAY, ["2023/05/08 = 2023-05-08 .. 2023-05-09"]),
    ("Who came on 8 May 2023?", WEDNESDAY, ["8 May 2023 = 2023-05-08 .. 2023-05-09"]),
    ("Who came on 8th May, 2023?", WEDNESDAY, ["8th May, 2023 = 2023-05-08 .. 2023-05-09"]),
    ("the 8th of May 2023", WEDNESDAY, ["the 8th of May 2023 = 2023-05-08 .. 2023-05-09"]),
    ("Who came on May 8, 2023?", WEDNESDAY, ["May 8, 2023 = 2023-05-08 .. 2023-05-09"]),
    ("on May 8th 2023 and later", WEDNESDAY, ["May 8th 2023 = 2023-05-08 .. 2023-05-09"]),
    ("Did I run on May 8th?", WEDNESDAY, ["May 8th = 2024-05-08 .. 2024-05-09, any year"]),
    ("Did I run on may 8th?", WEDNESDAY, ["may 8th = 2024-05-08 .. 2024-05-09, any year"]),
    ("Did I run on 8 July?", WEDNESDAY, ["8 July = 2023-07-08 .. 2023-07-09, any year"]),
    ("May the 4th", WEDNESDAY, ["May the 4th = 2024-05-04 .. 2024-05-05, any year"]),
    ("Sept. 3, 2022?", WEDNESDAY, ["Sept. 3, 2022 = 2022-09-03 .. 2022-09-04"]),
    ("3 Dec '21", WEDNESDAY, ["3 Dec '21 = 2021-12-03 .. 2021-12-04"]),
    ("Monday, May 8, 2023", WEDNESDAY, ["Monday, May 8, 2023 = 2023-05-08 .. 2023-05-09"]),
    ("the photo of December 1,2023", WEDNESDAY, ["December 1,2023 = 2023-12-01 .. 2023-12-02"]),
    ("MAY 8, 2023", WEDNESDAY, ["MAY 8, 2023 = 2023-05-08 .. 2023-05-09"]),
    ("the call of 05/08/2023", WEDNESDAY, NO_TIME),
    ("on 31 February 2023", WEDNESDAY, NO_TIME),
    ("on 2023-13-40", WEDNESDAY, NO_TIME),
    ("29 February 2024", WEDNESDAY, ["29 February 2024 = 2024-02-29 .. 2024-03-01"]),
    ("29 February 2023", WEDNESDAY, NO_TIME),
    # months
    ("What did I buy in May?", WEDNESDAY, ["May = 2024-05-01 .. 2024-06-01, any year"]),
    ("what did i buy in may", WEDNESDAY, ["may = 2024-05-01 .. 2024-06-01, any year"]),
    ("What did I buy in June?", WEDNESDAY, ["June = 2024-06-01 .. 2024-07-01, any year"]),
    ("What did I buy in August?", WEDNESDAY, ["August = 2023-08-01 .. 2023-09-01, any year"]),
    ("The November release", WEDNESDAY, ["November = 2023-11-01 .. 2023-12-01, any year"]),
    ("in Dec", WEDNESDAY, ["Dec = 2023-12-01 .. 2024-01-01, any year"]),
    ("Where was I last May?", WEDNESDAY, ["last May = 2024-05-01 .. 2024-06-01"]),
    ("where was i last may?", WEDNESDAY, ["last may = 2024-05-01 .. 2024-06-01"]),
    ("Where was I last June?", WEDNESDAY, ["last June = 2023-06-01 .. 2023-07-01"]),
    ("Where was I this past March?", WEDNESDAY, ["this past March = 2024-03-01 .. 2024-04-01"]),
    ("the trip this March", WEDNESDAY, ["this March = 2024-03-01 .. 2024-04-01"]),
    ("plans for next March", WEDNESDAY, ["next March = 2025-03-01 .. 2025-04-01"]),
    ("in May 2023", WEDNESDAY, ["May 2023 = 2023-05-01 .. 2023-06-01"]),
    ("in May of 2023", WEDNESDAY, ["May of 2023 = 2023-05-01 .. 2023-06-01"]),
    ("in may 2023", WEDNESDAY, ["may 2023 = 2023-05-01 .. 2023-06-01"]),
    ("May last year", WEDNESDAY, ["May last year = 2023-05-01 .. 2023-06-01"]),
    ("April of this year", WEDNESDAY, ["April of this year = 2024-04-01 .. 2024-05-01"]),
    ("every May we sail", WEDNESDAY, ["May = 2024-05-01 .. 2024-06-01, any year"]),
    # years
    ("Did I fall on the stairs?", WEDNESDAY, NO_TIME),
    ("The bed has a broken spring", WEDNESDAY, NO_TIME),
    ("Does she drive a Q3?", WEDNESDAY, NO_TIME),
    ("last quarter", WEDNESDAY, ["last quarter = 2024-01-01 .. 2024-04-01"]),
    ("Where did she work in 2022?", WEDNESDAY, ["2022 = 2022-01-01 .. 2023-01-01"]),
    ("last year", WEDNESDAY, ["last year = 2023-01-01 .. 2024-01-01"]),
    ("this year's budget", WEDNESDAY, ["this year = 2024-01-01 .. 2025-01-01"]),
    ("in the summer of 2022", WEDNESDAY, ["2022 = 2022-01-01 .. 2023-01-01"]),
    ("in early 2022", WEDNESDAY, ["2022 = 2022-01-01 .. 2023-01-01"]),
    ("after June 2023", WEDNESDAY, ["June 2023 = 2023-06-01 .. 2023-07-01"]),
    ("since March", WEDNESDAY, ["March = 2024-03-01 .. 2024-04-01, any year"]),
    ("the week before 9 June 2023", WEDNESDAY, ["9 June 2023 = 2023-06-09 .. 2023-06-10"]),
    # relative to now
    ("What did I say today?", WEDNESDAY, ["today = 2024-06-12 .. 2024-06-13"]),
    ("this morning", WEDNESDAY, ["this morning = 2024-06-12 .. 2024-06-13"]),
    ("yesterday", WEDNESDAY, ["yesterday = 2024-06-11 .. 2024-06-12"]),
    ("yesterday", NIGHT_IN_TOKYO, ["yesterday = 2024-06-11 .. 2024-06-12"]),
    ("yesterday", datetime(2024, 3, 1, tzinfo=UTC), ["yesterday = 2024-02-29 .. 2024-03-01"]),
    ("last night", WEDNESDAY, ["last night = 2024-06-11 .. 2024-06-12"]),
    (
        "the day before yesterday",
        WEDNESDAY,
        ["the day before yesterday = 2024-06-10 .. 2024-06-11"],
    ),
    ("tomorrow", WEDNESDAY, ["tomorrow = 2024-06-13 .. 2024-06-14"]),
    ("last week", WEDNESDAY, ["last week = 2024-06-03 .. 2024-06-10"]),
    ("last week", SUNDAY, ["last week = 2024-06-03 .. 2024-06-10"]),
    ("this week", WEDNESDAY, ["this week = 2024-06-10 .. 2024-06-17"]),
    ("next month", WEDNESDAY, ["next month = 2024-07-01 .. 2024-08-01"]),
    ("last month", JANUARY, ["last month = 2023-12-01 .. 2024-01-01"]),
    ("two weeks ago", WEDNESDAY, ["two weeks ago = 2024-05-27 .. 2024-06-03"]),
    ("3 months ago", WEDNESDAY, ["3 months ago = 2024-03-01 .. 2024-04-01"]),
    ("a year ago", WEDNESDAY, ["a year ago = 2023-01-01 .. 2024-01-01"]),
    ("10 days ago", WEDNESDAY, ["10 days ago = 2024-06-02 .. 2024-06-03"]),
    ("about 10 days ago", WEDNESDAY, ["about 10 days ago = 2024-05-31 .. 2024-06-05"]),
    ("20 hours ago", WEDNESDAY, ["20 hours ago = 2024-06-11 .. 2024-06-12"]),
    ("a few days ago", WEDNESDAY, ["a few days ago = 2024-06-06 .. 2024-06-11"]),
    ("a couple of weeks ago", WEDNESDAY, ["a couple of weeks ago = 2024-05-20 .. 2024-06-10"]),
    ("several years ago", WEDNESDAY, ["several years ago = 2015-01-01 .. 2022-01-01"]),
    ("1.5 years ago", WEDNESDAY, NO_TIME),
    ("a second ago", WEDNESDAY, NO_TIME),
    ("in the past month", WEDNESDAY, ["in the past month = 2024-05-12 .. 2024-06-13"]),
    ("over the last 3 weeks", WEDNESDAY, ["over the last 3 weeks = 2024-05-22 .. 2024-06-13"]),
    ("the last two years", WEDNESDAY, ["the last two years = 2022-06-12 .. 2024-06-13"]),
    ("in the last week", WEDNESDAY, ["in the last week = 2024-06-05 .. 2024-06-13"]),
    ("in the past few days", WEDNESDAY, ["in the past few days = 2024-06-06 .. 2024-06-13"]),
    ("in the next 2 days", WEDNESDAY, ["in the next 2 days = 2024-06-12 .. 2024-06-15"]),
    ("last weekend", WEDNESDAY, ["last weekend = 2024-06-08 .. 2024-06-10"]),
    ("last weekend", SUNDAY, ["last weekend = 2024-06-08 .. 2024-06-10"]),
    ("this weekend", SUNDAY, ["this weekend = 2024-06-15 .. 2024-06-17"]),
    ("two weekends ago", WEDNESDAY, ["two weekends ago = 2024-06-01 .. 2024-06-03"]),
    ("last Friday", WEDNESDAY, ["last Friday = 2024-06-07 .. 2024-06-08"]),
    ("What did Ana say on Tuesday?", WEDNESDAY, ["Tuesday = 2024-06-11 .. 2024-06-12"]),
    ("What did Ana say on Wednesday?", WEDNESDAY, ["Wednesday = 2024-06-05 .. 2024-06-06"]),
    ("what did ana say on thursday", WEDNESDAY, ["thursday = 2024-06-06 .. 2024-06-07"]),
    ("this Friday", WEDNESDAY, ["this Friday = 2024-06-14 .. 2024-06-15"]),
    ("next Monday", WEDNESDAY, ["next Monday = 2024-06-17 .. 2024-06-18"]),
    ("on Sat", WEDNESDAY, ["Sat = 2024-06-08 .. 2024-06-09"]),
    ("Who sat on the sun deck?", WEDNESDAY, NO_TIME),
    ("What do I do on Tuesdays?", WEDNESDAY, NO_TIME),
    ("every Tuesday", WEDNESDAY, NO_TIME),
    ("the Black Friday sale", WEDNESDAY, NO_TIME),
    ("the Maundy Thursday service", WEDNESDAY, NO_TIME),
    # more than one
    (
        "Did I run on 8 May 2023 or in June 2022?",
        WEDNESDAY,
        ["8 May 2023 = 2023-05-08 .. 2023-05-09", "June 2022 = 2022-06-01 .. 2022-07-01"],
    ),
    # no times
    ("", WEDNESDAY, NO_TIME),
    ("May I ask who may come?", WEDNESDAY, NO_TIME),
    ("Do you think this may work?", WEDNESDAY, NO_TIME),
    ("The last may be the best", WEDNESDAY, NO_TIME),
    ("Did May call?", WEDNESDAY, NO_TIME),
    ("Did June call before May did?", WEDNESDAY, NO_TIME),
    ("How far did we march?", WEDNESDAY, NO_TIME),
    ("The 5 may come", WEDNESDAY, NO_TIME),
    ("Wait a second, who came second?", WEDNESDAY, NO_TIME),
    ("I read 1984", WEDNESDAY, NO_TIME),
    ("Did I walk 2000 steps, or in 2000 steps?", WEDNESDAY, NO_TIME),
    ("He sat with the 5 friends", WEDNESDAY, NO_TIME),
    ("Call 555-2020 about version 1.2.2023.4", WEDNESDAY, NO_TIME),
    ("What is my sister's name?", WEDNESDAY, NO_TIME),
    ("Where is the weekly plan of the year?", WEDNESDAY, NO_TIME),
    ("maybe Marchetti augments Junes", WEDNESDAY, NO_TIME),
]

WORDS = (
    "in on the last this next May may March June 2023 1984 8 31 8th 2023-05-08 13/05/2023 Q3 "
    "summer Friday Sat week weekend month year ago two few a couple of before after since until "
    "between and from to - yesterday early mid end Christmas Eve past first second half by every "
    "February 29 30 , ? 999 decades hours 1900s '99 move I moved while"
)
TEXTS = st.lists(st.sampled_from(WORDS.split()) | st.text(max_size=6), max_size=14).map(" ".join)
NOWS = st.datetimes(timezones=st.none() | st.just(UTC) | st.timezones())


def day_of(span: TimeSpan) -> str:
    start, end = (f"{side:%Y-%m-%d}" for side in (span.start, span.end))
    return f"{span.text} = {start} .. {end}{', any year' if span.recurring else ''}"


@pytest.mark.parametrize(("question", "now", "expected"), EXAMPLES)
def test_the_times_of_a_question_are_found(
    question: str, now: datetime, expected: list[str]
) -> None:
    assert [day_of(span) for span in times_in(question, now)] == expected


@given(TEXTS, NOWS)
def test_spans_are_ordered_apart_and_in_utc(question: str, now: datetime) -> None:
    reached = 0
    for span in times_in(question, now):
        assert span.position.start >= reached
        reached = span.position.stop
        assert {span.start.tzinfo, span.end.tzinfo} == {UTC}
        assert span.start < span.end


@given(TEXTS, NOWS)
def test_a_span_stands_where_it_says(question: str, now: datetime) -> None:
    for span in times_in(question, now):
        assert question[span.position.start : span.position.stop] == span.text != ""


@given(st.text(max_size=200), NOWS)
def test_any_text_at_any_time_has_an_answer(question: str, now: datetime) -> None:
    times_in(question, now)


@given(TEXTS, st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), st.timezones())  # noqa: DTZ001
def test_the_time_zone_of_now_changes_nothing(question: str, now: datetime, zone: timezone) -> None:
    there = now.replace(tzinfo=UTC).astimezone(zone)

    assert times_in(question, there) == times_in(question, now)


@given(st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1)), st.integers(1, 28))  # noqa: DTZ001
def test_a_day_without_a_year_is_the_nearest_before_now(now: datetime, day: int) -> None:
    [span] = times_in(f"May {day}th", now)

    assert timedelta(0) <= now.replace(tzinfo=UTC) - span.start <= timedelta(days=366)


@pytest.mark.search
@pytest.mark.parametrize(
    ("hostile", "size"),
    [
        ("1", 100_000),
        ("may ", 100_000),
        ("in may ", 20_000),
        ("2023-", 20_000),
        (" ", 20_000),
        ("the week before ", 20_000),
        ("between may and ", 20_000),
        ("May 1 ", 20_000),
        ("after the ", 20_000),
        ("before I may ", 20_000),
        ("1 to ", 20_000),
        ("a few ", 20_000),
    ],
)
def test_a_hostile_question_takes_linear_time(hostile: str, size: int) -> None:
    short, long = (_seconds(hostile * (part // len(hostile))) for part in (size // 10, size))

    assert long < 40 * short + 0.5


def _seconds(question: str) -> float:
    started = time.process_time()
    times_in(question, WEDNESDAY)
    return time.process_time() - started
