"""Every bit of a small history is flipped: it is found, and what is lost by it is named."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from perdure.artifacts import CID, ArtifactStore, Literal
from perdure.artifacts.segment import (
    HEADER_BYTES,
    SEAL_BYTES,
    Frame,
    LogEnd,
    SegmentReader,
    decode_header,
)
from perdure.artifacts.verification import Report, verify
from perdure.errors import DamageError, PerdureError
from tests.support.artifacts.memory_disk import MemoryDisk

SEGMENT = "segment-00000001"
CONTENTS = [b"first content", b"", b"second", b"third, in the last frame"]
CIDS = [CID.of(data) for data in CONTENTS]

Files = dict[str, bytes]


class Place(NamedTuple):
    """What a byte of the segment belongs to."""

    part: str
    cid: CID | None = None


@pytest.fixture(scope="module")
def files() -> Files:
    disk = MemoryDisk()
    with ArtifactStore(disk, segment_bytes=900) as store:
        store.put_many(list(map(Literal, CONTENTS[:2])))
        store.put(Literal(CONTENTS[2]))
        store.tombstone(CIDS[1], "no more")
        store.put(Literal(CONTENTS[3]))
    assert [name for name in disk.names() if name.startswith("segment-")] == [SEGMENT]
    assert len(disk.files()[SEGMENT]) == 900
    return disk.files()


def frames(data: bytes) -> list[Frame]:
    header = decode_header(data)
    reader = SegmentReader(MemoryDisk({SEGMENT: data}).open(SEGMENT), header.history)
    return list(reader.frames(LogEnd.of(header)))


def places(data: bytes) -> Iterator[Place]:
    """Yield what each byte of the segment belongs to."""
    yield from [Place("header")] * HEADER_BYTES
    for frame in frames(data):
        sealed = frame.offset + frame.head.seal_offset
        yield from [Place("head and records")] * (frame.payload - frame.offset)
        yield from [owner(data, at) for at in range(frame.payload, sealed)]
        yield from [Place("seal")] * SEAL_BYTES
        yield from [Place("padding")] * (frame.end.offset - sealed - SEAL_BYTES)
    yield from [Place("reserved")] * (len(data) - frames(data)[-1].end.offset)


def owner(data: bytes, at: int) -> Place:
    """Return whose content a byte of a payload is; each is in the segment once."""
    starts = {cid: data.index(content) for cid, content in zip(CIDS, CONTENTS, strict=True)}
    (cid,) = (c for c, text in zip(CIDS, CONTENTS, strict=True) if 0 <= at - starts[c] < len(text))
    return Place("payload", cid)


def flips(data: bytes) -> Iterator[tuple[Place, bytes]]:
    for at, place in enumerate(places(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            yield place, bytes(flipped)


def look(files: Files, flipped: bytes) -> Report:
    return verify(MemoryDisk(files | {SEGMENT: flipped}), until=5)


def test_an_unharmed_history_has_no_faults(files: Files) -> None:
    report = look(files, files[SEGMENT])

    assert report.ok
    assert (report.commits, report.entries, report.contents, report.position) == (4, 5, 4, 5)
    assert {place.part for place in places(files[SEGMENT])} == {
        *("header", "head and records", "payload", "seal", "padding", "reserved")
    }


def test_every_flipped_bit_of_a_content_is_found_and_that_content_alone_is_named(
    files: Files,
) -> None:
    for place, flipped in flips(files[SEGMENT]):
        if place.part == "payload":
            report = look(files, flipped)
            assert [fault.cid for fault in report.faults] == [place.cid]
            assert report.contents == 3


def test_every_flipped_bit_of_the_log_is_found_and_where_it_is_is_reported(files: Files) -> None:
    starts = [frame.offset for frame in frames(files[SEGMENT])]
    for at, place in enumerate(places(files[SEGMENT])):
        if place.part in {"header", "head and records", "seal"}:
            begin = max((start for start in starts if start <= at), default=0)
            for bit in range(8):
                flipped = bytearray(files[SEGMENT])
                flipped[at] ^= 1 << bit
                where = [fault.where for fault in look(files, bytes(flipped)).faults]
                assert f"{SEGMENT} at byte {begin}" in where


def test_only_zeros_that_nobody_reads_can_be_flipped_unnoticed(files: Files) -> None:
    """The padding that aligns the next frame, and what is reserved: they carry nothing."""
    unnoticed = {place.part for place, flipped in flips(files[SEGMENT]) if look(files, flipped).ok}

    assert unnoticed <= {"padding", "reserved"}


def test_a_frame_that_can_not_be_read_hides_no_damage_after_it(files: Files) -> None:
    damaged = bytearray(files[SEGMENT])
    damaged[frames(files[SEGMENT])[1].offset] ^= 1
    damaged[files[SEGMENT].index(CONTENTS[3])] ^= 1

    report = look(files, bytes(damaged))

    assert [fault.cid for fault in report.faults if fault.cid] == [CIDS[3]]
    assert report.position == 2
    assert report.contents == 2


@pytest.mark.parametrize("mark", ["marked", "unmarked"])
def test_get_never_returns_wrong_bytes_whatever_bit_is_flipped(files: Files, mark: str) -> None:
    rest = files if mark == "marked" else {}
    expected = [CONTENTS[0], None, *CONTENTS[2:]]
    for place, flipped in flips(files[SEGMENT]):
        try:
            store = ArtifactStore(MemoryDisk({**rest, SEGMENT: flipped}))
        except DamageError as refused:
            assert place.part not in {"payload", "padding", "reserved"}
            assert "Fix:" in str(refused)  # noqa: PT017 - most flips refuse, some don't
            continue
        for cid, data in zip(CIDS, expected, strict=True):
            got = got_or_error(store, cid)
            if mark == "unmarked" and cid == CIDS[3] and got is None:
                assert store.cuts  # the last frame was taken for one that was never finished
            elif place.cid == cid and data is not None:
                assert isinstance(got, DamageError)
            else:
                assert got == data
        store.close()


def got_or_error(store: ArtifactStore, cid: CID) -> bytes | PerdureError | None:
    try:
        return store.get(cid)
    except PerdureError as error:
        return error
