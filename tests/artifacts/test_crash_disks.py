"""The disks for tests do what the real one does."""

import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perdure.artifacts.disk import Disk, FolderDisk
from tests.support.artifacts import MemoryDisk, RecordingDisk, crash_states
from tests.support.artifacts.trouble import Killed, Trouble, TroubledDisk

MakeDisk = Callable[[Path], Disk]


@pytest.fixture(
    params=[
        FolderDisk,
        lambda _: MemoryDisk(),
        lambda _: RecordingDisk(MemoryDisk()),
        lambda _: TroubledDisk(RecordingDisk(MemoryDisk()), Trouble()),
    ],
    ids=["folder", "memory", "recording", "troubled"],
)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    make: MakeDisk = request.param
    return make(tmp_path / "store")


def content(disk: Disk, name: str) -> bytes:
    file = disk.open(name)
    try:
        return file.read(0, file.size() + 1)
    finally:
        file.close()


def fill(disk: Disk, name: str, data: bytes) -> None:
    file = disk.open(name, create=True)
    file.write(0, [data])
    file.close()


def test_an_empty_disk_names_nothing(disk: Disk) -> None:
    assert disk.names() == []


def test_names_are_sorted(disk: Disk) -> None:
    fill(disk, "b", b"")
    fill(disk, "a", b"")

    assert disk.names() == ["a", "b"]


def test_a_file_that_is_not_there_is_not_created_unasked(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("a")

    assert disk.names() == []


def test_buffers_are_written_one_after_the_other(disk: Disk) -> None:
    file = disk.open("a", create=True)

    file.write(2, [b"one", memoryview(b"two"), b""])

    assert file.read(0, 100) == b"\0\0onetwo"
    assert file.size() == 8


def test_a_write_keeps_what_lies_beside_it(disk: Disk) -> None:
    fill(disk, "a", b"abcdef")

    disk.open("a").write(2, [b"CD"])

    assert content(disk, "a") == b"abCDef"


def test_reading_beyond_the_end_gives_what_there_is(disk: Disk) -> None:
    fill(disk, "a", b"abc")

    assert disk.open("a").read(2, 5) == b"c"
    assert disk.open("a").read(9, 5) == b""


def test_reserving_grows_by_zeros_and_never_cuts(disk: Disk) -> None:
    fill(disk, "a", b"abc")
    file = disk.open("a")

    file.reserve(5)
    file.reserve(2)

    assert content(disk, "a") == b"abc\0\0"


def test_truncating_cuts_for_good(disk: Disk) -> None:
    fill(disk, "a", b"abc")
    file = disk.open("a")

    file.truncate(1)
    file.reserve(3)

    assert content(disk, "a") == b"a\0\0"


def test_erasing_leaves_zeros(disk: Disk) -> None:
    fill(disk, "a", b"abc")

    disk.open("a").erase(1, 1)

    assert content(disk, "a") == b"a\0c"


def test_a_map_shows_what_is_written_later(disk: Disk) -> None:
    fill(disk, "a", b"abc")
    file = disk.open("a")

    view = file.map()
    file.write(1, [b"B"])

    assert bytes(view[:]) == b"aBc"


def test_a_map_of_nothing_is_empty(disk: Disk) -> None:
    assert len(disk.open("a", create=True).map()) == 0


def test_a_rename_takes_the_place_of_what_was_there(disk: Disk) -> None:
    fill(disk, "a", b"1")
    fill(disk, "b", b"2")

    disk.rename("a", "b")

    assert disk.names() == ["b"]
    assert content(disk, "b") == b"1"


def test_what_is_not_there_can_be_neither_removed_nor_renamed(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.remove("a")
    with pytest.raises(FileNotFoundError):
        disk.rename("a", "b")


def test_a_removed_file_stays_readable_while_it_is_open(disk: Disk) -> None:
    fill(disk, "a", b"abc")
    file = disk.open("a")

    disk.remove("a")

    assert disk.names() == []
    assert file.read(0, 3) == b"abc"


def test_a_closed_file_is_of_no_use(disk: Disk) -> None:
    fill(disk, "a", b"abc")
    file = disk.open("a")
    file.close()

    with pytest.raises(OSError, match="file") as caught:
        file.read(0, 1)

    assert caught.value.errno == errno.EBADF


def test_syncing_changes_nothing(disk: Disk) -> None:
    fill(disk, "a", b"abc")

    disk.open("a").sync()
    disk.sync()

    assert content(disk, "a") == b"abc"


@pytest.mark.parametrize("make", [MemoryDisk, lambda: RecordingDisk(MemoryDisk())])
def test_a_folder_is_a_disk_below(make: Callable[[], MemoryDisk | RecordingDisk]) -> None:
    disk = make()
    fill(disk.folder("below"), "a", b"1")

    assert disk.names() == ["below"]
    assert content(disk.folder("below"), "a") == b"1"


def test_a_lock_is_held_by_one(disk: Disk) -> None:
    fill(disk, "a", b"")
    held = disk.lock("lock")

    assert held is not None
    with ThreadPoolExecutor() as others:
        assert others.submit(disk.lock, "lock").result() is None
        held.release()
        assert others.submit(disk.lock, "lock").result() is not None


def test_a_disk_says_where_it_is(disk: Disk) -> None:
    assert disk.whereabouts


def test_a_memory_disk_is_built_from_what_another_holds() -> None:
    files = {"a": b"1", "below/b": b"2", "below/deeper/c": b"3"}

    disk = MemoryDisk(files)

    assert disk.files() == files
    assert content(disk.folder("below").folder("deeper"), "c") == b"3"


def test_what_a_memory_disk_is_built_from_does_not_change() -> None:
    files = {"a": b"abc"}

    MemoryDisk(files).open("a").write(0, [b"A"])

    assert files == {"a": b"abc"}


def test_every_power_cut_is_followed_by_another_start_of_the_machine() -> None:
    disk = RecordingDisk(MemoryDisk())
    fill(disk, "a", b"abc")

    boots = [state.disk().boot for state in crash_states(disk.recording)]

    assert disk.boot not in boots
    assert len(set(boots)) == len(boots)


def test_a_killed_process_changes_nothing_more() -> None:
    inner, trouble = RecordingDisk(MemoryDisk()), Trouble()
    disk = TroubledDisk(inner, trouble)
    trouble.kill_after(2)
    fill(disk, "a", b"abc")

    for change in (
        lambda: disk.open("b", create=True),
        lambda: disk.remove("a"),
        lambda: disk.rename("a", "b"),
        lambda: disk.open("a").write(0, [b"b"]),
        lambda: disk.open("a").truncate(0),
        lambda: disk.open("a").reserve(9),
        lambda: disk.open("a").erase(0, 1),
        lambda: disk.open("a").sync(),
        disk.sync,
    ):
        with pytest.raises(Killed):
            change()

    assert len(inner.recording.operations) == 2
    assert content(disk, "a") == b"abc"


def test_the_sync_that_is_to_fail_fails_and_no_other() -> None:
    trouble = Trouble()
    file = TroubledDisk(RecordingDisk(MemoryDisk()), trouble).open("a", create=True)
    trouble.fail_sync(1)

    file.sync()
    with pytest.raises(OSError, match="failed"):
        file.sync()
    file.sync()
