"""Recall as of a moment: the index that the past would have had, made when somebody asks."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple

from perdure.artifacts import IndexState
from perdure.context.backlinks import ScannedLinks
from perdure.context.reading import NodeReader
from perdure.context.relations import RelationReader
from perdure.engine.copying import Copying, Moments
from perdure.engine.indexing import Following, Indexer
from perdure.engine.recall.config import RetrievalConfig
from perdure.engine.recall.recalling import NO_MODEL, Question, Recaller, Sources
from perdure.engine.recall.result import Hint, HintKind, RecallResult, rebuilt
from perdure.errors import DamageError, InvalidValueError, StorageError
from perdure.index.contract import Embedder, KeptIndex
from perdure.index.memo import VectorMemo
from perdure.model import RequestContext
from perdure.storage.history import History
from perdure.storage.wrappers.view import View

KEPT = 4
"""So many moments are kept at hand."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_OF_A_SECOND = timedelta(milliseconds=999)
When = IndexState | int | datetime | date | str
"""A state, a position of the log, or a time; a text is a position, a date or a time."""


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
        why_words: Hint | None = NO_MODEL,
        config: RetrievalConfig | None = None,
        quarantined: Callable[[], Sequence[Hint]] = tuple,
    ) -> None:
        self._history = history
        self._moments = moments
        self._memo = memo
        self._embedder = embedder
        self._why_words = why_words
        self._config = config
        self._quarantined = quarantined
        self._kept: OrderedDict[int, Past] = OrderedDict()

    def state(self, when: When) -> IndexState:
        return state_of(self._history, when)

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
        indexer = Indexer(NodeReader(View(self._history, state)), self._memo)
        copying = Copying(self._history, self._moments, indexer)
        kept = self._answering(state, indexer, self._moments.open(state.position))

        def unkept() -> _Answering:
            return self._answering(state, indexer, self._moments.unkept())

        return Past(state, kept, unkept, copying, self._quarantined)

    def _answering(self, state: IndexState, indexer: Indexer, index: KeptIndex) -> "_Answering":
        reader = indexer.reader
        relations = RelationReader(reader, ScannedLinks(reader))
        sources = Sources(reader, relations, index, self._embedder, self._why_words)
        time = self._history.store.catalogue.commit_at(state.position)[1]
        # a commit is timed in whole milliseconds: whatever it says of "now" is no later than this
        moment = _EPOCH + timedelta(milliseconds=time, microseconds=999)
        recaller = Recaller(sources, config=self._config, clock=lambda: moment)
        return _Answering(recaller, Following(self._history, index, indexer))


class _Answering(NamedTuple):
    """An index of a moment, and who searches it."""

    recaller: Recaller
    following: Following


class Past:
    """One moment. If its index can't be kept, it is made in memory, and answers all the same."""

    def __init__(
        self,
        state: IndexState,
        kept: _Answering,
        unkept: Callable[[], _Answering],
        copying: Copying,
        quarantined: Callable[[], Sequence[Hint]],
    ) -> None:
        self.state = state
        self.reader = kept.following.indexer.reader
        self.relations = RelationReader(self.reader, ScannedLinks(self.reader))
        self._kept = kept
        self._unkept = cache(unkept)
        self._why_unkept: dict[str, Hint] = {}
        """By account: why it is not kept."""
        self._copying = copying
        self._quarantined = quarantined

    @property
    def index(self) -> KeptIndex:
        return self._kept.following.index

    def close(self) -> None:
        self.index.close()

    def recall(self, question: Question, request: RequestContext) -> RecallResult:
        """Answer as of then; an index that turns out to be damaged is made anew."""
        account = request.account_id
        try:
            result = self._made(account).recall(question, request)
        except DamageError as error:
            result = self._made_anew(account).recall(question, request)
            result = replace(result, hints=(*result.hints, rebuilt(error)))
        hints = (*result.hints, self._why_unkept.get(account), *self._quarantined())
        return replace(result, hints=tuple(filter(None, hints)))

    def _made(self, account_id: str) -> Recaller:
        """Return who answers, when the index of an account is made."""
        if account_id not in self._why_unkept:
            try:
                self._finish(account_id)
            except StorageError as error:
                self._do_without(account_id, error)
        return self._recaller(account_id)

    def _made_anew(self, account_id: str) -> Recaller:
        try:
            self.index.delete_account_data(account_id)
            self._kept.following.build(account_id, position=self.state.position)
        except (StorageError, OSError) as error:
            self._do_without(account_id, error)
        return self._recaller(account_id)

    def _recaller(self, account_id: str) -> Recaller:
        return (self._unkept() if account_id in self._why_unkept else self._kept).recaller

    def _finish(self, account_id: str) -> None:
        """Make the index of an account, unless it is there: from one that is near, or wholly."""
        if self.index.cursor(account_id) == 0:
            self._copying.make(account_id, self.state.position)
        if self.index.cursor(account_id) == 0:
            self._kept.following.build(account_id, position=self.state.position)

    def _do_without(self, account_id: str, error: Exception) -> None:
        """Make the index of an account where it lasts no longer than this moment is at hand."""
        self._unkept().following.build(account_id, position=self.state.position)
        text = f"the index of that moment could not be kept: {error}"
        self._why_unkept[account_id] = Hint(HintKind.NOT_KEPT, text)


def state_of(history: History, when: When) -> IndexState:
    """Return the state that a moment means: of the last commit at or before it.

    Times are shown to the second, so a text without a fraction means all of its second.
    """
    if isinstance(when, str):
        when = _parsed(when)
    if isinstance(when, int) and not isinstance(when, bool):
        when = IndexState(0, when)
    if isinstance(when, IndexState):
        return history.store.whole(when)
    if not isinstance(when, date):  # a datetime is a date too
        raise InvalidValueError(
            f"{str(when)[:80]!a} is not a moment. Fix: give a time, a date or a position."
        )
    return history.store.whole(history.state_at(when))


def _parsed(text: str) -> int | date:
    """Return the position, the date or the time that a text is."""
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidValueError(
            f"{text[:80]!a} is not a moment. Fix: write a date as 2026-03-02, a time as "
            "2026-03-02T10:00:00Z, or a position."
        ) from error
    return time if time.microsecond else time + _LAST_OF_A_SECOND
