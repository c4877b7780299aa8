"""The records of an index, and its hits."""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum

from perdure.dataclass import dataclass, field, fields
from perdure.errors import InvalidValueError
from perdure.model.request import owner_space_at
from perdure.model.uri import Uri
from perdure.model.values import JSON, encodable, extended, frozen, shown

ACCOUNT = "account_id"
OWNER_SPACE = "owner_space"
PROJECT = "project"
EQUALS = (ACCOUNT, OWNER_SPACE, "context_type", "category", "session_id", PROJECT, "parent_uri")
"""The filters of a record that are compared for equality; the first two are required. Its URI and
level are filters too."""
VALID_FROM, VALID_UNTIL = "valid_from", "valid_until"
"""The beginning and the end of the time in which a record holds, in ISO 8601 and UTC."""
VALID_AT = "valid_at"
"""Restricts a search to what holds at a time. A record without a beginning always did."""


class Level(IntEnum):
    ABSTRACT = 0
    OVERVIEW = 1
    CONTENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """One text of a node, with its vector. `filters` keep tenants apart."""

    id: str
    uri: str
    level: Level
    text: str
    context: str = ""
    """Words that are searched in addition to the text: title, speaker, date."""
    vector: tuple[float, ...] | bytes = ()
    """Numbers; or one signed byte for each, as an index stores them."""
    filters: Mapping[str, JSON]
    payload: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        _check_id(self.id)
        encodable(self.text, "text")
        put = object.__setattr__
        put(self, "level", _level(self.level))
        if not isinstance(self.vector, bytes):
            put(self, "vector", _finite(self.vector, "vector"))
        put(self, "filters", check_filters(self.filters))
        put(self, "payload", frozen(self.payload, "payload"))
        account, owner_space = self.filters[ACCOUNT], self.filters[OWNER_SPACE]
        if account != place.account:
            raise InvalidValueError(
                f"{self.uri!a} has the account {shown(account)} in its filters. Fix: use its own."
            )
        if not isinstance(owner_space, str):
            raise InvalidValueError(f"{self.uri!a} has several owners. Fix: name one.")
        owner_space_at(place, owner_space)

    @classmethod
    def of_node(  # noqa: PLR0913, PLR0917 - all fields of a record
        cls,
        uri: str,
        level: Level,
        passage: int,
        text: str,
        context: str,
        filters: Mapping[str, JSON],
        payload: Mapping[str, JSON],
    ) -> "IndexRecord":
        """Return a record without a vector quickly; its values were checked and frozen before."""
        record, put = object.__new__(cls), object.__setattr__
        values = (record_id(uri, level, passage), uri, level, text, context, (), filters, payload)
        for name, value in zip(_FIELDS, values, strict=True):
            put(record, name, value)
        return record

    def with_vector(self, vector: bytes) -> "IndexRecord":
        """Return the same record with a vector, without checking the rest again."""
        return self._with("vector", vector)

    def with_payload(self, more: Mapping[str, JSON]) -> "IndexRecord":
        """Return the same record with more in its payload; as `with_vector`."""
        return self._with("payload", extended(self.payload, more, "payload"))

    def _with(self, field_: str, value: object) -> "IndexRecord":
        record = object.__new__(IndexRecord)
        for name in _FIELDS:
            object.__setattr__(record, name, value if name == field_ else getattr(self, name))
        return record


_FIELDS = tuple(each.name for each in fields(IndexRecord))


@dataclass(frozen=True, kw_only=True)
class SeedHit:
    id: str
    uri: str
    level: Level
    score: float
    text: str = ""
    payload: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Uri.parse(self.uri)
        _check_id(self.id)
        encodable(self.text, "text")
        put = object.__setattr__
        put(self, "level", _level(self.level))
        put(self, "score", _finite([self.score], "score")[0])
        put(self, "payload", frozen(self.payload, "payload"))

    @classmethod
    def of_record(
        cls, id_: str, uri: str, level: Level, text: str, payload: Mapping[str, JSON]
    ) -> "SeedHit":
        """Return a hit without a score quickly, of a record that an index checked.

        The payload must not be changed.
        """
        hit = object.__new__(cls)
        hit.__dict__.update(id=id_, uri=uri, level=level, score=0.0, text=text, payload=payload)
        return hit

    def scored(self, score: float) -> "SeedHit":
        """Return the same hit with a score, quickly."""
        hit = object.__new__(SeedHit)
        hit.__dict__.update(self.__dict__, score=score)
        return hit


def check_filters(filters: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the filters, frozen; refuse those without an account and one or more owner spaces."""
    checked = frozen(filters, "filters")
    account, spaces = checked.get(ACCOUNT), checked.get(OWNER_SPACE)
    several = spaces if isinstance(spaces, tuple) else (spaces,)
    owners = {ACCOUNT: _names([account]), OWNER_SPACE: _names(several)}
    if missing := ", ".join(name for name, is_named in owners.items() if not is_named):
        raise InvalidValueError(f"the filters lack {missing}. Fix: state whose memory to search.")
    return checked


def _names(values: Iterable[JSON]) -> bool:
    given = list(values)
    return bool(given) and all(isinstance(each, str) and each for each in given)


def _check_id(text: str) -> None:
    if not encodable(text, "record's id"):
        raise InvalidValueError("a record needs an id. Fix: derive it from URI and level.")


def _level(level: object) -> Level:
    if type(level) is Level:
        return level
    if isinstance(level, int) and not isinstance(level, bool) and level in set(Level):
        return Level(level)
    raise InvalidValueError(f"{shown(level)} is not a level. Fix: use 0, 1 or 2.")


def _finite(numbers: Iterable[float], what: str) -> tuple[float, ...]:
    """Return numbers of any type as floats; booleans and texts are refused."""
    try:
        given = list(numbers)
        floats = tuple(map(float, given))
    except (TypeError, ValueError, OverflowError):
        given, floats = [], (math.nan,)
    if not all(map(math.isfinite, floats)) or not {bool, str, bytes}.isdisjoint(map(type, given)):
        raise InvalidValueError(f"the {what} is {shown(numbers)}. Fix: give finite numbers.")
    return floats


def record_id(uri: str, level: Level, passage: int = 0) -> str:
    """Return the id of a record, unique for its URI, level and passage."""
    return f"{uri}#{level:d}.{passage}"


NOTED = "noted"
"""The project of a note, in the payload of a record; empty if the note is for all projects."""
LINKS = "links"
"""The names that a node links to, in the payload of its first record."""
