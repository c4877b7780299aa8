"""Write a memory into a folder: Markdown for people, and its whole history for another machine."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

from perdure.artifacts import IndexState
from perdure.artifacts.archiving import export, extract
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.state import is_foreign
from perdure.artifacts.verify import Progress
from perdure.context.files import CONTENT, META, Meta, text_of
from perdure.engine.carrying.folder import (
    ARCHIVE,
    FORMAT,
    MANIFEST,
    README,
    UNFINISHED,
    Manifest,
    begin,
    begun,
    clear,
    demand_ours,
    digest_of,
    read_manifest,
)
from perdure.engine.carrying.reaching import Reachable
from perdure.engine.whole_file import write_whole
from perdure.errors import (
    AbsentError,
    FileInTheWayError,
    InvalidValueError,
    NodeNotFoundError,
    NotTextError,
)
from perdure.faults import explain
from perdure.model import NodeStatus, Uri
from perdure.storage.history import History
from perdure.storage.locator import Locator
from perdure.storage.sweep import sweep
from perdure.storage.wrappers.recorded import Recorded
from perdure.storage.wrappers.view import View

_ACCOUNTS = "accounts/"
_SELECTED = ".selected"
_WELCOME = """# An export of Perdure

- `notes/` are memories as plain Markdown, by their names; `archived/` those that were put away;
  `files/` texts that are no memories.
- `history.perdure` holds every version of every text. It alone is needed to take it all in.
- `perdure.json` says what belongs here, and the SHA-256 of each file.

`perdure import THIS-FOLDER`, on a machine with no memory yet, gives the same memory: the same
files, versions and history. To export to this folder again writes only what has changed.
"""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds, and what had to be done for it."""

    manifest: Manifest
    written: int
    """Files that are new, or changed."""
    removed: int
    size: int
    """Of the archive, in bytes."""


class Exporting:
    """Exports what is within a reach; without one, everything that there is."""

    def __init__(self, recorded: Recorded, reach: Reachable | None, who: str) -> None:
        self._recorded = recorded
        self._reach = reach
        self._who = who

    def run(self, folder: Path, progress: Progress | None = None) -> Exported:
        """Write all that changed since the last export there; interrupted, do it again."""
        demand_ours(folder)
        clear(folder)
        sweep(self._recorded)
        before = read_manifest(folder)
        now = self._recorded.history.store.current()
        with _explained(folder), self._chosen(folder, now) as (history, state):
            texts = dict(self._texts(history, state))
            wanted = {path: sha256(data).hexdigest() for path, data in texts.items()}
            old = {} if before is None else before.files
            _refuse_changed(folder, old, wanted)
            begin(folder, {*old, *wanted, *begun(folder)})
            source = f"{self._recorded.history.store.history.hex()} {now.position} {self._who}"
            archive = self._archive(folder, before, history, source, progress)
            written = _write(folder, texts, wanted)
            removed = _remove(folder, {*begun(folder)} - wanted.keys())
        accounts = _accounts(texts)
        manifest = Manifest(FORMAT, *archive[:2], archive[2], source, accounts, wanted)
        manifest.write(folder)
        (folder / UNFINISHED).unlink(missing_ok=True)
        return Exported(manifest, written, removed, (folder / ARCHIVE).stat().st_size)

    @contextmanager
    def _chosen(self, folder: Path, now: IndexState) -> Iterator[tuple[History, IndexState]]:
        """Give the history that is to be exported; a part of one lies in the folder meanwhile."""
        if self._reach is None:
            yield self._recorded.history, now
            return
        for left in folder.glob(f"{_SELECTED}-*"):
            rmtree(left)
        if not begun(folder) and read_manifest(folder) is None:
            begin(folder, ())
        part = folder / f"{_SELECTED}-{secrets.token_hex(4)}"
        try:
            disk = FolderDisk(part)
            with extract(
                self._recorded.history.store, disk, self._reach.keep, now.position
            ) as store:
                history = History(store, disk)
                yield history, store.current()
        finally:
            rmtree(part, ignore_errors=True)

    # ------------------------------------------------------------ texts
    def _texts(self, history: History, state: IndexState) -> Iterator[tuple[str, bytes]]:
        """Yield the texts for people, each with its path."""
        yield README, _WELCOME.encode()
        if not state.position:
            return
        view = View(history, state)
        for key in history.store.catalogue.names("", history.position()):
            path = None if is_foreign(key) else _path(key, view)
            if path is not None:
                with suppress(AbsentError, NotTextError):
                    yield path, view.read(Locator(key)).encode()

    def _archive(
        self,
        folder: Path,
        before: Manifest | None,
        history: History,
        source: str,
        progress: Progress | None,
    ) -> tuple[str, int, str]:
        """Write the archive, unless it is there; return its history, position and digest."""
        if before is not None and before.source == source and _has_archive(folder, before):
            return before.history, before.position, before.archive
        if not history.store.current().position:
            raise NodeNotFoundError(
                "there is nothing within reach to export. Fix: save something first, or export as "
                "somebody else."
            )
        unfinished = folder / f".{ARCHIVE}.{secrets.token_hex(4)}"
        try:
            with unfinished.open("xb") as file:
                unfinished.chmod(0o600)
                done = export(history.store, file, progress=progress)
            digest = digest_of(unfinished, folder) or ""
            unfinished.replace(folder / ARCHIVE)
        finally:
            unfinished.unlink(missing_ok=True)
        return done.history.hex(), done.state.position, digest


def _has_archive(folder: Path, manifest: Manifest) -> bool:
    return digest_of(folder / ARCHIVE, folder) == manifest.archive


# ---------------------------------------------------------------- names
def _path(key: str, view: View) -> str | None:
    """Return where a text is for people to read; None if it is only for Perdure."""
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
    """Return a name that no file has: those end with .md, and no name ends with a percent sign."""
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
def _refuse_changed(folder: Path, old: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Refuse to write over what somebody edited in an earlier export."""
    written = {*begun(folder)}
    for path, digest in old.items():
        found = digest_of(folder / path, folder)
        if path not in written and found not in {None, digest, wanted.get(path)}:
            raise FileInTheWayError(
                f"{path!a} in {str(folder)!a} was changed since it was exported, and was left as "
                "it is. Fix: move it away, or export to another folder."
            )


def _write(folder: Path, texts: Mapping[str, bytes], wanted: Mapping[str, str]) -> int:
    written = 0
    for path, data in texts.items():
        if digest_of(folder / path, folder) != wanted[path]:
            _make_way(folder, path)
            write_whole(folder / path, data, durable=False)
            written += 1
    return written


def _make_way(folder: Path, path: str) -> None:
    """Refuse links on the way to a file; they could lead out of the folder."""
    for above in (folder / path).parents:
        if above == folder:
            return
        if above.is_symlink():
            raise FileInTheWayError(
                f"{str(above)!a} is a link, which is not followed. Fix: remove it."
            )


def _remove(folder: Path, paths: set[str]) -> int:
    removed = 0
    for path in paths:
        _make_way(folder, path)
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / path).unlink()
            removed += 1
        with suppress(OSError):  # the first that holds something ends it
            for above in (folder / path).parents:
                if above == folder:
                    break
                above.rmdir()
    return removed


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (FileInTheWayError, NodeNotFoundError):
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError | FileExistsError):
            raise
        raise explain(error, str(folder), MANIFEST) from error
