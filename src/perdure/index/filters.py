"""What records are filed under and stamped with, what a search lets through or an index refuses."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from perdure.dataclass import dataclass
from perdure.errors import ConcurrentModificationError, InvalidValueError
from perdure.index.contract import Filters
from perdure.index.vectors import quantised
from perdure.model import IndexRecord, Level, Uri
from perdure.model.record import (
    ACCOUNT,
    EQUALS,
    OWNER_SPACE,
    VALID_AT,
    VALID_FROM,
    VALID_UNTIL,
    check_filters,
)
from perdure.model.uri import check_id
from perdure.model.values import JSON, shown, utc_time
from perdure.times import end_of, start_of

Value = TypeVar("Value")

NAMED = EQUALS[1:]
"""What is compared as text, besides the URI. The account is not: an account is searched alone."""
URI, LEVEL = "uri", "level"
ALWAYS, NEVER = -(2**62), 2**62
"""Bounds of those who have none, in microseconds."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_LEVELS = frozenset(map(int, Level))
_OF_RECORDS = frozenset({*EQUALS, VALID_FROM, VALID_UNTIL})
Said = tuple[str, int, str, str, Mapping[str, JSON], JSON]
"""Id, level, text, context, filters and payload of a record."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class Sought:
    """Filters, understood. What is None lets all through; what is empty, nothing."""

    account: str
    texts: Mapping[str, frozenset[str]]
    levels: frozenset[int] | None = None
    times: frozenset[tuple[int, int]] | None = None
    """The first and the last microsecond of each: a time, or a day."""


@dataclass(frozen=True, slots=True)
class Filing:
    texts: Mapping[str, str]
    since: int
    until: int


def sought(filters: Filters) -> Sought:
    """Understand filters; `InvalidValueError` if not all of them can be."""
    given = dict(filters if _is_plain(filters) else check_filters(filters))
    account = check_id(given.pop(ACCOUNT), "account")
    level, levels = given.pop(LEVEL, None), None
    if type(level) is int and level in _LEVELS:
        levels = frozenset((level,))
    elif LEVEL in filters:
        levels = _each(level, LEVEL, _level)
    times = _each(given.pop(VALID_AT), VALID_AT, _time_or_day) if VALID_AT in given else None
    if unknown := given.keys() - {*NAMED, URI}:
        raise InvalidValueError(
            f"no search filters by {shown(min(unknown))}. "
            f"Fix: use {', '.join((*EQUALS, URI, LEVEL, VALID_AT))}."
        )
    return Sought(
        account=account,
        texts={name: _texts(value, name) for name, value in given.items()},
        levels=levels,
        times=times,
    )


def filing(record: IndexRecord) -> Filing:
    """Understand what a record is filed under; `InvalidValueError` if no search could tell."""
    given = record.filters
    if unknown := given.keys() - _OF_RECORDS:
        raise InvalidValueError(
            f"{record.uri!a} is filed under {shown(min(unknown))}, by which nobody can search. "
            f"Fix: use {', '.join((*EQUALS, VALID_FROM, VALID_UNTIL))}, and its payload."
        )
    texts = {
        name: value if type(value := given[name]) is str else _text(value, name)
        for name in NAMED
        if name in given
    }
    return Filing(texts, *bounds(given))


def bounds(filters: Filters) -> tuple[int, int]:
    return (
        _micros(filters[VALID_FROM], VALID_FROM) if VALID_FROM in filters else ALWAYS,
        _micros(filters[VALID_UNTIL], VALID_UNTIL) if VALID_UNTIL in filters else NEVER,
    )


def above(uri: str, level: Level) -> str:
    """Return below which place a record is found: a passage below its node, else in a folder."""
    if level is Level.CONTENT:
        return uri
    place = Uri.parse(uri)
    return str(place.parent) if place.path else ""


# ---------------------------------------------------------------- values
def _each(value: JSON, name: str, understand: Callable[[JSON, str], Value]) -> frozenset[Value]:
    several = value if isinstance(value, tuple) else (value,)
    return frozenset([understand(each, name) for each in several])


def _texts(value: JSON, name: str) -> frozenset[str]:
    several = value if isinstance(value, tuple) else (value,)
    return frozenset(each if type(each) is str else _text(each, name) for each in several)


def _is_plain(filters: Filters) -> bool:
    """Whether filters are as a recall has them: whose memory, and texts, which need no check."""
    if type(filters) is not dict:
        return False
    owners = filters.get(OWNER_SPACE)
    return (
        bool(filters.get(ACCOUNT) and owners and all(owners))
        and all(type(name) is str and name.isascii() for name in filters)
        and all(
            type(each) is int or (type(each) is str and each.isascii())
            for value in filters.values()
            for each in (value if type(value) is tuple else (value,))
        )
    )


def _text(value: JSON, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(f"{name} is {shown(value)}. Fix: give a text, or leave it out.")
    return value


def _level(value: JSON, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in set(Level):
        raise InvalidValueError(f"{name} is {shown(value)}. Fix: give 0, 1 or 2.")
    return int(value)


def _micros(value: JSON, name: str) -> int:
    try:
        time = datetime.fromisoformat(_text(value, name))
    except ValueError:
        raise InvalidValueError(
            f"{name} is {shown(value)}. Fix: give an ISO time with a zone."
        ) from None
    return (utc_time(time, name) - _EPOCH) // _MICROSECOND


def _time_or_day(value: JSON, name: str) -> tuple[int, int]:
    with suppress(ValueError):
        day = date.fromisoformat(_text(value, name))
        return (start_of(day) - _EPOCH) // _MICROSECOND, (end_of(day) - _EPOCH) // _MICROSECOND
    return (_micros(value, name),) * 2


def check_cursor(cursor: int, expected: int | None) -> None:
    if expected is not None and cursor != expected:
        raise ConcurrentModificationError(
            f"the index is at {cursor}, not at {expected}: somebody else moved it, and nothing was "
            "changed. Fix: look again where it is, and go on from there."
        )


def check_unlogged(unlogged: Collection[str], nodes: Mapping[str, object]) -> None:
    for uri in unlogged:
        if uri not in nodes:
            raise InvalidValueError(
                f"{shown(uri)} is not among what is replaced. Fix: replace it too, or leave it out."
            )


def check_nodes(account: str, nodes: Mapping[str, Sequence[IndexRecord]]) -> list[IndexRecord]:
    """Return all records of nodes, if each is of the URI and account that it is given for."""
    for uri in nodes:
        if Uri.parse(uri).account != account:
            raise InvalidValueError(
                f"{uri!a} is not in the account {shown(account)}. Fix: replace it in its own."
            )
    for uri, records in nodes.items():
        for record in records:
            if record.uri != uri:
                raise InvalidValueError(
                    f"{record.uri!a} is no record of {uri!a}. Fix: give it with its own URI."
                )
    return [record for records in nodes.values() for record in records]


_BYTES = 16
"""Of a digest: enough to tell what was written from what was damaged."""
_HEX = 2 * _BYTES


def stamp(records: Iterable[IndexRecord]) -> str:
    """Return one digest of the records of a URI, in whatever order; of one id the last counts."""
    return stamp_of({record.id: digest(record) for record in records})


def stamp_of(digests: Mapping[str, bytes]) -> str:
    """Return the stamp of records whose digests are known, by their ids."""
    return sha256(b"".join(digests[id_] for id_ in sorted(digests))).hexdigest()[:_HEX]


def digest(record: IndexRecord) -> bytes:
    """Return the digest of all that a record says; of its vector, as it is kept."""
    return digest_of(
        (
            record.id,
            int(record.level),
            record.text,
            record.context,
            record.filters,
            record.payload,
        ),
        quantised(record.vector),
    )


def digest_of(said: Said, vector: bytes) -> bytes:
    """Return the digest of a record whose vector is known as it is kept."""
    return sha256(_encoded((*said, vector.hex())).encode()).digest()[:_BYTES]


def root(stamps: Mapping[str, str]) -> str:
    """Return one digest of all stamps of an account, by their URIs."""
    return sha256(_encoded(sorted(stamps.items())).encode()).hexdigest()
