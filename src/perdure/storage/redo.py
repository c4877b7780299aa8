"""What is at a place, compared with what history has there."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.errors import (
    AccessRefusedError,
    LinkRefusedError,
    NotTextError,
)
from perdure.storage.changes import ABSENT, Expectation, content_hash
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, Text
from perdure.storage.locator import Locator


class Replacement(NamedTuple):
    """A text that a commit changes: what was there, and what is to be there."""

    locator: Locator
    before: CID | None
    after: CID | None


def read_text(inner: StorageBackend, locator: Locator) -> Text:
    try:
        return inner.read(locator)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (NotTextError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def read_texts(inner: StorageBackend, locators: Sequence[Locator]) -> dict[Locator, Text]:
    """Return what is at each of these places."""
    if isinstance(inner, Layout):
        return inner.look(locators)
    return {locator: read_text(inner, locator) for locator in locators}


def matches_cid(cid: CID | None, text: Text | bytes) -> bool:
    """Whether the text is what the CID names; None is no text."""
    if cid is None or text is None or text is UNREADABLE:
        return cid is None and text is None
    return CID.of(text.encode() if isinstance(text, str) else text, cid.hash) == cid


def expectation_of(text: Text) -> Expectation:
    """Return what a write expects that replaces this text and no other."""
    if text is UNREADABLE:
        return None
    return ABSENT if text is None else content_hash(text)


def is_written(inner: StorageBackend, replaced: Sequence[Replacement]) -> bool:
    """Whether all of a commit is written."""
    return all(matches_cid(text.after, read_text(inner, text.locator)) for text in replaced)


def is_torn(found: str, text: str | None) -> bool:
    """Whether a power cut may have left this of a text: its beginning, or zeros in its place."""
    if text is None:
        return False
    data, whole = found.encode(), text.encode()
    return len(data) <= len(whole) and all(
        byte in (0, right) for byte, right in zip(data, whole, strict=False)
    )


def remove_empty_directories(inner: StorageBackend, directory: Locator) -> None:
    """Remove the directories that hold nothing any more, if they can go; never the root."""
    with suppress(OSError):
        while directory.key:
            if inner.exists(directory):
                if not inner.info(directory).is_dir or inner.list(directory):
                    return
                inner.remove(directory)
            directory = directory.parent
