"""Finds what was written behind our back, and lets it enter history."""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import NamedTuple

from perdure.errors import StorageUnavailableError
from perdure.storage.joint import Discrepancy
from perdure.storage.locator import Locator
from perdure.storage.undo import UNREADABLE
from perdure.storage.walk import walk
from perdure.storage.wrappers.recorded import Recorded

_BATCH = 256
_ROOT = Locator("")


class Kind(Enum):
    NEW = "new"
    EDITED = "edited"
    REMOVED = "removed"
    UNREADABLE = "unreadable"
    """No text, or a link, or not ours to read; it is left alone."""


class Found(NamedTuple):
    locator: Locator
    kind: Kind


def sweep(recorded: Recorded) -> list[Found]:
    """Compare every text with its last version; return what others did, and record it.

    Content decides; times and sizes say nothing where somebody else replicates the tree. What
    differs is looked at again while no other writer of ours is at work, so a save that is under
    way is not taken for somebody else's. Nothing is found twice, except what can't be read. A tree
    that is empty all at once is a `StorageUnavailableError`.
    """
    unreadable: list[Found] = []
    removed: list[Locator] = []
    written: list[Locator] = []
    _refuse_empty(recorded)
    for locator in _places(recorded):
        text = recorded.joint.look(locator)
        if text is UNREADABLE:
            unreadable.append(Found(locator, Kind.UNREADABLE))
        elif recorded.joint.differs(locator, text):
            (removed if text is None else written).append(locator)
    noticed = [
        _found(discrepancy)
        for batch in _batches([*removed, *written])
        for discrepancy in recorded.notice(batch)
    ]
    return sorted([*noticed, *unreadable], key=lambda found: found.locator)


def _refuse_empty(recorded: Recorded) -> None:
    """Take no empty tree for one from which text after text was removed."""
    if not recorded.identity:  # it is in memory, and can't go away
        return
    known = [locator.key for locator in islice(recorded.joint.known(), 2)]
    if len(known) > 1 and not recorded.inner.list(_ROOT):
        raise StorageUnavailableError(
            f"{recorded.whereabouts!a} is empty, but history knows texts there, such as "
            f"{known[0]!a}; its drive may not be mounted. Fix: mount it; or, if all of it is "
            "meant to be gone, put one text there, and look again."
        )


def _places(recorded: Recorded) -> Iterator[Locator]:
    """Yield every text that is there, then every key that should have one."""
    seen = set()
    for locator in walk(recorded.inner, _ROOT):
        seen.add(locator)
        yield locator
    for locator in recorded.joint.known():
        if locator not in seen:
            yield locator


def _batches(locators: list[Locator]) -> Iterator[list[Locator]]:
    rest = iter(locators)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _found(discrepancy: Discrepancy) -> Found:
    if discrepancy.after is None:
        return Found(discrepancy.locator, Kind.REMOVED)
    kind = Kind.NEW if discrepancy.before is None else Kind.EDITED
    return Found(discrepancy.locator, kind)
