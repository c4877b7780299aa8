"""What a walk over a whole log tells, and that all of it makes sense together.

The chain of seals shows that nothing was changed since it was written. Here it is also looked at
whether a store could have written it: a log from elsewhere may be sealed well and still be meant
to harm.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.entry import (
    Lift,
    Put,
    Register,
    SnapshotAnchor,
    Sweep,
    Tombstone,
    decode,
)
from perdure.artifacts.merkle import EMPTY_ROOT, leaf, leaf_hashes, root_of
from perdure.artifacts.records import PUT, decode_put, only_puts, raw_entries, whole_records
from perdure.artifacts.segment import End, Frame
from perdure.errors import DamageError

SLICE = 1 << 20

_ZEROS = bytes(SLICE)
_PREFIX = struct.Struct("<BI")
_MOST = 1 << 63
"""From here on, a number of 64 bits can't be kept by everybody who must."""


class Readable(Protocol):
    """As much of a file as reading it needs."""

    def read(self, offset: int, length: int) -> bytes: ...

    def size(self) -> int: ...


class Placed(NamedTuple):
    """Content that a frame puts, and where in the segment its bytes are."""

    position: int
    cid: bytes
    crc: int
    place: int
    length: int

    @property
    def digest(self) -> bytes:
        return self.cid[4:]


def placed(frame: Frame) -> Iterator[Placed]:
    """Yield what the frame puts."""
    first, payload = frame.head.first_position, frame.payload
    plain = only_puts(frame)
    if plain is not None:
        for position, (_, _, cid, offset, length, crc) in enumerate(plain, first):
            yield Placed(position, cid, crc, payload + offset, length)
        return
    for position, (kind, body) in enumerate(raw_entries(frame.records), first):
        if kind == PUT:
            cid, offset, length, crc = decode_put(body)
            yield Placed(position, cid, crc, payload + offset, length)


class Survey:
    """A log from its beginning on, as far as it was walked. What can't be is `DamageError`."""

    def __init__(self, begin: End, algorithm: Hash) -> None:
        self.end = begin
        self.root = EMPTY_ROOT
        """Of the RFC 6962 tree over all entries."""
        self.snapshots = 0
        self.stops: dict[int, int] = {}
        """Where the frames of each segment end."""
        self._swept: dict[bytes, int] = {}
        self._hidden: dict[bytes, int] = {}
        self._horizon = 0
        self._hash = algorithm
        self._prefix = bytes(CID(bytes(32), algorithm, Codec.RAW))[:4]

    def walk(self, frames: Iterable[Frame]) -> None:
        """Take in all frames of the log; once."""
        self.root = root_of(leaf_hashes(self._leaves(frames)))

    @property
    def has_swept(self) -> bool:
        """Whether anything was ever swept."""
        return bool(self._swept)

    def is_swept(self, put: Placed) -> bool:
        """Whether the log itself says that these bytes are gone: they are zeros then."""
        return self._swept.get(put.digest, 0) > put.position

    def _leaves(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        for frame in frames:
            time = frame.head.time
            for record in self._take_in(frame):
                yield leaf(time, record)

    def _take_in(self, frame: Frame) -> list[bytes]:
        head = frame.head
        if max(head.time, head.epoch, head.last_position) >= _MOST:
            raise DamageError("a commit has a time, an epoch or a position that is no real one")
        records = whole_records(frame.records)
        if len(records) != head.entries:
            raise DamageError(f"a commit of {head.entries} entries has {len(records)}")
        self._check_puts(frame)
        if only_puts(frame) is None:
            for position, record in enumerate(records, head.first_position):
                self._check_entry(frame, position, record)
        elif self._hidden:
            for put in placed(frame):
                self._hidden.pop(put.digest, None)
        self.end = frame.end
        self.stops[frame.segment] = frame.end.offset
        return records

    def _check_puts(self, frame: Frame) -> None:
        """Refuse payload that no hash vouches for."""
        after = frame.payload
        for put in placed(frame):
            if put.place != after or put.cid[:4] != self._prefix:
                raise DamageError(f"entry {put.position} puts what is no content of its commit")
            after += put.length
        if after != frame.payload + frame.head.payload_length:
            raise DamageError("a commit has bytes that no entry speaks of")

    def _check_entry(self, frame: Frame, position: int, record: bytes) -> None:
        entry = decode(record[0], record[_PREFIX.size :])
        match entry:
            case SnapshotAnchor(number, at, digest):
                expected = (self.snapshots + 1, self.end.position, self.end.seal)
                self._check(position, frame, fits=(number, at, digest) == expected)
                self.snapshots += 1
            case Sweep(horizon, cids):
                self._check(position, frame, fits=self._is_due(horizon, cids))
                self._horizon = horizon
                self._swept.update((cid.digest, position) for cid in cids)
            case Put(cid) | Lift(cid):
                self._hidden.pop(cid.digest, None)
            case Tombstone(cid, _):
                self._hidden.setdefault(cid.digest, frame.head.last_position)
            case Register(sid, encoded) if sid != CID.of(encoded, self._hash, Codec.DAG_CBOR):
                raise DamageError(f"entry {position} registers a structure under a wrong name")

    def _is_due(self, horizon: int, cids: Sequence[CID]) -> bool:
        """Whether a store would sweep this: what was hidden before, and nothing else."""
        if not self._horizon <= horizon <= self.end.position:
            return False
        names = [bytes(cid) for cid in cids]
        if names != sorted(set(names)) or not {name[:4] for name in names} <= {self._prefix}:
            return False
        return all(self._hidden.pop(name[4:], 0) for name in names)

    def _check(self, position: int, frame: Frame, *, fits: bool) -> None:
        """Refuse a snapshot or a sweep that is not alone, or not of the log before it."""
        if not fits or frame.head.entries != 1:
            raise DamageError(f"entry {position} is no snapshot or sweep of the log before it")


# ---------------------------------------------------------------- content
class Window:
    """Reads a file from the front, with few looks at it, and never beyond a place."""

    def __init__(self, file: Readable, stop: int | None = None) -> None:
        self._file = file
        self._stop = file.size() if stop is None else stop
        self._start = 0
        self._data = b""

    def read(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._data):
            self._start, at = offset, 0
            ahead = min(SLICE, self._stop - offset)
            self._data = self._file.read(offset, max(length, ahead))
        return self._data[at : at + length]

    def slices(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes there in slices; none, or a short one, where the file ends."""
        for at in range(offset, offset + length, SLICE):
            yield self.read(at, min(SLICE, offset + length - at))


def is_whole(window: Window, put: Placed, algorithm: Hash) -> bool:
    """Whether the bytes are there, and are those that the CID names."""
    if put.length <= SLICE:
        data = window.read(put.place, put.length)
        return algorithm.digest(data) == put.digest and crc32c(data) == put.crc
    hasher, crc = algorithm.hasher(), 0
    for data in window.slices(put.place, put.length):
        hasher.update(data)
        crc = extend_crc32c(crc, data)
    return hasher.digest() == put.digest and crc == put.crc


def zeros(put: Placed) -> Iterator[bytes]:
    """Yield what stands for content that was swept."""
    for at in range(0, put.length, SLICE):
        yield _ZEROS[: put.length - at]


def is_erased(window: Window, put: Placed) -> bool:
    """Whether the bytes are there, and all of them zeros."""
    found = 0
    for data in window.slices(put.place, put.length):
        if data.count(0) != len(data):
            return False
        found += len(data)
    return found == put.length
