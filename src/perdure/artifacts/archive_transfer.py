"""Export of a history as an archive, extraction of some names into another store, and import.

An import changes nothing before all of an archive was checked. What it does depends on both logs:

- there is no history here: the archive's segments become ours, byte for byte, atomically;
- our log is a prefix of the archive's: the rest is appended, byte for byte;
- the archive's log is a prefix of ours: there is nothing to do;
- anything else is another history, and is refused.
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
from perdure.artifacts.entry import KINDS, Bind, IndexState, LogEntry, Sweep, decode_all
from perdure.artifacts.log import Mark, clear_arriving, complete_arrival, open_arriving
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


# ---------------------------------------------------------------- export
@dataclass(frozen=True, slots=True)
class ExportSummary:
    history: bytes
    state: IndexState
    root: bytes
    digest: bytes
    """The SHA-256 of the archive without its last 32 bytes, which are this digest."""
    size: int


def export(
    store: ArtifactStore,
    target: BinaryIO,
    *,
    progress: Progress | None = None,
) -> ExportSummary:
    """Write the history up to the current state.

    Other processes may write meanwhile. If this raises, `target` is not an archive. Damaged content
    raises `DamageError`; `verify` reports all damage.
    """
    shared_log = store._shared_log  # noqa: SLF001 - this is a verb of the store
    state = shared_log.refresh()
    if not state.position:
        raise ArchiveError("the history has nothing in it to export. Fix: put something first.")
    log, output = shared_log.log, _Output(target, progress)
    begin = log.start_of(0)
    survey = Survey(begin, log.hash)
    survey.walk(_until(log.frames(begin), state.position))
    lengths = list(survey.stops.values())
    output.total = sum(lengths)
    output.write(encode_opening(lengths))
    for number in survey.stops:
        _write_segment(shared_log, number, survey, output)
    output.write(Footer(survey.end.position, survey.end.seal, survey.root).encode())
    digest = output.finish()
    exported = IndexState(survey.snapshots, survey.end.position)
    return ExportSummary(log.history, exported, survey.root, digest, output.size)


class _Output:
    """Writes and hashes an archive in large pieces."""

    def __init__(self, target: BinaryIO, progress: Progress | None) -> None:
        self._target = target
        self._progress = progress or (lambda _done, _all: None)
        self._hasher = sha256()
        self._pieces: list[bytes] = []
        self._waiting = 0
        self.size = 0
        self.total = 0

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting >= SLICE:
            self._flush()

    def finish(self) -> bytes:
        self._flush()
        digest = self._hasher.digest()
        self._put(digest)
        return digest

    def _flush(self) -> None:
        data = b"".join(self._pieces)
        self._pieces, self._waiting = [], 0
        self._hasher.update(data)
        self._put(data)

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._target.write(rest) :]
        self.size += len(data)
        self._progress(self.size, max(self.size, self.total))


def _write_segment(shared_log: SharedLog, number: int, survey: Survey, output: _Output) -> None:
    log = shared_log.log
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
            for data in zero_slices(put) if swept else _content(shared_log, window, put, frame):
                output.write(data)
        output.write(frame.seal.ljust(head.length - head.seal_offset, b"\0"))


def _content(
    shared_log: SharedLog, window: ReadWindow, put: StoredPut, frame: Frame
) -> Iterator[bytes]:
    crc, found = 0, 0
    for data in window.slices(put.place, put.length):
        crc = extend_crc32c(crc, data)
        found += len(data)
        yield data
    if crc == put.crc and found == put.length:
        return
    shared_log.refresh()
    row = shared_log.index.find(put.digest)
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


# ---------------------------------------------------------------- extraction
Keep = Callable[[LogEntry, Bind], Bind | None]
"""Returns the bind to retain, if any."""


def extract(store: ArtifactStore, disk: Disk, keep: Keep, until: int) -> ArtifactStore:
    """Return a store on an empty disk with the binds that `keep` returns, commit by commit.

    Each commit has its original time. Content that is hidden or erased is named, but not stored.
    """
    times = [0]
    target = ArtifactStore(disk, hash=store.hash, clock=lambda: times[-1])
    entries = (each for each in store.log() if each.position <= until)
    for _, commit in groupby(entries, key=lambda each: each.commit):
        binds = []
        for each in commit:
            bind = keep(each, each.entry) if isinstance(each.entry, Bind) else None
            if bind is not None:
                binds.append(bind)
                times.append(each.time)
        if binds:
            target._shared_log.commit(_plan(store, binds), alone=True)  # noqa: SLF001 - as above
    return target


def _plan(store: ArtifactStore, binds: list[Bind]) -> Callable[[CommitDraft], None]:
    contents = {bind.cid: store.get(bind.cid) for bind in binds if bind.cid is not None}

    def plan(draft: CommitDraft) -> None:
        for cid, data in contents.items():
            if data is not None:
                draft.put(Content(bytes(cid), crc32c(data), data))
        for bind in binds:
            draft.append(bind)

    return plan


# ---------------------------------------------------------------- import
class ImportOutcome(Enum):
    RESTORED = "restored"
    """There was no history here; now there is the archive's."""
    CONTINUED = "continued"
    """Our log was a prefix of the archive's; it now ends where that ends."""
    KNOWN = "known"
    """The archive has nothing new."""
    FOREIGN = "foreign"
    """The archive is of another history, and is refused."""


@dataclass(frozen=True, slots=True)
class ImportSummary:
    outcome: ImportOutcome
    history: bytes
    position: int
    """The last one of the archive."""
    entries: int
    """How many entries our log gained."""
    state: IndexState


def import_archive(
    store: ArtifactStore,
    source: BinaryIO,
    *,
    progress: Progress | None = None,
) -> ImportSummary:
    """Check a whole archive, then import what is new in it.

    If it continues our history, contents that it swept are erased here, too. Raises `ArchiveError`,
    and changes nothing, if it can't be imported. After a power cut, call it again.
    """
    report = progress or (lambda _done, _all: None)
    archive = read_archive(source, progress=lambda done, whole: report(done, whole // 2 * 3))
    return _Import(store, archive, report).run()


def import_outcome(store: ArtifactStore, archive: Archive) -> ImportOutcome:
    """Return the outcome that an import of this archive would have. Changes nothing."""
    store.current()
    return _Import(store, archive, lambda _done, _all: None).outcome()


class _Import:
    def __init__(self, store: ArtifactStore, archive: Archive, progress: Progress) -> None:
        self._store = store
        self._shared_log = store._shared_log  # noqa: SLF001 - this is a verb of the store
        self._disk = store.disk
        self._archive = archive
        self._progress = progress
        self._outcome = ImportOutcome.FOREIGN
        self._entries = 0

    def run(self) -> ImportSummary:
        archive = self._archive
        if archive.hash is not self._store.hash:
            raise ArchiveError(
                "the archive names content by another hash than this store. Fix: import it into a "
                f"store that was created with hash={archive.hash}."
            )
        self._shared_log.commit(self._plan, alone=True)
        if self._outcome is ImportOutcome.RESTORED:
            self._shared_log.rebuild()
        self._progress(3 * archive.size, 3 * archive.size)
        state = self._store.current()
        end = archive.end.position
        return ImportSummary(self._outcome, archive.history, end, self._entries, state)

    def _plan(self, _: CommitDraft) -> None:
        """Import the archive under the lock, if it is of our history."""
        clear_arriving(self._disk)
        self._outcome = self.outcome()
        if self._outcome is ImportOutcome.RESTORED:
            self._restore()
        elif self._outcome is ImportOutcome.CONTINUED:
            self._continue()
        elif self._outcome is ImportOutcome.FOREIGN:
            raise ArchiveError(
                f"the archive is of another history than the one in {self._disk.whereabouts!a}, or "
                "both were continued after one was copied. Nothing was changed. Fix: import it "
                "into an empty folder."
            )

    def outcome(self) -> ImportOutcome:
        log, theirs = self._shared_log.log, self._archive.end
        if not log.history:
            return ImportOutcome.RESTORED
        ours = log.end
        if not ours.position:
            raise ArchiveError(
                f"the history in {self._disk.whereabouts!a} was begun and has no entries, so it "
                "can't be replaced. Fix: choose an empty folder, or put something first."
            )
        if log.history != self._archive.history:
            return ImportOutcome.FOREIGN
        if ours.position < theirs.position:
            is_prefix = self._archive.seal_at(ours.position) == ours.seal
            return ImportOutcome.CONTINUED if is_prefix else ImportOutcome.FOREIGN
        is_known = self._our_seal(theirs.position) == theirs.seal
        return ImportOutcome.KNOWN if is_known else ImportOutcome.FOREIGN

    def _our_seal(self, position: int) -> bytes | None:
        log = self._shared_log.log
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
        """Append the missing commits. If it is interrupted, those that were appended are valid."""
        begin, size = self._shared_log.log.end.position, self._archive.size
        for frame in self._archive.frames(after=begin):
            self._append(frame)
            share = size * frame.head.last_position // self._archive.end.position
            self._progress(2 * size + share, 3 * size)
        end = self._shared_log.log.end
        if end[2:] != self._archive.end[2:]:
            raise ArchiveError(CHANGED)
        self._entries = end.position - begin

    def _append(self, frame: Frame) -> None:
        log, end = self._shared_log.log, self._shared_log.log.end
        if (frame.segment, frame.offset) not in {end[:2], (end.segment + 1, HEADER_BYTES)}:
            raise ArchiveError(
                f"entry {frame.head.first_position} is at another offset in the archive than it "
                "would be here. Fix: import the archive into an empty folder."
            )
        packed = encode_head(frame.head, salt_of(log.history))
        if seal(end.seal, packed, frame.records) != frame.seal:
            raise ArchiveError(CHANGED)
        sweeper = self._sweeper(frame)
        self._shared_log.append_as(frame, [self._archive.payload(frame)])
        if sweeper is not None:
            sweeper.erase()

    def _sweeper(self, frame: Frame) -> Sweeper | None:
        """Return a sweeper for what this commit swept; None if it is not a sweep."""
        if frame.records[0] != KINDS[Sweep]:
            return None
        (sweep,) = decode_all(frame.records)
        if not isinstance(sweep, Sweep):
            raise ArchiveError(CHANGED)
        shared_log, algorithm = self._shared_log, self._archive.hash
        draft = CommitDraft(shared_log.index, algorithm, shared_log.log.end.position)
        sweeper = Sweeper(self._disk, shared_log, algorithm)
        sweeper.plan_as(draft, sweep)
        if draft.records != [frame.records]:
            sweeper.finish()
            raise ArchiveError(
                f"entry {frame.head.last_position} of the archive sweeps content that was not "
                "hidden. Fix: none; no store has written this."
            )
        return sweeper
