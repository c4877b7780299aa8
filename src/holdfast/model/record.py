"""What the index holds, and what it answers with."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from holdfast.errors import InvalidValueError
from holdfast.model.request import owner_space_at
from holdfast.model.uri import Uri
from holdfast.model.values import JSON, encodable, frozen, shown

ACCOUNT = "account_id"
OWNER_SPACE = "owner_space"
FILTERS = frozenset({ACCOUNT, OWNER_SPACE})
"""Every record says whose it is; one that doesn't can't be built."""


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
    vector: tuple[float, ...] = ()
    filters: Mapping[str, JSON]
    payload: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        _check_id(self.id)
        encodable(self.text, "text")
        put = object.__setattr__
        put(self, "level", _level(self.level))
        put(self, "vector", _finite(self.vector, "vector"))
        put(self, "filters", check_filters(self.filters))
        put(self, "payload", frozen(self.payload, "payload"))
        account, owner_space = self.filters[ACCOUNT], self.filters[OWNER_SPACE]
        if account != place.account:
            raise InvalidValueError(
                f"{self.uri!a} is filed under account {shown(account)}. Fix: file it under its own."
            )
        if not isinstance(owner_space, str):
            raise InvalidValueError(f"{self.uri!a} is filed under several owners. Fix: name one.")
        owner_space_at(place, owner_space)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedHit:
    """A record that a search found."""

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


def check_filters(filters: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return filters that name an account and an owner space, or several; else refuse them."""
    checked = frozen(filters, "filters")
    account, spaces = checked.get(ACCOUNT), checked.get(OWNER_SPACE)
    several = spaces if isinstance(spaces, tuple) else (spaces,)
    told = {ACCOUNT: _names([account]), OWNER_SPACE: _names(several)}
    if missing := ", ".join(name for name, is_told in told.items() if not is_told):
        raise InvalidValueError(f"the filters lack {missing}. Fix: say in whose memory to look.")
    return checked


def _names(values: Iterable[JSON]) -> bool:
    """Whether these are names, and at least one."""
    given = list(values)
    return bool(given) and all(isinstance(each, str) and each for each in given)


def _check_id(text: str) -> None:
    if not encodable(text, "record's id"):
        raise InvalidValueError("a record has an id. Fix: derive it from URI and level.")


def _level(level: object) -> Level:
    if isinstance(level, int) and not isinstance(level, bool) and level in set(Level):
        return Level(level)
    raise InvalidValueError(f"{shown(level)} is no level. Fix: use 0, 1 or 2.")


def _finite(numbers: Iterable[float], what: str) -> tuple[float, ...]:
    """Return numbers as floats, of whatever kind they are; truths and texts are none."""
    try:
        given = list(numbers)
        floats = tuple(map(float, given))
    except (TypeError, ValueError, OverflowError):
        given, floats = [], (math.nan,)
    if not all(map(math.isfinite, floats)) or not {bool, str, bytes}.isdisjoint(map(type, given)):
        raise InvalidValueError(f"the {what} is {shown(numbers)}. Fix: give finite numbers.")
    return floats
