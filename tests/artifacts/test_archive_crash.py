"""Imports that are cut short: by the power, by the disk, by the user."""

import errno
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import pytest

from perdure.artifacts import ArtifactStore, Literal, NewBinding
from perdure.artifacts.archive_transfer import ImportOutcome, import_archive
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Bind, Put
from tests.artifacts.archives import exported, literal, open_store
from tests.support.artifacts import MemoryDisk, RecordingDisk, crash_states
from tests.support.artifacts.faulty_disk import Fault, FaultyDisk

pytestmark = pytest.mark.search

RELATIONS = [ImportOutcome.RESTORED, ImportOutcome.CONTINUED]


class Scene(NamedTuple):
    """What there is before an import, and what it takes in."""

    files: dict[str, bytes]
    archive: bytes


def first(store: ArtifactStore) -> None:
    for number in range(3):
        store.put(literal(number))
    store.put_many([literal(number) for number in range(3, 14)])


def then(store: ArtifactStore) -> None:
    cid, _ = store.put(literal(1))
    store.tombstone(cid, "old")
    store.gc(before=store.current())
    store.record([NewBinding("a/note", literal(20).data), NewBinding("b/note", None)])
    store.put_many([literal(number) for number in range(30, 38)])
    store.snapshot()


@cache
def scene(relation: ImportOutcome) -> Scene:
    with open_store(MemoryDisk()) as there:
        first(there)
        begin = exported(there)
        then(there)
        archive = exported(there)
    disk = MemoryDisk()
    with open_store(disk) as here:
        if relation is ImportOutcome.CONTINUED:
            take(here, begin)
    return Scene(disk.files(), archive)


def take(store: ArtifactStore, data: bytes) -> ImportOutcome:
    return import_archive(store, io.BytesIO(data)).outcome


def state_of(store: ArtifactStore) -> list[object]:
    """Return what a log says."""
    return [
        (type(e.entry), e.entry.cid if isinstance(e.entry, Put | Bind) else e.entry)
        for e in store.log()
    ]


@cache
def expected(relation: ImportOutcome) -> list[object]:
    disk = MemoryDisk(scene(relation).files)
    with open_store(disk) as store:
        take(store, scene(relation).archive)
        return state_of(store)


def check(relation: ImportOutcome, disk: Disk, *, done: bool) -> None:
    """Return only if what is left is right, and the import can be done again."""
    at = scene(relation)
    with open_store(disk) as store:
        now, whole = state_of(store), expected(relation)
        assert now == whole[: len(now)]
        if relation is ImportOutcome.RESTORED:
            assert now in ([], whole), "either nothing or all"
        if done:
            assert now == whole, "it was done"
        how = take(store, at.archive)
        assert how in {relation, ImportOutcome.KNOWN}
        assert state_of(store) == whole
        assert store.verify().faults == ()
        assert exported(store) == at.archive
        assert not [name for name in disk.names() if name.startswith("arriv")]
        store.put(Literal(b"afterwards"))
    with open_store(disk) as store:
        assert store.cuts == ()
        assert store.get(store.put(Literal(b"afterwards"))[0]) == b"afterwards"
        assert take(store, at.archive) is ImportOutcome.KNOWN


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_power_cut_at_any_moment_does_no_harm(relation: ImportOutcome) -> None:
    at = scene(relation)
    disk = RecordingDisk(MemoryDisk(at.files))
    with open_store(disk) as store:
        begin = len(disk.recording.operations)
        assert take(store, at.archive) is relation
        disk.acknowledged("it is in")

    states = {
        state.digest: state for state in crash_states(disk.recording, since=begin, most=50)
    }.values()

    assert len(states) > 100
    for state in states:
        check(relation, MemoryDisk(state.files), done=bool(state.promises))


FAULTS: dict[str, Callable[[int], Fault]] = {
    "EIO": Fault,
    "full for good": lambda at: Fault(at, errno.ENOSPC, sticky=True),
    "short": lambda at: Fault(at, short=True),
    "interrupt": lambda at: Fault(at, interrupts=True),
}


def faulted(relation: ImportOutcome, fault: Callable[[int], Fault]) -> Iterator[FaultyDisk]:
    """Yield the disk after an import in which something failed, for everything that can."""
    at = scene(relation)
    quiet = FaultyDisk(MemoryDisk(at.files))
    with open_store(quiet) as store:
        begin = len(quiet.calls)
        take(store, at.archive)
    for number in range(begin, len(quiet.calls)):
        disk = FaultyDisk(MemoryDisk(at.files))
        with open_store(disk) as store:
            disk.fault = fault(number)
            with suppress(OSError, KeyboardInterrupt):
                take(store, at.archive)
            disk.fault = None
            yield disk
            with suppress(OSError):
                assert take(store, at.archive) in {relation, ImportOutcome.KNOWN}
                assert state_of(store) == expected(relation)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fault_at_any_call_does_no_harm(relation: ImportOutcome, fault: str) -> None:
    count = 0
    for disk in faulted(relation, FAULTS[fault]):
        check(relation, MemoryDisk(disk.after_process_end()), done=False)
        check(relation, MemoryDisk(disk.after_power_cut()), done=False)
        count += 1

    assert count > 10


def test_an_import_that_arrived_is_finished_by_the_next_writer() -> None:
    at = scene(ImportOutcome.RESTORED)

    class Dying(MemoryDisk):
        """The process ends when all has arrived and one more segment has its name."""

        def rename(self, old: str, new: str) -> None:
            if new == "segment-00000003":
                raise KeyboardInterrupt
            super().rename(old, new)

    dying = Dying()
    with pytest.raises(KeyboardInterrupt):
        take(open_store(dying), at.archive)
    inner = MemoryDisk(dying.files())
    assert {"arrived", "arriving-00000003", "segment-00000002"} <= set(inner.names())

    with open_store(inner) as store:
        assert state_of(store) == expected(ImportOutcome.RESTORED)
        assert exported(store) == at.archive


def test_a_reader_that_can_not_have_the_lock_sees_nothing_of_a_history_that_is_being_begun() -> (
    None
):
    at = scene(ImportOutcome.RESTORED)
    disk = MemoryDisk({"segment-00000002": at.archive[:200]})
    taken = []
    other_process = threading.Thread(target=lambda: taken.append(disk.lock("lock")))
    other_process.start()
    other_process.join()
    assert taken != [None]

    with open_store(disk) as store:
        assert store.current() == (0, 0)
