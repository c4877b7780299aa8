"""Bytes out of the segments, each checked before it is given away."""

from google_crc32c import value as crc32c

from perdure.artifacts.cid import Hash
from perdure.artifacts.disk import Disk
from perdure.artifacts.journal import Journal
from perdure.artifacts.segment import segment_name
from perdure.artifacts.table import Row
from perdure.errors import explain_reading

WRONG = b"not what was put"
"""Stands for bytes that are not what they were; told apart by identity."""

_LARGE = 1 << 20
_MOST_TOUCHED = 1 << 17


class Contents:
    """Reads what rows speak of. The checksum is always compared, the whole hash the first time."""

    def __init__(self, disk: Disk, journal: Journal, algorithm: Hash) -> None:
        self._disk = disk
        self._journal = journal
        self._hash = algorithm
        self._touched: set[int] = set()
        self.damaged: set[bytes] = set()
        """Of what the bytes were found to be wrong."""

    def read(self, digest: bytes, row: Row) -> bytes:
        """Return the bytes, or `WRONG`."""
        data = self._bytes(row.segment, row.place, row.length)
        if crc32c(data) == row.crc and len(data) == row.length:
            touch = row.segment << 48 | row.place
            if touch in self._touched or self._is_right(digest, data, touch):
                return data
        self.damaged.add(digest)
        return WRONG

    def mend(self, digest: bytes, data: bytes) -> None:
        """Write the bytes of content anew where they are damaged. Only while the lock is held."""
        row = self._journal.index.find(digest)
        if row is not None and row.length == len(data) and self.read(digest, row) is WRONG:
            file = self._journal.log.file(row.segment)
            file.write(row.place, [data])
            file.sync()
        self.damaged.discard(digest)

    def _bytes(self, segment: int, place: int, length: int) -> bytes:
        try:
            file = self._journal.log.file(segment)
            if length > _LARGE and place + length > file.size():
                return b""
            return file.read(place, length)
        except OSError as error:
            name = segment_name(segment)
            raise explain_reading(error, self._disk.whereabouts, name) from error

    def _is_right(self, digest: bytes, data: bytes, touch: int) -> bool:
        if self._hash.digest(data) != digest:
            return False
        if len(self._touched) >= _MOST_TOUCHED:
            self._touched.clear()
        self._touched.add(touch)
        return True
