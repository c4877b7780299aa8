"""Copies that a sync client makes when two devices changed the same file.

Most carry an unmistakable mark in their name. Drive's `name (1)` and iCloud's `name 2` don't:
people call files so too. Those count only when the file that they would be a copy
of lies beside them and says nearly the same.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection

_EXTENSION = r"(?P<extension>\.[^.\s]+)?$"
_MARKED = tuple(
    re.compile(pattern + _EXTENSION, re.IGNORECASE)
    for pattern in (
        # Syncthing: name.sync-conflict-20260102-030405-ABCDEFG.md
        r"^(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?",
        # Dropbox, Obsidian Sync, Nextcloud: name (Ana's conflicted copy 2026-01-02).md
        r"^(?P<stem>.+?) \(.*\bconflicted copy\b.*\)(?: \(\d+\))?",
        # Dropbox: name (Case Conflict 1).md
        r"^(?P<stem>.+?) \((?:case|whitespace|unicode encoding|selective sync) conflict(?: \d+)?\)",
        # Drive: name (Conflict).md, name [Conflict 2].md, name (Conflict 2026-01-02-03-04).md
        r"^(?P<stem>.+?)[ _][\[(]conflict[\d :_-]*[\])]",
    )
)
_UNMARKED = tuple(
    re.compile(pattern + _EXTENSION)
    for pattern in (
        r"^(?P<stem>.+?) ?\((?P<number>[1-9]\d?)\)",  # Drive: name (1).md
        r"^(?P<stem>.+?) (?P<number>[2-9]|[1-9]\d)",  # iCloud: name 2.md
    )
)
_NEARLY_THE_SAME = 0.75
_SMALL_CHARACTERS = 4000


def marked_original(name: str) -> str | None:
    """Return the name of the original, if `name` says by its mark that it is a conflict copy."""
    return _original(name, _MARKED)


def original_of(name: str, siblings: Collection[str], read: Callable[[str], str]) -> str | None:
    """Return the name of which `name` is a conflict copy, or None if it is a file of its own."""
    if marked := marked_original(name):
        return marked
    original = _original(name, _UNMARKED)
    if original is None or original not in siblings:
        return None
    return original if alike(read(original), read(name)) else None


def _original(name: str, patterns: tuple[re.Pattern[str], ...]) -> str | None:
    for pattern in patterns:
        if match := pattern.match(name):
            return match["stem"] + (match["extension"] or "")
    return None


def alike(one: str, other: str) -> bool:
    """Whether two texts are versions of one, rather than two that share a form."""
    if one == other:
        return True
    lines, other_lines = _lines(one), _lines(other)
    shared = (lines & other_lines).total()
    if shared and shared >= _NEARLY_THE_SAME * max(lines.total(), other_lines.total()):
        return True
    if max(len(one), len(other)) > _SMALL_CHARACTERS:
        return False
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= _NEARLY_THE_SAME <= matcher.ratio()


def _lines(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.splitlines() if line.strip())
