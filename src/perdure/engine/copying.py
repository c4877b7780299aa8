"""The index of a moment, made out of one that is near, by what differs between the two."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

from perdure.engine.indexing import Following, Indexer
from perdure.engine.logged import folders_of
from perdure.engine.made import BATCH, batched
from perdure.errors import PerdureError
from perdure.index.contract import KeptIndex
from perdure.index.stamp import stamp
from perdure.model import Uri
from perdure.storage.history import History

_MUCH = 8.0
"""To take a place away costs one part in so many of what it costs to make one."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An index of an account that is finished, and what position it is of."""

    position: int
    is_present: bool = False
    """Then it is made of files, and not of what the log says of them."""


class Moments(Protocol):
    """Where the indexes of moments are kept."""

    def open(self, position: int) -> KeptIndex:
        """Open the index of a moment; of an account that it was not finished for, its cursor is 0.

        Those that nobody asked for in a while may go.
        """

    def unkept(self) -> KeptIndex:
        """Return an empty index that lasts as long as the process, for want of a better place."""

    def near(self, account_id: str, position: int) -> Sequence[Origin]:
        """Return the indexes of an account that are finished, the nearest to a moment first."""

    def duplicated(
        self, account_id: str, origin: Origin, position: int
    ) -> AbstractContextManager[KeptIndex]:
        """Give a duplicate of an index, which may be further by now.

        If its user ends well, it becomes the index of the moment, unless somebody else has made
        one meanwhile. If not, or if the power goes before, there is nothing of it.
        """


class _UnlikeError(Exception):
    """Too much differs, or nobody can tell what does."""


class Copying:
    """Makes indexes of moments for who reads a memory as it was then."""

    def __init__(self, history: History, moments: Moments, indexer: Indexer) -> None:
        self._history = history
        self._moments = moments
        self._indexer = indexer

    def make(self, account_id: str, position: int) -> None:
        """Make the index of a moment, if there is one to begin with of which most is right.

        What goes wrong here does not matter: it can be made without, too.
        """
        for origin in self._moments.near(account_id, position):
            with suppress(PerdureError, OSError, _UnlikeError):
                self._mend(account_id, origin, position)
                return

    def _mend(self, account_id: str, origin: Origin, position: int) -> None:
        """Make it out of this one; leave it if that is not worth it, or nobody can tell how."""
        with self._moments.duplicated(account_id, origin, position) as index:
            cursor, held = index.cursor(account_id), index.stamps(account_id)
            following = Following(self._history, index, self._indexer)
            places = self._differing(following, account_id, origin, (cursor, position))
            unlogged = index.unlogged(account_id)
            if places is None or unlogged is None or not _is_worth_it(places, held):
                raise _UnlikeError
            also = self._folders(held) if origin.is_present else ()
            every = dict.fromkeys((*places, *_with_folders(unlogged), *also))
            following.update(account_id, list(every), cursor, position)

    def _differing(
        self, following: Following, account_id: str, origin: Origin, positions: tuple[int, int]
    ) -> list[Uri] | None:
        """Return the places that may differ between two positions; None if nobody can tell.

        What is hidden in the past is there in a file. And who read files may have read later ones
        than the cursor says.
        """
        first, last = sorted(positions)
        now = self._history.position()
        catalogue = self._history.store.catalogue
        if origin.is_present:
            hidden = catalogue.hides_since(0, now)
            return None if hidden else following.logged.changed(account_id, first)
        hidden = catalogue.hides_since(first, last)
        return None if hidden else following.logged.changed(account_id, first, last)

    def _folders(self, held: Mapping[str, str]) -> Iterator[Uri]:
        """Yield the folders of which the past tells otherwise than an index of files does.

        To what a folder is said to hold belongs what is no node, and in no log.
        """
        every = (place for place in map(Uri.parse, held) if not place.is_node)
        for batch in batched(every, BATCH):
            for uri, records in self._indexer.make(batch).records.items():
                if stamp(records) != held[uri]:
                    yield Uri.parse(uri)


def _is_worth_it(places: Iterable[Uri], held: Mapping[str, str]) -> bool:
    """Whether what must go from an index costs less than what can stay would to be made."""
    gone = len(held.keys() & set(map(str, places)))
    return not gone > _MUCH * (len(held) - gone)


def _with_folders(uris: Iterable[str]) -> Iterator[Uri]:
    for place in map(Uri.parse, uris):
        yield from (place, *folders_of(place))
