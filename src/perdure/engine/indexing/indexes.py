"""The indexes of one memory: one for each embedder that it has had, and those of the past."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.config import SQLITE, Config, EmbeddingSettings
from perdure.context.contract import TenantData
from perdure.context.links import ScannedLinks
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.indexing.follower import INLINE_LIMIT, BuildLock, IndexFollower
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
from perdure.engine.indexing.indexer import Indexer
from perdure.engine.recall.result import (
    NO_MODEL,
    Hint,
    HintKind,
    Sources,
    quarantine_hints,
    rebuilt_hint,
)
from perdure.engine.summaries import Summaries
from perdure.errors import DamageError, EmbeddingError, PerdureError
from perdure.files import Way
from perdure.index.account.failures import EventTable
from perdure.index.account.schema import LEXICAL
from perdure.index.contract import Embedder
from perdure.index.memo import MemoData, VectorMemo, embedder_id
from perdure.model.uri import Uri, name_of
from perdure.sqlite import discard
from perdure.storage.wrappers.recorded import Recorded

if TYPE_CHECKING:
    from perdure.engine.past import PastStates
    from perdure.engine.upkeep import ListedIndex, Upkeep

_NOT_YET = Hint(HintKind.VECTORS_PENDING, "only words were compared")


@dataclass(frozen=True, slots=True)
class CurrentIndex:
    """What answers about now: an index that follows the log, and who searches it."""

    follower: IndexFollower
    sources: Sources
    hints: Callable[[], Sequence[Hint]] = tuple
    """Returns why it is this one, if another would have been better."""
    is_interim: bool = False
    """Whether it answers only until the one that is wanted is made."""
    fallback: "CurrentIndex | None" = None
    """Who answers if this one is not made yet, and can't be now."""


class Embedders(NamedTuple):
    """The embedder that is wanted, and those that indexes were once made with."""

    configured: Callable[[], Embedder | None]
    settings: Callable[[], EmbeddingSettings | None]
    """Returns what reopens the wanted one, without its key; None for one that a program gave."""
    reopen: Callable[[EmbeddingSettings], Embedder]
    """Returns an earlier one; an error says why it can't be had."""


class Indexes:
    """Chooses who answers, and keeps what is derived in its place."""

    def __init__(
        self, recorded: Recorded, folder: Path, config: Config, embedders: Embedders
    ) -> None:
        self._history = recorded.history
        self._reader = NodeReader(recorded)
        self._folder = folder
        self._config = config
        self._embedders = embedders
        self.quarantine = Way(folder)
        self._indexes = IndexFolder(folder / "index", self.quarantine)
        self._current: dict[str, CurrentIndex] = {}
        self._sources: dict[str, tuple[VectorMemo | None, Sources]] = {}
        self._past_states: dict[str, PastStates] = {}
        self._memos: list[VectorMemo] = []

    def close(self) -> None:
        self._forget_past()
        for memo in self._memos:
            memo.close()
        self._indexes.close()

    def _forget_past(self) -> None:
        for pasts in self._past_states.values():
            pasts.forget()

    # ------------------------------------------------------------ who answers
    @cached_property
    def embedder(self) -> Embedder | None:
        return self._embedders.configured()

    @cached_property
    def memo(self) -> VectorMemo | None:
        if self.embedder is None:
            return None
        memo = VectorMemo(self.memo_folder, self.embedder, self.quarantine)
        self._memos.append(memo)
        return memo

    @property
    def memo_folder(self) -> Path:
        return self._folder / "vectors"

    @cached_property
    def name(self) -> str:
        """The name of the embedder's index; another when the same nodes give other records."""
        return index_name(self.embedder, self._config.index)

    @property
    def _lexical_name(self) -> str:
        return index_name(None, self._config.index)

    def current(self, account_id: str) -> CurrentIndex:
        """Return who answers about an account now.

        That is the index of the embedder, unless it would take long to make: until somebody has
        made it, that of an earlier embedder has to do, or words.
        """
        wanted = self._configured
        index = wanted.follower.index
        try:
            if self.embedder is None or index.cursor(account_id):
                return wanted
        except DamageError as error:  # it is derived, and made anew from what it was derived from
            index.delete_account_data(account_id)
            hint = rebuilt_hint(error)
            return replace(wanted, hints=lambda: [hint])
        meanwhile = self._interim_index(account_id)
        if self._has_many(account_id, meanwhile) or not wanted.follower.is_small(account_id):
            return meanwhile
        return replace(wanted, fallback=meanwhile)

    def _has_many(self, account_id: str, present: CurrentIndex) -> bool:
        """Whether an index has many places of an account: then nobody need walk through them."""
        with suppress(DamageError):
            name = self._indexes.name_of(present.follower.index)
            return self._indexes.open(name).places(account_id) > INLINE_LIMIT
        return False

    def _interim_index(self, account_id: str) -> CurrentIndex:
        """Return the newest that is finished and can still be followed; else who compares words."""
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
        """Return the indexes of earlier embedders that were finished, the newest first."""
        others = {*self._indexes.names()} - {self.name, self._lexical_name}
        suffix, found = suffix_of(self._config.index), []
        for name in others:
            with suppress(DamageError):  # what is damaged answers nothing
                if name.endswith(suffix) and self._indexes.open(name).cursor(account_id):
                    found.append((last_used(self._indexes.folder / name), name))
        return [name for _, name in sorted(found, reverse=True)]

    def _interim(
        self, account_id: str, name: str, present: CurrentIndex, why: str = ""
    ) -> CurrentIndex:
        """Let somebody who answers meanwhile say so."""

        def hints() -> list[Hint]:
            pending = Hint(HintKind.VECTORS_PENDING, self._how_far(account_id, name, why))
            return [pending, *self._quarantined()]

        return replace(present, hints=hints, is_interim=True)

    def _how_far(self, account_id: str, name: str, why: str) -> str:
        made, places = self._progress(account_id, name)
        done = f"{made:,} of {places:,} places are embedded"
        fix = "Fix: run `perdure worker` or `perdure index rebuild`, which goes on"
        new = _display_name(self.name)
        if name != self._lexical_name:
            old = _display_name(name)
            return f"the vectors of {old} answer while those of {new} are made: {done}. {fix}"
        passed = f"; earlier vectors can't answer meanwhile: {why}" if why else ""
        return f"the vectors of {new} are not made yet: {done}{passed}. {fix}"

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises: by the index that answers, or without one if it has no model."""
        try:
            following = self.current(place.account).follower
        except PerdureError:
            return ScannedLinks(self._reader).leading_to(place, called)
        return following.leading_to(place, called)

    def events(self, account_id: str) -> EventTable:
        """Return the table of what failed to get into the index that answers."""
        return self._indexes.open(self._indexes.name_of(self.current(account_id).follower.index))

    def progress(self, account_id: str) -> tuple[int, int]:
        answering = self.current(account_id).follower.index
        return self._progress(account_id, self._indexes.name_of(answering))

    def _progress(self, account_id: str, answering: str) -> tuple[int, int]:
        places = self._indexes.open(answering).places(account_id)
        with suppress(DamageError):
            return min(self._indexes.open(self.name).places(account_id), places), places
        return 0, places

    @property
    def _configured(self) -> CurrentIndex:
        if self.name not in self._current:
            why = None if self._config.embedding.provider == "none" else NO_MODEL
            index = self._indexes.open(self.name)
            sources = Sources(self._reader, index, self.embedder, why)
            self._current[self.name] = self._current_index(sources, self.memo, self._build_lock)
            if (self._indexes.folder / self.name).is_dir():
                self._store_settings()
            else:  # links had a database of their own before they were in the index
                with suppress(OSError):
                    discard(self._folder / "links.sqlite")
        return self._current[self.name]

    @property
    def _lexical(self) -> CurrentIndex:
        name = self._lexical_name
        if name not in self._current:
            index = self._indexes.open(name)
            sources = Sources(self._reader, index, why_words=_NOT_YET)
            self._current[name] = self._current_index(sources, None, index.making)
        return self._current[name]

    def _earlier(self, name: str) -> CurrentIndex:
        if name not in self._current:
            embedder = self._embedders.reopen(stored_settings(self._indexes.folder / name))
            if index_name(embedder, self._config.index) != name:
                raise EmbeddingError("their model is another by now. Fix: make new vectors.")
            index = self._indexes.open(name)
            memo = VectorMemo(self.memo_folder, embedder, self.quarantine)
            self._memos.append(memo)
            sources = Sources(self._reader, index, embedder)
            self._current[name] = self._current_index(sources, memo, index.making)
        return self._current[name]

    @contextmanager
    def _build_lock(self, account_id: str, *, wait: bool) -> Iterator[bool]:
        """Keep beside an index what it is made with, before it is made."""
        self._store_settings()
        with self._indexes.open(self.name).making(account_id, wait=wait) as ours:
            yield ours

    def _store_settings(self) -> None:
        settings = self._embedders.settings()
        if self.embedder is not None and settings is not None:
            with suppress(OSError):  # then words answer one day, where this could have
                store_settings(self._indexes.folder / self.name, settings)

    def _current_index(
        self, sources: Sources, memo: VectorMemo | None, alone: BuildLock
    ) -> CurrentIndex:
        self._sources[self._indexes.name_of(sources.index)] = memo, sources
        following = IndexFollower(
            self._history, sources.index, Indexer(self._reader, memo, self.summaries), alone
        )
        return CurrentIndex(following, sources, self._quarantined)

    def _quarantined(self) -> tuple[Hint, ...]:
        return quarantine_hints(self.quarantine.report())

    @cached_property
    def summaries(self) -> Summaries:
        """Return who makes the abstracts of folders, in a tier of their own beside the index."""
        folder = self._folder / "abstracts"
        return Summaries(
            self._reader, AbstractFiles(folder, str(self._config.home), self.quarantine)
        )

    @cached_property
    def upkeep(self) -> "Upkeep":
        from perdure.engine.upkeep import Upkeep

        return Upkeep(self._configured.follower)

    def past_states(self, account_id: str) -> "PastStates":
        """Return who answers about an account as it was: with the embedder that answers now."""
        from perdure.engine.past import PastIndexFiles, PastStates

        index = self.current(account_id).follower.index
        name = self._indexes.name_of(index)
        if name not in self._past_states:
            past = self._folder / "past" / name
            moments = PastIndexFiles(
                past, self._indexes.folder / name, self.quarantine, self._config.index
            )
            memo, sources = self._sources[name]
            self._past_states[name] = PastStates(
                self._history,
                moments,
                memo=memo,
                embedder=sources.embedder,
                why_words=sources.why_words,
                quarantined=self._quarantined,
            )
        return self._past_states[name]

    # ------------------------------------------------------------ files
    def tenant_data(self) -> Mapping[str, TenantData]:
        return {
            "index": IndexTenantData(self._indexes.all),
            "vectors": MemoData(self.memo_folder),
            "abstracts": AbstractTenantData(self._folder / "abstracts", self._reader.reach),
            "past indexes": PastTenantData(self._folder / "past", self._forget_past),
        }

    def count_records(self, account_id: str, uris: Iterable[str]) -> int:
        """Return how many places of these the indexes hold, each counted once for each index."""
        wanted, held = set(uris), 0
        for index in self._indexes.all():
            with suppress(DamageError):
                held += len(wanted & index.stamps(account_id).keys())
        return held

    def scrub(self, account_id: str) -> None:
        """Leave no byte of what nodes no longer say in any index of an account, nor in the past.

        The index that answers is brought up to date; others are thrown away.
        """
        self._forget_past()
        remove_tree(self._folder / "past")
        present = self.current(account_id).follower
        answering = self._indexes.name_of(present.index)
        for name in self._indexes.names():
            index = self._indexes.open(name)
            try:
                if name != answering or not index.cursor(account_id):
                    index.delete_account_data(account_id)
                    continue
                present.catch_up(account_id)
                index.scrub(account_id)
            except (DamageError, EmbeddingError):  # it can be made anew
                index.delete_account_data(account_id)

    def refill(self, account_id: str, owners: Iterable[str]) -> None:
        """Give memos that were removed the vectors of the answering index; none is made twice."""
        from perdure.index.records import embedded

        name = self._indexes.name_of(self.current(account_id).follower.index)
        memo, index = self._sources[name][0], self._indexes.open(name)
        if memo is None:
            return
        for owner in owners:
            kept = {embedded(r): vector for r, vector in index.vectors(account_id, owner)}
            if kept:
                memo.keep(account_id, owner, kept)

    # ------------------------------------------------------------ what there is, and may go
    def listed(self, account_id: str) -> "list[ListedIndex]":
        """Return each index that has something of an account; of a damaged one, its size."""
        from perdure.engine.upkeep import ListedIndex

        answering, found = self.current(account_id).follower.index, []
        for name in self._indexes.names():
            index = self._indexes.open(name)
            if size := index.size(account_id):
                places = position = 0
                with suppress(DamageError):
                    places, position = index.places(account_id), index.cursor(account_id)
                answers = index is answering
                found.append(ListedIndex(name, places, position, size, answers=answers))
        return found

    def prune(self) -> list[tuple[str, int]]:
        """Remove the indexes that answer for nobody any more; return which, and their bytes.

        That of the embedder stays, be it finished or not, and so do all vectors.
        """
        from perdure.engine.indexing.follower import accounts_of

        answering = map(self.current, accounts_of(self._reader))
        used = {self.name, *(self._indexes.name_of(each.follower.index) for each in answering)}
        gone = [name for name in self._indexes.names() if name not in used]
        for name in gone:
            self._current.pop(name, None)
        for past in (self._folder / "past").glob("*"):
            if past.name not in used and past.is_dir():
                remove_folder(past)
        return [(name, self._indexes.remove(name)) for name in gone]


def index_name(embedder: Embedder | None, provider: str = SQLITE) -> str:
    """Return the name of the index of an embedder, or of the one that goes by words alone."""
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}{suffix_of(provider)}"


def _display_name(name: str) -> str:
    """Return the name of an index as people write it: model and digest."""
    stem = name.partition("+")[0].removesuffix(suffix_of(SQLITE))
    said = name_of(stem)
    return said if said is not None and said.isprintable() else stem
