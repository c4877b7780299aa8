"""The files that an imported history speaks of."""

from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.artifacts import IndexState
from holdfast.artifacts.names import is_foreign
from holdfast.errors import (
    AbsentError,
    ConcurrentModificationError,
    InvalidLocatorError,
    StorageError,
)
from holdfast.storage import ABSENT, Locator, StorageBackend, content_hash
from holdfast.storage.history import History

"""So begin the names that came from another history; no file belongs to them."""


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
                old, new = (_text(history, locator, at) for at in (before, now))
                landed.written += _write(storage, locator, old, new)
            except StorageError:
                landed.left.append(locator.key)
    return landed


def _write(storage: StorageBackend, locator: Locator, old: str | None, new: str | None) -> bool:
    """Say whether anything had to be done."""
    found: str | None = None
    with suppress(AbsentError):
        found = storage.read(locator)
    if found == new:
        return False
    if new is not None:
        storage.write(locator, new, expect=ABSENT if old is None else content_hash(old))
    elif old is None:
        raise _not_ours(locator)
    else:
        storage.remove(locator, expect=content_hash(old))
    return True


def _not_ours(locator: Locator) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{locator.key!a} was written by somebody else. Fix: none; it is left as it is."
    )


def _text(history: History, locator: Locator, position: int) -> str | None:
    """Return the text as of a position; None if there was none."""
    versions = history.versions(locator, IndexState(0, position))
    return None if not versions or versions[-1].unbound else history.text(versions[-1])
