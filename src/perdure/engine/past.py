"""The index of a moment, made out of one that is near, by what differs between the two."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from time import time
from typing import NamedTuple, TypeVar

from perdure.artifacts import IndexState
from perdure.config import SQLITE
from perdure.context.links import ScannedLinks
from perdure.context.reading import NodeReader
from perdure.context.relations import RelationReader
from perdure.dataclass import dataclass, field, replace
from perdure.engine.indexing.feed import with_folders
from perdure.engine.indexing.follower import IndexFollower
from perdure.engine.indexing.index_files import open_installed, remove_tree
from perdure.engine.indexing.indexer import BATCH, Indexer, batched
from perdure.engine.recall import answer
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import (
    NO_MODEL,
    Hint,
    HintKind,
    RecallResult,
    Sources,
    rebuilt_hint,
)
from perdure.errors import DamageError, PerdureError, StorageError
from perdure.files import Way
from perdure.index.contract import Embedder, KeptIndex
from perdure.index.filters import stamp
from perdure.index.memo import VectorMemo
from perdure.index.stores.sqlite import SqliteIndex
from perdure.model import RequestContext, Uri
from perdure.storage.history import History
from perdure.storage.wrappers.view import View

RETAINED = 4
"""So many moments are kept at hand."""
_MUCH = 8.0
"""To take a place away costs one part in so many of what it costs to make one."""


@dataclass(frozen=True, slots=True)
class NearbyIndex:
    position: int
    is_present: bool = False
    """Then it is made of files, and not of what the log says of them."""


_UNFINISHED = ".unfinished"
_AN_HOUR = 3600


class PastIndexFiles:
    """The indexes of moments in files, beside that of the present."""

    def __init__(
        self, folder: Path, present: Path, quarantine: Way | None = None, provider: str = SQLITE
    ) -> None:
        self._folder = folder
        self._provider = provider
        self._present = present
        self._quarantine = quarantine or Way(folder)

    def open(self, position: int) -> KeptIndex:
        """Open the index of a moment, and throw away those that nobody asked for in a while.

        Of an account that it was not finished for, its cursor is 0.
        """
        folder = self._at(position)
        self._quarantine.free(folder)
        with suppress(OSError):  # then it is read, if it is there
            self._tidy(folder)
        if self._provider != SQLITE:
            return open_installed(self._provider, folder)
        return SqliteIndex(str(folder), self._quarantine)

    def in_memory(self) -> KeptIndex:
        """Return an empty index that lasts as long as the process, for want of a better place."""
        return SqliteIndex.in_memory()

    def _tidy(self, folder: Path) -> None:
        """Make the folder of a moment, and remove what nobody needs any more."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
        every = [path for path in self._folder.iterdir() if path.name.isdigit()]
        others = [path for path in every if path != folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[RETAINED - 1 :]:
            remove_tree(old)
        for left in folder.glob(f"*{_UNFINISHED}"):
            if left.stat().st_mtime < time() - _AN_HOUR:
                remove_tree(left)

    def near(self, account_id: str, position: int) -> list[NearbyIndex]:
        """Return the finished built-in indexes of an account, the nearest to a position first."""
        if self._provider != SQLITE:
            return []
        others = [each for each in self._folder.glob("[0-9]*") if each != self._at(position)]
        found = [
            NearbyIndex(int(folder.name))
            for folder in others
            if folder.name == str(_cursor(folder, account_id))
        ]
        if now := _cursor(self._present, account_id):
            found.append(NearbyIndex(now, is_present=True))
        return sorted(found, key=lambda origin: abs(origin.position - position))

    @contextmanager
    def duplicated(
        self, account_id: str, origin: NearbyIndex, position: int
    ) -> Iterator[SqliteIndex]:
        """Give a duplicate of an index, which may be further by now.

        If its user ends well, it becomes the index of the moment, unless somebody else has made
        one meanwhile. If not, or if the power goes before, there is nothing of it.
        """
        source = self._present if origin.is_present else self._at(origin.position)
        work = self._at(position) / f"{os.urandom(8).hex()}{_UNFINISHED}"
        try:
            with SqliteIndex(str(source)) as index:
                made = index.duplicate(account_id, str(work))
            with made:
                yield made
                is_finished = made.cursor(account_id) == position
            if is_finished:
                SqliteIndex(str(self._at(position))).adopt(account_id, made)
        finally:
            remove_tree(work)

    def _at(self, position: int) -> Path:
        return self._folder / str(position)


def _cursor(folder: Path, account_id: str) -> int:
    """Return how far the index in a folder is; 0 also if it can't be read."""
    try:
        with SqliteIndex(str(folder)) as index:
            return index.cursor(account_id)
    except PerdureError:
        return 0


class _UnlikeError(Exception):
    """Too much differs, or nobody can tell what does."""


class Copying:
    def __init__(self, history: History, moments: PastIndexFiles, indexer: Indexer) -> None:
        self._history = history
        self._moments = moments
        self._indexer = indexer

    def make(self, account_id: str, position: int) -> None:
        """Make the index of a moment, if there is one to begin with of which most is right.

        What goes wrong here does not matter: it can be made without, too.
        """
        for origin in self._moments.near(account_id, position):
            with suppress(PerdureError, OSError, _UnlikeError):
                self._mend(account_id, origin, position)
                return

    def _mend(self, account_id: str, origin: NearbyIndex, position: int) -> None:
        """Make it out of this one; leave it if that is not worth it, or nobody can tell how."""
        with self._moments.duplicated(account_id, origin, position) as index:
            cursor = index.cursor(account_id)
            following = IndexFollower(self._history, index, self._indexer)
            places = self._differing(following, account_id, origin, (cursor, position))
            unlogged = index.unlogged(account_id)
            if places is None or unlogged is None:
                raise _UnlikeError
            nodes = [place for place in places if place.is_node]
            if len(nodes) > _MUCH * (index.places(account_id) - len(nodes)):
                raise _UnlikeError
            gone = following.log.absent(nodes, position)
            also = self._folders(index.folders(account_id)) if origin.is_present else ()
            every = dict.fromkeys((*places, *with_folders(map(Uri.parse, unlogged)), *also))
            following.update(account_id, list(every), (cursor, position), gone=gone)

    def _differing(
        self,
        following: IndexFollower,
        account_id: str,
        origin: NearbyIndex,
        positions: tuple[int, int],
    ) -> list[Uri] | None:
        """Return the places that may differ between two positions; None if nobody can tell.

        What is hidden in the past is there in a file. And who read files may have read later ones
        than the cursor says.
        """
        first, last = sorted(positions)
        now = self._history.position()
        catalogue = self._history.store.catalogue
        if origin.is_present:
            hidden = catalogue.hides_since(0, now)
            return None if hidden else following.log.changed(account_id, first)
        hidden = catalogue.hides_since(first, last)
        return None if hidden else following.log.changed(account_id, first, last)

    def _folders(self, held: Mapping[str, str]) -> Iterator[Uri]:
        """Yield the folders of which the past tells otherwise than an index of files does.

        To what a folder is said to hold belongs what is no node, and in no log.
        """
        for batch in batched(map(Uri.parse, held), BATCH):
            for uri, records in self._indexer.batch(batch).records.items():
                if stamp(records) != held[uri]:
                    yield Uri.parse(uri)


Answer = TypeVar("Answer")

_EPOCH = datetime.fromtimestamp(0, UTC)
When = IndexState | int | datetime | date | str
"""A state, a position of the log, or a time; a text is a position, a date or a time."""


@dataclass(frozen=True, slots=True)
class PastStates:
    """The memory as it was, for the last few moments that somebody asked about.

    Vectors come from the memo, so no text is embedded that was before. What was found out about a
    moment stays right: the past does not change.
    """

    history: History
    files: PastIndexFiles
    memo: VectorMemo | None = None
    embedder: Embedder | None = None
    why_words: Hint | None = NO_MODEL
    quarantined: Callable[[], Sequence[Hint]] = tuple
    _open: "OrderedDict[int, PastState]" = field(default_factory=OrderedDict)

    def state(self, when: When) -> IndexState:
        return state_of(self.history, when)

    def at(self, when: When) -> "PastState":
        state = self.state(when)
        past = self._open.pop(state.position, None) or self._opened(state)
        self._open[state.position] = past
        while len(self._open) > RETAINED:
            self._open.popitem(last=False)[1].close()
        return past

    def forget(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _opened(self, state: IndexState) -> "PastState":
        indexer = Indexer(NodeReader(View(self.history, state)), self.memo)
        copying = Copying(self.history, self.files, indexer)
        kept = self._answering(state, indexer, self.files.open(state.position))

        def unkept() -> _Answering:
            return self._answering(state, indexer, self.files.in_memory())

        return PastState(state, kept, unkept, copying, self.quarantined)

    def _answering(self, state: IndexState, indexer: Indexer, index: KeptIndex) -> "_Answering":
        time = self.history.store.catalogue.commit_at(state.position)[1]
        # a commit is timed in whole milliseconds: whatever it says of "now" is no later than this
        moment = _EPOCH + timedelta(milliseconds=time, microseconds=999)
        why = self.why_words
        sources = Sources(indexer.reader, index, self.embedder, why, lambda: moment)
        return _Answering(sources, IndexFollower(self.history, index, indexer), moment)


class _Answering(NamedTuple):
    sources: Sources
    following: IndexFollower
    time: datetime


class PastState:
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
        self._stored = kept
        self._in_memory = cache(unkept)
        self._why_unstored: dict[str, Hint] = {}
        """By account: why it is not kept."""
        self._copying = copying
        self._quarantined = quarantined

    @property
    def index(self) -> KeptIndex:
        return self._stored.following.index

    def close(self) -> None:
        self.index.close()
        if self._in_memory.cache_info().currsize:
            self._in_memory().following.index.close()

    def recall(self, question: Question, request: RequestContext) -> RecallResult:
        """Answer as of then; an index that turns out to be damaged is made anew."""
        account = request.account_id
        try:
            self._make(account)
            result = answer.recall(self._answering(account).sources, question, request)
        except DamageError as error:
            self._make_anew(account)
            result = answer.recall(self._answering(account).sources, question, request)
            result = replace(result, hints=(*result.hints, rebuilt_hint(error)))
        hints = (*result.hints, self._why_unstored.get(account), *self._quarantined())
        return replace(result, hints=tuple(filter(None, hints)))

    def ask(
        self, account_id: str, question: Callable[[NodeReader, KeptIndex, datetime], Answer]
    ) -> Answer:
        """Ask the texts and the index of an account as of then, and the time that it was."""

        def answer() -> Answer:
            index = self._answering(account_id).following.index
            return question(self.reader, index, self._stored.time)

        try:
            self._make(account_id)
            return answer()
        except DamageError:
            self._make_anew(account_id)
            return answer()

    def _make(self, account_id: str) -> None:
        if account_id not in self._why_unstored:
            try:
                self._finish(account_id)
            except StorageError as error:
                self._do_without(account_id, error)

    def _make_anew(self, account_id: str) -> None:
        try:
            self.index.delete_account_data(account_id)
            self._stored.following.build(account_id, position=self.state.position)
        except (StorageError, OSError) as error:
            self._do_without(account_id, error)

    def _answering(self, account_id: str) -> _Answering:
        return self._in_memory() if account_id in self._why_unstored else self._stored

    def _finish(self, account_id: str) -> None:
        """Make the index of an account, unless it is there: from one that is near, or wholly."""
        if self.index.cursor(account_id):
            return
        position, following = self.state.position, self._stored.following
        if following.log.is_empty(account_id, position):
            if position:
                self.index.replace(account_id, {}, cursor=position, expect=0)
            return
        self._copying.make(account_id, position)
        if self.index.cursor(account_id) == 0:
            following.build(account_id, position=position)

    def _do_without(self, account_id: str, error: Exception) -> None:
        """Make the index of an account where it lasts no longer than this moment is at hand."""
        self._in_memory().following.build(account_id, position=self.state.position)
        text = f"the index of that moment could not be kept: {error}"
        self._why_unstored[account_id] = Hint(HintKind.NOT_STORED, text)


def state_of(history: History, when: When) -> IndexState:
    """Return the state that a moment means: of the last commit at or before it."""
    if isinstance(when, str) and when.isascii() and when.isdecimal():
        when = int(when)
    if isinstance(when, int) and not isinstance(when, bool):
        when = IndexState(0, when)
    if isinstance(when, IndexState):
        return history.store.whole(when)
    return history.store.whole(history.state_at(when))  # type: ignore[arg-type] # a bool is refused
