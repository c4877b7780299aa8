"""The entries of a log, their encoding, and values about positions in the log."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, UnionType
from typing import Any, NamedTuple

from perdure.artifacts.artifact import SID, Value, decode_canonical, encode_canonical
from perdure.artifacts.cid import CID
from perdure.dataclass import dataclass, field
from perdure.errors import DamageError, InvalidArtifactError, InvalidCIDError

PUT = 1

_PREFIX = struct.Struct("<BI")
_PUT = struct.Struct("<36sQQI")
_WHOLE_PUT = struct.Struct("<BI36sQQI")
_NONE: Mapping[str, Value] = MappingProxyType({})


class Put(NamedTuple):
    """Content becomes visible; it is these bytes of its frame's payload."""

    cid: CID
    offset: int
    length: int
    crc: int


class Register(NamedTuple):
    sid: SID
    encoded: bytes


class Bind(NamedTuple):
    """A name is bound to this content from here on, or to none."""

    name: str
    cid: CID | None
    circumstances: Mapping[str, Value] = _NONE


class Tombstone(NamedTuple):
    """Content is hidden."""

    cid: CID
    reason: str


class Lift(NamedTuple):
    cid: CID


class SnapshotAnchor(NamedTuple):
    """The whole index as of `position` was written; `digest` is the seal of that position."""

    snapshot: int
    position: int
    digest: bytes


class Result(NamedTuple):
    """The content that materializing a structure produced."""

    sid: SID
    cid: CID


class Sweep(NamedTuple):
    """States before `horizon` are dropped, and the bytes of these contents are erased."""

    horizon: int
    cids: tuple[CID, ...]


class UnknownEntry(NamedTuple):
    """An entry of a later format version; it has a position and is ignored."""

    kind: int
    body: bytes


KnownEntry = Put | Register | Bind | Tombstone | Lift | SnapshotAnchor | Result | Sweep
Entry = KnownEntry | UnknownEntry

KINDS: dict[type[KnownEntry], int] = {
    Put: PUT,
    Register: 2,
    Bind: 3,
    Tombstone: 4,
    Lift: 5,
    SnapshotAnchor: 6,
    Result: 7,
    Sweep: 8,
}


def encode(entry: Entry) -> bytes:
    """Return the entry with its kind and length, so that any reader can skip it."""
    if isinstance(entry, UnknownEntry):
        return _PREFIX.pack(entry.kind, len(entry.body)) + entry.body
    body = _body(entry)
    return _PREFIX.pack(KINDS[type(entry)], len(body)) + body


def _body(entry: KnownEntry) -> bytes:  # noqa: PLR0911 - one for each kind
    match entry:
        case Put(cid, offset, length, crc):
            return _PUT.pack(bytes(cid), offset, length, crc)
        case Register(sid, encoded):
            return bytes(sid) + encoded
        case Bind(name, cid, circumstances):
            return encode_canonical([name, cid, circumstances])
        case Tombstone(cid, reason):
            return encode_canonical([cid, reason])
        case Lift(cid):
            return bytes(cid)
        case SnapshotAnchor(snapshot, position, digest):
            return encode_canonical([snapshot, position, digest])
        case Result(sid, cid):
            return bytes(sid) + bytes(cid)
        case Sweep(horizon, cids):
            return encode_canonical([horizon, cids])


def decode_all(records: bytes) -> list[Entry]:
    """Decode consecutive entries; raises `DamageError` for malformed ones."""
    return [decode(kind, body) for kind, body in raw_entries(records)]


def decode(kind: int, body: bytes) -> Entry:
    reader = _READERS.get(kind)
    if reader is None:
        return UnknownEntry(kind, body)
    try:
        return reader(body)
    except (InvalidArtifactError, InvalidCIDError, struct.error, ValueError, TypeError) as error:
        raise DamageError(f"a log entry of kind {kind} can't be read: {error}") from error


def _put(body: bytes) -> Put:
    cid, offset, length, crc = _PUT.unpack(body)
    return Put(CID.from_bytes(cid), offset, length, crc)


def _sweep(body: bytes) -> Sweep:
    horizon, cids = _items(body, int, list)
    return Sweep(horizon, tuple(_checked(cids, [CID] * len(cids))))


def _items(body: bytes, *kinds: type | UnionType) -> list[Any]:
    return _checked(decode_canonical(body), kinds)


def _checked(items: object, kinds: Sequence[type | UnionType]) -> list[Any]:
    if not isinstance(items, list) or not all(map(isinstance, items, kinds)):
        raise TypeError("a value has the wrong type")
    if len(items) != len(kinds):
        raise ValueError(f"it has {len(items)} values, not {len(kinds)}")
    return items


_READERS: dict[int, Callable[[bytes], KnownEntry]] = {
    PUT: _put,
    2: lambda body: Register(CID.from_bytes(body[:36]), body[36:]),
    3: lambda body: Bind(*_items(body, str, CID | None, Mapping)),
    4: lambda body: Tombstone(*_items(body, CID, str)),
    5: lambda body: Lift(CID.from_bytes(body)),
    6: lambda body: SnapshotAnchor(*_items(body, int, int, bytes)),
    7: lambda body: Result(CID.from_bytes(body[:36]), CID.from_bytes(body[36:])),
    8: _sweep,
}


# ---------------------------------------------------------------- in bulk, undecoded
def encode_put(cid: bytes, offset: int, length: int, crc: int) -> bytes:
    return _WHOLE_PUT.pack(PUT, _PUT.size, cid, offset, length, crc)


def raw_entries(records: bytes) -> Iterator[tuple[int, bytes]]:
    at, stop = 0, len(records)
    while at < stop:
        if at + _PREFIX.size > stop:
            raise DamageError("the prefix of a log entry is truncated")
        kind, length = _PREFIX.unpack_from(records, at)
        at += _PREFIX.size
        if at + length > stop:
            raise DamageError(f"a log entry of {length} bytes is truncated after {stop - at}")
        yield kind, records[at : at + length]
        at += length


def raw_puts(
    records: bytes, first: int, kinds: frozenset[int]
) -> tuple[list[tuple[int, bytes, int, int, int]], list[tuple[int, int, bytes]]]:
    """Return the puts, and position, kind and body of entries of other kinds."""
    puts: list[tuple[int, bytes, int, int, int]] = []
    others: list[tuple[int, int, bytes]] = []
    at, stop, position = 0, len(records), first
    prefix, put, skip, size = _PREFIX.unpack_from, _PUT.unpack_from, _PREFIX.size, _PUT.size
    try:
        while at < stop:
            kind, length = prefix(records, at)
            at += skip
            if kind == PUT:
                if length != size:
                    raise DamageError("a put has the wrong length")
                puts.append((position, *put(records, at)))
            elif kind in kinds:
                others.append((position, kind, records[at : at + length]))
            at += length
            position += 1
    except struct.error:
        at += stop
    if at != stop:
        raise DamageError(f"a log entry is truncated after {stop} bytes of records")
    return puts, others


def whole_records(records: bytes) -> list[bytes]:
    """Return each entry as it is encoded, with kind and length."""
    found, at = [], 0
    for _, body in raw_entries(records):
        stop = at + _PREFIX.size + len(body)
        found.append(records[at:stop])
        at = stop
    return found


def unpack_puts(records: bytes, count: int) -> list[tuple[int, int, bytes, int, int, int]] | None:
    """Return the entries if all of them are puts; None if not."""
    size = _WHOLE_PUT.size
    if len(records) != count * size:
        return None
    # Compares kind and length of all entries at once.
    for at, byte in enumerate(_PREFIX.pack(PUT, _PUT.size)):
        if records[at::size].count(byte) != count:
            return None
    return list(_WHOLE_PUT.iter_unpack(records))


class IndexState(NamedTuple):
    """A state of the content index: a snapshot, and the log up to a position, inclusive."""

    snapshot: int
    """0 if there is none."""
    position: int
    """0 if the log is empty."""


class BlockSlice(NamedTuple):
    """Bytes of a sealed block. A block is named by the position of its commit's first entry."""

    block: int
    offset: int
    length: int


ArtifactLocation = tuple[BlockSlice, ...]
"""Where content is: these slices, concatenated."""


class LogEntry(NamedTuple):
    """An entry with its position, commit and time."""

    position: int
    commit: int
    """The last position of its commit, from which on the commit is visible."""
    time: int
    """Milliseconds since the epoch; never less than that of an earlier entry."""
    entry: Entry


class Binding(NamedTuple):
    """What a name is bound to from a position on."""

    name: str
    position: int
    commit: int
    time: int
    cid: CID | None
    circumstances: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class NewBinding:
    """A request to bind a name to this content, or to none."""

    name: str
    content: bytes | None
    circumstances: Mapping[str, Value] = field(default_factory=dict)
    """Recorded in the `Bind`."""
