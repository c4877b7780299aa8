"""What a crash leaves is settled once, and damage is distinguished from it."""

import struct
from pathlib import Path

import pytest

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.entry import UnknownEntry
from perdure.artifacts.log import Mark, MarkFile
from perdure.artifacts.recent_names import MARK
from perdure.artifacts.segment import HEAD_BYTES, HEADER_BYTES, LogEnd, SegmentReader, decode_header
from perdure.artifacts.verification import verify
from perdure.errors import DamageError
from tests.support.artifacts.memory_disk import MemoryDisk

FIRST = "segment-00000001"
SECOND = "segment-00000002"
CONTENTS = [b"one" * 5, b"two" * 5, b"three" * 5]
ONE, TWO, THREE = map(CID.of, CONTENTS)

Files = dict[str, bytes]


def history(contents: list[bytes] = CONTENTS, **options: object) -> Files:
    """Return the files of a history with one commit for each content, without what is reserved."""
    disk = MemoryDisk()
    with ArtifactStore(disk, **options) as store:  # type: ignore[arg-type]
        for data in contents:
            store.put(Literal(data))
    files = disk.files()
    files |= {name: data.rstrip(b"\0") for name, data in files.items() if is_log(name)}
    return files if opens_whole(files) else history(contents, **options)


def opens_whole(files: Files) -> bool:
    """Return whether no frame of random ids ended with a zero, which looks like reserved space."""
    try:
        with ArtifactStore(MemoryDisk(unmarked(files))) as store:
            return not store.cuts
    except DamageError:
        return False


def is_log(name: str) -> bool:
    return name.startswith("segment-")


def unmarked(files: Files) -> Files:
    return {name: data for name, data in files.items() if name != MARK}


def marked(files: Files, position: int) -> Files:
    disk = MemoryDisk(files)
    header = decode_header(files[FIRST])
    MarkFile.create(disk).write(Mark(header.history, position, 1))
    return disk.files()


def ends(data: bytes) -> list[int]:
    """Return where the frames of a segment begin, and where the last one ends."""
    header = decode_header(data)
    file = MemoryDisk({"": data.ljust(len(data) + 8, b"\0")}).open("")
    frames = list(SegmentReader(file, header.history).frames(LogEnd.of(header)))
    return [HEADER_BYTES, *(frame.end.offset for frame in frames)]


class TestTornTails:
    @pytest.mark.parametrize("fill", [b"", b"\0", b"\xff", b"PDfr"], ids=["", "0", "1", "magic"])
    def test_a_last_frame_torn_at_any_byte_is_cut_off_and_the_cut_is_reported(
        self, fill: bytes
    ) -> None:
        files = history()
        whole, (*_, start, _) = files[FIRST], ends(files[FIRST])
        for length in range(start + 1, len(whole)):
            torn = whole[:length] + (fill * len(whole))[: len(whole) - length]
            if torn.rstrip(b"\0") == whole:
                continue
            disk = MemoryDisk(marked({FIRST: torn}, 2))
            with ArtifactStore(disk) as store:
                (cut,) = store.cuts
                assert (cut.after, cut.segment, cut.offset) == (2, FIRST, start)
                assert cut.length == len(torn) - start
                assert store.current() == IndexState(0, 2)
                assert store.get_many([ONE, TWO, THREE]) == [*CONTENTS[:2], None]
                assert store.put(Literal(b"short")) == (CID.of(b"short"), IndexState(0, 3))
            with ArtifactStore(disk) as again:
                assert again.cuts == ()
                assert again.get_many([ONE, TWO, CID.of(b"short")]) == [*CONTENTS[:2], b"short"]
                assert again.verify().ok

    @pytest.mark.parametrize("mark", ["there", "missing"])
    def test_the_first_frame_of_a_segment_torn_at_any_byte_is_cut_off_too(self, mark: str) -> None:
        files = history(CONTENTS, segment_bytes=HEADER_BYTES)
        last = max(filter(is_log, files))
        assert last == "segment-00000003"
        for length in range(len(files[last])):
            torn = marked(files | {last: files[last][:length]}, 2)
            disk = MemoryDisk(torn if mark == "there" else unmarked(torn))
            with ArtifactStore(disk, segment_bytes=HEADER_BYTES) as store:
                assert store.current() == IndexState(0, 2)
                assert store.put(Literal(CONTENTS[2])) == (THREE, IndexState(0, 3))
            with ArtifactStore(disk) as again:
                assert again.get_many([ONE, TWO, THREE]) == CONTENTS
                assert again.verify().ok

    def test_the_only_frame_torn_at_any_byte_leaves_an_empty_history(self) -> None:
        files = history(CONTENTS[:1])
        for length in range(len(files[FIRST])):
            disk = MemoryDisk({FIRST: files[FIRST][:length]})
            with ArtifactStore(disk) as store:
                assert store.current() == IndexState(0, 0)
                assert store.put(Literal(CONTENTS[0])) == (ONE, IndexState(0, 1))
            with ArtifactStore(disk) as again:
                assert again.get(ONE) == CONTENTS[0]

    def test_a_payload_that_is_not_whole_is_cut_off_if_it_was_not_acknowledged(self) -> None:
        files = history()
        torn = files[FIRST].replace(CONTENTS[2], bytes(len(CONTENTS[2])))

        with ArtifactStore(MemoryDisk(marked({FIRST: torn}, 2))) as store:
            (cut,) = store.cuts
            assert "payload" in cut.reason
            assert store.current().position == 2

    @pytest.mark.parametrize("padding", range(8))
    def test_content_that_looks_like_frames_is_not_taken_for_some(self, padding: int) -> None:
        """Neither frames of another history, nor older ones of this: it may hold archives."""
        disk = MemoryDisk()
        with ArtifactStore(disk) as store:
            store.put(Literal(CONTENTS[0]))
            ours = disk.files()[FIRST].rstrip(b"\0")
            theirs = history([b"%d" % number for number in range(9)])[FIRST]
            store.put(Literal(bytes(padding) + ours + bytes(-len(ours) % 8) + theirs))
        whole = disk.files()[FIRST].rstrip(b"\0")
        start = ends(whole)[1]
        without_head = whole[:start] + bytes(HEAD_BYTES) + whole[start + HEAD_BYTES :]

        for torn in (whole[:-10], without_head):
            with ArtifactStore(MemoryDisk({FIRST: torn})) as again:
                assert len(again.cuts) == 1
                assert again.current().position == 1
                assert again.get(ONE) == CONTENTS[0]

    def test_a_whole_frame_that_was_not_acknowledged_is_retained(self) -> None:
        with ArtifactStore(MemoryDisk(marked(history(), 2))) as store:
            assert store.cuts == ()
            assert store.get(THREE) == CONTENTS[2]

    def test_what_was_acknowledged_is_never_cut_off(self) -> None:
        files = history()
        torn = files | {FIRST: files[FIRST][:-10]}
        disk = MemoryDisk(torn)

        with pytest.raises(DamageError, match=FIRST):
            ArtifactStore(disk)
        assert disk.files() == torn

    def test_recovery_twice_is_the_same_as_once(self) -> None:
        files = history()
        disk = MemoryDisk(marked({FIRST: files[FIRST][:-10]}, 2))
        ArtifactStore(disk).close()
        once = disk.files()
        ArtifactStore(disk).close()

        assert disk.files() == once

    def test_a_segment_that_was_never_begun_is_removed(self) -> None:
        files = unmarked(history())
        disk = MemoryDisk(files | {SECOND: b"\0" * 100})

        with ArtifactStore(disk) as store:
            (cut,) = store.cuts
            assert cut.segment == SECOND
            assert store.get_many([ONE, TWO, THREE]) == CONTENTS
        assert SECOND not in disk.names()

    def test_a_segment_that_another_just_begins_does_not_disturb_a_reader(self) -> None:
        disk = MemoryDisk(history())
        store = ArtifactStore(disk)
        disk.open(SECOND, create=True)  # made, but nothing written to it yet

        assert [logged.position for logged in store.log()] == [1, 2, 3]
        assert [logged.position for logged in store.log(after=2)] == [3]
        assert store.get_many([ONE, TWO, THREE]) == CONTENTS
        assert store.verify().ok


class TestSweeps:
    def test_one_sweep_does_not_forget_what_another_has_yet_to_erase(self) -> None:
        disk = MemoryDisk(history())
        mine, other = ArtifactStore(disk), ArtifactStore(disk)
        hidden = mine.tombstone(ONE, "to be erased").position
        idle, busy = other._sweeper(), mine._sweeper()
        other._shared_log.commit(lambda draft: idle.plan(draft, 0, ()), alone=True)
        mine._shared_log.commit(lambda draft: busy.plan(draft, hidden, ()), alone=True)
        other._shared_log.commit(lambda _: idle.erase(), alone=True)
        # Here the one that is busy dies.

        ArtifactStore(disk).close()
        assert CONTENTS[0] not in disk.files()[FIRST]

    def test_a_sweep_that_was_cut_short_is_finished_when_the_store_is_opened(self) -> None:
        disk = MemoryDisk(history())
        store = ArtifactStore(disk)
        hidden = store.tombstone(ONE, "to be erased").position
        sweeper = store._sweeper()
        store._shared_log.commit(lambda draft: sweeper.plan(draft, hidden, ()), alone=True)
        assert CONTENTS[0] in disk.files()[FIRST]

        with ArtifactStore(disk) as again:
            assert CONTENTS[0] not in disk.files()[FIRST]
            assert again.get_many([ONE, TWO, THREE]) == [None, *CONTENTS[1:]]
            assert again.verify().ok


class TestDamage:
    @pytest.mark.parametrize("mark", ["there", "missing", "garbage"])
    def test_damage_before_a_whole_frame_refuses_to_open(self, mark: str) -> None:
        files = history()
        start = ends(files[FIRST])[1]
        for at in (start, start + 40, start + 70, start + 100):
            damaged = bytearray(files[FIRST])
            damaged[at] ^= 1
            marks = {"there": files, "missing": {}, "garbage": {MARK: b"\xa5" * 36}}[mark]
            before = {**marks, FIRST: bytes(damaged)}
            disk = MemoryDisk(before)

            with pytest.raises(DamageError) as refused:
                ArtifactStore(disk)
            message = str(refused.value)
            assert FIRST in message
            assert f"byte {start}" in message
            assert "after entry 1" in message
            assert "Fix:" in message
            assert disk.files()[FIRST] == before[FIRST]

    def test_a_frame_of_zeros_before_a_whole_one_refuses_to_open(self) -> None:
        files = unmarked(history())
        start, stop = ends(files[FIRST])[1:3]
        zeros = files[FIRST][:start] + bytes(stop - start) + files[FIRST][stop:]

        with pytest.raises(DamageError, match=f"{FIRST} .* byte {start}"):
            ArtifactStore(MemoryDisk({FIRST: zeros}))

    def test_a_missing_segment_in_the_middle_refuses_to_open(self) -> None:
        files = unmarked(history([*CONTENTS, b"four"], segment_bytes=HEADER_BYTES))
        del files[SECOND]
        disk = MemoryDisk(files)

        with pytest.raises(DamageError, match=r"segment-0000000[12].*Fix: restore"):
            ArtifactStore(disk)
        assert disk.files() | files == disk.files()

    def test_a_missing_first_segment_refuses_to_open(self) -> None:
        files = history(segment_bytes=HEADER_BYTES)
        del files[FIRST]
        for some in (files, unmarked(files)):
            with pytest.raises(DamageError, match=f"{FIRST}.*Fix: restore"):
                ArtifactStore(MemoryDisk(some))

    def test_a_damaged_first_header_refuses_to_open(self) -> None:
        files = history()
        damaged = b"\0" * HEADER_BYTES + files[FIRST][HEADER_BYTES:]
        for some in ({FIRST: damaged}, files | {FIRST: damaged}):
            disk = MemoryDisk(some)
            with pytest.raises(DamageError, match=f"{FIRST}.*Fix: restore"):
                ArtifactStore(disk)
            assert disk.files()[FIRST] == damaged

    def test_a_segment_of_another_history_is_not_taken_for_ours(self) -> None:
        ours = history(segment_bytes=HEADER_BYTES)
        theirs = history([b"their" * 4, b"own" * 4, b"bytes" * 4], segment_bytes=HEADER_BYTES)

        with pytest.raises(DamageError):
            ArtifactStore(MemoryDisk(ours | {SECOND: theirs[SECOND]}))

    def test_no_segment_at_all_but_a_mark_refuses_to_be_written(self) -> None:
        store_files = {MARK: history()[MARK]}

        with pytest.raises(DamageError, match="was acknowledged"):
            ArtifactStore(MemoryDisk(store_files)).put(Literal(b"new"))


class TestMarks:
    def test_a_mark_ahead_of_the_log_refuses_to_open(self) -> None:
        with pytest.raises(DamageError, match=r"entry 9 was acknowledged.*Fix:"):
            ArtifactStore(MemoryDisk(marked(history(), 9)))

    @pytest.mark.parametrize("mark", [b"", b"\0" * 36, bytes(range(36)), b"PDmk", b"x" * 100])
    def test_a_mark_that_is_missing_or_garbage_is_rebuilt(self, mark: bytes) -> None:
        files = history()
        disk = MemoryDisk(files | {MARK: mark} if mark else unmarked(files))

        with ArtifactStore(disk) as store:
            assert store.get_many([ONE, TWO, THREE]) == CONTENTS
        opened = MarkFile.open(disk)
        assert opened is not None
        found = opened.read()
        assert found is not None
        assert found.position == 3

    def test_a_mark_of_another_history_says_nothing_about_this_one(self) -> None:
        other = history([b"%d" % number for number in range(10)])

        with ArtifactStore(MemoryDisk(history() | {MARK: other[MARK]})) as store:
            assert store.current().position == 3


def with_tables(contents: list[bytes]) -> Files:
    """Return a history that was snapshot after each put, and every table that there ever was."""
    disk = MemoryDisk()
    tables: Files = {}
    with ArtifactStore(disk) as store:
        for data in contents:
            store.put(Literal(data))
            store.snapshot()
            tables |= {name: data for name, data in disk.files().items() if is_table(name)}
    return disk.files() | tables


def is_table(name: str) -> bool:
    return name.startswith("table-")


class TestTables:
    def test_a_table_of_another_history_is_not_used(self) -> None:
        ours, theirs = with_tables(CONTENTS), with_tables([b"their", b"own", b"bytes"])
        tables = {name: data for name, data in theirs.items() if is_table(name)}
        assert set(tables) <= set(ours)

        with ArtifactStore(MemoryDisk(ours | tables)) as store:
            assert store.get_many([ONE, TWO, THREE]) == CONTENTS
            assert not store.has(CID.of(b"their"))

    def test_a_table_that_is_newer_than_the_log_is_not_used(self) -> None:
        files = with_tables(CONTENTS)
        cut = files[FIRST][: ends(files[FIRST].rstrip(b"\0"))[2]]

        with ArtifactStore(MemoryDisk({**unmarked(files), FIRST: cut})) as store:
            assert store.current() == IndexState(1, 2)
            assert store.get_many([ONE, TWO, THREE]) == [CONTENTS[0], None, None]
            assert store.put(Literal(CONTENTS[2]))[1] == IndexState(1, 3)
            assert store.get(TWO) is None

    def test_an_older_table_is_as_good_as_the_newest(self) -> None:
        files = with_tables(CONTENTS)
        tables = sorted(filter(is_table, files))
        for name in tables:
            some = {n: data for n, data in files.items() if not is_table(n) or n == name}
            with ArtifactStore(MemoryDisk(some)) as store:
                assert store.current() == IndexState(3, 6)
                assert store.get_many([ONE, TWO, THREE]) == CONTENTS

    def test_a_table_under_a_wrong_name_does_no_harm(self) -> None:
        files = with_tables(CONTENTS)
        newest = files[max(filter(is_table, files))]
        for name in ("table-0000000000000001", "table-0000000000099999", "table-x", "table-7"):
            with ArtifactStore(MemoryDisk(files | {name: newest})) as store:
                assert store.get_many([ONE, TWO, THREE]) == CONTENTS
                assert store.current() == IndexState(3, 6)

    @pytest.mark.parametrize("mark", ["there", "missing"])
    def test_every_verb_works_on_a_table_that_is_damaged(self, mark: str) -> None:
        disk = MemoryDisk()
        with ArtifactStore(disk) as store:
            store.put_many(list(map(Literal, CONTENTS)))
            store.snapshot()
            store.tombstone(ONE, "after the table")
        files = disk.files() if mark == "there" else unmarked(disk.files())
        (table,) = filter(is_table, files)
        damaged = bytearray(files[table])
        damaged[300] ^= 1  # in the rows
        files[table] = bytes(damaged)

        def opened() -> ArtifactStore:
            return ArtifactStore(MemoryDisk(files))

        assert opened().get_many([ONE, TWO, THREE]) == [None, *CONTENTS[1:]]
        assert opened().put(Literal(CONTENTS[1])) == (TWO, IndexState(1, 5))
        assert opened().put_many([Literal(b"new"), Literal(CONTENTS[1])])[1].position == 6
        assert opened().tombstone(TWO, "no more").position == 6
        assert opened().lift(ONE).position == 6
        assert opened().snapshot() == IndexState(2, 6)
        assert opened().gc(before=5).cids == (ONE,)
        assert len(list(opened().log())) == 5
        assert opened().verify().ok


class TestUnknownEntries:
    def test_an_entry_of_a_later_version_is_passed_over(self) -> None:
        disk = MemoryDisk()
        with ArtifactStore(disk) as store:
            store.put(Literal(CONTENTS[0]))
            store._shared_log.commit(lambda draft: draft.append(UnknownEntry(200, b"x")))
            store._shared_log.commit(lambda draft: draft.append(UnknownEntry(255, b"")))
            store.put(Literal(CONTENTS[1]))

        for some in (disk.files(), unmarked(disk.files())):
            with ArtifactStore(MemoryDisk(some)) as again:
                entries = [logged.entry for logged in again.log()]
                assert entries[1:3] == [UnknownEntry(200, b"x"), UnknownEntry(255, b"")]
                assert again.get_many([ONE, TWO]) == CONTENTS[:2]
                assert again.current() == IndexState(0, 4)
                assert again.verify().ok
                again.snapshot()
                assert again.get_many([ONE, TWO]) == CONTENTS[:2]

    def test_it_can_look_like_a_put_by_its_length(self) -> None:
        disk = MemoryDisk()
        with ArtifactStore(disk) as store:
            store.put(Literal(CONTENTS[0]))
            body = struct.pack("<36sQQI", bytes(TWO), 0, 0, 0)
            store._shared_log.commit(lambda draft: draft.append(UnknownEntry(200, body)))

        with ArtifactStore(disk) as again:
            assert again.get(TWO) is None
            assert again.verify().ok


def test_a_folder_is_recovered_as_a_disk_in_memory_is(tmp_path: Path) -> None:
    with ArtifactStore.open(tmp_path) as store:
        for data in CONTENTS:
            store.put(Literal(data))
    segment = tmp_path / FIRST
    whole = segment.read_bytes()
    start = ends(whole.rstrip(b"\0"))[2]
    segment.write_bytes(whole[: start + 20])
    (tmp_path / MARK).unlink()

    with ArtifactStore.open(tmp_path) as again:
        assert [cut[:4] for cut in again.cuts] == [(2, FIRST, start, 20)]
        assert again.get_many([ONE, TWO, THREE]) == [*CONTENTS[:2], None]
        assert again.put(Literal(CONTENTS[2]))[1].position == 3
    with ArtifactStore.open(tmp_path) as last:
        assert last.cuts == ()
        assert verify(FolderDisk(tmp_path), 3).ok


def test_a_log_that_is_gone_altogether_is_missed() -> None:
    disk = MemoryDisk({"mark": marked(history(), 3)["mark"]})

    with pytest.raises(DamageError, match="entry 3 was acknowledged"):
        ArtifactStore(disk)
    assert not verify(disk).ok
