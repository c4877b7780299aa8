"""Which versions are to go, and which contents with them: those that nothing else ever had."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.engine.erasing.lineage import ERASURE, SAYS_NOTHING, Lineage
from perdure.engine.erasing.scope import Span
from perdure.storage.history import UNDONE, Event, History


@dataclass(frozen=True, slots=True)
class Trace:
    """What history has of some places."""

    versions: tuple[Event, ...]
    """All of these go, or are nothing but the word that something was removed."""
    contents: frozenset[CID]
    """Their contents that nothing else has."""
    kept: tuple[tuple[CID, str], ...]
    """Contents that others have too, each with one of the others' keys."""
    moved: tuple[tuple[str, str], ...]
    """From which key to which other a text went on to live."""


def trace(
    history: History,
    spans: Sequence[Span],
    until: "Until | None" = None,
    erased_before: Collection[int] = (),
) -> Trace:
    """Return what there is to erase; what came after the texts were removed for it is not.

    A text that lives elsewhere now stays, with all its versions. What was erased before does not
    count among the others: neither texts, nor the versions at positions that receipts name.
    """
    lineage = Lineage()
    events = list(history.changes())
    pairs: list[_Numbered] = []
    ours: set[int] = set()
    ends = None if until is None else _ends(events, until)
    for event in events:
        number = lineage.of(event)
        pairs.append(_Numbered(event, number))
        in_time = ends is None or event.position <= ends.get(event.key, ends[""])
        if in_time and any(span.holds(event) for span in spans):
            ours.add(number)
    return _sorted_out(spans, _Walk(pairs, ours, lineage, erased_before))


class Until(NamedTuple):
    """Up to where texts are to be erased: to their removal by an erasure, or to its beginning."""

    erasure: str
    begun: int


def removed_by(events: Iterable[Event], erasure: str) -> dict[str, int]:
    """Return where each key was last removed by an erasure, and its file was not given back."""
    removed: dict[str, int] = {}
    for event in events:
        if event.circumstances.more.get(ERASURE) == erasure:
            removed[event.key] = event.position
        elif event.origin == UNDONE:
            removed.pop(event.key, None)
    return removed


def _ends(events: Sequence[Event], until: Until) -> dict[str, int]:
    """Return for each key up to where it counts; under no name, for those that nobody removed."""
    removed = removed_by(events, until.erasure)
    return {**removed, "": max((until.begun, *removed.values()))}


class _Numbered(NamedTuple):
    event: Event
    number: int


@dataclass(frozen=True, slots=True)
class _Walk:
    pairs: Sequence[_Numbered]
    ours: set[int]
    lineage: Lineage
    erased_before: Collection[int]


def _sorted_out(spans: Sequence[Span], walk: _Walk) -> Trace:
    homes = walk.lineage.homes()
    lives = {n: key for n in walk.ours for key in homes.get(n, ()) if not _covers(spans, key)}
    go = walk.ours - lives.keys()
    versions = tuple(event for event, number in walk.pairs if number in go)
    had = {event.cid for event in versions if event.cid is not None}
    others = _others(walk, go, had, homes)
    shared = sorted((cid, key) for cid, key in others.items() if cid not in SAYS_NOTHING)
    moved = {e.key: lives[n] for e, n in walk.pairs if n in lives and e.key != lives[n]}
    return Trace(
        versions, frozenset(had - others.keys()), tuple(shared), tuple(sorted(moved.items()))
    )


def _covers(spans: Iterable[Span], key: str) -> bool:
    return any(span.covers(key) for span in spans)


def _others(
    walk: _Walk, go: set[int], had: set[CID], homes: Mapping[int, Sequence[str]]
) -> dict[CID, str]:
    """Return who else has contents: where it lives, or else where it was last."""
    living: dict[CID, str] = {}
    former: dict[CID, str] = {}
    for event, number in _not_erased(walk):
        if number in go or event.cid is None or event.cid not in had:
            continue
        if number in homes:
            living[event.cid] = homes[number][-1]
        else:
            former[event.cid] = event.key
    return former | living


def _not_erased(walk: _Walk) -> Iterator[_Numbered]:
    erased = walk.lineage.erased - set(walk.lineage.now.values())
    for pair in walk.pairs:
        if pair.number not in erased and pair.event.position not in walk.erased_before:
            yield pair
