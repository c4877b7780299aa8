"""The files that a history speaks of which came from elsewhere."""

from contextlib import suppress
from dataclasses import dataclass, field

from perdure.artifacts import CID, IndexState
from perdure.artifacts.state import is_foreign
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    InvalidLocatorError,
    StorageError,
)
from perdure.storage.content import ABSENT, content_hash
from perdure.storage.contract import StorageBackend
from perdure.storage.history import Event, History
from perdure.storage.locator import Locator


@dataclass(slots=True)
class Landed:
    written: int = 0
    left: list[str] = field(default_factory=list)
    """Where the file is not what history had before, or can't be written."""


def waiting(history: History) -> list[Locator]:
    """Return the texts of which history knows more than was ever written to files."""
    history.position()
    found = []
    for name in history.store.catalogue.named_since(history.fence.settled()):
        with suppress(InvalidLocatorError):
            locator = Locator(name)
            if locator.key == name and not is_foreign(name):
                found.append(locator)
    return found


def land(history: History, storage: StorageBackend) -> Landed:
    """Write the files as history has them, where nobody else changed them meanwhile."""
    landed = Landed()
    with history.fence.held():
        before, now = history.fence.settled(), history.position()
        for locator in waiting(history):
            try:
                old, new = (_event(history, locator, at) for at in (before, now))
                text = None if new is None else history.text(new)
                landed.written += _write(storage, locator, old, text)
            except StorageError:
                landed.left.append(locator.key)
    return landed


def _write(storage: StorageBackend, locator: Locator, old: Event | None, new: str | None) -> bool:
    """Say whether anything had to be done."""
    found: str | None = None
    with suppress(AbsentError):
        found = storage.read(locator)
    if found == new:
        return False
    if not _is_of(old, found):
        raise _not_ours(locator)
    expect = ABSENT if found is None else content_hash(found)
    if new is not None:
        storage.write(locator, new, expect=expect)
    else:
        storage.remove(locator, expect=expect)
        _clear(storage, locator.parent)
    return True


def _clear(storage: StorageBackend, folder: Locator) -> None:
    """Remove the folders that a text left empty."""
    with suppress(StorageError):  # the first that holds something ends it
        while folder.key:
            storage.remove(folder)
            folder = folder.parent


def _is_of(old: Event | None, found: str | None) -> bool:
    """Whether a file is what history had before, be its text still there or erased."""
    if old is None or old.cid is None or found is None:
        return found is None and (old is None or old.cid is None)
    return CID.of(found.encode(), old.cid.hash) == old.cid


def _not_ours(locator: Locator) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{locator.key!a} was written by somebody else. Fix: none; it is left as it is."
    )


def _event(history: History, locator: Locator, position: int) -> Event | None:
    """Return the version as of a position; None if there was no text."""
    found = history.current(locator, IndexState(0, position))
    return None if found is None or found.unbound else found
