"""What is in a folder, in a few lines: made from the abstracts in it, without a model.

A folder of folders is told from theirs, so summaries are made bottom-up. They live in a tier of
their own, which may be lost: `Summaries` makes the same ones again. How a large folder begins is
remembered, so that it is not listed again for each place that is added to it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from perdure.context.files import ABSTRACT, OVERVIEW, said_at
from perdure.context.outbox import directory_payload
from perdure.context.reading import NodeReader, abstract_at
from perdure.dataclass import dataclass
from perdure.index.contract import KeptIndex
from perdure.model import IndexRecord, Level, RequestContext, Role, Uri
from perdure.model.record import ACCOUNT, OWNER_SPACE, record_id
from perdure.model.values import JSON, MAX_ABSTRACT, MAX_OVERVIEW, shortened
from perdure.storage import Locator

_LEAST = 2
"""What is alone in a folder says itself what is in it."""
MOST = 20
"""How many of a folder are told of."""
_MOST_BELOW = 5
"""How many of each folder in it."""


Beginning = Callable[[Uri], Sequence[str]]
"""Returns the first places in a folder, in order."""


class Kept(Protocol):
    """The tier of summaries, which somebody may throw away at any time."""

    def read(self, locator: Locator) -> str:
        """Return a text as it is, or say with an error of the seam that none is there."""

    def write_all(self, changes: Mapping[Locator, str | None]) -> None: ...


class Summaries:
    def __init__(self, reader: NodeReader, kept: Kept | None = None) -> None:
        self._reader = reader
        self._kept = kept

    def records(self, folder: Uri, beginning: Beginning | None = None) -> list[IndexRecord]:
        """Return the records of a folder, and keep what they say; none if one thing is in it."""
        payload = self.payload(folder, beginning)
        return [] if payload is None else self.records_from(payload)

    def payload(self, folder: Uri, beginning: Beginning | None = None) -> dict[str, JSON] | None:
        """Return what a directory event tells of a folder; None if a folder has no records."""
        owner = self._owner(folder)
        if folder.is_node or not owner:
            return None
        beginning = beginning or self.listed
        return directory_payload(folder, owner, self._told(beginning(folder)[:MOST], beginning))

    def records_from(self, payload: Mapping[str, JSON]) -> list[IndexRecord]:
        """Return the records that a directory event asks for; nothing else is looked at."""
        folder = Uri.parse(str(payload["directory"]))
        siblings = payload["siblings"]
        told = [
            _line(Uri.parse(str(each["uri"])), str(each["abstract"]))
            for each in (siblings if isinstance(siblings, list | tuple) else ())
            if isinstance(each, Mapping)
        ]
        if len(told) < _LEAST:
            told = []
        self._keep(folder, told)
        owner, texts = str(payload["owner_space"]), _texts(folder, told) if told else {}
        return [_record(folder, owner, level, text) for level, text in texts.items()]

    def said(self, folder: Uri, first: Iterable[str]) -> dict[Level, str]:
        """Return what the records of a folder say that begins with these places."""
        told = self._told(first, self.listed)
        return _texts(folder, [_line(Uri.parse(uri), abstract) for uri, abstract in told])

    def listed(self, folder: Uri) -> list[str]:
        """Return the first places in a folder, and so many that it shows whether it is large."""
        everybody = RequestContext(folder.account, "summaries", role=Role.ADMIN)
        return self._reader.first_children(str(folder), everybody, LARGE + 1)

    def is_there(self, place: Uri) -> bool:
        """Whether a place is surely listed in its folder."""
        return self._reader.is_active(place)

    def _owner(self, folder: Uri) -> str:
        """Return whose a folder is; empty above all owners, and for a session that is nobody's."""
        if len(folder.path) < (1 if folder.path[:1] == ("resources",) else 2):
            return ""
        return folder.owner_space or self._reader.reach.session_owner(folder) or ""

    def _told(self, first: Iterable[str], beginning: Beginning | None) -> Iterator[tuple[str, str]]:
        """Yield each of these places with its abstract; of a folder, from what it begins with."""
        for place in map(Uri.parse, first):
            said = abstract_at(self._reader, place) if place.is_node else None
            abstract = " ".join(said.split()) if isinstance(said, str) else ""
            if not abstract and not place.is_node and beginning is not None:
                below = self._told(beginning(place)[:_MOST_BELOW], None)
                abstract = "; ".join(_line(Uri.parse(uri), line) for uri, line in below)
            yield str(place), abstract

    # ------------------------------------------------------------ the tier
    def _keep(self, folder: Uri, told: list[str]) -> None:
        """Write what changed of a summary; one of nothing is removed."""
        if self._kept is None:
            return
        texts = {ABSTRACT: abstract_of(folder, told), OVERVIEW: overview_of(told)}
        wanted = {
            Locator(folder.key).child(name): text if told else None for name, text in texts.items()
        }
        read = self._kept.read
        changed = {at: text for at, text in wanted.items() if said_at(at, read) != text}
        if changed:
            self._kept.write_all(changed)


def _line(place: Uri, abstract: str) -> str:
    return f"{place.words}: {abstract}" if abstract else place.words


def _texts(folder: Uri, told: Sequence[str]) -> dict[Level, str]:
    return {Level.ABSTRACT: abstract_of(folder, told), Level.OVERVIEW: overview_of(told)}


def abstract_of(folder: Uri, told: Iterable[str]) -> str:
    names = ", ".join(line.partition(":")[0] for line in told)
    return shortened(f"{folder.words}: {names}", MAX_ABSTRACT)


def overview_of(told: Iterable[str]) -> str:
    return shortened("".join(f"- {line}\n" for line in told), MAX_OVERVIEW)


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

    def keep(self, beginnings: "Beginnings", records: Mapping[str, list[IndexRecord]]) -> None:
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
