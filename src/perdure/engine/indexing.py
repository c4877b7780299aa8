"""From nodes to what an index holds of them, and keeping the two in step."""

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from perdure.context.files import META
from perdure.context.layouts.names import folded
from perdure.context.links import ScannedLinks, names_for, names_in
from perdure.context.reading import NodeReader
from perdure.dataclass import replace
from perdure.engine.building import (
    BATCH,
    Building,
    Caught,
    GoesOn,
    Logged,
    Made,
    Progress,
    Records,
    batched,
    with_folders,
)
from perdure.engine.summaries import FirstChildren, LargeFolders, Summaries
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
from perdure.index.memo import VectorMemo
from perdure.model import IndexRecord, Uri
from perdure.model.record import LINKS, OWNER_SPACE
from perdure.storage.history import History

if TYPE_CHECKING:
    import sqlite3

    from perdure.context.reading import RealFiles
    from perdure.engine.briefing_records import KnownRecords
    from perdure.index.account.failures import EventTable
    from perdure.model.values import JSON

FEW = 200
"""So many places are indexed while somebody waits; more is left to a worker."""
_ATTEMPTS = 20
_LONGEST_TURN = 10.0
"""Seconds."""
_TEXTS = 128
"""About how many texts are embedded before somebody can stop."""
_DOUBTS = 3
"""After so many failures in a row it may be the model's fault, and not the texts'."""


Told = Mapping[str, Mapping[str, "JSON"]]
"""The payloads of directory events, by the URI of the folder."""


class Alone(Protocol):
    """Lets one at a time make the index of an account."""

    def __call__(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Say whether it is us; who waits is, in the end."""


def _any_event(db: "sqlite3.Connection") -> bool:
    return db.execute(failures.ANY).fetchone() is not None


def _nobody_else(account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
    del account_id, wait
    return nullcontext(enter_result=True)


class Indexer:
    def __init__(
        self, reader: NodeReader, memo: VectorMemo | None, summaries: Summaries | None = None
    ) -> None:
        self.reader = reader
        self._memo = memo
        self._summaries = summaries or Summaries(reader)

    def firsts(self, index: KeptIndex) -> LargeFolders:
        """Return who remembers how the folders begin that an index has records of."""
        return LargeFolders(self._summaries, index)

    @property
    def tells_folders(self) -> bool:
        """Whether folders have records: these are searched by vector only."""
        return self._memo is not None

    def demand_model(self) -> None:
        """Refuse to go on if texts should be embedded, and none can be now."""
        if self._memo is not None:
            self._memo.demand()

    def make(
        self,
        places: Iterable[Uri],
        beginning: FirstChildren | None = None,
        known: "KnownRecords | None" = None,
        told: "Told" = MappingProxyType({}),
    ) -> Made:
        """Return what an index should hold of these places as they are now.

        Where no node is in use, that is nothing. A folder has the summary of what is in it, if
        there are vectors: as an event told of it, if one did.
        """
        folders = told if self.tells_folders else {}
        others = (place for place in places if str(place) not in folders) if folders else places
        made = self._read(others, beginning, known)
        for uri, payload in folders.items():
            made.records[uri] = self._summaries.records_from(payload)
        if self._memo is not None:
            self._embed(made, self._memo)
        return made

    def steps(self, places: Iterable[Uri]) -> Iterator[Made]:
        """Make the same in steps of not too many texts, so that somebody can stop in between."""
        read = self._read(places)
        if self._memo is None:
            yield read
            return
        for uris in _portions(read.records):
            failed = {uri: read.failed[uri] for uri in uris if uri in read.failed}
            files = {
                place: read.read[place] for uri in uris if (place := Uri.parse(uri)) in read.read
            }
            made = Made({uri: read.records[uri] for uri in uris}, failed, files)
            self._embed(made, self._memo)
            yield made

    def _read(
        self,
        places: Iterable[Uri],
        beginning: FirstChildren | None = None,
        known: "KnownRecords | None" = None,
    ) -> Made:
        made, every = Made(), list(places)
        files = self.reader.read_files([place for place in every if place.is_node])
        for place in every:
            uri = str(place)
            try:
                made.records[uri] = self._records(place, made, beginning, known, files)
            except (BrokenNodeError, InvalidValueError):
                # It may be half written: then what it says now is not what the log says.
                made.read[place] = self.reader.files(place) if place.is_node else {}
                try:
                    made.records[uri] = self._records(place, made, beginning, known)
                except (BrokenNodeError, InvalidValueError) as error:
                    made.failed[uri] = error
                    made.records[uri] = []
        return made

    def _records(
        self,
        place: Uri,
        made: Made,
        beginning: FirstChildren | None,
        known: "KnownRecords | None",
        files: "RealFiles | None" = None,
    ) -> list[IndexRecord]:
        if not place.is_node:
            return self._summaries.records(place, beginning) if self.tells_folders else []
        try:
            stored = self.reader.active(place, files)
        except NodeNotFoundError:
            made.read[place] = {META: (meta := self.reader.look(place, META))}
            if meta is None:
                return []
            try:
                stored = self.reader.active(place)  # it was written since; else it is not in use
            except NodeNotFoundError:
                return []
        from perdure.engine.briefing_records import (  # noqa: PLC0415 - if any is made
            with_lasting,
            with_note,
            with_stated,
        )
        from perdure.index.records import records_of  # noqa: PLC0415 - as before

        made.read[place] = stored.files
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

    def _embed(self, made: Made, memo: VectorMemo) -> None:
        """Give all records their vectors: together, or one node after another if that fails."""
        try:
            made.records |= _embedded(made.records, memo)
        except PerdureError as error:
            self._embed_each(made, memo, error)

    def _embed_each(self, made: Made, memo: VectorMemo, why: PerdureError) -> None:
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


class Following:
    """Brings an index up to the newest commit of a history.

    It goes by the log, so nothing that was committed can be missed, whoever died before they could
    tell. Of several who do it at once, one writes, and the others look again.
    """

    def __init__(
        self, history: History, index: KeptIndex, indexer: Indexer, alone: Alone = _nobody_else
    ) -> None:
        self._history = history
        self.index = index
        self.indexer = indexer
        self._alone = alone
        self.logged = Logged(history, indexer.reader, folders=indexer.tells_folders)
        self._firsts = indexer.firsts(index)
        self._hopeless: set[str] = set()
        """What can't be indexed, though it is just what the log says."""
        self._turn = threading.Lock()

    def early(self, account_id: str, before: frozenset[str] | None, caught: Caught) -> list[Uri]:
        """Return some of the places that were indexed before their files were written.

        A commit is in the log before its files are. Who followed the log in between has moved the
        cursor past that commit, without what the files say. `before` had them when this began.
        """
        if before is None or caught.unlogged is None:
            unlogged = self.index.unlogged(account_id)
        else:
            unlogged = before.difference(map(str, caught.places)) | caught.unlogged
        if unlogged is None:  # nobody can tell which they are: those of late
            return self.logged.changed(account_id, max(0, self.index.cursor(account_id) - FEW))
        return [Uri.parse(uri) for uri in sorted(unlogged - self._hopeless)[:FEW]]

    def has_events(self, account_id: str) -> bool:
        """Whether the table of the index has events that failed, were claimed or registered."""
        table = cast("EventTable", self.index)
        return table.look_at_events(account_id, _any_event, absent=False)

    def look(self, account_id: str) -> tuple[int, bool, frozenset[str] | None]:
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
        return unlogged is not None and unlogged <= self._hopeless and 0 < cursor == now

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises. Nodes that the index does not have as they are now are read."""
        account, reader = place.account, self.indexer.reader
        try:
            fresh = {*self.behind(account), *self.early(account, None, Caught(0))}
            kept = set(map(Uri.parse, self.index.leading_to(account, names_for(place, called))))
        except (DamageError, StorageError):
            fresh, kept = set(reader.walk(Uri(account))), set()
        scanned = ScannedLinks(reader, fresh).leading_to(place, called)
        return sorted({*(kept - fresh), *scanned}, key=str)

    def behind(self, account_id: str) -> list[Uri]:
        cursor = self.index.cursor(account_id)
        if cursor == 0:
            return list(self.every(account_id))
        return self.logged.changed(account_id, cursor)

    def is_little(self, account_id: str) -> bool:
        return len(list(islice(self.every(account_id), FEW + 1))) <= FEW

    def catch_up(
        self,
        account_id: str,
        also: Iterable[Uri] = (),
        told: Told = MappingProxyType({}),
        *,
        since: int | None = None,
    ) -> Caught:
        """Index what changed since, and some more places that the caller asks for.

        A folder that changed no more is described by what an event told of it. `since` is where the
        cursor was just now. Threads take turns, so that who waits finds its change indexed with
        that of others. One that waits for long goes on: nothing depends on it.
        """
        is_ours = self._turn.acquire(blocking=False)
        if not is_ours:  # the thread that has it moves the cursor
            since, is_ours = None, self._turn.acquire(timeout=_LONGEST_TURN)
        try:
            return self._catch_up(account_id, also, told, since)
        finally:
            if is_ours:
                self._turn.release()

    def _catch_up(
        self, account_id: str, also: Iterable[Uri], told: Told, since: int | None
    ) -> Caught:
        for _ in range(_ATTEMPTS):
            cursor = self.index.cursor(account_id) if since is None else since
            is_first, since, now = since is not None, None, self._history.store.current().position
            if cursor == 0:
                built = self.build(account_id)
                if built.places or not self.index.cursor(account_id):
                    return built
                continue  # somebody else has made it meanwhile
            changed = () if cursor == now else self.logged.changed(account_id, cursor, now)
            places = dict.fromkeys((*changed, *also))
            if not places and cursor == now:
                return Caught(now)
            try:
                told = {uri: each for uri, each in told.items() if Uri.parse(uri) not in changed}
                caught = self.update(account_id, list(places), (cursor, now), told=told)
                return caught if is_first else caught._replace(unlogged=None)
            except ConcurrentModificationError:
                continue
        raise ConcurrentModificationError(
            f"others keep writing to the index of {account_id!a}. Fix: try again."
        )

    def build(
        self, account_id: str, position: int | None = None, progress: Progress = lambda _: None
    ) -> Caught:
        """Index all of an account, in steps; until the end, the index says it is unfinished.

        It is then as of now, or as of the position that the nodes are read at. If somebody else is
        at it, they are waited for.
        """
        with self._alone(account_id, wait=True):
            done = self.index.cursor(account_id)
            return Caught(done) if done else self._build(account_id, position, progress)

    def rebuild(self, account_id: str, progress: Progress = lambda _: None) -> Caught:
        """Throw the index of an account away, and make it again; not while the model is out."""
        with self._alone(account_id, wait=False) as ours:
            if not ours:
                raise ConcurrentModificationError(
                    f"another process makes the index of {account_id!a} just now. "
                    "Fix: let it finish, or end it and try again."
                )
            self.indexer.demand_model()
            self.index.delete_account_data(account_id)
            return self._build(account_id, None, progress)

    def build_on(self, account_id: str, goes_on: GoesOn, progress: Progress) -> Caught | None:
        """Go on with the index of an account while another one answers; None if others are at it.

        It stops between two steps if it is told to. If the model is out of order, that is an error:
        an index without vectors must not take the place of one that has them. What changed
        meanwhile is looked at again, until little is left to be caught up with.
        """
        with self._alone(account_id, wait=False) as ours:
            if not ours or self.index.cursor(account_id):
                return None
            building = Building(self.index, account_id, self.indexer.steps, self.logged)
            places, building.position = self.every(account_id), self._history.position()
            while building.add(places, progress, goes_on):
                now, lost = self._history.position(), building.lost()
                changed = self.logged.changed(account_id, building.position)
                if len(changed) <= FEW and not lost:
                    return building.finish()
                places, building.position = iter({*lost, *changed}), now
            return building.stopped()

    def _build(self, account_id: str, position: int | None, progress: Progress) -> Caught:
        now = self._history.position() if position is None else position
        building = Building(self.index, account_id, self.indexer.steps, self.logged)
        building.position = now
        building.add(self.every(account_id), progress, lambda: True)
        building.add(building.lost(), lambda _: None, lambda: True)
        return building.finish()

    def update(
        self,
        account_id: str,
        places: Sequence[Uri],
        span: tuple[int, int],
        *,
        gone: Collection[Uri] = frozenset(),
        told: Told = MappingProxyType({}),
    ) -> Caught:
        """Make the records of these places again, and move the cursor over a span of the log.

        Of places that are known to be gone, nothing is read.
        """
        cursor, now = span
        failed: dict[str, PerdureError] = {}
        records: Records = {str(place): [] for place in gone}
        unlogged: set[str] = set()
        beginnings = self._firsts.after(places) if self.indexer.tells_folders else None
        for batch in batched((place for place in places if place not in gone), BATCH):
            known = partial(self.index.read, account_id)
            here = {uri: each for uri, each in told.items() if Uri.parse(uri) in batch}
            made = self.indexer.make(batch, beginnings, known, here)
            records |= made.records
            failed |= made.failed
            differing = self.logged.differing(made.read, now)
            unlogged |= differing | made.failed.keys()
            self._hopeless -= made.records.keys()
            self._hopeless |= made.failed.keys() - differing
        self.index.replace(account_id, records, cursor=now, expect=cursor, unlogged=unlogged)
        if beginnings is not None:
            self._firsts.cache(beginnings, records)
        return Caught(now, frozenset(places), failed, frozenset(unlogged))

    def every(self, account_id: str) -> Iterator[Uri]:
        """Yield every place of an account that has something to index."""
        nodes = self.indexer.reader.walk(Uri(account_id))
        return with_folders(nodes) if self.indexer.tells_folders else nodes
