"""Times as whole microseconds since 1970, so that they are exact and can be compared in SQL."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Tells the time, with a zone."""

SECOND = 1_000_000
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


def utc_now() -> datetime:
    return datetime.now(UTC)


def micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def from_micros(count: int) -> datetime:
    return _EPOCH + timedelta(microseconds=count)
