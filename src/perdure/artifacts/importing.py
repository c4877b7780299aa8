"""Take in what an archive holds, if it is one with our history.

Nothing is believed before all of the archive was checked. Then it depends on how the two stand:

- there is none here yet: its segments become ours, byte for byte, all at once;
- ours is its beginning: what it has more is appended, as it is there;
- it is the beginning of ours: there is nothing to do;
- anything else is the archive of another history, and is refused.
"""

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import BinaryIO

from perdure.artifacts.archive import CHANGED, Archive, encode_opening, read_archive
from perdure.artifacts.arrival import arrive, clear, open_arriving
from perdure.artifacts.entry import Sweep, decode_all
from perdure.artifacts.index import Draft
from perdure.artifacts.log import Stream
from perdure.artifacts.mark import Mark
from perdure.artifacts.segment import HEADER_BYTES, SLICE, Frame, encode_head, salt_of, seal
from perdure.artifacts.state import IndexState
from perdure.artifacts.store import ArtifactStore
from perdure.artifacts.sweep import Sweeper
from perdure.artifacts.verify import Progress
from perdure.errors import ArchiveError

_SWEEP = 8


class How(Enum):
    """How an archive was taken in."""

    RESTORED = "restored"
    """There was nothing here; now there is the same history."""
    CONTINUED = "continued"
    """Ours was its beginning, and is now as long as it."""
    KNOWN = "known"
    """It has nothing that we had not."""
    FOREIGN = "foreign"
    """It is of another history, and is refused."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking in an archive did."""

    how: How
    history: bytes
    """That of the archive."""
    position: int
    """The last one of the archive."""
    entries: int
    """How many our log has more for it."""
    state: IndexState
    """Ours, afterwards."""


def import_archive(
    store: ArtifactStore,
    source: BinaryIO,
    *,
    progress: Progress | None = None,
) -> Taken:
    """Check a whole archive, and then take in what is new in it.

    Where it continues our own history it also sweeps what it says was swept. `ArchiveError` if it
    can't be taken in; nothing was changed then. After a power cut, do it again.
    """
    shown = progress or (lambda _done, _all: None)
    archive = read_archive(source, progress=lambda done, whole: shown(done, whole // 2 * 3))
    return _Import(store, archive, shown).run()


def how_it_stands(store: ArtifactStore, archive: Archive) -> How:
    """Say how an archive that was read would be taken in; nothing is changed."""
    store.current()
    return _Import(store, archive, lambda _done, _all: None).relation()


class _Import:
    def __init__(self, store: ArtifactStore, archive: Archive, progress: Progress) -> None:
        self._store = store
        self._journal = store._journal  # noqa: SLF001 - this is the store's own verb
        self._disk = store.disk
        self._archive = archive
        self._progress = progress
        self._how = How.FOREIGN
        self._entries = 0

    def run(self) -> Taken:
        if self._archive.hash is not self._store._hash:  # noqa: SLF001 - as before
            raise ArchiveError(
                "the archive names content by another hash than this store. Fix: take it in with a "
                f"store that was made with hash={self._archive.hash}."
            )
        self._journal.commit(self._take, alone=True)
        if self._how is How.RESTORED:
            self._journal.rebuild()
        whole = 3 * self._archive.size
        self._progress(whole, whole)
        archive = self._archive
        return Taken(
            self._how, archive.history, archive.end.position, self._entries, self._store.current()
        )

    # ------------------------------------------------------------ what is one with ours
    def _take(self, _: Draft) -> None:
        """Take it in if it is one with our history, while the lock is held."""
        clear(self._disk)
        self._how = self.relation()
        if self._how is How.RESTORED:
            self._restore()
        elif self._how is How.CONTINUED:
            self._continue()
        elif self._how is How.FOREIGN:
            raise ArchiveError(
                f"the archive is of another history than the one in {self._disk.whereabouts!a}, or "
                "both went on since one was copied. Nothing was changed. Fix: take it in to an "
                "empty folder."
            )

    def relation(self) -> How:
        log, theirs = self._journal.log, self._archive.end
        if not log.history:
            return How.RESTORED
        ours = log.end
        if not ours.position:
            raise ArchiveError(
                f"the history in {self._disk.whereabouts!a} was begun and has nothing in it, so it "
                "can become no other one. Fix: choose an empty folder, or put something first."
            )
        if log.history != self._archive.history:
            return How.FOREIGN
        if ours.position < theirs.position:
            is_ours = self._archive.seal_at(ours.position) == ours.seal
            return How.CONTINUED if is_ours else How.FOREIGN
        return How.KNOWN if self._our_seal(theirs.position) == theirs.seal else How.FOREIGN

    def _our_seal(self, position: int) -> bytes | None:
        log = self._journal.log
        for frame in log.frames(log.start_of(position - 1)):
            if frame.head.last_position >= position:
                return frame.seal if frame.head.last_position == position else None
        return None

    def _restore(self) -> None:
        """Write all segments and check them once more; only then do they become a history."""
        archive = self._archive
        sections = archive.sections
        hasher = sha256(encode_opening([section.size() for section in sections.values()]))
        done = 2 * archive.size
        for number, section in sections.items():
            file = open_arriving(self._disk, number)
            for at in range(0, section.size(), SLICE):
                data = section.read(at, SLICE)
                hasher.update(data)
                file.write(at, [data])
                done += len(data)
                self._progress(done, 3 * archive.size)
            file.sync()
            file.close()
        hasher.update(archive.footer)
        if hasher.digest() != archive.digest:
            clear(self._disk)
            raise ArchiveError(CHANGED)
        end = archive.end
        arrive(self._disk, Mark(archive.history, end.position, end.segment))
        self._entries = end.position

    def _continue(self) -> None:
        """Append what is missing. If this is cut short, what was appended stays, and is right."""
        begin, size = self._journal.log.end.position, self._archive.size
        for frame in self._archive.frames(after=begin):
            self._append(frame)
            share = size * frame.head.last_position // self._archive.end.position
            self._progress(2 * size + share, 3 * size)
        end = self._journal.log.end
        if end[2:] != self._archive.end[2:]:
            raise ArchiveError(CHANGED)
        self._entries = end.position - begin

    def _append(self, frame: Frame) -> None:
        log, end = self._journal.log, self._journal.log.end
        if (frame.segment, frame.offset) not in {end[:2], (end.segment + 1, HEADER_BYTES)}:
            raise ArchiveError(
                f"entry {frame.head.first_position} is at another place in the archive than it "
                "would be here. Fix: take the archive in to an empty folder."
            )
        packed = encode_head(frame.head, salt_of(log.history))
        if seal(end.seal, packed, frame.records) != frame.seal:
            raise ArchiveError(CHANGED)
        sweeper = self._sweeper(frame)
        payload: bytes | Stream
        if frame.head.payload_length <= SLICE:
            payload = b"".join(self._archive.payload(frame))
        else:
            payload = Stream(frame.head.payload_length, lambda: self._archive.payload(frame))
        self._journal.append_as(frame, [payload])
        if sweeper is not None:
            sweeper.erase()

    def _sweeper(self, frame: Frame) -> Sweeper | None:
        """Return what erases with us what this commit sweeps; None if it is no sweep."""
        if frame.records[0] != _SWEEP:
            return None
        (sweep,) = decode_all(frame.records)
        if not isinstance(sweep, Sweep):
            raise ArchiveError(CHANGED)
        draft = Draft(self._journal.index, self._archive.hash, self._journal.log.end.position)
        sweeper = Sweeper(self._disk, self._journal, self._archive.hash)
        sweeper.plan_as(draft, sweep)
        if draft.records != [frame.records]:
            sweeper.finish()
            raise ArchiveError(
                f"entry {frame.head.last_position} of the archive sweeps what was not to be swept. "
                "Fix: none; no store has written this."
            )
        return sweeper
