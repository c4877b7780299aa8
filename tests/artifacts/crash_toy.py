"""A log small enough to be seen through, with the protocol of the store; and its broken kin."""

import struct
from hashlib import sha256
from itertools import combinations
from zlib import crc32

from perdure.artifacts.disk import Disk, File

SEGMENT_BYTES = 2048

_HEADER = b"TOYLOG01"
_HEAD = struct.Struct("<4sII4x")
_MAGIC = b"toyf"
_SEAL_BYTES = 16
_FIRST_SEAL = bytes(_SEAL_BYTES)


class TornError(Exception):
    """No frame is there, but something is."""


class ToyLog:
    """Entries, each durable when `append` returns.

    Segments of one or more frames: head (length, checksum of the entry), entry, seal.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.entries: list[bytes] = []
        self.cuts = 0
        self._seal = _FIRST_SEAL
        numbers = sorted(int(n.removeprefix("log-")) for n in disk.names() if n.startswith("log-"))
        self._number = 1
        self._file = self._begin() if not numbers else self._recover(numbers)

    def append(self, entry: bytes) -> int:
        head = _HEAD.pack(_MAGIC, len(entry), crc32(entry))
        seal = _seal_of(self._seal, head)
        if self._offset + len(head) + len(entry) + len(seal) > SEGMENT_BYTES:
            self._number += 1
            self._file = self._begin()
        self._file.write(self._offset, [head, entry, seal])
        self.sync(self._file)
        self._offset += len(head) + len(entry) + len(seal)
        self._seal = seal
        self.entries.append(entry)
        return len(self.entries)

    def _begin(self) -> File:
        file = self._disk.open(f"log-{self._number}", create=True)
        file.write(0, [_HEADER])
        file.reserve(SEGMENT_BYTES)
        self.sync(file)
        self.sync_folder()
        self._offset = len(_HEADER)
        return file

    def _recover(self, numbers: list[int]) -> File:
        assert numbers == list(range(1, len(numbers) + 1)), "a segment is missing"
        *full, self._number = numbers
        for number in full:
            assert not self._is_torn(self._disk.open(f"log-{number}")), "a full segment is damaged"
        file = self._disk.open(f"log-{self._number}")
        if file.read(0, len(_HEADER)) != _HEADER:
            return self._begin()
        if self._is_torn(file) or self.something_follows(file, self._offset):
            self.cuts += 1
            self.cut(file, self._offset)
        file.reserve(SEGMENT_BYTES)
        self.sync(file)
        return file

    def _is_torn(self, file: File) -> bool:
        """Read all frames that are whole; say whether another was begun."""
        assert file.read(0, len(_HEADER)) == _HEADER, "a segment has lost its beginning"
        self._offset = len(_HEADER)
        try:
            while self._read(file):
                pass
        except TornError:
            return True
        return False

    def _read(self, file: File) -> bool:
        head = file.read(self._offset, _HEAD.size)
        if not any(head):
            return False
        if len(head) < _HEAD.size or not head.startswith(_MAGIC):
            raise TornError
        _, length, crc = _HEAD.unpack(head)
        entry = file.read(self._offset + _HEAD.size, length)
        seal = file.read(self._offset + _HEAD.size + length, _SEAL_BYTES)
        if not self.is_sealed(seal, _seal_of(self._seal, head)) or not self.is_whole(entry, crc):
            raise TornError
        self._offset += _HEAD.size + length + _SEAL_BYTES
        self._seal = seal
        self.entries.append(entry)
        return True

    # Each of these is what one of the broken logs leaves out.
    def sync(self, file: File) -> None:
        file.sync()

    def sync_folder(self) -> None:
        self._disk.sync()

    def is_whole(self, entry: bytes, crc: int) -> bool:
        return crc32(entry) == crc

    def is_sealed(self, seal: bytes, expected: bytes) -> bool:
        return seal == expected

    def something_follows(self, file: File, offset: int) -> bool:
        return any(file.read(offset, file.size()))

    def cut(self, file: File, offset: int) -> None:
        file.truncate(offset)
        file.sync()


class WithoutSync(ToyLog):
    def sync(self, file: File) -> None:
        pass


class WithoutFolderSync(ToyLog):
    def sync_folder(self) -> None:
        pass


class WithoutChecksum(ToyLog):
    def is_whole(self, entry: bytes, crc: int) -> bool:
        return True


class WithoutSeal(ToyLog):
    def is_sealed(self, seal: bytes, expected: bytes) -> bool:
        return True


class WithoutTailCheck(ToyLog):
    def something_follows(self, file: File, offset: int) -> bool:
        return False


class WithoutCut(ToyLog):
    def cut(self, file: File, offset: int) -> None:
        pass


BROKEN: tuple[type[ToyLog], ...] = (
    WithoutSync,
    WithoutFolderSync,
    WithoutChecksum,
    WithoutSeal,
    WithoutTailCheck,
    WithoutCut,
)
PAIRS = tuple(
    type(f"{one.__name__}And{other.__name__}", (one, other), {})
    for one, other in combinations(BROKEN, 2)
)


def _seal_of(previous: bytes, head: bytes) -> bytes:
    return sha256(previous + head).digest()[:_SEAL_BYTES]
