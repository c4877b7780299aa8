"""Many processes on one history: nothing is lost, nothing is there twice, nobody sees a half."""

import fcntl
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from perdure.artifacts import CID, ArtifactStore, Literal, LogEntry
from perdure.artifacts.entry import Put
from perdure.errors import LockTimeout
from perdure.testing.requirement import requirement
from perdure.testing.storage.processes import finish, start

PROCESSES = 8
PUTS = 50
SEGMENT_BYTES = 20_000
PATIENCE = 100.0


def open_store(folder: Path, wait: float = PATIENCE) -> ArtifactStore:
    return ArtifactStore.open(folder, segment_bytes=SEGMENT_BYTES, wait=wait)


def content(writer: int, index: int) -> bytes:
    """Return what a writer puts in its turn; every third is what all of them put."""
    shared = index % 3 == 0
    return b"turn %d of %s " % (index, b"all" if shared else b"%d" % writer) * 20


def all_contents() -> set[bytes]:
    return {content(writer, index) for writer in range(PROCESSES) for index in range(PUTS)}


def write(folder: Path, writer: int) -> None:
    """Put one after the other; half of the writers open the history for each."""
    if writer % 2:
        for index in range(PUTS):
            with open_store(folder) as store:
                put(store, content(writer, index))
    else:
        with open_store(folder) as store:
            for index in range(PUTS):
                put(store, content(writer, index))


def put(store: ArtifactStore, data: bytes) -> None:
    cid, state = store.put(Literal(data))
    assert store.get(cid, state) == data
    assert store.get(cid) == data


def check_log(log: list[LogEntry], store: ArtifactStore) -> None:
    """Positions without a gap, no content twice, every content whole."""
    assert [logged.position for logged in log] == list(range(1, len(log) + 1))
    assert [logged.time for logged in log] == sorted(logged.time for logged in log)
    cids = [logged.entry.cid for logged in log if isinstance(logged.entry, Put)]
    assert len(set(cids)) == len(cids) == len(log)
    for cid in cids:
        data = store.get(cid)
        assert data is not None
        assert CID.of(data) == cid


def test_processes_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    waiting = open_store(tmp_path)
    finish([start(lambda n=n: write(tmp_path, n)) for n in range(PROCESSES)])  # type: ignore[misc]

    with open_store(tmp_path) as store:
        log = list(store.log())
        check_log(log, store)
        assert len(log) == len(all_contents())
        assert all(store.has_many([CID.of(data) for data in all_contents()]))
        assert store.cuts == ()
        assert store.verify().ok
        assert len([path for path in tmp_path.iterdir() if path.name.startswith("segment-")]) > 3
        assert list(waiting.log()) == log
        waiting.close()


def read_until_all_is_there(folder: Path) -> None:
    """Look again and again: it only ever grows, and what is there is whole."""
    store = open_store(folder)
    last, known = store.current(), 0
    deadline = time.monotonic() + PATIENCE
    while known < len(all_contents()):
        assert time.monotonic() < deadline
        state = store.current()
        assert state >= last
        last = state
        new = list(store.log(after=known))
        assert [logged.position for logged in new] == list(range(known + 1, known + len(new) + 1))
        for logged in new:
            assert isinstance(logged.entry, Put)
            data = store.get(logged.entry.cid)
            assert data is not None
            assert CID.of(data) == logged.entry.cid
        known += len(new)
        assert known >= state.position
    assert store.verify().ok


@requirement("004-never-bypass-index")
def test_readers_see_whole_commits_only_and_never_go_back(tmp_path: Path) -> None:
    readers = [start(lambda: read_until_all_is_there(tmp_path)) for _ in range(2)]
    writers = [start(lambda n=n: write(tmp_path, n)) for n in range(PROCESSES)]  # type: ignore[misc]

    finish([*writers, *readers])


def write_for_ever(folder: Path, writer: int, reader: int) -> None:
    """Report each put that returned, until the process is killed."""
    index = 0
    store = open_store(folder)
    while True:
        if index % 7 == writer:
            store.close()
            store = open_store(folder)
        data = b"%d by %d " % (index, writer) * (1 + index % 40)
        store.put(Literal(data))
        os.write(reader, f"{CID.of(data)}\n".encode())
        index += 1


def test_whatever_was_acknowledged_outlives_a_writer_that_is_killed(tmp_path: Path) -> None:
    chance = random.Random(7)
    reader, tell = os.pipe()
    acknowledged: list[CID] = []
    text = b""
    for index in range(12):
        writers = [
            start(lambda n=10 * index + n: write_for_ever(tmp_path, n, tell))  # type: ignore[misc]
            for n in range(3)
        ]
        enough = len(acknowledged) + chance.randrange(5, 40)
        while len(acknowledged) < enough:
            text += os.read(reader, 1 << 16)
            *lines, text = text.split(b"\n")
            acknowledged += [CID.parse(line.decode()) for line in lines]
        for writer in chance.sample(writers, len(writers)):
            kill(writer)
        with open_store(tmp_path, wait=5) as store:
            assert all(store.has_many(acknowledged))
            assert store.verify().ok
    os.close(reader)
    os.close(tell)

    with open_store(tmp_path) as store:
        check_log(list(store.log()), store)
        put(store, b"and it goes on")


def kill(process: BaseProcess) -> None:
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def hold(folder: Path, ready: int) -> Callable[[], None]:
    def act() -> None:
        descriptor = os.open(folder / "lock", os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.pwrite(descriptor, f"process {os.getpid()}".ljust(100).encode(), 0)
        os.write(ready, b"!")
        signal.pause()

    return act


@pytest.fixture
def history(tmp_path: Path) -> Path:
    with open_store(tmp_path) as store:
        put(store, b"begin")
    return tmp_path


def test_a_writer_that_waits_too_long_says_who_holds_the_lock(history: Path) -> None:
    reader, tell = os.pipe()
    holder = start(hold(history, tell))
    os.read(reader, 1)
    try:
        store = open_store(history, wait=0.2)  # reading needs no lock
        assert store.get(CID.of(b"begin")) == b"begin"
        before = time.monotonic()
        with pytest.raises(LockTimeout) as refused:
            store.put(Literal(b"more"))
        assert 0.2 <= time.monotonic() - before < 10
        assert f"process {holder.pid}" in str(refused.value)
        assert "Fix:" in str(refused.value)
        assert store.put(Literal(b"begin"))[1].position == 1  # nothing to write, nothing to wait
    finally:
        kill(holder)
        os.close(reader)
        os.close(tell)

    assert store.put(Literal(b"more"))[1].position == 2  # the killed one holds it no longer


def test_a_forked_child_neither_keeps_the_lock_nor_lets_go_of_it(history: Path) -> None:
    reader, tell = os.pipe()
    store = open_store(history, wait=0)

    def child() -> None:
        os.write(tell, b"!")
        signal.pause()

    held = store._shared_log._lock()
    forked = start(child)
    os.read(reader, 1)
    held.release()
    try:
        assert store.put(Literal(b"more"))[1].position == 2
    finally:
        kill(forked)
        os.close(reader)
        os.close(tell)


def test_a_child_that_uses_the_store_it_was_forked_with_takes_no_lock_from_its_parent(
    history: Path,
) -> None:
    store = open_store(history, wait=0)
    store.put(Literal(b"so that the lock was taken once"))
    begun, begin = os.pipe()

    def child() -> None:
        os.read(begun, 1)
        with pytest.raises(LockTimeout):
            store.put(Literal(b"by the child"))

    forked = start(child)
    held = store._shared_log._lock()
    os.write(begin, b"!")
    finish([forked])
    os.close(begun)
    os.close(begin)

    with open_store(history, wait=0) as other, pytest.raises(LockTimeout):
        other.put(Literal(b"by another"))
    held.release()


def test_two_stores_of_one_process_keep_each_other_out(history: Path) -> None:
    one, two = open_store(history, wait=0), open_store(history, wait=0)
    held = one._shared_log._lock()
    with pytest.raises(LockTimeout):
        two.put(Literal(b"more"))
    held.release()

    assert two.put(Literal(b"more"))[1].position == 2
    assert one.put(Literal(b"more"))[1].position == 2
    assert one.current() == two.current()


def test_a_fork_goes_on_whatever_other_threads_were_doing(tmp_path: Path) -> None:
    with ArtifactStore.open(tmp_path) as store:
        cid, _ = store.put(Literal(b"before"))
        stop = threading.Event()

        def keep_putting(name: int) -> None:
            number = 0
            while not stop.is_set():
                store.put(Literal(b"%d by thread %d" % (number, name)))
                number += 1

        threads = [threading.Thread(target=keep_putting, args=(name,)) for name in range(2)]
        for thread in threads:
            thread.start()
        try:
            children = [start(lambda: use_in_a_fork(store, cid)) for _ in range(4)]
            for child in children:
                child.join(60)
            assert [child.exitcode for child in children] == [0] * 4
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert store.get(CID.of(b"by a fork")) == b"by a fork"
        assert store.verify().ok


def use_in_a_fork(store: ArtifactStore, cid: CID) -> None:
    assert store.get(cid) == b"before"
    store.put(Literal(b"by a fork"))
