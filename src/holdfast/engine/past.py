"""Recall as of a moment: the index that the past would have had, made when somebody asks."""

from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, date, datetime

from holdfast.artifacts import IndexState
from holdfast.context.backlinks import ScannedLinks
from holdfast.context.reading import NodeReader
from holdfast.context.relations import RelationReader
from holdfast.engine.copying import Copying, Moments
from holdfast.engine.indexing import Following, Indexer
from holdfast.engine.made import made_anew
from holdfast.engine.recall.config import RetrievalConfig
from holdfast.engine.recall.recalling import NO_MODEL, Question, Recaller, Sources
from holdfast.engine.recall.result import RecallResult
from holdfast.errors import DamageError, InvalidValueError
from holdfast.index.contract import Embedder, KeptIndex
from holdfast.index.memo import VectorMemo
from holdfast.model import RequestContext
from holdfast.storage.history import History
from holdfast.storage.wrappers.view import View

KEPT = 4
"""So many moments are kept at hand."""

When = IndexState | datetime | date | str


class Pasts:
    """The memory as it was, for the last few moments that somebody asked about.

    Vectors come from the memo, so no text is embedded that was before. What was found out about a
    moment stays right: the past does not change.
    """

    def __init__(  # noqa: PLR0913 - what a past is made with, each by its name
        self,
        history: History,
        moments: Moments,
        *,
        memo: VectorMemo | None = None,
        embedder: Embedder | None = None,
        why_words: str = NO_MODEL,
        config: RetrievalConfig | None = None,
    ) -> None:
        self._history = history
        self._moments = moments
        self._memo = memo
        self._embedder = embedder
        self._why_words = why_words
        self._config = config
        self._kept: OrderedDict[int, Past] = OrderedDict()

    def state(self, when: When) -> IndexState:
        """Return the state that a moment means: of the last commit at or before it."""
        if isinstance(when, IndexState):
            return self._history.store.whole(when)
        if not isinstance(when, date | str):  # a datetime is a date too
            raise InvalidValueError(
                f"{str(when)[:80]!a} is no moment. Fix: give a time, a date or an IndexState."
            )
        try:
            return self._history.state_at(when)
        except ValueError as error:
            raise InvalidValueError(
                f"{str(when)[:80]!a} is no moment. "
                "Fix: write it as 2026-03-02 or 2026-03-02T10:00:00Z."
            ) from error

    def at(self, when: When) -> "Past":
        state = self.state(when)
        past = self._kept.pop(state.position, None) or self._made(state)
        self._kept[state.position] = past
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].close()
        return past

    def forget(self) -> None:
        """Let go of all moments."""
        while self._kept:
            self._kept.popitem()[1].close()

    def _made(self, state: IndexState) -> "Past":
        reader = NodeReader(View(self._history, state))
        index = self._moments.open(state.position)
        indexer = Indexer(reader, self._memo)
        relations = RelationReader(reader, ScannedLinks(reader))
        sources = Sources(reader, relations, index, self._embedder, self._why_words)
        time = self._history.store.catalogue.commit_at(state.position)[1]
        moment = datetime.fromtimestamp(time / 1000, UTC)
        recaller = Recaller(sources, config=self._config, clock=lambda: moment)
        following = Following(self._history, index, indexer)
        return Past(state, recaller, following, Copying(self._history, self._moments, indexer))


class Past:
    """One moment."""

    def __init__(
        self, state: IndexState, recaller: Recaller, following: Following, copying: Copying
    ) -> None:
        self.state = state
        self.reader = following.indexer.reader
        self._recaller = recaller
        self._following = following
        self._copying = copying

    @property
    def index(self) -> KeptIndex:
        return self._following.index

    def close(self) -> None:
        self.index.close()

    def recall(self, question: Question, request: RequestContext) -> RecallResult:
        """Answer as of then; an index that turns out to be damaged is made anew."""
        account = request.account_id
        try:
            self._finish(account)
            return self._recaller.recall(question, request)
        except DamageError as error:
            self._following.index.delete_account_data(account)
            self._following.build(account, position=self.state.position)
            result = self._recaller.recall(question, request)
            return replace(result, notes=(*result.notes, made_anew(error)))

    def _finish(self, account_id: str) -> None:
        """Make the index of an account, unless it is there: from one that is near, or wholly."""
        index, position = self._following.index, self.state.position
        if index.cursor(account_id) == 0:
            self._copying.make(account_id, position)
        if index.cursor(account_id) == 0:
            self._following.build(account_id, position=position)
