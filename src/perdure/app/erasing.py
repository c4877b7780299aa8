"""What was derived of memories, and how it is erased with them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Protocol

from perdure.app.indexes import Indexes
from perdure.artifacts import CID, ArtifactStore
from perdure.context.files import ABSTRACT, OVERVIEW
from perdure.context.followed import FollowedLinks
from perdure.context.layouts.notes import NotesLayout
from perdure.context.tenants import Deletions
from perdure.engine.building import folders_of
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.outbox import OutboxStore
from perdure.errors import PerdureError
from perdure.index.memo import memo_folder
from perdure.model import RequestContext, Uri
from perdure.storage.seen import Seen
from perdure.storage.wrappers.recorded import Recorded

_ASIDE = "*-aside-*"


class Tiers(Protocol):
    @property
    def indexes(self) -> Indexes: ...
    @property
    def outbox(self) -> OutboxStore: ...
    @property
    def links(self) -> FollowedLinks: ...
    @property
    def seen(self) -> Seen: ...
    @property
    def recorded(self) -> Recorded: ...


class Derived:
    def __init__(self, tiers: Tiers, folder: Path, answers: Path) -> None:
        self._tiers = tiers
        self._folder = folder
        self._answers = answers

    def told(self, account_id: str, owners: Iterable[str], places: Iterable[Uri]) -> dict[str, int]:
        indexes, every = self._tiers.indexes, list(places)
        return {
            "index records": indexes.count_records(account_id, map(str, every)),
            "indexes of past moments": len(list(self._folder.glob("past/*/[0-9]*"))),
            "stores of vectors": sum(map(Path.is_dir, self._memos(account_id, owners))),
            "stores of model answers": sum(map(Path.is_dir, self._kept(account_id, owners))),
            "abstracts of folders": sum(map(Path.is_file, self._abstracts(every))),
        }

    def forget(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Memos first, for what is made anew is kept in them; indexes last, for all else is."""
        tiers, every, of = self._tiers, list(places), list(owners)
        told = self.told(account_id, of, every)
        for store in (*self._memos(account_id, of), *self._kept(account_id, of)):
            if store.is_dir():
                rmtree(store)
        for abstract in self._abstracts(every):
            abstract.unlink(missing_ok=True)
        told["events"] = tiers.outbox.forget_places(account_id, map(str, every))
        tiers.links.scrub()
        tiers.seen.discard()
        if isinstance(layout := tiers.recorded.inner, NotesLayout):
            layout.rename(each.key for each in every)
            layout.places.wipe()
        tiers.indexes.scrub(account_id)
        tiers.indexes.refill(account_id, of)
        return told

    def elsewhere(self, contents: Iterable[CID]) -> list[str]:
        cids = list(contents)
        return [*self._other_histories(cids), *self._put_aside()]

    # ------------------------------------------------------------ places
    def _memos(self, account_id: str, owners: Iterable[str]) -> list[Path]:
        folder = self._tiers.indexes.memo_folder
        return [memo_folder(folder, account_id, owner) for owner in owners]

    def _kept(self, account_id: str, owners: Iterable[str]) -> list[Path]:
        return [memo_folder(self._answers, account_id, owner) for owner in owners]

    def _abstracts(self, places: Iterable[Uri]) -> list[Path]:
        """Return the files that tell of the folders above, and of those that go."""
        every = {folder for place in places for folder in (place, *folders_of(place))}
        names = (ABSTRACT, OVERVIEW)
        top = self._folder / "abstracts"
        return [top / folder.key / name for folder in every for name in names]

    def _other_histories(self, cids: list[CID]) -> Iterator[str]:
        for folder in sorted(self._folder.parent.glob("*")):
            if folder == self._folder or not folder.is_dir():
                continue
            with suppress(PerdureError, OSError), ArtifactStore.open(folder) as store:
                held = sum(map(store.is_kept, cids))
                if held:
                    yield f"the history {folder.name} of another memory holds {held} of them too"

    def _put_aside(self) -> Iterator[str]:
        for path in sorted(self._folder.parent.glob(".migrating-*")):
            yield f"{path.name} was left by a migration; `perdure migrate` again removes it"
        for path in sorted(self._folder.rglob(_ASIDE)):
            yield f"{path.relative_to(self._folder)} was put aside, and may hold anything"


class Tenants:
    """Users and agents, deleted with a backend that says why."""

    def __init__(
        self, recorded: Recorded, namespaces_on: Callable[[Recorded], NamespaceManager]
    ) -> None:
        self._recorded = recorded
        self._namespaces_on = namespaces_on

    def delete(
        self, backend: Recorded, account_id: str, owner_space: str, ctx: RequestContext
    ) -> None:
        kind, _, name = owner_space.partition(":")
        namespaces = self._namespaces_on(backend)
        delete = namespaces.delete_user if kind == "user" else namespaces.delete_agent
        delete(account_id, name, ctx)

    def is_begun(self, account_id: str, owner_space: str) -> bool:
        return Deletions(self._recorded).is_begun(account_id, owner_space)
