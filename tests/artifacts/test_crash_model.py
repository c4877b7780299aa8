"""What a power cut can leave, tried on single files and on a toy before it judges the store."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import pytest

from tests.artifacts.crash_toy import BROKEN, PAIRS, ToyLog
from tests.support.artifacts import (
    CrashState,
    MemoryDisk,
    Recording,
    RecordingDisk,
    crash_states,
)

Work = Callable[[RecordingDisk], object]

OLD, NEW = b"o" * 1200, b"n" * 1200
# One lies in a sector, one fills one almost, so that a seal is cut in two; two go over several.
ENTRIES = [b"a" * 20, b"b" * 470, b"c" * 700, b"d" * 1500]


def recorded(work: Work, start: dict[str, bytes] | None = None) -> Recording:
    disk = RecordingDisk(MemoryDisk(start))
    work(disk)
    return disk.recording


def left(work: Work, start: dict[str, bytes] | None = None) -> list[dict[str, bytes]]:
    """Return what can be left when the power goes at the end of the work."""
    recording = recorded(work, start)
    states = crash_states(recording, since=len(recording.operations))
    return [state.files for state in states]


def contents(work: Work, start: dict[str, bytes] | None = None) -> set[bytes | None]:
    return {files.get("a") for files in left(work, start)}


def write(disk: RecordingDisk, data: bytes, offset: int = 0, name: str = "a") -> None:
    disk.open(name, create=True).write(offset, [data])


# ---------------------------------------------------------------- data
def test_a_sector_is_old_or_new_or_noise() -> None:
    found = contents(lambda disk: write(disk, NEW[:512]), {"a": OLD})

    assert {OLD, NEW[:512] + OLD[512:]} <= found
    for noise in found - {OLD, NEW[:512] + OLD[512:]}:
        assert noise is not None
        assert noise[512:] == OLD[512:]
        assert noise[256:512] not in {OLD[256:512], NEW[256:512]}
    assert len(found) == 4


def test_each_sector_of_a_write_is_torn_by_itself() -> None:
    assert len(contents(lambda disk: write(disk, NEW[:1024]), {"a": OLD})) == 4 * 4


def test_bytes_beside_a_write_are_never_harmed() -> None:
    for found in contents(lambda disk: write(disk, b"new", 600), {"a": OLD}):
        assert found is not None
        assert found[:600] == OLD[:600]
        assert found[603:] == OLD[603:]


def test_a_later_write_can_be_there_without_the_one_before() -> None:
    def twice(disk: RecordingDisk) -> None:
        write(disk, b"1", 10)
        write(disk, b"2", 700)

    found = contents(twice, {"a": OLD})

    assert OLD[:700] + b"2" + OLD[701:] in found


def test_writes_to_one_place_leave_any_of_them() -> None:
    def thrice(disk: RecordingDisk) -> None:
        for data in (b"1", b"2", b"3"):
            write(disk, data)

    assert {b"0", b"1", b"2", b"3"} <= contents(thrice, {"a": b"0"})


def test_nothing_is_left_to_chance_after_a_sync() -> None:
    def synced(disk: RecordingDisk) -> None:
        write(disk, NEW)
        disk.open("a").sync()

    assert contents(synced, {"a": OLD}) == {NEW}


def test_before_a_sync_has_returned_nothing_is_certain() -> None:
    def synced(disk: RecordingDisk) -> None:
        write(disk, NEW[:512])
        disk.open("a").sync()

    states = list(crash_states(recorded(synced, {"a": OLD})))

    assert [state.operations for state in states] == [1, 1, 1, 1, 2]
    assert states[-1].files == {"a": NEW[:512] + OLD[512:]}


def test_what_a_failed_sync_left_uncertain_stays_so() -> None:
    def failed(disk: RecordingDisk) -> None:
        write(disk, NEW[:1024])
        disk.open("a").fail_sync()
        write(disk, NEW[:512])
        disk.open("a").sync()

    found = contents(failed, {"a": OLD})

    assert {content[:512] for content in found if content} == {NEW[:512]}
    assert {NEW[:1024] + OLD[1024:], NEW[:512] + OLD[512:]} <= found


# ---------------------------------------------------------------- size
def test_a_file_can_have_grown_without_its_data() -> None:
    found = contents(lambda disk: write(disk, b"new", 3), {"a": b"old"})

    assert {b"old", b"oldnew", b"old\0\0\0"} <= found


def test_a_reserve_is_seen_or_not() -> None:
    assert contents(lambda disk: disk.open("a").reserve(6), {"a": b"old"}) == {
        b"old",
        b"old\0\0\0",
    }


def test_a_cut_is_seen_or_not() -> None:
    assert contents(lambda disk: disk.open("a").truncate(1), {"a": b"old"}) >= {b"old", b"o"}


def test_what_was_cut_off_can_come_back_when_the_file_grows_again() -> None:
    def cut_and_grow(disk: RecordingDisk) -> None:
        disk.open("a").truncate(1)
        disk.open("a").reserve(3)

    assert contents(cut_and_grow, {"a": b"old"}) >= {b"old", b"o\0\0"}


def test_erased_bytes_are_there_or_zeros_or_noise() -> None:
    found = contents(lambda disk: disk.open("a").erase(1, 1), {"a": b"old"})

    assert {b"old", b"o\0d"} <= found
    assert len(found) > 2


# ---------------------------------------------------------------- names
def test_a_synced_file_can_be_without_its_name() -> None:
    def synced(disk: RecordingDisk) -> None:
        write(disk, b"new")
        disk.open("a").sync()

    assert left(synced) == [{}, {"a": b"new"}]


def test_a_synced_name_can_be_without_its_data() -> None:
    def synced(disk: RecordingDisk) -> None:
        write(disk, b"new")
        disk.sync()

    assert {b"", b"\0\0\0", b"new"} <= contents(synced)


def test_a_removed_file_can_come_back() -> None:
    assert left(lambda disk: disk.remove("a"), {"a": b"old"}) == [{"a": b"old"}, {}]


def test_a_rename_happened_or_did_not() -> None:
    assert left(lambda disk: disk.rename("a", "b"), {"a": b"1", "b": b"2"}) == [
        {"a": b"1", "b": b"2"},
        {"b": b"1"},
    ]


def test_names_come_in_any_order() -> None:
    def two(disk: RecordingDisk) -> None:
        write(disk, b"", name="a")
        write(disk, b"", name="b")

    assert sorted(map(sorted, left(two))) == [[], ["a"], ["a", "b"], ["b"]]


def test_a_sync_of_a_folder_makes_its_names_certain_and_no_others() -> None:
    def two(disk: RecordingDisk) -> None:
        write(disk, b"", name="a")
        write(disk.folder("below"), b"", name="b")
        disk.sync()

    assert left(two) == [{"a": b""}, {"a": b"", "below/b": b""}]


# ---------------------------------------------------------------- states
def test_a_promise_counts_from_when_it_was_acknowledged() -> None:
    def promising(disk: RecordingDisk) -> None:
        write(disk, b"1")
        disk.acknowledged("first")
        disk.open("a").sync()
        disk.acknowledged("second")

    states = list(crash_states(recorded(promising, {"a": b"0"})))

    assert {state.promises for state in states} == {("first",), ("first", "second")}
    assert {state.files["a"] for state in states if "second" in state.promises} == {b"1"}


def test_too_many_ways_are_sampled_and_the_same_each_time() -> None:
    recording = recorded(lambda disk: write(disk, NEW * 10), {"a": OLD})

    def found(seed: int) -> list[bytes]:
        return [state.digest for state in crash_states(recording, most=100, seed=seed)]

    assert found(1) == found(1) != found(2)
    assert len(set(found(1))) == 100


def test_states_are_distinguished_by_their_digest() -> None:
    states = list(crash_states(recorded(lambda disk: write(disk, NEW), {"a": OLD, "b": b""})))

    assert len({state.digest for state in states}) == len(states)
    assert len({tuple(sorted(state.files.items())) for state in states}) == len(states)


# ---------------------------------------------------------------- a toy
def violations(kind: type[ToyLog], most: int) -> list[CrashState]:
    """Return the states in which the log loses or invents something, up to the first one."""
    for entries in product(ENTRIES, repeat=3):
        recording = recorded(partial(fill, kind, entries))
        for state in crash_states(recording, most=most):
            if not holds(kind, state, entries):
                return [state]
    return []


def fill(kind: type[ToyLog], entries: Sequence[bytes], disk: RecordingDisk) -> None:
    log = kind(disk)
    for entry in entries:
        log.append(entry)
        disk.acknowledged(entry)


def holds(kind: type[ToyLog], state: CrashState, entries: Sequence[bytes]) -> bool:
    disk = state.disk()
    try:
        log = kind(disk)
        retained, promised = log.entries[:], len(state.promises)
        log.append(b"new")
        after = ToyLog(disk)
    except AssertionError:
        return False
    return (
        retained in (list(entries[:promised]), list(entries[: promised + 1]))
        and after.entries == [*retained, b"new"]
        and not after.cuts
    )


def test_a_log_that_follows_the_protocol_survives_every_state() -> None:
    assert violations(ToyLog, most=2000) == []


@pytest.mark.parametrize("kind", [*BROKEN, *PAIRS], ids=lambda kind: kind.__name__)
def test_a_log_that_leaves_a_step_out_is_caught(kind: type[ToyLog]) -> None:
    assert violations(kind, most=500) != []
