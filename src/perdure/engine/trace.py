"""Which versions an erasure removes, and which contents: those that no other version has.

What to erase is given as spans of keys and commits of the history. A text is followed through its
moves, to the key that it has now.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.context.node_files import OWNER
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, field
from perdure.model import Uri
from perdure.storage.locator import Locator
from perdure.storage.text_history import EXTERNAL, MOVED_FROM, UNDONE, Event, History

_NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class KeySpan:
    """The keys of a folder, or one key, from one commit to another."""

    prefix: str
    deep: bool
    """Whether keys in subfolders belong to it."""
    since: int = 0
    until: int = _NO_END

    def holds(self, event: Event) -> bool:
        return self.since <= event.commit <= self.until and self.covers(event.key)

    def covers(self, key: str) -> bool:
        """Return whether a key belongs to the span, at any commit."""
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
    """Return the sessions of an owner, each for the commits in which it was theirs."""
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
    """Return whether a version of an owner file names this owner; an erased one does not."""
    data = None if event.cid is None else history.store.get(event.cid)
    return data == f"{owner_space}\n".encode()


def texts_in(spans: Iterable[KeySpan], reader: NodeReader) -> list[Locator]:
    """Return the texts that exist now; owner files come last."""
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
"""In the circumstances of a removal: the id of the erasure that removed the text."""

EMPTY_CONTENTS = {CID.of(b""), CID.of(b"[]\n")}
"""Contents that nodes share: an empty abstract, and no edges."""

_LostFile = tuple[CID, str]


@dataclass(slots=True)
class Lineage:
    """Follows texts from event to event. Each text has a number."""

    count: int = 0
    now: dict[str, int] = field(default_factory=dict)
    """The text of each key."""
    erased: set[int] = field(default_factory=set)
    """The texts that an erasure removed, and that were not restored."""
    _before: dict[str, int] = field(default_factory=dict)
    _contents: dict[str, CID] = field(default_factory=dict)
    _lost: dict[_LostFile, str] = field(default_factory=dict)
    """Contents that were removed by hand, with their keys; they may have been moved."""
    _removed: dict[str, int] = field(default_factory=dict)
    """Texts that were removed by hand, by key; the key may have another text since."""
    _renamed: dict[str, str] = field(default_factory=dict)
    """The former folder of a folder that was renamed by hand; its files may be edited."""

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
            self._removed[event.key] = text
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
            text = self._removed.pop(self._by_hand(event.key, cid), None)
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
        """Return the key that a file seems to have had before it was renamed by hand."""
        name, folder = _name(key), _folder(key)
        was = "" if cid in EMPTY_CONTENTS else self._lost.pop((cid, name), "")
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
    """The versions to remove, and the removals among them, which have no content."""
    contents: frozenset[CID]
    """Their contents that no other version has."""
    shared: tuple[tuple[CID, str], ...]
    """Their contents that other versions have too, each with the key of one of these."""
    moved: tuple[tuple[str, str], ...]
    """Texts that now have another key outside the spans: from and to."""


def trace(
    history: History,
    spans: Sequence[KeySpan],
    cutoff: "ErasureCutoff | None" = None,
    erased_before: Collection[int] = (),
) -> Trace:
    """Return what to erase. Versions after the cutoff are not erased.

    A text that now has a key outside the spans stays, with all its versions. Texts that were
    erased before, and versions at the positions `erased_before`, do not make a content shared.
    """
    lineage = Lineage()
    events = list(history.changes())
    pairs: list[_Numbered] = []
    ours: set[int] = set()
    ends = None if cutoff is None else _ends(events, cutoff)
    for event in events:
        number = lineage.of(event)
        pairs.append((event, number))
        in_time = ends is None or event.position <= ends.get(event.key, ends[""])
        if in_time and any(span.holds(event) for span in spans):
            ours.add(number)
    homes = lineage.homes()
    moved_to = {
        number: key
        for number in ours
        for key in homes.get(number, ())
        if not any(span.covers(key) for span in spans)
    }
    removed = ours - moved_to.keys()
    versions = tuple(event for event, number in pairs if number in removed)
    contents = {event.cid for event in versions if event.cid is not None}
    staying = [
        each for each in _not_erased(pairs, lineage, erased_before) if each[1] not in removed
    ]
    others = _others(staying, contents, homes)
    shared = sorted((cid, key) for cid, key in others.items() if cid not in EMPTY_CONTENTS)
    moved = {e.key: moved_to[n] for e, n in pairs if n in moved_to and e.key != moved_to[n]}
    own = frozenset(contents - others.keys())
    return Trace(versions, own, tuple(shared), tuple(sorted(moved.items())))


class ErasureCutoff(NamedTuple):
    """Where an erasure ends: at its own removal of a text, or else at its beginning."""

    erasure: str
    begun: int


def removed_by(events: Iterable[Event], erasure: str) -> dict[str, int]:
    """Return the position at which an erasure last removed each key, unless it was undone."""
    removed: dict[str, int] = {}
    for event in events:
        if event.circumstances.more.get(ERASURE) == erasure:
            removed[event.key] = event.position
        elif event.origin == UNDONE:
            removed.pop(event.key, None)
    return removed


def _ends(events: Sequence[Event], cutoff: ErasureCutoff) -> dict[str, int]:
    """Return the last position for each key; under "", that of keys that were not removed."""
    removed = removed_by(events, cutoff.erasure)
    return {**removed, "": max((cutoff.begun, *removed.values()))}


def _others(
    staying: Iterable["_Numbered"], contents: set[CID], homes: Mapping[int, Sequence[str]]
) -> dict[CID, str]:
    """Return the keys of other versions with these contents: current ones, else former ones."""
    current: dict[CID, str] = {}
    former: dict[CID, str] = {}
    for event, number in staying:
        if event.cid is None or event.cid not in contents:
            continue
        if number in homes:
            current[event.cid] = homes[number][-1]
        else:
            former[event.cid] = event.key
    return former | current


def _not_erased(
    pairs: Iterable["_Numbered"], lineage: Lineage, erased_before: Collection[int]
) -> Iterator["_Numbered"]:
    erased = lineage.erased - set(lineage.now.values())
    for event, number in pairs:
        if number not in erased and event.position not in erased_before:
            yield event, number


_Numbered = tuple[Event, int]
