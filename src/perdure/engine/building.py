"""Making the whole index of an account in steps: it can be stopped, and gone on with."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from perdure.engine.logged import Logged
from perdure.engine.made import BATCH, Caught, Made, Records, batched
from perdure.index.contract import KeptIndex
from perdure.index.stamp import stamp
from perdure.model import IndexRecord, Uri

if TYPE_CHECKING:
    from perdure.errors import PerdureError

Progress = Callable[[int], None]
"""Is told how many places more were looked at."""
GoesOn = Callable[[], bool]
"""Is asked after each step; False stops."""


class Steps(Protocol):
    """Who makes records."""

    def steps(self, places: Iterable[Uri]) -> Iterator[Made]:
        """Make the records of places, some at a time."""


class Building:
    """One attempt to make the index of an account. Its cursor stays 0 until `finish`.

    What the index holds of an earlier attempt, and is right, is let be. Nodes may change meanwhile:
    `position` is the newest up to which all of it was looked at, and the log is compared as of it.
    """

    def __init__(self, index: KeptIndex, account_id: str, indexer: Steps, logged: Logged) -> None:
        self.position = 0
        self._index = index
        self._account = account_id
        self._indexer = indexer
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
            for made in self._indexer.steps(batch):
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
        """Whether an index holds, or may hold, something else of a place."""
        if uri not in self._held:
            return bool(records) or uri in self._there
        return not records or stamp(records) != self._held[uri]
