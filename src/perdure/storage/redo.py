"""Files compared with history: which of them a redo writes again, and which are edits.

A commit enters the log before its files are written. A file that differs from history after that is
either unfinished work of ours or an edit by its owner; `find_stale` decides which.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final, NamedTuple

from perdure.artifacts import CID, NewBinding
from perdure.artifacts.entry import Binding
from perdure.errors import (
    AccessRefusedError,
    InvalidLocatorError,
    LinkRefusedError,
    NotTextError,
)
from perdure.storage.changes import ABSENT, Expectation, content_hash
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, Text
from perdure.storage.locator import Locator
from perdure.storage.text_history import (
    EXTERNAL,
    UNDONE,
    Circumstances,
    Event,
    History,
    decode_text,
)

DURING: Final = "during"
"""Key of an external version that was found during a commit: the position before that commit."""
EXTERNAL_EDIT: Final = Circumstances(origin=EXTERNAL)
_SLACK_MS = 2_000
"""A file this much younger than its commit was not written by it."""


# ---------------------------------------------------------------- texts and CIDs
def read_text(inner: StorageBackend, locator: Locator) -> Text:
    try:
        return inner.read(locator)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (NotTextError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def read_texts(inner: StorageBackend, locators: Sequence[Locator]) -> dict[Locator, Text]:
    if isinstance(inner, Layout):
        return inner.look(locators)
    return {locator: read_text(inner, locator) for locator in locators}


def matches_cid(cid: CID | None, text: Text | bytes) -> bool:
    """Whether the CID names this text; None names the absence of a text."""
    if cid is None or text is None or text is UNREADABLE:
        return cid is None and text is None
    return CID.of(text.encode() if isinstance(text, str) else text, cid.hash) == cid


def expectation_of(text: Text) -> Expectation:
    """Return the condition of a write that replaces this text and no other."""
    if text is UNREADABLE:
        return None
    return ABSENT if text is None else content_hash(text)


def stored_text(history: History, cid: CID | None) -> str | None:
    """Return the text that a CID names; None without a CID, or if its bytes were erased."""
    data = None if cid is None else history.store.get(cid)
    return None if data is None else decode_text(data, str(cid))


def keys_among(names: Iterable[str]) -> Iterator[Locator]:
    """Yield the names that are keys of texts; other names in the log have no file."""
    return map(Locator, filter(_is_key, names))


def _is_key(name: str) -> bool:
    try:
        return Locator(name).key == name and bool(name)
    except InvalidLocatorError:
        return False


def remove_empty_directories(inner: StorageBackend, directory: Locator) -> None:
    """Remove a directory and those above it that are empty; never the root."""
    with suppress(OSError):
        while directory.key:
            if inner.exists(directory):
                if not inner.info(directory).is_dir or inner.list(directory):
                    return
                inner.remove(directory)
            directory = directory.parent


# ---------------------------------------------------------------- the last commit
class Replacement(NamedTuple):
    """The content of a text before and after a commit."""

    locator: Locator
    before: CID | None
    after: CID | None


def last_replacements(history: History, settled: int) -> list[Replacement]:
    """Return what the last commit after a position replaced; only that one can be unfinished."""
    if history.lock.is_imported():
        return []
    events = [event for event in history.changes(settled) if _is_key(event.key)]
    if not events:
        return []
    start = _start_of_commit([event for event in events if event.commit == events[-1].commit])
    before: dict[str, CID | None] = {}
    after: dict[str, CID | None] = {}
    for event in events:
        if event.position > start:
            if event.origin != EXTERNAL:
                after[event.key] = event.cid
            if event.origin in (EXTERNAL, UNDONE):  # undone: it has what was there before
                before[event.key] = event.cid
    earlier = history.store.catalogue.contents(list(after), start) | before
    return [Replacement(Locator(key), earlier[key], cid) for key, cid in after.items()]


def _start_of_commit(last: Sequence[Event]) -> int:
    """Return the position before a commit, which may have been tried more than once."""
    tries = [event.circumstances.more.get(DURING) for event in last if event.origin == EXTERNAL]
    return min([last[0].position - 1, *(each for each in tries if isinstance(each, int))])


def is_written(inner: StorageBackend, replacements: Sequence[Replacement]) -> bool:
    """Whether all files of a commit are written."""
    return all(matches_cid(each.after, read_text(inner, each.locator)) for each in replacements)


# ---------------------------------------------------------------- stale files
class Author(Enum):
    """Who wrote a file that is not what history has."""

    PERDURE = "perdure"
    """It is an older version, or a torn copy of the new one."""
    OWNER = "owner"
    UNKNOWN = "unknown"
    """Both texts are recorded, and the file is written again."""


class StaleFile(NamedTuple):
    """A file that is not what history has."""

    locator: Locator
    bound: Binding
    found: Text
    text: str | None
    """What history has."""
    author: Author

    @property
    def is_rewritten(self) -> bool:
        return self.author is not Author.OWNER

    def bindings(self) -> Iterator[NewBinding]:
        """Yield the versions to record."""
        key, found = self.locator.key, self.found
        if self.author is not Author.PERDURE and found is not UNREADABLE:
            circumstances = EXTERNAL_EDIT.derived(self.bound.cid).to_mapping()
            yield NewBinding(key, encoded(found), circumstances)
        if self.author is Author.UNKNOWN:
            yield NewBinding(key, encoded(self.text), self.bound.circumstances)


def find_stale(
    inner: StorageBackend, history: History, locator: Locator, start: int
) -> StaleFile | None:
    """Compare a file with history, whose files are written up to `start`; None if it is right."""
    catalogue = history.store.catalogue
    bound = catalogue.last_binding(locator.key, history.position())
    found = read_text(inner, locator)
    if bound is None or matches_cid(bound.cid, found):
        return None
    text = stored_text(history, bound.cid)
    if bound.cid is not None and text is None:  # it was erased
        return None
    is_new = found is not None and _age(inner, locator, bound.time) > _SLACK_MS
    has_restarted = not history.lock.is_of_this_boot()
    may_be_torn = inner.defers_sync and has_restarted
    is_sure = is_new or not may_be_torn
    if found is UNREADABLE:  # it can't become a version
        return None if is_sure else StaleFile(locator, bound, found, text, Author.PERDURE)
    is_part = found is not None and may_be_torn and is_torn(found, text)
    if found is None or (is_part and not is_new):
        return StaleFile(locator, bound, found, text, Author.PERDURE)
    former = catalogue.versions(bound.name, bound.position - 1)
    if not has_restarted:  # only files of these commits can be missing
        former = former[-1 - sum(each.position > start for each in former) :]
    elif is_new:
        former = []
    if any(matches_cid(each.cid, found) for each in former):
        author = Author.PERDURE
    else:
        # The commit may have taken so long that its own file is younger than it.
        author = Author.OWNER if is_sure and not is_part else Author.UNKNOWN
    return StaleFile(locator, bound, found, text, author)


def is_torn(found: str, text: str | None) -> bool:
    """Whether a power cut may have left this of a text: a prefix, or zeros in place of bytes."""
    if text is None:
        return False
    data, whole = found.encode(), text.encode()
    return len(data) <= len(whole) and all(
        byte in (0, right) for byte, right in zip(data, whole, strict=False)
    )


def _age(inner: StorageBackend, locator: Locator, time: int) -> float:
    """Return how many milliseconds after a time a file was written."""
    try:
        return inner.info(locator).mtime * 1000 - time
    except FileNotFoundError:
        return 0


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
