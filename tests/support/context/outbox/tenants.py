"""Accounts and owners: nothing of one is reached through another."""

from dataclasses import replace
from itertools import permutations

from perdure.context.contract import TenantStore
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.model import ContextNode, OutboxEvent, RequestContext, Role
from perdure.testing.index.change_tests import ALIKE
from perdure.testing.requirement import requirement
from tests.support.context.outbox.base import (
    ANA,
    BOB,
    HandClock,
    OutboxBase,
    all_of,
    bury,
    dead,
    pending,
    uri_of,
    written,
)


def some_of_each(outbox: OutboxStore, ctx: RequestContext) -> list[OutboxEvent]:
    """Register events and bring them into every state: waiting, leased, later, marked, dead."""
    events = [written(outbox, f"n{number}", ctx) for number in range(5)]
    _, leased, later, marked, buried = events
    outbox.try_acquire(leased, leased.uri, "w1", 10)
    outbox.increment_retry(later, later.uri, later.created_at.replace(year=2030))
    outbox.mark_processing(marked, marked.uri)
    bury(outbox, buried)
    return events


def ids(events: list[OutboxEvent]) -> set[str]:
    return {event.event_id for event in events}


def years_later(clock: HandClock) -> None:
    """Go on until all leases have lapsed, and all that failed is due."""
    clock.go_on(10 * 366 * 24 * 3600)


class TenantTests(OutboxBase):
    def test_an_outbox_can_purge_events(self, outbox: OutboxStore) -> None:
        assert isinstance(outbox, TenantStore)
        assert callable(outbox.delete_account_data)
        assert callable(outbox.delete_by_owner_space)

    @requirement("003-outbox-list-pending-account")
    def test_each_account_lists_its_own_events_only(self, outbox: OutboxStore) -> None:
        accounts = {name: RequestContext(name, "ana") for name in ALIKE}
        waiting = {name: written(outbox, "w", ctx) for name, ctx in accounts.items()}
        buried = {name: written(outbox, "d", ctx) for name, ctx in accounts.items()}
        for event in buried.values():
            bury(outbox, event)

        for name in ALIKE:
            assert pending(outbox, name) == [waiting[name].event_id]
            assert dead(outbox, name) == [buried[name].event_id]
        assert all_of(outbox, "nobody") == set()

    def test_the_dead_of_an_account_are_not_requeued_through_another(
        self, outbox: OutboxStore
    ) -> None:
        for name, other in permutations(ALIKE[:4], 2):
            event = written(outbox, ctx=RequestContext(name, "ana"))
            bury(outbox, event)

            assert outbox.requeue(other) == 0
            assert outbox.requeue(other, [event.event_id]) == 0
            assert dead(outbox, name) == [event.event_id]
            assert outbox.requeue(name, [event.event_id]) == 1
            outbox.mark_done(event, event.uri)

    def test_the_dead_of_an_account_are_not_purged_through_another(
        self, outbox: OutboxStore
    ) -> None:
        for name, other in permutations(ALIKE[:4], 2):
            event = written(outbox, ctx=RequestContext(name, "ana"))
            bury(outbox, event)

            assert outbox.purge(other) == 0
            assert outbox.purge(other, [event.event_id]) == 0
            assert outbox.purge(name, [event.event_id]) == 1

    def test_an_id_alone_opens_nothing_of_another_account(self, outbox: OutboxStore) -> None:
        event = written(outbox)
        stranger = RequestContext("other", "ana")
        forged = replace(event, account_id="other", uri=uri_of(ctx=stranger))

        assert not outbox.try_acquire(forged, forged.uri, "w1")
        outbox.mark_processing(forged, forged.uri)
        outbox.increment_retry(forged, forged.uri, error="forged")
        outbox.move_to_dlq(forged, forged.uri)
        outbox.mark_done(forged, forged.uri)
        assert outbox.list_pending(ANA.account_id) == [(event.uri, event)]

    def test_an_account_is_deleted_wholly_and_alone(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        events = {name: some_of_each(outbox, RequestContext(name, "ana")) for name in ALIKE}
        for name in ALIKE[:6]:
            assert outbox.delete_account_data(name) == 5
            assert outbox.delete_account_data(name) == 0
        years_later(clock)

        for name in ALIKE[:6]:
            assert all_of(outbox, name) == set()
            assert not outbox.try_acquire(events[name][0], events[name][0].uri, "w1")
        for name in ALIKE[6:]:
            assert all_of(outbox, name) == ids(events[name])

    def test_what_belongs_to_one_owner_is_deleted_wholly_and_alone(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        elsewhere = RequestContext("other", "ana")
        mine = some_of_each(outbox, ANA)
        remaining, foreign = some_of_each(outbox, BOB), some_of_each(outbox, elsewhere)

        assert outbox.delete_by_owner_space("acme", "user:ana") == len(mine)
        assert outbox.delete_by_owner_space("acme", "user:ana") == 0
        years_later(clock)
        assert all_of(outbox) == ids(remaining)
        assert all_of(outbox, "other") == ids(foreign)

    def test_owners_are_distinguished_exactly(self, outbox: OutboxStore) -> None:
        admin = RequestContext("acme", "root", role=Role.ADMIN)
        for name in ALIKE:
            written(outbox, ctx=RequestContext("acme", name))
            outbox.register_write(
                ContextNode(
                    uri=f"ctx://acme/sessions/s{ALIKE.index(name)}/m", owner_space=f"agent:{name}"
                ),
                admin,
            )

        for name in ALIKE:
            assert outbox.delete_by_owner_space("acme", f"user:{name}") == 1
            assert outbox.delete_by_owner_space("acme", f"agent:{name}") == 1
        assert all_of(outbox) == set()
