"""Outboxes with one fault each. The name says the fault."""

import threading
import time
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from perdure.context import events as drafts
from perdure.context.events import LEASE_SECONDS, MAX_SIBLINGS
from perdure.errors import LeaseError
from perdure.model import (
    ContextNode,
    EventStatus,
    EventType,
    OutboxEvent,
    RequestContext,
    Role,
    Uri,
)
from tests.support.context.index_outbox import SqliteOutbox
from tests.support.context.memory_outbox import MemoryOutbox

Listed = list[tuple[str, OutboxEvent]]

A_MOMENT = 0.002
"""Seconds between a look and a change: long enough for another worker to come in between."""


def stored_of(outbox: MemoryOutbox, event: OutboxEvent) -> Any:  # noqa: ANN401 - not ours
    return outbox._accounts.get(event.account_id, {}).get(event.event_id)


def forcing(outbox: MemoryOutbox, event: OutboxEvent) -> None:
    """End whatever lease an event has."""
    entry = stored_of(outbox, event)
    if entry is not None:
        entry.end_lease()


# ---------------------------------------------------------------- registering


class Redrafting(MemoryOutbox):
    """Keeps and returns something else than the draft; what, a subclass says."""

    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        raise NotImplementedError

    def _registered(self, event: OutboxEvent) -> OutboxEvent:
        return super()._registered(self.redrafted(event))

    def register_writes(
        self, nodes: Iterable[ContextNode], ctx: RequestContext
    ) -> list[OutboxEvent]:
        drafted = [drafts.of_write(node, ctx, self._time()) for node in nodes]
        events = [self.redrafted(event) for event in drafted]
        self._add(events)
        return events


class PutsTheContentInside(MemoryOutbox):
    def register_write(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        event = drafts.of_write(node, ctx, self._time())
        return self._registered(replace(event, payload={**event.payload, "content": node.content}))


class LeavesOutTheCid(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        payload = {name: value for name, value in event.payload.items() if name != "cid"}
        return replace(event, payload=payload)


class KeepsNothing(MemoryOutbox):
    def _add(self, events: Sequence[OutboxEvent]) -> None:
        pass


class SortsManyWrites(MemoryOutbox):
    def _add(self, events: Sequence[OutboxEvent]) -> None:
        super()._add(sorted(events, key=lambda event: event.uri))


class RegistersManyOneByOne(MemoryOutbox):
    def register_writes(
        self, nodes: Iterable[ContextNode], ctx: RequestContext
    ) -> list[OutboxEvent]:
        return [self.register_write(node, ctx) for node in nodes]


class NamesEventsByTheirTime(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        return replace(event, event_id=event.created_at.isoformat())


class TakesADeleteForAnArchive(MemoryOutbox):
    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        return self.register_archive(uri, ctx, owner_space=owner_space)


class TakesAnArchiveForADelete(MemoryOutbox):
    def register_archive(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        return self.register_delete(uri, ctx, owner_space=owner_space)


class ForgetsWhereFrom(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        payload = {name: value for name, value in event.payload.items() if name != "from_uri"}
        return replace(event, payload=payload)


class TellsNoEdges(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        changed = event.event_type is EventType.UPSERT_RELATIONS
        return replace(event, payload={**event.payload, "edges": []}) if changed else event


class FilesTheFolderUnderItsNode(MemoryOutbox):
    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        event = drafts.of_directory(node, self._siblings, ctx, self._time())
        return self._registered(replace(event, uri=node.uri))


class TellsTheNamesOfSiblingsOnly(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        siblings: Any = event.payload.get("siblings", ())
        bare = [{**each, "abstract": ""} for each in siblings]
        return replace(event, payload={**event.payload, "siblings": bare}) if bare else event


class LetsOthersCrowdOutTheNode(MemoryOutbox):
    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        event = drafts.of_directory(node, self._siblings, ctx, self._time())
        reported = [*self._siblings(node, ctx)][:MAX_SIBLINGS]
        siblings = [{"uri": uri, "abstract": abstract} for uri, abstract in reported]
        return self._registered(replace(event, payload={**event.payload, "siblings": siblings}))


class TellsOfAllSiblings(MemoryOutbox):
    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        event = drafts.of_directory(node, self._siblings, ctx, self._time())
        reported = [(node.uri, node.abstract), *self._siblings(node, ctx)]
        siblings = [{"uri": uri, "abstract": abstract} for uri, abstract in reported]
        return self._registered(replace(event, payload={**event.payload, "siblings": siblings}))


class KnowsOwnersByNameOnly(Redrafting):
    def redrafted(self, event: OutboxEvent) -> OutboxEvent:
        return replace(event, owner_space=Uri.parse(event.uri).owner_space)


class AsksNobody(MemoryOutbox):
    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        anybody = RequestContext(Uri.parse(uri).account, "anybody", role=Role.ADMIN)
        return super().register_delete(uri, anybody, owner_space=owner_space)


class AsksForTheAccountOnly(MemoryOutbox):
    def register_relations(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        return super().register_relations(node, replace(ctx, role=Role.ADMIN))


class LooksAtTheTargetOfAMoveOnly(MemoryOutbox):
    def register_move(self, from_uri: str, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        event = drafts.of_write(node, ctx, self._time())
        payload = {**event.payload, "from_uri": from_uri}
        return self._registered(replace(event, event_type=EventType.MOVE_NODE, payload=payload))


class RefusesAdmins(MemoryOutbox):
    def register_archive(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        member = replace(ctx, role=Role.MEMBER)
        return super().register_archive(uri, member, owner_space=owner_space)


class DeletesFolders(MemoryOutbox):
    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        place = Uri.parse(uri)
        if place.is_node:
            return super().register_delete(uri, ctx, owner_space=owner_space)
        return self._registered(
            OutboxEvent(
                event_id=uri,
                event_type=EventType.DELETE_NODE,
                uri=uri,
                account_id=place.account,
                created_at=self._time(),
            )
        )


class ListsByTime(MemoryOutbox):
    def list_pending(self, account_id: str) -> Listed:
        return sorted(super().list_pending(account_id), key=lambda pair: pair[1].created_at)


# ---------------------------------------------------------------- working


class TakesWaitingForUnfinished(MemoryOutbox):
    def list_unfinished(self, account_id: str) -> Listed:
        return self.list_pending(account_id)


class SaysOfAllThatTheyWait(MemoryOutbox):
    def list_unfinished(self, account_id: str) -> Listed:
        waiting = EventStatus.PENDING
        return [(u, replace(e, status=waiting)) for u, e in super().list_unfinished(account_id)]


class MarksNothing(MemoryOutbox):
    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        pass


class MarksForEver(MemoryOutbox):
    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        self.try_acquire(event, node_uri, "marked", 366 * 24 * 3600)


class MarksOverALease(MemoryOutbox):
    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        forcing(self, event)
        super().mark_processing(event, node_uri)


class KeepsTheDeadWhenDone(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        entry = stored_of(self, event)
        if entry is None or not entry.dead:
            super().mark_done(event, node_uri, worker_id=worker_id)


class ReleasesWhatIsDone(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        self.release(event, node_uri, worker_id=worker_id)


class MissesWhatIsGone(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        super().mark_done(event, node_uri, worker_id=worker_id)
        del self._accounts[event.account_id][event.event_id]


class CountsFromTheEventInHand(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        super().increment_retry(event, node_uri, next_retry_at, worker_id=worker_id, error=error)
        entry = stored_of(self, event)
        if entry is not None:
            entry.event = replace(entry.event, retry_count=event.retry_count + 1)


class ForgetsWhenToRetry(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        super().increment_retry(event, node_uri, worker_id=worker_id, error=error)


class LeasesWhatIsNotDue(MemoryOutbox):
    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        entry = stored_of(self, event)
        if entry is not None:
            entry.event = replace(entry.event, next_retry_at=None)
        return super().try_acquire(event, node_uri, worker_id, timeout_seconds)


class KeepsTheLeaseOfAFailure(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        super().increment_retry(event, node_uri, next_retry_at, worker_id=worker_id, error=error)
        if worker_id is not None:
            self.try_acquire(event, node_uri, worker_id)


class ChokesOnHalfCharacters(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        whole = error.encode().decode()
        super().increment_retry(event, node_uri, next_retry_at, worker_id=worker_id, error=whole)


class NeverTellsHowOftenItFailed(MemoryOutbox):
    def list_pending(self, account_id: str) -> Listed:
        return [(u, replace(e, retry_count=0)) for u, e in super().list_pending(account_id)]


class TrustsTheId(MemoryOutbox):
    def mark_processing(self, event: OutboxEvent, node_uri: str) -> None:
        super().mark_processing(event, event.uri)


# ---------------------------------------------------------------- leases


class Leasing(MemoryOutbox):
    """Leases in another way than it should; a subclass says how."""

    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        return super().try_acquire(event, event.uri, worker_id, timeout_seconds)

    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        return self.leased(event, worker_id, timeout_seconds)


class LeasesToEverybody(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        forcing(self, event)
        return super().leased(event, worker_id, timeout_seconds)


class ListsWhatIsLeased(MemoryOutbox):
    def list_pending(self, account_id: str) -> Listed:
        living = self.list_unfinished(account_id)
        return [(uri, event) for uri, event in living if event.status is not EventStatus.DEAD]


class LeasesTheWholeQueue(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        won = super().leased(event, worker_id, timeout_seconds)
        for _, other in self.list_pending(event.account_id):
            super().leased(other, worker_id, timeout_seconds)
        return won


class LeasesForEver(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        return super().leased(event, worker_id, 366 * 24 * 3600)


class LeasesForAMinute(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        return super().leased(event, worker_id, min(timeout_seconds, 60))


class LeasesOnceOnly(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        entry = stored_of(self, event)
        if entry is not None and entry.leased(self._now()):
            return False
        return super().leased(event, worker_id, timeout_seconds)


class DoesNotStartAnew(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        entry = stored_of(self, event)
        if entry is not None and entry.leased(self._now()):
            return bool(entry.worker == worker_id)
        return super().leased(event, worker_id, timeout_seconds)


class FoldsWorkers(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        return super().leased(event, worker_id.casefold(), timeout_seconds)


class ComposesWorkers(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        composed = unicodedata.normalize("NFC", worker_id)
        return super().leased(event, composed, timeout_seconds)


class LeasesTheDead(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        entry = stored_of(self, event)
        return (entry is not None and entry.dead) or super().leased(
            event, worker_id, timeout_seconds
        )


class OnlySaysThatItExtends(MemoryOutbox):
    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        entry = stored_of(self, event)
        return bool(entry.worker == worker_id and entry.leased(self._now()))


class ExtendsLapsedLeases(MemoryOutbox):
    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        entry = stored_of(self, event)
        own = entry is not None and entry.worker == worker_id
        return own and self.try_acquire(event, node_uri, worker_id, timeout_seconds)


class ReleasesNothing(MemoryOutbox):
    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        pass


class ReleasesOnlyForItsWorker(MemoryOutbox):
    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        if worker_id is not None:
            super().release(event, node_uri, worker_id=worker_id)


class WantsALeaseToRelease(MemoryOutbox):
    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        if not stored_of(self, event).leased(self._now()):
            raise LeaseError(event.event_id)
        super().release(event, node_uri, worker_id=worker_id)


class ForgetsTheTimeWhenItReleases(MemoryOutbox):
    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        super().release(event, node_uri, worker_id=worker_id)
        entry = stored_of(self, event)
        entry.event = replace(entry.event, next_retry_at=None)


class LeasesForNoTime(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        return super().leased(event, worker_id, max(1, timeout_seconds))


# ---------------------------------------------------------------- late workers


class LetsTheLateFinish(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        super().mark_done(event, node_uri)


class SaysNoAndFinishes(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        try:
            super().mark_done(event, node_uri, worker_id=worker_id)
        except LeaseError:
            super().mark_done(event, node_uri)
            raise


class SaysNothingToTheLate(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        with suppress(LeaseError):
            super().mark_done(event, node_uri, worker_id=worker_id)


class LetsTheLateBury(MemoryOutbox):
    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        super().move_to_dlq(event, node_uri)


class LetsTheLateFail(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        super().increment_retry(event, node_uri, next_retry_at, error=error)


class LetsTheLateRelease(MemoryOutbox):
    def release(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        super().release(event, node_uri)


class LetsTheLateExtend(MemoryOutbox):
    def extend(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        forcing(self, event)
        return self.try_acquire(event, node_uri, worker_id, timeout_seconds)


class TakesAMarkForNoLease(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        anybody = stored_of(self, event).worker is None
        super().mark_done(event, node_uri, worker_id=None if anybody else worker_id)


class HoldsLapsesAgainstWorkers(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        if worker_id is not None and not stored_of(self, event).leased(self._now()):
            raise LeaseError(event.event_id)
        super().mark_done(event, node_uri, worker_id=worker_id)


# ---------------------------------------------------------------- the dead


class ForgetsWhatItBuries(MemoryOutbox):
    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        self.mark_done(event, node_uri, worker_id=worker_id)


class ListsTheDeadAsPending(MemoryOutbox):
    def list_pending(self, account_id: str) -> Listed:
        return [*super().list_pending(account_id), *self.list_dead(account_id)]


class ListsTheLastToDieFirst(MemoryOutbox):
    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        super().move_to_dlq(event, node_uri, worker_id=worker_id)
        events = self._accounts[event.account_id]
        events[event.event_id] = events.pop(event.event_id)


class RevivesWhatFailsAgain(MemoryOutbox):
    def increment_retry(
        self,
        event: OutboxEvent,
        node_uri: str,
        next_retry_at: datetime | None = None,
        *,
        worker_id: str | None = None,
        error: str = "",
    ) -> None:
        self.requeue(event.account_id, [event.event_id])
        super().increment_retry(event, node_uri, next_retry_at, worker_id=worker_id, error=error)


class BuriesTheLeaseToo(MemoryOutbox):
    def move_to_dlq(
        self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None
    ) -> None:
        entry = stored_of(self, event)
        worker, end = (None, 0) if entry is None else (entry.worker, entry.lease_end)
        super().move_to_dlq(event, node_uri, worker_id=worker_id)
        if entry is not None:
            entry.worker, entry.lease_end = worker, end


class RequeuesWithTheFailures(MemoryOutbox):
    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        before = dict(self.list_dead(account_id))
        count = super().requeue(account_id, event_ids)
        for event in before.values():
            entry = stored_of(self, event)
            if not entry.dead:
                entry.event = replace(entry.event, retry_count=event.retry_count)
        return count


class RequeuesAtTheEnd(MemoryOutbox):
    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        buried = self.list_dead(account_id)
        count = super().requeue(account_id, event_ids)
        for _, event in buried:
            events = self._accounts[event.account_id]
            events[event.event_id] = events.pop(event.event_id)
        return count


class RequeuesAll(MemoryOutbox):
    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        return super().requeue(account_id)


class CountsWhatWasAskedFor(MemoryOutbox):
    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        asked = None if event_ids is None else list(event_ids)
        count = super().requeue(account_id, asked)
        return count if asked is None else len(asked)


class PurgesNothing(MemoryOutbox):
    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        return len(self._dead(account_id, event_ids))


class PurgesAll(MemoryOutbox):
    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        return super().purge(account_id)


class PurgesTheLiving(MemoryOutbox):
    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        events = self._accounts.get(account_id, {})
        chosen = list(events) if event_ids is None else list(dict.fromkeys(event_ids))
        return len([events.pop(id_) for id_ in chosen if id_ in events])


# ---------------------------------------------------------------- tenants


class CanNotForget(MemoryOutbox):
    delete_by_owner_space = None  # type: ignore[assignment]


class FoldingAccounts(MemoryOutbox):
    """Takes some ids of accounts for others; which, a subclass says."""

    def folded(self, account_id: str) -> str:
        raise NotImplementedError

    def list_pending(self, account_id: str) -> Listed:
        found = []
        for other in tuple(self._accounts):
            if self.folded(other) == self.folded(account_id):
                found += super().list_pending(other)
        return found


class FoldsCase(FoldingAccounts):
    def folded(self, account_id: str) -> str:
        return account_id.casefold()


class DropsOddCharacters(FoldingAccounts):
    def folded(self, account_id: str) -> str:
        return "".join(each for each in account_id if each.isalnum())


class ComposesAccounts(FoldingAccounts):
    def folded(self, account_id: str) -> str:
        return unicodedata.normalize("NFC", account_id)


class ReadsAccountsAsNumbers(FoldingAccounts):
    def folded(self, account_id: str) -> str:
        return account_id.lstrip("0")


class RequeuesByTheIdAlone(MemoryOutbox):
    def requeue(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        if event_ids is None:
            return super().requeue(account_id)
        chosen = list(event_ids)
        return sum(MemoryOutbox.requeue(self, name, chosen) for name in tuple(self._accounts))


class PurgesByTheIdAlone(MemoryOutbox):
    def purge(self, account_id: str, event_ids: Iterable[str] | None = None) -> int:
        if event_ids is None:
            return super().purge(account_id)
        chosen = list(event_ids)
        return sum(MemoryOutbox.purge(self, name, chosen) for name in tuple(self._accounts))


class FindsByTheIdAlone(MemoryOutbox):
    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        super().mark_done(event, node_uri, worker_id=worker_id)
        for events in self._accounts.values():
            events.pop(event.event_id, None)


class KeepsTheDeadOfAccounts(MemoryOutbox):
    def delete_account_data(self, account_id: str) -> int:
        buried = {event.event_id for _, event in self.list_dead(account_id)}
        events = self._accounts.get(account_id, {})
        return len([events.pop(id_) for id_ in tuple(events) if id_ not in buried])


class CountsNoDeletedAccounts(MemoryOutbox):
    def delete_account_data(self, account_id: str) -> int:
        super().delete_account_data(account_id)
        return 1


class KeepsWhatOwnersHaveLeased(MemoryOutbox):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        leased = {
            entry.event.event_id: entry
            for entry in self._accounts.get(account_id, {}).values()
            if entry.leased(self._now())
        }
        count = super().delete_by_owner_space(account_id, owner_space)
        self._accounts.get(account_id, {}).update(leased)
        return count


class DeletesOwnersEverywhere(MemoryOutbox):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        delete = super().delete_by_owner_space
        return sum(delete(name, owner_space) for name in tuple(self._accounts))


class MatchesOwnersByTheirBeginning(MemoryOutbox):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        events = self._accounts.get(account_id, {})
        alike = [
            i for i, entry in events.items() if entry.event.owner_space.startswith(owner_space)
        ]
        return len([events.pop(id_) for id_ in alike])


class DeletesByTheIdOfTheOwner(MemoryOutbox):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        events = self._accounts.get(account_id, {})
        name = owner_space.partition(":")[2]
        alike = [
            i for i, entry in events.items() if entry.event.owner_space.partition(":")[2] == name
        ]
        return len([events.pop(id_) for id_ in alike])


# ---------------------------------------------------------------- many at once


class LooksBeforeItLeases(Leasing):
    def leased(self, event: OutboxEvent, worker_id: str, timeout_seconds: int) -> bool:
        entry = stored_of(self, event)
        if not entry.ready(self._now()):
            return False
        time.sleep(A_MOMENT)
        forcing(self, event)
        return super().leased(event, worker_id, timeout_seconds)


class CopiesItsEventsToAdd(MemoryOutbox):
    def _add(self, events: Sequence[OutboxEvent]) -> None:
        copy = {name: dict(each) for name, each in self._accounts.items()}
        time.sleep(A_MOMENT)
        self._accounts = copy
        super()._add(events)


class LooksIntoTheFileBeforeItLeases(SqliteOutbox):
    def try_acquire(
        self,
        event: OutboxEvent,
        node_uri: str,
        worker_id: str,
        timeout_seconds: int = LEASE_SECONDS,
    ) -> bool:
        end = self._now() + timeout_seconds * 1_000_000
        with self._file.connection() as db:
            held = "SELECT 1 FROM events WHERE event_id = ? AND lease_end IS NOT NULL"
            if db.execute(held, (event.event_id,)).fetchone():
                return False
        time.sleep(A_MOMENT)
        with self._file.transaction() as db:
            lease = "UPDATE events SET worker = ?, lease_end = ? WHERE event_id = ?"
            db.execute(lease, (worker_id, end, event.event_id))
        return True


class GivesUpWhenBusy(SqliteOutbox):
    def _add(self, events: Sequence[OutboxEvent]) -> None:
        with self._file.connection() as db:
            db.execute("PRAGMA busy_timeout = 0")
        with self._file.transaction() as db:
            for event in events:
                self._one(db, event)
            time.sleep(A_MOMENT)

    def _one(self, db: Any, event: OutboxEvent) -> None:  # noqa: ANN401 - a connection
        db.execute(
            "INSERT INTO events (event_id, type, uri, account, owner, payload, created_at) "
            "VALUES (?, ?, ?, ?, ?, '{}', 0)",
            (
                event.event_id,
                event.event_type.value,
                event.uri,
                event.account_id,
                event.owner_space,
            ),
        )


# ---------------------------------------------------------------- reopening


class StartsAnew(SqliteOutbox):
    def __init__(self, path: str, **options: Any) -> None:  # noqa: ANN401 - passed on
        Path(path).unlink(missing_ok=True)
        super().__init__(path, **options)


class LeasesUntilItIsClosed(SqliteOutbox):
    def close(self) -> None:
        with self._file.transaction() as db:
            db.execute("UPDATE events SET worker = NULL, lease_end = NULL")
        super().close()


class RemembersWhatIsDone(SqliteOutbox):
    def __init__(self, path: str, **options: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(path, **options)
        self._done: set[str] = set()
        self._guard = threading.Lock()

    def mark_done(self, event: OutboxEvent, node_uri: str, *, worker_id: str | None = None) -> None:
        with self._guard:
            self._done.add(event.event_id)

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        found = [e.event_id for _, e in self.list_pending(account_id)]
        with self._guard:
            self._done.update(found)
        return len(found)

    def list_pending(self, account_id: str) -> Listed:
        return [(u, e) for u, e in super().list_pending(account_id) if e.event_id not in self._done]


class RoundsItsTimes(SqliteOutbox):
    def list_pending(self, account_id: str) -> Listed:
        whole = timedelta(microseconds=1)
        return [
            (u, replace(e, created_at=e.created_at - e.created_at.microsecond * whole))
            for u, e in super().list_pending(account_id)
        ]
