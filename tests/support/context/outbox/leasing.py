"""Leases: who gets one, how long it lasts, how it ends."""

import pytest

from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import InvalidValueError
from perdure.testing.requirement import requirement
from tests.support.context.outbox.base import (
    HandClock,
    OutboxBase,
    bury,
    dead,
    pending,
    written,
)


class LeaseTests(OutboxBase):
    @requirement("003-outbox-acquire-refused")
    def test_a_leased_event_is_for_no_other_worker(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)

        assert outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(9)
        assert not outbox.try_acquire(event, event.uri, "w2", 10)
        assert pending(outbox) == []

    def test_a_lease_is_of_one_event_only(self, outbox: OutboxStore) -> None:
        first, second = written(outbox, "one"), written(outbox, "two")
        outbox.try_acquire(first, first.uri, "w1")

        assert pending(outbox) == [second.event_id]
        assert outbox.try_acquire(second, second.uri, "w2")

    @requirement("003-outbox-acquire-expired")
    def test_a_lease_lapses_and_the_event_waits_again(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event, later = written(outbox, "one"), written(outbox, "two")
        outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(11)

        assert outbox.list_pending(event.account_id) == [(event.uri, event), (later.uri, later)]
        assert outbox.try_acquire(event, event.uri, "w2", 10)
        assert not outbox.try_acquire(event, event.uri, "w1", 10)

    @requirement("003-outbox-acquire-default-timeout")
    def test_a_lease_lasts_300_seconds_by_default(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        acquired, extended = written(outbox, "one"), written(outbox, "two")
        outbox.try_acquire(acquired, acquired.uri, "w1")
        outbox.try_acquire(extended, extended.uri, "w1", 10)
        outbox.extend(extended, extended.uri, "w1")
        clock.go_on(299)

        assert pending(outbox) == []
        clock.go_on(2)
        assert pending(outbox) == [acquired.event_id, extended.event_id]

    def test_the_same_worker_that_asks_again_has_it_still_and_for_longer(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(9)

        assert outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(9)
        assert not outbox.try_acquire(event, event.uri, "w2")
        clock.go_on(2)
        assert outbox.try_acquire(event, event.uri, "w2")

    def test_workers_are_told_apart_exactly(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "worker-é")

        for other in ("Worker-é", "worker-e\u0301", "worker-", "worker-é ", "%"):
            assert not outbox.try_acquire(event, event.uri, other)
            assert not outbox.extend(event, event.uri, other)

    def test_what_is_done_or_dead_is_leased_to_nobody(self, outbox: OutboxStore) -> None:
        done, buried = written(outbox, "done"), written(outbox, "buried")
        outbox.mark_done(done, done.uri)
        bury(outbox, buried)

        for event in (done, buried):
            assert not outbox.try_acquire(event, event.uri, "w1")
            assert not outbox.extend(event, event.uri, "w1")
        assert dead(outbox) == [buried.event_id]

    def test_an_extended_lease_lasts_longer(self, outbox: OutboxStore, clock: HandClock) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(9)

        assert outbox.extend(event, event.uri, "w1", 20)
        clock.go_on(19)
        assert not outbox.try_acquire(event, event.uri, "w2")
        clock.go_on(2)
        assert outbox.try_acquire(event, event.uri, "w2")

    def test_only_a_lease_of_ones_own_that_has_not_lapsed_can_be_extended(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)
        assert not outbox.extend(event, event.uri, "w1")
        outbox.try_acquire(event, event.uri, "w1", 10)

        assert not outbox.extend(event, event.uri, "w2", 1000)
        clock.go_on(11)
        assert not outbox.extend(event, event.uri, "w1", 1000)
        assert pending(outbox) == [event.event_id]

    @requirement("003-outbox-release")
    def test_a_released_event_is_for_the_next_worker(self, outbox: OutboxStore) -> None:
        told, untold = written(outbox, "one"), written(outbox, "two")
        for event in (told, untold):
            outbox.try_acquire(event, event.uri, "w1")
        outbox.release(told, told.uri, worker_id="w1")
        outbox.release(untold, untold.uri)

        assert pending(outbox) == [told.event_id, untold.event_id]
        assert outbox.try_acquire(told, told.uri, "w2")

    def test_there_need_be_no_lease_to_release(self, outbox: OutboxStore, clock: HandClock) -> None:
        waiting, lapsed = written(outbox, "one"), written(outbox, "two")
        outbox.try_acquire(lapsed, lapsed.uri, "w1", 10)
        clock.go_on(11)
        for event in (waiting, lapsed):
            outbox.release(event, event.uri)
            outbox.release(event, event.uri, worker_id="w2")

        assert pending(outbox) == [waiting.event_id, lapsed.event_id]

    def test_to_release_is_no_way_around_the_time_of_the_next_attempt(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)
        outbox.increment_retry(event, event.uri, clock())
        clock.go_on(-30)
        outbox.release(event, event.uri)

        assert pending(outbox) == []

    def test_leases_that_can_not_be_are_refused(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        for seconds in (0, -1, 10**12):
            with pytest.raises(InvalidValueError):
                outbox.try_acquire(event, event.uri, "w1", seconds)
        for verb in (outbox.try_acquire, outbox.extend):
            with pytest.raises(InvalidValueError):
                verb(event, event.uri, "")

        assert pending(outbox) == [event.event_id]
