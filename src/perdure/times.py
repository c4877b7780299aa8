"""Times in ISO 8601, as people and files write them. A date is a whole day; the default is UTC."""

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from perdure.errors import InvalidValueError

_LAST_OF_A_SECOND = timedelta(milliseconds=999)


def read_time(text: object) -> datetime | None:
    """Return a time, or the beginning of a day, in UTC; None if the text is neither."""
    if not isinstance(text, str):
        return None
    try:
        read = datetime.fromisoformat(text)
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def parse_when(when: datetime | date | str) -> date:
    """Return a `date` for a day, a `datetime` with a zone for a time; raise for anything else."""
    read: object = when
    if isinstance(when, str):
        with suppress(ValueError):
            return date.fromisoformat(when)
        with suppress(ValueError):
            read = datetime.fromisoformat(when)
    if not isinstance(read, date):
        raise InvalidValueError(
            f"{str(when)[:80]!a} is not a time. "
            "Fix: write a date as 2026-03-01, or a time as 2026-03-01T10:00:00Z."
        )
    return read.replace(tzinfo=UTC) if isinstance(read, datetime) and not read.tzinfo else read


def start_of(when: datetime | date | str) -> datetime:
    """Return the time, or the beginning of the day."""
    read = parse_when(when)
    return read if isinstance(read, datetime) else datetime.combine(read, time.min, UTC)


def end_of(when: datetime | date | str) -> datetime:
    """Return the time, or the end of the day.

    Times are shown to the second, so a text without a fraction means the end of its second.
    """
    read = parse_when(when)
    if not isinstance(read, datetime):
        return datetime.combine(read, time.max, UTC)
    return read + _LAST_OF_A_SECOND if isinstance(when, str) and not read.microsecond else read
