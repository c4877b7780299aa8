"""Many threads on one store: they share commits, and one's failure is its own."""

import errno
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google_crc32c import value as crc32c

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal, NewBinding
from perdure.artifacts.content_index import CommitDraft, Content
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind, Put
from perdure.artifacts.shared_log import _Request
from perdure.errors import InvalidArtifactError, StorageFaultError
from tests.support.artifacts.faulty_disk import Fault, FaultyDisk
from tests.support.artifacts.memory_disk import MemoryDisk

THREADS = 16
PUTS = 25


class Gate(MemoryDisk):
    """A disk whose lock can't be had for as long as the gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.opened = threading.Event()
        self.opened.set()

    def shut(self) -> None:
        self.asked.clear()
        self.opened.clear()

    def lock(self, name: str) -> Any:  # noqa: ANN401
        self.asked.set()
        assert self.opened.wait(60)
        return super().lock(name)


def run(actions: list[Callable[[], object]]) -> list[object]:
    """Do all of it, each in a thread of its own; return what each returned or raised."""
    results: list[object] = [None] * len(actions)

    def act(number: int) -> None:
        try:
            results[number] = actions[number]()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            results[number] = error

    threads = [threading.Thread(target=act, args=(n,), daemon=True) for n in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return results


def together(gate: Gate, store: ArtifactStore, actions: list[Callable[[], object]]) -> list[object]:
    """Let all of them queue up behind the first, and only then let them go on."""
    gate.shut()

    def release() -> None:
        assert gate.asked.wait(60)
        while len(store._shared_log._queue) < len(actions) - 1:
            threading.Event().wait(0.001)
        gate.opened.set()

    releasing = threading.Thread(target=release, daemon=True)
    releasing.start()
    results = run(actions)
    releasing.join(60)
    return results


def putting(store: ArtifactStore, *contents: bytes) -> list[Callable[[], object]]:
    return [lambda data=data: store.put(Literal(data)) for data in contents]  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_threads_lose_nothing_and_share_commits(tmp_path: Path, kind: str) -> None:
    disk: Disk = MemoryDisk() if kind == "memory" else FolderDisk(tmp_path)
    store = ArtifactStore(disk)
    results: list[list[tuple[bytes, CID, IndexState]]] = [[] for _ in range(THREADS)]
    begin = threading.Barrier(THREADS)

    def work(number: int) -> None:
        begin.wait(60)
        for index in range(PUTS):
            data = b"%d" % index if index % 5 == 0 else b"%d of %d" % (index, number)
            cid, state = store.put(Literal(data))
            assert store.get(cid, state) == data
            results[number].append((data, cid, state))

    assert run([lambda n=n: work(n) for n in range(THREADS)]) == [None] * THREADS  # type: ignore[misc]

    puts = [logged for logged in store.log() if isinstance(logged.entry, Put)]
    assert len({logged.entry.cid for logged in puts if isinstance(logged.entry, Put)}) == len(puts)
    assert len(puts) == THREADS * (PUTS - 5) + 5
    commits = {logged.commit for logged in puts}
    assert len(commits) < len(puts) or kind == "memory"  # which is too quick to wait for
    for answers in results:
        assert [state for *_, state in answers] == sorted(state for *_, state in answers)
        for data, cid, state in answers:
            assert cid == CID.of(data)
            assert store.get(cid, state) == data
    assert store.verify().ok
    with ArtifactStore(disk) as again:
        assert list(again.log()) == list(store.log())


def test_threads_that_wait_for_the_lock_share_the_next_commit() -> None:
    gate = Gate()
    store = ArtifactStore(gate)
    store.put(Literal(b"begin"))

    results = together(gate, store, putting(store, *(b"%d" % number for number in range(THREADS))))

    commits = {logged.commit for logged in store.log(after=1)}
    assert len(commits) == 2  # the first of them alone, and all that queued up behind it
    assert {result[1].position for result in results if isinstance(result, tuple)} == commits
    assert store.get_many([CID.of(b"%d" % n) for n in range(THREADS)]) == [
        b"%d" % n for n in range(THREADS)
    ]


def test_equal_content_in_one_commit_is_written_once() -> None:
    gate = Gate()
    store = ArtifactStore(gate)
    store.put(Literal(b"begin"))

    results = together(gate, store, putting(store, *[b"same"] * THREADS))

    assert results == [(CID.of(b"same"), IndexState(0, 2))] * THREADS
    assert [type(logged.entry) for logged in store.log()] == [Put, Put]


class Meanwhile(MemoryDisk):
    """A disk on which another process takes the lock first."""

    meanwhile: Callable[[], object] | None = None

    def lock(self, name: str) -> Any:  # noqa: ANN401
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().lock(name)


def test_what_another_put_while_we_waited_for_the_lock_is_not_written_again() -> None:
    disk = Meanwhile()
    one, two = ArtifactStore(disk), ArtifactStore(disk)
    one.put(Literal(b"begin"))

    disk.meanwhile = lambda: two.put_many([Literal(b"other"), Literal(b"same")])

    assert one.put(Literal(b"same")) == (CID.of(b"same"), IndexState(0, 3))
    assert [type(logged.entry) for logged in one.log()] == [Put] * 3


def test_a_leader_that_serves_another_first_is_served_before_it_returns() -> None:
    store = ArtifactStore(MemoryDisk())
    store.put(Literal(b"begin"))
    waiting = _Request(lambda draft: draft.put(store._content(b"alone")), alone=True)
    store._shared_log._queue.append(waiting)

    assert store.put(Literal(b"mine")) == (CID.of(b"mine"), IndexState(0, 3))
    assert waiting.done


def put_alone(store: ArtifactStore, data: bytes) -> tuple[CID, IndexState]:
    content = Content(bytes(CID.of(data)), crc32c(data), data)
    return CID.of(data), store._shared_log.commit(lambda draft: draft.put(content), alone=True)


def test_every_returned_state_has_what_was_put_with_commits_that_are_alone() -> None:
    gate = Gate()
    store = ArtifactStore(gate)
    store.put(Literal(b"begin"))

    for index in range(20):
        contents = [b"%d in turn %d" % (number, index) for number in range(8)]
        puts = putting(store, *contents[:4])
        lonely = [partial(put_alone, store, data) for data in contents[4:]]
        mixed = [action for pair in zip(puts, lonely, strict=True) for action in pair]
        results = together(gate, store, [*mixed, store.snapshot])
        states = [result for result in results if isinstance(result, IndexState)]
        answers = [result for result in results if isinstance(result, tuple)]
        assert len(states) == 1
        assert {state.position > 0 for state in states} == {True}
        for cid, state in (answer for answer in answers if answer not in states):
            assert store.get(cid, state) is not None


@pytest.mark.parametrize("error", [InvalidArtifactError, ValueError, OSError])
def test_a_plan_that_fails_alone_hurts_nobody_else(error: type[Exception]) -> None:
    gate = Gate()
    store = ArtifactStore(gate)
    store.put(Literal(b"begin"))

    def fail(_: CommitDraft) -> None:
        raise error("no")

    bad = [lambda: store._shared_log.commit(fail, alone=True)] * 3
    good = putting(store, *(b"%d" % number for number in range(6)))

    results = together(gate, store, [bad[0], *good[:3], bad[1], *good[3:], bad[2]])

    failed = [result for result in results if isinstance(result, BaseException)]
    assert [type(result) for result in failed if not isinstance(result, error)] == []
    assert len(failed) == 3
    for result in (result for result in results if isinstance(result, tuple)):
        assert store.get(*result) is not None
    assert store.put(Literal(b"after"))[1].position == 8
    assert store.get_many([CID.of(b"%d" % n) for n in range(6)]) == [b"%d" % n for n in range(6)]
    assert store.verify().ok


def test_a_plan_that_fails_takes_only_its_own_part_of_the_commit_with_it() -> None:
    gate = Gate()
    store = ArtifactStore(gate)
    store.put(Literal(b"begin"))

    def half_done(draft: Any) -> None:  # noqa: ANN401
        draft.put(store._content(b"never"))
        draft.put(store._content(b"1"))
        raise ZeroDivisionError

    def fail() -> object:
        return store._shared_log.commit(half_done)

    good = putting(store, b"0", b"1", b"2", b"3")
    results = together(gate, store, [good[0], fail, good[1], fail, *good[2:]])

    assert [type(r) for r in results if isinstance(r, BaseException)] == [ZeroDivisionError] * 2
    assert store.get_many([CID.of(b"%d" % n) for n in range(4)]) == [b"%d" % n for n in range(4)]
    assert store.get(CID.of(b"never")) is None
    assert store.current().position == 5
    assert store.verify().ok


def test_a_failed_commit_is_raised_in_all_who_shared_it_and_the_store_goes_on() -> None:
    gate = Gate()
    disk = FaultyDisk(gate)
    store = ArtifactStore(disk)
    store.put(Literal(b"begin"))

    def fail_the_second_sync() -> None:
        syncs = 0
        asked = disk.ask

        def ask(verb: str, name: str, *acts: Any) -> Any:  # noqa: ANN401
            nonlocal syncs
            syncs += verb == "sync"
            if verb == "sync" and syncs == 2:
                raise OSError(errno.EIO, "Input/output error")
            return asked(verb, name, *acts)

        disk.__dict__["ask"] = ask

    fail_the_second_sync()
    results = together(gate, store, putting(store, *(b"%d" % n for n in range(THREADS))))

    failed = [result for result in results if isinstance(result, Exception)]
    assert len(failed) == THREADS - 1
    assert all(isinstance(error, StorageFaultError) and "Fix:" in str(error) for error in failed)
    assert run(putting(store, *(b"%d" % n for n in range(THREADS)))) != []
    assert all(store.has_many([CID.of(b"%d" % n) for n in range(THREADS)]))
    assert store.verify().ok


# ---------------------------------------------------------------- interrupts


def calls_of_a_put() -> int:
    disk = FaultyDisk(MemoryDisk())
    store = ArtifactStore(disk)
    store.put(Literal(b"begin"))
    before = len(disk.calls)
    store.put(Literal(b"more"))
    return len(disk.calls) - before


@pytest.mark.parametrize("at", range(calls_of_a_put()))
def test_an_interrupted_leader_leaves_nobody_waiting(at: int) -> None:
    gate = Gate()
    disk = FaultyDisk(gate)
    store = ArtifactStore(disk)
    store.put(Literal(b"begin"))
    disk.calls.clear()
    disk.fault = Fault(at, interrupts=True)

    first = run(putting(store, b"interrupted"))
    disk.fault = None
    others = run(putting(store, *(b"%d" % number for number in range(4))))

    assert [type(result) for result in first] == [KeyboardInterrupt]
    assert all(isinstance(result, tuple) for result in others)
    assert store.get_many([CID.of(b"%d" % n) for n in range(4)]) == [b"%d" % n for n in range(4)]
    assert store.verify().ok


@pytest.mark.parametrize("verb", ["lock", "write", "sync"])
def test_followers_of_an_interrupted_leader_are_served_and_only_once(verb: str) -> None:
    gate = Gate()
    disk = FaultyDisk(gate)
    store = ArtifactStore(disk)
    store.put(Literal(b"begin"))
    struck = threading.Event()
    asked = disk.ask

    def ask(what: str, name: str, *acts: Any) -> Any:  # noqa: ANN401
        if what == "write" and name == "mark" and verb == "write" and not struck.is_set():
            struck.set()
            raise KeyboardInterrupt
        answer = asked(what, name, *acts)
        if what == verb != "write" and not struck.is_set():
            struck.set()
            if what == "lock":
                answer.release()
            raise KeyboardInterrupt
        return answer

    disk.__dict__["ask"] = ask

    def recording(number: int) -> Callable[[], object]:
        return lambda: store.record([NewBinding(f"name {number}", b"%d" % number)])

    actions = [recording(number) for number in range(THREADS)]
    results = together(gate, store, actions)

    interrupted = [n for n, r in enumerate(results) if isinstance(r, KeyboardInterrupt)]
    assert len(interrupted) == 1
    served = [n for n, result in enumerate(results) if isinstance(result, IndexState)]
    assert len(served) == THREADS - 1
    bound = [e.entry.name for e in store.log() if isinstance(e.entry, Bind)]
    assert [bound.count(f"name {n}") for n in served] == [1] * len(served)
    assert bound.count(f"name {interrupted[0]}") <= 1
    assert all(store.has_many([CID.of(b"%d" % n) for n in served]))
    assert store.verify().ok


def test_what_an_interrupted_caller_had_asked_for_is_not_done_behind_its_back() -> None:
    disk = FaultyDisk(MemoryDisk())
    store = ArtifactStore(disk)
    store.put(Literal(b"begin"))
    disk.calls.clear()
    asked = disk.ask

    def ask(verb: str, name: str, *acts: Any) -> Any:  # noqa: ANN401
        if verb == "write":
            raise KeyboardInterrupt
        return asked(verb, name, *acts)

    disk.__dict__["ask"] = ask
    with pytest.raises(KeyboardInterrupt):
        store.put(Literal(b"x" * 100))
    disk.__dict__["ask"] = asked

    assert store.put(Literal(b"mine")) == (CID.of(b"mine"), IndexState(0, 2))
    assert store.put(Literal(b"more")) == (CID.of(b"more"), IndexState(0, 3))


def test_readers_never_meet_half_a_commit_while_threads_write() -> None:
    store = ArtifactStore(MemoryDisk())
    pairs = [(b"left %d" % n, b"right %d" % n) for n in range(150)]
    done = threading.Event()

    def write() -> None:
        for number, pair in enumerate(pairs):
            store.put_many(list(map(Literal, pair)))
            if number % 20 == 0:
                store.snapshot()
        done.set()

    def read() -> None:
        last = store.current()
        while not done.is_set():
            state = store.current()
            assert state >= last
            last = state
            for left, right in pairs[:: len(pairs) // 10]:
                seen = store.get_many([CID.of(left), CID.of(right)], state)
                assert seen in ([left, right], [None, None])

    assert run([write, read, read, read]) == [None] * 4
