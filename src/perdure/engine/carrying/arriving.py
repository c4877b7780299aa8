"""Take in a whole memory: its history first, then the files that it speaks of.

A note beside the history says that this is under way. As long as it is there nobody opens the
memory, which would take files that are not written yet for removed; to do it again ends it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, Self

from perdure.artifacts import CID
from perdure.artifacts.archive import Archive, read_archive
from perdure.artifacts.archiving import How, how_it_stands, import_archive
from perdure.artifacts.entry import Bind, decode_all
from perdure.artifacts.state import is_foreign
from perdure.artifacts.verify import Progress
from perdure.engine.carrying.folder import ARCHIVE, Manifest, demand_whole
from perdure.engine.whole_file import write_whole
from perdure.errors import (
    AbsentError,
    ArchiveError,
    FileInTheWayError,
    InvalidLocatorError,
    NotTextError,
    StorageFaultError,
    StorageUnavailableError,
)
from perdure.storage.contract import StorageBackend, walk
from perdure.storage.history import History
from perdure.storage.locator import Locator
from perdure.storage.sweep import land

_SOME = 3
_SUFFIX = ".arriving.json"


@dataclass(frozen=True, slots=True)
class Arrived:
    """What taking in a memory did."""

    how: How | None
    """None in a dry run."""
    history: str
    position: int
    files: int
    """How many were written or, in a dry run, are there."""


def note_of(history_folder: Path) -> Path:
    """Return where it is noted that a history arrives in a folder."""
    return history_folder.with_name(f"{history_folder.name}{_SUFFIX}")


def demand_arrived(history_folder: Path) -> None:
    """Refuse to open a memory of which only a part is there yet."""
    note = note_of(history_folder)
    if note.exists():
        try:
            source = json.loads(note.read_bytes())["from"]
        except (ValueError, LookupError, TypeError, OSError):
            source = "the same again"
        raise StorageUnavailableError(
            f"a memory that was being taken in from {str(source)[:200]!a} is not whole yet. "
            "Fix: do it again, which goes on where it was."
        )


class Arriving:
    """Takes archives into the history of one tree, and its texts into the tree."""

    def __init__(
        self,
        storage: StorageBackend,
        history: History,
        folder: Path,
        derived: Sequence[Path] = (),
    ) -> None:
        self.storage = storage
        self.history = history
        self._note = note_of(folder)
        self._derived = derived
        """What was made of texts; it goes if the archive tells that some were erased."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.history.close()

    def from_folder(self, folder: Path, progress: Progress | None = None) -> Arrived:
        """Take in an export, once all of it was compared; else nothing is changed."""
        manifest = demand_whole(folder)
        with (folder / ARCHIVE).open("rb") as file:
            _demand_same(read_archive(file), manifest)
            file.seek(0)
            return self.take_in(file, str(folder), progress)

    def take_in(self, source: BinaryIO, name: str, progress: Progress | None = None) -> Arrived:
        """Take in an archive, and write the files; if it is interrupted, do it again."""
        start, before = source.tell(), self.history.position()
        self._demand_room(read_archive(source))
        source.seek(start)
        write_whole(self._note, json.dumps({"from": name}).encode())
        with self.history.fence.held():
            self.history.fence.take_in()
        try:
            taken = import_archive(self.history.store, source, progress=progress)
        except ArchiveError:  # it was changed since we looked, and nothing was taken in
            self._note.unlink(missing_ok=True)
            raise
        landed = land(self.history, self.storage)
        if landed.left:
            raise FileInTheWayError(
                f"{landed.left[0]!a} and {len(landed.left) - 1} more could not be written, because "
                "something else is there. Fix: move it away, and do it again."
            )
        self._settle()
        self._forget_derived(before)
        self._note.unlink(missing_ok=True)
        return Arrived(taken.how, taken.history.hex(), taken.position, landed.written)

    def _settle(self) -> None:
        with self.history.fence.held():
            self.history.fence.settle_durably(self.history.position())

    def _forget_derived(self, before: int) -> None:
        if self.history.store.catalogue.hides_since(before, self.history.position()):
            for path in self._derived:
                rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    # ------------------------------------------------------------ room
    def conflicts(self, how: How, known: Mapping[str, CID]) -> Iterator[str]:
        """Yield what is in the way of texts: another history, or other texts."""
        if how is How.FOREIGN:
            yield "the memory here has a history of its own"
        elif how is How.RESTORED:
            yield from self._texts_in_the_way(known)

    def _demand_room(self, archive: Archive) -> None:
        how = how_it_stands(self.history.store, archive)
        found = list(self.conflicts(how, _bound(archive) if how is How.RESTORED else {}))
        if found:
            more = f" and {len(found) - _SOME} more" if len(found) > _SOME else ""
            raise ArchiveError(
                f"the memory here is not empty: {', '.join(found[:_SOME])}{more}. Nothing was "
                "changed. Fix: choose another home (PERDURE_HOME) or folder, with nothing in it."
            )

    def _texts_in_the_way(self, known: Mapping[str, CID]) -> Iterator[str]:
        """Yield the texts that are there and are not what is to be written."""
        for locator in walk(self.storage, Locator("")):
            cid = known.get(locator.key)
            if cid is None and not locator.key.startswith("accounts/"):
                continue  # notes of somebody's own, which history takes in later
            if cid is None or self._cid(locator, cid) != cid:
                yield f"{locator.key!a} is there"

    def _cid(self, locator: Locator, like: CID) -> CID | None:
        try:
            return CID.of(self.storage.read(locator).encode(), like.hash)
        except (AbsentError, NotTextError):
            return None


def _bound(archive: Archive) -> dict[str, CID]:
    """Return what each key has at the end of an archive."""
    bound: dict[str, CID | None] = {}
    for frame in archive.frames():
        for entry in decode_all(frame.records):
            if isinstance(entry, Bind) and not is_foreign(entry.name):
                bound[entry.name] = entry.cid
    return {key: cid for key, cid in bound.items() if cid is not None and _is_key(key)}


def _is_key(name: str) -> bool:
    try:
        return Locator(name).key == name
    except InvalidLocatorError:
        return False


def _demand_same(archive: Archive, manifest: Manifest) -> None:
    if (archive.history.hex(), archive.end.position) != (manifest.history, manifest.position):
        raise ArchiveError(
            f"{ARCHIVE} is not the archive that the export speaks of. Nothing was changed. "
            "Fix: export again."
        )


def demand_landed(history: History, storage: StorageBackend) -> int:
    """Return how many texts are as history has them; `StorageFaultError` names one that is not."""
    position, count = history.position(), 0
    for key in history.store.catalogue.names("", position):
        if is_foreign(key) or not _is_key(key):
            continue
        cid = history.store.catalogue.content(key, position)
        try:
            same = cid is not None and CID.of(storage.read(Locator(key)).encode(), cid.hash) == cid
        except (AbsentError, NotTextError):
            same = False
        if not same:
            raise StorageFaultError(
                f"{key!a} in {storage.whereabouts!a} is not what history has. "
                "Fix: see who writes there, and do it again."
            )
        count += 1
    return count
