"""Bring indexes up to date with what was written, for one account or for all."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from perdure.dataclass import dataclass
from perdure.engine.edits import notice_edits
from perdure.engine.indexing.follower import (
    IndexFollower,
    IndexUpdate,
    Progress,
    ShouldContinue,
    accounts_of,
    folders_of,
)
from perdure.engine.indexing.outbox_store import OutboxStore, fail
from perdure.errors import (
    BrokenNodeError,
    EmbeddingError,
    InvalidValueError,
    LeaseError,
    NodeNotFoundError,
    PerdureError,
)
from perdure.index.account.failures import OF_LOG
from perdure.model import OutboxEvent, RequestContext, Uri

if TYPE_CHECKING:
    from perdure.engine.indexing.indexes import CurrentIndex
    from perdure.engine.services import Services

BATCH = 500
"""How many events are taken at once; their texts are embedded together."""

Leased = list[tuple[str, OutboxEvent]]
Unfinished = Sequence[tuple[str, OutboxEvent]]


@dataclass(frozen=True, slots=True)
class WorkCounts:
    done: int = 0
    failed: int = 0
    """To be tried again later."""
    dead: int = 0
    """Failed too often; an operator decides."""
    indexed: int = 0
    """Places whose records were made, in an index that is finished."""

    @classmethod
    def of(cls, caught: IndexUpdate, known: Collection[str] = ()) -> "WorkCounts":
        """Count what was indexed, unless the index is as unfinished as before.

        While the log is empty no index is ever finished, so files that lie there would be looked at
        without an end. Nodes are events of the log, but for those that are `known` otherwise.
        """
        if not caught.position:
            return cls()
        nodes = {str(place) for place in caught.places if place.is_node} - {*known}
        failed = nodes & caught.failed.keys()
        return cls(len(nodes - failed), len(failed), indexed=len(caught.places))

    @property
    def events(self) -> int:
        return self.done + self.failed + self.dead

    def __add__(self, other: "WorkCounts") -> "WorkCounts":
        return WorkCounts(
            self.done + other.done,
            self.failed + other.failed,
            self.dead + other.dead,
            self.indexed + other.indexed,
        )


class Worker:
    """Works on the events of an account, with others who do the same.

    The log tells where to look; an event that failed before, where to look again. Records are made
    of what the nodes say when they are worked on, so it does not matter in which order events come,
    nor how often. Events of the log need no lease: of several who index them, one moves the cursor.
    """

    def __init__(
        self,
        outbox: OutboxStore,
        follower: IndexFollower,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        worker_id: str = "",
    ) -> None:
        self._outbox = outbox
        self._follower = follower
        self._clock = clock
        self.id = worker_id or f"{os.getpid()}-{os.urandom(6).hex()}"
        self.has_events = True
        """Whether events failed or were registered when it last looked."""
        self._since: int | None = None
        self._early: frozenset[str] | None = None
        """Where the cursor was then, and what was indexed too early; both for one use."""

    def drain(self, account_id: str) -> WorkCounts:
        """Work until nothing waits any more that could be worked on now."""
        total, pending = WorkCounts(), self._due(account_id)
        while pending:  # a long queue is listed once
            for begin in range(0, len(pending), BATCH):
                total += self._work(account_id, pending[begin : begin + BATCH])
            pending = self._due(account_id)
        return total if total.events else self._work(account_id, [])

    def work(self, account_id: str) -> WorkCounts:
        """Work on one batch of events, and on what the log has beyond them."""
        pending = self._due(account_id)[:BATCH]
        if not pending and self._follower.is_settled(self._since or 0, self._early):
            return WorkCounts()
        return self._work(account_id, pending)  # also without any: some was indexed too early

    def _due(self, account_id: str) -> Leased:
        """Return the events that failed, or that no commit tells of, and can be worked on now."""
        self._since, self.has_events, self._early = self._follower.index_state(account_id)
        return self._outbox.list_due(account_id) if self.has_events else []

    def _work(self, account_id: str, pending: Leased) -> WorkCounts:
        leased = [(uri, e) for uri, e in pending if self._outbox.try_acquire(e, uri, self.id)]
        try:
            return self._outcome(account_id, leased)
        except BaseException:
            self._release(leased)  # what is done or failed is let go of with that
            raise

    def _outcome(self, account_id: str, leased: Leased) -> WorkCounts:
        try:
            caught = self._caught_up(account_id, leased)
        except EmbeddingError:  # there is no index yet, and none can be made: no event's fault
            raise
        except PerdureError as error:
            outcome = self._fail(leased, str(error))
            if not leased:
                raise
            return outcome
        self._remember(account_id, caught, {event.uri for _, event in leased})
        return self._settle(leased, caught)

    def index_places(self, account_id: str, places: Iterable[Uri]) -> None:
        """Index the given places, and what the log names."""
        caught = self._follower.catch_up(account_id, also=places)
        self._remember(account_id, caught, set())

    def _remember(self, account_id: str, caught: IndexUpdate, known: set[str]) -> None:
        """See to it that what failed is tried again, also if nobody registered it."""
        failed: dict[str, tuple[str, str]] = {}
        for uri in sorted(caught.failed.keys() - known):
            with suppress(
                BrokenNodeError, InvalidValueError, NodeNotFoundError
            ):  # that is repair's
                stored = self._follower.indexer.reader.active(Uri.parse(uri))
                failed[uri] = stored.node.owner_space, str(caught.failed[uri])
        if failed:
            self._outbox.fail(failed, account_id, caught.position)

    def _caught_up(self, account_id: str, leased: Leased) -> IndexUpdate:
        """Index what the log tells of; then what was indexed too early, and events that failed."""
        (since, early), self._since, self._early = (self._since, self._early), None, None
        caught = self._follower.catch_up(account_id, since=since)
        self.has_events |= bool(caught.failed)
        rest = dict.fromkeys(self._follower.places_indexed_early(account_id, early, caught))
        failing = set(caught.failed)
        if rest:
            failing |= {event.uri for _, event in self._outbox.list_failed(account_id)}
        rest = {place: None for place in rest if str(place) not in failing}
        asked = dict.fromkeys(place for _, event in leased for place in _places(event))
        rest |= {place: None for place in asked if place not in caught.places}
        if not rest:
            return caught
        told = {  # what was registered by others need not tell of the whole folder
            event.uri: event.payload
            for _, event in leased
            if event.event_id.startswith(OF_LOG) and "directory" in event.payload
        }
        more = self._follower.catch_up(account_id, also=rest, folder_payloads=told)
        return IndexUpdate(
            more.position, caught.places | more.places, {**caught.failed, **more.failed}
        )

    def _settle(self, leased: Leased, caught: IndexUpdate) -> WorkCounts:
        outcome = WorkCounts.of(caught, {event.uri for _, event in leased})
        for uri, event in leased:
            error = caught.failed.get(event.uri)
            if error is not None:
                outcome += self._fail([(uri, event)], str(error))
            else:
                with suppress(LeaseError):  # then another one does the same once more
                    self._outbox.mark_done(event, uri, worker_id=self.id)
                    outcome += WorkCounts(done=1)
        return outcome

    def _fail(self, leased: Leased, error: str) -> WorkCounts:
        outcome = WorkCounts()
        for uri, event in leased:
            with suppress(LeaseError):
                dead = fail(self._outbox, event, uri, error, self._clock(), self.id)
                outcome += WorkCounts(dead=1) if dead else WorkCounts(failed=1)
        return outcome

    def _release(self, leased: Leased) -> None:
        for uri, event in leased:
            self._outbox.release(event, uri, worker_id=self.id)


def _places(event: OutboxEvent) -> Iterator[Uri]:
    """Yield the places whose records an event makes wrong: a node's, and the folders above."""
    for uri in (event.uri, event.payload.get("from_uri")):
        if isinstance(uri, str):
            place = Uri.parse(uri)
            yield place
            yield from folders_of(place)


_PAUSE_SECONDS = 1.0
_REPORT_SECONDS = 5.0
"""How often the progress of a build is reported."""
_CHECK_SECONDS = 10.0
"""A worker looks for edits as often, or for a tenth of its time where that takes long."""
_OUTAGE_SECONDS = 60.0


class WorkKind(Enum):
    ACCOUNT_FAILED = "account failed"
    """The account could not be worked on; the others were."""
    EVENTS_FAILED = "events failed"
    """`counts` has the changes to be tried again, and those that failed too often."""
    EMBEDDING = "embedding"
    """`counts` has the places that the index of a new embedder has, and of how many."""
    INTERRUPTED = "interrupted"
    """The next worker goes on building that index; `counts` as before."""
    FINISHED = "finished"
    """That index answers from now on; `counts` as before."""


@dataclass(frozen=True, slots=True)
class WorkReport:
    kind: WorkKind
    account: str
    counts: tuple[int, int]
    errors: Mapping[str, str]
    """What failed, by the URI of a node or of the account."""


Report = Callable[[WorkReport], None]


@dataclass(frozen=True, slots=True)
class WorkResult:
    counts: WorkCounts
    failed: frozenset[str]


def work(
    services: "Services",
    caller: "RequestContext",
    ending: Event,
    report: Report | None,
    *,
    once: bool,
) -> WorkResult:
    """Work until nothing waits, or on and on; in either case until `ending` is set."""
    caller.demand_governing("work for all accounts")
    loop = _WorkLoop(services, ending, report or (lambda _: None))
    total = loop.work()
    while not once and not ending.wait(_PAUSE_SECONDS):
        total += loop.work()
    return WorkResult(total, frozenset(loop.failed))


class _WorkLoop:
    def __init__(self, parts: "Services", ending: Event, report: Report) -> None:
        self._services = parts
        self._ending = ending
        self._report = report
        self._resting: dict[str, float] = {}
        """Until when the new index of an account is not built, because its model failed."""
        self.failed: set[str] = set()
        self._next_check = 0.0

    def work(self) -> WorkCounts:
        """Record edits, and work on all that waits, account by account."""
        self._notice_edits()
        total = WorkCounts()
        for account in accounts_of(self._services.reader):
            try:
                while not self._ending.is_set() and (done := self._step(account)) != WorkCounts():
                    total += done
            except PerdureError as error:  # the other accounts go on
                self.failed.add(account)
                errors = {str(Uri(account)): str(error)}
                self._report(WorkReport(WorkKind.ACCOUNT_FAILED, account, (0, 0), errors))
        return total

    def _notice_edits(self) -> None:
        """Record edits made outside Perdure, unless that was done lately."""
        began = time.monotonic()
        if began >= self._next_check:
            notice_edits(self._services, seconds=None)
            took = time.monotonic() - began
            self._next_check = began + max(_CHECK_SECONDS, took * _CHECK_SECONDS)

    def _step(self, account: str) -> WorkCounts:
        """Work on what was written; if nothing is left, on the index of a new embedder."""
        present = self._services.current_index(account)
        if present.fallback is not None and self._rests(account):
            present = present.fallback
        if self._is_long(present, account):
            return self._indexed(present.follower.build_on(account, self._goes_on, lambda _: None))
        with self._resting_after(account):
            done = Worker(self._services.outbox, present.follower).work(account)
        if done.failed or done.dead:
            unfinished = self._services.outbox.list_failed(account)
            errors = {event.uri: event.last_error for _, event in unfinished if event.last_error}
            counts = done.failed, done.dead
            self._report(WorkReport(WorkKind.EVENTS_FAILED, account, counts, errors))
        if done == WorkCounts() and present.is_interim:
            return self._build(account)
        return done

    def _is_long(self, present: "CurrentIndex", account: str) -> bool:
        """Whether words are to be indexed first, and for so long that it may be interrupted."""
        following = present.follower
        words = present.is_interim or self._services.indexes.embedder is None
        return words and not following.index.cursor(account) and not following.is_small(account)

    def _indexed(self, caught: IndexUpdate | None) -> WorkCounts:
        """Count what was indexed, also in an index that is not finished."""
        if caught is None:
            return WorkCounts()
        return (
            WorkCounts(indexed=len(caught.places))
            if self._ending.is_set()
            else WorkCounts.of(caught)
        )

    def _goes_on(self) -> bool:
        return not self._ending.is_set()

    def _build(self, account: str) -> WorkCounts:
        if self._rests(account):
            return WorkCounts()
        reported = time.monotonic()

        def progress(_: int) -> None:
            nonlocal reported
            if time.monotonic() >= reported + _REPORT_SECONDS:
                self._report_build(WorkKind.EMBEDDING, account, {})
                reported = time.monotonic()

        wanted = self._services.indexes.upkeep.following
        answering = partial(self._answering, account)
        with self._resting_after(account):
            caught = build_in_background(wanted, account, answering, self._goes_on, progress)
        if caught is not None:
            kind = WorkKind.FINISHED if caught.position else WorkKind.INTERRUPTED
            self._report_build(kind, account, caught.failed)
        return self._indexed(caught)

    def _report_build(
        self, kind: WorkKind, account: str, failed: Mapping[str, PerdureError]
    ) -> None:
        errors = {uri: str(error) for uri, error in failed.items()}
        self._report(WorkReport(kind, account, self._services.indexes.progress(account), errors))

    def _rests(self, account: str) -> bool:
        return time.monotonic() < self._resting.get(account, 0.0)

    @contextmanager
    def _resting_after(self, account: str) -> Iterator[None]:
        try:
            yield
        except EmbeddingError:
            self._resting[account] = time.monotonic() + _OUTAGE_SECONDS
            raise

    def _answering(self, account: str) -> Worker | None:
        """Return the worker for the index that answers until the new one is built."""
        present = self._services.current_index(account)
        return Worker(self._services.outbox, present.follower) if present.is_interim else None


def build_in_background(
    wanted: IndexFollower,
    account_id: str,
    answering: Callable[[], Worker | None],
    goes_on: ShouldContinue,
    progress: Progress,
) -> IndexUpdate | None:
    """Build the wanted index while another answers, as long as `goes_on`; None if others build it.

    What was written meanwhile is worked on after each step by the worker of the one that answers.
    """

    def between() -> bool:
        worker = answering()
        if worker is not None:
            with suppress(PerdureError):  # a recall reports it; this one is built all the same
                worker.work(account_id)
        return goes_on()

    return wanted.build_on(account_id, between, progress)
