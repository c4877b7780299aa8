"""How an event goes: done, tried again, put aside."""

from datetime import timedelta

import pytest

from perdure.context.events import MAX_RETRY
from perdure.engine.indexing.outbox_store import OutboxStore, fail
from perdure.errors import InvalidValueError
from perdure.model import EventStatus
from perdure.testing.requirement import requirement
from tests.support.context.outbox.base import (
    ACCOUNT,
    START,
    HandClock,
    OutboxBase,
    bury,
    dead,
    pending,
    written,
)

SOON = START + timedelta(seconds=30)


class WorkTests(OutboxBase):
    @requirement("003-outbox-mark-processing")
    def test_all_that_is_not_done_is_listed_with_its_state(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        waiting, buried, leased, marked, later = (written(outbox, f"n{n}") for n in range(5))
        outbox.try_acquire(leased, leased.uri, "w1")
        outbox.mark_processing(marked, marked.uri)
        outbox.increment_retry(later, later.uri, SOON)
        bury(outbox, buried)

        events = [event for _, event in outbox.list_unfinished(ACCOUNT)]
        in_order = (waiting, buried, leased, marked, later)
        assert [event.event_id for event in events] == [event.event_id for event in in_order]
        states = [event.status.value for event in events]
        assert states == ["pending", "dead", "processing", "processing", "pending"]
        clock.go_on(301)
        states = [event.status.value for _, event in outbox.list_unfinished(ACCOUNT)]
        assert states == ["pending", "dead", "pending", "pending", "pending"]

    @requirement("003-outbox-mark-processing")
    def test_an_event_marked_as_being_worked_on_is_left_out_until_a_lease_would_lapse(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        first, second = written(outbox, "one"), written(outbox, "two")
        outbox.mark_processing(first, first.uri)

        assert pending(outbox) == [second.event_id]
        assert not outbox.try_acquire(first, first.uri, "w1")
        clock.go_on(301)
        assert pending(outbox) == [first.event_id, second.event_id]

    def test_marking_leaves_a_lease_as_it_is(self, outbox: OutboxStore, clock: HandClock) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1", 10)
        outbox.mark_processing(event, event.uri)

        assert outbox.extend(event, event.uri, "w1", 10)
        clock.go_on(11)
        assert pending(outbox) == [event.event_id]

    @requirement("003-outbox-mark-done")
    def test_what_is_done_is_gone_for_good(self, outbox: OutboxStore, clock: HandClock) -> None:
        waiting, leased, buried, remaining = (written(outbox, f"n{number}") for number in range(4))
        outbox.try_acquire(leased, leased.uri, "w1")
        bury(outbox, buried)
        for event in (waiting, leased, buried):
            outbox.mark_done(event, event.uri)
        clock.go_on(1000)

        assert pending(outbox) == [remaining.event_id]
        assert dead(outbox) == []
        assert not outbox.try_acquire(waiting, waiting.uri, "w1")

    def test_what_is_gone_can_be_finished_again_without_an_error(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.mark_done(event, event.uri, worker_id="w1")
        outbox.mark_done(event, event.uri, worker_id="w1")
        outbox.mark_processing(event, event.uri)
        outbox.release(event, event.uri, worker_id="w1")
        outbox.increment_retry(event, event.uri, worker_id="w1")
        outbox.move_to_dlq(event, event.uri, worker_id="w1")

        assert pending(outbox) == dead(outbox) == []

    @requirement("003-outbox-increment-retry")
    def test_a_failure_is_counted_with_its_error(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.increment_retry(event, event.uri, error="first")
        outbox.increment_retry(event, event.uri, error="second")

        ((_, failed),) = outbox.list_pending(ACCOUNT)
        assert (failed.retry_count, failed.last_error) == (2, "second")
        assert failed.status is EventStatus.PENDING
        assert failed.payload == event.payload

    @requirement("003-outbox-next-retry-at")
    def test_a_failed_event_waits_until_its_next_attempt(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        later, at_once = written(outbox, "later"), written(outbox, "at-once")
        outbox.increment_retry(later, later.uri, SOON)
        outbox.increment_retry(at_once, at_once.uri)

        assert pending(outbox) == [at_once.event_id]
        assert outbox.list_pending(ACCOUNT)[0][1].next_retry_at is None
        assert not outbox.try_acquire(later, later.uri, "w1")
        clock.go_on(31)
        assert pending(outbox) == [later.event_id, at_once.event_id]
        assert outbox.list_pending(ACCOUNT)[0][1].next_retry_at == SOON
        assert outbox.try_acquire(later, later.uri, "w1")

    def test_a_failure_ends_the_lease(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        outbox.try_acquire(event, event.uri, "w1")
        outbox.increment_retry(event, event.uri, worker_id="w1")

        assert outbox.try_acquire(event, event.uri, "w2")

    def test_any_error_can_be_noted(self, outbox: OutboxStore) -> None:
        for number, error in enumerate(("half \ud800", "nul \0 é", "long " * 10_000)):
            event = written(outbox, f"n{number}")
            outbox.increment_retry(event, event.uri, error=error)

        errors = [event.last_error for _, event in outbox.list_pending(ACCOUNT)]
        assert [error[:4] for error in errors] == ["half", "nul ", "long"]

    @requirement("003-outbox-dead-letter-after-retries")
    def test_five_retries_are_allowed_and_the_sixth_failure_buries(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        registered = written(outbox)
        for failure in range(MAX_RETRY + 1):
            ((uri, event),) = outbox.list_pending(ACCOUNT)
            assert outbox.try_acquire(event, uri, "w1")
            buried = fail(outbox, event, uri, f"error {failure}", clock(), "w1")
            assert buried is (failure == MAX_RETRY)
            clock.go_on(2**failure - 0.5)
            assert pending(outbox) == []
            clock.go_on(1)

        ((_, last),) = outbox.list_dead(ACCOUNT)
        assert last.event_id == registered.event_id
        assert (last.retry_count, last.last_error) == (MAX_RETRY + 1, f"error {MAX_RETRY}")

    def test_an_event_is_not_taken_for_that_of_another_node(self, outbox: OutboxStore) -> None:
        event, other = written(outbox, "one"), written(outbox, "two")
        for verb in (
            lambda: outbox.mark_done(event, other.uri),
            lambda: outbox.move_to_dlq(event, other.uri),
            lambda: outbox.increment_retry(event, other.uri),
            lambda: outbox.mark_processing(event, other.uri),
            lambda: outbox.try_acquire(event, other.uri, "w1"),
            lambda: outbox.extend(event, other.uri, "w1"),
            lambda: outbox.release(event, other.uri),
        ):
            with pytest.raises(InvalidValueError):
                verb()

        assert pending(outbox) == [event.event_id, other.event_id]
