"""Entries in bulk, without making a value of each."""

import struct
from collections.abc import Iterator
from hashlib import sha256

from google_crc32c import value as crc32c

from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.disk import File
from perdure.artifacts.segment import Frame
from perdure.errors import DamageError

PUT = 1

_PREFIX = struct.Struct("<BI")
_PUT = struct.Struct("<36sQQI")
_WHOLE_PUT = struct.Struct("<BI36sQQI")
_PUT_PREFIX = _PREFIX.pack(PUT, _PUT.size)
_READ_AHEAD = 1 << 20

RawPut = tuple[bytes, int, int, int]
"""The CID as bytes, offset in the payload, length, checksum."""


def encode_put(cid: bytes, offset: int, length: int, crc: int) -> bytes:
    return _WHOLE_PUT.pack(PUT, _PUT.size, cid, offset, length, crc)


def raw_entries(records: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the body of each entry."""
    at, stop = 0, len(records)
    while at < stop:
        if at + _PREFIX.size > stop:
            raise DamageError("a log entry breaks off in its first bytes")
        kind, length = _PREFIX.unpack_from(records, at)
        at += _PREFIX.size
        if at + length > stop:
            raise DamageError(f"a log entry of {length} bytes breaks off after {stop - at}")
        yield kind, records[at : at + length]
        at += length


def whole_records(records: bytes) -> list[bytes]:
    """Return each entry as the log has it, with kind and length."""
    found, at = [], 0
    for _, body in raw_entries(records):
        stop = at + _PREFIX.size + len(body)
        found.append(records[at:stop])
        at = stop
    return found


def only_puts(frame: Frame) -> list[tuple[int, int, bytes, int, int, int]] | None:
    """Return the entries of a frame that only puts, as most do; None for any other."""
    records, count, size = frame.records, frame.head.entries, _WHOLE_PUT.size
    if len(records) != count * size:
        return None
    # The first bytes of all entries at once: kind, and length.
    for at, byte in enumerate(_PUT_PREFIX):
        if records[at::size].count(byte) != count:
            return None
    return list(_WHOLE_PUT.iter_unpack(records))


def decode_put(body: bytes) -> RawPut:
    if len(body) != _PUT.size:
        raise DamageError("a put has the wrong length")
    return _PUT.unpack(body)


def raw_puts(frame: Frame) -> Iterator[RawPut]:
    """Yield what the frame puts."""
    entries = only_puts(frame)
    if entries is not None:
        yield from (entry[2:] for entry in entries)
        return
    for kind, body in raw_entries(frame.records):
        if kind == PUT:
            yield decode_put(body)


def damaged_puts(file: File, frame: Frame, algorithm: Hash) -> list[CID]:
    """Return what the frame puts and its payload does not hold as it was."""
    hasher = sha256 if algorithm is Hash.SHA2_256 else algorithm.hasher
    damaged = []
    start, window = 0, b""
    for cid, offset, length, crc in raw_puts(frame):
        if offset + length > frame.head.payload_length:
            damaged.append(CID.from_bytes(cid))
            continue
        if length > _READ_AHEAD:
            whole = _matches(file, frame.payload + offset, length, cid[4:], algorithm)
        else:
            at = offset - start
            if at < 0 or at + length > len(window):
                start, at = offset, 0
                window = file.read(
                    frame.payload + offset,
                    min(_READ_AHEAD, frame.head.payload_length - offset),
                )
            data = window[at : at + length]
            whole = hasher(data).digest() == cid[4:] and crc32c(data) == crc
        if not whole:
            damaged.append(CID.from_bytes(cid))
    return damaged


def _matches(file: File, offset: int, length: int, digest: bytes, algorithm: Hash) -> bool:
    hasher = algorithm.hasher()
    for at in range(offset, offset + length, _READ_AHEAD):
        hasher.update(file.read(at, min(_READ_AHEAD, offset + length - at)))
    return hasher.digest() == digest
