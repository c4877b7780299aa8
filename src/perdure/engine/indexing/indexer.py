"""The indexer: from nodes to the records that an index should have of them, with vectors."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from perdure.context.events import directory_payload
from perdure.context.links import names_in
from perdure.context.node_files import ABSTRACT, META, OVERVIEW, Files, read_text
from perdure.context.note_names import folded
from perdure.context.reader import NodeReader, abstract_at
from perdure.dataclass import dataclass, field, replace
from perdure.errors import (
    BrokenNodeError,
    EmbeddingError,
    InvalidValueError,
    NodeNotFoundError,
    PerdureError,
)
from perdure.index.contract import NodeIndex
from perdure.index.vectors import VectorMemo
from perdure.model import IndexRecord, Level, RequestContext, Role, Uri
from perdure.model.node import ACCOUNT, LINKS, OWNER_SPACE, record_id
from perdure.model.values import JSON, MAX_ABSTRACT, MAX_OVERVIEW, shortened
from perdure.storage import Locator

if TYPE_CHECKING:
    from perdure.context.reader import NoteTexts
    from perdure.engine.briefing_records import KnownRecords

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
        changed = {at: text for at, text in wanted.items() if read_text(at, read) != text}
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

    def __init__(self, summaries: Summaries, index: NodeIndex) -> None:
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

    def cache(self, listings: "FolderListings", records: Mapping[str, list[IndexRecord]]) -> None:
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


_EMBED_TEXTS = 128
"""Embed about this many texts in one step, after which a build can be stopped."""
_RETRY_MODEL_AFTER = 3
"""After this many failures in a row, test whether the model itself fails."""
_DISAMBIGUATION = re.compile(r" \([0-9a-f]{6}\)$")
"""Ends the file name of a memory if another memory has the same name."""

Records = dict[str, list[IndexRecord]]
FolderPayloads = Mapping[str, Mapping[str, "JSON"]]
"""The payloads of directory events, by the URI of the folder."""


@dataclass(slots=True)
class IndexBatch:
    """The records that an index should have of some places, and the errors of some of them."""

    records: Records = field(default_factory=dict)
    failed: dict[str, PerdureError] = field(default_factory=dict)
    """Nodes that can't be read, and nodes without vectors, which only words can find."""
    files: dict[Uri, Files] = field(default_factory=dict)
    """The files that the records of a node were built from."""
    outage: PerdureError | None = None
    """Why no text at all can be embedded now; None if the model works."""


class Indexer:
    def __init__(
        self, reader: NodeReader, memo: VectorMemo | None, summaries: Summaries | None = None
    ) -> None:
        self.reader = reader
        self._memo = memo
        self._summaries = summaries or Summaries(reader)

    def firsts(self, index: NodeIndex) -> LargeFolders:
        """Return the cache of how the folders begin that an index has records of."""
        return LargeFolders(self._summaries, index)

    @property
    def indexes_folders(self) -> bool:
        """Whether folders have records. Only a search by vector uses them."""
        return self._memo is not None

    def demand_model(self) -> None:
        """Raise an error if texts should be embedded and the model does not work now."""
        if self._memo is not None:
            self._memo.check_embedder()

    def batch(
        self,
        places: Iterable[Uri],
        beginning: FirstChildren | None = None,
        known: "KnownRecords | None" = None,
        folder_payloads: FolderPayloads = MappingProxyType({}),
    ) -> IndexBatch:
        """Return the records that an index should have of these places as they are now.

        A place without an active node has none. If there are vectors, a folder has a summary of
        what is in it: that of its event's payload, if there is one.
        """
        folders = folder_payloads if self.indexes_folders else {}
        others = (place for place in places if str(place) not in folders) if folders else places
        batch = self._read(others, beginning, known)
        for uri, payload in folders.items():
            batch.records[uri] = self._summaries.records_from(payload)
        if self._memo is not None:
            self._embed(batch, self._memo)
        return batch

    def steps(self, places: Iterable[Uri]) -> Iterator[IndexBatch]:
        """Yield the same in steps of a limited number of texts."""
        read = self._read(places)
        if self._memo is None:
            yield read
            return
        for uris in _portions(read.records):
            failed = {uri: read.failed[uri] for uri in uris if uri in read.failed}
            files = {
                place: read.files[place] for uri in uris if (place := Uri.parse(uri)) in read.files
            }
            batch = IndexBatch({uri: read.records[uri] for uri in uris}, failed, files)
            self._embed(batch, self._memo)
            yield batch

    def _read(
        self,
        places: Iterable[Uri],
        beginning: FirstChildren | None = None,
        known: "KnownRecords | None" = None,
    ) -> IndexBatch:
        batch, every = IndexBatch(), list(places)
        files = self.reader.read_files([place for place in every if place.is_node])
        for place in every:
            uri = str(place)
            try:
                batch.records[uri] = self._records(place, batch, beginning, known, files)
            except (BrokenNodeError, InvalidValueError):
                # It may be half written; then its files differ from the log.
                batch.files[place] = self.reader.files(place) if place.is_node else {}
                try:
                    batch.records[uri] = self._records(place, batch, beginning, known)
                except (BrokenNodeError, InvalidValueError) as error:
                    batch.failed[uri] = error
                    batch.records[uri] = []
        return batch

    def _records(
        self,
        place: Uri,
        batch: IndexBatch,
        beginning: FirstChildren | None,
        known: "KnownRecords | None",
        files: "NoteTexts | None" = None,
    ) -> list[IndexRecord]:
        if not place.is_node:
            return self._summaries.records(place, beginning) if self.indexes_folders else []
        try:
            stored = self.reader.active(place, files)
        except NodeNotFoundError:
            batch.files[place] = {META: (meta := self.reader.text_at(place, META))}
            if meta is None:
                return []
            try:
                stored = self.reader.active(place)  # it was written since, or it is not active
            except NodeNotFoundError:
                return []
        from perdure.engine.briefing_records import (  # noqa: PLC0415 - only writers
            with_lasting,
            with_note,
            with_stated,
        )
        from perdure.index.records import records_of  # noqa: PLC0415 - as above

        batch.files[place] = stored.files
        is_named = not place.session and not stored.node.metadata.get("in_place")
        stem = stored.path.rpartition("/")[2].rpartition(".")[0]
        names = [_DISAMBIGUATION.sub("", folded(stem))] if is_named else ()
        node = stored.node
        records = with_note(records_of(node, stored.cid, names), stored)
        if (node.relations or "[" in node.content) and (links := names_in(node)):
            if not records:  # without words to search, its links still need a record
                records = records_of(replace(node, abstract=place.name), stored.cid)
            records[0] = records[0].with_payload({LINKS: [*sorted(links)]})
        return with_lasting(with_stated(records, node), node, known)

    def _embed(self, batch: IndexBatch, memo: VectorMemo) -> None:
        """Add vectors to all records: all at once, or node by node if that fails."""
        try:
            batch.records |= _embedded(batch.records, memo)
        except PerdureError as error:
            self._embed_each(batch, memo, error)

    def _embed_each(self, batch: IndexBatch, memo: VectorMemo, why: PerdureError) -> None:
        """Find out which nodes can't be embedded; none is tried during an outage of the model.

        The model is tested first, and again after some failures in a row, because a text that
        fails does not mean that the others do.
        """
        failures, is_outage = _RETRY_MODEL_AFTER, False
        for uri, records in list(batch.records.items()):
            if failures == _RETRY_MODEL_AFTER:
                failures, is_outage = 0, not memo.is_available()
            if is_outage:
                batch.failed[uri] = batch.outage = _outage(why)
                continue
            try:
                batch.records |= _embedded({uri: records}, memo)
                failures = 0
            except PerdureError as error:
                batch.failed[uri] = why = error
                failures += 1


def _outage(why: PerdureError) -> EmbeddingError:
    return why if isinstance(why, EmbeddingError) else EmbeddingError(str(why))


def _portions(records: Records) -> Iterator[list[str]]:
    """Yield URIs in portions that together have about as many texts as one step embeds."""
    portion: list[str] = []
    texts = 0
    for uri, of_uri in records.items():
        portion.append(uri)
        texts += len(of_uri)
        if texts >= _EMBED_TEXTS:
            yield portion
            portion, texts = [], 0
    if portion:
        yield portion


def _embedded(records: Records, memo: VectorMemo) -> Records:
    from perdure.index.records import embedding_text, is_whole  # noqa: PLC0415 - only writers

    spots: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for uri, of_uri in records.items():
        for at, record in enumerate(of_uri):
            if not is_whole(record):
                spots[Uri.parse(uri).account, str(record.filters[OWNER_SPACE])].append((uri, at))
    done = {uri: list(of_uri) for uri, of_uri in records.items()}
    for (account, owner), of_owner in spots.items():
        texts = [embedding_text(records[uri][at]) for uri, at in of_owner]
        vectors = memo.vectors(account, owner, texts)
        for (uri, at), vector in zip(of_owner, vectors, strict=True):
            done[uri][at] = records[uri][at].with_vector(vector)
    return done
