"""Edits that were made outside Perdure, recorded before anything is answered from history."""

from typing import NamedTuple

from perdure.storage import Locator
from perdure.storage.sweep import Found, Kind, sweep
from perdure.storage.wrappers.recorded import Recorded


class Edits(NamedTuple):
    """What a sweep of the texts found."""

    recorded: tuple[Found, ...]
    """Texts that were new, edited or removed; each is a version now."""
    unreadable: tuple[Locator, ...]
    """Files that are not text, or may not be read. They are left alone."""
    lost: tuple[Locator, ...]
    """Those of the unreadable that were texts before."""


def record_edits(recorded: Recorded) -> Edits:
    found = sweep(recorded)
    unreadable = tuple(each.locator for each in found if each.kind is Kind.UNREADABLE)
    return Edits(
        tuple(each for each in found if each.kind is not Kind.UNREADABLE),
        unreadable,
        tuple(each for each in unreadable if recorded.history.current(each) is not None),
    )
