"""Summaries of folders: a few lines, built from the abstracts in them, without a model.

The summary of a folder of folders is built from their children. Summaries are stored in a derived
tier and can be built again. The first children of a large folder are cached, so that it is not
listed again for each node that is added to it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from perdure.context.files import ABSTRACT, OVERVIEW, said_at
from perdure.context.outbox import directory_payload
from perdure.context.reading import NodeReader, abstract_at
from perdure.dataclass import dataclass
from perdure.engine.building import Records
from perdure.index.contract import KeptIndex
from perdure.model import IndexRecord, Level, RequestContext, Role, Uri
from perdure.model.record import ACCOUNT, OWNER_SPACE, record_id
from perdure.model.values import JSON, MAX_ABSTRACT, MAX_OVERVIEW, shortened
from perdure.storage import Locator

_LEAST = 2
"""A folder with fewer children has no summary."""
MOST = 20
"""Describe at most this many children of a folder."""
_MOST_BELOW = 5
"""And this many children of each folder in it."""


FirstChildren = Callable[[Uri], Sequence[str]]
"""Returns the URIs of the first children of a folder, in order."""


class SummaryStore(Protocol):
    """The tier of summaries, which may be deleted at any time."""

    def read(self, locator: Locator) -> str:
        """Return a text; raises an error of the storage seam if there is none."""

    def write_all(self, changes: Mapping[Locator, str | None]) -> None: ...


class Summaries:
    def __init__(self, reader: NodeReader, store: SummaryStore | None = None) -> None:
        self._reader = reader
        self._store = store

    def records(self, folder: Uri, beginning: FirstChildren | None = None) -> list[IndexRecord]:
        """Return the records of a folder, and store its summary; none for one child."""
        payload = self.payload(folder, beginning)
        return [] if payload is None else self.records_from(payload)

    def payload(
        self, folder: Uri, beginning: FirstChildren | None = None
    ) -> dict[str, JSON] | None:
        """Return the payload of a directory event; None if a folder has no records."""
        owner = self._owner(folder)
        if folder.is_node or not owner:
            return None
        beginning = beginning or self.listed
        return directory_payload(
            folder, owner, self._described(beginning(folder)[:MOST], beginning)
        )

    def records_from(self, payload: Mapping[str, JSON]) -> list[IndexRecord]:
        """Return the records of a directory event; reads no node."""
        folder = Uri.parse(str(payload["directory"]))
        siblings = payload["siblings"]
        lines = [
            _line(Uri.parse(str(each["uri"])), str(each["abstract"]))
            for each in (siblings if isinstance(siblings, list | tuple) else ())
            if isinstance(each, Mapping)
        ]
        if len(lines) < _LEAST:
            lines = []
        self._write(folder, lines)
        owner, texts = str(payload["owner_space"]), _texts(folder, lines) if lines else {}
        return [_record(folder, owner, level, text) for level, text in texts.items()]

    def texts(self, folder: Uri, first: Iterable[str]) -> dict[Level, str]:
        """Return the texts of the records of a folder with these first children."""
        children = self._described(first, self.listed)
        return _texts(folder, [_line(Uri.parse(uri), abstract) for uri, abstract in children])

    def listed(self, folder: Uri) -> list[str]:
        """Return the URIs of the first children of a folder; more than `LARGE` of a large one."""
        admin = RequestContext(folder.account, "summaries", role=Role.ADMIN)
        return self._reader.first_children(str(folder), admin, LARGE + 1)

    def is_there(self, place: Uri) -> bool:
        """Whether a place has an active node."""
        return self._reader.is_active(place)

    def _owner(self, folder: Uri) -> str:
        """Return the owner of a folder; empty above all owners, and for a session without one."""
        if len(folder.path) < (1 if folder.path[:1] == ("resources",) else 2):
            return ""
        return folder.owner_space or self._reader.reach.session_owner(folder) or ""

    def _described(
        self, first: Iterable[str], beginning: FirstChildren | None
    ) -> Iterator[tuple[str, str]]:
        """Yield each of these URIs with its abstract; that of a folder lists its first children."""
        for place in map(Uri.parse, first):
            stored = abstract_at(self._reader, place) if place.is_node else None
            abstract = " ".join(stored.split()) if isinstance(stored, str) else ""
            if not abstract and not place.is_node and beginning is not None:
                below = self._described(beginning(place)[:_MOST_BELOW], None)
                abstract = "; ".join(_line(Uri.parse(uri), line) for uri, line in below)
            yield str(place), abstract

    # ------------------------------------------------------------ the tier
    def _write(self, folder: Uri, lines: list[str]) -> None:
        """Write the changed texts of a summary; remove an empty one."""
        if self._store is None:
            return
        texts = {ABSTRACT: abstract_of(folder, lines), OVERVIEW: overview_of(lines)}
        wanted = {
            Locator(folder.key).child(name): text if lines else None for name, text in texts.items()
        }
        read = self._store.read
        changed = {at: text for at, text in wanted.items() if said_at(at, read) != text}
        if changed:
            self._store.write_all(changed)


def _line(place: Uri, abstract: str) -> str:
    return f"{place.words}: {abstract}" if abstract else place.words


def _texts(folder: Uri, lines: Sequence[str]) -> dict[Level, str]:
    return {Level.ABSTRACT: abstract_of(folder, lines), Level.OVERVIEW: overview_of(lines)}


def abstract_of(folder: Uri, lines: Iterable[str]) -> str:
    names = ", ".join(line.partition(":")[0] for line in lines)
    return shortened(f"{folder.words}: {names}", MAX_ABSTRACT)


def overview_of(lines: Iterable[str]) -> str:
    return shortened("".join(f"- {line}\n" for line in lines), MAX_OVERVIEW)


def _record(folder: Uri, owner: str, level: Level, text: str) -> IndexRecord:
    return IndexRecord(
        id=record_id(str(folder), level),
        uri=str(folder),
        level=level,
        text=text,
        filters={
            ACCOUNT: folder.account,
            OWNER_SPACE: owner,
            "category": folder.category,
            "session_id": folder.session,
            "project": "",
            "parent_uri": str(folder.parent),
        },
        payload={"title": folder.words, "folder": True},
    )


LARGE = 100
"""Cache the first children of a folder with more children than this."""
_LEVELS = Level.ABSTRACT, Level.OVERVIEW


@dataclass(frozen=True, slots=True)
class _LargeFolder:
    uris: tuple[str, ...]
    texts: tuple[str, ...]
    """The texts of the records of the folder."""


class LargeFolders:
    """Caches the first children of large folders. Small ones are listed each time.

    An entry is valid while the index has the same texts of the folder, except for the nodes that
    changed after the index was updated. An edit by hand in a large folder may not show until the
    folder is listed again.
    """

    def __init__(self, summaries: Summaries, index: KeptIndex) -> None:
        self._summaries = summaries
        self._index = index
        self._known: dict[Uri, _LargeFolder] = {}

    def after(self, changed: Iterable[Uri]) -> "FolderListings":
        """Return the listings for an update of the index in which these nodes changed."""
        return FolderListings(self, self._summaries, changed)

    def before(self, folder: Uri) -> tuple[str, ...]:
        """Return the first children of a large folder as of the index; empty if unknown."""
        known = self._known.get(folder)
        if known is None or known.texts != self._indexed_texts(folder):
            return ()
        return known.uris

    def cache(self, listings: "FolderListings", records: Records) -> None:
        """Cache the listings of large folders, after the index has these records."""
        for folder, uris in listings.large.items():
            new = records.get(str(folder))
            if new is not None:
                self._known[folder] = _LargeFolder(uris, tuple(record.text for record in new))
            elif folder not in self._known or self._known[folder].uris != uris:
                texts = self._summaries.texts(folder, uris)
                self._known[folder] = _LargeFolder(uris, tuple(texts.values()))

    def _indexed_texts(self, folder: Uri) -> tuple[str, ...]:
        ids = [record_id(str(folder), level) for level in _LEVELS]
        records = self._index.read(folder.account, ids)
        return tuple(records[id_].text for id_ in ids if id_ in records)


class FolderListings:
    """The first children of folders during one update of an index; each is listed at most once."""

    def __init__(self, firsts: LargeFolders, summaries: Summaries, changed: Iterable[Uri]) -> None:
        self._firsts = firsts
        self._summaries = summaries
        self._changed: dict[Uri, list[Uri]] = defaultdict(list)
        for place in changed:
            self._changed[place.parent].append(place)
        self._found: dict[Uri, tuple[str, ...]] = {}
        self.large: dict[Uri, tuple[str, ...]] = {}
        """The listings of large folders, to cache after the update."""

    def __call__(self, folder: Uri) -> tuple[str, ...]:
        if folder not in self._found:
            self._found[folder] = self._followed(folder) or self._listed(folder)
        return self._found[folder]

    def _listed(self, folder: Uri) -> tuple[str, ...]:
        every = self._summaries.listed(folder)
        first = tuple(every[:MOST])
        if len(every) > LARGE:
            self.large[folder] = first
        return first

    def _followed(self, folder: Uri) -> tuple[str, ...]:
        """Return the first children by cache and changes; empty if it must be listed."""
        first = self._firsts.before(folder)
        if not first:
            return ()
        # A change after the last of them does not concern them.
        near = {str(place): place for place in self._changed[folder] if str(place) <= first[-1]}
        if not all(map(self._summaries.is_there, near.values())):
            return ()
        self.large[folder] = tuple(sorted({*first, *near}))[:MOST]
        return self.large[folder]
