"""Copies that a sync client makes when two devices changed the same file.

Most have an unmistakable mark in their name. Drive's `name (1)` and iCloud's `name 2` do not:
people use such names too. Those count only if the original is in the same directory and has the
same text, or the same id and a similar text.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection

from perdure.patterns import later

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
