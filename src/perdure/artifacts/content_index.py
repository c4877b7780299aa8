"""The content index: where the bytes of a CID are, as of any position; and drafts of commits.

A table has the rows up to a position, a dict those that came since. Every row has the positions
between which it is visible, so that a query about the past costs as much as one about the present.

A table is a sorted file that is mapped into memory:

    header     256 bytes   history, position, number of rows
    rows       by digest; each has the place of content, and when it is visible
    prefixes   the first 8 bytes of each digest as a number, to search in
    fan-out    for each bucket of digests, the first row that is in it
    sums       for each bucket, a checksum over its rows
    more       snapshots, and contents that were hidden more often than a row can store

It is derived from the log alone: the same log gives the same bytes. It is never synced. A bucket is
verified when it is first used, so that damage is never taken for absent content.
"""

import mmap
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.disk import Disk, File
from perdure.artifacts.entry import (
    PUT,
    Entry,
    Lift,
    SnapshotAnchor,
    Sweep,
    Tombstone,
    decode,
    encode,
    encode_put,
    raw_puts,
)
from perdure.artifacts.log import Log
from perdure.artifacts.segment import FIRST_SEAL, Frame, LogEnd, packed_puts
from perdure.errors import DamageError, StaleIndexError

# ---------------------------------------------------------------- the table
HEADER_BYTES = 256
DIGEST_BYTES = 32
OFTEN = 2**64 - 1
"""The value of `hidden` if one interval is not enough."""

_MAGIC = b"PDtable1"
_HEADER = struct.Struct("<8sHHIQ16sQIIQQQQ32sQQIII")
_ROW = struct.Struct("<QQQQQQQII")
_WHOLE_ROW = struct.Struct("<32sQQQQQQQII")
_RANGE = struct.Struct("<II")
_CRC = struct.Struct("<I")
_ROWS_PER_BUCKET = 16
_MOST_BITS = 20
_GROUP = 1 << 20
_PREFIX = "table-"
_PREFIX_BYTES = 8

View = mmap.mmap | memoryview


class IndexRow(NamedTuple):
    """Where content is, and when it is visible."""

    since: int
    """The position of the commit that put it."""
    block: int
    offset: int
    place: int
    length: int
    hidden: int
    """The position of the commit that hid it; 0 if none did."""
    shown: int
    """The position of the commit that showed it again; 0 if none did."""
    segment: int
    crc: int


class TableHeader(NamedTuple):
    """The content of the index besides its rows."""

    history: bytes
    hash: Hash
    end: LogEnd
    last: int
    """The offset in its segment of the last frame before `end`; 0 if there is none."""
    horizon: int
    snapshots: tuple[int, ...]
    often: Mapping[bytes, tuple[int, ...]]
    """By digest: the positions at which it was hidden, lifted, hidden, and so on."""


def table_name(position: int) -> str:
    return f"{_PREFIX}{position:016d}"


def table_position(name: str) -> int | None:
    number = name.removeprefix(_PREFIX)
    return int(number) if number != name and number.isascii() and number.isdigit() else None


class Table:
    """A mapped table; raises `StaleIndexError` if it is damaged or of another version."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.header, self._bits, self.count = _read_header(view)
        rows, buckets = self.count, 1 << self._bits
        self._rows = HEADER_BYTES
        prefixes = self._rows + rows * _WHOLE_ROW.size
        fan = prefixes + rows * _PREFIX_BYTES
        sums = fan + (buckets + 1) * 4
        whole = memoryview(view)
        self._prefixes = whole[prefixes:fan].cast("Q")
        self._fan = whole[fan:sums].cast("I")
        self._sums = whole[sums : sums + buckets * 4].cast("I")
        self._checked = bytearray(buckets)
        """The buckets that were verified."""
        self._shift = 64 - self._bits

    def find(self, digest: bytes) -> IndexRow | None:
        prefix = int.from_bytes(digest[:_PREFIX_BYTES], "big")
        bucket = prefix >> self._shift
        if not self._checked[bucket]:
            self._check(bucket)
        stop = self._fan[bucket + 1]
        at = bisect_left(self._prefixes, prefix, self._fan[bucket], stop)
        while at < stop and self._prefixes[at] == prefix:
            row = self._rows + at * _WHOLE_ROW.size
            if self._view[row : row + DIGEST_BYTES] == digest:
                return IndexRow._make(_ROW.unpack_from(self._view, row + DIGEST_BYTES))
            at += 1
        return None

    def _check(self, bucket: int) -> None:
        """Raise `StaleIndexError` if the rows of a bucket are damaged."""
        start, stop = self._fan[bucket], self._fan[bucket + 1]
        if not start <= stop <= self.count or self._sum(start, stop) != self._sums[bucket]:
            raise StaleIndexError("a part of the index fails its checksum")
        self._checked[bucket] = 1

    def check_all(self) -> None:
        for bucket, is_checked in enumerate(self._checked):
            if not is_checked:
                self._check(bucket)

    def _sum(self, start: int, stop: int) -> int:
        return _sum(self._view, self._rows, self._prefixes, start, stop)

    def rows(self) -> Iterator[tuple[bytes, IndexRow]]:
        self.check_all()
        stop = self._rows + self.count * _WHOLE_ROW.size
        for at in range(self._rows, stop, _WHOLE_ROW.size):
            digest, *row = _WHOLE_ROW.unpack_from(self._view, at)
            yield digest, IndexRow._make(row)

    def place_of(self, digest: bytes) -> tuple[int, bool]:
        """Return the index of the row where a digest is or would be, and whether it is there."""
        prefix = int.from_bytes(digest[:_PREFIX_BYTES], "big")
        at = bisect_left(self._prefixes, prefix)
        while at < self.count and self._prefixes[at] == prefix:
            row = self._rows + at * _WHOLE_ROW.size
            found = bytes(self._view[row : row + DIGEST_BYTES])
            if found >= digest:
                return at, found == digest
            at += 1
        return at, False

    def raw_rows(self, start: int, stop: int) -> memoryview:
        size = _WHOLE_ROW.size
        return memoryview(self._view)[self._rows + start * size : self._rows + stop * size]

    def raw_prefixes(self, start: int, stop: int) -> memoryview:
        return self._prefixes[start:stop].cast("B")


def _read_header(view: View) -> tuple[TableHeader, int, int]:
    raw = bytes(view[:HEADER_BYTES])
    packed, crc = raw[: -_CRC.size], raw[-_CRC.size :]
    if len(raw) != HEADER_BYTES or _CRC.unpack(crc)[0] != crc32c(packed):
        raise StaleIndexError("the header of the table fails its checksum")
    magic, hash_, _, bits, rows, history, position, segment, _, offset, last, *rest = (
        _HEADER.unpack_from(packed)
    )
    time, epoch, seal, horizon, more_at, more_length, more_crc, sums_crc = rest
    size = rows * (_WHOLE_ROW.size + _PREFIX_BYTES) + _sums_bytes(min(bits, _MOST_BITS))
    if magic != _MAGIC or bits > _MOST_BITS or more_at != HEADER_BYTES + size:
        raise StaleIndexError("the table is of another version, or has impossible values")
    if more_at + more_length != len(view):
        raise StaleIndexError("the table was cut off")
    if crc32c(bytes(view[more_at - _sums_bytes(bits) : more_at])) != sums_crc:
        raise StaleIndexError("the sums of the table fail their checksum")
    more = bytes(view[more_at:])
    if crc32c(more) != more_crc:
        raise StaleIndexError("the end of the table fails its checksum")
    end = LogEnd(segment, offset, position, time, epoch, seal)
    try:
        snapshots, often = _decode_more(more)
        header = TableHeader(history, Hash(hash_), end, last, horizon, snapshots, often)
    except (ValueError, struct.error) as error:
        raise StaleIndexError(f"the end of the table can't be read: {error}") from error
    return header, bits, rows


def _encode_more(header: TableHeader) -> bytes:
    snapshots = header.snapshots
    packed = [struct.pack(f"<Q{len(snapshots)}Q", len(snapshots), *snapshots)]
    for digest, changes in sorted(header.often.items()):
        packed.append(digest + struct.pack(f"<Q{len(changes)}Q", len(changes), *changes))
    return b"".join(packed)


def _decode_more(more: bytes) -> tuple[tuple[int, ...], dict[bytes, tuple[int, ...]]]:
    snapshots, at = _numbers(more, 0)
    often = {}
    while at < len(more):
        digest = more[at : at + DIGEST_BYTES]
        often[digest], at = _numbers(more, at + DIGEST_BYTES)
    return snapshots, often


def _numbers(more: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = struct.unpack_from("<Q", more, at)
    if count > len(more) // 8:
        raise ValueError("a count is larger than the data")
    return struct.unpack_from(f"<{count}Q", more, at + 8), at + 8 + count * 8


def _sum(view: View, rows: int, prefixes: memoryview, start: int, stop: int) -> int:
    size = _WHOLE_ROW.size
    found = crc32c(_RANGE.pack(start, stop))
    found = extend_crc32c(found, bytes(view[rows + start * size : rows + stop * size]))
    return int(extend_crc32c(found, prefixes[start:stop].tobytes()))


def write_table(
    disk: Disk,
    name: str,
    old: Table | None,
    changes: Mapping[bytes, IndexRow | None],
    header: TableHeader,
) -> Table:
    """Write the rows of `old` with these changed, added, or (None) removed; return the table.

    Memory grows with the changes, not with the table.
    """
    file = disk.open(name, create=True)
    file.truncate(0)
    if old:
        old.check_all()
    merged = list(_merged(old, changes))
    rows_end = _write_all(file, HEADER_BYTES, _rows(old, merged))
    count = (rows_end - HEADER_BYTES) // _WHOLE_ROW.size
    prefixes_end = _write_all(file, rows_end, _prefixes(old, merged))
    bits = min((count // _ROWS_PER_BUCKET).bit_length(), _MOST_BITS)
    view = file.map()
    prefixes = memoryview(view)[rows_end:prefixes_end].cast("Q")
    fan = _fan_out(prefixes, bits)
    sums = [_sum(view, HEADER_BYTES, prefixes, *pair) for pair in pairwise(fan)]
    packed = struct.pack(f"<{len(fan) + len(sums)}I", *fan, *sums)
    more = _encode_more(header)
    more_at = _write_all(file, prefixes_end, iter([packed]))
    _write_all(file, more_at, iter([more]))
    ends = (more_at, len(more), crc32c(more), crc32c(packed))
    file.write(0, [_encode_header(header, bits, count, ends)])
    return Table(file.map())


_Step = tuple[int, int, bytes, IndexRow | None]


def _merged(old: Table | None, changes: Mapping[bytes, IndexRow | None]) -> Iterator[_Step]:
    """Yield in order: a range of old rows that stay, and the change that follows them."""
    begin = 0
    for digest in sorted(changes):
        at, there = old.place_of(digest) if old else (0, False)
        yield begin, at, digest, changes[digest]
        begin = at + there
    yield begin, old.count if old else 0, b"", None


def _rows(old: Table | None, merged: list[_Step]) -> Iterator[bytes | memoryview]:
    for begin, stop, digest, row in merged:
        if old and stop > begin:
            yield old.raw_rows(begin, stop)
        if row is not None:
            yield _WHOLE_ROW.pack(digest, *row)


def _prefixes(old: Table | None, merged: list[_Step]) -> Iterator[bytes | memoryview]:
    for begin, stop, digest, row in merged:
        if old and stop > begin:
            yield old.raw_prefixes(begin, stop)
        if row is not None:
            yield digest[_PREFIX_BYTES - 1 :: -1]


def _write_all(file: File, offset: int, pieces: Iterator[bytes | memoryview]) -> int:
    group = bytearray()
    for piece in pieces:
        if len(piece) < _GROUP:
            group += piece
        if len(group) >= _GROUP or len(piece) >= _GROUP:
            file.write(offset, [bytes(group)])
            offset += len(group)
            group.clear()
        if len(piece) >= _GROUP:
            file.write(offset, [piece])
            offset += len(piece)
    if group:
        file.write(offset, [bytes(group)])
    return offset + len(group)


def _fan_out(prefixes: memoryview, bits: int) -> list[int]:
    fan, at, shift = [], 0, 64 - bits
    for bucket in range(1 << bits):
        at = bisect_left(prefixes, bucket << shift, at)
        fan.append(at)
    return [*fan, len(prefixes)]


def _sums_bytes(bits: int) -> int:
    return ((2 << bits) + 1) * 4


def _encode_header(
    header: TableHeader, bits: int, rows: int, ends: tuple[int, int, int, int]
) -> bytes:
    """Return the header; `ends` has offset and length of the last section, and two checksums."""
    end = header.end
    what = (_MAGIC, header.hash.value, 0, bits, rows, header.history)
    where = (end.position, end.segment, 0, end.offset, header.last, end.time, end.epoch, end.seal)
    packed = _HEADER.pack(*what, *where, header.horizon, *ends)
    padded = packed.ljust(HEADER_BYTES - _CRC.size, b"\0")
    return padded + _CRC.pack(crc32c(padded))


# ---------------------------------------------------------------- the index
_TOMBSTONE, _LIFT, _ANCHOR, _SWEEP = 4, 5, 6, 8
_DECODED = frozenset({_TOMBSTONE, _LIFT, _ANCHOR, _SWEEP})
_SMALLEST_TAIL = 1 << 14
_TAIL_SHARE = 16
_SMALLEST_LEFT = 1 << 10
_LEFT_SHARE = 64
_UNFINISHED = ".new"
_NEW = tuple.__new__
"""Creates a row without checking its fields."""

PayloadPut = tuple[bytes, int, int, int]
"""A put: digest, offset in the payload, length, checksum."""
Savepoint = tuple[int, int, int, int, int]
"""Lengths of a draft, to which it can be rolled back."""


class ContentIndex:
    def __init__(self) -> None:
        self._table: Table | None = None
        self._tail: dict[bytes, IndexRow | None] = {}
        self._often: dict[bytes, tuple[int, ...]] = {}
        self._prefix = b""
        self.end = LogEnd(0, 0, 0, 0, 0, FIRST_SEAL)
        self.snapshots: list[int] = []
        self.horizon = 0
        self._last = 0

    # ------------------------------------------------------------ queries
    def find(self, digest: bytes) -> IndexRow | None:
        tail, table = self._tail, self._table
        if digest in tail:
            return tail[digest]
        return table.find(digest) if table else None

    def is_visible(self, digest: bytes, row: IndexRow, position: int) -> bool:
        if row.since > position:
            return False
        hidden = row.hidden
        if hidden == 0:
            return True
        if hidden == OFTEN:
            return bisect_right(self._often.get(digest, ()), position) % 2 == 0
        return position < hidden or 0 < row.shown <= position

    def rows(self) -> Iterator[tuple[bytes, IndexRow]]:
        tail = self._tail
        for digest, row in self._table.rows() if self._table else ():
            if digest not in tail:
                yield digest, row
        yield from ((digest, row) for digest, row in tail.items() if row is not None)

    def last_hidden(self, digest: bytes, row: IndexRow) -> int:
        """Return the position at which it was last hidden; 0 if it is visible."""
        if row.hidden == OFTEN:
            changes = self._often[digest]
            return changes[-1] if len(changes) % 2 else 0
        return 0 if row.shown else row.hidden

    def __len__(self) -> int:
        return len(self._tail) + (self._table.count if self._table else 0)

    # ------------------------------------------------------------ following the log
    def apply(self, frame: Frame, algorithm: Hash) -> None:
        head = frame.head
        prefix = self._prefix or self._begin(algorithm)
        available = head.payload_length
        puts: list[PayloadPut] = []
        for _, _, cid, offset, length, crc in packed_puts(frame) or self._others(frame):
            if offset + length > available:
                raise DamageError("an entry puts more than its commit holds")
            if cid[:4] == prefix:
                puts.append((cid[4:], offset, length, crc))
        self.add(frame, frame.end, puts, algorithm)

    def add(self, frame: Frame, end: LogEnd, puts: Sequence[PayloadPut], algorithm: Hash) -> None:
        """Add the puts of a commit. `end` is its end."""
        if not self._prefix:
            self._begin(algorithm)
        segment, start, head, _, _ = frame
        commit, block, payload = end.position, head.first_position, frame.payload
        tail, row = self._tail, IndexRow
        for digest, offset, length, crc in puts:
            fields = (commit, block, offset, payload + offset, length, 0, 0, segment, crc)
            tail[digest] = _NEW(row, fields)
        self.end, self._last = end, start

    def _begin(self, algorithm: Hash) -> bytes:
        self._prefix = bytes(CID(bytes(32), algorithm, Codec.RAW))[:4]
        return self._prefix

    def _others(self, frame: Frame) -> Iterator[tuple[int, int, bytes, int, int, int]]:
        """Apply all entries of the frame but its puts, and yield these."""
        puts, others = raw_puts(frame.records, 0, _DECODED)
        for _, kind, body in others:
            self._apply_entry(decode(kind, body), frame.head.last_position)
        yield from ((PUT, 0, *rest) for _, *rest in puts)  # type: ignore[misc] # it has four

    def _apply_entry(self, entry: Entry, commit: int) -> None:
        match entry:
            case Tombstone(cid, _):
                self._toggle(cid.digest, commit, visible=False)
            case Lift(cid):
                self._toggle(cid.digest, commit, visible=True)
            case SnapshotAnchor(_, position, _):
                self.snapshots.append(position)
            case Sweep(horizon, cids):
                self.horizon = horizon
                for cid in cids:
                    self._tail[cid.digest] = None
                    self._often.pop(cid.digest, None)

    def _toggle(self, digest: bytes, commit: int, *, visible: bool) -> None:
        row = self.find(digest)
        if row is None or self.is_visible(digest, row, commit) == visible:
            return
        if row.hidden == OFTEN:
            self._often[digest] = (*self._often[digest], commit)
        elif row.hidden == 0:
            self._tail[digest] = row._replace(hidden=commit)
        elif row.shown == 0:
            self._tail[digest] = row._replace(shown=commit)
        else:
            self._often[digest] = (row.hidden, row.shown, commit)
            self._tail[digest] = row._replace(hidden=OFTEN, shown=0)

    # ------------------------------------------------------------ tables
    def load(self, disk: Disk, log: Log) -> None:
        """Load the newest table that is intact and of this log, if there is one."""
        positions = (table_position(name) for name in disk.names())
        for position in sorted((p for p in positions if p is not None), reverse=True):
            try:
                table = Table(disk.open(table_name(position)).map())
            except (StaleIndexError, FileNotFoundError):
                continue
            header = table.header
            if header.history == log.history and log.reaches(header.end, header.last):
                self._begin(header.hash)
                self._often = dict(header.often)
                self.snapshots = list(header.snapshots)
                self.horizon = header.horizon
                self.end, self._last = header.end, header.last
                self._tail, self._table = {}, table
                return

    @property
    def table_position(self) -> int:
        """The position of the table; 0 without one."""
        return self._table.header.end.position if self._table else 0

    @property
    def is_long(self) -> bool:
        """Whether so many rows came since the last table that a commit should write another."""
        return self._has_grown(_SMALLEST_TAIL, _TAIL_SHARE)

    @property
    def is_worth_a_table(self) -> bool:
        """Whether so many rows came since the last table that opening the store would be slow."""
        return self._has_grown(_SMALLEST_LEFT, _LEFT_SHARE)

    def _has_grown(self, least: int, share: int) -> bool:
        rows = self._table.count if self._table else 0
        return len(self._tail) > max(least, rows // share)

    def last_in_table(self, log: Log) -> Frame | None:
        """Return the last commit before the end of the table, if it can be read."""
        table = self._table
        return log.last_before(table.header.end, table.header.last) if table else None

    def save(self, disk: Disk, history: bytes, algorithm: Hash) -> None:
        """Write the whole index as a table, and remove the older tables."""
        known = (self.end, self._last, self.horizon, tuple(self.snapshots), self._often)
        header = TableHeader(history, algorithm, *known)
        name = table_name(self.end.position)
        table = write_table(disk, name + _UNFINISHED, self._table, self._tail, header)
        disk.rename(name + _UNFINISHED, name)
        # In this order: a reader that sees the empty tail must see the new table.
        self._table = table
        self._tail = {}
        remove_tables(disk, keep=name)


def remove_tables(disk: Disk, keep: str | None = None) -> None:
    """Remove every table but one. They are derived."""
    for name in disk.names():
        if table_position(name.removesuffix(_UNFINISHED)) is not None and name != keep:
            with suppress(FileNotFoundError):  # another process was faster
                disk.remove(name)


class Content(NamedTuple):
    """Bytes to be stored, with their CID and checksum."""

    cid: bytes
    crc: int
    data: bytes

    @property
    def digest(self) -> bytes:
        return self.cid[4:]


class CommitDraft:
    """The entries and contents of one commit, drafted under the lock.

    Queries see what was drafted before as if it were committed.
    """

    def __init__(self, index: ContentIndex, algorithm: Hash, position: int) -> None:
        self._index = index
        self._hash = algorithm
        self._position = position
        self._length = 0
        self._visible: dict[bytes, bool] = {}
        self._once: dict[bytes, None] = {}
        self._seen_before: list[tuple[bytes, bool | None]] = []
        self.puts: list[PayloadPut] = []
        """The puts of the draft."""
        self.records: list[bytes] = []
        self.entries: dict[int, Entry] = {}
        """Decoded entries, by the index of their record."""
        self.payload: list[bytes] = []

    @property
    def only_puts(self) -> bool:
        return len(self.puts) == len(self.records)

    @property
    def position(self) -> int:
        """The position of the next entry."""
        return self._position + len(self.records) + 1

    def is_visible(self, digest: bytes) -> bool:
        drafted = self._visible.get(digest)
        if drafted is not None:
            return drafted
        row = self._index.find(digest)
        return row is not None and self._index.is_visible(digest, row, self._position)

    def put(self, content: Content) -> None:
        """Make content visible, if it is not; its bytes are written only if they are not stored."""
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

    def hide(self, cid: CID, reason: str) -> None:
        if self.is_visible(cid.digest):
            self.append(Tombstone(cid, reason))
            self._see(cid.digest, visible=False)

    def show(self, cid: CID) -> None:
        if not self.is_visible(cid.digest):
            self.append(Lift(cid))
            self._see(cid.digest, visible=True)

    def append(self, entry: Entry) -> None:
        self.entries[len(self.records)] = entry
        self.records.append(encode(entry))

    def append_once(self, entry: Entry) -> None:
        """Append an entry, unless the same was drafted before."""
        record = encode(entry)
        if record not in self._once:
            self._once[record] = None
            self.records.append(record)

    # ------------------------------------------------------------ rolling back
    def savepoint(self) -> Savepoint:
        lengths = len(self.records), len(self.puts), self._length
        return *lengths, len(self._seen_before), len(self._once)

    def roll_back(self, savepoint: Savepoint) -> None:
        records, puts, self._length, seen, once = savepoint
        for digest, before in reversed(self._seen_before[seen:]):
            if before is None:
                del self._visible[digest]
            else:
                self._visible[digest] = before
        while len(self._once) > once:
            self._once.popitem()
        for number in range(records, len(self.records)):
            self.entries.pop(number, None)
        del self.records[records:]
        del self.puts[puts:]
        del self.payload[puts:]
        del self._seen_before[seen:]
