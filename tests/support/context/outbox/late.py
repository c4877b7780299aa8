"""Workers who come back after their lease lapsed."""

from datetime import timedelta

import pytest

from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import LeaseError
from perdure.model import OutboxEvent
from tests.support.context.outbox.base import (
    ACCOUNT,
    HandClock,
    OutboxBase,
    dead,
    pending,
    written,
)


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
