"""What the values of memory are made of: bounded texts, frozen JSON, times, shares."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from perdure.errors import InvalidValueError
from perdure.patterns import later

JSON = None | bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"]

ROLES = ("user", "assistant", "system", "tool")
MAX_ABSTRACT = 200
MAX_OVERVIEW = 5_000
MAX_CONTENT = 100_000
MAX_NOTE = 2_000_000
"""Of a note that its owner wrote: to index one takes 1.5 s, to read it for a hit 0.3 s."""
CUT = " [cut]"
"""Ends a text that was a little too long."""
MAX_SHOWN = 80
"""How much of a wrong value a message tells."""
_DEPTH = 32
_LEAST, _MOST = -(2**63), 2**64 - 1
"""The whole numbers that every reader of JSON, and every database, can be made to hold."""
_MOST_COUNTED = 2**63 - 1
_UNSEEN = later(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
    "|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What is not read but done: controls, line ends of other kinds, directions, hidden tags."""


def bounded(text: str, limit: int, what: str) -> str:
    """Return `text`, cut and marked if ten per cent too long; more, or no UTF-8, is refused."""
    if not isinstance(text, str):
        raise InvalidValueError(f"the {what} is {type(text).__name__}. Fix: give it as text.")
    if len(text) > limit:
        if len(text) > limit + limit // 10:
            raise InvalidValueError(
                f"the {what} has {len(text):,} characters; {limit:,} are the most. "
                "Fix: shorten it, or split it into several nodes."
            )
        text = text[: limit - len(CUT)].rstrip() + CUT
    return text if text.isascii() else encodable(text, what)


def encodable(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise InvalidValueError(f"the {what} is {type(text).__name__}. Fix: give it as text.")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(
            f"the {what} holds half a character: {text[:MAX_SHOWN]!a}. Fix: leave it out."
        ) from None
    return text


def visible(text: str) -> str:
    """Return a text that steers neither a terminal nor the eye; line ends and tabs stay."""
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)


def fraction(number: object, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise InvalidValueError(f"the {what} is {shown(number)}. Fix: give a number from 0 to 1.")
    return float(number)


def count(number: object, what: str, least: int = 0) -> int:
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not least <= number <= _MOST_COUNTED
    ):
        raise InvalidValueError(
            f"the {what} is {shown(number)}. Fix: give a whole number from {least} on."
        )
    return number


def utc_time(time: object, what: str) -> datetime:
    """Return a time in UTC; one without a zone is refused, for it could be any."""
    if isinstance(time, datetime):
        if time.tzinfo is UTC:
            return time
        try:
            if time.utcoffset() is not None:
                return time.astimezone(UTC)
        except OverflowError:  # the first or last hours that there are, elsewhere
            pass
    raise InvalidValueError(f"the {what} is {shown(time)}. Fix: give a datetime with a zone.")


def shortened(text: str, limit: int) -> str:
    """Return a text for display, with an ellipsis in place of what is too much."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# ---------------------------------------------------------------- JSON that stays as it is
class _FrozenMapping(dict[str, JSON]):
    """What `frozen` makes: a dictionary that refuses every change."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override] # it never changes
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _FrozenMapping, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a frozen mapping can't be changed. Fix: make another mapping.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_EMPTY = _FrozenMapping({})


def frozen(value: Mapping[str, JSON], what: str) -> Mapping[str, JSON]:
    """Return a copy that nobody can change; what JSON can't say is refused."""
    if type(value) is _FrozenMapping:
        return value
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"the {what} is {type(value).__name__}. Fix: give a mapping.")
    if not value:
        return _EMPTY
    return _frozen_mapping(value, what, _DEPTH)


def extended(value: Mapping[str, JSON], more: Mapping[str, JSON], what: str) -> Mapping[str, JSON]:
    """Return a frozen mapping with more in it; what was frozen before is not looked at again."""
    return _FrozenMapping({**value, **frozen(more, what)})


def frozen_as_is(values: Mapping[str, str | int | tuple[str | int, ...]]) -> Mapping[str, JSON]:
    """Return as frozen, unchecked, what was made of values that were checked."""
    return _FrozenMapping(values)


def _frozen_mapping(value: Mapping[str, JSON], what: str, depth: int) -> Mapping[str, JSON]:
    return _FrozenMapping(
        {
            k if type(k) is str and k.isascii() else _named(k, what): v
            if v is None or (type(v) is str and v.isascii())  # as most are
            else _frozen(v, what, depth)
            for k, v in value.items()
        }
    )


def _frozen(value: JSON, what: str, depth: int) -> JSON:
    """Return one value, frozen; of a subclass of a plain type, the plain value."""
    if (type(value) is str and value.isascii()) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encodable(str.__str__(value), what)
    if isinstance(value, int) and _LEAST <= value <= _MOST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if not depth:
        raise InvalidValueError(
            f"the {what} is nested too deep. Fix: {_DEPTH} levels are the most."
        )
    if isinstance(value, (list, tuple)):
        return tuple([_frozen(each, what, depth - 1) for each in value])
    if isinstance(value, Mapping):
        return _frozen_mapping(value, what, depth - 1)
    raise InvalidValueError(
        f"the {what} holds {shown(value)}, which JSON can't say. "
        "Fix: use texts, lists, and numbers of at most 64 bits."
    )


def _named(name: object, what: str) -> str:
    if type(name) is str and name.isascii():
        return name
    if not isinstance(name, str):
        raise InvalidValueError(f"the {what} has a key {shown(name)}. Fix: use texts as keys.")
    return encodable(str.__str__(name), what)


def plain(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value


def shown(value: object) -> str:
    """Return a value as a message tells it: in ASCII, on one line, and short."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # a number too long, or lists too deep, for Python
        text = f"a long {type(value).__name__}"
    return ascii(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...")


WORD = later(r"[^\W_][\w'-]*")


def comparison_key(text: str) -> str:
    """Return the words of a text without case and marks, to compare texts by."""
    return " ".join(WORD.findall(text.replace("\u2019", "'").casefold()))
