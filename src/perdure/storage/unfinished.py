"""Finds in history the commit that may not have finished."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perdure.artifacts import CID
from perdure.artifacts.state import is_foreign
from perdure.errors import InvalidLocatorError
from perdure.storage.history import EXTERNAL, UNDONE, Event, History
from perdure.storage.locator import Locator
from perdure.storage.undo import Replaced

Contents = dict[str, CID | None]
"""Of keys; None where there is no text."""

DURING: Final = "during"
"""Says of an external version that it came while a commit was written: the position before it."""


def last_replaced(history: History, settled: int) -> list[Replaced]:
    """Return what the last commit after a position replaced, in its order.

    Only the last can be unfinished: each writer settles first what was left to it.
    """
    if history.fence.is_taken_in():
        return []
    events = [event for event in history.changes(settled) if _is_key(event.key)]
    if not events:
        return []
    begin = _beginning([event for event in events if event.commit == events[-1].commit])
    before: Contents = {}
    after: Contents = {}
    for event in events:
        if event.position > begin and event.origin != UNDONE:
            (before if event.origin == EXTERNAL else after)[event.key] = event.cid
    earlier = history.store.catalogue.contents(list(after), begin) | before
    return [Replaced(Locator(key), earlier[key], cid) for key, cid in after.items()]


def _beginning(last: Sequence[Event]) -> int:
    """Return the position before a commit, given its last events: it may have been tried before."""
    said = [event.circumstances.more.get(DURING) for event in last if event.origin == EXTERNAL]
    return min([last[0].position - 1, *(one for one in said if isinstance(one, int))])


def keys_among(names: Iterable[str]) -> Iterator[Locator]:
    """Yield the names that are keys of ours; whatever else was bound has no file here."""
    return map(Locator, filter(_is_key, names))


def _is_key(name: str) -> bool:
    try:
        return Locator(name).key == name and bool(name) and not is_foreign(name)
    except InvalidLocatorError:
        return False
