"""The follower: brings an index up to the newest commit of a history, or builds it whole."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from perdure.artifacts import CID
from perdure.context.links import ScannedLinks, names_for
from perdure.context.node_files import FILES, META, OWNER, Files
from perdure.context.reader import NodeReader
from perdure.errors import ConcurrentModificationError, DamageError, PerdureError, StorageError
from perdure.index import sql
from perdure.index.contract import NodeIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord, Uri
from perdure.model.uri import name_of
from perdure.storage import Locator
from perdure.storage.text_history import History

if TYPE_CHECKING:
    import sqlite3

    from perdure.engine.indexing.indexer import (
        FolderPayloads,
        IndexBatch,
        Indexer,
        LargeFolders,
        Records,
    )
    from perdure.index.sql import EventTable

BATCH = 1_000
"""Read this many places together; without vectors, write them in one transaction."""
INLINE_LIMIT = 200
"""Index at most this many places while a caller waits; a worker does the rest."""
_ATTEMPTS = 20
_LONGEST_WAIT = 10.0
"""Seconds."""

Progress = Callable[[int], None]
"""Is called with the number of further places that were looked at."""
ShouldContinue = Callable[[], bool]
"""Is called after each step; False stops."""


def batched(places: Iterable[Uri], size: int) -> Iterator[list[Uri]]:
    remaining = iter(places)
    while batch := list(islice(remaining, size)):
        yield batch


class IndexUpdate(NamedTuple):
    position: int
    """The position up to which the index is correct; 0 if it is not finished."""
    places: frozenset[Uri] = frozenset()
    failed: Mapping[str, PerdureError] = MappingProxyType({})
    unlogged: frozenset[str] | None = None
    """Those of the places that differ from the log; None if that is unknown."""


class BuildLock(Protocol):
    """Lets one process or thread at a time build the index of an account."""

    def __call__(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Yield whether the lock was acquired; with `wait` it always is."""


def _no_lock(account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
    del account_id, wait
    return nullcontext(enter_result=True)


def _any_event(db: "sqlite3.Connection") -> bool:
    return db.execute(sql.ANY_EVENT).fetchone() is not None


def accounts_of(reader: NodeReader) -> Iterator[str]:
    for folder in reader.backend.list(Locator("accounts")):
        account = name_of(folder.name)
        if account is not None:
            yield account


class LogReader:
    """Reads from a history which places changed, and compares places with it."""

    def __init__(self, history: History, reader: NodeReader, *, folders: bool = False) -> None:
        self.history = history
        self.reader = reader
        self.folders = folders
        """Whether folders have records. Only a search by vector uses them."""

    def position(self) -> int:
        return self.history.position()

    def changed(self, account_id: str, after: int, until: int | None = None) -> list[Uri]:
        """Return the nodes whose texts changed after a position; with folders, those above too.

        With `until`, later changes are ignored. A new owner of a session changes all folders in it.
        """
        if until is None:
            self.history.position()  # reads what other processes appended
        below = self._below(account_id)
        places: dict[Uri, None] = {}
        named = self.history.store.catalogue.named_since(after, until)
        keys = [key for key in named if key.startswith(below)]
        folders: dict[Uri, None] = {}
        for place in filter(None, map(Uri.of_key, dict.fromkeys(map(_folder, keys)))):
            places[place] = None
            if self.folders:
                folders[place.parent] = None
        for folder in folders:
            places |= dict.fromkeys((folder, *folders_of(folder)) if len(folder.path) > 1 else ())
        for key in keys if self.folders else ():
            session = Uri.of_key(_folder(key)) if key.endswith(f"/{OWNER}") else None
            for node in () if session is None else self.reader.walk(session):
                places |= dict.fromkeys(folders_of(node))
        return list(places)

    def is_empty(self, account_id: str, position: int) -> bool:
        """Whether an account had no text up to a position."""
        return not self.history.store.catalogue.ever_named(self._below(account_id), position)

    def absent(self, nodes: Iterable[Uri], position: int) -> set[Uri]:
        """Return those of the nodes that did not exist at a position, as they had no meta."""
        metas = {f"{place.key}/{META}": place for place in nodes}
        contents = self.history.store.catalogue.contents(list(metas), position)
        return {metas[key] for key, cid in contents.items() if cid is None}

    def differing(self, read: Mapping[Uri, Files], position: int) -> set[str]:
        """Return the places whose files, as they were read, differ from the log at a position."""
        files = {
            f"{place.key}/{name}": (place, content)
            for place, of_place in read.items()
            for name, content in of_place.items()
        }
        contents = self.history.store.catalogue.contents(list(files), position)
        return {
            str(place)
            for key, (place, content) in files.items()
            if contents[key] != (CID.of(content.encode()) if isinstance(content, str) else content)
        }

    def unlogged(self, batch: "IndexBatch", position: int) -> set[str]:
        """Return the places of a batch that failed, or differ from the log at a position."""
        return self.differing(batch.files, position) | batch.failed.keys()

    def missed(self, account_id: str, seen: Collection[Uri], position: int) -> Iterator[Uri]:
        """Yield the places that have files of a node at a position, but were not seen."""
        names = self.history.store.catalogue.names(self._below(account_id), position)
        halves = (key.rpartition("/") for key in names)
        folders = {folder for folder, _, name in halves if name in FILES}
        for folder in folders - {place.key for place in seen}:
            place = Uri.of_key(folder)
            if place is not None and place.is_node:
                yield place

    def place_of(self, account_id: str, key: str) -> Uri | None:
        """Return the place of a text; None if it is not in this account."""
        return Uri.of_key(_folder(key)) if key.startswith(self._below(account_id)) else None

    def _below(self, account_id: str) -> str:
        return self.reader.folder(Uri(account_id)).key + "/"


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


class IndexBuild:
    """One attempt to build the index of an account. Its cursor stays 0 until `finish`.

    Correct records of an earlier attempt are reused. Nodes may change during the build: `position`
    is the newest position as of which every place was looked at, and the log is compared as of it.
    """

    def __init__(
        self, index: NodeIndex, account_id: str, indexer: "Indexer", log: LogReader
    ) -> None:
        self.position = 0
        self._index = index
        self._account = account_id
        self._indexer = indexer
        self._log = log
        self._stamps = index.stamps(account_id)
        """What an earlier attempt wrote."""
        self._places: set[Uri] = set()
        self._failed: dict[str, PerdureError] = {}
        self._indexed: set[str] = set()

    def add(
        self, places: Iterable[Uri], progress: Progress, should_continue: ShouldContinue
    ) -> bool:
        """Index places as they are now; False if it was stopped after a step.

        An outage of the model is raised, and what was indexed so far stays: an index without
        vectors must not count as finished.
        """
        for places_together in batched(places, BATCH):
            for batch in self._indexer.steps(places_together):
                if batch.outage is not None:
                    raise batch.outage
                self._write(batch)
                progress(len(batch.records))
                if not should_continue():
                    return False
        return True

    def lost(self) -> list[Uri]:
        """Return the places that another process removed from the index after they were added."""
        stamps = self._index.stamps(self._account)
        return [Uri.parse(uri) for uri in self._indexed.difference(stamps)]

    def finish(self) -> IndexUpdate:
        """Remove the records of places that no longer exist, and set the cursor."""
        missed = self._log.missed(self._account, self._places, self.position)
        unlogged = {str(place) for place in missed}
        surplus = {*self._index.stamps(self._account)} - self._indexed
        gone: Records = {uri: [] for uri in surplus | unlogged}
        if self._places or gone:
            self._index.replace(
                self._account, gone, cursor=self.position, expect=0, unlogged=unlogged
            )
        return IndexUpdate(self.position, frozenset(self._places), self._failed)

    def stopped(self) -> IndexUpdate:
        return IndexUpdate(0, frozenset(self._places), self._failed)

    def _write(self, batch: "IndexBatch") -> None:
        unlogged = self._log.unlogged(batch, self.position)
        wrong = {
            uri: records
            for uri, records in batch.records.items()
            if uri in unlogged or self._differs(uri, records)
        }
        if wrong:
            self._index.replace(self._account, wrong, expect=0, unlogged=unlogged)
        for uri, records in batch.records.items():
            self._places.add(Uri.parse(uri))
            (self._indexed.add if records else self._indexed.discard)(uri)
            self._failed.pop(uri, None)
        for uri in wrong:
            self._stamps.pop(uri, None)
        self._failed |= batch.failed

    def _differs(self, uri: str, records: list[IndexRecord]) -> bool:
        if uri not in self._stamps:
            return bool(records) or uri in self._indexed
        return not records or stamp(records) != self._stamps[uri]


class IndexFollower:
    """Brings an index up to the newest commit of a history.

    It reads the log, so no commit is missed, even if the process that wrote it died at once. Of
    several processes that follow at once, one writes the index, and the others look again.
    """

    def __init__(
        self,
        log: LogReader,
        index: NodeIndex,
        make_indexer: "Callable[[], Indexer]",
        build_lock: BuildLock = _no_lock,
    ) -> None:
        self._history = log.history
        self.index = index
        self._make_indexer = make_indexer
        self._build_lock = build_lock
        self.log = log
        self._unindexable: set[str] = set()
        """What can't be indexed, although it is what the log has."""
        self._lock = threading.Lock()

    @cached_property
    def indexer(self) -> "Indexer":
        """Builds records; made when there is something to index."""
        return self._make_indexer()

    @cached_property
    def _firsts(self) -> "LargeFolders":
        return self.indexer.firsts(self.index)

    # ------------------------------------------------------------ state
    def index_state(self, account_id: str) -> tuple[int, bool, frozenset[str] | None]:
        """Return the cursor, whether there are events, and the places that differ from the log."""
        index, table = self.index, cast("EventTable", self.index)
        return index.read_snapshot(
            account_id,
            lambda: (
                index.cursor(account_id),
                table.read_events(account_id, _any_event, absent=False),
                index.unlogged(account_id),
            ),
        )

    def is_idle(self, account_id: str) -> bool:
        """Whether a worker has nothing to do."""
        cursor, has_events, unlogged = self.index_state(account_id)
        return not has_events and self.is_settled(cursor, unlogged)

    def is_settled(self, cursor: int, unlogged: frozenset[str] | None) -> bool:
        """Whether an index with this cursor has all of the log."""
        now = self._history.store.current().position
        return unlogged is not None and unlogged <= self._unindexable and 0 < cursor == now

    def places_indexed_early(
        self, account_id: str, before: frozenset[str] | None, update: IndexUpdate
    ) -> list[Uri]:
        """Return some of the places that were indexed before their files were written.

        A commit is in the log before its files are. A process that followed the log in between has
        moved the cursor past that commit, without the new content. `before` is what was known of
        them before `update`.
        """
        if before is None or update.unlogged is None:
            unlogged = self.index.unlogged(account_id)
        else:
            unlogged = before.difference(map(str, update.places)) | update.unlogged
        if unlogged is None:  # unknown: return the most recent changes
            cursor = self.index.cursor(account_id)
            return self.log.changed(account_id, max(0, cursor - INLINE_LIMIT))
        return [Uri.parse(uri) for uri in sorted(unlogged - self._unindexable)[:INLINE_LIMIT]]

    def behind(self, account_id: str) -> list[Uri]:
        """Return the places that changed after the cursor."""
        cursor = self.index.cursor(account_id)
        return self.log.changed(account_id, cursor) if cursor else list(self.places(account_id))

    def is_small(self, account_id: str) -> bool:
        """Whether an account has few enough places to be indexed while a caller waits."""
        return len(list(islice(self.places(account_id), INLINE_LIMIT + 1))) <= INLINE_LIMIT

    def places(self, account_id: str) -> Iterator[Uri]:
        """Yield every place of an account that has something to index."""
        nodes = self.log.reader.walk(Uri(account_id))
        return with_folders(nodes) if self.log.folders else nodes

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises. Nodes that changed since they were indexed are read."""
        account, reader = place.account, self.log.reader
        try:
            early = self.places_indexed_early(account, None, IndexUpdate(0))
            fresh = {*self.behind(account), *early}
            indexed = set(
                map(Uri.parse, self.index.uris_linking_to(account, names_for(place, called)))
            )
        except (DamageError, StorageError):
            fresh, indexed = set(reader.walk(Uri(account))), set()
        scanned = ScannedLinks(reader, fresh).leading_to(place, called)
        return sorted({*(indexed - fresh), *scanned}, key=str)

    # ------------------------------------------------------------ following
    def catch_up(
        self,
        account_id: str,
        also: Iterable[Uri] = (),
        folder_payloads: "FolderPayloads" = MappingProxyType({}),
        *,
        since: int | None = None,
    ) -> IndexUpdate:
        """Index what changed after the cursor, and the places in `also`.

        A folder without a later change is indexed from the payload of its event. `since` is the
        cursor that the caller has just read. One thread at a time does it, so that a thread that
        waited finds its change indexed with those of others; after a long wait it goes on anyway,
        which is safe.
        """
        is_ours = self._lock.acquire(blocking=False)
        if not is_ours:  # the thread that holds the lock moves the cursor
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
        folder_payloads: "FolderPayloads",
        since: int | None,
    ) -> IndexUpdate:
        for _ in range(_ATTEMPTS):
            cursor = self.index.cursor(account_id) if since is None else since
            is_first, since, now = since is not None, None, self._history.store.current().position
            if cursor == 0:
                built = self.build(account_id)
                if built.places or not self.index.cursor(account_id):
                    return built
                continue  # another process has built it
            changed = () if cursor == now else self.log.changed(account_id, cursor, now)
            places = dict.fromkeys((*changed, *also))
            if not places and cursor == now:
                return IndexUpdate(now)
            try:
                folder_payloads = {
                    uri: payload
                    for uri, payload in folder_payloads.items()
                    if Uri.parse(uri) not in changed
                }
                update = self.update(
                    account_id, list(places), (cursor, now), folder_payloads=folder_payloads
                )
                return update if is_first else update._replace(unlogged=None)
            except ConcurrentModificationError:
                continue
        raise ConcurrentModificationError(
            f"other processes keep writing to the index of {account_id!a}. Fix: try again."
        )

    def update(
        self,
        account_id: str,
        places: Sequence[Uri],
        span: tuple[int, int],
        *,
        gone: Collection[Uri] = frozenset(),
        folder_payloads: "FolderPayloads" = MappingProxyType({}),
    ) -> IndexUpdate:
        """Index these places, and move the cursor over a span of the log.

        Places that are `gone` are removed without being read.
        """
        cursor, now = span
        failed: dict[str, PerdureError] = {}
        records: Records = {str(place): [] for place in gone}
        unlogged: set[str] = set()
        beginnings = self._firsts.after(places) if self.log.folders else None
        for together in batched((place for place in places if place not in gone), BATCH):
            known = partial(self.index.read, account_id)
            payloads = {
                uri: payload
                for uri, payload in folder_payloads.items()
                if Uri.parse(uri) in together
            }
            batch = self.indexer.batch(together, beginnings, known, payloads)
            records |= batch.records
            failed |= batch.failed
            differing = self.log.differing(batch.files, now)
            unlogged |= differing | batch.failed.keys()
            self._unindexable -= batch.records.keys()
            self._unindexable |= batch.failed.keys() - differing
        self.index.replace(account_id, records, cursor=now, expect=cursor, unlogged=unlogged)
        if beginnings is not None:
            self._firsts.cache(beginnings, records)
        return IndexUpdate(now, frozenset(places), failed, frozenset(unlogged))

    # ------------------------------------------------------------ building
    def build(
        self, account_id: str, position: int | None = None, progress: Progress = lambda _: None
    ) -> IndexUpdate:
        """Index all of an account in steps; until the end the index counts as unfinished.

        The result is as of now, or as of the position that the reader reads at. If another process
        builds it, wait for that.
        """
        with self._build_lock(account_id, wait=True):
            cursor = self.index.cursor(account_id)
            return IndexUpdate(cursor) if cursor else self._build(account_id, position, progress)

    def rebuild(self, account_id: str, progress: Progress = lambda _: None) -> IndexUpdate:
        """Delete the index of an account and build it again; refused while the model fails."""
        with self._build_lock(account_id, wait=False) as is_ours:
            if not is_ours:
                raise ConcurrentModificationError(
                    f"another process is building the index of {account_id!a}. "
                    "Fix: let it finish, or end it and try again."
                )
            self.indexer.demand_model()
            self.index.delete_account_data(account_id)
            return self._build(account_id, None, progress)

    def build_on(
        self, account_id: str, should_continue: ShouldContinue, progress: Progress
    ) -> IndexUpdate | None:
        """Continue to build the index of an account; None if another process builds it.

        It stops after a step if `should_continue` returns False. An outage of the model is raised:
        an index without vectors must not replace one that has them. Places that change during the
        build are indexed again, until few are left to catch up with.
        """
        with self._build_lock(account_id, wait=False) as is_ours:
            if not is_ours or self.index.cursor(account_id):
                return None
            build = IndexBuild(self.index, account_id, self.indexer, self.log)
            places, build.position = self.places(account_id), self._history.position()
            while build.add(places, progress, should_continue):
                now, lost = self._history.position(), build.lost()
                changed = self.log.changed(account_id, build.position)
                if len(changed) <= INLINE_LIMIT and not lost:
                    return build.finish()
                places, build.position = iter({*lost, *changed}), now
            return build.stopped()

    def _build(self, account_id: str, position: int | None, progress: Progress) -> IndexUpdate:
        build = IndexBuild(self.index, account_id, self.indexer, self.log)
        build.position = self._history.position() if position is None else position
        build.add(self.places(account_id), progress, lambda: True)
        build.add(build.lost(), lambda _: None, lambda: True)
        return build.finish()
