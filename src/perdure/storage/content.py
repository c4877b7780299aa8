"""Texts on their way into a store: checked changes, and what a write may expect to find there."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from perdure.errors import (
    ConcurrentModificationError,
    LockLostError,
    NotTextError,
    ParentIsFileError,
    PathIsDirectoryError,
    StorageError,
)
from perdure.storage.locator import Locator


class Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""As `expect`: nothing may be there yet."""

Expectation = str | Absent | None
"""A content hash, `ABSENT`, or None for a write without a condition."""

Changes = Mapping[Locator, str | None]
"""Texts to be written, in this order; None is a text to be removed."""

Conditions = Mapping[Locator, Expectation] | None
"""What must be at some of the places before."""


def encode_text(content: str, place: Locator) -> bytes:
    """Return the bytes of `content`; `NotTextError` if UTF-8 can't say it."""
    if not isinstance(content, str):
        raise TypeError(f"the content of {str(place)!a} is {type(content).__name__}, not text")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise NotTextError(
            f"the text for {str(place)!a} holds half a character at position {error.start} "
            f"({content[error.start]!a}), which UTF-8 can't say. "
            "Fix: decode its source with the right encoding."
        ) from error


def content_hash(content: str | bytes) -> str:
    """Return the sha256 of the content's bytes in hex: what `expect` compares."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def check_expectation(expect: Expectation) -> None:
    """Refuse a condition that no content could ever meet."""
    if expect is None or expect is ABSENT:
        return
    if len(expect) != 64 or not set(expect) <= set("0123456789abcdef"):  # noqa: PLR2004 - sha256
        raise ValueError(
            f"expect={expect!a} is no content hash. Fix: pass content_hash(text) or ABSENT."
        )


def check_removal(expect: Expectation) -> None:
    """Refuse a condition under which nothing could be removed."""
    check_expectation(expect)
    if expect is ABSENT:
        raise ValueError("what is absent can't be removed. Fix: pass a content hash or nothing")


def check_found(found: bytes | None, expect: Expectation, place: Locator) -> None:
    """Raise `ConcurrentModificationError` unless `found` is what the writer expected."""
    if expect is None:
        return
    actual = ABSENT if found is None else content_hash(found)
    if actual != expect:
        raise ConcurrentModificationError(
            f"{str(place)!a} is not what this write expected: expected {_shown(expect)}, "
            f"found {_shown(actual)}. Nothing was changed. Fix: read it again, then try again."
        )


def _shown(expectation: str | Absent) -> str:
    return "nothing there" if isinstance(expectation, Absent) else f"sha256 {expectation[:12]}"


class Change(NamedTuple):
    """What is to be at a place, and what must be there before."""

    locator: Locator
    data: bytes | None
    """None for a text that is to be removed."""
    expect: Expectation


def check_changes(changes: Changes, expect: Conditions) -> list[Change]:
    """Return the changes in their order; raise for what no backend could do."""
    conditions = expect or {}
    if [*conditions] == [*changes]:  # as most are, and nothing need be looked up
        expected: Iterable[Expectation] = conditions.values()
    else:
        _refuse_unchanged(conditions, changes)
        expected = [conditions.get(locator) for locator in changes]
    checked = [
        Change(locator, text.encode(), each)
        if locator.key and type(text) is str and text.isascii() and (each is None or each is ABSENT)
        else _checked(locator, text, each)
        for (locator, text), each in zip(changes.items(), expected, strict=True)
    ]
    _refuse_one_below_another({change.locator.key for change in checked})
    return checked


def _refuse_unchanged(conditions: Mapping[Locator, Expectation], changes: Changes) -> None:
    for locator in conditions:
        if locator not in changes:
            raise ValueError(
                f"expect names {str(locator)!a}, which is not among the changes. "
                "Fix: leave it out, or change that text too."
            )


def partly_done(error: StorageError, done: int, total: int) -> StorageError:
    """Return `error` as it is told when the changes before it are made."""
    kind = LockLostError if isinstance(error, ConcurrentModificationError) else type(error)
    return kind(f"{error} Of {total} changes, the {done} before it are made.")


def _checked(locator: Locator, content: str | None, expect: Expectation) -> Change:
    if not locator.key:
        raise PathIsDirectoryError("the root is a directory. Fix: name a text below it.")
    if content is None:
        check_removal(expect)
        return Change(locator, None, expect)
    check_expectation(expect)
    return Change(locator, encode_text(content, locator), expect)


def _refuse_one_below_another(keys: Collection[str]) -> None:
    seen = set()
    for key in keys:
        above = key.rpartition("/")[0]
        while above and above not in seen:
            if above in keys:
                raise ParentIsFileError(
                    f"{key!a} can't lie below {above!a}, which is a text among the same changes. "
                    "Fix: choose a place outside of it, or change them one by one."
                )
            seen.add(above)
            above = above.rpartition("/")[0]
