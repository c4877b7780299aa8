"""Checks of the fields of values: bounded texts, frozen JSON, times, fractions, counts."""

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
"""The limit of a user's own note: indexing one takes 1.5 s, reading it for a hit 0.3 s."""
CUT = " [cut]"
"""The end of a truncated text."""
MAX_SHOWN = 80
"""The characters of an invalid value that a message quotes."""
_DEPTH = 32
_LEAST, _MOST = -(2**63), 2**64 - 1
"""The integers that every JSON parser and every database can hold."""
_MOST_COUNTED = 2**63 - 1
_UNSEEN = later(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
    "|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that are not displayed: controls, other line ends, directions, hidden tags."""


def bounded(text: str, limit: int, what: str) -> str:
    """Return `text`, truncated if it is up to ten per cent too long; else refuse it."""
    if not isinstance(text, str):
        raise InvalidValueError(f"the {what} is {type(text).__name__}. Fix: give it as text.")
    if len(text) > limit:
        if len(text) > limit + limit // 10:
            raise InvalidValueError(
                f"the {what} has {len(text):,} characters; the limit is {limit:,}. "
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
            f"the {what} has half a character: {text[:MAX_SHOWN]!a}. Fix: remove it."
        ) from None
    return text


def visible(text: str) -> str:
    """Return a text with invisible and control characters escaped, except line ends and tabs."""
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
    """Return a time in UTC; one without a zone is ambiguous, and refused."""
    if isinstance(time, datetime):
        if time.tzinfo is UTC:
            return time
        try:
            if time.utcoffset() is not None:
                return time.astimezone(UTC)
        except OverflowError:  # the first or last hours of all times, in another zone
            pass
    raise InvalidValueError(f"the {what} is {shown(time)}. Fix: give a datetime with a zone.")


def shortened(text: str, limit: int) -> str:
    """Return a text for display, truncated with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# ---------------------------------------------------------------- immutable JSON
class _FrozenMapping(dict[str, JSON]):
    """A dictionary that refuses every change."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override] # it never changes
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _FrozenMapping, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a frozen mapping can't be changed. Fix: create another mapping.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_EMPTY = _FrozenMapping({})


def frozen(value: Mapping[str, JSON], what: str) -> Mapping[str, JSON]:
    """Return an immutable copy; values that JSON does not have are refused."""
    if type(value) is _FrozenMapping:
        return value
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"the {what} is {type(value).__name__}. Fix: give a mapping.")
    if not value:
        return _EMPTY
    return _frozen_mapping(value, what, _DEPTH)


def extended(value: Mapping[str, JSON], more: Mapping[str, JSON], what: str) -> Mapping[str, JSON]:
    """Return a frozen mapping with more in it, without checking again what was frozen."""
    return _FrozenMapping({**value, **frozen(more, what)})


def frozen_as_is(values: Mapping[str, str | int | tuple[str | int, ...]]) -> Mapping[str, JSON]:
    """Return a frozen mapping of values that were checked already."""
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
    """Return one value, frozen; an instance of a subclass becomes the plain type."""
    if (type(value) is str and value.isascii()) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encodable(str.__str__(value), what)
    if isinstance(value, int) and _LEAST <= value <= _MOST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if not depth:
        raise InvalidValueError(f"the {what} is nested too deep. Fix: use at most {_DEPTH} levels.")
    if isinstance(value, (list, tuple)):
        return tuple([_frozen(each, what, depth - 1) for each in value])
    if isinstance(value, Mapping):
        return _frozen_mapping(value, what, depth - 1)
    raise InvalidValueError(
        f"the {what} has {shown(value)}, which is not JSON. "
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
    """Return a value as a message quotes it: in ASCII, on one line, and short."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # a number is too long, or a list too deep
        text = f"a long {type(value).__name__}"
    return ascii(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...")


WORD = later(r"[^\W_][\w'-]*")


def comparison_key(text: str) -> str:
    """Return the words of a text without case and punctuation, for comparisons."""
    return " ".join(WORD.findall(text.replace("\u2019", "'").casefold()))
