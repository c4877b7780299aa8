"""The worker: brings indexes up to date with the log and the outbox, for one account or all."""

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
from perdure.index.sql import LOG_EVENT_PREFIX
from perdure.model import OutboxEvent, RequestContext, Uri

if TYPE_CHECKING:
    from perdure.engine.indexing.indexes import CurrentIndex
    from perdure.engine.services import Services

BATCH = 500
"""Lease this many events at once; their texts are embedded together."""

Leased = list[tuple[str, OutboxEvent]]
Unfinished = Sequence[tuple[str, OutboxEvent]]


@dataclass(frozen=True, slots=True)
class WorkCounts:
    done: int = 0
    failed: int = 0
    """Events that are retried later."""
    dead: int = 0
    """Events that failed too often and need an operator."""
    indexed: int = 0
    """Places that were indexed, in a finished index."""

    @classmethod
    def of(cls, update: IndexUpdate, known: Collection[str] = ()) -> "WorkCounts":
        """Count the nodes of an update as events of the log, without those `known` as other events.

        An unfinished index counts nothing: while the log is empty no index is ever finished, and a
        worker would index the same files forever.
        """
        if not update.position:
            return cls()
        nodes = {str(place) for place in update.places if place.is_node} - {*known}
        failed = nodes & update.failed.keys()
        return cls(len(nodes - failed), len(failed), indexed=len(update.places))

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
    """Works on the events of an account. Several workers may do so at once.

    The log names the places to index, and failed events name those to index again. Records are
    built from the present content of the nodes, so the order and number of events do not matter.
    Events of the log need no lease: of several workers that index them, one moves the cursor.
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
        """Whether the outbox had events of its own when it was last read."""
        self._since: int | None = None
        self._early: frozenset[str] | None = None
        """The cursor at that time, and what was indexed too early; both are used once."""

    def drain(self, account_id: str) -> WorkCounts:
        """Work until no event is due."""
        total, pending = WorkCounts(), self._due(account_id)
        while pending:  # a long queue is listed once
            for begin in range(0, len(pending), BATCH):
                total += self._work(account_id, pending[begin : begin + BATCH])
            pending = self._due(account_id)
        return total if total.events else self._work(account_id, [])

    def work(self, account_id: str) -> WorkCounts:
        """Work on one batch of events and on the log past the cursor."""
        pending = self._due(account_id)[:BATCH]
        if not pending and self._follower.is_settled(self._since or 0, self._early):
            return WorkCounts()
        return self._work(account_id, pending)  # even without events, places may be early

    def _due(self, account_id: str) -> Leased:
        """Return the due events that failed before or were registered without a commit."""
        self._since, self.has_events, self._early = self._follower.index_state(account_id)
        return self._outbox.list_due(account_id) if self.has_events else []

    def _work(self, account_id: str, pending: Leased) -> WorkCounts:
        leased = [(uri, e) for uri, e in pending if self._outbox.try_acquire(e, uri, self.id)]
        try:
            return self._outcome(account_id, leased)
        except BaseException:
            self._release(leased)  # releases of done or failed events do nothing
            raise

    def _outcome(self, account_id: str, leased: Leased) -> WorkCounts:
        try:
            update = self._catch_up(account_id, leased)
        except EmbeddingError:  # no index can be built now, which is not the fault of an event
            raise
        except PerdureError as error:
            outcome = self._fail(leased, str(error))
            if not leased:
                raise
            return outcome
        self._register_failures(account_id, update, {event.uri for _, event in leased})
        return self._settle(leased, update)

    def index_places(self, account_id: str, places: Iterable[Uri]) -> None:
        """Index the given places and the log past the cursor."""
        update = self._follower.catch_up(account_id, also=places)
        self._register_failures(account_id, update, set())

    def _register_failures(self, account_id: str, update: IndexUpdate, known: set[str]) -> None:
        """Register an event for each failed place that has none, so that it is retried."""
        failed: dict[str, tuple[str, str]] = {}
        for uri in sorted(update.failed.keys() - known):
            with suppress(
                BrokenNodeError, InvalidValueError, NodeNotFoundError
            ):  # these are left to `repair`
                stored = self._follower.log.reader.active(Uri.parse(uri))
                failed[uri] = stored.node.owner_space, str(update.failed[uri])
        if failed:
            self._outbox.fail(failed, account_id, update.position)

    def _catch_up(self, account_id: str, leased: Leased) -> IndexUpdate:
        """Index the log past the cursor; then early places, and those of leased events."""
        (since, early), self._since, self._early = (self._since, self._early), None, None
        update = self._follower.catch_up(account_id, since=since)
        self.has_events |= bool(update.failed)
        rest = dict.fromkeys(self._follower.places_indexed_early(account_id, early, update))
        failing = set(update.failed)
        if rest:
            failing |= {event.uri for _, event in self._outbox.list_failed(account_id)}
        rest = {place: None for place in rest if str(place) not in failing}
        asked = dict.fromkeys(place for _, event in leased for place in _places(event))
        rest |= {place: None for place in asked if place not in update.places}
        if not rest:
            return update
        payloads = {  # a registered event need not describe the whole folder
            event.uri: event.payload
            for _, event in leased
            if event.event_id.startswith(LOG_EVENT_PREFIX) and "directory" in event.payload
        }
        more = self._follower.catch_up(account_id, also=rest, folder_payloads=payloads)
        return IndexUpdate(
            more.position, update.places | more.places, {**update.failed, **more.failed}
        )

    def _settle(self, leased: Leased, update: IndexUpdate) -> WorkCounts:
        outcome = WorkCounts.of(update, {event.uri for _, event in leased})
        for uri, event in leased:
            error = update.failed.get(event.uri)
            if error is not None:
                outcome += self._fail([(uri, event)], str(error))
            else:
                with suppress(LeaseError):  # another worker has leased it by now
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
    """Yield the places whose records an event makes stale: its node, and the folders above."""
    for uri in (event.uri, event.payload.get("from_uri")):
        if isinstance(uri, str):
            place = Uri.parse(uri)
            yield place
            yield from folders_of(place)


_PAUSE_SECONDS = 1.0
_REPORT_SECONDS = 5.0
"""How often the progress of a build is reported."""
_CHECK_SECONDS = 10.0
"""Check for edits this often, or less often so that checks take a tenth of the time."""
_OUTAGE_SECONDS = 60.0


class WorkKind(Enum):
    ACCOUNT_FAILED = "account failed"
    """The account could not be worked on. Other accounts are not affected."""
    EVENTS_FAILED = "events failed"
    """`counts` has the events to be retried, and those that failed too often."""
    EMBEDDING = "embedding"
    """`counts` has the places in the index of a new embedder, and all places."""
    INTERRUPTED = "interrupted"
    """The next worker continues to build that index; `counts` as for EMBEDDING."""
    FINISHED = "finished"
    """That index answers from now on; `counts` as for EMBEDDING."""


@dataclass(frozen=True, slots=True)
class WorkReport:
    kind: WorkKind
    account: str
    counts: tuple[int, int]
    errors: Mapping[str, str]
    """Error messages, by the URI of a node or of the account."""


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
    """Work until nothing is left (`once`), or repeatedly until `ending` is set."""
    caller.demand_governing("work for all accounts")
    loop = _WorkLoop(services, ending, report or (lambda _: None))
    total = loop.work()
    while not once and not ending.wait(_PAUSE_SECONDS):
        total += loop.work()
    return WorkResult(total, frozenset(loop.failed))


class _WorkLoop:
    def __init__(self, services: "Services", ending: Event, report: Report) -> None:
        self._services = services
        self._ending = ending
        self._report = report
        self._resting: dict[str, float] = {}
        """By account, the time until which its new index is not built because the model failed."""
        self.failed: set[str] = set()
        self._next_check = 0.0

    def work(self) -> WorkCounts:
        """Record edits, then work on every account."""
        self._notice_edits()
        total = WorkCounts()
        for account in accounts_of(self._services.reader):
            try:
                while not self._ending.is_set() and (done := self._step(account)) != WorkCounts():
                    total += done
            except PerdureError as error:  # continue with the other accounts
                self.failed.add(account)
                errors = {str(Uri(account)): str(error)}
                self._report(WorkReport(WorkKind.ACCOUNT_FAILED, account, (0, 0), errors))
        return total

    def _notice_edits(self) -> None:
        """Record edits made outside Perdure, unless that was done recently."""
        began = time.monotonic()
        if began >= self._next_check:
            notice_edits(self._services, seconds=None)
            took = time.monotonic() - began
            self._next_check = began + max(_CHECK_SECONDS, took * _CHECK_SECONDS)

    def _step(self, account: str) -> WorkCounts:
        """Work on the current index; if it is up to date, on the index of a new embedder."""
        current = self._services.indexes.current(account)
        if current.fallback is not None and self._rests(account):
            current = current.fallback
        if self._is_long(current, account):
            return self._indexed(
                current.follower.build_on(account, self._should_continue, lambda _: None)
            )
        with self._resting_after(account):
            done = Worker(self._services.outbox, current.follower).work(account)
        if done.failed or done.dead:
            unfinished = self._services.outbox.list_failed(account)
            errors = {event.uri: event.last_error for _, event in unfinished if event.last_error}
            counts = done.failed, done.dead
            self._report(WorkReport(WorkKind.EVENTS_FAILED, account, counts, errors))
        if done == WorkCounts() and current.is_interim:
            return self._build(account)
        return done

    def _is_long(self, current: "CurrentIndex", account: str) -> bool:
        """Whether an index of words must be built first, and is too large to do at once."""
        follower = current.follower
        words = current.is_interim or self._services.indexes.embedder is None
        return words and not follower.index.cursor(account) and not follower.is_small(account)

    def _indexed(self, update: IndexUpdate | None) -> WorkCounts:
        """Count the places of an update; if work is ending, also those of an unfinished index."""
        if update is None:
            return WorkCounts()
        return (
            WorkCounts(indexed=len(update.places))
            if self._ending.is_set()
            else WorkCounts.of(update)
        )

    def _should_continue(self) -> bool:
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

        configured = self._services.indexes.configured.follower
        answering = partial(self._answering, account)
        with self._resting_after(account):
            update = build_in_background(
                configured, account, answering, self._should_continue, progress
            )
        if update is not None:
            kind = WorkKind.FINISHED if update.position else WorkKind.INTERRUPTED
            self._report_build(kind, account, update.failed)
        return self._indexed(update)

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
        current = self._services.indexes.current(account)
        return Worker(self._services.outbox, current.follower) if current.is_interim else None


def build_in_background(
    configured: IndexFollower,
    account_id: str,
    answering: Callable[[], Worker | None],
    should_continue: ShouldContinue,
    progress: Progress,
) -> IndexUpdate | None:
    """Build the index of a new embedder while another answers; None if another process builds it.

    After each step, the worker of the answering index takes in what was written meanwhile. The
    build stops if `should_continue` returns False.
    """

    def between() -> bool:
        worker = answering()
        if worker is not None:
            with suppress(PerdureError):  # a recall reports it, and the build continues
                worker.work(account_id)
        return should_continue()

    return configured.build_on(account_id, between, progress)
