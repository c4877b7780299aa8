"""One commit, as it stands in a segment: head, records, payload, seal.

    head      56 bytes   where it stands in the log, how long its parts are, and checksums
    records              the log's entries, one after the other
    payload              the bytes that the entries speak of
    seal      32 bytes   the hash of the previous seal, the head and the records

The seal covers the payload too, because the records carry its hashes. So one sync makes content,
log and chain durable together, and the last seal fixes everything before it.

The checksum of a head is salted with the history's own random id. So content that looks like a
frame is never taken for one, whoever wrote it.
"""

import struct
from hashlib import sha256
from typing import NamedTuple

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.errors import DamageError

HEAD_BYTES = 56
SEAL_BYTES = 32
FIRST_SEAL = b"\0" * SEAL_BYTES
ALIGNMENT = 8
MAGIC = b"PDfr"

_VERSION = 1
_HEAD = struct.Struct("<4sHHQQQIIQI")
_CRC = struct.Struct("<I")
_LONGEST_RECORDS = 1 << 30


class Head(NamedTuple):
    """How to read a frame."""

    first_position: int
    """The position of its first entry; it also names the frame's payload as a block."""
    time: int
    """Milliseconds since the epoch; never before that of the frame before."""
    epoch: int
    """Which turn of the writers' lock wrote it."""
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
        """With the padding that lets the next frame begin at a multiple of 8."""
        whole = HEAD_BYTES + self.records_length + self.payload_length + SEAL_BYTES
        return whole + -whole % ALIGNMENT


def encode_head(head: Head, salt: int) -> bytes:
    packed = _HEAD.pack(
        MAGIC,
        _VERSION,
        0,
        head.first_position,
        head.time,
        head.epoch,
        head.entries,
        head.records_length,
        head.payload_length,
        head.records_crc,
    )
    return packed + _CRC.pack(extend_crc32c(salt, packed))


def decode_head(data: bytes, salt: int) -> Head | None:
    """Read a head; None where no frame begins: nothing was ever written there.

    Anything else that is no head is `DamageError`.
    """
    if not any(data[:HEAD_BYTES]):
        return None
    if len(data) < HEAD_BYTES:
        raise DamageError("a frame breaks off in its head")
    packed, crc = data[: _HEAD.size], data[_HEAD.size : HEAD_BYTES]
    if _CRC.unpack(crc)[0] != extend_crc32c(salt, packed):
        raise DamageError("the head of a frame fails its checksum")
    magic, version, _, *fields = _HEAD.unpack(packed)
    if magic != MAGIC or version != _VERSION:
        raise DamageError(f"a frame of version {version} can't be read by this version")
    first_position, time, epoch, count, records_length, payload_length, records_crc = fields
    if count == 0 or first_position == 0 or records_length > _LONGEST_RECORDS:
        raise DamageError("the head of a frame makes no sense")
    return Head(first_position, time, epoch, count, records_length, payload_length, records_crc)


def salt_of(history: bytes) -> int:
    return int(crc32c(history))


def seal(previous: bytes, head: bytes, records: bytes) -> bytes:
    """Return what closes a frame and chains it to the one before."""
    return sha256(previous + head + records).digest()


def records_checksum(records: bytes) -> int:
    """Return the checksum that the head keeps of the records."""
    return int(crc32c(records))
