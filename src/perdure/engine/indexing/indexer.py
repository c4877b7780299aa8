"""The indexer: from nodes to the records that an index should have of them, with vectors."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from perdure.context.files import META, Files
from perdure.context.layouts.names import folded
from perdure.context.links import names_in
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, field, replace
from perdure.engine.summaries import Beginning, Firsts, Summaries
from perdure.errors import (
    BrokenNodeError,
    EmbeddingError,
    InvalidValueError,
    NodeNotFoundError,
    PerdureError,
)
from perdure.index.contract import KeptIndex
from perdure.index.memo import VectorMemo
from perdure.model import IndexRecord, Uri
from perdure.model.record import LINKS, OWNER_SPACE

if TYPE_CHECKING:
    from perdure.context.reading import RealFiles
    from perdure.engine.lasting import KnownRecords
    from perdure.model.values import JSON

BATCH = 1_000
"""Read this many places together; without vectors, write them in one transaction."""
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


def batched(places: Iterable[Uri], size: int) -> Iterator[list[Uri]]:
    remaining = iter(places)
    while batch := list(islice(remaining, size)):
        yield batch


class Indexer:
    def __init__(
        self, reader: NodeReader, memo: VectorMemo | None, summaries: Summaries | None = None
    ) -> None:
        self.reader = reader
        self._memo = memo
        self._summaries = summaries or Summaries(reader)

    def firsts(self, index: KeptIndex) -> Firsts:
        """Return the cache of how the folders begin that an index has records of."""
        return Firsts(self._summaries, index)

    @property
    def indexes_folders(self) -> bool:
        """Whether folders have records. Only a search by vector uses them."""
        return self._memo is not None

    def demand_model(self) -> None:
        """Raise an error if texts should be embedded and the model does not work now."""
        if self._memo is not None:
            self._memo.demand()

    def batch(
        self,
        places: Iterable[Uri],
        beginning: Beginning | None = None,
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
        beginning: Beginning | None = None,
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
        beginning: Beginning | None,
        known: "KnownRecords | None",
        files: "RealFiles | None" = None,
    ) -> list[IndexRecord]:
        if not place.is_node:
            return self._summaries.records(place, beginning) if self.indexes_folders else []
        try:
            stored = self.reader.active(place, files)
        except NodeNotFoundError:
            batch.files[place] = {META: (meta := self.reader.look(place, META))}
            if meta is None:
                return []
            try:
                stored = self.reader.active(place)  # it was written since, or it is not active
            except NodeNotFoundError:
                return []
        from perdure.engine.lasting import with_lasting, with_stated  # noqa: PLC0415 - only writers
        from perdure.engine.noting import with_note  # noqa: PLC0415 - as above
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
                failures, is_outage = 0, not memo.answers()
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
    from perdure.index.records import embedded, is_whole  # noqa: PLC0415 - only writers

    spots: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for uri, of_uri in records.items():
        for at, record in enumerate(of_uri):
            if not is_whole(record):
                spots[Uri.parse(uri).account, str(record.filters[OWNER_SPACE])].append((uri, at))
    done = {uri: list(of_uri) for uri, of_uri in records.items()}
    for (account, owner), of_owner in spots.items():
        texts = [embedded(records[uri][at]) for uri, at in of_owner]
        vectors = memo.vectors(account, owner, texts)
        for (uri, at), vector in zip(of_owner, vectors, strict=True):
            done[uri][at] = records[uri][at].with_vector(vector)
    return done
