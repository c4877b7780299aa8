"""The dead-letter queue, and what an operator does with it."""

from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.model import EventStatus
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
