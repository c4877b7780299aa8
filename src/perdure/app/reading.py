"""A memory to be read, and nothing else: nothing that could write is opened, or even loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from perdure.app.identity import find_store
from perdure.app.opening import ACCOUNT, laid_out
from perdure.artifacts.named import names_since
from perdure.config import SQLITE, Config, load_config
from perdure.context.aliases import read_aliases
from perdure.index.sqlite.sql import (
    FORMAT,
    BriefingRecords,
    read_briefing_records,
    read_failed_uris,
)
from perdure.model.aliases import Aliases
from perdure.model.uri import Uri
from perdure.storage import StorageBackend, select_backend
from perdure.storage.wrappers.read_only import ReadOnly

_DATABASE = f"{ACCOUNT}.sqlite"
_FILES = 8
"""At most so many names are of one node."""
AGENT = "default"


class Reading(NamedTuple):
    backend: ReadOnly
    config: Config
    folder: Path
    """Where all that is derived from the backend's texts is kept."""
    user: str
    layout: StorageBackend
    """What `backend` keeps from changes, by which edits are looked for."""

    @property
    def owners(self) -> frozenset[str]:
        """Whose notes are shown unasked: the user's, the agent's, and what all share."""
        return frozenset({f"user:{self.user}", f"agent:{AGENT}", f"account:{ACCOUNT}"})

    def aliases(self) -> Aliases:
        return read_aliases(self.backend, ACCOUNT, self.user)

    def notes(self, project: str, most: int) -> BriefingRecords | None:
        """Return the notes for a project, of the index that is furthest; None without an index."""
        found = (read_briefing_records(path, project, most) for path in self.databases())
        best = max(filter(None, found), key=lambda notes: notes.cursor, default=None)
        return best if best is not None and best.cursor else None

    def databases(self) -> list[Path]:
        """Return the files of the built-in indexes, if these are used: one for each embedder."""
        index = self.folder / "index"
        if not index.is_dir() or self.config.index != SQLITE:
            return []
        folders = [each for each in index.iterdir() if each.name.endswith(f"-{FORMAT}")]
        return sorted(path for each in folders if (path := each / _DATABASE).is_file())

    def waiting(self, most: int) -> list[str] | None:
        """Return so many nodes that no index knows of yet; None if that is not known.

        These are what the log names past the index that is furthest, and what that one failed to
        take in.
        """
        found = [told for path in self.databases() if (told := read_failed_uris(path, most))]
        if not found:  # nobody asks an index that is not there
            return [] if self.config.index == SQLITE else None
        cursor, failed = max(found, key=lambda told: told[0])
        names = names_since(self.folder, cursor, _FILES * most)
        if names is None:
            return None
        folders = dict.fromkeys(name.rpartition("/")[0] for name in names)
        places = (Uri.of_key(folder) for folder in folders)
        fresh = [str(place) for place in places if place is not None and place.is_node]
        return list(dict.fromkeys((*failed, *fresh)))[:most]


def open_to_read(environ: Mapping[str, str]) -> Reading:
    """Open the memory that this user configured; `StorageSelectionError` if it can't be had."""
    config = load_config(environ)
    backend = select_backend(config.storage)
    store = find_store(config.home, backend.identity, backend).confirmed()
    layout = laid_out(config, backend, store, read_only=True)
    return Reading(ReadOnly(layout), config, store.folder, config.user, layout)
