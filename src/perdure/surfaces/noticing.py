"""What others did to the texts of a memory, recorded before it is asked about."""

from collections.abc import Sequence

from perdure.storage import Locator
from perdure.storage.sweep import Found, Kind, sweep
from perdure.storage.wrappers.recorded import Recorded
from perdure.surfaces.telling import counted, mention, shown

_MOST_NAMED = 3


def record_edits(recorded: Recorded) -> list[Locator]:
    """Record every edit made outside Perdure and say so; return what is no text."""
    found = sweep(recorded)
    edits = [each for each in found if each.kind is not Kind.UNREADABLE]
    if edits:
        mention(f"recorded {_told(edits)}")
    unreadable = [each.locator for each in found if each.kind is Kind.UNREADABLE]
    lost = [each for each in unreadable if recorded.history.current(each) is not None]
    if lost:
        names = ", ".join(shown(each.key) for each in lost[:_MOST_NAMED])
        mention(f"no text any more, and left alone: {names}{_and_more(lost)}")
    return unreadable


def _told(edits: list[Found]) -> str:
    names = [
        shown(each.locator.key) + ("" if each.kind is Kind.EDITED else f" ({each.kind.value})")
        for each in edits[:_MOST_NAMED]
    ]
    told = f"{counted(len(edits), 'edit')} made outside Perdure: {', '.join(names)}"
    return told + _and_more(edits)


def _and_more(every: Sequence[object]) -> str:
    more = len(every) - _MOST_NAMED
    return f" and {more} more" if more > 0 else ""
