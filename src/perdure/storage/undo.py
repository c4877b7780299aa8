"""Gives the texts of a commit that did not finish back what they were."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.errors import (
    AccessRefusedError,
    ConcurrentModificationError,
    LinkRefusedError,
    NotTextError,
)
from perdure.storage.content import ABSENT, Expectation, content_hash
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, Text
from perdure.storage.locator import Locator


class Replaced(NamedTuple):
    """A text that a commit changes: what was there, and what is to be there."""

    locator: Locator
    before: CID | None
    after: CID | None


def look(inner: StorageBackend, locator: Locator) -> Text:
    try:
        return inner.read(locator)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (NotTextError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def look_all(inner: StorageBackend, locators: Sequence[Locator]) -> dict[Locator, Text]:
    """Return what is at each of these places."""
    if isinstance(inner, Layout):
        return inner.look(locators)
    return {locator: look(inner, locator) for locator in locators}


def is_of(cid: CID | None, text: Text | bytes) -> bool:
    """Whether the text is what the CID names; None is no text."""
    if cid is None or text is None or text is UNREADABLE:
        return cid is None and text is None
    return CID.of(text.encode() if isinstance(text, str) else text, cid.hash) == cid


def guard_of(text: Text) -> Expectation:
    """Return what a write expects that replaces this text and no other."""
    if text is UNREADABLE:
        return None
    return ABSENT if text is None else content_hash(text)


def has_landed(inner: StorageBackend, replaced: Sequence[Replaced]) -> bool:
    """Whether all of a commit is written. Who asks while it is being written is not misled.

    Its texts are written in this order and given back in the other, so once the last one is
    there, so were the others.
    """
    return all(is_of(text.after, look(inner, text.locator)) for text in replaced)


def put_back(
    inner: StorageBackend, replaced: Sequence[Replaced], text_of: Callable[[CID], str | None]
) -> None:
    """Undo a commit that is not all written, the last text first; what others wrote stays."""
    if has_landed(inner, replaced):
        return
    for text in reversed(replaced):
        found = look(inner, text.locator)
        former = None if text.before is None else text_of(text.before)
        is_kept = former is not None or text.before is None
        if is_kept and text.before != text.after and is_of(text.after, found):
            _replace(inner, text.locator, found, former)
        if text.before is None and look(inner, text.locator) is None:
            _remove_empty(inner, text.locator.parent)


def _replace(inner: StorageBackend, locator: Locator, found: Text, former: str | None) -> None:
    somebody_was_faster = (
        ConcurrentModificationError,
        FileNotFoundError,
        IsADirectoryError,
        NotADirectoryError,
        LinkRefusedError,
    )
    with suppress(*somebody_was_faster):
        if former is not None:
            inner.write(locator, former, expect=guard_of(found))
        else:
            inner.remove(locator, expect=guard_of(found))


def _remove_empty(inner: StorageBackend, directory: Locator) -> None:
    """Remove the directories that hold nothing any more, if they can go; never the root."""
    with suppress(OSError):
        while directory.key:
            if inner.exists(directory):
                if not inner.info(directory).is_dir or inner.list(directory):
                    return
                inner.remove(directory)
            directory = directory.parent
