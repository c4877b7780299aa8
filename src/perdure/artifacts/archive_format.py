"""A history in one file, that another machine can take in.

    opening    magic, version, how many segments there are, and how long each is
    segments   each with its header and its frames, as they are on disk, without what is reserved
    footer     the last position, its seal, the root of the log's tree, four zeros
    digest     the SHA-256 of all that

The same history in the same state gives the same bytes on every machine. Content that the log
says was swept is zeros, also where its bytes happen to be still there.
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
CHANGED = "the archive was changed while it was being taken in. Fix: take it in again."

_MAGIC = b"PDarchiv"
_VERSION = 1
_OPENING = struct.Struct("<8sHHI")
_LENGTH = struct.Struct("<Q")
_FOOTER = struct.Struct("<Q32s32sI")
_ZEROS = bytes(SLICE)
_PREFIX = struct.Struct("<BI")
_MOST = 1 << 63
"""From here on, a number of 64 bits does not fit a signed integer."""


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
    """A part of a file, read as if it were a file of its own."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length

    @classmethod
    def rest_of(cls, file: BinaryIO) -> "FileSection":
        """Return what a file holds from where it stands to its end."""
        try:
            start = file.tell()
            return cls(file, start, file.seek(0, io.SEEK_END) - start)
        except io.UnsupportedOperation as error:
            raise ArchiveError(
                "an archive is read more than once, which a pipe can't be. Fix: save it to a file."
            ) from error

    def part(self, start: int, length: int) -> "FileSection":
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
    """A log from its beginning on, as far as it was walked. What can't be is `DamageError`.

    The chain of seals shows that nothing was changed since it was written. Here it is also looked
    at whether a store could have written it: a log from elsewhere may be sealed well and still be
    meant to harm.
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
        """Take in all frames of the log; once."""
        self.root = root_of(leaf_hashes(self._leaves(frames)))

    def is_swept(self, put: StoredPut) -> bool:
        """Whether the log itself says that these bytes are gone: they are zeros then."""
        return self._swept.get(put.digest, 0) > put.position

    def _leaves(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        for frame in frames:
            time = frame.head.time
            for record in self._take_in(frame):
                yield leaf(time, record)

    def _take_in(self, frame: Frame) -> list[bytes]:
        head = frame.head
        if max(head.time, head.epoch, head.last_position) >= _MOST:
            raise DamageError("a commit has a time, an epoch or a position that is no real one")
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
        """Refuse payload that no hash vouches for."""
        after = frame.payload
        for put in stored_puts(frame):
            if put.place != after or put.cid[:4] != self._prefix:
                raise DamageError(f"entry {put.position} puts what is no content of its commit")
            after += put.length
        if after != frame.payload + frame.head.payload_length:
            raise DamageError("a commit has bytes that no entry speaks of")

    def _check_entry(self, frame: Frame, position: int, record: bytes) -> None:
        entry = decode(record[0], record[_PREFIX.size :])
        match entry:
            case SnapshotAnchor(number, at, digest):
                expected = (self.snapshots + 1, self.end.position, self.end.seal)
                self._check(position, frame, fits=(number, at, digest) == expected)
                self.snapshots += 1
            case Sweep(horizon, cids):
                self._check(position, frame, fits=self._is_due(horizon, cids))
                self._horizon = horizon
                self._swept.update((cid.digest, position) for cid in cids)
            case Put(cid) | Lift(cid):
                self._hidden.pop(cid.digest, None)
            case Tombstone(cid, _):
                self._hidden.setdefault(cid.digest, frame.head.last_position)
            case Register(sid, encoded) if sid != CID.of(encoded, self._hash, Codec.DAG_CBOR):
                raise DamageError(f"entry {position} registers a structure under a wrong name")

    def _is_due(self, horizon: int, cids: Sequence[CID]) -> bool:
        """Whether a store would sweep this: what was hidden before, and nothing else."""
        if not self._horizon <= horizon <= self.end.position:
            return False
        names = [bytes(cid) for cid in cids]
        if names != sorted(set(names)) or not {name[:4] for name in names} <= {self._prefix}:
            return False
        return all(self._hidden.pop(name[4:], 0) for name in names)

    def _check(self, position: int, frame: Frame, *, fits: bool) -> None:
        """Refuse a snapshot or a sweep that is not alone, or not of the log before it."""
        if not fits or frame.head.entries != 1:
            raise DamageError(f"entry {position} is no snapshot or sweep of the log before it")


def zero_slices(put: StoredPut) -> Iterator[bytes]:
    """Yield what stands for content that was swept."""
    for at in range(0, put.length, SLICE):
        yield _ZEROS[: put.length - at]


# ---------------------------------------------------------------- an archive
@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of which every byte was checked.

    What its file gives later is not trusted more for that: who reads content checks it again.
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
        """Return the payload of a commit; `ArchiveError` if it changed meanwhile."""
        window = ReadWindow(self.sections[frame.segment], frame.end.offset)
        return b"".join(
            bytes(put.length) if self.survey.is_swept(put) else self._checked(window, put)
            for put in stored_puts(frame)
        )

    def _checked(self, window: ReadWindow, put: StoredPut) -> bytes:
        data = window.read(put.place, put.length)
        if self.hash.digest(data) != put.digest:
            raise ArchiveError(CHANGED)
        return data


def read_archive(source: BinaryIO, *, progress: Progress | None = None) -> Archive:
    """Read a file from where it stands to its end, and return only if it is a whole archive.

    All is checked: every hash, the chain and the tree's root. Anything else is `ArchiveError`.
    Memory does not grow with the file, but for the longest records of one commit and what was ever
    swept.
    """
    with archive_errors():
        return _Reading(FileSection.rest_of(source), progress or (lambda _done, _all: None)).run()


@contextmanager
def archive_errors() -> Iterator[None]:
    """Raise `ArchiveError` where stored bytes would be damaged."""
    try:
        yield
    except (DamageError, InvalidCIDError) as error:
        raise ArchiveError(
            f"the archive can't be taken in: {error}. Fix: get it again, whole and unchanged."
        ) from error


class _Reading:
    def __init__(self, source: FileSection, progress: Progress) -> None:
        self._source = source
        self._progress = progress
        self._total = 2 * source.size()
        self._sections: dict[int, FileSection] = {}

    def run(self) -> Archive:
        digest = self._check_digest()
        stop = self._open()
        footer = self._footer(stop)
        headers = {number: self._header(number) for number in self._sections}
        header = headers[1]
        survey = Survey(LogEnd.of(header), header.hash)
        if LogEnd.of(header)[2:] != (0, 0, 0, bytes(SEAL_BYTES)):
            raise DamageError("its first segment is not the beginning of a history")
        survey.walk(self._frames(headers))
        if footer != (survey.end.position, survey.end.seal, survey.root):
            raise DamageError("its last lines speak of another log")
        self._check_contents(headers, survey)
        return Archive(headers, digest, footer.encode(), self._source, self._sections, survey)

    def _check_digest(self) -> bytes:
        source, hasher = self._source, sha256()
        stop = source.size() - DIGEST_BYTES
        if source.read(0, len(_MAGIC)) != _MAGIC or stop < _OPENING.size:
            raise DamageError("it does not begin as an archive does")
        for at in range(0, stop, SLICE):
            hasher.update(source.read(at, min(SLICE, stop - at)))
            self._progress(min(at + SLICE, stop), self._total)
        if source.read(stop, DIGEST_BYTES) != hasher.digest():
            raise DamageError("it is not what was exported, by its own digest")
        return hasher.digest()

    def _open(self) -> int:
        """Find the segments, and return where they end."""
        source = self._source
        _, version, unused, count = _OPENING.unpack(source.read(0, _OPENING.size))
        if version != _VERSION or unused:
            raise DamageError(f"an archive of version {version} can't be read by this version")
        start: int = _OPENING.size + count * _LENGTH.size
        if not count or start > source.size():
            raise DamageError("it has no segments, or not room for as many as it says")
        lengths = source.read(_OPENING.size, count * _LENGTH.size)
        for number, (length,) in enumerate(_LENGTH.iter_unpack(lengths), 1):
            if length <= HEADER_BYTES or start + length > source.size():
                raise DamageError(f"there is no room in it for segment {number}")
            self._sections[number] = source.part(start, length)
            start += length
        return start

    def _footer(self, start: int) -> Footer:
        packed = self._source.read(start, _FOOTER.size)
        if len(packed) != _FOOTER.size:
            raise DamageError("it breaks off after its segments")
        *fields, unused = _FOOTER.unpack(packed)
        if unused or start + _FOOTER.size + DIGEST_BYTES != self._source.size():
            raise DamageError("it does not end where it should")
        return Footer(*fields)

    def _header(self, number: int) -> SegmentHeader:
        data = self._sections[number].read(0, HEADER_BYTES)
        header = decode_header(data)
        if header.number != number or header.encode() != data:
            raise DamageError(f"segment {number} begins as no store would begin it")
        return header

    def _frames(self, headers: Mapping[int, SegmentHeader]) -> Iterator[Frame]:
        end, history = LogEnd.of(headers[1]), headers[1].history
        for number, header in headers.items():
            begin = LogEnd.of(header)
            if begin[2:] != end[2:] or header[:2] != headers[1][:2]:
                raise DamageError(f"segment {number} does not follow on the one before it")
            end = begin
            for frame in SegmentReader(self._sections[number], history).frames(begin):
                yield frame
                end = frame.end
            if end.offset != self._sections[number].size():
                raise DamageError(f"segment {number} does not end with a commit")

    def _check_contents(self, headers: Mapping[int, SegmentHeader], survey: Survey) -> None:
        salt, done = salt_of(headers[1].history), self._source.size()
        for number, section in self._sections.items():
            window = ReadWindow(section)
            for frame in SegmentReader(section, headers[1].history).frames(
                LogEnd.of(headers[number])
            ):
                _check_outside(window, frame, salt)
                for put in stored_puts(frame):
                    _check_content(window, put, survey, headers[1].hash)
                self._progress(done + frame.end.offset, self._total)
            done += section.size()
        self._progress(self._total, self._total)


def _check_outside(window: ReadWindow, frame: Frame, salt: int) -> None:
    """Refuse what neither the seal nor the entries fix: the bits and bytes that are not used."""
    head = encode_head(frame.head, salt)
    unused = frame.head.length - frame.head.seal_offset - SEAL_BYTES
    padding = window.read(frame.offset + frame.head.length - unused, unused)
    if window.read(frame.offset, len(head)) != head or padding != bytes(unused):
        raise DamageError(f"the commit of entry {frame.head.last_position} has strange bytes in it")


def _check_content(window: ReadWindow, put: StoredPut, survey: Survey, algorithm: Hash) -> None:
    if survey.is_swept(put):
        if not is_erased(window, put):
            raise DamageError(f"entry {put.position} was swept, but its bytes are still there")
    elif not is_whole(window, put, algorithm):
        raise DamageError(f"the content of entry {put.position} is not what was put")
