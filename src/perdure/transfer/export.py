"""Write a memory into a folder: Markdown for people, and its whole history for another machine.

    perdure.json       lists the files with their digests; written last
    history.perdure    every version of every text, as one archive
    notes/ archived/    the nodes as Markdown, by name; archived ones apart
    files/              texts that are not nodes
    README.md           how to import the folder

While the folder is written, `.unfinished.json` lists the files that may exist already.
"""

import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

from perdure.artifacts import IndexState
from perdure.artifacts.archive_transfer import export, extract
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.entry import Bind, LogEntry
from perdure.artifacts.verification import Progress
from perdure.context.node_files import CONTENT, META, Meta, text_of
from perdure.context.reader import NodeReader
from perdure.dataclass import asdict, dataclass
from perdure.engine.edits import look_for_edits
from perdure.engine.trace import KeySpan, spans_of_sessions
from perdure.errors import (
    AbsentError,
    ArchiveError,
    InvalidValueError,
    NodeNotFoundError,
    NotTextError,
    PathIsFileError,
    StorageError,
    storage_error,
    storage_read_error,
)
from perdure.files import write_whole
from perdure.model import NodeStatus, RequestContext, Uri
from perdure.storage.locator import Locator
from perdure.storage.reconciliation import record_external_edits
from perdure.storage.recorded import Recorded
from perdure.storage.stamps import StampTable, save_scan
from perdure.storage.text_history import MOVED_FROM, Circumstances, Event, History, View

FORMAT = "perdure export 1"
MANIFEST = "perdure.json"
ARCHIVE = "history.perdure"
README = "README.md"
UNFINISHED = ".unfinished.json"

_TOPS = ("notes", "archived", "files")
_MAX_SIZE = 1 << 28
_CHUNK = 1 << 20
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")
"""The name of a file while it is written."""
_DIGEST = re.compile("[0-9a-f]{64}")
_HISTORY = re.compile("[0-9a-f]{32}")


# ---------------------------------------------------------------- the folder
@dataclass(frozen=True, slots=True)
class ExportManifest:
    format: str
    history: str
    """The id of the history in the archive."""
    position: int
    """The last position of that history."""
    archive: str
    source: str
    """The exported history, its position, and the scope: an equal source gives an equal export."""
    accounts: list[str]
    files: dict[str, str]
    """The digest of each file, by path."""

    def write(self, folder: Path) -> None:
        write_whole(folder / MANIFEST, self._content())

    def digest(self) -> str:
        return sha256(self._content()).hexdigest()

    def _content(self) -> bytes:
        content = json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        return content.encode()


def is_export(folder: Path) -> bool:
    return folder.is_dir() and any(
        os.path.lexists(folder / name) for name in (MANIFEST, UNFINISHED)
    )


def read_manifest(folder: Path) -> ExportManifest | None:
    """Return the manifest of an export; None if it has none yet."""
    data = _content(folder / MANIFEST)
    if data is None:
        return None
    try:
        manifest = ExportManifest(**json.loads(data))
        _check(manifest)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{MANIFEST} is not a manifest of {FORMAT!a}") from error
    return manifest


def _check(manifest: ExportManifest) -> None:
    texts = (manifest.source, *manifest.accounts)
    if manifest.format != FORMAT:
        raise ValueError(manifest.format)
    digests = (manifest.archive, *manifest.files.values())
    if not all(isinstance(text, str) for text in texts) or type(manifest.position) is not int:
        raise TypeError(manifest.source)
    if not _HISTORY.fullmatch(manifest.history) or not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError(manifest.history)
    for path in manifest.files:
        check_path(path)


def check_path(path: str) -> str:
    """Return the path of a file in an export; raise `ValueError` if it could lead out of it."""
    segments = path.split("/")
    plain = all(each not in {"", ".", ".."} and "\0" not in each for each in segments)
    if not plain or (path != README and segments[0] not in _TOPS):
        raise ValueError(path)
    return path


def unfinished_paths(folder: Path) -> list[str]:
    """Return the paths that an interrupted export may have written."""
    data = _content(folder / UNFINISHED)
    if data is None:
        return []
    try:
        return [check_path(path) for path in json.loads(data)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{UNFINISHED} can't be parsed") from error


def _mark_unfinished(folder: Path, paths: Iterable[str]) -> None:
    write_whole(folder / UNFINISHED, json.dumps(sorted(paths)).encode())


def _require_export_folder(folder: Path) -> None:
    if not folder.is_dir() or is_export(folder):
        return
    if not all(_TEMPORARY.fullmatch(path.name) for path in folder.iterdir()):
        raise PathIsFileError(
            f"{str(folder)!a} is neither empty nor an export. Nothing was changed. "
            "Fix: name an empty folder, or one that was exported to before."
        )


def _remove_temporary_files(folder: Path) -> None:
    for path in folder.rglob(".*") if folder.is_dir() else ():
        if _TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()


def verify_export(folder: Path) -> ExportManifest:
    """Compare every file of an export with its manifest, and return that.

    Raises `ArchiveError` if a file differs, or if the export was interrupted.
    """
    if os.path.lexists(folder / UNFINISHED):
        raise _damaged(folder, "it was not written to its end")
    manifest = read_manifest(folder)
    if manifest is None:
        raise _damaged(folder, f"it has no {MANIFEST}")
    expected: Mapping[str, str] = {**manifest.files, ARCHIVE: manifest.archive}
    for path, digest in expected.items():
        if _file_digest(folder, path) != digest:
            raise _damaged(folder, f"{path!a} is missing, or was changed")
    return manifest


def _file_digest(folder: Path, name: str) -> str | None:
    """Return the digest of a file in a folder; None if it is absent, "" if it is not regular.

    Links are not followed, also in the folders above the file.
    """
    path = folder / name
    try:
        if any(above.is_symlink() for above in _folders_above(folder, path)):
            return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            return ""
        raise storage_read_error(error, str(path.parent), path.name) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return ""
    hasher = sha256()
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(_CHUNK):
            hasher.update(data)
    return hasher.hexdigest()


def _folders_above(folder: Path, path: Path) -> Iterator[Path]:
    """Yield the folders between a file and the folder of the export, the nearest first."""
    for above in path.parents:
        if above == folder:
            return
        yield above


def _content(path: Path) -> bytes | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_SIZE:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise storage_read_error(error, str(path.parent), path.name) from error


def _damaged(folder: Path, what: str) -> ArchiveError:
    return ArchiveError(
        f"the export in {str(folder)!a} can't be imported: {what}. Nothing was changed. "
        "Fix: export again, or copy the folder again, whole."
    )


# ---------------------------------------------------------------- what is exported
@dataclass(frozen=True, slots=True)
class ExportScope:
    """The versions that a caller reaches."""

    description: str
    """Equal for two callers only if they have the same scope."""
    spans: tuple[KeySpan, ...]

    @classmethod
    def of(cls, ctx: RequestContext, history: History, reader: NodeReader) -> "ExportScope":
        account, name = Uri(ctx.account_id), f"account {ctx.account_id!a}"
        if ctx.governs:
            return cls(name, (KeySpan(reader.folder(account).key, deep=True),))
        spans = [KeySpan(reader.folder(account.child("resources")).key, deep=True)]
        for owner in sorted(ctx.owner_spaces):
            kind, _, name = owner.partition(":")
            spans.append(KeySpan(reader.folder(account.child(f"{kind}s", name)).key, deep=True))
            spans += spans_of_sessions(history, reader, ctx.account_id, owner)
        return cls(f"{name} as {sorted(ctx.owner_spaces)!a}", tuple(spans))

    def select(self, logged: LogEntry, bind: Bind) -> Bind | None:
        """Return a version to be exported, without a source that is out of scope; else None."""
        event = Event(
            bind.name, logged.position, logged.commit, logged.time, bind.cid, Circumstances()
        )
        if not any(span.holds(event) for span in self.spans):
            return None
        circumstances = bind.circumstances
        source = circumstances.get(MOVED_FROM)
        if isinstance(source, str) and not any(span.covers(source) for span in self.spans):
            circumstances = {
                name: value for name, value in circumstances.items() if name != MOVED_FROM
            }
        return Bind(bind.name, bind.cid, circumstances)


_ACCOUNTS = "accounts/"
_SELECTED = ".selected"
_WELCOME = """# An export of Perdure

- `notes/` are memories as plain Markdown, by their names; `archived/` those that were archived;
  `files/` texts that are not memories.
- `history.perdure` holds every version of every text. It alone is needed for an import.
- `perdure.json` lists the files of this folder, with the SHA-256 of each.

`perdure import THIS-FOLDER`, on a machine with no memory yet, gives the same memory: the same
files, versions and history. To export to this folder again writes only what has changed.
"""


@dataclass(frozen=True, slots=True)
class ExportReport:
    manifest: ExportManifest
    written: int
    removed: int
    size: int
    """The size of the archive in bytes."""


def export_to(
    folder: Path,
    recorded: Recorded,
    scope: ExportScope | None,
    seen: StampTable,
    progress: Progress | None = None,
) -> ExportReport:
    """Export what is in a scope; without one, everything. If interrupted, it can be repeated.

    Only what changed since the last export to the folder is written. A text is read only if its
    stamp differs from the one last seen, and an exported file only if it changed since.
    """
    _require_export_folder(folder)
    edits = look_for_edits(recorded.inner, recorded.history, seen)
    if edits.found or edits.left or edits.closed:
        record_external_edits(recorded)
    else:
        save_scan(seen, edits)
    before = read_manifest(folder)
    now = recorded.history.store.current()
    described = "everything" if scope is None else scope.description
    source = f"{recorded.history.store.history.hex()} {now.position} {described}"
    if before is not None and before.source == source and _is_unchanged(folder, before, seen):
        return ExportReport(before, 0, 0, (folder / ARCHIVE).stat().st_size)
    _remove_temporary_files(folder)
    with _explained(folder), _selected(folder, recorded, scope, now) as (history, state):
        texts = dict(_texts(history, state))
        wanted = {path: sha256(data).hexdigest() for path, data in texts.items()}
        old = {} if before is None else before.files
        _refuse_edited(folder, old, wanted)
        _mark_unfinished(folder, {*old, *wanted, *unfinished_paths(folder)})
        archive = _archive(folder, before, history, source, progress)
        written = _write(folder, texts, wanted)
        removed = _remove(folder, {*unfinished_paths(folder)} - wanted.keys())
    manifest = ExportManifest(FORMAT, *archive, source, _accounts(texts), wanted)
    manifest.write(folder)
    (folder / UNFINISHED).unlink(missing_ok=True)
    with suppress(StorageError):  # then the next export compares every file
        seen.change((), (), {_note_name(folder): _stamp(folder / MANIFEST)})
    return ExportReport(manifest, written, removed, (folder / ARCHIVE).stat().st_size)


def _is_unchanged(folder: Path, manifest: ExportManifest, seen: StampTable) -> bool:
    """Return whether no file of an export changed since its manifest was written, last of all.

    Only the kernel sets the time of a change (ctime). The manifest of a copied folder has another
    stamp than the one that was recorded.
    """
    if seen.note(_note_name(folder)) != _stamp(folder / MANIFEST):
        return False
    if os.path.lexists(folder / UNFINISHED):
        return False
    written = (folder / MANIFEST).lstat().st_ctime_ns
    top, files = f"{folder}/", (*manifest.files, ARCHIVE)  # as strings: `Path` is slower
    above = {path[:end] for path in files for end, each in enumerate(path) if each == "/"}
    try:
        return all(stat.S_ISDIR(os.lstat(top + path).st_mode) for path in above) and all(
            stat.S_ISREG(found.st_mode) and found.st_ctime_ns < written
            for found in (os.lstat(top + path) for path in files)
        )
    except OSError:
        return False


def _note_name(folder: Path) -> str:
    return f"exported to {str(folder.absolute())!a}"


def _stamp(path: Path) -> str:
    found = path.lstat()
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


@contextmanager
def _selected(
    folder: Path, recorded: Recorded, scope: ExportScope | None, now: IndexState
) -> Iterator[tuple[History, IndexState]]:
    """Yield the history to export; a part of one is extracted into the folder meanwhile."""
    if scope is None:
        yield recorded.history, now
        return
    for leftover in folder.glob(f"{_SELECTED}-*"):
        rmtree(leftover)
    if not unfinished_paths(folder) and read_manifest(folder) is None:
        _mark_unfinished(folder, ())
    extracted = folder / f"{_SELECTED}-{secrets.token_hex(4)}"
    try:
        disk = FolderDisk(extracted)
        with extract(recorded.history.store, disk, scope.select, now.position) as store:
            yield History(store, disk), store.current()
    finally:
        rmtree(extracted, ignore_errors=True)


def _texts(history: History, state: IndexState) -> Iterator[tuple[str, bytes]]:
    yield README, _WELCOME.encode()
    if not state.position:
        return
    view = View(history, state)
    for key in history.store.catalogue.names("", history.position()):
        path = _path(key, view)
        if path is not None:
            with suppress(AbsentError, NotTextError):
                yield path, view.read(Locator(key)).encode()


def _archive(
    folder: Path,
    before: ExportManifest | None,
    history: History,
    source: str,
    progress: Progress | None,
) -> tuple[str, int, str]:
    """Write the archive, unless it is current; return its history, position and digest."""
    is_same = before is not None and before.source == source
    if before and is_same and _file_digest(folder, ARCHIVE) == before.archive:
        return before.history, before.position, before.archive
    if not history.store.current().position:
        raise NodeNotFoundError(
            "there is nothing to export that the caller reaches. Fix: save something first, or "
            "export as another user."
        )
    unfinished = folder / f".{ARCHIVE}.{secrets.token_hex(4)}"
    try:
        with unfinished.open("xb") as file:
            unfinished.chmod(0o600)
            done = export(history.store, file, progress=progress)
        digest = _file_digest(folder, unfinished.name) or ""
        unfinished.replace(folder / ARCHIVE)
    finally:
        unfinished.unlink(missing_ok=True)
    return done.history.hex(), done.state.position, digest


# ---------------------------------------------------------------- names
def _path(key: str, view: View) -> str | None:
    """Return the path of a text that people read; None for a text that only Perdure reads."""
    if not key.startswith(_ACCOUNTS):
        return f"files/{key}"
    folder, _, name = key.rpartition("/")
    place = Uri.of_key(folder)
    if name != CONTENT or place is None or not place.is_node:
        return None
    *above, last = folder.removeprefix(_ACCOUNTS).split("/")
    top = "archived" if _is_archived(view, folder) else "notes"
    return "/".join((top, *map(_folder_name, above), f"{last}.md"))


def _folder_name(segment: str) -> str:
    """Return a name that no file has: files end with `.md`, and segments never end with `%`."""
    return f"{segment}%" if segment.endswith(".md") else segment


def _is_archived(view: View, folder: str) -> bool:
    try:
        meta = Meta.parse(text_of(view.read(Locator(f"{folder}/{META}"))))
    except (FileNotFoundError, InvalidValueError, NotTextError):
        return False
    return meta.status is NodeStatus.ARCHIVED


def _accounts(texts: Mapping[str, bytes]) -> list[str]:
    tops = {tuple(path.split("/")[:2]) for path in texts}
    return sorted({name for top, *rest in tops if top in {"notes", "archived"} for name in rest})


# ---------------------------------------------------------------- files
def _refuse_edited(folder: Path, old: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    written = {*unfinished_paths(folder)}
    for path, digest in old.items():
        found = _file_digest(folder, path)
        if path not in written and found not in {None, digest, wanted.get(path)}:
            raise PathIsFileError(
                f"{path!a} in {str(folder)!a} was edited since it was exported. It was not "
                "changed. Fix: move it away, or export to another folder."
            )


def _write(folder: Path, texts: Mapping[str, bytes], wanted: Mapping[str, str]) -> int:
    written = 0
    for path, data in texts.items():
        if _file_digest(folder, path) != wanted[path]:
            _refuse_links(folder, path)
            write_whole(folder / path, data, durable=False)
            written += 1
    return written


def _refuse_links(folder: Path, path: str) -> None:
    """Refuse links above a file; they could lead out of the folder."""
    for above in _folders_above(folder, folder / path):
        if above.is_symlink():
            raise PathIsFileError(
                f"{str(above)!a} is a link, which is not followed. Fix: remove it."
            )


def _remove(folder: Path, paths: set[str]) -> int:
    removed = 0
    for path in paths:
        _refuse_links(folder, path)
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / path).unlink()
            removed += 1
        with suppress(OSError):  # a folder that is not empty stays, and those above it
            for above in _folders_above(folder, folder / path):
                above.rmdir()
    return removed


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (PathIsFileError, NodeNotFoundError):
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError | FileExistsError):
            raise
        raise storage_error(error, str(folder), MANIFEST) from error
