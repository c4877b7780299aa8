"""Files that were changed at random: right answers or typed errors, and never wrong bytes."""

import random
import struct
import tracemalloc
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from google_crc32c import value as crc32c

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal
from perdure.artifacts.content_index import HEADER_BYTES as TABLE_HEADER_BYTES
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Entry
from perdure.artifacts.recent_names import MARK
from perdure.artifacts.segment import (
    Frame,
    FrameHead,
    LogEnd,
    SegmentReader,
    decode_header,
    encode_head,
    records_checksum,
    salt_of,
    seal,
)
from perdure.artifacts.shared_log import ERASE_NOTE, LOCK
from perdure.errors import DamageError, PerdureError
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.tiers import searched, seed

pytestmark = pytest.mark.search

SEGMENTS = searched(40_000)
TABLES = searched(16_000)
OTHERS = searched(4_500)
FORGED = searched(2_000)
MOST_MEMORY = 8 << 20

Files = dict[str, bytes]
Mutation = Callable[[random.Random, bytes, bytes], bytes]


# ---------------------------------------------------------------- what is changed


@dataclass(frozen=True)
class History:
    """A small history, and what is known about it."""

    files: Files
    contents: dict[CID, tuple[bytes, list[int]]]
    """The bytes, and from where on they are to be seen, not to be seen, to be seen, and so on."""
    entries: list[Entry]
    horizon: int

    def seen(self, cid: CID, position: int) -> bytes | None:
        data, changes = self.contents[cid]
        return data if bisect_right(changes, position) % 2 else None

    def name(self, prefix: str) -> str:
        return max(name for name in self.files if name.startswith(prefix))


def make(chance: random.Random) -> History:
    """Make a history with some segments, a table, and a sweep that was cut short."""
    disk = MemoryDisk()
    store = ArtifactStore(disk, segment_bytes=chance.choice([1_000, 1_600]))
    texts = [chance.randbytes(chance.randrange(40)) + b"%d" % number for number in range(5)]
    changes: dict[bytes, list[int]] = {text: [] for text in texts}

    def note(state: IndexState, *changed: bytes) -> IndexState:
        for text in changed:
            changes[text].append(state.position)
        return state

    note(store.put_many(list(map(Literal, texts[:3])))[1], *texts[:3])
    hidden = note(store.tombstone(CID.of(texts[2]), "no more"), texts[2])
    store.snapshot()
    note(store.put(Literal(texts[3]))[1], texts[3])
    note(store.tombstone(CID.of(texts[3]), "no more"), texts[3])
    note(store.lift(CID.of(texts[3])), texts[3])
    noted = Noted(disk)
    ArtifactStore(noted, segment_bytes=1_000).gc(before=hidden)
    note(store.put(Literal(texts[4]))[1], texts[4])
    entries = [logged.entry for logged in store.log()]
    store.close()
    return History(
        {**disk.files(), ERASE_NOTE: noted.noted, LOCK: b"process 1 on here".ljust(100)},
        {CID.of(text): (text, places) for text, places in changes.items()},
        entries,
        hidden.position,
    )


class Noted(MemoryDisk):
    """A disk that shows what a sweep noted before it was done."""

    def __init__(self, inner: MemoryDisk) -> None:
        self.__dict__.update(inner.__dict__)
        self.noted = b""

    def remove(self, name: str) -> None:
        if name == ERASE_NOTE:
            self.noted = self.files()[ERASE_NOTE]
        super().remove(name)


@cache
def histories() -> list[History]:
    chance = random.Random(1)
    return [make(chance) for _ in range(8)]


# ---------------------------------------------------------------- how it is changed


def flip_a_bit(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _region(chance: random.Random, data: bytes) -> tuple[int, int]:
    at = chance.randrange(len(data))
    return at, min(len(data), at + chance.choice([1, 4, 8, 40, 200]))


def overwrite(chance: random.Random, data: bytes, _: bytes) -> bytes:
    start, stop = _region(chance, data)
    return data[:start] + chance.randbytes(stop - start) + data[stop:]


def zero(chance: random.Random, data: bytes, _: bytes) -> bytes:
    start, stop = _region(chance, data)
    return data[:start] + bytes(stop - start) + data[stop:]


def cut_off(chance: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def insert(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.choice([1, 3, 8, 64])) + data[at:]


def leave_out(chance: random.Random, data: bytes, _: bytes) -> bytes:
    start, stop = _region(chance, data)
    return data[:start] + data[stop:]


def swap(chance: random.Random, data: bytes, _: bytes) -> bytes:
    (a, b), (c, d) = sorted([_region(chance, data), _region(chance, data)])
    c, d = max(b, c), max(b, d)
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def repeat(chance: random.Random, data: bytes, _: bytes) -> bytes:
    start, stop = _region(chance, data)
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[start:stop] + data[at:]


def mix(chance: random.Random, data: bytes, other: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + other[at:]


def replace(_: random.Random, __: bytes, other: bytes) -> bytes:
    return other


def append(_: random.Random, data: bytes, other: bytes) -> bytes:
    return data.rstrip(b"\0") + other


MUTATIONS: list[Mutation] = [
    *(flip_a_bit, flip_a_bit, overwrite, zero, cut_off, insert, leave_out, swap, repeat),
    *(mix, replace, append),
]


def mutants(count: int, *prefixes: str) -> Iterator[tuple[History, Files]]:
    """Yield histories with one file changed at random, the same ones each time."""
    chance = random.Random(seed(count))
    for _ in range(count):
        ours, theirs = chance.sample(histories(), 2)
        prefix = chance.choice(prefixes)
        name = chance.choice([name for name in ours.files if name.startswith(prefix)])
        data = ours.files[name]
        changed = chance.choice(MUTATIONS)(chance, data, theirs.files[theirs.name(prefix)])
        files = ours.files | {name: changed}
        if name != ERASE_NOTE:
            del files[ERASE_NOTE]
        yield ours, files


# ---------------------------------------------------------------- what must hold


def judge(history: History, disk: Disk, *, acknowledged: bool = True, log: bool = True) -> bool:
    """Whether it could be opened; all that it says must be right, or a typed error.

    If it is known what was `acknowledged`, nothing of that may be missing without an error.
    """
    try:
        store = ArtifactStore(disk)
    except PerdureError as refused:
        assert "Fix:" in str(refused)  # noqa: PT017 - most are refused, some are not
        return False
    position = store.current().position
    assert position == len(history.entries) or not acknowledged
    found = True
    for cid in history.contents:
        try:
            assert store.get(cid) == history.seen(cid, position)
        except DamageError:
            found = False
    try:
        assert not log or [logged.entry for logged in store.log()] == history.entries[:position]
    except DamageError:
        found = False
    assert found or not store.verify().ok
    store.close()
    return found


def test_a_changed_segment_gives_right_answers_or_typed_errors() -> None:
    opened = 0
    for history, files in mutants(SEGMENTS * 9 // 10, "segment-"):
        opened += judge(history, MemoryDisk(files))

    assert 0 < opened < SEGMENTS // 2


def test_a_changed_segment_without_a_mark_gives_right_answers_or_typed_errors() -> None:
    for history, files in mutants(SEGMENTS // 10, "segment-"):
        del files[MARK]
        judge(history, MemoryDisk(files), acknowledged=False)


def test_a_changed_table_gives_right_answers_and_no_errors() -> None:
    for history, files in mutants(TABLES * 9 // 10, "table-"):
        assert judge(history, MemoryDisk(files), log=False)


def test_a_changed_table_without_a_mark_gives_right_answers_and_no_errors() -> None:
    for history, files in mutants(TABLES // 10, "table-"):
        del files[MARK]
        assert judge(history, MemoryDisk(files), log=False)


@pytest.mark.parametrize("name", [MARK, ERASE_NOTE, LOCK])
def test_a_changed_file_beside_the_log_gives_right_answers_and_no_errors(name: str) -> None:
    for history, files in mutants(OTHERS // 3, name):
        assert judge(history, MemoryDisk(files))


def test_a_file_of_any_name_that_is_not_ours_is_left_alone() -> None:
    history = histories()[0]
    names = ["segment-", "segment-x", "segment-²", "table-", "table-9" * 9, "mark.bak", "note.md"]
    for name in names:
        disk = MemoryDisk(history.files | {name: b"not ours"})
        assert judge(history, disk)
        assert disk.files()[name] == b"not ours"


# ---------------------------------------------------------------- forged: the checksums are right


def last_frame(files: Files, name: str) -> Frame:
    header = decode_header(files[name])
    reader = SegmentReader(MemoryDisk(files).open(name), header.history)
    return list(reader.frames(LogEnd.of(header)))[-1]


def reforge(files: Files, name: str, frame: Frame, head: FrameHead, records: bytes) -> Files:
    """Write another frame in place of the last, sealed as if it were ours."""
    header = decode_header(files[name])
    before = LogEnd.of(header)
    file = MemoryDisk(files).open(name)
    for earlier in SegmentReader(file, header.history).frames(before):
        if earlier.offset < frame.offset:
            before = earlier.end
    data = files[name]
    payload = data[frame.payload : frame.offset + frame.head.seal_offset]
    head = head._replace(
        records_length=len(records) if head == frame.head else head.records_length,
        records_crc=records_checksum(records),
    )
    packed = encode_head(head, salt_of(header.history))
    sealed = seal(before.seal, packed, records)
    whole = packed + records + payload + sealed
    return files | {name: data[: frame.offset] + whole + bytes(-len(whole) % 8 + 64)}


def test_a_forged_frame_gives_right_answers_or_typed_errors(tmp_path: Path) -> None:
    chance = random.Random(seed(4))
    for number in range(FORGED):
        history = chance.choice(histories())
        name = history.name("segment-")
        frame = last_frame(history.files, name)
        records = chance.choice(MUTATIONS[:9])(chance, frame.records, b"")
        files = reforge(history.files, name, frame, frame.head, records)
        if chance.random() < 0.5:
            del files[MARK]
        disk: Disk = MemoryDisk(files)
        if number % 100 == 0:
            disk = folder_of(tmp_path / str(number), files)
        judge_forged(history, disk)


def folder_of(folder: Path, files: Files) -> FolderDisk:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return FolderDisk(folder)


def judge_forged(history: History, disk: Disk) -> None:
    """Look at the bytes only: what it says of them is well sealed."""
    try:
        store = ArtifactStore(disk)
    except PerdureError:
        return
    for cid in history.contents:
        try:
            data = store.get(cid)
            assert data is None or CID.of(data) == cid
        except PerdureError:
            continue
    try:
        assert list(store.log()) is not None
        store.verify()
    except PerdureError:
        pass
    store.close()


HUGE = [0, 1, 2**16, 2**31, 2**32 - 1]
HUGER = [*HUGE, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_forged_lengths_and_places_take_no_memory_and_raise_typed_errors(
    tmp_path: Path, kind: str
) -> None:
    history = histories()[1]
    name = history.name("segment-")
    frame = last_frame(history.files, name)
    forged = []
    for size in HUGE:
        for field in ("entries", "records_length"):
            head = frame.head._replace(**{field: size})
            forged.append(reforge(history.files, name, frame, head, frame.records))
    for size in HUGER:
        head = frame.head._replace(payload_length=size)
        forged.append(reforge(history.files, name, frame, head, frame.records))
        for place in (41, 49):  # the offset and the length of a put
            records = frame.records[:place] + struct.pack("<Q", size) + frame.records[place + 8 :]
            forged.append(reforge(history.files, name, frame, frame.head, records))
    tracemalloc.start()
    try:
        for number, files in enumerate(forged):
            for some in (files, {n: data for n, data in files.items() if n != MARK}):
                folder = tmp_path / f"{number}-{len(some)}"
                judge_forged(
                    history, MemoryDisk(some) if kind == "memory" else folder_of(folder, some)
                )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


def test_forged_numbers_in_a_table_take_no_memory_and_do_no_harm() -> None:
    history = histories()[1]
    name = history.name("table-")
    data = history.files[name]
    tracemalloc.start()
    try:
        for at in range(8, TABLE_HEADER_BYTES - 4, 4):
            for size in HUGE:
                forged = data[:at] + struct.pack("<I", size) + data[at + 4 : -4]
                header = forged[: TABLE_HEADER_BYTES - 4]
                whole = header + struct.pack("<I", crc32c(header)) + data[TABLE_HEADER_BYTES:]
                judge_forged(history, MemoryDisk(history.files | {name: whole}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


def test_changed_files_take_no_more_memory_than_whole_ones() -> None:
    sample = [
        *mutants(200, "segment-"),
        *mutants(100, "table-"),
        *mutants(50, MARK, ERASE_NOTE, LOCK),
    ]
    tracemalloc.start()
    try:
        for history, files in sample:
            judge_forged(history, MemoryDisk(files))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


def test_a_state_of_the_past_is_answered_right_after_any_change_to_the_table() -> None:
    for history, files in mutants(500, "table-"):
        with ArtifactStore(MemoryDisk(files)) as store:
            for position in range(history.horizon, len(history.entries) + 1):
                for cid in history.contents:
                    state = IndexState(0, position)
                    assert store.get(cid, state) == history.seen(cid, position)
