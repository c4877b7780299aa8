"""How far the log was acknowledged: written after each sync, and never synced itself.

So it can be behind, after a power cut, but never ahead. Readers of other processes follow it; a
frame that lies beyond it was promised to nobody yet.
"""

import struct
from hashlib import sha256
from typing import NamedTuple

from google_crc32c import value as crc32c

from perdure.artifacts.disk import Disk, File

MARK = "mark"

_MAGIC = b"PDmk"
_MARK = struct.Struct("<4sIQ16s16s")
_CRC = struct.Struct("<I")
_BYTES = _MARK.size + _CRC.size


class Mark(NamedTuple):
    history: bytes
    position: int
    segment: int
    boot: bytes = b""
    """Names the start of the machine on which it was written."""


class MarkFile:
    def __init__(self, file: File) -> None:
        self._file = file

    @classmethod
    def open(cls, disk: Disk) -> "MarkFile | None":
        try:
            return cls(disk.open(MARK))
        except FileNotFoundError:
            return None

    @classmethod
    def create(cls, disk: Disk) -> "MarkFile":
        return cls(disk.open(MARK, create=True))

    def raw(self) -> bytes:
        """Return it as it stands, only to see whether it changed."""
        return self._file.read(0, _BYTES)

    def read(self) -> Mark | None:
        """Return it; None if it is missing or not whole."""
        return decode(self.raw())

    def write(self, mark: Mark) -> bytes:
        """Write it and return it as it now stands."""
        packed = _MARK.pack(_MAGIC, mark.segment, mark.position, mark.history, mark.boot)
        data = packed + _CRC.pack(crc32c(packed))
        self._file.write(0, [data])
        return data


def decode(data: bytes) -> Mark | None:
    packed, crc = data[: _MARK.size], data[_MARK.size :]
    if len(crc) != _CRC.size or _CRC.unpack(crc)[0] != crc32c(packed):
        return None
    magic, segment, position, history, boot = _MARK.unpack(packed)
    return Mark(history, position, segment, boot) if magic == _MAGIC else None


def boot_of(disk: Disk) -> bytes:
    """Return how a mark names this start of the machine."""
    return sha256(disk.boot.encode()).digest()[:16] if disk.boot else b""
