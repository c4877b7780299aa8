"""Take in a whole memory, or copy it to another backend: history first, then the files.

A note beside the history says that this is under way. As long as it is there nobody opens the
memory, which would take files that are not written yet for removed; to do it again ends it.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, Self

from perdure.artifacts import CID
from perdure.artifacts.archive import Archive, read_archive
from perdure.artifacts.archiving import How, export, how_it_stands, import_archive
from perdure.artifacts.entry import Bind, decode_all
from perdure.artifacts.verify import Progress
from perdure.context.layouts.notes import NotesLayout
from perdure.dataclass import dataclass
from perdure.errors import (
    AbsentError,
    ArchiveError,
    ConcurrentModificationError,
    FileInTheWayError,
    InvalidLocatorError,
    LockTimeout,
    NodeNotFoundError,
    NotTextError,
    StorageFaultError,
    StorageUnavailableError,
)
from perdure.files import write_whole
from perdure.proofs.proof import log_root
from perdure.storage.contract import StorageBackend, walk
from perdure.storage.history import History
from perdure.storage.joint import Joint
from perdure.storage.locator import Locator
from perdure.storage.sweep import land, sweep
from perdure.storage.wrappers.recorded import Recorded
from perdure.transfer.export import ARCHIVE, ExportManifest, read_manifest, verify_export

_SOME = 3
_SUFFIX = ".arriving.json"


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    how: How | None
    """None in a dry run."""
    history: str
    position: int
    files: int
    """How many were written or, in a dry run, are there."""


def marker_of(history_folder: Path) -> Path:
    return history_folder.with_name(f"{history_folder.name}{_SUFFIX}")


def require_complete(history_folder: Path) -> None:
    note = marker_of(history_folder)
    if note.exists():
        try:
            source = json.loads(note.read_bytes())["from"]
        except (ValueError, LookupError, TypeError, OSError):
            source = "the same again"
        raise StorageUnavailableError(
            f"a memory that was being taken in from {str(source)[:200]!a} is not whole yet. "
            "Fix: do it again, which goes on where it was."
        )


class ArchiveImport:
    """Takes archives into the history of one tree, and its texts into the tree."""

    def __init__(
        self,
        storage: StorageBackend,
        history: History,
        folder: Path,
        derived: Sequence[Path] = (),
        introduce: Callable[[], None] = lambda: None,
    ) -> None:
        self.storage = storage
        self.history = history
        self._note = marker_of(folder)
        self._taken = folder / "taken-in"
        """The digest of the manifest that was last taken in."""
        self._derived = derived
        """What was made of texts; it goes if the archive tells that some were erased."""
        self._introduce = introduce
        """Lets the store name its layout, before the first text is written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.history.close()

    def from_folder(self, folder: Path, progress: Progress | None = None) -> ArchiveReport:
        """Take in an export, once all of it was compared; else nothing is changed.

        Of one that was taken in before, nothing but its manifest is looked at.
        """
        found = read_manifest(folder)
        if found is not None and self._has(found):
            return ArchiveReport(How.KNOWN, found.history, found.position, 0)
        manifest = verify_export(folder)
        with (folder / ARCHIVE).open("rb") as file:
            _demand_same(read_archive(file), manifest)
            file.seek(0)
            arrived = self.run(file, str(folder), progress)
        write_whole(self._taken, manifest.digest().encode())
        return arrived

    def _has(self, manifest: ExportManifest) -> bool:
        """Whether it is the manifest of what was last taken in, and nothing is left to write."""
        if self._note.exists() or self.history.position() < manifest.position:
            return False
        try:
            return self._taken.read_bytes() == manifest.digest().encode()
        except OSError:
            return False

    def run(self, source: BinaryIO, name: str, progress: Progress | None = None) -> ArchiveReport:
        """Take in an archive, and write the files; if it is interrupted, do it again."""
        start, before = source.tell(), self.history.position()
        self._demand_room(read_archive(source))
        source.seek(start)
        self._introduce()
        write_whole(self._note, json.dumps({"from": name}).encode())
        if not self.history.fence.is_taken_in():  # else an arrival was interrupted, and goes on
            joint = Joint(self.storage, self.history)
            with joint.alone():
                joint.sync()  # the mark is where what was written elsewhere begins
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
        with self.history.fence.held():
            self.history.fence.settle_durably(self.history.position())
        self._remove_derived(before)
        self._note.unlink(missing_ok=True)
        return ArchiveReport(taken.how, taken.history.hex(), taken.position, landed.written)

    def _remove_derived(self, before: int) -> None:
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
        in_place = self.storage.in_place() if isinstance(self.storage, NotesLayout) else frozenset()
        for locator in walk(self.storage, Locator("")):
            cid = known.get(locator.key)
            is_own = not locator.key.startswith("accounts/") or locator.parent.key in in_place
            if cid is None and is_own:
                continue  # notes of somebody's own, which history takes in later
            if cid is None or self._cid(locator, cid) != cid:
                yield f"{locator.key!a} is there"

    def _cid(self, locator: Locator, like: CID) -> CID | None:
        try:
            return CID.of(self.storage.read(locator).encode(), like.hash)
        except (AbsentError, NotTextError):
            return None


def _bound(archive: Archive) -> dict[str, CID]:
    bound: dict[str, CID | None] = {}
    for frame in archive.frames():
        for entry in decode_all(frame.records):
            if isinstance(entry, Bind):
                bound[entry.name] = entry.cid
    return {key: cid for key, cid in bound.items() if cid is not None and _is_key(key)}


def _is_key(name: str) -> bool:
    try:
        return Locator(name).key == name
    except InvalidLocatorError:
        return False


def _demand_same(archive: Archive, manifest: ExportManifest) -> None:
    if (archive.history.hex(), archive.end.position) != (manifest.history, manifest.position):
        raise ArchiveError(
            f"{ARCHIVE} is not the archive that the export speaks of. Nothing was changed. "
            "Fix: export again."
        )


def verify_texts(history: History, storage: StorageBackend) -> int:
    """Return how many texts are as history has them; `StorageFaultError` names one that is not."""
    position, count = history.position(), 0
    for key in history.store.catalogue.names("", position):
        if not _is_key(key):
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


_ATTEMPTS = 5
_LOCK = "migrating-lock"
_SCRATCH = ".migrating"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What would be copied, and what stands in the way."""

    source: str
    target: str
    texts: int
    size: int
    """Of all texts, in bytes."""
    versions: int
    position: int
    """Of the source's log."""
    known: int
    """Up to where the target has the same log already."""
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MigrationReport:
    history: str
    position: int
    texts: int
    versions: int
    written: int


class Migration:
    """Copies one memory to the place of another, which is empty, or an earlier state of it."""

    def __init__(self, source: Recorded, target: ArchiveImport, scratch: Path) -> None:
        self._source = source
        self._target = target
        self._scratch = scratch

    # ------------------------------------------------------------ before
    def plan(self) -> MigrationPlan:
        history = self._source.history
        bound = self._bound()
        sizes = (history.store.locate(cid) or () for cid in bound.values())
        how, known = self._relation()
        return MigrationPlan(
            self._source.whereabouts,
            self._target.storage.whereabouts,
            len(bound),
            sum(part.length for location in sizes for part in location),
            sum(event.cid is not None for event in history.changes()),
            history.position(),
            known,
            tuple(self._conflicts(how, bound)),
        )

    def _bound(self) -> dict[str, CID]:
        history = self._source.history
        position = history.position()
        names = history.store.catalogue.names("", position)
        found = history.store.catalogue.contents(names, position)
        return {name: cid for name, cid in found.items() if cid is not None}

    def _relation(self) -> tuple[How, int]:
        """Return how the target's log stands to ours, and up to where it has the same."""
        ours, theirs = self._source.history.store, self._target.history.store
        ours.current()
        theirs.current()
        if not theirs.history:
            return How.RESTORED, 0
        here, there = ours.current().position, theirs.current().position
        if (
            ours.history != theirs.history
            or there > here
            or log_root(theirs, there) != log_root(ours, there)
        ):
            return How.FOREIGN, 0
        return (How.KNOWN if here == there else How.CONTINUED), there

    def _conflicts(self, how: How, bound: dict[str, CID]) -> Iterator[str]:
        if self._source.identity == self._target.storage.identity:
            yield "it is the memory itself"
            return
        ours, theirs = self._source.history.store, self._target.history.store
        if how is How.FOREIGN and ours.history == theirs.history:
            yield "the memory there went on by itself since it was copied"
            return
        yield from self._target.conflicts(how, bound)

    # ------------------------------------------------------------ doing it
    def apply(self, progress: Progress | None = None) -> MigrationReport:
        """Copy what is missing there, until both sides are the same; interrupted, do it again."""
        if not self._source.history.position():
            raise NodeNotFoundError("there is nothing to migrate yet. Fix: save something first.")
        written, changed = 0, ""
        with self._alone():
            for _ in range(_ATTEMPTS):
                sweep(self._source)
                self.require_room()
                position = self._source.history.store.current().position
                written += self._copy(progress)
                with self._source.joint.alone():  # nobody of ours writes meanwhile
                    changed = self._changed(position)
                    if not changed:
                        return self.verify(written)
        raise ConcurrentModificationError(
            f"others keep writing to the memory while it is copied: {changed}. What was copied is "
            "right, and something is missing. Fix: stop them, and do it again."
        )

    def require_room(self) -> None:
        found = list(self._conflicts(self._relation()[0], self._bound()))
        if found:
            raise ArchiveError(
                f"the memory can't go to {self._target.storage.whereabouts!a}: {found[0]}"
                f"{f' and {len(found) - 1} more' if len(found) > 1 else ''}. Nothing was changed. "
                "Fix: name a place with no memory in it."
            )

    def _copy(self, progress: Progress | None) -> int:
        path = self._scratch / f"{_SCRATCH}-{secrets.token_hex(4)}"
        try:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("x+b") as file:
                path.chmod(0o600)
                export(self._source.history.store, file, progress=progress)
                file.seek(0)
                return self._target.run(file, self._source.whereabouts, progress).files
        finally:
            path.unlink(missing_ok=True)

    def _changed(self, position: int) -> str:
        """Say what was written since a position, by us or by hand; nothing if nothing was."""
        now = self._source.history.store.current().position
        if now != position:
            return f"{now - position} entries are new"
        try:
            verify_texts(self._source.history, self._source.inner)
        except StorageFaultError as error:
            return str(error).partition(". Fix: ")[0]
        return ""

    def verify(self, written: int = 0) -> MigrationReport:
        """Compare every text and every version on both sides; an error says what differs."""
        ours, theirs = self._source.history, self._target.history
        here, there = ours.position(), theirs.position()
        same = ours.store.history == theirs.store.history and here == there
        if not same or log_root(ours.store, here) != log_root(theirs.store, there):
            raise StorageFaultError(
                f"the histories differ: here it has {here} entries, there {there}. "
                "Fix: migrate again."
            )
        for store in (ours.store, theirs.store):
            faults = store.verify().faults
            if faults:
                raise StorageFaultError(
                    f"{store.disk.whereabouts!a} is damaged: {faults[0].what}. "
                    "Fix: `perdure history verify` says more."
                )
        verify_texts(ours, self._source.inner)
        texts = verify_texts(theirs, self._target.storage)
        versions = sum(event.cid is not None for event in ours.changes())
        return MigrationReport(ours.store.history.hex(), here, texts, versions, written)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        held = self._source.history.store.disk.lock(_LOCK)
        if held is None:
            raise LockTimeout(
                "another process is migrating this memory just now. Nothing was changed. "
                "Fix: let it finish."
            )
        try:
            for left in self._scratch.glob(f"{_SCRATCH}-*"):
                left.unlink(missing_ok=True)
            yield
        finally:
            held.release()
