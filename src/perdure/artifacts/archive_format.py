"""The format of an archive: a history in one file, which another machine can import.

    opening    magic, version, the number of segments, and the length of each
    segments   each with its header and its frames, as they are on disk, without reserved space
    footer     the last position, its seal, the root of the log's tree, four zeros
    digest     the SHA-256 of all that

The same history in the same state gives the same bytes on every machine. Content that was swept is
zeros, even if its bytes were not erased yet.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.entry import (
    IndexState,
    Lift,
    Put,
    Register,
    SnapshotAnchor,
    Sweep,
    Tombstone,
    decode,
    whole_records,
)
from perdure.artifacts.merkle import EMPTY_ROOT, leaf, leaf_hashes, root_of
from perdure.artifacts.segment import (
    HEADER_BYTES,
    SEAL_BYTES,
    SLICE,
    Frame,
    LogEnd,
    ReadWindow,
    SegmentHeader,
    SegmentReader,
    StoredPut,
    decode_header,
    encode_head,
    is_erased,
    is_whole,
    packed_puts,
    salt_of,
    stored_puts,
)
from perdure.artifacts.verification import Progress
from perdure.dataclass import dataclass
from perdure.errors import ArchiveError, DamageError, InvalidCIDError

DIGEST_BYTES = 32
CHANGED = "the archive was changed while it was being imported. Fix: import it again."

_MAGIC = b"PDarchiv"
_VERSION = 1
_OPENING = struct.Struct("<8sHHI")
_LENGTH = struct.Struct("<Q")
_FOOTER = struct.Struct("<Q32s32sI")
_ZEROS = bytes(SLICE)
_PREFIX = struct.Struct("<BI")
_MOST = 1 << 63
"""The first number that does not fit a signed integer of 64 bits."""


def encode_opening(lengths: list[int]) -> bytes:
    packed = _OPENING.pack(_MAGIC, _VERSION, 0, len(lengths))
    return packed + b"".join(map(_LENGTH.pack, lengths))


class Footer(NamedTuple):
    position: int
    seal: bytes
    root: bytes

    def encode(self) -> bytes:
        return _FOOTER.pack(*self, 0)


# ---------------------------------------------------------------- bytes
class FileSection:
    """A section of a file, read as if it were a file of its own."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length

    @classmethod
    def rest_of(cls, file: BinaryIO) -> "FileSection":
        """Return the section from the current offset of a file to its end."""
        try:
            start = file.tell()
            return cls(file, start, file.seek(0, io.SEEK_END) - start)
        except io.UnsupportedOperation as error:
            raise ArchiveError(
                "an archive is read more than once, but a pipe can't be. Fix: save it to a file."
            ) from error

    def section(self, start: int, length: int) -> "FileSection":
        return FileSection(self._file, self._start + start, length)

    def read(self, offset: int, length: int) -> bytes:
        length = max(0, min(length, self._length - offset))
        self._file.seek(self._start + offset)
        data = self._file.read(length)
        while len(data) < length and (more := self._file.read(length - len(data))):
            data += more
        return data

    def size(self) -> int:
        return self._length


# ---------------------------------------------------------------- a log from its beginning
class Survey:
    """A log from its beginning on, as far as `walk` read it; raises `DamageError` for a bad one.

    The chain of seals shows that nothing was changed since it was written. A survey also checks
    that a store could have written it: a log from elsewhere may have valid seals and still be
    malicious.
    """

    def __init__(self, begin: LogEnd, algorithm: Hash) -> None:
        self.end = begin
        self.root = EMPTY_ROOT
        self.snapshots = 0
        self.stops: dict[int, int] = {}
        """Where the frames of each segment end."""
        self._swept: dict[bytes, int] = {}
        self._hidden: dict[bytes, int] = {}
        self._horizon = 0
        self._hash = algorithm
        self._prefix = bytes(CID(bytes(32), algorithm, Codec.RAW))[:4]

    def walk(self, frames: Iterable[Frame]) -> None:
        """Check all frames of the log. Call it once."""
        leaves = (leaf(frame.head.time, each) for frame in frames for each in self._check(frame))
        self.root = root_of(leaf_hashes(leaves))

    def is_swept(self, put: StoredPut) -> bool:
        """Whether the log says that these bytes are erased, so that they are zeros."""
        return self._swept.get(put.digest, 0) > put.position

    def _check(self, frame: Frame) -> list[bytes]:
        """Check the next frame, and return its encoded entries."""
        head = frame.head
        if max(head.time, head.epoch, head.last_position) >= _MOST:
            raise DamageError("a commit has an impossible time, epoch or position")
        records = whole_records(frame.records)
        if len(records) != head.entries:
            raise DamageError(f"a commit of {head.entries} entries has {len(records)}")
        self._check_puts(frame)
        if packed_puts(frame) is None:
            for position, record in enumerate(records, head.first_position):
                self._check_entry(frame, position, record)
        elif self._hidden:
            for put in stored_puts(frame):
                self._hidden.pop(put.digest, None)
        self.end = frame.end
        self.stops[frame.segment] = frame.end.offset
        return records

    def _check_puts(self, frame: Frame) -> None:
        """Refuse payload that no hash covers."""
        after = frame.payload
        for put in stored_puts(frame):
            if put.place != after or put.cid[:4] != self._prefix:
                raise DamageError(f"entry {put.position} puts content that its commit lacks")
            after += put.length
        if after != frame.payload + frame.head.payload_length:
            raise DamageError("a commit has bytes that no entry puts")

    def _check_entry(self, frame: Frame, position: int, record: bytes) -> None:
        is_valid = True
        match decode(record[0], record[_PREFIX.size :]):
            case SnapshotAnchor(number, at, digest):
                expected = (self.snapshots + 1, self.end.position, self.end.seal)
                is_valid = (number, at, digest) == expected and frame.head.entries == 1
                self.snapshots += 1
            case Sweep(horizon, cids):
                is_valid = self._is_due(horizon, cids) and frame.head.entries == 1
                self._horizon = horizon
                self._swept.update((cid.digest, position) for cid in cids)
            case Put(cid) | Lift(cid):
                self._hidden.pop(cid.digest, None)
            case Tombstone(cid, _):
                self._hidden.setdefault(cid.digest, frame.head.last_position)
            case Register(sid, encoded) if sid != CID.of(encoded, self._hash, Codec.DAG_CBOR):
                raise DamageError(f"entry {position} registers a structure under a wrong SID")
        if not is_valid:
            raise DamageError(f"entry {position} is not a snapshot or sweep of the log before it")

    def _is_due(self, horizon: int, cids: Sequence[CID]) -> bool:
        """Whether a store would sweep these contents: those that were hidden, and no others."""
        if not self._horizon <= horizon <= self.end.position:
            return False
        names = [bytes(cid) for cid in cids]
        if names != sorted(set(names)) or not {name[:4] for name in names} <= {self._prefix}:
            return False
        return all(self._hidden.pop(name[4:], 0) for name in names)


def zero_slices(put: StoredPut) -> Iterator[bytes]:
    """Yield the zeros that replace swept content."""
    for at in range(0, put.length, SLICE):
        yield _ZEROS[: put.length - at]


# ---------------------------------------------------------------- an archive
@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of which every byte was checked.

    The file may change later, so content is checked again when it is read.
    """

    headers: Mapping[int, SegmentHeader]
    """By the number of the segment."""
    digest: bytes
    footer: bytes
    source: FileSection
    sections: Mapping[int, FileSection]
    survey: Survey

    @property
    def history(self) -> bytes:
        return self.headers[1].history

    @property
    def hash(self) -> Hash:
        return self.headers[1].hash

    @property
    def end(self) -> LogEnd:
        return self.survey.end

    @property
    def state(self) -> IndexState:
        return IndexState(self.survey.snapshots, self.end.position)

    @property
    def size(self) -> int:
        return self.source.size()

    def frames(self, after: int = 0) -> Iterator[Frame]:
        with archive_errors():
            for number, section in self.sections.items():
                following = self.headers.get(number + 1)
                if following is not None and following.position <= after:
                    continue
                begin = LogEnd.of(self.headers[number])
                for frame in SegmentReader(section, self.history).frames(begin):
                    if frame.head.last_position > after:
                        yield frame

    def seal_at(self, position: int) -> bytes | None:
        for frame in self.frames(after=position - 1):
            return frame.seal if frame.head.last_position == position else None
        return None

    def payload(self, frame: Frame) -> bytes:
        """Return the payload of a commit; `ArchiveError` if the file changed meanwhile."""
        window = ReadWindow(self.sections[frame.segment], frame.end.offset)
        contents = []
        for put in stored_puts(frame):
            is_swept = self.survey.is_swept(put)
            data = bytes(put.length) if is_swept else window.read(put.place, put.length)
            if not is_swept and self.hash.digest(data) != put.digest:
                raise ArchiveError(CHANGED)
            contents.append(data)
        return b"".join(contents)


@contextmanager
def archive_errors() -> Iterator[None]:
    """Raise `ArchiveError` for damaged bytes."""
    try:
        yield
    except (DamageError, InvalidCIDError) as error:
        raise ArchiveError(
            f"the archive can't be imported: {error}. Fix: get it again, complete and unchanged."
        ) from error


def read_archive(source: BinaryIO, *, progress: Progress | None = None) -> Archive:
    """Read a file from its current offset to its end, as an archive.

    Checks every hash, the chain of seals and the root of the tree; raises `ArchiveError` if it is
    not a valid archive. Memory does not grow with the file, except for the longest records of one
    commit and the list of swept contents.
    """
    report = progress or (lambda _done, _all: None)
    with archive_errors():
        file = FileSection.rest_of(source)
        digest = _check_digest(file, report)
        sections, stop = _find_segments(file)
        footer = _read_footer(file, stop)
        headers = {number: _read_header(number, each) for number, each in sections.items()}
        begin = LogEnd.of(headers[1])
        if begin[2:] != (0, 0, 0, bytes(SEAL_BYTES)):
            raise DamageError("its first segment is not the beginning of a history")
        survey = Survey(begin, headers[1].hash)
        archive = Archive(headers, digest, footer.encode(), file, sections, survey)
        survey.walk(_frames(archive))
        if footer != (survey.end.position, survey.end.seal, survey.root):
            raise DamageError("its footer is of another log")
        _check_contents(archive, report)
        return archive


def _check_digest(file: FileSection, progress: Progress) -> bytes:
    hasher, stop = sha256(), file.size() - DIGEST_BYTES
    if file.read(0, len(_MAGIC)) != _MAGIC or stop < _OPENING.size:
        raise DamageError("it does not begin like an archive")
    for at in range(0, stop, SLICE):
        hasher.update(file.read(at, min(SLICE, stop - at)))
        progress(min(at + SLICE, stop), 2 * file.size())
    if file.read(stop, DIGEST_BYTES) != hasher.digest():
        raise DamageError("its content does not match its digest")
    return hasher.digest()


def _find_segments(file: FileSection) -> tuple[dict[int, FileSection], int]:
    """Return the segments by number, and where they end."""
    sections: dict[int, FileSection] = {}
    _, version, unused, count = _OPENING.unpack(file.read(0, _OPENING.size))
    if version != _VERSION or unused:
        raise DamageError(f"an archive of version {version} can't be read by this version")
    start: int = _OPENING.size + count * _LENGTH.size
    if not count or start > file.size():
        raise DamageError("it has no segments, or is too short for them")
    lengths = file.read(_OPENING.size, count * _LENGTH.size)
    for number, (length,) in enumerate(_LENGTH.iter_unpack(lengths), 1):
        if length <= HEADER_BYTES or start + length > file.size():
            raise DamageError(f"it is too short for segment {number}")
        sections[number] = file.section(start, length)
        start += length
    return sections, start


def _read_footer(file: FileSection, start: int) -> Footer:
    packed = file.read(start, _FOOTER.size)
    if len(packed) != _FOOTER.size:
        raise DamageError("it is truncated after its segments")
    *fields, unused = _FOOTER.unpack(packed)
    if unused or start + _FOOTER.size + DIGEST_BYTES != file.size():
        raise DamageError("bytes follow its footer")
    return Footer(*fields)


def _read_header(number: int, section: FileSection) -> SegmentHeader:
    data = section.read(0, HEADER_BYTES)
    header = decode_header(data)
    if header.number != number or header.encode() != data:
        raise DamageError(f"segment {number} has a header that no store would write")
    return header


def _frames(archive: Archive) -> Iterator[Frame]:
    first = archive.headers[1]
    end = LogEnd.of(first)
    for number, header in archive.headers.items():
        begin, section = LogEnd.of(header), archive.sections[number]
        if begin[2:] != end[2:] or header[:2] != first[:2]:
            raise DamageError(f"segment {number} does not follow the previous one")
        end = begin
        for frame in SegmentReader(section, first.history).frames(begin):
            yield frame
            end = frame.end
        if end.offset != section.size():
            raise DamageError(f"segment {number} does not end with a commit")


def _check_contents(archive: Archive, progress: Progress) -> None:
    salt, done, total = salt_of(archive.history), archive.size, 2 * archive.size
    for number, section in archive.sections.items():
        window, begin = ReadWindow(section), LogEnd.of(archive.headers[number])
        for frame in SegmentReader(section, archive.history).frames(begin):
            _check_unused_bytes(window, frame, salt)
            for put in stored_puts(frame):
                _check_content(window, put, archive)
            progress(done + frame.end.offset, total)
        done += section.size()
    progress(total, total)


def _check_unused_bytes(window: ReadWindow, frame: Frame, salt: int) -> None:
    """Refuse unused bits and bytes that are set: neither the seal nor the entries cover them."""
    head = encode_head(frame.head, salt)
    unused = frame.head.length - frame.head.seal_offset - SEAL_BYTES
    padding = window.read(frame.offset + frame.head.length - unused, unused)
    if window.read(frame.offset, len(head)) != head or padding != bytes(unused):
        raise DamageError(f"unused bytes of the commit of entry {frame.head.last_position} are set")


def _check_content(window: ReadWindow, put: StoredPut, archive: Archive) -> None:
    if archive.survey.is_swept(put):
        if not is_erased(window, put):
            raise DamageError(f"entry {put.position} was swept, but its bytes are not erased")
    elif not is_whole(window, put, archive.hash):
        raise DamageError(f"the content of entry {put.position} is not what was put")
