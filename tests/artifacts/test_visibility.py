"""What is visible is sealed, logged and whole, wherever a power cut came."""

from collections.abc import Iterator

import pytest

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal
from perdure.artifacts.entry import Put
from perdure.artifacts.segment import HEAD_BYTES, SEAL_BYTES, LogEnd, SegmentReader, decode_header
from perdure.testing.requirement import requirement
from tests.support.artifacts.memory_disk import MemoryDisk

SEGMENT = "segment-00000001"
CONTENTS = [b"one", b"two" * 300, b"three"]


@pytest.fixture
def files() -> dict[str, bytes]:
    """Return what is on disk after three commits, as a crash would leave it: without the mark."""
    disk = MemoryDisk()
    with ArtifactStore(disk) as store:
        for content in CONTENTS:
            store.put(Literal(content))
    return {SEGMENT: disk.files()[SEGMENT]}


def ends(files: dict[str, bytes]) -> Iterator[LogEnd]:
    """Yield where each commit ends."""
    file = MemoryDisk(files).open(SEGMENT)
    header = decode_header(file.read(0, 128))
    for frame in SegmentReader(file, header.history).frames(LogEnd.of(header)):
        yield frame.end


def visible(store: ArtifactStore) -> list[bytes | None]:
    return [store.get(CID.of(content)) for content in CONTENTS]


@requirement("004-put-only-visible-moment", "004-visible-only-sealed")
@pytest.mark.parametrize("missing", [1, SEAL_BYTES])
def test_bytes_whose_commit_is_not_sealed_are_not_visible(
    files: dict[str, bytes], missing: int
) -> None:
    *_, last = ends(files)
    whole = files[SEGMENT]
    sealed = whole[: last.offset].rstrip(b"\0")
    torn = sealed[:-missing].ljust(len(whole), b"\0")
    assert CONTENTS[2] in torn

    with ArtifactStore(MemoryDisk({SEGMENT: torn})) as store:
        assert visible(store) == [CONTENTS[0], CONTENTS[1], None]
        assert store.current() == IndexState(0, 2)
        assert [cut.after for cut in store.cuts] == [2]


@requirement("004-partial-write-invisible", "004-replay-after-crash", "004-no-dangling-entry")
def test_wherever_a_write_stopped_a_prefix_of_the_commits_is_there_and_whole(
    files: dict[str, bytes],
) -> None:
    whole = files[SEGMENT]
    *_, last = ends(files)
    positions = set()
    for stop in range(last.offset + 1):
        torn = whole[:stop].ljust(len(whole), b"\0")
        with ArtifactStore(MemoryDisk({SEGMENT: torn})) as store:
            position = store.current().position
            positions.add(position)
            expected = [content if n < position else None for n, content in enumerate(CONTENTS)]
            assert visible(store) == expected
            puts = [logged.entry for logged in store.log()]
            assert all(isinstance(put, Put) and store.get(put.cid) is not None for put in puts)
            assert store.verify().ok
    assert positions == {0, 1, 2, 3}


@requirement("004-no-layout-assumed")
def test_answers_do_not_depend_on_how_bytes_are_laid_out() -> None:
    stores = [ArtifactStore(MemoryDisk(), segment_bytes=size) for size in (1, 1000, 1 << 20)]
    for store in stores:
        for content in CONTENTS:
            store.put(Literal(content))

    one, *others = stores
    for other in others:
        for position in range(4):
            state = IndexState(0, position)
            for content in CONTENTS:
                cid = CID.of(content)
                assert other.get(cid, state) == one.get(cid, state)
                assert other.locate(cid, state) == one.locate(cid, state)


def test_a_payload_that_is_torn_in_the_middle_is_cut_with_its_commit(
    files: dict[str, bytes],
) -> None:
    _, second, third = ends(files)
    whole = bytearray(files[SEGMENT])
    at = second.offset + HEAD_BYTES + 61
    assert whole[at : at + 5] == b"three"
    whole[at + 2] ^= 1

    with ArtifactStore(MemoryDisk({SEGMENT: bytes(whole)})) as store:
        assert visible(store) == [CONTENTS[0], CONTENTS[1], None]
    assert third.position == 3
