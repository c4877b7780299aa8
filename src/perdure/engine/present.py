"""Recall about the present: updates the index first, and cites only what history can prove."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.artifacts import CID
from perdure.context.node_files import FILES
from perdure.dataclass import dataclass, replace
from perdure.engine.edits import notice_edits, unrecorded_hint
from perdure.engine.recall import answer
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import Hint, HintKind, Hit, RecallResult, rebuilt_hint
from perdure.errors import DamageError, EmbeddingError, StorageError
from perdure.index.contract import Filters
from perdure.model import EventStatus, RequestContext, Uri
from perdure.model.node import ACCOUNT

if TYPE_CHECKING:
    from perdure.engine.indexing.follower import IndexFollower
    from perdure.engine.indexing.index_worker import Unfinished, Worker
    from perdure.engine.indexing.indexes import CurrentIndex
    from perdure.engine.services import Services

_MAX_ROUNDS = 3
"""Ask again at most this often because the nodes of hits are being edited."""

WorkerFor = Callable[["IndexFollower"], "Worker"]
"""Returns a worker for an index. Most recalls need none, because the index is up to date."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The changes that the index failed to take in."""

    retrying: int
    next_retry: datetime | None
    dead: int
    """Changes that failed too often and are not retried."""


def lag_of(unfinished: "Unfinished", caller: RequestContext) -> Lag:
    failed = [e for _, e in unfinished if e.retry_count and caller.reaches(e.owner_space)]
    retrying = [event for event in failed if event.status is not EventStatus.DEAD]
    times = [event.next_retry_at for event in retrying if event.next_retry_at is not None]
    return Lag(len(retrying), min(times, default=None), len(failed) - len(retrying))


def recall_now(
    services: "Services", question: Question, ctx: RequestContext, worker_for: WorkerFor
) -> RecallResult:
    """Return the answer about the present, even where nothing can be written.

    Edits made outside Perdure enter history before they are cited. A damaged index is rebuilt.
    """
    try:
        return _answer(services, question, ctx, worker_for)
    except DamageError as error:
        rebuild_index(services, ctx.account_id)
        result = _answer(services, question, ctx, worker_for)
        return replace(result, hints=(*result.hints, rebuilt_hint(error)))


def match_words(
    services: "Services", words: Sequence[str], filters: Filters, top_k: int
) -> dict[str, float]:
    """Return the score of each URI whose records have one of these words in the current index."""
    account = str(filters[ACCOUNT])
    try:
        return services.indexes.current(account).follower.index.match(words, filters, top_k)
    except DamageError:
        rebuild_index(services, account)
        return services.indexes.current(account).follower.index.match(words, filters, top_k)


def rebuild_index(services: "Services", account: str) -> None:
    """Delete the current index of an account, and build it again unless a worker does."""
    current = services.indexes.current(account)
    current.follower.index.delete_account_data(account)
    if not current.is_interim:
        current.follower.build(account)


def _answer(
    services: "Services", question: Question, ctx: RequestContext, worker_for: WorkerFor
) -> RecallResult:
    """Record edits, update the index, search it, and report how far it is behind."""
    # The first check of a store may take as long as its first index, which is waited for too.
    noticed = notice_edits(
        services, seconds=services.check_seconds, first_waits=not services.checks_in_background
    )
    current, behind, hints, failed = _updated_index(services, ctx.account_id, worker_for)
    result = answer.recall(current.sources, question, ctx)
    try:
        for _ in range(_MAX_ROUNDS):
            if not _record_edits(services, result):
                break
            places = map(Uri.parse, result.stale)
            worker_for(current.follower).index_places(ctx.account_id, places)
            failed = services.outbox.list_failed(ctx.account_id)
            result = answer.recall(current.sources, question, ctx)
    except StorageError as error:
        hints.append(unrecorded_hint(error))
    lag = lag_of(failed, ctx)
    return replace(
        result,
        index_lag=max(result.index_lag, noticed.left) + behind + lag.retrying + lag.dead,
        hints=tuple(dict.fromkeys((*result.hints, *current.hints(), *hints, *noticed.hints))),
    )


def _updated_index(
    services: "Services", account: str, worker_for: WorkerFor
) -> "tuple[CurrentIndex, int, list[Hint], Unfinished]":
    """Return the index that answers, how many places it is behind, why, and the failed events."""
    current = services.indexes.current(account)
    try:
        return current, *_catch_up(services, current, account, worker_for)
    except EmbeddingError as error:
        if current.fallback is None:
            raise
        behind, hints, failed = _catch_up(services, current.fallback, account, worker_for)
        outage = Hint(HintKind.MODEL_FAILED, f"new vectors can't be computed: {error}")
        return current.fallback, behind, [*hints, outage], failed


def _catch_up(
    services: "Services", current: "CurrentIndex", account: str, worker_for: WorkerFor
) -> "tuple[int, list[Hint], Unfinished]":
    """Update an index; return how many places it is behind, why, and the failed events."""
    worker, behind, hints = None, 0, list[Hint]()
    try:
        if current.follower.is_idle(account):
            return 0, [], ()
        worker = worker_for(current.follower)
        worker.work(account)
    except StorageError as error:  # the index answers as it is
        behind = len(current.follower.behind(account))
        text = f"the index could not be brought up to date: {error}"
        hints = [Hint(HintKind.INDEX_BEHIND, text)]
    has_events = worker is None or worker.has_events
    return behind, hints, services.outbox.list_failed(account) if has_events else ()


def _record_edits(services: "Services", result: RecallResult) -> bool:
    """Record edits of the nodes of a result; return whether it has to be asked again."""
    edited = result.stale | _unrecorded(services, result.hits)
    file = services.reader.file
    files = [file(Uri.parse(uri), name) for uri in sorted(edited) for name in FILES]
    noticed = services.recorded.notice(files) if files else ()
    return bool(noticed or result.stale)


def _unrecorded(services: "Services", hits: Sequence[Hit]) -> set[str]:
    known = services.recorded.history.store.has_many([CID.parse(hit.cid) for hit in hits])
    return {hit.uri for hit, is_known in zip(hits, known, strict=True) if not is_known}
