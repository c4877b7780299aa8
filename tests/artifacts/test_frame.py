"""Log entries and frames as bytes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts import entry as entries
from perdure.artifacts.cid import CID, Codec
from perdure.artifacts.entry import (
    Bind,
    Entry,
    Lift,
    Put,
    Register,
    Result,
    SnapshotAnchor,
    Sweep,
    Tombstone,
    UnknownEntry,
    decode_all,
)
from perdure.artifacts.segment import (
    ALIGNMENT,
    FIRST_SEAL,
    HEAD_BYTES,
    SEAL_BYTES,
    FrameHead,
    decode_head,
    encode_head,
    records_checksum,
    seal,
)
from perdure.errors import DamageError

CIDS = st.binary(min_size=32, max_size=32).map(CID)
LONG = st.integers(0, 2**64 - 1)
SHORT = st.integers(0, 2**32 - 1)
CIRCUMSTANCES = st.dictionaries(st.text(), st.text() | st.integers(0, 9) | CIDS)
ENTRIES: st.SearchStrategy[Entry] = (
    st.builds(Put, CIDS, LONG, LONG, SHORT)
    | st.builds(
        Register, st.binary().map(lambda data: CID.of(data, codec=Codec.DAG_CBOR)), st.binary()
    )
    | st.builds(Bind, st.text(), st.none() | CIDS, CIRCUMSTANCES)
    | st.builds(Tombstone, CIDS, st.text())
    | st.builds(Lift, CIDS)
    | st.builds(SnapshotAnchor, LONG, LONG, st.binary(min_size=32, max_size=32))
    | st.builds(Result, CIDS, CIDS)
    | st.builds(Sweep, st.integers(0, 2**63), st.lists(CIDS).map(tuple))
    | st.builds(UnknownEntry, st.integers(9, 255), st.binary())
)
HEADS = st.builds(
    FrameHead,
    st.integers(1, 2**64 - 1),
    LONG,
    LONG,
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**30),
    LONG,
    SHORT,
)


@given(st.lists(ENTRIES))
def test_entries_come_back_in_order(written: list[Entry]) -> None:
    assert decode_all(b"".join(map(entries.encode, written))) == written


@given(st.lists(ENTRIES, min_size=1), st.data())
def test_entries_that_break_off_are_damage(written: list[Entry], data: st.DataObject) -> None:
    records = b"".join(map(entries.encode, written))
    whole = {0}
    for each in written:
        whole.add(max(whole) + len(entries.encode(each)))
    cut = data.draw(st.integers(0, len(records) - 1).filter(lambda at: at not in whole))

    with pytest.raises(DamageError):
        decode_all(records[:cut])


@given(st.binary(max_size=200))
def test_any_bytes_are_entries_or_damage(data: bytes) -> None:
    with suppress(DamageError):
        assert b"".join(map(entries.encode, decode_all(data))) == data


@given(HEADS)
def test_a_head_comes_back(head: FrameHead) -> None:
    encoded = encode_head(head, 7)

    assert len(encoded) == HEAD_BYTES
    assert decode_head(encoded + b"what follows", 7) == head


@given(HEADS, st.integers(0, HEAD_BYTES * 8 - 1))
def test_a_flipped_bit_in_a_head_is_damage(head: FrameHead, bit: int) -> None:
    flipped = bytearray(encode_head(head, 7))
    flipped[bit // 8] ^= 1 << bit % 8

    with pytest.raises(DamageError):
        decode_head(bytes(flipped), 7)


def test_where_nothing_was_written_no_frame_begins() -> None:
    assert decode_head(b"", 7) is None
    assert decode_head(b"\0" * HEAD_BYTES, 7) is None
    assert decode_head(b"\0" * 10, 7) is None


def test_a_head_that_breaks_off_is_damage() -> None:
    head = encode_head(FrameHead(1, 0, 0, 1, 0, 0, 0), 7)
    with pytest.raises(DamageError):
        decode_head(head[:20], 7)


@given(HEADS)
def test_the_parts_of_a_frame_stand_one_after_the_other(head: FrameHead) -> None:
    assert head.payload_offset == HEAD_BYTES + head.records_length
    assert head.seal_offset == head.payload_offset + head.payload_length
    assert 0 <= head.length - (head.seal_offset + SEAL_BYTES) < ALIGNMENT
    assert head.length % ALIGNMENT == 0
    assert head.last_position == head.first_position + head.entries - 1


def test_a_seal_depends_on_all_that_came_before() -> None:
    seals = {
        seal(FIRST_SEAL, b"head", b"records"),
        seal(FIRST_SEAL, b"head", b"recordz"),
        seal(FIRST_SEAL, b"heat", b"records"),
        seal(b"\x01" * SEAL_BYTES, b"head", b"records"),
    }

    assert len(seals) == 4
    assert records_checksum(b"123456789") == 0xE3069283  # the check value of CRC-32C
