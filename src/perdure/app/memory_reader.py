"""Read a memory without opening or loading anything that can write: no history, no index writer.

`MemoryReader` answers from the built-in index. Where no index is built, or it is behind, notes are
read from their files. What only that needs is imported where it is used: hooks load this module.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.app.identity import find_store
from perdure.app.open import ACCOUNT, open_texts, with_layout
from perdure.artifacts.recent_names import names_since
from perdure.config import SQLITE, Config, load_config
from perdure.context.node_files import read_aliases
from perdure.errors import BrokenNodeError, ContextError, StorageError
from perdure.index.sql import (
    FORMAT,
    BriefingRecord,
    BriefingRecords,
    read_briefing_records,
    read_failed_uris,
)
from perdure.model.project_aliases import ProjectAliases
from perdure.model.uri import Uri, name_of
from perdure.storage import StorageBackend, select_backend
from perdure.storage.read_only import ReadOnly

if TYPE_CHECKING:
    from perdure.context.reader import NodeReader, StoredNode
    from perdure.model import RequestContext

AGENT = "default"
WALK_LIMIT = 5_000
"""Without an index, at most this many nodes are read while the caller waits."""
_DATABASE = f"{ACCOUNT}.sqlite"
_TEXTS_PER_NODE = 8
"""A node has at most this many texts, each with a name in the log."""


class MemoryReader(NamedTuple):
    backend: ReadOnly
    config: Config
    folder: Path
    """The folder of the history and of everything derived from it."""
    user: str
    layout: StorageBackend
    """The backend that `backend` protects from changes; edits are detected through it."""

    @property
    def owners(self) -> frozenset[str]:
        """The owners whose notes are shown without a query: user, agent and account."""
        return frozenset({f"user:{self.user}", f"agent:{AGENT}", f"account:{ACCOUNT}"})

    def aliases(self) -> ProjectAliases:
        return read_aliases(self.backend, ACCOUNT, self.user)

    def notes(self, project: str, most: int) -> BriefingRecords | None:
        """Return a project's notes from the most recent index; None without an index."""
        found = (read_briefing_records(path, project, most) for path in self.databases())
        best = max(filter(None, found), key=lambda notes: notes.cursor, default=None)
        return best if best is not None and best.cursor else None

    def databases(self) -> list[Path]:
        """Return the files of the built-in indexes, one per embedder; none if another is used."""
        index = self.folder / "index"
        if not index.is_dir() or self.config.index != SQLITE:
            return []
        folders = [each for each in index.iterdir() if each.name.endswith(f"-{FORMAT}")]
        return sorted(path for each in folders if (path := each / _DATABASE).is_file())

    def waiting(self, most: int) -> list[str] | None:
        """Return at most `most` nodes that no index has yet; None if that is not known.

        These are the nodes that the log names past the cursor of the most recent index, and those
        that this index failed to take in.
        """
        found = [state for path in self.databases() if (state := read_failed_uris(path, most))]
        if not found:  # an absent built-in index is not behind
            return [] if self.config.index == SQLITE else None
        cursor, failed = max(found, key=lambda state: state[0])
        names = names_since(self.folder, cursor, _TEXTS_PER_NODE * most)
        if names is None:
            return None
        folders = dict.fromkeys(name.rpartition("/")[0] for name in names)
        places = (Uri.of_key(folder) for folder in folders)
        fresh = [str(place) for place in places if place is not None and place.is_node]
        return list(dict.fromkeys((*failed, *fresh)))[:most]


def open_reader(environ: Mapping[str, str]) -> MemoryReader:
    """Open the configured memory; raises `StorageSelectionError` if it is not available."""
    config = load_config(environ)
    backend = select_backend(config.storage)
    store = find_store(config.home, backend.identity, backend).confirmed()
    layout = with_layout(config, backend, store, read_only=True)
    return MemoryReader(ReadOnly(layout), config, store.folder, config.user, layout)


# ---------------------------------------------------------------- notes without an index
def walk_notes(memory: MemoryReader, project: str) -> tuple[BriefingRecords, str]:
    """Return a project's notes from its files, and a reason if not all were read."""
    from perdure.context.reader import NodeReader

    reader = NodeReader(memory.backend)
    of_project = [("resources", "projects", project)] if project else []
    folders = (*of_project, ("users", memory.user), ("agents", AGENT))
    nodes = (
        place for path in folders for place in reader.walk(Uri(ACCOUNT, path)) if place.is_node
    )
    places = list(islice(nodes, WALK_LIMIT + 1))
    notes = notes_at(memory, project, map(str, places[:WALK_LIMIT]))
    if len(places) <= WALK_LIMIT:
        return notes, ""
    fix = "there is no index yet. Fix: run `perdure index rebuild`"
    return notes, f"only {WALK_LIMIT:,} nodes were read, because {fix}."


def notes_at(memory: MemoryReader, project: str, uris: Iterable[str]) -> BriefingRecords:
    """Return the notes for a project among some nodes, the newest first."""
    from perdure.engine.briefing_records import is_noted, note_of
    from perdure.model.node import NOTED

    found = [stored for uri in uris if (stored := _active(memory, uri)) is not None]
    found.sort(key=lambda stored: stored.node.updated_at, reverse=True)
    always, of_project = list[BriefingRecord](), list[BriefingRecord]()
    for stored in found:
        payload = note_of(stored) if is_noted(stored.node) else {}
        owner = payload.get(NOTED)
        if owner == project or (owner == "" and payload["always"]):
            (always if payload["always"] else of_project).append(
                BriefingRecord(stored.node.uri, payload)
            )
    return BriefingRecords(0, always, of_project)


def entry_for(memory: MemoryReader, project: str, uri: str) -> str | None:
    """Return the text of a note as it is now; None if it is no longer a note of the project."""
    from perdure.engine.briefing_records import is_noted
    from perdure.engine.recall.result import hit_of, render_hit

    stored = _active(memory, uri)
    if stored is None or not is_noted(stored.node) or stored.node.project not in {project, ""}:
        return None
    return render_hit(hit_of(stored))


def _active(memory: MemoryReader, uri: str) -> "StoredNode | None":
    """Return a node; None if it is absent, archived or unreadable."""
    from perdure.context.reader import NodeReader

    try:
        return NodeReader(memory.backend).active(Uri.parse(uri))
    except (BrokenNodeError, ContextError, StorageError):
        return None


# ---------------------------------------------------------------- names for a shell
def completions(
    environ: Mapping[str, str], caller: "RequestContext", typed: str, *, archived: bool = False
) -> Iterator[str]:
    """Yield the names of nodes and folders that start with `typed`; folders end with a slash.

    If a single folder matches, its contents are yielded. With `archived`, the nodes are archived
    ones. Neither history nor index is opened.
    """
    from perdure.context.reader import NodeReader

    reader = NodeReader(open_texts(environ))
    folder, slash, _ = typed.rpartition("/")
    names = _archived_in if archived else _names_in
    found = [n for n in names(reader, caller, folder + slash) if n.startswith(typed)]
    is_folder = len(found) == 1 and found[0].endswith("/")
    return names(reader, caller, found[0]) if is_folder else iter(found)


def _names_in(reader: "NodeReader", caller: "RequestContext", folder: str) -> Iterator[str]:
    from perdure.model.request import name_for, place_named

    for uri in reader.list_children(str(place_named(folder, caller)), caller):
        place = Uri.parse(uri)
        yield name_for(place, caller) + ("" if place.is_node else "/")


def _archived_in(reader: "NodeReader", caller: "RequestContext", folder: str) -> Iterator[str]:
    """Yield the archived nodes of a folder, and its subfolders."""
    from perdure.context.node_files import ARCHIVED
    from perdure.model.request import name_for, place_named

    place = place_named(folder, caller)
    for mark in reader.backend.list(reader.file(place, ARCHIVED)):
        name = name_of(mark.name)
        if name is not None and reader.reach.may_see(place.child(name), caller):
            yield name_for(place.child(name), caller)
    yield from (name for name in _names_in(reader, caller, folder) if name.endswith("/"))
