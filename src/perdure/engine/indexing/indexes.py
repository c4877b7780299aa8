"""The indexes of one memory: one for each embedder that it has had, and those of past states."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.config import SQLITE, Config, EmbeddingSettings
from perdure.context.links import ScannedLinks
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.indexing.follower import INLINE_LIMIT, BuildLock, IndexFollower, accounts_of
from perdure.engine.indexing.index_files import (
    AbstractFiles,
    AbstractTenantData,
    IndexFolder,
    IndexTenantData,
    PastTenantData,
    last_used,
    remove_folder,
    remove_tree,
    store_settings,
    stored_settings,
    suffix_of,
)
from perdure.engine.indexing.indexer import Indexer, Summaries
from perdure.engine.recall.result import (
    NO_MODEL,
    Hint,
    HintKind,
    Sources,
    quarantine_hints,
    rebuilt_hint,
)
from perdure.errors import DamageError, EmbeddingError, PerdureError
from perdure.files import Quarantine
from perdure.index.contract import Embedder
from perdure.index.sql import LEXICAL, EventTable
from perdure.index.vectors import MemoFolders, VectorMemo, embedder_id
from perdure.model.uri import Uri, name_of
from perdure.sqlite import discard
from perdure.storage.recorded import Recorded

if TYPE_CHECKING:
    from perdure.context.contract import TenantStore
    from perdure.engine.past import PastStates
    from perdure.engine.upkeep import ListedIndex

_NOT_YET = Hint(HintKind.VECTORS_PENDING, "only words were compared")


@dataclass(frozen=True, slots=True)
class CurrentIndex:
    """An index that answers about the present: its follower, and what a recall searches."""

    follower: IndexFollower
    sources: Sources
    memo: VectorMemo | None
    hints: Callable[[], Sequence[Hint]] = tuple
    """Returns why this index answers, if another one should."""
    is_interim: bool = False
    """Whether it answers only until the index of the configured embedder is built."""
    fallback: "CurrentIndex | None" = None
    """The index that answers if this one is not built yet, and can't be now."""


class Embedders(NamedTuple):
    """The configured embedder, and access to those of earlier indexes."""

    configured: Callable[[], Embedder | None]
    settings: Callable[[], EmbeddingSettings | None]
    """Returns the settings of the configured one, without its key; None if a program passed it."""
    reopen: Callable[[EmbeddingSettings], Embedder]
    """Returns an earlier embedder; raises an error if it is not available."""


class Indexes:
    """Chooses the index that answers for an account, and manages the folders of derived data."""

    def __init__(
        self, recorded: Recorded, folder: Path, config: Config, embedders: Embedders
    ) -> None:
        self._history = recorded.history
        self._reader = NodeReader(recorded)
        self._folder = folder
        self._config = config
        self._embedders = embedders
        self.quarantine = Quarantine(folder)
        self._indexes = IndexFolder(folder / "index", self.quarantine)
        self._current: dict[str, CurrentIndex] = {}
        self._past_states: dict[str, PastStates] = {}
        self._memos: list[VectorMemo] = []

    def close(self) -> None:
        self._close_past_states()
        for memo in self._memos:
            memo.close()
        self._indexes.close()

    def _close_past_states(self) -> None:
        for states in self._past_states.values():
            states.close()

    # ------------------------------------------------------------ which index answers
    @cached_property
    def embedder(self) -> Embedder | None:
        return self._embedders.configured()

    @cached_property
    def memo(self) -> VectorMemo | None:
        return None if self.embedder is None else self._memo_of(self.embedder)

    @property
    def memo_folder(self) -> Path:
        return self._folder / "vectors"

    def _memo_of(self, embedder: Embedder) -> VectorMemo:
        memo = VectorMemo(self.memo_folder, embedder, self.quarantine)
        self._memos.append(memo)
        return memo

    @cached_property
    def name(self) -> str:
        """The name of the index; it changes with the embedder and with how records are built."""
        return index_name(self.embedder, self._config.index)

    @property
    def _lexical_name(self) -> str:
        return index_name(None, self._config.index)

    def current(self, account_id: str) -> CurrentIndex:
        """Return the index that answers about an account now.

        It is the index of the configured embedder. While that one is not built and would take
        long, it is the index of an earlier embedder, or one of words only.
        """
        configured = self.configured
        index = configured.follower.index
        try:
            if self.embedder is None or index.cursor(account_id):
                return configured
        except DamageError as error:  # it is derived, so it is deleted and built again
            index.delete_account_data(account_id)
            hint = rebuilt_hint(error)
            return replace(configured, hints=lambda: [hint])
        interim = self._interim_index(account_id)
        if self._has_many(account_id, interim) or not configured.follower.is_small(account_id):
            return interim
        return replace(configured, fallback=interim)

    def _has_many(self, account_id: str, current: CurrentIndex) -> bool:
        """Whether an index has many places of an account, so that they need not be counted."""
        with suppress(DamageError):
            name = self._indexes.name_of(current.follower.index)
            return self._indexes.open(name).count_uris(account_id) > INLINE_LIMIT
        return False

    def _interim_index(self, account_id: str) -> CurrentIndex:
        """Return the newest finished index that can still catch up; else that of words only."""
        why = ""
        for name in self._finished(account_id):
            try:
                earlier = self._earlier(name)
                behind = len(earlier.follower.behind(account_id))
                if behind <= INLINE_LIMIT:
                    return self._interim(account_id, name, earlier)
                why = why or f"they are {behind:,} places behind"
            except PerdureError as error:
                why = why or str(error).partition(". Fix: ")[0]
        return self._interim(account_id, self._lexical_name, self._lexical, why)

    def _finished(self, account_id: str) -> list[str]:
        """Return the finished indexes of earlier embedders, the newest first."""
        others = {*self._indexes.names()} - {self.name, self._lexical_name}
        suffix, found = suffix_of(self._config.index), []
        for name in others:
            with suppress(DamageError):  # a damaged index can't answer
                if name.endswith(suffix) and self._indexes.open(name).cursor(account_id):
                    found.append((last_used(self._indexes.folder / name), name))
        return [name for _, name in sorted(found, reverse=True)]

    def _interim(
        self, account_id: str, name: str, current: CurrentIndex, why: str = ""
    ) -> CurrentIndex:
        def hints() -> list[Hint]:
            text = self._pending_text(account_id, name, why)
            return [Hint(HintKind.VECTORS_PENDING, text), *self._quarantined()]

        return replace(current, hints=hints, is_interim=True)

    def _pending_text(self, account_id: str, name: str, why: str) -> str:
        embedded, places = self._progress(account_id, name)
        done = f"{embedded:,} of {places:,} places are embedded"
        fix = "Fix: run `perdure worker` or `perdure index rebuild`, which continues"
        new = _display_name(self.name)
        if name != self._lexical_name:
            old = _display_name(name)
            return f"the vectors of {old} answer while those of {new} are computed: {done}. {fix}"
        passed = f"; earlier vectors can't answer meanwhile: {why}" if why else ""
        return f"the vectors of {new} are not computed yet: {done}{passed}. {fix}"

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises: by the current index, or by a scan if there is none."""
        try:
            follower = self.current(place.account).follower
        except PerdureError:
            return ScannedLinks(self._reader).leading_to(place, called)
        return follower.leading_to(place, called)

    def events(self, account_id: str) -> EventTable:
        """Return the table of the events that the current index failed to take in."""
        return self._indexes.open(self._indexes.name_of(self.current(account_id).follower.index))

    def progress(self, account_id: str) -> tuple[int, int]:
        """Return how many places the configured embedder's index has, and all places."""
        answering = self.current(account_id).follower.index
        return self._progress(account_id, self._indexes.name_of(answering))

    def _progress(self, account_id: str, answering: str) -> tuple[int, int]:
        places = self._indexes.open(answering).count_uris(account_id)
        with suppress(DamageError):
            return min(self._indexes.open(self.name).count_uris(account_id), places), places
        return 0, places

    # ------------------------------------------------------------ opening
    @property
    def configured(self) -> CurrentIndex:
        """The index of the configured embedder, built or not."""
        if self.name not in self._current:
            why = None if self._config.embedding.provider == "none" else NO_MODEL
            index = self._indexes.open(self.name)
            sources = Sources(self._reader, index, self.embedder, why)
            self._open(self.name, sources, self.memo, self._build_lock)
            if (self._indexes.folder / self.name).is_dir():
                self._store_settings()
            else:  # an earlier version had links in a database of their own
                with suppress(OSError):
                    discard(self._folder / "links.sqlite")
        return self._current[self.name]

    @property
    def _lexical(self) -> CurrentIndex:
        name = self._lexical_name
        if name not in self._current:
            index = self._indexes.open(name)
            sources = Sources(self._reader, index, why_words=_NOT_YET)
            self._open(name, sources, None, index.build_lock)
        return self._current[name]

    def _earlier(self, name: str) -> CurrentIndex:
        if name not in self._current:
            embedder = self._embedders.reopen(stored_settings(self._indexes.folder / name))
            if index_name(embedder, self._config.index) != name:
                raise EmbeddingError("their model has changed. Fix: compute new vectors.")
            index, memo = self._indexes.open(name), self._memo_of(embedder)
            self._open(name, Sources(self._reader, index, embedder), memo, index.build_lock)
        return self._current[name]

    def _open(
        self, name: str, sources: Sources, memo: VectorMemo | None, build_lock: BuildLock
    ) -> None:
        indexer = Indexer(self._reader, memo, self.summaries)
        follower = IndexFollower(self._history, sources.index, indexer, build_lock)
        self._current[name] = CurrentIndex(follower, sources, memo, self._quarantined)

    @contextmanager
    def _build_lock(self, account_id: str, *, wait: bool) -> Iterator[bool]:
        """Store the settings of the embedder beside its index before that is built."""
        self._store_settings()
        with self._indexes.open(self.name).build_lock(account_id, wait=wait) as is_ours:
            yield is_ours

    def _store_settings(self) -> None:
        settings = self._embedders.settings()
        if self.embedder is not None and settings is not None:
            with suppress(OSError):  # after a change of model, this index can't answer meanwhile
                store_settings(self._indexes.folder / self.name, settings)

    def _quarantined(self) -> tuple[Hint, ...]:
        return quarantine_hints(self.quarantine.report())

    @cached_property
    def summaries(self) -> Summaries:
        """The abstracts of folders, in a tier of their own beside the index."""
        folder = self._folder / "abstracts"
        files = AbstractFiles(folder, str(self._config.home), self.quarantine)
        return Summaries(self._reader, files)

    def past_states(self, account_id: str) -> "PastStates":
        """Return the past states of an account, searched with the embedder that answers now."""
        from perdure.engine.past import PastIndexFiles, PastStates

        current = self.current(account_id)
        name = self._indexes.name_of(current.follower.index)
        if name not in self._past_states:
            past, present = self._folder / "past" / name, self._indexes.folder / name
            files = PastIndexFiles(past, present, self.quarantine, self._config.index)
            self._past_states[name] = PastStates(
                self._history,
                files,
                memo=current.memo,
                embedder=current.sources.embedder,
                why_words=current.sources.why_words,
                quarantined=self._quarantined,
            )
        return self._past_states[name]

    # ------------------------------------------------------------ erasing
    def tenant_data(self) -> Mapping[str, "TenantStore"]:
        return {
            "index": IndexTenantData(self._indexes.all),
            "vectors": MemoFolders(self.memo_folder),
            "abstracts": AbstractTenantData(self._folder / "abstracts", self._reader.reach),
            "past indexes": PastTenantData(self._folder / "past", self._close_past_states),
        }

    def count_records(self, account_id: str, uris: Iterable[str]) -> int:
        """Return how many of these places the indexes have, counted once for each index."""
        places, count = set(uris), 0
        for index in self._indexes.all():
            with suppress(DamageError):
                count += len(places & index.stamps(account_id).keys())
        return count

    def scrub(self, account_id: str) -> None:
        """Leave no byte of removed content in any index of an account, present or past.

        The index that answers is brought up to date; the others are deleted.
        """
        self._close_past_states()
        remove_tree(self._folder / "past")
        follower = self.current(account_id).follower
        answering = self._indexes.name_of(follower.index)
        for name in self._indexes.names():
            index = self._indexes.open(name)
            try:
                if name != answering or not index.cursor(account_id):
                    index.delete_account_data(account_id)
                    continue
                follower.catch_up(account_id)
                index.scrub(account_id)
            except (DamageError, EmbeddingError):  # it can be built again
                index.delete_account_data(account_id)

    def refill(self, account_id: str, owners: Iterable[str]) -> None:
        """Copy the vectors of the current index into its memo, from which they were removed."""
        from perdure.index.records import embedding_text

        current = self.current(account_id)
        index = self._indexes.open(self._indexes.name_of(current.follower.index))
        if current.memo is None:
            return
        for owner in owners:
            vectors = {embedding_text(r): vector for r, vector in index.vectors(account_id, owner)}
            if vectors:
                current.memo.store(account_id, owner, vectors)

    # ------------------------------------------------------------ upkeep
    def listed(self, account_id: str) -> "list[ListedIndex]":
        """Return each index that has data of an account; of a damaged one, its size only."""
        from perdure.engine.upkeep import ListedIndex

        answering, found = self.current(account_id).follower.index, []
        for name in self._indexes.names():
            index = self._indexes.open(name)
            if size := index.size(account_id):
                places = position = 0
                with suppress(DamageError):
                    places, position = index.count_uris(account_id), index.cursor(account_id)
                answers = index is answering
                found.append(ListedIndex(name, places, position, size, answers=answers))
        return found

    def prune(self) -> list[tuple[str, int]]:
        """Remove the indexes that answer for no account; return their names and bytes.

        The index of the configured embedder stays, finished or not, and so do all vectors.
        """
        answering = map(self.current, accounts_of(self._reader))
        used = {self.name, *(self._indexes.name_of(each.follower.index) for each in answering)}
        unused = [name for name in self._indexes.names() if name not in used]
        for name in unused:
            self._current.pop(name, None)
        for past in (self._folder / "past").glob("*"):
            if past.name not in used and past.is_dir():
                remove_folder(past)
        return [(name, self._indexes.remove(name)) for name in unused]


def index_name(embedder: Embedder | None, provider: str = SQLITE) -> str:
    """Return the name of the index of an embedder; without one, of the index of words."""
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}{suffix_of(provider)}"


def _display_name(name: str) -> str:
    """Return the name of an index for people: its model and digest."""
    stem = name.partition("+")[0].removesuffix(suffix_of(SQLITE))
    display = name_of(stem)
    return display if display is not None and display.isprintable() else stem
