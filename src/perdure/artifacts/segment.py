"""The format of a segment, a file of frames, and of a frame.

    header   128 bytes   the history, the segment's number, the state of the log before it
    frames               each begins at a multiple of 8
    zeros                reserved for the next frames

A frame is one commit:

    head      56 bytes   its position in the log, lengths and checksums
    records              the encoded log entries
    payload              the content that the entries put
    seal      32 bytes   the hash of the previous seal, the head and the records

The seal covers the payload too, because the records contain its hashes. One sync makes content,
log and chain durable together, and the last seal fixes everything before it.

The checksum of a head is salted with the random id of the history, so that content which looks like
a frame is never taken for one.
"""

import struct
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Protocol

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.artifacts.cid import Hash
from perdure.artifacts.entry import raw_puts, unpack_puts
from perdure.errors import DamageError

HEADER_BYTES = 128
HISTORY_BYTES = 16
HEAD_BYTES = 56
SEAL_BYTES = 32
FIRST_SEAL = b"\0" * SEAL_BYTES
ALIGNMENT = 8
MAGIC = b"PDfr"
SLICE = 1 << 20

_VERSION = 1
_HEAD = struct.Struct("<4sHHQQQIIQI")
_LONGEST_RECORDS = 1 << 30
_MAGIC = b"PDsegmnt"
_HEADER = struct.Struct("<8sHHI16sQQQ32s")
_CRC = struct.Struct("<I")
_PREFIX = "segment-"
_FIRST_WINDOW = 1 << 12
_WINDOW = 1 << 18
_BLANK = bytes(1 << 16)
_NEW = tuple.__new__
"""Creates a named tuple in a third of the time."""


class ReadableFile(Protocol):
    """A file that can be read at an offset."""

    def read(self, offset: int, length: int) -> bytes: ...

    def size(self) -> int: ...


# ---------------------------------------------------------------- heads and seals
class FrameHead(NamedTuple):
    """The head of a frame; the fields are stored in this order."""

    first_position: int
    """The position of its first entry; it also names the payload as a block."""
    time: int
    """Milliseconds since the epoch; never less than in the previous frame."""
    epoch: int
    """Increases each time that another writer appends."""
    entries: int
    records_length: int
    payload_length: int
    records_crc: int

    @property
    def last_position(self) -> int:
        return self.first_position + self.entries - 1

    @property
    def payload_offset(self) -> int:
        return HEAD_BYTES + self.records_length

    @property
    def seal_offset(self) -> int:
        return HEAD_BYTES + self.records_length + self.payload_length

    @property
    def length(self) -> int:
        """Includes the padding after which the next frame begins at a multiple of 8."""
        whole = self.seal_offset + SEAL_BYTES
        return whole + -whole % ALIGNMENT


def encode_head(head: FrameHead, salt: int) -> bytes:
    packed = _HEAD.pack(MAGIC, _VERSION, 0, *head)
    return packed + _CRC.pack(extend_crc32c(salt, packed))


def decode_head(data: bytes, salt: int) -> FrameHead | None:
    """Decode a head; None if nothing was ever written there.

    Raises `DamageError` for any other bytes.
    """
    if not data.startswith(MAGIC) and not any(data[:HEAD_BYTES]):
        return None
    if len(data) < HEAD_BYTES:
        raise DamageError("the head of a frame is truncated")
    packed, crc = data[: _HEAD.size], data[_HEAD.size : HEAD_BYTES]
    if _CRC.unpack(crc)[0] != extend_crc32c(salt, packed):
        raise DamageError("the head of a frame fails its checksum")
    fields = _HEAD.unpack(packed)
    if fields[:2] != (MAGIC, _VERSION):
        raise DamageError(f"a frame of version {fields[1]} can't be read by this version")
    head = _NEW(FrameHead, fields[3:])
    if not head.entries or not head.first_position or head.records_length > _LONGEST_RECORDS:
        raise DamageError("the head of a frame has impossible values")
    return head


def salt_of(history: bytes) -> int:
    return int(crc32c(history))


def seal(previous: bytes, head: bytes, records: bytes) -> bytes:
    """Return the seal of a frame, which chains it to the previous one."""
    return sha256(previous + head + records).digest()


def records_checksum(records: bytes) -> int:
    """Return the checksum of the records that the head has."""
    return int(crc32c(records))


# ---------------------------------------------------------------- segments
class SegmentHeader(NamedTuple):
    """The header of a segment, with the state of the log before its first frame."""

    history: bytes
    """The random id of the history."""
    hash: Hash
    number: int
    position: int
    time: int
    epoch: int
    seal: bytes
    """The seal of the last frame before it."""

    def encode(self) -> bytes:
        history, algorithm, number, *rest = self
        packed = _HEADER.pack(_MAGIC, _VERSION, algorithm.value, number, history, *rest)
        padded = packed.ljust(HEADER_BYTES - _CRC.size, b"\0")
        return padded + _CRC.pack(crc32c(padded))


def decode_header(data: bytes) -> SegmentHeader:
    """Decode the header of a segment; raises `DamageError` for any other bytes."""
    body, crc = data[: HEADER_BYTES - _CRC.size], data[HEADER_BYTES - _CRC.size : HEADER_BYTES]
    if len(crc) != _CRC.size or _CRC.unpack(crc)[0] != crc32c(body):
        raise DamageError("the header of the segment fails its checksum")
    magic, version, hash_, number, *rest = _HEADER.unpack_from(body)
    if magic != _MAGIC or version != _VERSION:
        raise DamageError(f"a segment of version {version} can't be read by this version")
    try:
        algorithm = Hash(hash_)
    except ValueError as error:
        raise DamageError("the segment names an unknown hash") from error
    history, *before = rest
    return SegmentHeader(history, algorithm, number, *before)


def segment_name(number: int) -> str:
    return f"{_PREFIX}{number:08d}"


def segment_number(name: str) -> int | None:
    """Return the number of the segment with this name; None if it is not a segment's."""
    number = name.removeprefix(_PREFIX)
    return int(number) if number != name and number.isascii() and number.isdigit() else None


class LogEnd(NamedTuple):
    """The end of a log, with everything that the next frame depends on."""

    segment: int
    offset: int
    position: int
    time: int
    epoch: int
    seal: bytes

    @classmethod
    def of(cls, header: SegmentHeader) -> "LogEnd":
        """Return the end of the log before the first frame of this segment."""
        _, _, number, position, time, epoch, seal_ = header
        return cls(number, HEADER_BYTES, position, time, epoch, seal_)


class Frame(NamedTuple):
    """A frame without its payload, which stays on disk."""

    segment: int
    offset: int
    head: FrameHead
    records: bytes
    seal: bytes

    @property
    def payload(self) -> int:
        return self.offset + self.head.payload_offset

    @property
    def end(self) -> LogEnd:
        segment, offset, head, _, sealed = self
        first, time, epoch, entries, records, payload, _ = head
        stop = offset + HEAD_BYTES + records + payload + SEAL_BYTES
        stop += -stop % ALIGNMENT  # as frames begin at multiples of it
        return _NEW(LogEnd, (segment, stop, first + entries - 1, time, epoch, sealed))


class SegmentReader:
    """Reads the frames of one segment, many of them with one read of the file."""

    def __init__(self, file: ReadableFile, history: bytes) -> None:
        self._file = file
        self._salt = salt_of(history)
        self._start = 0
        self._window = b""
        self._next_window = _FIRST_WINDOW
        self._size = 0

    def frame(self, end: LogEnd) -> Frame | None:
        """Return the frame after `end`; None if nothing was ever written there.

        Raises `DamageError` for any other bytes. The payload is not checked.
        """
        segment, offset, position, time, epoch, sealed = end
        packed = self._bytes(offset, HEAD_BYTES)
        head = decode_head(packed, self._salt)
        if head is None:
            return None
        first, later, next_epoch, _, length, payload, crc = head
        if first != position + 1:
            raise DamageError(f"entry {first} follows entry {position}")
        if later < time or next_epoch < epoch:
            raise DamageError("the log goes back in time")
        ending = offset + HEAD_BYTES + length + payload
        if ending + SEAL_BYTES > self._size:
            self._size = self._file.size()
        if ending + SEAL_BYTES > self._size:
            raise DamageError("a frame is longer than its file")
        records = self._bytes(offset + HEAD_BYTES, length)
        if records_checksum(records) != crc:
            raise DamageError("the records of a frame fail their checksum")
        found = self._bytes(ending, SEAL_BYTES)
        if found != seal(sealed, packed, records):
            raise DamageError("the seal of a frame does not follow from the previous one")
        return _NEW(Frame, (segment, offset, head, records, found))

    def ends_at(self, offset: int, end: LogEnd) -> bool:
        """Whether the frame at `offset` seems to be the last before `end`."""
        head = self._head_in(self._bytes(offset, HEAD_BYTES))
        if head is None or offset + head.length != end.offset:
            return False
        at = (head.last_position, head.time, head.epoch)
        sealed = self._bytes(offset + head.seal_offset, SEAL_BYTES)
        return (*at, sealed) == end[2:]

    def frames(self, end: LogEnd) -> Iterator[Frame]:
        while frame := self.frame(end):
            yield frame
            end = frame.end

    def frame_at(self, segment: int, offset: int) -> Frame | None:
        """Return the frame at an offset, without checking its seal; None if it is incomplete."""
        head = self._head_in(self._bytes(offset, HEAD_BYTES))
        if head is None or offset + head.seal_offset + SEAL_BYTES > self._file.size():
            return None
        records = self._bytes(offset + HEAD_BYTES, head.records_length)
        if records_checksum(records) != head.records_crc:
            return None
        sealed = self._bytes(offset + head.seal_offset, SEAL_BYTES)
        return Frame(segment, offset, head, records, sealed)

    def search(self, end: LogEnd) -> int | None:
        """Return the offset of a frame that was written after the one that follows `end`.

        Used if that one can't be read, to find out whether it was the last.
        """
        head = self._head_in(self._bytes(end.offset, HEAD_BYTES))
        offset = end.offset + (head.length if head else ALIGNMENT)
        at = offset + -offset % ALIGNMENT
        size = self._file.size()
        while at < size:
            data = self._file.read(at, SLICE + HEAD_BYTES)
            found = data.find(MAGIC)
            while 0 <= found < SLICE:
                packed = data[found : found + HEAD_BYTES]
                head = None if found % ALIGNMENT else self._head_in(packed)
                # Content can contain older frames of this history: an archive of it.
                if head and head.first_position >= end.position + 2:
                    return at + found
                found = data.find(MAGIC, found + 1)
            at += SLICE
        return None

    def _head_in(self, data: bytes) -> FrameHead | None:
        """Return the head in these bytes; None if there is none, or it is damaged."""
        try:
            return decode_head(data[:HEAD_BYTES], self._salt)
        except DamageError:
            return None

    def is_blank(self, offset: int) -> bool:
        for at in range(offset, self._file.size(), len(_BLANK)):
            data = self._file.read(at, len(_BLANK))
            if data != _BLANK[: len(data)]:
                return False
        return True

    def _bytes(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._window):
            if length > _WINDOW:
                return self._file.read(offset, length)
            self._start, at = offset, 0
            self._window = self._file.read(offset, max(length, self._next_window))
            self._next_window = min(self._next_window * 2, _WINDOW)
        return self._window[at : at + length]


# ---------------------------------------------------------------- contents
class StoredPut(NamedTuple):
    """A put of a frame, and where in the segment its bytes are."""

    position: int
    cid: bytes
    crc: int
    place: int
    length: int

    @property
    def digest(self) -> bytes:
        return self.cid[4:]


def packed_puts(frame: Frame) -> list[tuple[int, int, bytes, int, int, int]] | None:
    """Return the entries of a frame that has only puts, as most do; None for any other."""
    return unpack_puts(frame.records, frame.head.entries)


def stored_puts(frame: Frame) -> list[StoredPut]:
    return split_records(frame)[0]


def split_records(
    frame: Frame, kinds: frozenset[int] = frozenset()
) -> tuple[list[StoredPut], list[tuple[int, int, bytes]]]:
    """Return the puts of a frame, and position, kind and body of its entries of some kinds."""
    first, payload = frame.head.first_position, frame.payload
    raw, others = raw_puts(frame.records, first, kinds)
    puts = [
        _NEW(StoredPut, (position, cid, crc, payload + offset, length))
        for position, cid, offset, length, crc in raw
    ]
    return puts, others


class ReadWindow:
    """Reads a file sequentially, in large reads, and never beyond an offset."""

    def __init__(self, file: ReadableFile, stop: int | None = None) -> None:
        self._file = file
        self._stop = file.size() if stop is None else stop
        self._start = 0
        self._data = b""

    def read(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._data):
            self._start, at = offset, 0
            ahead = min(SLICE, self._stop - offset)
            self._data = self._file.read(offset, max(length, ahead))
        return self._data[at : at + length]

    def slices(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield these bytes in slices; fewer where the file ends."""
        for at in range(offset, offset + length, SLICE):
            yield self.read(at, min(SLICE, offset + length - at))


def is_whole(window: ReadWindow, put: StoredPut, algorithm: Hash) -> bool:
    """Whether the stored bytes are those that the CID names."""
    _, cid, checksum, place, length = put
    if length <= SLICE:
        data = window.read(place, length)
        return algorithm.hasher(data).digest() == cid[4:] and crc32c(data) == checksum
    hasher, crc = algorithm.hasher(), 0
    for data in window.slices(put.place, put.length):
        hasher.update(data)
        crc = extend_crc32c(crc, data)
    return hasher.digest() == put.digest and crc == put.crc


def is_erased(window: ReadWindow, put: StoredPut) -> bool:
    """Whether the stored bytes are all zeros."""
    found = 0
    for data in window.slices(put.place, put.length):
        if data.count(0) != len(data):
            return False
        found += len(data)
    return found == put.length


def damaged_puts(
    window: ReadWindow, frame: Frame, puts: Iterable[StoredPut], algorithm: Hash
) -> list[StoredPut]:
    """Return those of a frame's puts whose bytes in the payload are damaged."""
    start, size = frame.payload, frame.head.payload_length
    if size > SLICE or algorithm is not Hash.SHA2_256:
        stop = start + size
        return [
            put
            for put in puts
            if put.place + put.length > stop or not is_whole(window, put, algorithm)
        ]
    payload, found = window.read(start, size), list[StoredPut]()
    for put in puts:  # inlined: a call for each would take 10% longer
        _, cid, checksum, place, length = put
        data = payload[place - start : place - start + length]
        if sha256(data).digest() != cid[4:] or len(data) != length or crc32c(data) != checksum:
            found.append(put)
    return found
