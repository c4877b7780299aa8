"""Many at once: threads of one process, and several processes; and one after another."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path

from perdure.context.events import Clock, Siblings, no_siblings, utc_now
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.testing.requirement import requirement
from perdure.testing.storage.processes import finish
from perdure.testing.suite import when
from tests.support.context.outbox.base import (
    ACCOUNT,
    ANA,
    CONCURRENT_WORKERS,
    SURVIVES_REOPENING,
    HandClock,
    Neighbours,
    OutboxBase,
    all_of,
    bury,
    closing,
    dead,
    memory,
    pending,
    written,
)

_WORKERS = 3
_EVENTS = 40
_PATIENCE_SECONDS = 60

Open = Callable[[Path, Clock, Siblings], OutboxStore]


class ConcurrencyTests(OutboxBase):
    @requirement("003-outbox-acquire-atomic")
    def test_of_many_threads_one_gets_each_event(self, outbox: OutboxStore) -> None:
        events = outbox.register_writes([memory(f"n{number}") for number in range(_EVENTS)], ANA)

        def take(worker: str) -> list[str]:
            return [e.event_id for e in events if outbox.try_acquire(e, e.uri, worker)]

        with ThreadPoolExecutor(4) as threads:
            taken = list(threads.map(take, ["w1", "w2", "w3", "w4"]))
        won = [id_ for each in taken for id_ in each]

        assert sorted(won) == sorted(event.event_id for event in events)

    def test_threads_lose_no_event(self, outbox: OutboxStore) -> None:
        def fill(thread: int) -> list[str]:
            return [written(outbox, f"n{thread}-{round_}").event_id for round_ in range(20)]

        with ThreadPoolExecutor(4) as threads:
            registered = list(threads.map(fill, range(4)))

        listed = pending(outbox)
        assert sorted(listed) == sorted(id_ for each in registered for id_ in each)
        for mine in registered:
            assert [id_ for id_ in listed if id_ in mine] == mine

    @when(CONCURRENT_WORKERS)
    @requirement("003-outbox-acquire-atomic")
    def test_of_many_processes_one_gets_each_event(self, place: Path, outbox: OutboxStore) -> None:
        outbox.register_writes([memory(f"n{number}") for number in range(_EVENTS)], ANA)
        race(self.open_outbox, place, take_all)

        won = [id_ for path in place.glob("*.won") for id_ in path.read_text("utf-8").split()]
        assert sorted(won) == sorted(all_of(outbox))

    @when(CONCURRENT_WORKERS)
    def test_processes_lose_no_event(self, place: Path, outbox: OutboxStore) -> None:
        race(self.open_outbox, place, register_some)

        registered = [path.read_text("utf-8").split() for path in sorted(place.glob("*.won"))]
        listed = pending(outbox)
        assert sorted(listed) == sorted(id_ for each in registered for id_ in each)
        for mine in registered:
            assert [id_ for id_ in listed if id_ in mine] == mine

    @when(SURVIVES_REOPENING)
    @requirement("003-outbox-durable")
    def test_every_event_is_as_it_was_when_opened_again(
        self, place: Path, clock: HandClock, neighbours: Neighbours
    ) -> None:
        with closing(self.open_outbox(place, clock, neighbours)) as first:
            events = [written(first, f"n{number}") for number in range(4)]
            waiting, leased, later, buried = events
            first.try_acquire(leased, leased.uri, "w1", 10)
            first.increment_retry(later, later.uri, clock.time.replace(year=2027), error="é")
            bury(first, buried, "why")
            listed, put_aside = first.list_pending(ACCOUNT), first.list_dead(ACCOUNT)
        with closing(self.open_outbox(place, clock, neighbours)) as again:
            assert again.list_pending(ACCOUNT) == listed == [(waiting.uri, waiting)]
            assert again.list_dead(ACCOUNT) == put_aside
            assert not again.try_acquire(leased, leased.uri, "w2")
            assert again.extend(leased, leased.uri, "w1")
            clock.go_on(366 * 24 * 3600)
            assert pending(again) == [event.event_id for event in events[:3]]
            assert [event.last_error for _, event in again.list_pending(ACCOUNT)] == ["", "", "é"]

    @when(SURVIVES_REOPENING)
    def test_what_was_deleted_is_not_there_when_opened_again(
        self, place: Path, clock: HandClock, neighbours: Neighbours
    ) -> None:
        with closing(self.open_outbox(place, clock, neighbours)) as first:
            done, _ = written(first, "done"), written(first, "forgotten")
            bury(first, written(first, "purged"))
            first.mark_done(done, done.uri)
            first.purge(ACCOUNT)
            first.delete_by_owner_space(ACCOUNT, "user:ana")
            last = written(first, "last")
        with closing(self.open_outbox(place, clock, neighbours)) as again:
            assert pending(again) == [last.event_id]
            assert dead(again) == []


# ---------------------------------------------------------------- what the processes do
def race(open_outbox: Open, place: Path, run: Callable[[OutboxStore], list[str]]) -> None:
    """Let several processes, each with an outbox of its own, do the same at the same time."""
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = [
        context.Process(target=take_part, args=(open_outbox, place, run, name), daemon=True)
        for name in map(str, range(_WORKERS))
    ]
    for process in processes:
        process.start()
    try:
        wait_until(lambda: len(list(place.glob("*.ready"))) == _WORKERS, processes)
        (place / "go").touch()
    finally:
        finish(processes)


def take_part(
    open_outbox: Open, place: Path, run: Callable[[OutboxStore], list[str]], name: str
) -> None:
    with closing(open_outbox(place, utc_now, no_siblings)) as outbox:
        outbox.list_pending(ACCOUNT)
        (place / f"{name}.ready").touch()
        wait_until((place / "go").exists)
        (place / f"{name}.won").write_text(" ".join(run(outbox)), encoding="utf-8")


def take_all(outbox: OutboxStore) -> list[str]:
    worker = f"worker-{time.monotonic_ns()}"
    return [
        event.event_id
        for uri, event in outbox.list_pending(ACCOUNT)
        if outbox.try_acquire(event, uri, worker)
    ]


def register_some(outbox: OutboxStore) -> list[str]:
    return [written(outbox, f"n{round_}").event_id for round_ in range(_EVENTS)]


def wait_until(happened: Callable[[], bool], processes: list[BaseProcess] | None = None) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "the processes did not start in time"
        assert all(process.is_alive() for process in processes or ()), "a process ended early"
        time.sleep(0.002)
