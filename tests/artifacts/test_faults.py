"""Every call to the disk fails once, or for good: nothing that was acknowledged is lost."""

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal, NewBinding
from perdure.artifacts import disk as disks
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind, Entry
from perdure.errors import PerdureError, RetentionError
from tests.support.artifacts.faulty_disk import Call, Fault, FaultyDisk, syncs_tried_again
from tests.support.artifacts.memory_disk import MemoryDisk

pytestmark = pytest.mark.search

SEGMENT_BYTES = 700
LARGE = b"large" * 30
KINDS: dict[str, tuple[Fault, set[str]]] = {
    "EIO": (Fault(0, errno.EIO), set()),
    "ENOSPC": (Fault(0, errno.ENOSPC), {"open", "write", "reserve", "sync", "lock", "rename"}),
    "EINTR": (Fault(0, errno.EINTR), {"open", "read", "write", "sync", "lock"}),
    "short write": (Fault(0, errno.ENOSPC, short=True), {"write"}),
}
"""What is injected, and into which verbs; into all if none is named."""


class Promises:
    """What was acknowledged, and every error that stood in for it."""

    def __init__(self) -> None:
        self.seen: list[tuple[CID, IndexState, bytes | None]] = []
        self.stored: dict[CID, bytes] = {}
        self.names: dict[str, CID] = {}
        self.entries: list[Entry] = []
        self.position = 0
        self.errors: list[Exception] = []

    def hold_on(self, store: ArtifactStore) -> None:
        assert store.current().position >= self.position
        for cid, data in self.stored.items():
            assert store.get(cid) == data
        for cid, state, expected in self.seen:
            try:
                assert store.get(cid, state) == expected
            except RetentionError:
                assert expected is None or cid in self.stored or cid == CID.of(b"swept")
        log = [logged.entry for logged in store.log()]
        assert log[: len(self.entries)] == self.entries
        bound = {entry.name: entry.cid for entry in log if isinstance(entry, Bind)}
        assert bound.items() >= self.names.items()
        assert store.verify().ok


class Workload:
    """Uses every verb once or more, goes on after errors, and keeps account."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._store: ArtifactStore | None = None
        self._hidden: IndexState | None = None
        self.promises = Promises()

    def steps(self) -> list[Callable[[], None]]:
        return [
            lambda: self._put(b"one"),
            lambda: self._put(b"swept"),
            self._put_many,
            lambda: self._get(b"one"),
            self._snapshot,
            self._hide,
            self._put_large,
            self._reopen,
            lambda: self._put(b"one"),
            self._record,
            self._sweep,
            self._look,
            lambda: self._put(b"last"),
            self._reopen,
            lambda: self._get(b"last"),
        ]

    def run(self, after_each: Callable[[Promises], None] = lambda _: None) -> Promises:
        for step in self.steps():
            try:
                step()
            except Exception as error:  # noqa: BLE001 - judged below, by their kind
                self.promises.errors.append(error)
            else:
                after_each(self.promises)
        return self.promises

    @property
    def _open(self) -> ArtifactStore:
        if self._store is None:
            self._store = ArtifactStore(self._disk, segment_bytes=SEGMENT_BYTES, wait=0)
        return self._store

    def _reopen(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None
        _ = self._open

    def _acknowledge(self, cid: CID, state: IndexState, data: bytes | None) -> None:
        self.promises.seen.append((cid, state, data))
        self.promises.position = max(self.promises.position, state.position)

    def _put(self, data: bytes) -> None:
        cid, state = self._open.put(Literal(data))
        self._acknowledge(cid, state, data)
        if data != b"swept":
            self.promises.stored[cid] = data

    def _put_many(self) -> None:
        contents = [b"two", b"three" * 20, b"one"]
        cids, state = self._open.put_many(list(map(Literal, contents)))
        for cid, data in zip(cids, contents, strict=True):
            self._acknowledge(cid, state, data)
            self.promises.stored[cid] = data

    def _put_large(self) -> None:
        cid, state = self._open.put(Literal(LARGE))
        self._acknowledge(cid, state, LARGE)
        self.promises.stored[cid] = LARGE

    def _get(self, data: bytes) -> None:
        found = self._open.get(CID.of(data))
        assert found == (data if CID.of(data) in self.promises.stored else found)
        assert found in {data, None}

    def _snapshot(self) -> None:
        state = self._open.snapshot()
        self.promises.position = state.position

    def _hide(self) -> None:
        self._hidden = self._open.tombstone(CID.of(b"swept"), "to be swept")
        self._acknowledge(CID.of(b"swept"), self._hidden, None)

    def _record(self) -> None:
        state = self._open.record([NewBinding("note", b"two"), NewBinding("other", b"four")])
        self._acknowledge(CID.of(b"four"), state, b"four")
        self.promises.names |= {"note": CID.of(b"two"), "other": CID.of(b"four")}

    def _sweep(self) -> None:
        if self._hidden is not None:
            self._open.gc(before=self._hidden)

    def _look(self) -> None:
        self.promises.entries = [logged.entry for logged in self._open.log()]
        assert self._open.verify().ok


def unexplained(errors: list[Exception]) -> list[str]:
    """Return the errors that are not ours, or that do not say how to mend it."""
    return [
        f"{type(error).__name__}: {error}"
        for error in errors
        if not isinstance(error, PerdureError) or "Fix:" not in str(error)
    ]


@cache
def calls_of_the_workload() -> tuple[Call, ...]:
    disk = FaultyDisk(MemoryDisk())
    assert Workload(disk).run().errors == []
    return tuple(disk.calls)


def faults(kind: str, *, sticky: bool) -> Iterator[Fault]:
    first, verbs = KINDS[kind]
    for number, call in enumerate(calls_of_the_workload()):
        if call.verb in (verbs or {call.verb}):
            yield replace(first, at=number, sticky=sticky)


@cache
def outcomes(kind: str, *, sticky: bool) -> list[tuple[FaultyDisk, Promises]]:
    """Do everything, with a fault at each call in turn."""
    disks_ = [FaultyDisk(MemoryDisk(), fault) for fault in faults(kind, sticky=sticky)]
    return [(disk, Workload(disk).run()) for disk in disks_]


each_kind = pytest.mark.parametrize("kind", KINDS)
once_and_for_good = pytest.mark.parametrize("sticky", [False, True], ids=["once", "for good"])


def test_the_workload_asks_for_everything_that_a_disk_can_do() -> None:
    disk = FaultyDisk(MemoryDisk())
    Workload(disk).run()

    assert {call.verb for call in disk.calls} == {
        *("names", "open", "remove", "rename", "sync", "lock"),
        *("read", "write", "reserve", "truncate", "erase", "size", "map"),
    }
    assert sum(name.startswith("segment-") for name in disk.names()) >= 3


@each_kind
@once_and_for_good
def test_nothing_acknowledged_is_lost_whichever_call_fails(kind: str, *, sticky: bool) -> None:
    for disk, promises in outcomes(kind, sticky=sticky):
        healthy = MemoryDisk(disk.after_process_end())
        with ArtifactStore(healthy) as store:
            promises.hold_on(store)


@once_and_for_good
def test_nothing_acknowledged_is_lost_to_a_power_cut_after_a_failed_call(*, sticky: bool) -> None:
    for fault in faults("EIO", sticky=sticky):
        disk = FaultyDisk(MemoryDisk(), fault)

        def cut_the_power(promises: Promises, disk: FaultyDisk = disk) -> None:
            with ArtifactStore(MemoryDisk(disk.after_power_cut())) as store:
                promises.hold_on(store)

        Workload(disk).run(cut_the_power)


@each_kind
@once_and_for_good
def test_every_error_says_what_and_where_and_how_to_mend_it(kind: str, *, sticky: bool) -> None:
    bad: Counter[str] = Counter()
    for disk, promises in outcomes(kind, sticky=sticky):
        failed = next((str(call) for call in disk.calls if call.failed), "nothing")
        bad.update(f"{failed}: {error}" for error in unexplained(promises.errors))

    assert not bad, "\n".join(f"{count} x {what}" for what, count in bad.most_common())


@each_kind
@once_and_for_good
def test_a_sync_that_failed_is_never_simply_tried_again(kind: str, *, sticky: bool) -> None:
    for disk, _ in outcomes(kind, sticky=sticky):
        assert syncs_tried_again(disk.calls) == []


def test_a_failed_write_is_answered_from_disk_and_the_store_goes_on() -> None:
    disk = FaultyDisk(MemoryDisk())
    store = ArtifactStore(disk)
    store.put(Literal(b"one"))
    for number in range(100):  # let each call fail in turn, until none is left to fail
        disk.calls.clear()
        disk.fault = Fault(number)
        try:
            store.put(Literal(b"two"))
        except PerdureError:
            continue
        break

    disk.fault = None
    assert store.get(CID.of(b"one")) == b"one"
    assert store.get(CID.of(b"two")) == b"two"
    assert [logged.position for logged in store.log()] == [1, 2]


# ---------------------------------------------------------------- below the disk


class FaultyOs:
    """The module `os`, in which one call fails or does less than it was asked to."""

    CALLS = ("pread", "pwrite", "pwritev", "fdatasync", "fsync", "ftruncate", "open", "fstat")

    def __init__(
        self, at: int, do: Callable[..., Any], calls: tuple[str, ...], *, sticky: bool
    ) -> None:
        self._at = at
        self._do = do
        self._calls = calls
        self._sticky = sticky
        self.count = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        real = getattr(os, name)
        if name not in self._calls:
            return real

        def call(*args: Any) -> Any:  # noqa: ANN401
            number, self.count = self.count, self.count + 1
            due = number == self._at or (self._sticky and number > self._at >= 0)
            return self._do(name, real, *args) if due else real(*args)

        return call


def less(name: str, real: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
    """Read or write about half of it."""
    if name == "pread":
        descriptor, length, offset = args
        return real(descriptor, max(1, length // 2), offset)
    descriptor, data, offset = args
    whole = data if name == "pwrite" else b"".join(data)
    return os.pwrite(descriptor, memoryview(whole)[: max(1, len(whole) // 2)], offset)


def fails(code: int) -> Callable[..., Any]:
    def fail(name: str, *_: object) -> Any:  # noqa: ANN401
        raise OSError(code, os.strerror(code), name)

    return fail


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Return where folders are quickly made; the power won't be cut here."""
    memory = Path("/dev/shm")  # noqa: S108 - in a folder of its own
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder_name:
        yield Path(folder_name)


def count_calls(folder: Path, calls: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    counting = FaultyOs(-1, less, calls, sticky=False)
    monkeypatch.setattr(disks, "os", counting)
    assert Workload(FolderDisk(folder)).run().errors == []
    return counting.count


@once_and_for_good
def test_a_disk_that_reads_and_writes_in_parts_is_not_even_noticed(
    folders: Path, monkeypatch: pytest.MonkeyPatch, *, sticky: bool
) -> None:
    in_pieces = ("pread", "pwrite", "pwritev") if sticky else ("pwrite", "pwritev")
    count = count_calls(folders / "all", in_pieces, monkeypatch)
    for number in range(count) if not sticky else (0,):
        folder = folders / str(number)
        monkeypatch.setattr(disks, "os", FaultyOs(number, less, in_pieces, sticky=sticky))
        promises = Workload(FolderDisk(folder)).run()

        assert promises.errors == []
        with ArtifactStore.open(folder) as store:
            promises.hold_on(store)


@pytest.mark.parametrize("code", [errno.EINTR, errno.ENOSPC, errno.EIO])
@once_and_for_good
def test_nothing_acknowledged_is_lost_whichever_call_of_the_system_fails(
    folders: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, sticky: bool
) -> None:
    count = count_calls(folders / "all", FaultyOs.CALLS, monkeypatch)
    bad: Counter[str] = Counter()
    for number in range(count):
        folder = folders / str(number)
        faulty = FaultyOs(number, fails(code), FaultyOs.CALLS, sticky=sticky)
        monkeypatch.setattr(disks, "os", faulty)
        promises = Workload(FolderDisk(folder)).run()
        bad.update(unexplained(promises.errors))

        monkeypatch.setattr(disks, "os", os)
        with ArtifactStore.open(folder, wait=0) as store:
            promises.hold_on(store)
            store.put(Literal(b"and it goes on"))
    assert not bad, "\n".join(f"{count} x {what}" for what, count in bad.most_common())
