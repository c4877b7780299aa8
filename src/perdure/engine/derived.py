"""What was derived of memories, and how it is erased with them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from perdure.artifacts import CID, ArtifactStore
from perdure.context.files import ABSTRACT, OVERVIEW
from perdure.context.layouts.notes import NotesLayout
from perdure.engine.building import folders_of
from perdure.engine.indexes import Indexes
from perdure.engine.outbox import OutboxStore
from perdure.errors import PerdureError
from perdure.index.memo import memo_folder
from perdure.model import Uri
from perdure.storage.seen import Seen
from perdure.storage.wrappers.recorded import Recorded

_ASIDE = "*-aside-*"


class DerivedFiles:
    """All that was made of memories and can be made again, or must not be."""

    def __init__(
        self,
        recorded: Recorded,
        indexes: Indexes,
        outbox: OutboxStore,
        seen: Seen,
    ) -> None:
        self.recorded = recorded
        self.folder = Path(recorded.history.store.disk.whereabouts)
        self._indexes = indexes
        self._outbox = outbox
        self._seen = seen

    def counts(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Return how much of each kind would go."""
        every = list(places)
        return {
            "index records": self._indexes.count_records(account_id, map(str, every)),
            "indexes of past moments": len(list(self.folder.glob("past/*/[0-9]*"))),
            "stores of vectors": sum(map(Path.is_dir, self._memos(account_id, owners))),
            "abstracts of folders": sum(map(Path.is_file, self._abstracts(every))),
        }

    def erase(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Let all of it go, down to the last byte; what others need is made anew.

        Memos first, for what is made anew is kept in them; indexes last, for all else is.
        """
        every, of = list(places), list(owners)
        told = self.counts(account_id, of, every)
        for store in self._memos(account_id, of):
            if store.is_dir():
                rmtree(store)
        for abstract in self._abstracts(every):
            abstract.unlink(missing_ok=True)
        told["events"] = self._outbox.forget_places(account_id, map(str, every))
        self._seen.discard()
        if isinstance(layout := self.recorded.inner, NotesLayout):
            layout.rename(each.key for each in every)
            layout.places.wipe()
        self._indexes.scrub(account_id)
        self._indexes.refill(account_id, of)
        return told

    def elsewhere(self, contents: Iterable[CID]) -> list[str]:
        """Return what else may hold the same, and is not touched."""
        cids = list(contents)
        return [*self._other_histories(cids), *self._put_aside()]

    # ------------------------------------------------------------ places
    def _memos(self, account_id: str, owners: Iterable[str]) -> list[Path]:
        folder = self._indexes.memo_folder
        return [memo_folder(folder, account_id, owner) for owner in owners]

    def _abstracts(self, places: Iterable[Uri]) -> list[Path]:
        """Return the files that tell of the folders above, and of those that go."""
        every = {folder for place in places for folder in (place, *folders_of(place))}
        names = (ABSTRACT, OVERVIEW)
        top = self.folder / "abstracts"
        return [top / folder.key / name for folder in every for name in names]

    def _other_histories(self, cids: list[CID]) -> Iterator[str]:
        for folder in sorted(self.folder.parent.glob("*")):
            if folder == self.folder or not folder.is_dir():
                continue
            with suppress(PerdureError, OSError), ArtifactStore.open(folder) as store:
                held = sum(map(store.is_kept, cids))
                if held:
                    yield f"the history {folder.name} of another memory holds {held} of them too"

    def _put_aside(self) -> Iterator[str]:
        for path in sorted(self.folder.parent.glob(".migrating-*")):
            yield f"{path.name} was left by a migration; `perdure migrate` again removes it"
        for path in sorted(self.folder.rglob(_ASIDE)):
            yield f"{path.relative_to(self.folder)} was put aside, and may hold anything"
