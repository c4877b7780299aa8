"""Leases: who gets one, how long it lasts, how it ends; late workers; the dead-letter queue."""

from datetime import timedelta

import pytest

from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import InvalidValueError, LeaseError
from perdure.model import EventStatus, OutboxEvent
from perdure.testing.requirement import requirement
from tests.support.context.outbox.base import (
    ACCOUNT,
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

    def test_workers_are_distinguished_exactly(self, outbox: OutboxStore) -> None:
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
        released, unreleased = written(outbox, "one"), written(outbox, "two")
        for event in (released, unreleased):
            outbox.try_acquire(event, event.uri, "w1")
        outbox.release(released, released.uri, worker_id="w1")
        outbox.release(unreleased, unreleased.uri)

        assert pending(outbox) == [released.event_id, unreleased.event_id]
        assert outbox.try_acquire(released, released.uri, "w2")

    def test_there_need_be_no_lease_to_release(self, outbox: OutboxStore, clock: HandClock) -> None:
        waiting, lapsed = written(outbox, "one"), written(outbox, "two")
        outbox.try_acquire(lapsed, lapsed.uri, "w1", 10)
        clock.go_on(11)
        for event in (waiting, lapsed):
            outbox.release(event, event.uri)
            outbox.release(event, event.uri, worker_id="w2")

        assert pending(outbox) == [waiting.event_id, lapsed.event_id]

    def test_a_release_does_not_bypass_the_time_of_the_next_attempt(
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


def taken_over(outbox: OutboxStore, clock: HandClock) -> OutboxEvent:
    """Return an event that the worker `late` had, and that `w2` has now, for 100 seconds."""
    event = written(outbox)
    outbox.try_acquire(event, event.uri, "late", 10)
    clock.go_on(11)
    assert outbox.try_acquire(event, event.uri, "w2", 100)
    return event


class LateWorkerTests(OutboxBase):
    def test_a_late_worker_can_not_finish_what_another_has(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = taken_over(outbox, clock)
        with pytest.raises(LeaseError):
            outbox.mark_done(event, event.uri, worker_id="late")

        self._still_of_w2(outbox, event, clock)

    def test_a_late_worker_can_not_bury_what_another_has(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = taken_over(outbox, clock)
        with pytest.raises(LeaseError):
            outbox.move_to_dlq(event, event.uri, worker_id="late")

        self._still_of_w2(outbox, event, clock)

    def test_a_late_worker_can_not_count_a_failure_of_what_another_has(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = taken_over(outbox, clock)
        later = clock() + timedelta(days=1)
        with pytest.raises(LeaseError):
            outbox.increment_retry(event, event.uri, later, worker_id="late", error="late")

        self._still_of_w2(outbox, event, clock)

    def test_a_late_worker_can_not_release_what_another_has(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = taken_over(outbox, clock)
        with pytest.raises(LeaseError):
            outbox.release(event, event.uri, worker_id="late")

        self._still_of_w2(outbox, event, clock)

    def test_a_late_worker_can_not_extend_what_another_has(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = taken_over(outbox, clock)

        assert not outbox.extend(event, event.uri, "late", 1000)
        self._still_of_w2(outbox, event, clock)

    def test_what_was_only_marked_is_no_named_worker_s(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.mark_processing(event, event.uri)
        with pytest.raises(LeaseError):
            outbox.mark_done(event, event.uri, worker_id="w1")
        outbox.mark_done(event, event.uri)

        assert pending(outbox) == []

    def test_a_lapsed_lease_that_nobody_took_over_does_not_hinder(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        done, failed, buried = (written(outbox, f"n{number}") for number in range(3))
        for event in (done, failed, buried):
            outbox.try_acquire(event, event.uri, "w1", 10)
        clock.go_on(11)
        outbox.mark_done(done, done.uri, worker_id="w1")
        outbox.increment_retry(failed, failed.uri, worker_id="w1", error="slow")
        outbox.move_to_dlq(buried, buried.uri, worker_id="w1")

        assert pending(outbox) == [failed.event_id]
        assert dead(outbox) == [buried.event_id]

    def _still_of_w2(self, outbox: OutboxStore, event: OutboxEvent, clock: HandClock) -> None:
        """Assert that the event is as it was, and leased to `w2` for as long as it was."""
        clock.go_on(98)
        assert pending(outbox) == dead(outbox) == []
        assert outbox.extend(event, event.uri, "w2", 1)
        clock.go_on(2)
        assert outbox.list_pending(ACCOUNT) == [(event.uri, event)]


class DeadLetterTests(OutboxBase):
    @requirement("003-outbox-dead-letter")
    def test_a_buried_event_is_in_the_dead_letter_queue_only(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1")
        outbox.increment_retry(event, event.uri, worker_id="w1", error="why")
        outbox.move_to_dlq(event, event.uri, worker_id="w1")
        clock.go_on(1_000_000)

        assert pending(outbox) == []
        ((uri, buried),) = outbox.list_dead(ACCOUNT)
        assert (uri, buried.event_id, buried.payload) == (event.uri, event.event_id, event.payload)
        assert buried.status is EventStatus.DEAD
        assert (buried.retry_count, buried.last_error) == (1, "why")

    def test_the_dead_are_listed_in_the_order_of_registration(self, outbox: OutboxStore) -> None:
        events = [written(outbox, f"n{number}") for number in range(5)]
        for number in (3, 0, 4, 1):
            bury(outbox, events[number])

        assert dead(outbox) == [events[number].event_id for number in (0, 1, 3, 4)]
        assert pending(outbox) == [events[2].event_id]

    def test_the_dead_stay_dead_whatever_a_worker_does(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event = written(outbox)
        bury(outbox, event, "why")
        before = outbox.list_dead(ACCOUNT)
        outbox.move_to_dlq(event, event.uri)
        outbox.release(event, event.uri)
        outbox.mark_processing(event, event.uri)
        outbox.increment_retry(event, event.uri, error="again")
        clock.go_on(1000)

        assert outbox.list_dead(ACCOUNT) == before
        assert pending(outbox) == []

    def test_to_bury_ends_a_lease(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1")
        outbox.move_to_dlq(event, event.uri)
        outbox.requeue(ACCOUNT)

        assert outbox.try_acquire(event, event.uri, "w2")

    def test_a_requeued_event_waits_in_its_old_place_as_if_it_had_never_failed(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        event, later = written(outbox, "one"), written(outbox, "two")
        outbox.increment_retry(event, event.uri, clock.time.replace(year=2030), error="why")
        outbox.move_to_dlq(event, event.uri)

        assert outbox.requeue(ACCOUNT) == 1
        assert outbox.list_pending(ACCOUNT) == [(event.uri, event), (later.uri, later)]
        assert dead(outbox) == []

    def test_only_the_chosen_dead_are_requeued(self, outbox: OutboxStore) -> None:
        first, second, waiting = (written(outbox, f"n{number}") for number in range(3))
        bury(outbox, first)
        bury(outbox, second)
        outbox.increment_retry(waiting, waiting.uri)
        chosen = [second.event_id, second.event_id, waiting.event_id, "nobody's"]

        assert outbox.requeue(ACCOUNT, []) == 0
        assert outbox.requeue(ACCOUNT, iter(chosen)) == 1
        assert dead(outbox) == [first.event_id]
        assert [event.retry_count for _, event in outbox.list_pending(ACCOUNT)] == [0, 1]

    def test_purged_events_are_gone_for_good(self, outbox: OutboxStore) -> None:
        events = [written(outbox, f"n{number}") for number in range(3)]
        for event in events[:2]:
            bury(outbox, event)

        assert outbox.purge(ACCOUNT) == 2
        assert dead(outbox) == []
        assert outbox.requeue(ACCOUNT) == 0
        assert pending(outbox) == [events[2].event_id]

    def test_only_the_chosen_dead_are_purged(self, outbox: OutboxStore) -> None:
        first, second, waiting = (written(outbox, f"n{number}") for number in range(3))
        bury(outbox, first)
        bury(outbox, second)
        chosen = [second.event_id, second.event_id, waiting.event_id, "nobody's"]

        assert outbox.purge(ACCOUNT, []) == 0
        assert outbox.purge(ACCOUNT, iter(chosen)) == 1
        assert (dead(outbox), pending(outbox)) == ([first.event_id], [waiting.event_id])
