"""The indexes of one memory: one for each embedder that it has had, and those of the past."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from os import utime
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from holdfast.app.embedding import embedder_for
from holdfast.config import Config
from holdfast.context.backlinks import ScannedLinks
from holdfast.context.contract import TenantData
from holdfast.context.reach import Reach
from holdfast.context.reading import NodeReader
from holdfast.context.relations import RelationReader
from holdfast.engine.answering import Present, made_anew
from holdfast.engine.indexing import Following, Indexer
from holdfast.engine.past import KEPT, Pasts
from holdfast.engine.recall.recalling import NO_MODEL, Recaller, Sources
from holdfast.engine.summaries import Summaries
from holdfast.errors import DamageError
from holdfast.index.contract import FORMAT, Embedder
from holdfast.index.memo import MemoData, VectorMemo, embedder_id
from holdfast.index.stores.sqlite import SqliteIndex
from holdfast.model import Uri
from holdfast.storage.backends.device_local import DeviceLocalBackend
from holdfast.storage.wrappers.recorded import Recorded

if TYPE_CHECKING:
    from holdfast.engine.upkeep import DerivedTiers, Upkeep

LEXICAL = "lexical"
_FEW = 200
"""So many places are embedded while somebody waits; more is left to a worker."""


class Indexes:
    """Chooses who answers, and keeps what is derived in its place."""

    def __init__(
        self, recorded: Recorded, folder: Path, config: Config, embedder: Embedder | None = None
    ) -> None:
        self._history = recorded.history
        self._reader = NodeReader(recorded)
        self._folder = folder
        self._config = config
        self._given = embedder
        self._open: dict[str, SqliteIndex] = {}

    def close(self) -> None:
        self._forget_past()
        if (memo := self.__dict__.get("memo")) is not None:
            memo.close()
        for index in self._open.values():
            index.close()

    def _forget_past(self) -> None:
        """Let go of the moments that somebody asked about, if anybody did."""
        if (pasts := self.__dict__.get("pasts")) is not None:
            pasts.forget()

    # ------------------------------------------------------------ who answers
    @cached_property
    def embedder(self) -> Embedder | None:
        return embedder_for(self._config) if self._given is None else self._given

    @cached_property
    def memo(self) -> VectorMemo | None:
        return None if self.embedder is None else VectorMemo(self.memo_folder, self.embedder)

    @property
    def memo_folder(self) -> Path:
        return self._folder / "vectors"

    @property
    def name(self) -> str:
        """The name of the embedder's index; another when the same nodes give other records."""
        return _named(LEXICAL if self.embedder is None else embedder_id(self.embedder))

    def present(self, account_id: str) -> Present:
        """Return who answers about an account now.

        That is the index of the embedder, unless it would take long to make: until somebody has
        made it, words have to do.
        """
        wanted, index = self._semantic, self._semantic.following.index
        try:
            if self.embedder is None or index.cursor(account_id):
                return wanted
        except DamageError as error:  # it is derived, and made anew from what it was derived from
            index.delete_account_data(account_id)
            return replace(wanted, note=made_anew(error))
        if wanted.following.is_little(account_id, _FEW):
            return wanted
        return self._lexical

    @cached_property
    def _semantic(self) -> Present:
        index = self._index(self.name)
        why = "" if self._config.embedding.provider == "none" else NO_MODEL
        return self._answering(Sources(*self._canonical, index, self.embedder, why), self.memo)

    @cached_property
    def _lexical(self) -> Present:
        why = "the vectors of this memory are not made yet. Fix: run `holdfast index rebuild`"
        index = self._index(_named(LEXICAL))
        return self._answering(Sources(*self._canonical, index, why_words=why), None)

    @property
    def _canonical(self) -> tuple[NodeReader, RelationReader]:
        return self._reader, RelationReader(self._reader, ScannedLinks(self._reader))

    def _answering(self, sources: Sources, memo: VectorMemo | None) -> Present:
        following = Following(self._history, sources.index, self._indexer(memo))
        return Present(following, Recaller(sources))

    def _indexer(self, memo: VectorMemo | None) -> Indexer:
        return Indexer(self._reader, memo, self.summaries)

    @cached_property
    def summaries(self) -> Summaries:
        """Return who makes the abstracts of folders, in a tier of their own beside the index."""
        path, home = str(self._folder / "abstracts"), str(self._config.home)
        return Summaries(self._reader, lambda: DeviceLocalBackend(path, home=home))

    @cached_property
    def upkeep(self) -> "Upkeep":
        """Return who verifies and rebuilds the index of the embedder."""
        from holdfast.engine.upkeep import Upkeep  # noqa: PLC0415 - who asks for it pays

        return Upkeep(self._semantic.following)

    @cached_property
    def tiers(self) -> "DerivedTiers":
        from holdfast.engine.upkeep import DerivedTiers  # noqa: PLC0415 - as before

        return DerivedTiers(self._reader, self.upkeep, self.summaries.records)

    @cached_property
    def pasts(self) -> Pasts:
        return Pasts(self._history, self._past, memo=self.memo, embedder=self.embedder)

    def _past(self, position: int) -> SqliteIndex:
        """Open the index of a moment, and throw away those that nobody asked for in a while."""
        folder = self._folder / "past" / self.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in [path for path in others if path.name != str(position)][KEPT - 1 :]:
            rmtree(old, ignore_errors=True)
        (folder / str(position)).mkdir(mode=0o700, exist_ok=True)
        utime(folder / str(position))
        return SqliteIndex(str(folder / str(position)))

    # ------------------------------------------------------------ files
    def _index(self, name: str) -> SqliteIndex:
        if name not in self._open:
            self._open[name] = SqliteIndex(str(self._folder / "index" / name))
        return self._open[name]

    def tenant_data(self) -> Mapping[str, TenantData]:
        """Return all that holds something of tenants."""
        return {
            "index": EveryIndex(self.every),
            "vectors": MemoData(self.memo_folder),
            "abstracts": AbstractsData(self._folder / "abstracts", self._reader.reach),
            "past indexes": PastData(self._folder / "past", self._forget_past),
        }

    def every(self) -> list[SqliteIndex]:
        """Return each index that there is by now, whoever made it."""
        folders = (self._folder / "index").glob("*")
        names = sorted(path.name for path in folders if path.is_dir())
        return [self._index(name) for name in names]


class EveryIndex:
    """The indexes of all embedders; those that are there when somebody is to be forgotten."""

    def __init__(self, every: Callable[[], list[SqliteIndex]]) -> None:
        self._every = every

    def delete_account_data(self, account_id: str) -> int:
        return sum(index.delete_account_data(account_id) for index in self._every())

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return sum(index.delete_by_owner_space(account_id, owner_space) for index in self._every())


class AbstractsData:
    """What was written down of folders. A session's goes when nobody has the session any more."""

    def __init__(self, folder: Path, reach: Reach) -> None:
        self._folder = folder
        self._reach = reach

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(Uri(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        sessions = self._folder.joinpath(Uri(account_id, ("sessions",)).key).glob("*")
        keys = [path.relative_to(self._folder).as_posix() for path in sessions]
        places = filter(None, map(Uri.of_key, keys))
        gone = [each for each in places if self._reach.session_owner(each) in {None, owner_space}]
        return sum(map(self._remove, (Uri(account_id, (f"{kind}s", owner)), *gone)))

    def _remove(self, place: Uri) -> int:
        """Remove what is below a folder; return 1 if there was something."""
        path = self._folder / place.key
        there = path.exists()
        rmtree(path, ignore_errors=True)
        return int(there)


def _named(embedder: str) -> str:
    return f"{embedder}-{FORMAT}"


class PastData:
    """The indexes of the past, which go wholly when somebody is to be forgotten."""

    def __init__(self, folder: Path, let_go: Callable[[], None]) -> None:
        self._folder = folder
        self._let_go = let_go

    def delete_account_data(self, account_id: str) -> int:
        del account_id
        return self._forget()

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        del account_id, owner_space
        return self._forget()

    def _forget(self) -> int:
        self._let_go()
        rmtree(self._folder, ignore_errors=True)
        return 0
