"""From nodes to what an index holds of them, and keeping the two in step."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from perdure.artifacts import CID
from perdure.context.files import FILES, META, OWNER, Files
from perdure.context.layouts.names import folded
from perdure.context.links import ScannedLinks, names_for, names_in
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, field, replace
from perdure.engine.summaries import Beginning, Firsts, Summaries
from perdure.errors import (
    BrokenNodeError,
    ConcurrentModificationError,
    DamageError,
    EmbeddingError,
    InvalidValueError,
    NodeNotFoundError,
    PerdureError,
    StorageError,
)
from perdure.index.account import failures
from perdure.index.contract import KeptIndex
from perdure.index.filters import stamp
from perdure.index.memo import VectorMemo
from perdure.model import IndexRecord, Uri
from perdure.model.record import LINKS, OWNER_SPACE
from perdure.model.uri import name_of
from perdure.storage import Locator
from perdure.storage.history import History

if TYPE_CHECKING:
    import sqlite3

    from perdure.context.reading import RealFiles
    from perdure.engine.lasting import KnownRecords
    from perdure.index.account.failures import EventTable
    from perdure.model.values import JSON

BATCH = 1_000
"""So many places are read together, and written in one transaction where nothing is embedded."""

Records = dict[str, list[IndexRecord]]


@dataclass(slots=True)
class IndexBatch:
    """What an index should hold of some places, and what is wrong with some of them."""

    records: Records = field(default_factory=dict)
    failed: dict[str, PerdureError] = field(default_factory=dict)
    """Nodes that can't be read, and those that got no vectors: these are found by words only."""
    files: dict[Uri, Files] = field(default_factory=dict)
    """The files of nodes that decided what is made of them."""
    outage: PerdureError | None = None
    """Why no text at all can be embedded now, if it is so."""


class IndexUpdate(NamedTuple):
    position: int
    """Up to where the index is right; 0 if it is not finished."""
    places: frozenset[Uri] = frozenset()
    failed: Mapping[str, PerdureError] = MappingProxyType({})
    unlogged: frozenset[str] | None = None
    """Which of the places are not what the log says, if these were the only ones looked at."""


def batched(places: Iterable[Uri], size: int) -> Iterator[list[Uri]]:
    remaining = iter(places)
    while batch := list(islice(remaining, size)):
        yield batch


class LogReader:
    """Reads names and contents in a history, for the places that a reader reads."""

    def __init__(self, history: History, reader: NodeReader, *, folders: bool = False) -> None:
        self._history = history
        self._reader = reader
        self._folders = folders

    def position(self) -> int:
        return self._history.position()

    def changed(self, account_id: str, after: int, until: int | None = None) -> list[Uri]:
        """Return the nodes whose texts were named after a position; with folders, those above, too.

        With `until`, what was named later does not count. Whose a session is, is told of all
        folders in it.
        """
        if until is None:
            self._history.position()  # so that the names are known
        below = self._below(account_id)
        places: dict[Uri, None] = {}
        named = self._history.store.catalogue.named_since(after, until)
        keys = [key for key in named if key.startswith(below)]
        folders: dict[Uri, None] = {}
        for place in filter(None, map(Uri.of_key, dict.fromkeys(map(_folder, keys)))):
            places[place] = None
            if self._folders:
                folders[place.parent] = None
        for folder in folders:
            places |= dict.fromkeys((folder, *folders_of(folder)) if len(folder.path) > 1 else ())
        for key in keys if self._folders else ():
            session = self._place(key) if key.endswith(f"/{OWNER}") else None
            for node in () if session is None else self._reader.walk(session):
                places |= dict.fromkeys(folders_of(node))
        return list(places)

    def is_empty(self, account_id: str, position: int) -> bool:
        """Whether no text of an account was ever named up to a position."""
        return not self._history.store.catalogue.ever_named(self._below(account_id), position)

    def absent(self, nodes: Iterable[Uri], position: int) -> set[Uri]:
        """Return which of these nodes had no meta as of then, so that there was none."""
        metas = {f"{place.key}/{META}": place for place in nodes}
        said = self._history.store.catalogue.contents(list(metas), position)
        return {metas[key] for key, cid in said.items() if cid is None}

    def differing(self, read: Mapping[Uri, Files], position: int) -> set[str]:
        """Return the places where files were read that are not what the log says as of then."""
        files = {
            f"{place.key}/{name}": (place, found)
            for place, found_there in read.items()
            for name, found in found_there.items()
        }
        said = self._history.store.catalogue.contents(list(files), position)
        return {
            str(place)
            for key, (place, found) in files.items()
            if said[key] != (CID.of(found.encode()) if isinstance(found, str) else found)
        }

    def unlogged(self, made: IndexBatch, position: int) -> set[str]:
        """Return the places that came out otherwise than the log has it as of then."""
        return self.differing(made.files, position) | made.failed.keys()

    def missed(self, account_id: str, seen: Collection[Uri], position: int) -> Iterator[Uri]:
        """Yield the places that have files of a node as of then, but are not among those seen."""
        names = self._history.store.catalogue.names(self._below(account_id), position)
        halves = (key.rpartition("/") for key in names)
        folders = {folder for folder, _, name in halves if name in FILES}
        for folder in folders - {place.key for place in seen}:
            place = Uri.of_key(folder)
            if place is not None and place.is_node:
                yield place

    def place_of(self, account_id: str, key: str) -> Uri | None:
        """Return the place that a text is of; None if it is not of this account."""
        return self._place(key) if key.startswith(self._below(account_id)) else None

    def _below(self, account_id: str) -> str:
        return self._reader.folder(Uri(account_id)).key + "/"

    def _place(self, key: str) -> Uri | None:
        return Uri.of_key(_folder(key))


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def folders_of(place: Uri) -> Iterator[Uri]:
    """Yield the folders above a node that have an owner, the nearest first."""
    folder = place.parent
    while len(folder.path) > 1:
        yield folder
        folder = folder.parent


def with_folders(places: Iterable[Uri]) -> Iterator[Uri]:
    """Yield places, and each of the folders above them once."""
    folders: set[Uri] = set()
    for place in places:
        yield place
        for folder in folders_of(place):
            if folder not in folders:
                folders.add(folder)
                yield folder


Progress = Callable[[int], None]
"""Is told how many places more were looked at."""
Steps = Callable[[Iterable[Uri]], Iterator[IndexBatch]]
"""Makes the records of places, some at a time."""
ShouldContinue = Callable[[], bool]
"""Is asked after each step; False stops."""


class IndexBuild:
    """One attempt to make the index of an account. Its cursor stays 0 until `finish`.

    What the index holds of an earlier attempt, and is right, is let be. Nodes may change meanwhile:
    `position` is the newest up to which all of it was looked at, and the log is compared as of it.
    """

    def __init__(self, index: KeptIndex, account_id: str, steps: Steps, logged: LogReader) -> None:
        self.position = 0
        self._index = index
        self._account = account_id
        self._steps = steps
        self._logged = logged
        self._stamps = index.stamps(account_id)
        self._places: set[Uri] = set()
        self._failed: dict[str, PerdureError] = {}
        self._written: set[str] = set()

    def add(self, places: Iterable[Uri], progress: Progress, goes_on: ShouldContinue) -> bool:
        """Index places as they are now; False if it was stopped, after a whole step.

        If the model is out of order, that is an error, and what was made so far stays: an index
        that lacks vectors must not pass for a finished one.
        """
        for batch in batched(places, BATCH):
            for made in self._steps(batch):
                if made.outage is not None:
                    raise made.outage
                self._write(made)
                progress(len(made.records))
                if not goes_on():
                    return False
        return True

    def lost(self) -> list[Uri]:
        """Return the places that somebody took out of the index after they were added."""
        return [
            Uri.parse(uri) for uri in self._written.difference(self._index.stamps(self._account))
        ]

    def finish(self) -> IndexUpdate:
        """Take out what is of no place any more, and say up to where the index is right."""
        missed = self._logged.missed(self._account, self._places, self.position)
        unlogged = {str(place) for place in missed}
        there = {*self._index.stamps(self._account)} - self._written
        gone: Records = {uri: [] for uri in there | unlogged}
        if self._places or gone:
            self._index.replace(
                self._account, gone, cursor=self.position, expect=0, unlogged=unlogged
            )
        return IndexUpdate(self.position, frozenset(self._places), self._failed)

    def stopped(self) -> IndexUpdate:
        return IndexUpdate(0, frozenset(self._places), self._failed)

    def _write(self, made: IndexBatch) -> None:
        unlogged = self._logged.unlogged(made, self.position)
        wrong = {
            uri: records
            for uri, records in made.records.items()
            if uri in unlogged or self._differs(uri, records)
        }
        if wrong:
            self._index.replace(self._account, wrong, expect=0, unlogged=unlogged)
        for uri, records in made.records.items():
            self._places.add(Uri.parse(uri))
            (self._written.add if records else self._written.discard)(uri)
            self._failed.pop(uri, None)
        for uri in wrong:
            self._stamps.pop(uri, None)
        self._failed |= made.failed

    def _differs(self, uri: str, records: list[IndexRecord]) -> bool:
        if uri not in self._stamps:
            return bool(records) or uri in self._written
        return not records or stamp(records) != self._stamps[uri]


def accounts_of(reader: NodeReader) -> Iterator[str]:
    for folder in reader.backend.list(Locator("accounts")):
        account = name_of(folder.name)
        if account is not None:
            yield account


INLINE_LIMIT = 200
"""So many places are indexed while somebody waits; more is left to a worker."""
_ATTEMPTS = 20
_LONGEST_WAIT = 10.0
"""Seconds."""
_TEXTS = 128
"""About how many texts are embedded before somebody can stop."""
_DOUBTS = 3
"""After so many failures in a row it may be the model's fault, and not the texts'."""


FolderPayloads = Mapping[str, Mapping[str, "JSON"]]
"""The payloads of directory events, by the URI of the folder."""


class BuildLock(Protocol):
    """Lets one at a time make the index of an account."""

    def __call__(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Say whether it is us; who waits is, in the end."""


def _any_event(db: "sqlite3.Connection") -> bool:
    return db.execute(failures.ANY).fetchone() is not None


def _no_lock(account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
    del account_id, wait
    return nullcontext(enter_result=True)


class Indexer:
    def __init__(
        self, reader: NodeReader, memo: VectorMemo | None, summaries: Summaries | None = None
    ) -> None:
        self.reader = reader
        self._memo = memo
        self._summaries = summaries or Summaries(reader)

    def firsts(self, index: KeptIndex) -> Firsts:
        """Return who remembers how the folders begin that an index has records of."""
        return Firsts(self._summaries, index)

    @property
    def indexes_folders(self) -> bool:
        """Whether folders have records: these are searched by vector only."""
        return self._memo is not None

    def demand_model(self) -> None:
        """Refuse to go on if texts should be embedded, and none can be now."""
        if self._memo is not None:
            self._memo.demand()

    def batch(
        self,
        places: Iterable[Uri],
        beginning: Beginning | None = None,
        known: "KnownRecords | None" = None,
        folder_payloads: "FolderPayloads" = MappingProxyType({}),
    ) -> IndexBatch:
        """Return what an index should hold of these places as they are now.

        Where no node is in use, that is nothing. A folder has the summary of what is in it, if
        there are vectors: as an event told of it, if one did.
        """
        folders = folder_payloads if self.indexes_folders else {}
        others = (place for place in places if str(place) not in folders) if folders else places
        made = self._read(others, beginning, known)
        for uri, payload in folders.items():
            made.records[uri] = self._summaries.records_from(payload)
        if self._memo is not None:
            self._embed(made, self._memo)
        return made

    def steps(self, places: Iterable[Uri]) -> Iterator[IndexBatch]:
        """Make the same in steps of not too many texts, so that somebody can stop in between."""
        read = self._read(places)
        if self._memo is None:
            yield read
            return
        for uris in _portions(read.records):
            failed = {uri: read.failed[uri] for uri in uris if uri in read.failed}
            files = {
                place: read.files[place] for uri in uris if (place := Uri.parse(uri)) in read.files
            }
            made = IndexBatch({uri: read.records[uri] for uri in uris}, failed, files)
            self._embed(made, self._memo)
            yield made

    def _read(
        self,
        places: Iterable[Uri],
        beginning: Beginning | None = None,
        known: "KnownRecords | None" = None,
    ) -> IndexBatch:
        made, every = IndexBatch(), list(places)
        files = self.reader.read_files([place for place in every if place.is_node])
        for place in every:
            uri = str(place)
            try:
                made.records[uri] = self._records(place, made, beginning, known, files)
            except (BrokenNodeError, InvalidValueError):
                # It may be half written: then what it says now is not what the log says.
                made.files[place] = self.reader.files(place) if place.is_node else {}
                try:
                    made.records[uri] = self._records(place, made, beginning, known)
                except (BrokenNodeError, InvalidValueError) as error:
                    made.failed[uri] = error
                    made.records[uri] = []
        return made

    def _records(
        self,
        place: Uri,
        made: IndexBatch,
        beginning: Beginning | None,
        known: "KnownRecords | None",
        files: "RealFiles | None" = None,
    ) -> list[IndexRecord]:
        if not place.is_node:
            return self._summaries.records(place, beginning) if self.indexes_folders else []
        try:
            stored = self.reader.active(place, files)
        except NodeNotFoundError:
            made.files[place] = {META: (meta := self.reader.look(place, META))}
            if meta is None:
                return []
            try:
                stored = self.reader.active(place)  # it was written since; else it is not in use
            except NodeNotFoundError:
                return []
        from perdure.engine.lasting import with_lasting, with_stated  # noqa: PLC0415 - if any is made
        from perdure.engine.noting import with_note  # noqa: PLC0415 - as before
        from perdure.index.records import records_of  # noqa: PLC0415 - as before

        made.files[place] = stored.files
        is_named = not place.session and not stored.node.metadata.get("in_place")
        stem = stored.path.rpartition("/")[2].rpartition(".")[0]
        names = [_APART.sub("", folded(stem))] if is_named else ()
        node = stored.node
        records = with_note(records_of(node, stored.cid, names), stored)
        if (node.relations or "[" in node.content) and (links := names_in(node)):
            if not records:  # it has no words to search, and still leads somewhere
                records = records_of(replace(node, abstract=place.name), stored.cid)
            records[0] = records[0].with_payload({LINKS: [*sorted(links)]})
        return with_lasting(with_stated(records, node), node, known)

    def _embed(self, made: IndexBatch, memo: VectorMemo) -> None:
        """Give all records their vectors: together, or one node after another if that fails."""
        try:
            made.records |= _embedded(made.records, memo)
        except PerdureError as error:
            self._embed_each(made, memo, error)

    def _embed_each(self, made: IndexBatch, memo: VectorMemo, why: PerdureError) -> None:
        """Find out which nodes can't be embedded; while the model is out of order, none is tried.

        Whether it is, is asked first, and again after some failures in a row: not every text that
        fails is followed by others that would.
        """
        doubts, outage = _DOUBTS, False
        for uri, records in list(made.records.items()):
            if doubts == _DOUBTS:
                doubts, outage = 0, not memo.answers()
            if outage:
                made.failed[uri] = made.outage = _outage(why)
                continue
            try:
                made.records |= _embedded({uri: records}, memo)
                doubts = 0
            except PerdureError as error:
                made.failed[uri] = why = error
                doubts += 1


_APART = re.compile(r" \([0-9a-f]{6}\)$")
"""What tells the file of a memory from another with the same name."""


def _outage(why: PerdureError) -> EmbeddingError:
    return why if isinstance(why, EmbeddingError) else EmbeddingError(str(why))


def _portions(records: Records) -> Iterator[list[str]]:
    """Yield URIs, so many at a time that they have about as many texts as are embedded at once."""
    portion: list[str] = []
    texts = 0
    for uri, of_uri in records.items():
        portion.append(uri)
        texts += len(of_uri)
        if texts >= _TEXTS:
            yield portion
            portion, texts = [], 0
    if portion:
        yield portion


def _embedded(records: Records, memo: VectorMemo) -> Records:
    from perdure.index.records import embedded, is_whole  # noqa: PLC0415 - as before

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


class IndexFollower:
    """Brings an index up to the newest commit of a history.

    It goes by the log, so nothing that was committed can be missed, whoever died before they could
    tell. Of several who do it at once, one writes, and the others look again.
    """

    def __init__(
        self, history: History, index: KeptIndex, indexer: Indexer, build_lock: BuildLock = _no_lock
    ) -> None:
        self._history = history
        self.index = index
        self.indexer = indexer
        self._build_lock = build_lock
        self.log = LogReader(history, indexer.reader, folders=indexer.indexes_folders)
        self._firsts = indexer.firsts(index)
        self._unindexable: set[str] = set()
        """What can't be indexed, though it is just what the log says."""
        self._lock = threading.Lock()

    def places_indexed_early(
        self, account_id: str, before: frozenset[str] | None, caught: IndexUpdate
    ) -> list[Uri]:
        """Return some of the places that were indexed before their files were written.

        A commit is in the log before its files are. Who followed the log in between has moved the
        cursor past that commit, without what the files say. `before` had them when this began.
        """
        if before is None or caught.unlogged is None:
            unlogged = self.index.unlogged(account_id)
        else:
            unlogged = before.difference(map(str, caught.places)) | caught.unlogged
        if unlogged is None:  # nobody can tell which they are: those of late
            return self.log.changed(
                account_id, max(0, self.index.cursor(account_id) - INLINE_LIMIT)
            )
        return [Uri.parse(uri) for uri in sorted(unlogged - self._unindexable)[:INLINE_LIMIT]]

    def has_events(self, account_id: str) -> bool:
        """Whether the table of the index has events that failed, were claimed or registered."""
        table = cast("EventTable", self.index)
        return table.look_at_events(account_id, _any_event, absent=False)

    def index_state(self, account_id: str) -> tuple[int, bool, frozenset[str] | None]:
        """Return the cursor, whether events failed, and what was indexed too early, if known."""
        index = self.index
        return index.at_once(
            account_id,
            lambda: (
                index.cursor(account_id),
                self.has_events(account_id),
                index.unlogged(account_id),
            ),
        )

    def is_settled(self, cursor: int, unlogged: frozenset[str] | None) -> bool:
        """Whether all of the log is in an index with this cursor."""
        now = self._history.store.current().position
        return unlogged is not None and unlogged <= self._unindexable and 0 < cursor == now

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises. Nodes that the index does not have as they are now are read."""
        account, reader = place.account, self.indexer.reader
        try:
            fresh = {
                *self.behind(account),
                *self.places_indexed_early(account, None, IndexUpdate(0)),
            }
            kept = set(map(Uri.parse, self.index.leading_to(account, names_for(place, called))))
        except (DamageError, StorageError):
            fresh, kept = set(reader.walk(Uri(account))), set()
        scanned = ScannedLinks(reader, fresh).leading_to(place, called)
        return sorted({*(kept - fresh), *scanned}, key=str)

    def behind(self, account_id: str) -> list[Uri]:
        cursor = self.index.cursor(account_id)
        if cursor == 0:
            return list(self.places(account_id))
        return self.log.changed(account_id, cursor)

    def is_small(self, account_id: str) -> bool:
        return len(list(islice(self.places(account_id), INLINE_LIMIT + 1))) <= INLINE_LIMIT

    def catch_up(
        self,
        account_id: str,
        also: Iterable[Uri] = (),
        folder_payloads: FolderPayloads = MappingProxyType({}),
        *,
        since: int | None = None,
    ) -> IndexUpdate:
        """Index what changed since, and some more places that the caller asks for.

        A folder that changed no more is described by what an event told of it. `since` is where the
        cursor was just now. Threads take turns, so that who waits finds its change indexed with
        that of others. One that waits for long goes on: nothing depends on it.
        """
        is_ours = self._lock.acquire(blocking=False)
        if not is_ours:  # the thread that has it moves the cursor
            since, is_ours = None, self._lock.acquire(timeout=_LONGEST_WAIT)
        try:
            return self._catch_up(account_id, also, folder_payloads, since)
        finally:
            if is_ours:
                self._lock.release()

    def _catch_up(
        self,
        account_id: str,
        also: Iterable[Uri],
        folder_payloads: FolderPayloads,
        since: int | None,
    ) -> IndexUpdate:
        for _ in range(_ATTEMPTS):
            cursor = self.index.cursor(account_id) if since is None else since
            is_first, since, now = since is not None, None, self._history.store.current().position
            if cursor == 0:
                built = self.build(account_id)
                if built.places or not self.index.cursor(account_id):
                    return built
                continue  # somebody else has made it meanwhile
            changed = () if cursor == now else self.log.changed(account_id, cursor, now)
            places = dict.fromkeys((*changed, *also))
            if not places and cursor == now:
                return IndexUpdate(now)
            try:
                folder_payloads = {
                    uri: each
                    for uri, each in folder_payloads.items()
                    if Uri.parse(uri) not in changed
                }
                caught = self.update(
                    account_id, list(places), (cursor, now), folder_payloads=folder_payloads
                )
                return caught if is_first else caught._replace(unlogged=None)
            except ConcurrentModificationError:
                continue
        raise ConcurrentModificationError(
            f"others keep writing to the index of {account_id!a}. Fix: try again."
        )

    def build(
        self, account_id: str, position: int | None = None, progress: Progress = lambda _: None
    ) -> IndexUpdate:
        """Index all of an account, in steps; until the end, the index says it is unfinished.

        It is then as of now, or as of the position that the nodes are read at. If somebody else is
        at it, they are waited for.
        """
        with self._build_lock(account_id, wait=True):
            done = self.index.cursor(account_id)
            return IndexUpdate(done) if done else self._build(account_id, position, progress)

    def rebuild(self, account_id: str, progress: Progress = lambda _: None) -> IndexUpdate:
        """Throw the index of an account away, and make it again; not while the model is out."""
        with self._build_lock(account_id, wait=False) as ours:
            if not ours:
                raise ConcurrentModificationError(
                    f"another process makes the index of {account_id!a} just now. "
                    "Fix: let it finish, or end it and try again."
                )
            self.indexer.demand_model()
            self.index.delete_account_data(account_id)
            return self._build(account_id, None, progress)

    def build_on(
        self, account_id: str, goes_on: ShouldContinue, progress: Progress
    ) -> IndexUpdate | None:
        """Go on with the index of an account while another one answers; None if others are at it.

        It stops between two steps if it is told to. If the model is out of order, that is an error:
        an index without vectors must not take the place of one that has them. What changed
        meanwhile is looked at again, until little is left to be caught up with.
        """
        with self._build_lock(account_id, wait=False) as ours:
            if not ours or self.index.cursor(account_id):
                return None
            building = IndexBuild(self.index, account_id, self.indexer.steps, self.log)
            places, building.position = self.places(account_id), self._history.position()
            while building.add(places, progress, goes_on):
                now, lost = self._history.position(), building.lost()
                changed = self.log.changed(account_id, building.position)
                if len(changed) <= INLINE_LIMIT and not lost:
                    return building.finish()
                places, building.position = iter({*lost, *changed}), now
            return building.stopped()

    def _build(self, account_id: str, position: int | None, progress: Progress) -> IndexUpdate:
        now = self._history.position() if position is None else position
        building = IndexBuild(self.index, account_id, self.indexer.steps, self.log)
        building.position = now
        building.add(self.places(account_id), progress, lambda: True)
        building.add(building.lost(), lambda _: None, lambda: True)
        return building.finish()

    def update(
        self,
        account_id: str,
        places: Sequence[Uri],
        span: tuple[int, int],
        *,
        gone: Collection[Uri] = frozenset(),
        folder_payloads: FolderPayloads = MappingProxyType({}),
    ) -> IndexUpdate:
        """Make the records of these places again, and move the cursor over a span of the log.

        Of places that are known to be gone, nothing is read.
        """
        cursor, now = span
        failed: dict[str, PerdureError] = {}
        records: Records = {str(place): [] for place in gone}
        unlogged: set[str] = set()
        beginnings = self._firsts.after(places) if self.indexer.indexes_folders else None
        for batch in batched((place for place in places if place not in gone), BATCH):
            known = partial(self.index.read, account_id)
            here = {uri: each for uri, each in folder_payloads.items() if Uri.parse(uri) in batch}
            made = self.indexer.batch(batch, beginnings, known, here)
            records |= made.records
            failed |= made.failed
            differing = self.log.differing(made.files, now)
            unlogged |= differing | made.failed.keys()
            self._unindexable -= made.records.keys()
            self._unindexable |= made.failed.keys() - differing
        self.index.replace(account_id, records, cursor=now, expect=cursor, unlogged=unlogged)
        if beginnings is not None:
            self._firsts.keep(beginnings, records)
        return IndexUpdate(now, frozenset(places), failed, frozenset(unlogged))

    def places(self, account_id: str) -> Iterator[Uri]:
        """Yield every place of an account that has something to index."""
        nodes = self.indexer.reader.walk(Uri(account_id))
        return with_folders(nodes) if self.indexer.indexes_folders else nodes
