"""Texts on their way into a store, and what a write may expect to find there."""

import hashlib
from enum import Enum
from typing import Final

from perdure.errors import ConcurrentModificationError, NotTextError
from perdure.storage.locator import Locator


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""As `expect`: nothing may be there yet."""

Expectation = str | Absent | None
"""A content hash, `ABSENT`, or None for a write without a condition."""


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
