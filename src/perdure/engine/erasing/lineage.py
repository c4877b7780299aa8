"""Which versions are of the same text, wherever it went, and where it lives now."""

from dataclasses import dataclass, field

from perdure.artifacts import CID
from perdure.storage.history import EXTERNAL, MOVED_FROM, UNDONE, Event

ERASURE = "erasure"
"""Among what is said of a version that has no text any more: the id of who took it away."""

SAYS_NOTHING = {CID.of(b""), CID.of(b"[]\n")}
"""What every node has that has no abstract or edges."""

_Lost = tuple[CID, str]
"""A content, and the name of the file that had it."""


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
        """Return the number of the text that an event is about."""
        return self._left(event) if event.cid is None else self._came(event, event.cid)

    def homes(self) -> dict[int, list[str]]:
        """Return the keys at which each text lives; those that live nowhere are not among them."""
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
        """Return the text that was at the key it is said to come from."""
        source = event.circumstances.more.get(MOVED_FROM)
        if not isinstance(source, str):
            return None
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
