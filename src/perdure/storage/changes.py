"""Changes of texts, the conditions under which they are made, and the copies that conflicts leave.

A sync client makes a copy when two devices changed the same file. Most have an unmistakable mark in
their name. Drive's `name (1)` and iCloud's `name 2` do not: people use such names too. Those count
only if the original is in the same directory and has the same text, or the same id and a similar
text.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
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
from perdure.patterns import later
from perdure.storage.locator import Locator


class Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""As `expect`: nothing may be there."""

Expectation = str | Absent | None
"""A content hash, `ABSENT`, or None for a write without a condition."""

Changes = Mapping[Locator, str | None]
"""Texts to write, in this order; None removes a text."""

Conditions = Mapping[Locator, Expectation] | None
"""What must be at some of the locators before."""


def encode_text(content: str, place: Locator) -> bytes:
    """Return the bytes of `content`; `NotTextError` if UTF-8 can't encode it."""
    if not isinstance(content, str):
        raise TypeError(f"the content of {str(place)!a} is {type(content).__name__}, not text")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise NotTextError(
            f"the text for {str(place)!a} has a lone surrogate at position {error.start} "
            f"({content[error.start]!a}), which UTF-8 can't encode. "
            "Fix: decode its source with the right encoding."
        ) from error


def content_hash(content: str | bytes) -> str:
    """Return the sha256 of the content's bytes in hex, as `expect` takes it."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def check_expectation(expect: Expectation) -> None:
    """Raise `ValueError` for a condition that no content can meet."""
    if expect is None or expect is ABSENT:
        return
    if len(expect) != 64 or not set(expect) <= set("0123456789abcdef"):  # noqa: PLR2004 - sha256
        raise ValueError(
            f"expect={expect!a} is not a content hash. Fix: pass content_hash(text) or ABSENT."
        )


def check_removal(expect: Expectation) -> None:
    """Raise `ValueError` for a condition under which nothing can be removed."""
    check_expectation(expect)
    if expect is ABSENT:
        raise ValueError("an absent text can't be removed. Fix: pass a content hash or nothing")


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


def below_text(above: Locator) -> ParentIsFileError:
    return ParentIsFileError(
        f"{str(above)!a} is a text, so nothing can lie below it. Fix: choose a place outside of it."
    )


def _shown(expectation: str | Absent) -> str:
    return "nothing there" if isinstance(expectation, Absent) else f"sha256 {expectation[:12]}"


class TextChange(NamedTuple):
    """The new content of a text, and the condition of the change."""

    locator: Locator
    data: bytes | None
    """None to remove the text."""
    expect: Expectation


def check_changes(changes: Changes, expect: Conditions) -> list[TextChange]:
    """Return the changes in order; raise for a change that no backend can make."""
    conditions = expect or {}
    if [*conditions] == [*changes]:  # the usual case, without a lookup for each
        expected: Iterable[Expectation] = conditions.values()
    else:
        _refuse_unchanged(conditions, changes)
        expected = [conditions.get(locator) for locator in changes]
    checked = [
        TextChange(locator, text.encode(), each)
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
                "Fix: omit it, or change that text too."
            )


def partial_error(error: StorageError, done: int, total: int) -> StorageError:
    """Return `error` with a note that the changes before it are made."""
    kind = LockLostError if isinstance(error, ConcurrentModificationError) else type(error)
    return kind(f"{error} Of {total} changes, the {done} before it are made.")


def _checked(locator: Locator, content: str | None, expect: Expectation) -> TextChange:
    if not locator.key:
        raise PathIsDirectoryError("the root is a directory. Fix: name a text below it.")
    if content is None:
        check_removal(expect)
        return TextChange(locator, None, expect)
    check_expectation(expect)
    return TextChange(locator, encode_text(content, locator), expect)


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


# ---------------------------------------------------------------- conflict copies
_EXTENSION = r"(?P<extension>\.[^.\s]+)?$"
_BRACKETED = r"(?:[^()]|\([^()]*\))*"  # a device's name may contain brackets
_CONFLICTED_COPY = (  # Dropbox speaks the language of its user
    "conflicted copy",
    "in konflikt stehende kopie",
    "copie en conflit",
    "copia en conflicto",
    "copia in conflitto",
    "cópia em conflito",
    "sfconflict",  # Seafile
)
_SAYS_SO = rf"\b(?i:{'|'.join(_CONFLICTED_COPY)})\b"
_MARKED = tuple(
    later(pattern + _EXTENSION)
    for pattern in (
        # Syncthing: name.sync-conflict-20260102-030405-ABCDEFG.md
        r"^(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?",
        # Dropbox, Obsidian Sync, Nextcloud: name (Ana's conflicted copy 2026-01-02).md
        rf"^(?P<stem>.+) \({_BRACKETED}{_SAYS_SO}{_BRACKETED}\)(?: \(\d+\))?",
        # Dropbox: name (Case Conflict 1).md
        r"^(?P<stem>.+) \((?:Case|Whitespace|Unicode Encoding|Selective Sync) Conflict(?: \d+)?\)",
        # Drive: name (Conflict).md, name [Conflict 2].md, name (Conflict 2026-01-02-03-04).md
        r"^(?P<stem>.+)[ _][\[(]Conflict(?: \d{1,2}| \d{4}(?:-\d{2}){4,5})?[\])]",
    )
)
_UNMARKED = tuple(
    later(pattern + _EXTENSION)
    for pattern in (
        r"^(?P<stem>.+?) ?\([1-9]\d?\)",  # Drive: name (1).md
        r"^(?P<stem>.+) (?:[2-9]|[1-9]\d)",  # iCloud: name 2.md
        r"^(?P<stem>.+?)-(?=[A-Z0-9-]*[A-Z])[A-Z0-9][A-Z0-9-]{2,14}",  # OneDrive: name-LAPTOP.md
        r"^(?P<stem>.+) \(conflict(?: \d{1,2})?\)",  # by hand, and small programs
    )
)
_FRONTMATTER = later(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_ID = later(r"\A---\r?\n(?:(?!---)[^\n]*\n){0,50}?id: *(\S[^\n]*)")
_NEARLY_THE_SAME = 0.75


def marked_original(name: str) -> str | None:
    """Return the name of the original, if `name` has the mark of a conflict copy."""
    return _original(name, _MARKED)


def unmarked_original(name: str) -> str | None:
    """Return the name of the original, if `name` may be a copy's; the texts must be compared."""
    return _original(name, _UNMARKED)


def copied_name(name: str) -> str | None:
    """Return the name of the original, if `name` may be a copy's, with or without a mark."""
    return marked_original(name) or unmarked_original(name)


def original_of(
    name: str, siblings: Collection[str], read: Callable[[str], str | None]
) -> str | None:
    """Return the name of a conflict copy's original, if any; `read` returns a sibling's text."""
    if marked := marked_original(name):
        return marked
    original = unmarked_original(name)
    if original is None or original not in siblings:
        return None
    ours, theirs = read(original), read(name)
    if ours is None or theirs is None:
        return None
    return original if is_evident_copy(name, ours, theirs) else None


def _original(name: str, patterns: tuple[re.Pattern[str], ...]) -> str | None:
    for pattern in patterns:
        if match := pattern.match(name):
            return match["stem"] + (match["extension"] or "")
    return None


def is_evident_copy(name: str, one: str, other: str) -> bool:
    """Whether two texts are copies despite an unmarked name: the same, or similar with one id."""
    if one == other:
        return bool(one.strip())  # two empty notes are two notes
    ids = [found[1] if (found := _ID.search(text)) else None for text in (one, other)]
    is_same = ids[0] is not None and ids[0] == ids[1]
    return (is_same or "(conflict" in name) and is_similar(one, other)


def is_similar(one: str, other: str) -> bool:
    """Whether two texts share most words, without their frontmatter."""
    if one == other:
        return bool(one.strip())  # two empty notes are two notes
    words, other_words = _words(one), _words(other)
    shared = (words & other_words).total()
    return shared > 0 and 2 * shared >= _NEARLY_THE_SAME * (words.total() + other_words.total())


def _words(text: str) -> Counter[str]:
    return Counter(_FRONTMATTER.sub("", text, count=1).split())
