"""Every version of every text: who wrote it, when, why, and from what."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from perdure.artifacts import CID, ArtifactStore, Change, IndexState
from perdure.artifacts.canonical import Value
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind
from perdure.artifacts.state import Binding
from perdure.dataclass import dataclass, field, replace
from perdure.errors import AbsentError, NotTextError
from perdure.files import Closeable
from perdure.storage.locator import Locator
from perdure.storage.lock.fence import Fence
from perdure.times import end_of

SAVE = "save"
MERGE = "merge"
EXTERNAL = "external"
"""Found in the file, written by somebody else."""
RESTORE = "restore"
UNDONE = "undone"
"""Answers a version whose file was never written, or was undone: it says what the file says."""
MOVED_FROM = "moved_from"
"""Among what others say: the key that a text had before."""
CONFLICT_COPY = "conflict_copy"
"""Of a text that the file never had: the conflict copy that had it, and was removed."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Who, why and from what; the commit says when."""

    actor: str = ""
    reason: str = ""
    origin: str = SAVE
    derived_from: tuple[CID, ...] = ()
    more: Mapping[str, Value] = field(default_factory=dict)
    """What others said; it is kept as it is."""

    @classmethod
    def from_mapping(cls, said: Mapping[str, Value]) -> "Circumstances":
        """Read what a `Bind` carries. What is not of the kind that we write stays in `more`."""
        more = dict(said)
        texts = {
            name: str(more.pop(name))
            for name in ("actor", "reason", "origin")
            if isinstance(said.get(name), str)
        }
        sources = said.get("derived_from")
        derived_from: tuple[CID, ...] = ()
        if isinstance(sources, Sequence) and not isinstance(sources, str | bytes):
            cids = tuple(source for source in sources if isinstance(source, CID))
            if len(cids) == len(sources):
                del more["derived_from"]
                derived_from = cids
        return cls(**texts, derived_from=derived_from, more=more)

    def of(self, key: str) -> "Circumstances":
        """Return what is said of this key, where `moved_from` says it of each."""
        sources = self.more.get(MOVED_FROM)
        if not isinstance(sources, Mapping):
            return self
        more = {name: value for name, value in self.more.items() if name != MOVED_FROM}
        if key in sources:
            more[MOVED_FROM] = sources[key]
        return replace(self, more=more)

    def derived(self, source: CID | None) -> "Circumstances":
        """Return the same, of what is derived from this, if it is anything."""
        return self if source is None else replace(self, derived_from=(source,))

    def to_mapping(self) -> dict[str, Value]:
        said: dict[str, Value] = {"origin": self.origin}
        if self.actor:
            said["actor"] = self.actor
        if self.reason:
            said["reason"] = self.reason
        if self.derived_from:
            said["derived_from"] = self.derived_from
        return {**said, **self.more}


@dataclass(frozen=True, slots=True)
class Event:
    """From a position on, a key had this text, or none."""

    key: str
    position: int
    commit: int
    """The position from which on it can be seen."""
    time: int
    """Milliseconds since the epoch."""
    cid: CID | None
    circumstances: Circumstances

    @property
    def unbound(self) -> bool:
        return self.cid is None

    @property
    def actor(self) -> str:
        return self.circumstances.actor

    @property
    def reason(self) -> str:
        return self.circumstances.reason

    @property
    def origin(self) -> str:
        return self.circumstances.origin

    @property
    def derived_from(self) -> tuple[CID, ...]:
        return self.circumstances.derived_from


@dataclass(frozen=True, slots=True)
class Version(Event):
    """An event of one key, with its number among them; the first is 1."""

    number: int


class BlamedLine(NamedTuple):
    """A line with its ending, and the version that wrote it."""

    text: str
    version: Version


Which = int | CID | Version
"""A version by its number, by its content (the last that had it), or as it is."""


class History(Closeable):
    """The versions of the texts of one root, in an artifact store on a disk of its own."""

    def __init__(self, store: ArtifactStore, disk: Disk) -> None:
        self.store = store
        self.fence = Fence(disk, lambda: store.history)

    @classmethod
    def open(cls, folder: str) -> "History":
        """Open the history in a folder; if there is none, the first version makes it."""
        return cls.on(FolderDisk(folder))

    @classmethod
    def on(cls, disk: Disk) -> "History":
        return cls(ArtifactStore(disk), disk)

    def close(self) -> None:
        self.store.close()

    # ------------------------------------------------------------ what happened
    def record(self, changes: Sequence[Change]) -> IndexState:
        return self.store.record(changes)

    def changes(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after a position, each once and in order."""
        for logged in self.store.log(after=after):
            if isinstance(logged.entry, Bind):
                name, cid, said = logged.entry.name, logged.entry.cid, logged.entry.circumstances
                binding = Binding(name, logged.position, logged.commit, logged.time, cid, said)
                yield Event(*_fields(binding))

    def current(self, locator: Locator, state: IndexState | None = None) -> Event | None:
        """Return what last happened to a key; None if nothing ever did."""
        found = self.store.catalogue.bound(locator.key, self.position(state))
        return None if found is None else Event(*_fields(found))

    def versions(self, locator: Locator, state: IndexState | None = None) -> list[Version]:
        """Return all versions of a text, oldest first; also those in which there was none.

        If it was moved here, those that it had under its former keys come first, and what else
        had been here before is another text.
        """
        found = self._lineage(locator.key, self.position(state))
        return [Version(*_fields(binding), number) for number, binding in enumerate(found, 1)]

    def _lineage(self, key: str, position: int) -> list[Binding]:
        earlier, later = self.store.catalogue.versions(key, position), list[Binding]()
        while (moved := _last_move(earlier)) is not None:
            later = earlier[moved:] + later
            arrival = earlier[moved]
            source = str(arrival.circumstances[MOVED_FROM])
            former = self.store.catalogue.versions(source, arrival.commit)
            earlier = [version for version in former if _is_before(version, arrival)]
        return earlier + later

    def version(self, locator: Locator, which: Which) -> Version:
        """Find a version; `AbsentError` if there is no such one."""
        if isinstance(which, Version):
            return which
        wanted = [
            version for version in self.versions(locator) if which in (version.number, version.cid)
        ]
        if not wanted:
            raise AbsentError(
                f"{locator.key!a} has no version {which}. Fix: list its history to see them."
            )
        return wanted[-1]

    def position(self, state: IndexState | None = None) -> int:
        """Return the position of a state, or of now, when it can be asked for by name."""
        now = self.store.catalogue.follow()
        return now if state is None else state.position

    def state_at(self, when: datetime | date | str) -> IndexState:
        """Return the state as of a time: that of the last commit at or before it.

        A date means its whole day. Without a zone, a time is in UTC, so that it is the same
        moment on every machine.
        """
        self.store.catalogue.follow()
        return IndexState(
            0, self.store.catalogue.position_at((end_of(when) - _EPOCH) // _MILLISECOND)
        )

    # ------------------------------------------------------------ what was written
    def text(self, version: Event) -> str:
        """Return the text of a version; `AbsentError` if it had none, or it is gone."""
        if version.cid is None:
            raise AbsentError(
                f"at entry {version.position}, {version.key!a} was removed. "
                "Fix: choose a version that has a text."
            )
        data = self.store.get(version.cid)
        if data is None:
            raise AbsentError(
                f"the text that {version.key!a} had at entry {version.position} is no longer kept. "
                "Fix: choose another version."
            )
        return decoded(data, version.key)

    def earlier(self, locator: Locator, state: IndexState | None = None) -> Iterator[str]:
        """Yield the kept texts that a key had up to a state, newest first; none that was undone."""
        undone = False
        for version in reversed(self.versions(locator, state)):
            was_there = not undone or version.origin in (EXTERNAL, UNDONE)
            undone = version.origin == UNDONE
            if was_there:
                with suppress(AbsentError, NotTextError):
                    yield self.text(version)

    def diff(self, locator: Locator, old: Which, new: Which) -> str:
        from perdure.artifacts import lines  # noqa: PLC0415 - who compares texts pays for it

        a, b = self.version(locator, old), self.version(locator, new)
        return lines.diff(
            *("" if version.unbound else self.text(version) for version in (a, b)),
            old_name=f"{a.key}\tversion {a.number}",
            new_name=f"{b.key}\tversion {b.number}",
        )

    def blame(self, locator: Locator) -> list[BlamedLine]:
        """Return the lines of the text, each with the version that wrote it, of those kept."""
        from perdure.artifacts import lines  # noqa: PLC0415 - as before

        every = self.versions(locator)
        own = [v for v in every[:-1] if CONFLICT_COPY not in v.circumstances.more] + every[-1:]
        kept = [v for v in own[:-1] if v.cid is None or self.store.has(v.cid)] + own[-1:]
        texts = (None if version.unbound else self.text(version) for version in kept)
        return [BlamedLine(line.text, kept[line.version]) for line in lines.blame(texts)]


def decoded(data: bytes, key: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"what {key!a} had is no UTF-8 text: byte {error.start} is {data[error.start]:#04x}. "
            "Fix: read its bytes from the artifact store."
        ) from error


def _fields(binding: Binding) -> tuple[str, int, int, int, CID | None, Circumstances]:
    name, position, commit, when, cid, said = binding
    return name, position, commit, when, cid, Circumstances.from_mapping(said)


def _last_move(versions: Sequence[Binding]) -> int | None:
    """Return which version was the last to come from another key."""
    for number in reversed(range(len(versions))):
        _, _, _, _, cid, said = versions[number]
        if cid is not None and isinstance(said.get(MOVED_FROM), str):
            return number
    return None


def _is_before(version: Binding, arrival: Binding) -> bool:
    """Whether a version of the former key was there before the text arrived at another."""
    is_edit = version.cid is not None and version.circumstances.get("origin") == EXTERNAL
    return version.commit < arrival.commit or is_edit
