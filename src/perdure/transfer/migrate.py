"""Import a whole memory, or copy it to another backend: first the history, then the files.

A marker beside the history exists while this is unfinished. Until it is gone, the memory can't be
opened, because files that are not written yet would count as removed. Repeating the import or
migration completes it.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, Self

from perdure.artifacts import CID
from perdure.artifacts.archive_format import Archive, read_archive
from perdure.artifacts.archive_transfer import ImportOutcome, export, import_archive, import_outcome
from perdure.artifacts.entry import Bind, decode_all
from perdure.artifacts.verification import Progress
from perdure.context.notes import NotesLayout
from perdure.dataclass import dataclass
from perdure.errors import (
    AbsentError,
    ArchiveError,
    ConcurrentModificationError,
    InvalidLocatorError,
    LockTimeout,
    NodeNotFoundError,
    NotTextError,
    PathIsFileError,
    StorageFaultError,
    StorageUnavailableError,
)
from perdure.files import write_whole
from perdure.proofs.proof import log_root
from perdure.storage.committer import Committer
from perdure.storage.contract import StorageBackend, walk
from perdure.storage.locator import Locator
from perdure.storage.reconciliation import record_external_edits, write_files
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.transfer.export import ARCHIVE, ExportManifest, read_manifest, verify_export

_NAMED_CONFLICTS = 3
_SUFFIX = ".arriving.json"


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    how: ImportOutcome | None
    """None in a dry run."""
    history: str
    position: int
    files: int
    """The number of files that were written or, in a dry run, that the export has."""


def marker_of(history_folder: Path) -> Path:
    return history_folder.with_name(f"{history_folder.name}{_SUFFIX}")


def require_complete(history_folder: Path) -> None:
    """Raise `StorageUnavailableError` if an import or a migration is unfinished."""
    marker = marker_of(history_folder)
    if marker.exists():
        try:
            source = json.loads(marker.read_bytes())["from"]
        except (ValueError, LookupError, TypeError, OSError):
            source = "the same source"
        raise StorageUnavailableError(
            f"the import of a memory from {str(source)[:200]!a} is not complete. "
            "Fix: run it again; it continues where it stopped."
        )


class ArchiveImport:
    """Imports archives into the history of one tree, and their texts into the tree."""

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
        self._marker = marker_of(folder)
        self._imported = folder / "taken-in"
        """Holds the digest of the manifest that was imported last."""
        self._derived = derived
        """Derived files, which are removed if the archive says that texts were erased."""
        self._introduce = introduce
        """Writes the layout into the store, before the first text is written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.history.close()

    def from_folder(self, folder: Path, progress: Progress | None = None) -> ArchiveReport:
        """Verify an export, then import it; if a byte differs, nothing is changed.

        Of an export that was imported before, only the manifest is read.
        """
        found = read_manifest(folder)
        if found is not None and self._has(found):
            return ArchiveReport(ImportOutcome.KNOWN, found.history, found.position, 0)
        manifest = verify_export(folder)
        with (folder / ARCHIVE).open("rb") as file:
            archive = read_archive(file)
            known = manifest.history, manifest.position
            if (archive.history.hex(), archive.end.position) != known:
                raise ArchiveError(
                    f"{ARCHIVE} is not the archive of this export. Nothing was changed. "
                    "Fix: export again."
                )
            file.seek(0)
            report = self.run(file, str(folder), progress)
        write_whole(self._imported, manifest.digest().encode())
        return report

    def _has(self, manifest: ExportManifest) -> bool:
        """Return whether this manifest was imported last, and all of it was written."""
        if self._marker.exists() or self.history.position() < manifest.position:
            return False
        try:
            return self._imported.read_bytes() == manifest.digest().encode()
        except OSError:
            return False

    def run(self, source: BinaryIO, name: str, progress: Progress | None = None) -> ArchiveReport:
        """Import an archive, and write its files. If interrupted, it can be repeated."""
        start, before = source.tell(), self.history.position()
        self._require_room(read_archive(source))
        source.seek(start)
        self._introduce()
        write_whole(self._marker, json.dumps({"from": name}).encode())
        if not self.history.lock.is_imported():  # else an interrupted import continues
            committer = Committer(self.storage, self.history)
            with committer.exclusive():
                committer.sync()  # the mark is the position at which the imported part begins
                self.history.lock.mark_imported()
        try:
            imported = import_archive(self.history.store, source, progress=progress)
        except ArchiveError:  # it changed since it was checked, and nothing was imported
            self._marker.unlink(missing_ok=True)
            raise
        landed = write_files(self.history, self.storage)
        if landed.left:
            raise PathIsFileError(
                f"{landed.left[0]!a} and {len(landed.left) - 1} more could not be written, because "
                "other files are there. Fix: move these away, and import again."
            )
        with self.history.lock.hold():
            self.history.lock.settle_durably(self.history.position())
        self._remove_derived(before)
        self._marker.unlink(missing_ok=True)
        return ArchiveReport(
            imported.outcome, imported.history.hex(), imported.position, landed.written
        )

    def _remove_derived(self, before: int) -> None:
        if self.history.store.catalogue.hides_since(before, self.history.position()):
            for path in self._derived:
                rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    # ------------------------------------------------------------ conflicts
    def conflicts(self, how: ImportOutcome, known: Mapping[str, CID]) -> Iterator[str]:
        """Yield what prevents the import: another history, or other texts."""
        if how is ImportOutcome.FOREIGN:
            yield "the memory here has a history of its own"
        elif how is ImportOutcome.RESTORED:
            yield from self._other_texts(known)

    def _require_room(self, archive: Archive) -> None:
        how = import_outcome(self.history.store, archive)
        found = list(self.conflicts(how, _bound(archive) if how is ImportOutcome.RESTORED else {}))
        if found:
            count = len(found) - _NAMED_CONFLICTS
            more = f" and {count} more" if count > 0 else ""
            raise ArchiveError(
                f"the memory here is not empty: {', '.join(found[:_NAMED_CONFLICTS])}{more}. "
                "Nothing was changed. Fix: choose an empty home (PERDURE_HOME) or folder."
            )

    def _other_texts(self, known: Mapping[str, CID]) -> Iterator[str]:
        in_place = self.storage.in_place() if isinstance(self.storage, NotesLayout) else frozenset()
        for locator in walk(self.storage, Locator("")):
            cid = known.get(locator.key)
            is_own = not locator.key.startswith("accounts/") or locator.parent.key in in_place
            if cid is None and is_own:
                continue  # the user's own notes, which the history records later
            if cid is None or _content_id(self.storage, locator, cid) != cid:
                yield f"{locator.key!a} exists"


def _content_id(storage: StorageBackend, locator: Locator, like: CID) -> CID | None:
    """Return the CID of a text, with the hash function of another; None if there is no text."""
    try:
        return CID.of(storage.read(locator).encode(), like.hash)
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


def verify_texts(history: History, storage: StorageBackend) -> int:
    """Return the number of texts; raise `StorageFaultError` if one differs from the history."""
    position, count = history.position(), 0
    for key in history.store.catalogue.names("", position):
        if not _is_key(key):
            continue
        cid = history.store.catalogue.content(key, position)
        if cid is None or _content_id(storage, Locator(key), cid) != cid:
            raise StorageFaultError(
                f"{key!a} in {storage.whereabouts!a} differs from the history. "
                "Fix: find the program that writes there, and try again."
            )
        count += 1
    return count


_ATTEMPTS = 5
_LOCK = "migrating-lock"
_SCRATCH = ".migrating"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What would be copied, and what prevents it."""

    source: str
    target: str
    texts: int
    size: int
    """The size of all texts in bytes."""
    versions: int
    position: int
    """The last position of the source's log."""
    known: int
    """The position up to which the target has the same log."""
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MigrationReport:
    history: str
    position: int
    texts: int
    versions: int
    written: int


class Migration:
    """Copies a memory to a target that is empty, or has an earlier state of the same memory."""

    def __init__(self, source: Recorded, target: ArchiveImport, scratch: Path) -> None:
        self._source = source
        self._target = target
        self._scratch = scratch

    # ------------------------------------------------------------ before
    def plan(self) -> MigrationPlan:
        history = self._source.history
        bound = self._bound()
        slices = (each for cid in bound.values() for each in history.store.locate(cid) or ())
        how, known = self._relation()
        return MigrationPlan(
            self._source.whereabouts,
            self._target.storage.whereabouts,
            len(bound),
            sum(each.length for each in slices),
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

    def _relation(self) -> tuple[ImportOutcome, int]:
        """Return the relation of the target's log to the source's, and its common part."""
        ours, theirs = self._source.history.store, self._target.history.store
        ours.current()
        theirs.current()
        if not theirs.history:
            return ImportOutcome.RESTORED, 0
        here, there = ours.current().position, theirs.current().position
        if (
            ours.history != theirs.history
            or there > here
            or log_root(theirs, there) != log_root(ours, there)
        ):
            return ImportOutcome.FOREIGN, 0
        return (ImportOutcome.KNOWN if here == there else ImportOutcome.CONTINUED), there

    def _conflicts(self, how: ImportOutcome, bound: dict[str, CID]) -> Iterator[str]:
        if self._source.identity == self._target.storage.identity:
            yield "it is the same memory"
            return
        ours, theirs = self._source.history.store, self._target.history.store
        if how is ImportOutcome.FOREIGN and ours.history == theirs.history:
            yield "the memory there was changed since it was copied"
            return
        yield from self._target.conflicts(how, bound)

    # ------------------------------------------------------------ copying
    def apply(self, progress: Progress | None = None) -> MigrationReport:
        """Copy until both sides are equal. If interrupted, it can be repeated."""
        if not self._source.history.position():
            raise NodeNotFoundError("there is nothing to migrate yet. Fix: save something first.")
        written, changed = 0, ""
        with self._alone():
            for _ in range(_ATTEMPTS):
                record_external_edits(self._source)
                self.require_room()
                position = self._source.history.store.current().position
                written += self._copy(progress)
                with (
                    self._source.committer.exclusive()
                ):  # no other process of ours writes meanwhile
                    changed = self._changed(position)
                    if not changed:
                        return self.verify(written)
        raise ConcurrentModificationError(
            f"the memory is changed while it is copied: {changed}. The copy is correct, but not "
            "complete. Fix: stop the programs that write to it, and try again."
        )

    def require_room(self) -> None:
        found = list(self._conflicts(self._relation()[0], self._bound()))
        if found:
            raise ArchiveError(
                f"the memory can't be copied to {self._target.storage.whereabouts!a}: {found[0]}"
                f"{f' and {len(found) - 1} more' if len(found) > 1 else ''}. Nothing was changed. "
                "Fix: name a place that has no memory."
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
        """Return what was written since a position, by Perdure or by hand; "" if nothing was."""
        now = self._source.history.store.current().position
        if now != position:
            return f"{now - position} entries are new"
        try:
            verify_texts(self._source.history, self._source.inner)
        except StorageFaultError as error:
            return str(error).partition(". Fix: ")[0]
        return ""

    def verify(self, written: int = 0) -> MigrationReport:
        """Compare every text and version of both sides; `StorageFaultError` if they differ."""
        ours, theirs = self._source.history, self._target.history
        here, there = ours.position(), theirs.position()
        same = ours.store.history == theirs.store.history and here == there
        if not same or log_root(ours.store, here) != log_root(theirs.store, there):
            raise StorageFaultError(
                f"the histories differ: the source has {here} entries, the target {there}. "
                "Fix: migrate again."
            )
        for store in (ours.store, theirs.store):
            faults = store.verify().faults
            if faults:
                raise StorageFaultError(
                    f"{store.disk.whereabouts!a} is damaged: {faults[0].what}. "
                    "Fix: run `perdure history verify`."
                )
        verify_texts(ours, self._source.inner)
        texts = verify_texts(theirs, self._target.storage)
        versions = sum(event.cid is not None for event in ours.changes())
        return MigrationReport(ours.store.history.hex(), here, texts, versions, written)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self._source.history.store.disk.lock(_LOCK)
        if lock is None:
            raise LockTimeout(
                "another process is migrating this memory. Nothing was changed. "
                "Fix: wait until it has finished."
            )
        try:
            for leftover in self._scratch.glob(f"{_SCRATCH}-*"):
                leftover.unlink(missing_ok=True)
            yield
        finally:
            lock.release()
