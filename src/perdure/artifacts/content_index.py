"""The content index: where the bytes of a CID are, as of any position; and drafts of commits.

A table has the rows up to a position, a dict those that came since. Every row has the positions
between which it is visible, so that a query about the past costs as much as one about the present.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.disk import Disk
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
from perdure.artifacts.table import (
    OFTEN,
    IndexRow,
    Table,
    TableHeader,
    table_name,
    table_position,
    write_table,
)
from perdure.errors import DamageError, StaleIndexError

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
