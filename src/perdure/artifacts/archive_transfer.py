"""Write a history into an archive, or some names of it into another store; take archives in.

Nothing is believed before all of an archive was checked. Then it depends on how the two stand:

- there is none here yet: its segments become ours, byte for byte, all at once;
- ours is its beginning: what it has more is appended, as it is there;
- it is the beginning of ours: there is nothing to do;
- anything else is the archive of another history, and is refused.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from hashlib import sha256
from itertools import groupby
from typing import BinaryIO

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.artifacts.archive_format import (
    CHANGED,
    Archive,
    Footer,
    Survey,
    encode_opening,
    read_archive,
    zero_slices,
)
from perdure.artifacts.artifact_store import ArtifactStore
from perdure.artifacts.cid import CID
from perdure.artifacts.content_index import CommitDraft, Content
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Bind, IndexState, LogEntry, Sweep, decode_all
from perdure.artifacts.mark import Mark, clear_arriving, complete_arrival, open_arriving
from perdure.artifacts.segment import (
    HEADER_BYTES,
    SLICE,
    Frame,
    LogEnd,
    ReadWindow,
    SegmentReader,
    StoredPut,
    decode_header,
    encode_head,
    salt_of,
    seal,
    stored_puts,
)
from perdure.artifacts.shared_log import SharedLog
from perdure.artifacts.sweeper import Sweeper
from perdure.artifacts.verification import Progress
from perdure.dataclass import dataclass
from perdure.errors import ArchiveError, DamageError

_SWEEP = 8


# ---------------------------------------------------------------- writing
@dataclass(frozen=True, slots=True)
class ExportSummary:
    history: bytes
    state: IndexState
    root: bytes
    digest: bytes
    """The SHA-256 of the archive without its last 32 bytes, which are this."""
    size: int


def export(
    store: ArtifactStore,
    target: BinaryIO,
    *,
    progress: Progress | None = None,
) -> ExportSummary:
    """Write the history up to the current state.

    Other processes may write meanwhile. If this raises, what was written is not an archive. Content
    that is damaged is not exported: that is a `DamageError`, and `verify` shows all there is.
    """
    journal = store._shared_log  # noqa: SLF001 - this is the store's own verb
    state = journal.refresh()
    if not state.position:
        raise ArchiveError("the history has nothing in it to export. Fix: put something first.")
    log, output = journal.log, _Output(target, progress)
    begin = log.start_of(0)
    survey = Survey(begin, log.hash)
    survey.walk(_until(log.frames(begin), state.position))
    lengths = list(survey.stops.values())
    output.total = sum(lengths)
    output.write(encode_opening(lengths))
    for number in survey.stops:
        _write_segment(journal, number, survey, output)
    output.write(Footer(survey.end.position, survey.end.seal, survey.root).encode())
    digest = output.finish()
    exported = IndexState(survey.snapshots, survey.end.position)
    return ExportSummary(log.history, exported, survey.root, digest, output.size)


class _Output:
    """Gathers what is written to slices, and hashes it."""

    def __init__(self, target: BinaryIO, progress: Progress | None) -> None:
        self._target = target
        self._progress = progress or (lambda _done, _all: None)
        self._hasher = sha256()
        self._parts: list[bytes] = []
        self._waiting = 0
        self.size = 0
        self.total = 0

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._waiting += len(data)
        if self._waiting >= SLICE:
            self._flush()

    def finish(self) -> bytes:
        self._flush()
        digest = self._hasher.digest()
        self._put(digest)
        return digest

    def _flush(self) -> None:
        data = b"".join(self._parts)
        self._parts, self._waiting = [], 0
        self._hasher.update(data)
        self._put(data)

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._target.write(rest) :]
        self.size += len(data)
        self._progress(self.size, max(self.size, self.total))


def _write_segment(journal: SharedLog, number: int, survey: Survey, output: _Output) -> None:
    log = journal.log
    file, salt = log.file(number), salt_of(log.history)
    header = file.read(0, HEADER_BYTES)
    output.write(header)
    window = ReadWindow(file)
    frames = SegmentReader(file, log.history).frames(LogEnd.of(decode_header(header)))
    for frame in _until(frames, survey.end.position):
        head = frame.head
        output.write(encode_head(head, salt) + frame.records)
        for put in stored_puts(frame):
            swept = survey.is_swept(put)
            for data in zero_slices(put) if swept else _content(journal, window, put, frame):
                output.write(data)
        output.write(frame.seal.ljust(head.length - head.seal_offset, b"\0"))


def _content(
    journal: SharedLog, window: ReadWindow, put: StoredPut, frame: Frame
) -> Iterator[bytes]:
    crc, found = 0, 0
    for data in window.slices(put.place, put.length):
        crc = extend_crc32c(crc, data)
        found += len(data)
        yield data
    if crc == put.crc and found == put.length:
        return
    journal.refresh()
    row = journal.index.find(put.digest)
    if row is None or row.block != frame.head.first_position:
        raise ArchiveError("content was swept while it was being exported. Fix: export again.")
    raise DamageError(
        f"the bytes of {CID.from_bytes(put.cid)} are not what was put, so they can't be "
        "exported. Fix: run `perdure history verify` to see what is damaged, and restore it."
    )


def _until(frames: Iterable[Frame], position: int) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        if frame.head.last_position >= position:
            return


Keep = Callable[[LogEntry, Bind], Bind | None]
"""Returns the bind to keep, if any."""


def extract(store: ArtifactStore, disk: Disk, keep: Keep, until: int) -> ArtifactStore:
    """Return a store on an empty disk that has the names that are kept, commit by commit.

    Each commit has the time that it had. Content that is hidden or gone is named, and not there.
    """
    times = [0]
    target = ArtifactStore(disk, hash=store.hash, clock=lambda: times[-1])
    for time, binds in _commits(store, keep, until):
        times.append(time)
        target._shared_log.commit(_plan(store, binds), alone=True)  # noqa: SLF001 - as others of us
    return target


def _commits(store: ArtifactStore, keep: Keep, until: int) -> Iterator[tuple[int, list[Bind]]]:
    logged = (each for each in store.log() if each.position <= until)
    for _, entries in groupby(logged, key=lambda each: each.commit):
        of_commit = list(entries)
        bound = [(each, each.entry) for each in of_commit if isinstance(each.entry, Bind)]
        binds = [bind for bind in (keep(each, entry) for each, entry in bound) if bind is not None]
        if binds:
            yield of_commit[0].time, binds


def _plan(store: ArtifactStore, binds: list[Bind]) -> Callable[[CommitDraft], None]:
    contents = {bind.cid: store.get(bind.cid) for bind in binds if bind.cid is not None}

    def plan(draft: CommitDraft) -> None:
        for cid, data in contents.items():
            if data is not None:
                draft.put(Content(bytes(cid), crc32c(data), data))
        for bind in binds:
            draft.append(bind)

    return plan


# ---------------------------------------------------------------- taking in
class ImportOutcome(Enum):
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
class ImportSummary:
    outcome: ImportOutcome
    history: bytes
    position: int
    """The last one of the archive."""
    entries: int
    """How many our log has more for it."""
    state: IndexState


def import_archive(
    store: ArtifactStore,
    source: BinaryIO,
    *,
    progress: Progress | None = None,
) -> ImportSummary:
    """Check a whole archive, and then take in what is new in it.

    Where it continues our own history it also sweeps what it says was swept. `ArchiveError` if it
    can't be taken in; nothing was changed then. After a power cut, do it again.
    """
    shown = progress or (lambda _done, _all: None)
    archive = read_archive(source, progress=lambda done, whole: shown(done, whole // 2 * 3))
    return _Import(store, archive, shown).run()


def import_outcome(store: ArtifactStore, archive: Archive) -> ImportOutcome:
    """Say how an archive that was read would be taken in; nothing is changed."""
    store.current()
    return _Import(store, archive, lambda _done, _all: None).relation()


class _Import:
    def __init__(self, store: ArtifactStore, archive: Archive, progress: Progress) -> None:
        self._store = store
        self._journal = store._shared_log  # noqa: SLF001 - this is the store's own verb
        self._disk = store.disk
        self._archive = archive
        self._progress = progress
        self._how = ImportOutcome.FOREIGN
        self._entries = 0

    def run(self) -> ImportSummary:
        if self._archive.hash is not self._store._hash:  # noqa: SLF001 - as before
            raise ArchiveError(
                "the archive names content by another hash than this store. Fix: take it in with a "
                f"store that was made with hash={self._archive.hash}."
            )
        self._journal.commit(self._take, alone=True)
        if self._how is ImportOutcome.RESTORED:
            self._journal.rebuild()
        whole = 3 * self._archive.size
        self._progress(whole, whole)
        archive = self._archive
        return ImportSummary(
            self._how, archive.history, archive.end.position, self._entries, self._store.current()
        )

    # ------------------------------------------------------------ what is one with ours
    def _take(self, _: CommitDraft) -> None:
        """Take it in if it is one with our history, while the lock is held."""
        clear_arriving(self._disk)
        self._how = self.relation()
        if self._how is ImportOutcome.RESTORED:
            self._restore()
        elif self._how is ImportOutcome.CONTINUED:
            self._continue()
        elif self._how is ImportOutcome.FOREIGN:
            raise ArchiveError(
                f"the archive is of another history than the one in {self._disk.whereabouts!a}, or "
                "both went on since one was copied. Nothing was changed. Fix: take it in to an "
                "empty folder."
            )

    def relation(self) -> ImportOutcome:
        log, theirs = self._journal.log, self._archive.end
        if not log.history:
            return ImportOutcome.RESTORED
        ours = log.end
        if not ours.position:
            raise ArchiveError(
                f"the history in {self._disk.whereabouts!a} was begun and has nothing in it, so it "
                "can become no other one. Fix: choose an empty folder, or put something first."
            )
        if log.history != self._archive.history:
            return ImportOutcome.FOREIGN
        if ours.position < theirs.position:
            is_ours = self._archive.seal_at(ours.position) == ours.seal
            return ImportOutcome.CONTINUED if is_ours else ImportOutcome.FOREIGN
        return (
            ImportOutcome.KNOWN
            if self._our_seal(theirs.position) == theirs.seal
            else ImportOutcome.FOREIGN
        )

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
            clear_arriving(self._disk)
            raise ArchiveError(CHANGED)
        end = archive.end
        complete_arrival(self._disk, Mark(archive.history, end.position, end.segment))
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
        self._journal.append_as(frame, [self._archive.payload(frame)])
        if sweeper is not None:
            sweeper.erase()

    def _sweeper(self, frame: Frame) -> Sweeper | None:
        """Return what erases with us what this commit sweeps; None if it is no sweep."""
        if frame.records[0] != _SWEEP:
            return None
        (sweep,) = decode_all(frame.records)
        if not isinstance(sweep, Sweep):
            raise ArchiveError(CHANGED)
        draft = CommitDraft(self._journal.index, self._archive.hash, self._journal.log.end.position)
        sweeper = Sweeper(self._disk, self._journal, self._archive.hash)
        sweeper.plan_as(draft, sweep)
        if draft.records != [frame.records]:
            sweeper.finish()
            raise ArchiveError(
                f"entry {frame.head.last_position} of the archive sweeps what was not to be swept. "
                "Fix: none; no store has written this."
            )
        return sweeper
