"""Keep the indexes of all accounts up to date, and build those of new embedders."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from threading import Event
from typing import TYPE_CHECKING

from perdure.engine.building import Caught, GoesOn, Progress
from perdure.engine.indexing import Following
from perdure.engine.upkeep import accounts_of
from perdure.engine.worker import Round, Worker
from perdure.errors import EmbeddingError, PerdureError
from perdure.model import Uri

if TYPE_CHECKING:
    from perdure.engine.parts import Parts, Present
    from perdure.model import RequestContext

_PAUSE_SECONDS = 1.0
_REPORT_SECONDS = 5.0
"""How often the progress of a build is reported."""
_OUTAGE_SECONDS = 60.0
"""How long a model that failed is not used."""


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
    """What happened in an account."""

    kind: WorkKind
    account: str
    counts: tuple[int, int]
    errors: Mapping[str, str]
    """What failed, by the URI of a node or of the account."""


Report = Callable[[WorkReport], None]


@dataclass(frozen=True, slots=True)
class Worked:
    """What was done for all accounts."""

    round: Round
    failed: frozenset[str]
    """Accounts that could not be worked on."""


def work(
    parts: "Parts", caller: "RequestContext", ending: Event, report: Report | None, *, once: bool
) -> Worked:
    """Work until nothing waits, or on and on; in either case until `ending` is set."""
    caller.demand_governing("work for all accounts")
    loop = _Loop(parts, ending, report or (lambda _: None))
    total = loop.work()
    while not once and not ending.wait(_PAUSE_SECONDS):
        total += loop.work()
    return Worked(total, frozenset(loop.failed))


class _Loop:
    def __init__(self, parts: "Parts", ending: Event, report: Report) -> None:
        self._parts = parts
        self._ending = ending
        self._report = report
        self._resting: dict[str, float] = {}
        """Until when the new index of an account is not built, because its model failed."""
        self.failed: set[str] = set()

    def work(self) -> Round:
        """Work on all that waits, account by account."""
        total = Round()
        for account in accounts_of(self._parts.reader):
            try:
                while not self._ending.is_set() and (done := self._step(account)) != Round():
                    total += done
            except PerdureError as error:  # the other accounts go on
                self.failed.add(account)
                errors = {str(Uri(account)): str(error)}
                self._report(WorkReport(WorkKind.ACCOUNT_FAILED, account, (0, 0), errors))
        return total

    def _step(self, account: str) -> Round:
        """Work on what was written; if nothing is left, on the index of a new embedder."""
        present = self._parts.present(account)
        if present.otherwise is not None and self._rests(account):
            present = present.otherwise
        if self._is_long(present, account):
            return self._indexed(present.following.build_on(account, self._goes_on, lambda _: None))
        with self._resting_after(account):
            done = Worker(self._parts.outbox, present.following).work(account)
        if done.failed or done.dead:
            unfinished = self._parts.outbox.list_unfinished(account)
            errors = {event.uri: event.last_error for _, event in unfinished if event.last_error}
            counts = done.failed, done.dead
            self._report(WorkReport(WorkKind.EVENTS_FAILED, account, counts, errors))
        if done == Round() and present.meanwhile:
            return self._build(account)
        return done

    def _is_long(self, present: "Present", account: str) -> bool:
        """Whether words are to be indexed first, and for so long that it may be interrupted."""
        following = present.following
        words = present.meanwhile or self._parts.indexes.embedder is None
        return words and not following.index.cursor(account) and not following.is_little(account)

    def _indexed(self, caught: Caught | None) -> Round:
        """Count what was indexed, also in an index that is not finished."""
        if caught is None:
            return Round()
        return Round(indexed=len(caught.places)) if self._ending.is_set() else Round.of(caught)

    def _goes_on(self) -> bool:
        return not self._ending.is_set()

    def _build(self, account: str) -> Round:
        if self._rests(account):
            return Round()
        reported = time.monotonic()

        def progress(_: int) -> None:
            nonlocal reported
            if time.monotonic() >= reported + _REPORT_SECONDS:
                self._report_build(WorkKind.EMBEDDING, account, {})
                reported = time.monotonic()

        wanted = self._parts.indexes.upkeep.following
        background = Background(wanted, lambda: self._answering(account))
        with self._resting_after(account):
            caught = background.go_on(account, self._goes_on, progress)
        if caught is not None:
            kind = WorkKind.FINISHED if caught.position else WorkKind.INTERRUPTED
            self._report_build(kind, account, caught.failed)
        return self._indexed(caught)

    def _report_build(
        self, kind: WorkKind, account: str, failed: Mapping[str, PerdureError]
    ) -> None:
        errors = {uri: str(error) for uri, error in failed.items()}
        self._report(WorkReport(kind, account, self._parts.indexes.progress(account), errors))

    def _rests(self, account: str) -> bool:
        return time.monotonic() < self._resting.get(account, 0.0)

    @contextmanager
    def _resting_after(self, account: str) -> Iterator[None]:
        """Leave a model that fails alone for a while."""
        try:
            yield
        except EmbeddingError:
            self._resting[account] = time.monotonic() + _OUTAGE_SECONDS
            raise

    def _answering(self, account: str) -> Worker | None:
        """Return the worker for the index that answers until the new one is built."""
        present = self._parts.present(account)
        return Worker(self._parts.outbox, present.following) if present.meanwhile else None


class Background:
    """Makes the index that is wanted while another one answers, and keeps that one up to date."""

    def __init__(self, wanted: Following, answering: Callable[[], Worker | None]) -> None:
        self._wanted = wanted
        self._answering = answering
        """Returns who works for the index that answers meanwhile, if there is one."""

    def go_on(self, account_id: str, goes_on: GoesOn, progress: Progress) -> Caught | None:
        """Go on until the index is finished or we are told to stop; None if others make it.

        What was written meanwhile is worked on after each step.
        """

        def between() -> bool:
            worker = self._answering()
            if worker is not None:
                with suppress(PerdureError):  # who asks it is told; this one is made all the same
                    worker.work(account_id)
            return goes_on()

        return self._wanted.build_on(account_id, between, progress)
