"""A file of frames: how it begins, and how its frames are found.

header   128 bytes   whose history, which segment, where the log and its chain stood
frames               one after the other, each beginning at a multiple of 8
zeros                reserved for the next ones
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from google_crc32c import value as crc32c

from perdure.artifacts.cid import Hash
from perdure.artifacts.disk import File
from perdure.artifacts.frame import (
    ALIGNMENT,
    HEAD_BYTES,
    MAGIC,
    SEAL_BYTES,
    Head,
    decode_head,
    records_checksum,
    salt_of,
    seal,
)
from perdure.errors import DamageError

HEADER_BYTES = 128
HISTORY_BYTES = 16

_MAGIC = b"PDsegmnt"
_VERSION = 1
_HEADER = struct.Struct("<8sHHI16sQQQ32s")
_CRC = struct.Struct("<I")
_PREFIX = "segment-"
_FIRST_WINDOW = 1 << 12
_WINDOW = 1 << 18
_SEARCH = 1 << 20
_BLANK = bytes(1 << 16)


class Header(NamedTuple):
    """Where a segment stands."""

    history: bytes
    """Random, made once for a history."""
    hash: Hash
    number: int
    position: int
    """The last one before it."""
    time: int
    epoch: int
    seal: bytes
    """That of the last frame before it."""

    def encode(self) -> bytes:
        packed = _HEADER.pack(
            _MAGIC,
            _VERSION,
            self.hash.value,
            self.number,
            self.history,
            self.position,
            self.time,
            self.epoch,
            self.seal,
        )
        padded = packed.ljust(HEADER_BYTES - _CRC.size, b"\0")
        return padded + _CRC.pack(crc32c(padded))


def decode_header(data: bytes) -> Header:
    """Read the beginning of a segment; anything else is `DamageError`."""
    body, crc = data[: HEADER_BYTES - _CRC.size], data[HEADER_BYTES - _CRC.size : HEADER_BYTES]
    if len(crc) != _CRC.size or _CRC.unpack(crc)[0] != crc32c(body):
        raise DamageError("the beginning of the segment fails its checksum")
    magic, version, hash_, number, *rest = _HEADER.unpack_from(body)
    if magic != _MAGIC or version != _VERSION:
        raise DamageError(f"a segment of version {version} can't be read by this version")
    try:
        algorithm = Hash(hash_)
    except ValueError as error:
        raise DamageError("the segment names a hash that is none of ours") from error
    history, position, time, epoch, seal_ = rest
    return Header(history, algorithm, number, position, time, epoch, seal_)


def segment_name(number: int) -> str:
    return f"{_PREFIX}{number:08d}"


def segment_number(name: str) -> int | None:
    """Return the number of the segment of this name; None if it is no segment's."""
    number = name.removeprefix(_PREFIX)
    return int(number) if number != name and number.isascii() and number.isdigit() else None


class End(NamedTuple):
    """How far a log goes, and all that the next frame depends on."""

    segment: int
    offset: int
    position: int
    time: int
    epoch: int
    seal: bytes

    @classmethod
    def of(cls, header: Header) -> "End":
        """Return where a log stands before the first frame of this segment."""
        _, _, number, position, time, epoch, seal_ = header
        return cls(number, HEADER_BYTES, position, time, epoch, seal_)


class Frame(NamedTuple):
    """A whole frame, but for its payload, which stays where it is."""

    segment: int
    offset: int
    head: Head
    records: bytes
    seal: bytes

    @property
    def payload(self) -> int:
        """Where in the file its payload begins."""
        return self.offset + self.head.payload_offset

    @property
    def end(self) -> End:
        segment, offset, head, _, sealed = self
        position = head.first_position + head.entries - 1
        return End(segment, offset + head.length, position, head.time, head.epoch, sealed)


class Reader:
    """Reads the frames of one segment, many of them with one look at the disk."""

    def __init__(self, file: File, history: bytes) -> None:
        self._file = file
        self._salt = salt_of(history)
        self._start = 0
        self._window = b""
        self._next_window = _FIRST_WINDOW

    def frame(self, end: End) -> Frame | None:
        """Return the frame that follows `end`; None if nothing was ever written there.

        What is neither is `DamageError`. That the payload is whole is not checked.
        """
        packed = self._bytes(end.offset, HEAD_BYTES)
        head = decode_head(packed, self._salt)
        if head is None:
            return None
        if head.first_position != end.position + 1:
            raise DamageError(f"entry {head.first_position} follows on entry {end.position}")
        if head.time < end.time or head.epoch < end.epoch:
            raise DamageError("the log goes back in time")
        if end.offset + head.seal_offset + SEAL_BYTES > self._file.size():
            raise DamageError("a frame is longer than the file that it is in")
        records = self._bytes(end.offset + HEAD_BYTES, head.records_length)
        if records_checksum(records) != head.records_crc:
            raise DamageError("the records of a frame fail their checksum")
        found = self._bytes(end.offset + head.seal_offset, SEAL_BYTES)
        if found != seal(end.seal, packed, records):
            raise DamageError("a frame is not sealed to the one before it")
        return Frame(end.segment, end.offset, head, records, found)

    def ends_at(self, offset: int, end: End) -> bool:
        """Whether the frame at `offset` is the last before `end`, to all appearance."""
        try:
            head = decode_head(self._bytes(offset, HEAD_BYTES), self._salt)
        except DamageError:
            return False
        if head is None or offset + head.length != end.offset:
            return False
        at = (head.last_position, head.time, head.epoch)
        sealed = self._bytes(offset + head.seal_offset, SEAL_BYTES)
        return (*at, sealed) == end[2:]

    def frames(self, end: End) -> Iterator[Frame]:
        """Yield the frames that follow `end` in this segment."""
        while frame := self.frame(end):
            yield frame
            end = frame.end

    def frame_at(self, segment: int, offset: int) -> Frame | None:
        """Return the frame that begins there, whatever was before it; None if it is not whole."""
        try:
            head = decode_head(self._bytes(offset, HEAD_BYTES), self._salt)
        except DamageError:
            return None
        if head is None or offset + head.seal_offset + SEAL_BYTES > self._file.size():
            return None
        records = self._bytes(offset + HEAD_BYTES, head.records_length)
        if records_checksum(records) != head.records_crc:
            return None
        sealed = self._bytes(offset + head.seal_offset, SEAL_BYTES)
        return Frame(segment, offset, head, records, sealed)

    def search(self, end: End) -> int | None:
        """Return where a frame begins that was written after the one that follows `end`.

        For when that one can't be read: then this tells whether it was the last.
        """
        try:
            head = decode_head(self._bytes(end.offset, HEAD_BYTES), self._salt)
        except DamageError:
            head = None
        return self._search(end.offset + (head.length if head else ALIGNMENT), end.position + 2)

    def _search(self, offset: int, position: int) -> int | None:
        at = offset + -offset % ALIGNMENT
        size = self._file.size()
        while at < size:
            data = self._file.read(at, _SEARCH + HEAD_BYTES)
            found = data.find(MAGIC)
            while 0 <= found < _SEARCH:
                head = self._head_in(data, found) if found % ALIGNMENT == 0 else None
                # Content can hold older frames of this very history: an archive of it.
                if head and head.first_position >= position:
                    return at + found
                found = data.find(MAGIC, found + 1)
            at += _SEARCH
        return None

    def _head_in(self, data: bytes, at: int) -> Head | None:
        try:
            return decode_head(data[at : at + HEAD_BYTES], self._salt)
        except DamageError:
            return None

    def is_blank(self, offset: int) -> bool:
        """Whether nothing but zeros follows."""
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
