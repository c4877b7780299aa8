"""Write a history into one file, or some names of it into another store."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import BinaryIO

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.artifacts.archive import Footer, Survey, encode_opening, zeros
from perdure.artifacts.cid import CID
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Bind
from perdure.artifacts.index import Content, Draft
from perdure.artifacts.journal import Journal
from perdure.artifacts.segment import (
    HEADER_BYTES,
    SLICE,
    End,
    Frame,
    Placed,
    Reader,
    Window,
    decode_header,
    encode_head,
    placed,
    salt_of,
)
from perdure.artifacts.state import IndexState, Logged
from perdure.artifacts.store import ArtifactStore
from perdure.artifacts.verify import Progress
from perdure.errors import ArchiveError, DamageError


@dataclass(frozen=True, slots=True)
class Exported:
    """What an archive holds."""

    history: bytes
    state: IndexState
    """The last one."""
    root: bytes
    """Of the log's tree."""
    digest: bytes
    """The SHA-256 of the archive without its last 32 bytes, which are this."""
    size: int
    """In bytes."""


def export(
    store: ArtifactStore,
    target: BinaryIO,
    *,
    progress: Progress | None = None,
) -> Exported:
    """Write the history up to the current state.

    Nobody is kept from writing meanwhile. If this raises, what was written is no archive. Content
    that is damaged is not exported: that is a `DamageError`, and `verify` shows all there is.
    """
    journal = store._journal  # noqa: SLF001 - this is the store's own verb
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
    output.write(Footer(survey.end.position, survey.end.seal, survey.root, b"").encode())
    digest = output.finish()
    exported = IndexState(survey.snapshots, survey.end.position)
    return Exported(log.history, exported, survey.root, digest, output.size)


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


def _write_segment(journal: Journal, number: int, survey: Survey, output: _Output) -> None:
    log = journal.log
    file, salt = log.file(number), salt_of(log.history)
    header = file.read(0, HEADER_BYTES)
    output.write(header)
    window = Window(file)
    frames = Reader(file, log.history).frames(End.of(decode_header(header)))
    for frame in _until(frames, survey.end.position):
        head = frame.head
        output.write(encode_head(head, salt) + frame.records)
        for put in placed(frame):
            swept = survey.is_swept(put)
            for data in zeros(put) if swept else _content(journal, window, put, frame):
                output.write(data)
        output.write(frame.seal.ljust(head.length - head.seal_offset, b"\0"))


def _content(journal: Journal, window: Window, put: Placed, frame: Frame) -> Iterator[bytes]:
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


Keep = Callable[[Logged, Bind], Bind | None]
"""Returns what is to be said of a name, if anything is."""


def extract(store: ArtifactStore, disk: Disk, keep: Keep, until: int) -> ArtifactStore:
    """Return a store on an empty disk that has the names that are kept, commit by commit.

    Each commit has the time that it had. Content that is hidden or gone is named, and not there.
    """
    times = [0]
    target = ArtifactStore.on(disk, hash=store.hash, clock=lambda: times[-1])
    for time, binds in _commits(store, keep, until):
        times.append(time)
        target._journal.commit(_plan(store, binds), alone=True)  # noqa: SLF001 - as others of us
    return target


def _commits(store: ArtifactStore, keep: Keep, until: int) -> Iterator[tuple[int, list[Bind]]]:
    logged = (each for each in store.log() if each.position <= until)
    for _, entries in groupby(logged, key=lambda each: each.commit):
        of_commit = list(entries)
        said = [(each, each.entry) for each in of_commit if isinstance(each.entry, Bind)]
        binds = [bind for bind in (keep(each, entry) for each, entry in said) if bind is not None]
        if binds:
            yield of_commit[0].time, binds


def _plan(store: ArtifactStore, binds: list[Bind]) -> Callable[[Draft], None]:
    contents = {bind.cid: store.get(bind.cid) for bind in binds if bind.cid is not None}

    def plan(draft: Draft) -> None:
        for cid, data in contents.items():
            if data is not None:
                draft.put(Content(bytes(cid), crc32c(data), data))
        for bind in binds:
            draft.append(bind)

    return plan
