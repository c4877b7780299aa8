"""Histories to export, and archives as no store would write them."""

import io
import random
from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from typing import NamedTuple

from perdure.artifacts import CID, ArtifactStore, Derived, Literal, NewBinding
from perdure.artifacts.archive_format import Footer, encode_opening, read_archive
from perdure.artifacts.archive_transfer import export
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import whole_records
from perdure.artifacts.merkle import leaf, leaf_hashes, root_of
from perdure.artifacts.segment import (
    FrameHead,
    LogEnd,
    SegmentHeader,
    encode_head,
    records_checksum,
    salt_of,
    seal,
)
from perdure.errors import DamageError

SEGMENT_BYTES = 2048
LARGE = random.Random("large").randbytes(5 << 19)


def open_store(disk: Disk) -> ArtifactStore:
    """Open a store whose segments are soon full, and whose clock ticks once a commit."""
    return ArtifactStore(disk, segment_bytes=SEGMENT_BYTES, clock=count(1).__next__)


def exported(store: ArtifactStore) -> bytes:
    target = io.BytesIO()
    export(store, target)
    return target.getvalue()


def literal(number: int) -> Literal:
    dice = random.Random(number)
    return Literal(dice.randbytes(dice.randrange(400)))


def live(store: ArtifactStore, *, large: bool = False) -> list[CID]:
    """Do a bit of everything, and return what was put."""
    cids = [store.put(literal(number))[0] for number in range(8)]
    store.put(Derived("concat", "1", (Literal(b"one"), Literal(b"two"))))
    store.record([NewBinding("a/note", b"first", {"who": "Ana"}), NewBinding("b/note", b"other")])
    store.snapshot()
    store.tombstone(cids[1], "outdated")
    store.tombstone(cids[2], "wrong")
    store.tombstone(cids[3], "hidden only")
    store.lift(cids[2])
    store.gc(before=store.current().position - 2)
    store.put_many([literal(number) for number in range(20, 30)])
    if large:
        cids.append(store.put(Literal(LARGE))[0])
    store.snapshot()
    store.record([NewBinding("a/note", b"second", {"who": "Ben"}), NewBinding("b/note", None)])
    return [*cids, CID.of(b"onetwo"), CID.of(b"first"), CID.of(b"second")]


def live_on(store: ArtifactStore, cids: Sequence[CID]) -> None:
    """Do more, so that what was exported before is the beginning of it."""
    store.put_many([literal(number) for number in range(40, 52)])
    store.lift(cids[3])
    store.tombstone(cids[4], "old")
    store.gc(before=store.current())
    store.put(literal(4))
    store.record([NewBinding("c/note", b"third")])
    store.snapshot()


# ---------------------------------------------------------------- forging
class Commit(NamedTuple):
    """What a frame is made of."""

    records: bytes
    payload: bytes
    time: int
    epoch: int
    entries: int


def dismantle(data: bytes) -> tuple[bytes, list[list[Commit]]]:
    """Return the history's id, and the commits of each segment."""
    archive = read_archive(io.BytesIO(data))
    segments: list[list[Commit]] = [[] for _ in archive.sections]
    for frame in archive.frames():
        head, section = frame.head, archive.sections[frame.segment]
        payload = section.read(frame.payload, head.payload_length)
        commit = Commit(frame.records, payload, head.time, head.epoch, head.entries)
        segments[frame.segment - 1].append(commit)
    return archive.history, segments


def assemble(history: bytes, segments: Sequence[Sequence[Commit]]) -> bytes:
    """Return an archive in which all hashes, seals and checksums are right."""
    end = LogEnd(0, 0, 0, 0, 0, bytes(32))
    parts, leaves = [], []
    for number, commits in enumerate(segments, 1):
        algorithm = CID(bytes(32)).hash
        part = SegmentHeader(history, algorithm, number, *end[2:]).encode()
        for commit in commits:
            frame, end = _frame(commit, end, salt_of(history))
            part += frame
            leaves += _leaves(commit)
        parts.append(part)
    footer = Footer(end.position, end.seal, root_of(leaf_hashes(leaves))).encode()
    return redigested(encode_opening([*map(len, parts)]) + b"".join(parts) + footer + bytes(32))


def _frame(commit: Commit, end: LogEnd, salt: int) -> tuple[bytes, LogEnd]:
    records, payload, time, epoch, entries = commit
    checksum = records_checksum(records)
    head = FrameHead(end.position + 1, time, epoch, entries, len(records), len(payload), checksum)
    packed = encode_head(head, salt)
    sealed = seal(end.seal, packed, records)
    frame = (packed + records + payload + sealed).ljust(head.length, b"\0")
    return frame, LogEnd(0, 0, head.last_position, time, epoch, sealed)


def _leaves(commit: Commit) -> list[bytes]:
    try:
        return [leaf(commit.time, record) for record in whole_records(commit.records)]
    except DamageError:
        return []


def redigested(data: bytes) -> bytes:
    """Return an archive with the digest that it must have."""
    return data[:-32] + sha256(data[:-32]).digest()
