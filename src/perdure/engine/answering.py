"""Answers about now: of an index that was brought up to date, citing what history can prove."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perdure.artifacts import CID
from perdure.context.contract import OutboxStore
from perdure.context.files import FILES
from perdure.context.nodes import Nodes
from perdure.engine.indexing import Following
from perdure.engine.made import made_anew
from perdure.engine.past import Pasts
from perdure.engine.recall.recalling import Question, Recaller
from perdure.engine.recall.result import Hit, RecallResult
from perdure.engine.worker import Worker
from perdure.errors import DamageError, EmbeddingError, StorageError
from perdure.index.contract import Filters
from perdure.model import RequestContext, Uri
from perdure.model.record import ACCOUNT
from perdure.storage import Locator
from perdure.storage.history import History
from perdure.storage.wrappers.recorded import Recorded

if TYPE_CHECKING:
    from perdure.engine.erasing.erasing import Erasing
    from perdure.engine.saving.learning import Learning

_ROUNDS = 3
"""So often a question is asked again because somebody edits what would answer it."""


@dataclass(frozen=True, slots=True)
class Present:
    """What answers about now: an index that follows the log, and who searches it."""

    following: Following
    recaller: Recaller
    note: Callable[[], str] = lambda: ""
    """Says why it is this one, if another would have been better."""
    meanwhile: bool = False
    """Whether it answers only until the one that is wanted is made."""
    otherwise: "Present | None" = None
    """Who answers if this one is not made yet, and can't be now."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made of."""

    nodes: Nodes
    outbox: OutboxStore
    history: History
    present: Callable[[str], Present]
    """Returns who answers about an account now."""
    pasts: Callable[[str], Pasts]
    """Returns who answers about an account as it was."""
    close: Callable[[], None]
    notice: Callable[[Iterable[Locator]], Sequence[object]]
    """Lets what others wrote at some places enter history; returns what that was."""
    learning: "Callable[[RequestContext], Learning]"
    """Returns who learns from a session, on behalf of somebody."""
    erasing: "Callable[[], Erasing]"
    """Returns who erases."""
    recorded: Recorded
    """The texts, with their history."""


class Answering:
    """Answers questions about now, whatever can't be written.

    What others edited by hand enters history before it is cited.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def recall(self, question: Question, ctx: RequestContext) -> RecallResult:
        """Return the answer; an index that turns out to be damaged is made anew first."""
        try:
            return self._answer(question, ctx)
        except DamageError as error:
            self.make_anew(ctx.account_id)
            result = self._answer(question, ctx)
            return replace(result, notes=(*result.notes, made_anew(error)))

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        """Return the URIs of what has one of these words, as the index of now has it."""
        account = str(filters[ACCOUNT])
        try:
            return self._parts.present(account).following.index.match(words, filters, top_k)
        except DamageError:
            self.make_anew(account)
            return self._parts.present(account).following.index.match(words, filters, top_k)

    def make_anew(self, account: str) -> None:
        """Throw the index of an account away, and build it from what it is derived from."""
        present = self._parts.present(account)
        present.following.index.delete_account_data(account)
        if not present.meanwhile:
            present.following.build(account)

    def _answer(self, question: Question, ctx: RequestContext) -> RecallResult:
        """Bring the index up to date, ask it, and say how far it is behind all the same."""
        present, behind, notes = self._caught_up(ctx.account_id)
        result = present.recaller.recall(question, ctx)
        try:
            for _ in range(_ROUNDS):
                if not self._take_in(result, present, ctx.account_id):
                    break
                result = present.recaller.recall(question, ctx)
        except StorageError as error:
            notes.append(f"an edit by hand could not be recorded: {error}")
        return replace(
            result,
            index_lag=result.index_lag + behind + self._failed(ctx),
            notes=(*result.notes, *filter(None, (present.note(), *notes))),
        )

    def _caught_up(self, account: str) -> tuple[Present, int, list[str]]:
        """Return who answers, how far they are behind, and why; the model may be out of order."""
        present = self._parts.present(account)
        try:
            return present, *self._catch_up(present, account)
        except EmbeddingError as error:
            if present.otherwise is None:
                raise
            behind, notes = self._catch_up(present.otherwise, account)
            return present.otherwise, behind, [*notes, f"new vectors can't be made: {error}"]

    def _catch_up(self, present: Present, account: str) -> tuple[int, list[str]]:
        """Bring the index up to date; return how many places it is behind, and why it can't be."""
        try:
            Worker(self._parts.outbox, present.following).work(account)
        except StorageError as error:  # then it answers as it is
            behind = len(present.following.behind(account))
            return behind, [f"the index could not be brought up to date: {error}"]
        return 0, []

    def _failed(self, ctx: RequestContext) -> int:
        """Return how many events failed; others were just caught up with, whoever has them."""
        unfinished = self._parts.outbox.list_unfinished(ctx.account_id)
        return sum(
            bool(event.retry_count) and ctx.reaches(event.owner_space) for _, event in unfinished
        )

    # ------------------------------------------------------------ edits by hand
    def _take_in(self, result: RecallResult, present: Present, account: str) -> bool:
        """Let edits that nobody told of enter history and the index; say if there were any."""
        edited = result.stale | self._unrecorded(result.hits)
        file = self._parts.nodes.file
        files = [file(Uri.parse(uri), name) for uri in sorted(edited) for name in FILES]
        noticed = self._parts.notice(files) if files else ()
        if not noticed and not result.stale:
            return False
        Worker(self._parts.outbox, present.following).look_at(account, map(Uri.parse, result.stale))
        return True

    def _unrecorded(self, hits: Sequence[Hit]) -> set[str]:
        """Return the nodes whose content, as it is cited, no version has."""
        known = self._parts.history.store.has_many([CID.parse(hit.cid) for hit in hits])
        return {hit.uri for hit, is_known in zip(hits, known, strict=True) if not is_known}
