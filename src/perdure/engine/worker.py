"""Takes events out of the outbox and brings the index up to date."""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.context.contract import OutboxStore
from perdure.context.outbox.events import fail
from perdure.engine.building import Caught, folders_of
from perdure.engine.indexing import Following
from perdure.errors import (
    BrokenNodeError,
    EmbeddingError,
    InvalidValueError,
    LeaseError,
    NodeNotFoundError,
    PerdureError,
)
from perdure.model import OutboxEvent, RequestContext, Role, Uri

BATCH = 500
"""How many events are taken at once; their texts are embedded together."""

Leased = list[tuple[str, OutboxEvent]]
Unfinished = Sequence[tuple[str, OutboxEvent]]


@dataclass(frozen=True, slots=True)
class Round:
    """What a worker did."""

    done: int = 0
    failed: int = 0
    """To be tried again later."""
    dead: int = 0
    """Failed too often; an operator decides."""
    indexed: int = 0
    """Places whose records were made, in an index that is finished."""

    @classmethod
    def of(cls, caught: Caught) -> "Round":
        """Count what was indexed, unless the index is as unfinished as before.

        While the log is empty no index is ever finished, so files that lie there would be looked at
        without an end.
        """
        return cls(indexed=len(caught.places) if caught.position else 0)

    @property
    def events(self) -> int:
        return self.done + self.failed + self.dead

    def __add__(self, other: "Round") -> "Round":
        return Round(
            self.done + other.done,
            self.failed + other.failed,
            self.dead + other.dead,
            self.indexed + other.indexed,
        )


class Worker:
    """Works on the events of an account, with others who do the same.

    The log tells where to look; an event that failed before, where to look again. Records are made
    of what the nodes say when they are worked on, so it does not matter in which order events come,
    nor how often.
    """

    def __init__(
        self,
        outbox: OutboxStore,
        following: Following,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        worker_id: str = "",
    ) -> None:
        self._outbox = outbox
        self._following = following
        self._clock = clock
        self.id = worker_id or f"{os.getpid()}-{secrets.token_hex(6)}"

    def drain(self, account_id: str) -> Round:
        """Work until nothing waits any more that could be worked on now."""
        total = last = self._work_through(account_id)
        while last.events:  # what was only indexed leaves nothing to be worked on
            last = self._work_through(account_id)
            total += last
        return total

    def _work_through(self, account_id: str) -> Round:
        """Work on all that waits now, one batch after another: a long queue is listed once."""
        pending = self._outbox.list_pending(account_id)
        total = self._work(account_id, pending[:BATCH])
        for begin in range(BATCH, len(pending), BATCH):
            total += self._work(account_id, pending[begin : begin + BATCH])
        return total

    def work(self, account_id: str) -> Round:
        """Work on one batch of events, and on what the log has beyond them."""
        return self._work(account_id, self._outbox.list_pending(account_id)[:BATCH])

    def _work(self, account_id: str, pending: Leased) -> Round:
        leased = [(uri, e) for uri, e in pending if self._outbox.try_acquire(e, uri, self.id)]
        try:
            return self._outcome(account_id, leased)
        except BaseException:
            self._release(leased)  # what is done or failed is let go of with that
            raise

    def _outcome(self, account_id: str, leased: Leased) -> Round:
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

    def help(self, account_id: str, unfinished: Unfinished) -> None:
        """Index what another worker has leased and not finished.

        A commit is in the log before its files are written. A worker that read the log in between
        has moved the index past that commit, without what the files say.
        """
        leased = [event for _, event in unfinished if not event.retry_count]
        places = dict.fromkeys(place for event in leased for place in _places(event))
        if places:
            self.look_at(account_id, places)

    def look_at(self, account_id: str, places: Iterable[Uri]) -> None:
        """Index places that somebody asks for, besides what the log tells of."""
        caught = self._following.catch_up(account_id, also=places)
        self._remember(account_id, caught, set())

    def _remember(self, account_id: str, caught: Caught, known: set[str]) -> None:
        """See to it that what failed is tried again, also if nobody registered it."""
        failed = caught.failed.keys() - known
        if not failed:
            return
        failed -= {event.uri for _, event in self._outbox.list_unfinished(account_id)}
        somebody = RequestContext(account_id, "worker", role=Role.ADMIN)
        for uri in sorted(failed):
            with suppress(
                BrokenNodeError, InvalidValueError, NodeNotFoundError
            ):  # that is repair's
                stored = self._following.indexer.reader.active(Uri.parse(uri))
                event = self._outbox.register_write(stored.node, somebody)
                if self._outbox.try_acquire(event, uri, self.id):
                    self._fail([(uri, event)], str(caught.failed[uri]))
                    self._outbox.release(event, uri, worker_id=self.id)

    def _caught_up(self, account_id: str, leased: Leased) -> Caught:
        """Index what the log tells of; then the events that are none of it, such as failed ones."""
        caught = self._following.catch_up(account_id)
        rest = dict.fromkeys(place for _, event in leased for place in _places(event))
        rest = {place: None for place in rest if place not in caught.places}
        if not rest:
            return caught
        more = self._following.catch_up(account_id, also=rest)
        return Caught(more.position, caught.places | more.places, {**caught.failed, **more.failed})

    def _settle(self, leased: Leased, caught: Caught) -> Round:
        outcome = Round.of(caught)
        for uri, event in leased:
            error = caught.failed.get(event.uri)
            if error is not None:
                outcome += self._fail([(uri, event)], str(error))
            else:
                with suppress(LeaseError):  # then another one does the same once more
                    self._outbox.mark_done(event, uri, worker_id=self.id)
                    outcome += Round(done=1)
        return outcome

    def _fail(self, leased: Leased, error: str) -> Round:
        outcome = Round()
        for uri, event in leased:
            with suppress(LeaseError):
                dead = fail(self._outbox, event, uri, error, self._clock(), self.id)
                outcome += Round(dead=1) if dead else Round(failed=1)
        return outcome

    def _release(self, leased: Leased) -> None:
        """Let go of what is still ours, whatever happened."""
        for uri, event in leased:
            self._outbox.release(event, uri, worker_id=self.id)


def _places(event: OutboxEvent) -> Iterator[Uri]:
    """Yield the places whose records an event makes wrong: a node's, and the folders above."""
    for uri in (event.uri, event.payload.get("from_uri")):
        if isinstance(uri, str):
            place = Uri.parse(uri)
            yield place
            yield from folders_of(place)
