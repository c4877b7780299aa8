"""The mark: how far the log was acknowledged. Written after each sync, and never synced itself.

After a power cut it can be behind, but never ahead. Readers in other processes follow it; a frame
beyond it is not acknowledged yet.

The restore of a whole history into an empty folder is atomic by these files:

    arriving-00000002   a segment that is being written; no other process reads it
    arriving-mark       what the mark will be
    arrived             the first segment; if it exists, all others are complete and durable

Segments are renamed to their final names only when all are complete, the first one last: without it
there is no history. The next process that finds `arrived` finishes the renames.
"""

import struct
from hashlib import sha256
from typing import NamedTuple

from google_crc32c import value as crc32c

from perdure.artifacts.disk import Disk, File
from perdure.artifacts.recent_names import MARK
from perdure.artifacts.segment import segment_name

_ARRIVED = "arrived"
_ARRIVING = "arriving-"
_ARRIVING_MARK = "arriving-mark"

_MAGIC = b"PDmk"
_MARK = struct.Struct("<4sIQ16s16s")
_CRC = struct.Struct("<I")
_BYTES = _MARK.size + _CRC.size


class Mark(NamedTuple):
    history: bytes
    position: int
    segment: int
    boot: bytes = b""
    """Identifies the boot of the machine at which it was written."""


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
        """Return its bytes, to see whether it changed."""
        return self._file.read(0, _BYTES)

    def read(self) -> Mark | None:
        """Return the mark; None if it is empty or damaged."""
        return decode_mark(self.raw())

    def write(self, mark: Mark) -> bytes:
        """Write the mark and return its bytes."""
        packed = _MARK.pack(_MAGIC, mark.segment, mark.position, mark.history, mark.boot)
        data = packed + _CRC.pack(crc32c(packed))
        self._file.write(0, [data])
        return data


def decode_mark(data: bytes) -> Mark | None:
    packed, crc = data[: _MARK.size], data[_MARK.size :]
    if len(crc) != _CRC.size or _CRC.unpack(crc)[0] != crc32c(packed):
        return None
    magic, segment, position, history, boot = _MARK.unpack(packed)
    return Mark(history, position, segment, boot) if magic == _MAGIC else None


def boot_of(disk: Disk) -> bytes:
    """Return the id of this boot of the machine as a mark has it."""
    return sha256(disk.boot.encode()).digest()[:16] if disk.boot else b""


# ---------------------------------------------------------------- a history that arrives
def open_arriving(disk: Disk, number: int) -> File:
    """Return a file for a segment; no process reads it before `complete_arrival`."""
    return disk.open(f"{_ARRIVING}{number:08d}", create=True)


def clear_arriving(disk: Disk) -> None:
    """Remove an incomplete restore. Needs the lock."""
    left = [name for name in disk.names() if name.startswith(_ARRIVING)]
    for name in left:
        disk.remove(name)
    if left:
        disk.sync()


def complete_arrival(disk: Disk, mark: Mark) -> None:
    """Make a history of the segments, all of which are synced. Needs the lock."""
    file = disk.open(_ARRIVING_MARK, create=True)
    MarkFile(file).write(mark)
    file.sync()
    disk.sync()
    disk.rename(f"{_ARRIVING}{1:08d}", _ARRIVED)
    disk.sync()
    finish_arrival(disk)


def has_arrived(disk: Disk) -> bool:
    return _ARRIVED in disk.names()


def finish_arrival(disk: Disk) -> None:
    """Rename the segments of a history that has arrived, if there is one.

    Needs the lock. If it is interrupted, call it again.
    """
    names = disk.names()
    if _ARRIVED not in names:
        return
    for name in names:
        if name.startswith(_ARRIVING) and name != _ARRIVING_MARK:
            disk.rename(name, segment_name(int(name.removeprefix(_ARRIVING))))
    _acknowledge(disk)
    disk.sync()
    disk.rename(_ARRIVED, segment_name(1))
    disk.sync()
    disk.remove(_ARRIVING_MARK)


def _acknowledge(disk: Disk) -> None:
    """Write a mark that says that all of it is durable, so that no process writes it again.

    Into the existing file, which other processes have open; synced this once.
    """
    source = disk.open(_ARRIVING_MARK)
    file = disk.open(MARK, create=True)
    file.write(0, [source.read(0, source.size())])
    file.sync()
