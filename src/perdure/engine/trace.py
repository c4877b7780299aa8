"""Which versions are to go, and which contents with them: those that nothing else ever had.

What is to be erased is told as keys of the history: the folders of places, and for how long. A
text is followed wherever it went, to where it lives now.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.context.files import OWNER
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, field
from perdure.model import Uri
from perdure.storage.history import EXTERNAL, MOVED_FROM, UNDONE, Event, History
from perdure.storage.locator import Locator

_NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class KeySpan:
    """The keys of a folder, or one key, from one commit to another."""

    prefix: str
    deep: bool
    """Whether what lies in folders of the folder belongs to it."""
    since: int = 0
    until: int = _NO_END

    def holds(self, event: Event) -> bool:
        return self.since <= event.commit <= self.until and self.covers(event.key)

    def covers(self, key: str) -> bool:
        """Whether it is one of the keys, at whatever time."""
        if key == self.prefix:
            return True
        below = key.removeprefix(f"{self.prefix}/")
        return below != key and (self.deep or "/" not in below)


def spans_of(places: Iterable[Uri], reader: NodeReader) -> list[KeySpan]:
    listed = list(places)
    folders = [KeySpan(reader.folder(each).key, deep=not each.is_node) for each in listed]
    return folders + [KeySpan(reader.marker(e).key, deep=False) for e in listed if e.is_node]


def spans_of_sessions(
    history: History, reader: NodeReader, account_id: str, owner_space: str
) -> list[KeySpan]:
    """Return the sessions that were an owner's, each for as long as it was theirs."""
    below = f"{reader.folder(Uri(account_id, ('sessions',))).key}/"
    history.position()
    owned: dict[str, int] = {}
    spans = []
    for event in history.changes():
        folder, _, name = event.key.rpartition("/")
        if name != OWNER or not event.key.startswith(below):
            continue
        if folder in owned:
            spans.append(KeySpan(folder, deep=True, since=owned.pop(folder), until=event.commit))
        if _is_of(history, event, owner_space):
            owned[folder] = event.commit
    return [*spans, *(KeySpan(folder, deep=True, since=at) for folder, at in owned.items())]


def _is_of(history: History, event: Event, owner_space: str) -> bool:
    """Whether a file says that a session is an owner's; what was erased says it of nobody."""
    data = None if event.cid is None else history.store.get(event.cid)
    return data == f"{owner_space}\n".encode()


def texts_in(spans: Iterable[KeySpan], reader: NodeReader) -> list[Locator]:
    """Return the texts that are there now; of a session the owner comes last."""
    found = {text: None for span in spans if span.until == _NO_END for text in _texts(span, reader)}
    return sorted(found, key=lambda text: text.name == OWNER)


def _texts(span: KeySpan, reader: NodeReader) -> Iterator[Locator]:
    backend, place = reader.backend, Locator(span.prefix)
    if not backend.exists(place):
        return
    if not backend.info(place).is_dir:
        yield place
        return
    for child in backend.list(place):
        if not backend.info(child).is_dir:
            yield child
        elif span.deep:
            yield from _texts(KeySpan(child.key, deep=True), reader)


ERASURE = "erasure"
"""Among what is said of a version that has no text any more: the id of who took it away."""

SAYS_NOTHING = {CID.of(b""), CID.of(b"[]\n")}
"""What every node has that has no abstract or edges."""

_Lost = tuple[CID, str]


@dataclass(slots=True)
class Lineage:
    """Follows texts from event to event; each text has a number."""

    count: int = 0
    now: dict[str, int] = field(default_factory=dict)
    """Which text each key has."""
    erased: set[int] = field(default_factory=set)
    """The texts that an erasure took away, and that nobody gave back."""
    _before: dict[str, int] = field(default_factory=dict)
    _contents: dict[str, CID] = field(default_factory=dict)
    _lost: dict[_Lost, str] = field(default_factory=dict)
    """From which key somebody took a content by hand, and may have put it elsewhere."""
    _taken: dict[str, int] = field(default_factory=dict)
    """Which text somebody took from a key by hand; another may have been there since."""
    _renamed: dict[str, str] = field(default_factory=dict)
    """From which folder files came by hand; those beside them came too, and may be edited."""

    def of(self, event: Event) -> int:
        return self._left(event) if event.cid is None else self._came(event, event.cid)

    def homes(self) -> dict[int, list[str]]:
        homes: dict[int, list[str]] = {}
        for key, text in self.now.items():
            homes.setdefault(text, []).append(key)
        return homes

    def _left(self, event: Event) -> int:
        text = self.now.pop(event.key, None)
        if text is None:
            return self._new()
        self._before[event.key] = text
        if event.origin == EXTERNAL:
            content = self._contents[event.key]
            self._lost[content, _name(event.key)] = event.key
            self._taken[event.key] = text
        if ERASURE in event.circumstances.more:
            self.erased.add(text)
        return text

    def _came(self, event: Event, cid: CID) -> int:
        text = self._moved(event)
        if text is None:
            text = self.now.get(event.key)
        if text is None and event.origin == UNDONE:
            text = self._before.get(event.key)
        if text is None and event.origin == EXTERNAL:
            text = self._taken.pop(self._by_hand(event.key, cid), None)
        text = self._new() if text is None else text
        self.erased.discard(text)
        self.now[event.key], self._contents[event.key] = text, cid
        return text

    def _moved(self, event: Event) -> int | None:
        source = event.circumstances.more.get(MOVED_FROM)
        if not isinstance(source, str):
            return None
        if event.origin == EXTERNAL:
            self._renamed[_folder(event.key)] = _folder(source)
        return self.now.get(source, self._before.get(source))

    def _by_hand(self, key: str, cid: CID) -> str:
        """Return the key that a file seems to have had before somebody renamed it, or nothing."""
        name, folder = _name(key), _folder(key)
        was = "" if cid in SAYS_NOTHING else self._lost.pop((cid, name), "")
        if was:
            self._renamed[folder] = _folder(was)
            return was
        return f"{self._renamed.get(folder, '')}/{name}"

    def _new(self) -> int:
        self.count += 1
        return self.count


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Trace:
    versions: tuple[Event, ...]
    """All of these go, or are nothing but the word that something was removed."""
    contents: frozenset[CID]
    """Their contents that nothing else has."""
    shared: tuple[tuple[CID, str], ...]
    """Contents that others have too, each with one of the others' keys."""
    moved: tuple[tuple[str, str], ...]
    """From which key to which other a text went on to live."""


def trace(
    history: History,
    spans: Sequence[KeySpan],
    until: "ErasureCutoff | None" = None,
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
        pairs.append((event, number))
        in_time = ends is None or event.position <= ends.get(event.key, ends[""])
        if in_time and any(span.holds(event) for span in spans):
            ours.add(number)
    homes = lineage.homes()
    lives = {
        number: key
        for number in ours
        for key in homes.get(number, ())
        if not any(span.covers(key) for span in spans)
    }
    go = ours - lives.keys()
    versions = tuple(event for event, number in pairs if number in go)
    had = {event.cid for event in versions if event.cid is not None}
    staying = [each for each in _not_erased(pairs, lineage, erased_before) if each[1] not in go]
    others = _others(staying, had, homes)
    shared = sorted((cid, key) for cid, key in others.items() if cid not in SAYS_NOTHING)
    moved = {e.key: lives[n] for e, n in pairs if n in lives and e.key != lives[n]}
    contents = frozenset(had - others.keys())
    return Trace(versions, contents, tuple(shared), tuple(sorted(moved.items())))


class ErasureCutoff(NamedTuple):
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


def _ends(events: Sequence[Event], until: ErasureCutoff) -> dict[str, int]:
    """Return for each key up to where it counts; under no name, for those that nobody removed."""
    removed = removed_by(events, until.erasure)
    return {**removed, "": max((until.begun, *removed.values()))}


def _others(
    staying: Iterable["_Numbered"], had: set[CID], homes: Mapping[int, Sequence[str]]
) -> dict[CID, str]:
    """Return who else has contents: where it lives, or else where it was last."""
    living: dict[CID, str] = {}
    former: dict[CID, str] = {}
    for event, number in staying:
        if event.cid is None or event.cid not in had:
            continue
        if number in homes:
            living[event.cid] = homes[number][-1]
        else:
            former[event.cid] = event.key
    return former | living


def _not_erased(
    pairs: Iterable["_Numbered"], lineage: Lineage, erased_before: Collection[int]
) -> Iterator["_Numbered"]:
    erased = lineage.erased - set(lineage.now.values())
    for event, number in pairs:
        if number not in erased and event.position not in erased_before:
            yield event, number


_Numbered = tuple[Event, int]
