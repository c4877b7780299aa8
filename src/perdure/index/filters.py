"""Filters of records and of searches, stamps of records, and checks of what an index is given."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from perdure.dataclass import dataclass
from perdure.errors import ConcurrentModificationError, InvalidValueError
from perdure.index.contract import Filters
from perdure.index.vectors import quantise
from perdure.model import IndexRecord, Level, Uri
from perdure.model.node import (
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

TEXT_FILTERS = EQUALS[1:]
"""Filters that compare texts, besides the URI. Not the account: each is searched on its own."""
URI, LEVEL = "uri", "level"
ALWAYS, NEVER = -(2**62), 2**62
"""The bounds of a record without any, in microseconds."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_LEVELS = frozenset(map(int, Level))
_OF_RECORDS = frozenset({*EQUALS, VALID_FROM, VALID_UNTIL})
RecordFields = tuple[str, int, str, str, Mapping[str, JSON], JSON]
"""Id, level, text, context, filters and payload of a record."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class ParsedFilters:
    """The filters of a search. None admits all records, an empty set none."""

    account: str
    texts: Mapping[str, frozenset[str]]
    levels: frozenset[int] | None = None
    times: frozenset[tuple[int, int]] | None = None
    """The first and the last microsecond of each time or day."""


@dataclass(frozen=True, slots=True)
class RecordFilters:
    texts: Mapping[str, str]
    since: int
    until: int


def parse_filters(filters: Filters) -> ParsedFilters:
    """Parse the filters of a search; `InvalidValueError` if one is not valid."""
    given = dict(filters if _is_plain(filters) else check_filters(filters))
    account = check_id(given.pop(ACCOUNT), "account")
    level, levels = given.pop(LEVEL, None), None
    if type(level) is int and level in _LEVELS:
        levels = frozenset((level,))
    elif LEVEL in filters:
        levels = _each(level, LEVEL, _level)
    times = _each(given.pop(VALID_AT), VALID_AT, _time_or_day) if VALID_AT in given else None
    if unknown := given.keys() - {*TEXT_FILTERS, URI}:
        raise InvalidValueError(
            f"a search can't filter by {shown(min(unknown))}. "
            f"Fix: use {', '.join((*EQUALS, URI, LEVEL, VALID_AT))}."
        )
    return ParsedFilters(
        account=account,
        texts={name: _texts(value, name) for name, value in given.items()},
        levels=levels,
        times=times,
    )


def parse_record_filters(record: IndexRecord) -> RecordFilters:
    """Parse the filters of a record; `InvalidValueError` if no search could use one."""
    given = record.filters
    if unknown := given.keys() - _OF_RECORDS:
        raise InvalidValueError(
            f"{record.uri!a} has the filter {shown(min(unknown))}, which no search can use. "
            f"Fix: use {', '.join((*EQUALS, VALID_FROM, VALID_UNTIL))}, or the payload."
        )
    texts = {
        name: value if type(value := given[name]) is str else _text(value, name)
        for name in TEXT_FILTERS
        if name in given
    }
    return RecordFilters(texts, *validity(given))


def validity(filters: Filters) -> tuple[int, int]:
    return (
        _micros(filters[VALID_FROM], VALID_FROM) if VALID_FROM in filters else ALWAYS,
        _micros(filters[VALID_UNTIL], VALID_UNTIL) if VALID_UNTIL in filters else NEVER,
    )


def parent_uri(uri: str, level: Level) -> str:
    """Return where `search_children` finds a record: a passage below its node, else its folder."""
    if level is Level.CONTENT:
        return uri
    place = Uri.parse(uri)
    return str(place.parent) if place.path else ""


# ---------------------------------------------------------------- values
def _each(value: JSON, name: str, parse: Callable[[JSON, str], Value]) -> frozenset[Value]:
    several = value if isinstance(value, tuple) else (value,)
    return frozenset([parse(each, name) for each in several])


def _texts(value: JSON, name: str) -> frozenset[str]:
    several = value if isinstance(value, tuple) else (value,)
    return frozenset(each if type(each) is str else _text(each, name) for each in several)


def _is_plain(filters: Filters) -> bool:
    """Whether filters have the form that recall uses, which needs no further check."""
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
            f"the index is at {cursor}, not at {expected}: another process moved it, and nothing "
            "was changed. Fix: read the cursor again, and continue from there."
        )


def check_unlogged(unlogged: Collection[str], nodes: Mapping[str, object]) -> None:
    for uri in unlogged:
        if uri not in nodes:
            raise InvalidValueError(
                f"{shown(uri)} is not replaced here. Fix: replace it too, or leave it out."
            )


def check_nodes(account: str, nodes: Mapping[str, Sequence[IndexRecord]]) -> list[IndexRecord]:
    """Return all records of nodes; `InvalidValueError` if one has another URI or account."""
    for uri in nodes:
        if Uri.parse(uri).account != account:
            raise InvalidValueError(
                f"{uri!a} is not in the account {shown(account)}. Fix: replace it in its own."
            )
    for uri, records in nodes.items():
        for record in records:
            if record.uri != uri:
                raise InvalidValueError(
                    f"a record of {record.uri!a} is given for {uri!a}. Fix: use its own URI."
                )
    return [record for records in nodes.values() for record in records]


_BYTES = 16
"""The length of a digest: enough to detect damage."""
_HEX = 2 * _BYTES


def stamp(records: Iterable[IndexRecord]) -> str:
    """Return one digest of the records of a URI, in any order; of one id the last is used."""
    return stamp_of({record.id: digest(record) for record in records})


def stamp_of(digests: Mapping[str, bytes]) -> str:
    """Return the stamp of records from their digests, which are given by id."""
    return sha256(b"".join(digests[id_] for id_ in sorted(digests))).hexdigest()[:_HEX]


def digest(record: IndexRecord) -> bytes:
    """Return the digest of all fields of a record; of its vector, the quantised form."""
    return digest_of(
        (
            record.id,
            int(record.level),
            record.text,
            record.context,
            record.filters,
            record.payload,
        ),
        quantise(record.vector),
    )


def digest_of(fields: RecordFields, vector: bytes) -> bytes:
    """Return the digest of the fields of a record and its quantised vector."""
    return sha256(_encoded((*fields, vector.hex())).encode()).digest()[:_BYTES]


def root_digest(stamps: Mapping[str, str]) -> str:
    """Return one digest of all stamps of an account, which are given by URI."""
    return sha256(_encoded(sorted(stamps.items())).encode()).hexdigest()
