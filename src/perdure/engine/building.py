"""Making the whole index of an account in steps: it can be stopped, and gone on with.

Also what an index should hold of some places, and what the log says of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.context.files import FILES, META, OWNER, Files
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, field
from perdure.errors import PerdureError
from perdure.index.contract import NodeIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord, Uri
from perdure.model.uri import name_of
from perdure.storage import Locator
from perdure.storage.history import History

BATCH = 1_000
"""So many places are read together, and written in one transaction where nothing is embedded."""

Records = dict[str, list[IndexRecord]]


@dataclass(slots=True)
class Made:
    """What an index should hold of some places, and what is wrong with some of them."""

    records: Records = field(default_factory=dict)
    failed: dict[str, PerdureError] = field(default_factory=dict)
    """Nodes that can't be read, and those that got no vectors: these are found by words only."""
    read: dict[Uri, Files] = field(default_factory=dict)
    """The files of nodes that decided what is made of them."""
    outage: PerdureError | None = None
    """Why no text at all can be embedded now, if it is so."""


class Caught(NamedTuple):
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


class Logged:
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

    def unlogged(self, made: Made, position: int) -> set[str]:
        """Return the places that came out otherwise than the log has it as of then."""
        return self.differing(made.read, position) | made.failed.keys()

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
Steps = Callable[[Iterable[Uri]], Iterator[Made]]
"""Makes the records of places, some at a time."""
GoesOn = Callable[[], bool]
"""Is asked after each step; False stops."""


class Building:
    """One attempt to make the index of an account. Its cursor stays 0 until `finish`.

    What the index holds of an earlier attempt, and is right, is let be. Nodes may change meanwhile:
    `position` is the newest up to which all of it was looked at, and the log is compared as of it.
    """

    def __init__(self, index: NodeIndex, account_id: str, steps: Steps, logged: Logged) -> None:
        self.position = 0
        self._index = index
        self._account = account_id
        self._steps = steps
        self._logged = logged
        self._held = index.stamps(account_id)
        self._places: set[Uri] = set()
        self._failed: dict[str, PerdureError] = {}
        self._there: set[str] = set()

    def add(self, places: Iterable[Uri], progress: Progress, goes_on: GoesOn) -> bool:
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
        return [Uri.parse(uri) for uri in self._there.difference(self._index.stamps(self._account))]

    def finish(self) -> Caught:
        """Take out what is of no place any more, and say up to where the index is right."""
        missed = self._logged.missed(self._account, self._places, self.position)
        unlogged = {str(place) for place in missed}
        there = {*self._index.stamps(self._account)} - self._there
        gone: Records = {uri: [] for uri in there | unlogged}
        if self._places or gone:
            self._index.replace(
                self._account, gone, cursor=self.position, expect=0, unlogged=unlogged
            )
        return Caught(self.position, frozenset(self._places), self._failed)

    def stopped(self) -> Caught:
        return Caught(0, frozenset(self._places), self._failed)

    def _write(self, made: Made) -> None:
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
            (self._there.add if records else self._there.discard)(uri)
            self._failed.pop(uri, None)
        for uri in wrong:
            self._held.pop(uri, None)
        self._failed |= made.failed

    def _differs(self, uri: str, records: list[IndexRecord]) -> bool:
        if uri not in self._held:
            return bool(records) or uri in self._there
        return not records or stamp(records) != self._held[uri]


def accounts_of(reader: NodeReader) -> Iterator[str]:
    for folder in reader.backend.list(Locator("accounts")):
        account = name_of(folder.name)
        if account is not None:
            yield account
