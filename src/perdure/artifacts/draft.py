"""What one commit will hold."""

from itertools import accumulate, repeat
from typing import NamedTuple

from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.entry import Entry, Lift, Tombstone, encode, encode_put
from perdure.artifacts.index import Index, Placed
from perdure.artifacts.log import Piece


class Content(NamedTuple):
    """Bytes that are to be had from now on."""

    cid: bytes
    crc: int
    data: Piece

    @property
    def digest(self) -> bytes:
        return self.cid[4:]


class Draft:
    """Entries and bytes, made while the lock is held: what it sees of the index stays so.

    Asking sees what was drafted before, as if it were there already.
    """

    def __init__(self, index: Index, algorithm: Hash, position: int) -> None:
        self._index = index
        self._hash = algorithm
        self._position = position
        self._length = 0
        self._visible: dict[bytes, bool] = {}
        self._once: dict[bytes, None] = {}
        self._seen_before: list[tuple[bytes, bool | None]] = []
        self.puts: list[Placed] = []
        """Where in the payload new content is."""
        self.records: list[bytes] = []
        self.payload: list[Piece] = []

    @property
    def only_puts(self) -> bool:
        return len(self.puts) == len(self.records)

    @property
    def position(self) -> int:
        """The position that the next entry will have."""
        return self._position + len(self.records) + 1

    def is_visible(self, digest: bytes) -> bool:
        drafted = self._visible.get(digest)
        if drafted is not None:
            return drafted
        row = self._index.find(digest)
        return row is not None and self._index.is_visible(digest, row, self._position)

    def put(self, content: Content) -> None:
        """Make content visible, if it is not: its bytes are written only if they are not there."""
        digest = content.cid[4:]
        if self.is_visible(digest):
            return
        if digest in self._visible or self._index.find(digest) is not None:
            self.append(Lift(CID(digest, self._hash)))
        else:
            length = len(content.data)
            self.puts.append((digest, self._length, length, content.crc))
            self.records.append(encode_put(content.cid, self._length, length, content.crc))
            self.payload.append(content.data)
            self._length += length
        self._see(digest, visible=True)

    def _see(self, digest: bytes, *, visible: bool) -> None:
        self._seen_before.append((digest, self._visible.get(digest)))
        self._visible[digest] = visible

    def put_many(
        self, prefix: bytes, digests: list[bytes], crcs: list[int], contents: list[bytes]
    ) -> None:
        """Put them all, as `put` would; much faster where most of them are new."""
        known = any(self._index.find(digest) is not None for digest in digests)
        if self._visible or known or len(set(digests)) < len(digests):
            for digest, crc, content in zip(digests, crcs, contents, strict=True):
                self.put(Content(prefix + digest, crc, content))
            return
        lengths = list(map(len, contents))
        offsets = list(accumulate(lengths, initial=self._length))
        self._length = offsets.pop()
        cids = map(prefix.__add__, digests)
        self.records += map(encode_put, cids, offsets, lengths, crcs)
        self.puts += zip(digests, offsets, lengths, crcs, strict=True)
        self.payload += contents
        self._visible = dict.fromkeys(digests, True)
        self._seen_before += zip(digests, repeat(None))

    def hide(self, cid: CID, reason: str) -> None:
        if self.is_visible(cid.digest):
            self.append(Tombstone(cid, reason))
            self._see(cid.digest, visible=False)

    def show(self, cid: CID) -> None:
        if not self.is_visible(cid.digest):
            self.append(Lift(cid))
            self._see(cid.digest, visible=True)

    def append(self, entry: Entry) -> None:
        self.records.append(encode(entry))

    def append_once(self, entry: Entry) -> None:
        """Append an entry, unless the same was drafted before."""
        record = encode(entry)
        if record not in self._once:
            self._once[record] = None
            self.records.append(record)

    # ------------------------------------------------------------ taking back
    def begin(self) -> "Begun":
        """Return what `undo` needs to take back everything from here on."""
        return Begun(
            len(self.records), len(self.puts), self._length, len(self._seen_before), len(self._once)
        )

    def undo(self, begun: "Begun") -> None:
        """Take back what was drafted since."""
        records, puts, self._length, seen, once = begun
        for digest, before in reversed(self._seen_before[seen:]):
            if before is None:
                del self._visible[digest]
            else:
                self._visible[digest] = before
        while len(self._once) > once:
            self._once.popitem()
        del self.records[records:]
        del self.puts[puts:]
        del self.payload[puts:]
        del self._seen_before[seen:]


class Begun(NamedTuple):
    """Where a draft stood."""

    records: int
    puts: int
    length: int
    seen: int
    once: int
