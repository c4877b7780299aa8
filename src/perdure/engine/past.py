"""Past states: recall as of a position of the log, with an index copied from a nearby state."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from time import time
from typing import TypeVar

from perdure.artifacts import IndexState
from perdure.context.links import RelationReader, ScannedLinks
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, field, replace
from perdure.engine.indexing.follower import (
    BATCH,
    IndexFollower,
    LogReader,
    batched,
    with_folders,
)
from perdure.engine.indexing.indexer import Indexer
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
from perdure.files import Quarantine
from perdure.index.contract import Embedder, NodeIndex
from perdure.index.filters import stamp
from perdure.index.sqlite_index import SqliteIndex
from perdure.index.vectors import VectorMemo
from perdure.model import RequestContext, Uri
from perdure.storage.text_history import History, View

RETAINED = 4
"""Keep the indexes of this many past states, open and on disk."""
_REMOVAL_RATIO = 8.0
"""Indexing a place costs this many times as much as removing one."""
_UNFINISHED = ".unfinished"
_AN_HOUR = 3600
_EPOCH = datetime.fromtimestamp(0, UTC)

Answer = TypeVar("Answer")
When = IndexState | int | datetime | date | str
"""A state, a position of the log, or a time; a text is a position, a date or a time."""


def state_of(history: History, when: When) -> IndexState:
    """Return the state of the last commit at or before a position or time."""
    if isinstance(when, str) and when.isascii() and when.isdecimal():
        when = int(when)
    if isinstance(when, int) and not isinstance(when, bool):
        when = IndexState(0, when)
    if isinstance(when, IndexState):
        return history.store.last_commit(when)
    return history.store.last_commit(history.state_at(when))  # type: ignore[arg-type] # refuses a bool


# ---------------------------------------------------------------- files
@dataclass(frozen=True, slots=True)
class NearbyIndex:
    position: int
    is_present: bool = False
    """Whether it was built from files, and not from the log."""


class PastIndexFiles:
    """The indexes of past states in files, beside the index of the present."""

    def __init__(
        self,
        folder: Path,
        present: Path,
        quarantine: Quarantine | None = None,
        open_installed: Callable[[Path], NodeIndex] | None = None,
    ) -> None:
        self._folder = folder
        self._open_installed = open_installed
        """Opens an index of an installed package; None for the built-in one."""
        self._present = present
        self._quarantine = quarantine or Quarantine(folder)

    def open(self, position: int) -> NodeIndex:
        """Open the index of a state, and remove those that were not used recently.

        The cursor is 0 for an account that it was not finished for.
        """
        folder = self._at(position)
        self._quarantine.clear_folder(folder)
        with suppress(OSError):  # an index that is there can still be read
            self._tidy(folder)
        if self._open_installed is not None:
            return self._open_installed(folder)
        return SqliteIndex(str(folder), self._quarantine)

    def _tidy(self, folder: Path) -> None:
        """Create the folder of a state, and remove old indexes and unfinished copies."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
        every = [path for path in self._folder.iterdir() if path.name.isdigit()]
        others = [path for path in every if path != folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[RETAINED - 1 :]:
            rmtree(old, ignore_errors=True)
        for unfinished in folder.glob(f"*{_UNFINISHED}"):
            if unfinished.stat().st_mtime < time() - _AN_HOUR:
                rmtree(unfinished, ignore_errors=True)

    def near(self, account_id: str, position: int) -> list[NearbyIndex]:
        """Return the finished built-in indexes of an account, the nearest to a position first."""
        if self._open_installed is not None:
            return []
        others = [each for each in self._folder.glob("[0-9]*") if each != self._at(position)]
        found = [
            NearbyIndex(int(folder.name))
            for folder in others
            if folder.name == str(_cursor(folder, account_id))
        ]
        if now := _cursor(self._present, account_id):
            found.append(NearbyIndex(now, is_present=True))
        return sorted(found, key=lambda nearby: abs(nearby.position - position))

    @contextmanager
    def duplicated(
        self, account_id: str, nearby: NearbyIndex, position: int
    ) -> Iterator[SqliteIndex]:
        """Yield a duplicate of an index, which may have moved on since `near`.

        If the block leaves it at `position`, it becomes the index of that state, unless another
        process has built one meanwhile. After an error or a power cut nothing of it is left.
        """
        source = self._present if nearby.is_present else self._at(nearby.position)
        work = self._at(position) / f"{os.urandom(8).hex()}{_UNFINISHED}"
        try:
            with SqliteIndex(str(source)) as index:
                duplicate = index.duplicate(account_id, str(work))
            with duplicate:
                yield duplicate
                is_finished = duplicate.cursor(account_id) == position
            if is_finished:
                SqliteIndex(str(self._at(position))).adopt(account_id, duplicate)
        finally:
            rmtree(work, ignore_errors=True)

    def _at(self, position: int) -> Path:
        return self._folder / str(position)


def _cursor(folder: Path, account_id: str) -> int:
    """Return the cursor of the index in a folder; 0 also if it can't be read."""
    try:
        with SqliteIndex(str(folder)) as index:
            return index.cursor(account_id)
    except PerdureError:
        return 0


class _UnlikeError(Exception):
    """Too much differs, or the differences are unknown."""


# ---------------------------------------------------------------- states
@dataclass(frozen=True, slots=True)
class PastStates:
    """The memory at the last few past states that were asked for.

    Vectors come from the memo, so no text is embedded twice.
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
        past = self._open.pop(state.position, None) or PastState(self, state)
        self._open[state.position] = past
        while len(self._open) > RETAINED:
            self._open.popitem(last=False)[1].close()
        return past

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


class PastState:
    """The memory as of one state. If its index can't be stored, it is built in memory."""

    def __init__(self, states: PastStates, state: IndexState) -> None:
        self.state = state
        self._states = states
        self._indexer = Indexer(NodeReader(View(states.history, state)), states.memo)
        self.reader = self._indexer.reader
        self.relations = RelationReader(self.reader, ScannedLinks(self.reader))
        milliseconds = states.history.store.catalogue.commit_at(state.position)[1]
        # A commit's time has whole milliseconds; no time in its texts is later than this one.
        self._time = _EPOCH + timedelta(milliseconds=milliseconds, microseconds=999)
        self._stored = self._follower(states.files.open(state.position))
        self._in_memory: IndexFollower | None = None
        self._why_unstored: dict[str, Hint] = {}
        """By account, why its index is not stored."""

    def _follower(self, index: NodeIndex) -> IndexFollower:
        folders = self._indexer.indexes_folders
        log = LogReader(self._states.history, self.reader, folders=folders)
        return IndexFollower(log, index, lambda: self._indexer)

    @property
    def index(self) -> NodeIndex:
        return self._stored.index

    def close(self) -> None:
        self.index.close()
        if self._in_memory is not None:
            self._in_memory.index.close()

    def recall(self, question: Question, request: RequestContext) -> RecallResult:
        """Answer as of the state; a damaged index is rebuilt."""
        account = request.account_id
        try:
            self._build(account)
            result = answer.recall(self._sources(account), question, request)
        except DamageError as error:
            self._rebuild(account)
            result = answer.recall(self._sources(account), question, request)
            result = replace(result, hints=(*result.hints, rebuilt_hint(error)))
        hints = (*result.hints, self._why_unstored.get(account), *self._states.quarantined())
        return replace(result, hints=tuple(filter(None, hints)))

    def ask(
        self, account_id: str, question: Callable[[NodeReader, NodeIndex, datetime], Answer]
    ) -> Answer:
        """Call `question` with the nodes, the index of an account and the time, as of the state."""

        def ask_index() -> Answer:
            return question(self.reader, self._answering(account_id).index, self._time)

        try:
            self._build(account_id)
            return ask_index()
        except DamageError:
            self._rebuild(account_id)
            return ask_index()

    def _sources(self, account_id: str) -> Sources:
        index, states = self._answering(account_id).index, self._states
        return Sources(self.reader, index, states.embedder, states.why_words, lambda: self._time)

    def _answering(self, account_id: str) -> IndexFollower:
        if account_id not in self._why_unstored or self._in_memory is None:
            return self._stored
        return self._in_memory

    def _build(self, account_id: str) -> None:
        """Build the index of an account, unless it is there: from a nearby one, or from scratch."""
        if account_id in self._why_unstored:
            return
        try:
            self._build_stored(account_id)
        except StorageError as error:
            self._build_in_memory(account_id, error)

    def _build_stored(self, account_id: str) -> None:
        if self.index.cursor(account_id):
            return
        position, follower = self.state.position, self._stored
        if follower.log.is_empty(account_id, position):
            if position:
                self.index.replace(account_id, {}, cursor=position, expect=0)
            return
        self._copy_nearby(account_id)
        if self.index.cursor(account_id) == 0:
            follower.build(account_id, position=position)

    def _copy_nearby(self, account_id: str) -> None:
        """Build the stored index from a nearby one that has most of it.

        Errors are ignored, because the index can be built without a copy.
        """
        for nearby in self._states.files.near(account_id, self.state.position):
            with suppress(PerdureError, OSError, _UnlikeError):
                self._copy(account_id, nearby)
                return

    def _copy(self, account_id: str, nearby: NearbyIndex) -> None:
        position = self.state.position
        with self._states.files.duplicated(account_id, nearby, position) as index:
            cursor, follower = index.cursor(account_id), self._follower(index)
            places = self._differing(follower, account_id, nearby, (cursor, position))
            unlogged = index.unlogged(account_id)
            if places is None or unlogged is None:
                raise _UnlikeError
            nodes = [place for place in places if place.is_node]
            if len(nodes) > _REMOVAL_RATIO * (index.count_uris(account_id) - len(nodes)):
                raise _UnlikeError
            gone = follower.log.absent(nodes, position)
            also = self._folders(index.folder_stamps(account_id)) if nearby.is_present else ()
            every = dict.fromkeys((*places, *with_folders(map(Uri.parse, unlogged)), *also))
            follower.update(account_id, list(every), (cursor, position), gone=gone)

    def _differing(
        self,
        follower: IndexFollower,
        account_id: str,
        nearby: NearbyIndex,
        positions: tuple[int, int],
    ) -> list[Uri] | None:
        """Return the places that may differ between two positions; None if that is unknown.

        Hidden content is still in the file of the present, and an index of files may contain later
        files than its cursor says.
        """
        first, last = sorted(positions)
        history = self._states.history
        now = history.position()
        if nearby.is_present:
            hidden = history.store.catalogue.hides_since(0, now)
            return None if hidden else follower.log.changed(account_id, first)
        hidden = history.store.catalogue.hides_since(first, last)
        return None if hidden else follower.log.changed(account_id, first, last)

    def _folders(self, stamps: Mapping[str, str]) -> Iterator[Uri]:
        """Yield the folders whose past summary differs from the one in an index of files.

        The summary of a folder also lists files that are not nodes, which the log does not have.
        """
        for batch in batched(map(Uri.parse, stamps), BATCH):
            for uri, records in self._indexer.batch(batch).records.items():
                if stamp(records) != stamps[uri]:
                    yield Uri.parse(uri)

    def _rebuild(self, account_id: str) -> None:
        try:
            self.index.delete_account_data(account_id)
            self._stored.build(account_id, position=self.state.position)
        except (StorageError, OSError) as error:
            self._build_in_memory(account_id, error)

    def _build_in_memory(self, account_id: str, error: Exception) -> None:
        if self._in_memory is None:
            self._in_memory = self._follower(SqliteIndex.in_memory())
        self._in_memory.build(account_id, position=self.state.position)
        text = f"the index of that state could not be stored: {error}"
        self._why_unstored[account_id] = Hint(HintKind.NOT_STORED, text)
