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
from perdure.engine.indexing.follower import FEW, Alone, Following, Indexer
from perdure.engine.indexing.index_files import (
    Abstracts,
    AbstractsData,
    EveryIndex,
    PastData,
    Shelf,
    keep_settings,
    kept_settings,
    last_used,
    remove_tree,
    removed,
    suffix_of,
)
from perdure.engine.recall.result import NO_MODEL, Hint, HintKind, Sources, quarantined, rebuilt
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
    from perdure.engine.past import Pasts
    from perdure.engine.upkeep import ListedIndex, Upkeep

_NOT_YET = Hint(HintKind.VECTORS_PENDING, "only words were compared")


@dataclass(frozen=True, slots=True)
class Present:
    """What answers about now: an index that follows the log, and who searches it."""

    following: Following
    sources: Sources
    hints: Callable[[], Sequence[Hint]] = tuple
    """Returns why it is this one, if another would have been better."""
    meanwhile: bool = False
    """Whether it answers only until the one that is wanted is made."""
    otherwise: "Present | None" = None
    """Who answers if this one is not made yet, and can't be now."""


class Embedders(NamedTuple):
    """The embedder that is wanted, and those that indexes were once made with."""

    wanted: Callable[[], Embedder | None]
    settings: Callable[[], EmbeddingSettings | None]
    """Returns what reopens the wanted one, without its key; None for one that a program gave."""
    reopened: Callable[[EmbeddingSettings], Embedder]
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
        self.way = Way(folder)
        self._shelf = Shelf(folder / "index", self.way)
        self._presents: dict[str, Present] = {}
        self._sources: dict[str, tuple[VectorMemo | None, Sources]] = {}
        self._pasts: dict[str, Pasts] = {}
        self._memos: list[VectorMemo] = []

    def close(self) -> None:
        self._forget_past()
        for memo in self._memos:
            memo.close()
        self._shelf.close()

    def _forget_past(self) -> None:
        for pasts in self._pasts.values():
            pasts.forget()

    # ------------------------------------------------------------ who answers
    @cached_property
    def embedder(self) -> Embedder | None:
        return self._embedders.wanted()

    @cached_property
    def memo(self) -> VectorMemo | None:
        if self.embedder is None:
            return None
        memo = VectorMemo(self.memo_folder, self.embedder, self.way)
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

    def present(self, account_id: str) -> Present:
        """Return who answers about an account now.

        That is the index of the embedder, unless it would take long to make: until somebody has
        made it, that of an earlier embedder has to do, or words.
        """
        wanted = self._wanted
        index = wanted.following.index
        try:
            if self.embedder is None or index.cursor(account_id):
                return wanted
        except DamageError as error:  # it is derived, and made anew from what it was derived from
            index.delete_account_data(account_id)
            hint = rebuilt(error)
            return replace(wanted, hints=lambda: [hint])
        meanwhile = self._meanwhile(account_id)
        if self._has_many(account_id, meanwhile) or not wanted.following.is_little(account_id):
            return meanwhile
        return replace(wanted, otherwise=meanwhile)

    def _has_many(self, account_id: str, present: Present) -> bool:
        """Whether an index has many places of an account: then nobody need walk through them."""
        with suppress(DamageError):
            name = self._shelf.name_of(present.following.index)
            return self._shelf.open(name).places(account_id) > FEW
        return False

    def _meanwhile(self, account_id: str) -> Present:
        """Return the newest that is finished and can still be followed; else who compares words."""
        why = ""
        for name in self._finished(account_id):
            try:
                earlier = self._earlier(name)
                behind = len(earlier.following.behind(account_id))
                if behind <= FEW:
                    return self._told(account_id, name, earlier)
                why = why or f"they are {behind:,} places behind"
            except PerdureError as error:
                why = why or str(error).partition(". Fix: ")[0]
        return self._told(account_id, self._lexical_name, self._lexical, why)

    def _finished(self, account_id: str) -> list[str]:
        """Return the indexes of earlier embedders that were finished, the newest first."""
        others = {*self._shelf.names()} - {self.name, self._lexical_name}
        suffix, found = suffix_of(self._config.index), []
        for name in others:
            with suppress(DamageError):  # what is damaged answers nothing
                if name.endswith(suffix) and self._shelf.open(name).cursor(account_id):
                    found.append((last_used(self._shelf.folder / name), name))
        return [name for _, name in sorted(found, reverse=True)]

    def _told(self, account_id: str, name: str, present: Present, why: str = "") -> Present:
        """Let somebody who answers meanwhile say so."""

        def hints() -> list[Hint]:
            pending = Hint(HintKind.VECTORS_PENDING, self._how_far(account_id, name, why))
            return [pending, *self._quarantined()]

        return replace(present, hints=hints, meanwhile=True)

    def _how_far(self, account_id: str, name: str, why: str) -> str:
        made, places = self._made(account_id, name)
        done = f"{made:,} of {places:,} places are embedded"
        fix = "Fix: run `perdure worker` or `perdure index rebuild`, which goes on"
        new = _said(self.name)
        if name != self._lexical_name:
            old = _said(name)
            return f"the vectors of {old} answer while those of {new} are made: {done}. {fix}"
        passed = f"; earlier vectors can't answer meanwhile: {why}" if why else ""
        return f"the vectors of {new} are not made yet: {done}{passed}. {fix}"

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises: by the index that answers, or without one if it has no model."""
        try:
            following = self.present(place.account).following
        except PerdureError:
            return ScannedLinks(self._reader).leading_to(place, called)
        return following.leading_to(place, called)

    def events(self, account_id: str) -> EventTable:
        """Return the table of what failed to get into the index that answers."""
        return self._shelf.open(self._shelf.name_of(self.present(account_id).following.index))

    def progress(self, account_id: str) -> tuple[int, int]:
        answering = self.present(account_id).following.index
        return self._made(account_id, self._shelf.name_of(answering))

    def _made(self, account_id: str, answering: str) -> tuple[int, int]:
        places = self._shelf.open(answering).places(account_id)
        with suppress(DamageError):
            return min(self._shelf.open(self.name).places(account_id), places), places
        return 0, places

    @property
    def _wanted(self) -> Present:
        if self.name not in self._presents:
            why = None if self._config.embedding.provider == "none" else NO_MODEL
            index = self._shelf.open(self.name)
            sources = Sources(self._reader, index, self.embedder, why)
            self._presents[self.name] = self._answering(sources, self.memo, self._making)
            if (self._shelf.folder / self.name).is_dir():
                self._keep_settings()
            else:  # links had a database of their own before they were in the index
                with suppress(OSError):
                    discard(self._folder / "links.sqlite")
        return self._presents[self.name]

    @property
    def _lexical(self) -> Present:
        name = self._lexical_name
        if name not in self._presents:
            index = self._shelf.open(name)
            sources = Sources(self._reader, index, why_words=_NOT_YET)
            self._presents[name] = self._answering(sources, None, index.making)
        return self._presents[name]

    def _earlier(self, name: str) -> Present:
        if name not in self._presents:
            embedder = self._embedders.reopened(kept_settings(self._shelf.folder / name))
            if index_name(embedder, self._config.index) != name:
                raise EmbeddingError("their model is another by now. Fix: make new vectors.")
            index = self._shelf.open(name)
            memo = VectorMemo(self.memo_folder, embedder, self.way)
            self._memos.append(memo)
            sources = Sources(self._reader, index, embedder)
            self._presents[name] = self._answering(sources, memo, index.making)
        return self._presents[name]

    @contextmanager
    def _making(self, account_id: str, *, wait: bool) -> Iterator[bool]:
        """Keep beside an index what it is made with, before it is made."""
        self._keep_settings()
        with self._shelf.open(self.name).making(account_id, wait=wait) as ours:
            yield ours

    def _keep_settings(self) -> None:
        settings = self._embedders.settings()
        if self.embedder is not None and settings is not None:
            with suppress(OSError):  # then words answer one day, where this could have
                keep_settings(self._shelf.folder / self.name, settings)

    def _answering(self, sources: Sources, memo: VectorMemo | None, alone: Alone) -> Present:
        self._sources[self._shelf.name_of(sources.index)] = memo, sources
        following = Following(
            self._history, sources.index, Indexer(self._reader, memo, self.summaries), alone
        )
        return Present(following, sources, self._quarantined)

    def _quarantined(self) -> tuple[Hint, ...]:
        return quarantined(self.way.report())

    @cached_property
    def summaries(self) -> Summaries:
        """Return who makes the abstracts of folders, in a tier of their own beside the index."""
        folder = self._folder / "abstracts"
        return Summaries(self._reader, Abstracts(folder, str(self._config.home), self.way))

    @cached_property
    def upkeep(self) -> "Upkeep":
        from perdure.engine.upkeep import Upkeep

        return Upkeep(self._wanted.following)

    def pasts(self, account_id: str) -> "Pasts":
        """Return who answers about an account as it was: with the embedder that answers now."""
        from perdure.engine.past import Moments, Pasts

        index = self.present(account_id).following.index
        name = self._shelf.name_of(index)
        if name not in self._pasts:
            past = self._folder / "past" / name
            moments = Moments(past, self._shelf.folder / name, self.way, self._config.index)
            memo, sources = self._sources[name]
            self._pasts[name] = Pasts(
                self._history,
                moments,
                memo=memo,
                embedder=sources.embedder,
                why_words=sources.why_words,
                quarantined=self._quarantined,
            )
        return self._pasts[name]

    # ------------------------------------------------------------ files
    def tenant_data(self) -> Mapping[str, TenantData]:
        return {
            "index": EveryIndex(self._shelf.every),
            "vectors": MemoData(self.memo_folder),
            "abstracts": AbstractsData(self._folder / "abstracts", self._reader.reach),
            "past indexes": PastData(self._folder / "past", self._forget_past),
        }

    def count_records(self, account_id: str, uris: Iterable[str]) -> int:
        """Return how many places of these the indexes hold, each counted once for each index."""
        wanted, held = set(uris), 0
        for index in self._shelf.every():
            with suppress(DamageError):
                held += len(wanted & index.stamps(account_id).keys())
        return held

    def scrub(self, account_id: str) -> None:
        """Leave no byte of what nodes no longer say in any index of an account, nor in the past.

        The index that answers is brought up to date; others are thrown away.
        """
        self._forget_past()
        remove_tree(self._folder / "past")
        present = self.present(account_id).following
        answering = self._shelf.name_of(present.index)
        for name in self._shelf.names():
            index = self._shelf.open(name)
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

        name = self._shelf.name_of(self.present(account_id).following.index)
        memo, index = self._sources[name][0], self._shelf.open(name)
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

        answering, found = self.present(account_id).following.index, []
        for name in self._shelf.names():
            index = self._shelf.open(name)
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

        answering = map(self.present, accounts_of(self._reader))
        used = {self.name, *(self._shelf.name_of(each.following.index) for each in answering)}
        gone = [name for name in self._shelf.names() if name not in used]
        for name in gone:
            self._presents.pop(name, None)
        for past in (self._folder / "past").glob("*"):
            if past.name not in used and past.is_dir():
                removed(past)
        return [(name, self._shelf.remove(name)) for name in gone]


def index_name(embedder: Embedder | None, provider: str = SQLITE) -> str:
    """Return the name of the index of an embedder, or of the one that goes by words alone."""
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}{suffix_of(provider)}"


def _said(name: str) -> str:
    """Return the name of an index as people write it: model and digest."""
    stem = name.partition("+")[0].removesuffix(suffix_of(SQLITE))
    said = name_of(stem)
    return said if said is not None and said.isprintable() else stem
