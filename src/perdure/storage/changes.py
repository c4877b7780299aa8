"""Several changes that are asked for at once, checked before any of them is made."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from perdure.errors import (
    ConcurrentModificationError,
    DirectoryInTheWayError,
    FileAboveError,
    LockLostError,
    StorageError,
)
from perdure.storage.content import (
    ABSENT,
    Expectation,
    check_expectation,
    encode_text,
)
from perdure.storage.locator import Locator


class Change(NamedTuple):
    """What is to be at a place, and what must be there before."""

    locator: Locator
    data: bytes | None
    """None for a text that is to be removed."""
    expect: Expectation


def check_changes(
    changes: Mapping[Locator, str | None], expect: Mapping[Locator, Expectation] | None
) -> list[Change]:
    """Return the changes in their order; raise for what no backend could do."""
    conditions = expect or {}
    for locator in conditions:
        if locator not in changes:
            raise ValueError(
                f"expect names {str(locator)!a}, which is not among the changes. "
                "Fix: leave it out, or change that text too."
            )
    checked = [
        _checked(locator, content, conditions.get(locator)) for locator, content in changes.items()
    ]
    _refuse_one_below_another({change.locator.key for change in checked})
    return checked


def partly_done(error: StorageError, done: int, total: int) -> StorageError:
    """Return `error` as it is told when the changes before it are made.

    A condition was compared before them all; if it does not hold any more, somebody came between.
    """
    kind = LockLostError if isinstance(error, ConcurrentModificationError) else type(error)
    return kind(f"{error} Of {total} changes, the {done} before it are made.")


def _checked(locator: Locator, content: str | None, expect: Expectation) -> Change:
    if not locator.key:
        raise DirectoryInTheWayError("the root is a directory. Fix: name a text below it.")
    check_expectation(expect)
    if content is not None:
        return Change(locator, encode_text(content, locator), expect)
    if expect is ABSENT:
        raise ValueError("what is absent can't be removed. Fix: pass a content hash or nothing")
    return Change(locator, None, expect)


def _refuse_one_below_another(keys: Collection[str]) -> None:
    seen = set()
    for key in keys:
        above = key.rpartition("/")[0]
        while above and above not in seen:
            if above in keys:
                raise FileAboveError(
                    f"{key!a} can't lie below {above!a}, which is a text among the same changes. "
                    "Fix: choose a place outside of it, or change them one by one."
                )
            seen.add(above)
            above = above.rpartition("/")[0]
