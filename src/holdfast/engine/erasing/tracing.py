"""Which versions are to go, and which contents with them: those that nothing else ever had."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.artifacts import CID
from holdfast.engine.erasing.scope import Span
from holdfast.storage.history import MOVED_FROM, UNDONE, Event, History

ERASURE = "erasure"
"""Among what is said of a version that has no text any more: the id of who took it away."""

_SAYS_NOTHING = {CID.of(b""), CID.of(b"[]\n")}
"""What every node has that has no abstract or edges."""


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


@dataclass(slots=True)
class _Texts:
    """Tells which versions are of the same text, wherever it was moved to."""

    now: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)
    """Where each text was seen last."""

    def of(self, event: Event) -> int:
        """Return the number of the text that an event is about."""
        text = self.now.get(event.key)
        if event.unbound:
            if text is not None:
                self.before[event.key] = self.now.pop(event.key)
            return self._seen(text, event.key)
        source = event.circumstances.more.get(MOVED_FROM)
        if isinstance(source, str) and source in self.now:
            text = self.now[source]
        elif text is None and event.origin == UNDONE:
            text = self.before.get(event.key)
        self.now[event.key] = text = self._seen(text, event.key, moves=True)
        return text

    def _seen(self, text: int | None, key: str, *, moves: bool = False) -> int:
        if text is None:
            self.last.append(key)
            return len(self.last) - 1
        if moves:
            self.last[text] = key
        return text


def trace(history: History, spans: Sequence[Span], until: "Until | None" = None) -> Trace:
    """Return what there is to erase; what came after the texts were removed for it is not.

    A text that went on to live elsewhere stays, with all its versions.
    """
    texts = _Texts()
    events, numbers = list(history.changes()), []
    ours: set[int] = set()
    ends = None if until is None else _ends(events, until)
    for event in events:
        number = texts.of(event)
        numbers.append(number)
        in_time = ends is None or event.position <= ends.get(event.key, ends[""])
        if in_time and any(span.holds(event) for span in spans):
            ours.add(number)
    return _sorted_out(spans, texts, _Walk(events, numbers, ours))


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


@dataclass(frozen=True, slots=True)
class _Walk:
    events: list[Event]
    numbers: list[int]
    ours: set[int]


def _sorted_out(spans: Sequence[Span], texts: _Texts, walk: _Walk) -> Trace:
    ends = {number: texts.last[number] for number in walk.ours}
    stay = {n for n, key in ends.items() if not any(span.covers(key) for span in spans)}
    go = walk.ours - stay
    pairs = list(zip(walk.events, walk.numbers, strict=True))
    versions = tuple(event for event, number in pairs if number in go)
    had = {event.cid for event in versions if event.cid is not None}
    others = {e.cid: e.key for e, n in pairs if n not in go and e.cid in had and e.cid is not None}
    shared = sorted((cid, key) for cid, key in others.items() if cid not in _SAYS_NOTHING)
    moved = {e.key: ends[n] for e, n in pairs if n in stay and e.key != ends[n]}
    return Trace(
        versions, frozenset(had - others.keys()), tuple(shared), tuple(sorted(moved.items()))
    )
