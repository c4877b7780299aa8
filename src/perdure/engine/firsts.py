"""How folders begin, without listing a large one again for each place that is added to it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.engine.made import Records
from perdure.engine.summaries import MOST, Summaries
from perdure.index.contract import KeptIndex
from perdure.model import Level, Uri
from perdure.model.record import record_id

LARGE = 100
"""A folder of more places than these is not listed again while it is known how it begins."""
_LEVELS = Level.ABSTRACT, Level.OVERVIEW


@dataclass(frozen=True, slots=True)
class _Known:
    uris: tuple[str, ...]
    said: tuple[str, ...]
    """What the records of the folder say."""


class Firsts:
    """Remembers how large folders begin.

    It is still so if the index says of a folder what it said then, whoever wrote there since; but
    for the places that changed after the index was brought up to date. What is done by hand in a
    large folder may not show until it is listed again. Small ones are listed each time.
    """

    def __init__(self, summaries: Summaries, index: KeptIndex) -> None:
        self._summaries = summaries
        self._index = index
        self._known: dict[Uri, _Known] = {}

    def after(self, changed: Iterable[Uri]) -> "Beginnings":
        """Return how folders begin if these places changed after the index was up to date."""
        return Beginnings(self, self._summaries, changed)

    def before(self, folder: Uri) -> tuple[str, ...]:
        """Return how a large folder began when the index was up to date; nothing if unknown."""
        known = self._known.get(folder)
        if known is None or known.said != self._said(folder):
            return ()
        return known.uris

    def keep(self, beginnings: "Beginnings", records: Records) -> None:
        """Remember how large folders begin, now that the index has these records."""
        for folder, uris in beginnings.large.items():
            made = records.get(str(folder))
            if made is not None:
                self._known[folder] = _Known(uris, tuple(record.text for record in made))
            elif folder not in self._known or self._known[folder].uris != uris:
                said = self._summaries.said(folder, uris)
                self._known[folder] = _Known(uris, tuple(said.values()))

    def _said(self, folder: Uri) -> tuple[str, ...]:
        ids = [record_id(str(folder), level) for level in _LEVELS]
        records = self._index.read(folder.account, ids)
        return tuple(records[id_].text for id_ in ids if id_ in records)


class Beginnings:
    """How folders begin, asked while an index is brought up to date; each is looked at once."""

    def __init__(self, firsts: Firsts, summaries: Summaries, changed: Iterable[Uri]) -> None:
        self._firsts = firsts
        self._summaries = summaries
        self._changed: dict[Uri, list[Uri]] = defaultdict(list)
        for place in changed:
            self._changed[place.parent].append(place)
        self._found: dict[Uri, tuple[str, ...]] = {}
        self.large: dict[Uri, tuple[str, ...]] = {}
        """Those of the folders that are worth remembering."""

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
        """Return how a folder begins by what changed in it; nothing if it must be listed."""
        first = self._firsts.before(folder)
        if not first:
            return ()
        # What comes after the last of them is none of them, whatever became of it.
        near = {str(place): place for place in self._changed[folder] if str(place) <= first[-1]}
        if not all(map(self._summaries.is_there, near.values())):
            return ()
        self.large[folder] = tuple(sorted({*first, *near}))[:MOST]
        return self.large[folder]
