"""Answers about now: of an index that was brought up to date, citing what history can prove."""

from collections.abc import Sequence
from datetime import datetime

from perdure.artifacts import CID
from perdure.context.files import FILES
from perdure.dataclass import dataclass, replace
from perdure.engine.edits import notice_edits, unrecorded_hint
from perdure.engine.indexing.index_worker import Unfinished, Worker
from perdure.engine.indexing.indexes import CurrentIndex
from perdure.engine.recall import answer
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import Hint, HintKind, Hit, RecallResult, rebuilt_hint
from perdure.engine.services import Services
from perdure.errors import DamageError, EmbeddingError, StorageError
from perdure.index.contract import Filters
from perdure.model import EventStatus, RequestContext, Uri
from perdure.model.record import ACCOUNT

_ROUNDS = 3
"""So often a question is asked again because somebody edits what would answer it."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The changes that failed to get into the index."""

    retrying: int
    next_retry: datetime | None
    dead: int
    """Those that failed too often, and wait for their owner."""


def lag_of(unfinished: Unfinished, caller: RequestContext) -> Lag:
    failed = [e for _, e in unfinished if e.retry_count and caller.reaches(e.owner_space)]
    retrying = [event for event in failed if event.status is not EventStatus.DEAD]
    times = [event.next_retry_at for event in retrying if event.next_retry_at is not None]
    return Lag(len(retrying), min(times, default=None), len(failed) - len(retrying))


class Answering:
    """Answers questions about now, whatever can't be written.

    What others edited by hand enters history before it is cited.
    """

    def __init__(self, parts: Services) -> None:
        self._parts = parts

    def recall(self, question: Question, ctx: RequestContext) -> RecallResult:
        """Return the answer; an index that turns out to be damaged is made anew first."""
        try:
            return self._answer(question, ctx)
        except DamageError as error:
            self.make_anew(ctx.account_id)
            result = self._answer(question, ctx)
            return replace(result, hints=(*result.hints, rebuilt_hint(error)))

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        """Return the URIs of what has one of these words, as the index of now has it."""
        account = str(filters[ACCOUNT])
        try:
            return self._parts.current_index(account).follower.index.match(words, filters, top_k)
        except DamageError:
            self.make_anew(account)
            return self._parts.current_index(account).follower.index.match(words, filters, top_k)

    def make_anew(self, account: str) -> None:
        """Throw the index of an account away, and build it from what it is derived from."""
        present = self._parts.current_index(account)
        present.follower.index.delete_account_data(account)
        if not present.is_interim:
            present.follower.build(account)

    def _answer(self, question: Question, ctx: RequestContext) -> RecallResult:
        """Record edits, bring the index up to date, ask it, and say how far it is behind."""
        # The first look at a store may take as long as its first index, which is waited for too.
        parts = self._parts
        noticed = notice_edits(
            parts, seconds=parts.check_seconds, first_waits=not parts.checks_in_background
        )
        present, behind, hints, failed = self._caught_up(ctx.account_id)
        result = answer.recall(present.sources, question, ctx)
        try:
            for _ in range(_ROUNDS):
                if not self._take_in(result, present, ctx.account_id):
                    break
                failed = parts.outbox.list_failed(ctx.account_id)
                result = answer.recall(present.sources, question, ctx)
        except StorageError as error:
            hints.append(unrecorded_hint(error))
        lag = lag_of(failed, ctx)
        return replace(
            result,
            index_lag=max(result.index_lag, noticed.left) + behind + lag.retrying + lag.dead,
            hints=tuple(dict.fromkeys((*result.hints, *present.hints(), *hints, *noticed.hints))),
        )

    def _caught_up(self, account: str) -> tuple[CurrentIndex, int, list[Hint], Unfinished]:
        """Return who answers, how far they are behind and why, and what failed."""
        present = self._parts.current_index(account)
        try:
            return present, *self._catch_up(present, account)
        except EmbeddingError as error:
            if present.fallback is None:
                raise
            behind, hints, failed = self._catch_up(present.fallback, account)
            outage = Hint(HintKind.MODEL_FAILED, f"new vectors can't be made: {error}")
            return present.fallback, behind, [*hints, outage], failed

    def _catch_up(self, present: CurrentIndex, account: str) -> tuple[int, list[Hint], Unfinished]:
        """Bring the index up to date; return how many places it is behind, why, and what failed."""
        worker = Worker(self._parts.outbox, present.follower)
        try:
            worker.work(account)
        except StorageError as error:  # then it answers as it is
            behind = len(present.follower.behind(account))
            text = f"the index could not be brought up to date: {error}"
            return behind, [Hint(HintKind.INDEX_BEHIND, text)], self._failed(worker, account)
        return 0, [], self._failed(worker, account)

    def _failed(self, worker: Worker, account: str) -> Unfinished:
        return self._parts.outbox.list_failed(account) if worker.has_events else ()

    # ------------------------------------------------------------ edits by hand
    def _take_in(self, result: RecallResult, present: CurrentIndex, account: str) -> bool:
        """Let edits that nobody told of enter history and the index; say if there were any."""
        edited = result.stale | self._unrecorded(result.hits)
        file = self._parts.reader.file
        files = [file(Uri.parse(uri), name) for uri in sorted(edited) for name in FILES]
        noticed = self._parts.recorded.notice(files) if files else ()
        if not noticed and not result.stale:
            return False
        Worker(self._parts.outbox, present.follower).index_places(
            account, map(Uri.parse, result.stale)
        )
        return True

    def _unrecorded(self, hits: Sequence[Hit]) -> set[str]:
        known = self._parts.recorded.history.store.has_many([CID.parse(hit.cid) for hit in hits])
        return {hit.uri for hit, is_known in zip(hits, known, strict=True) if not is_known}
