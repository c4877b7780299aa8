"""What is in a folder, in a few lines: made from the abstracts in it, without a model.

A folder of folders is told from theirs, so summaries are made bottom-up. They live in a tier of
their own, which may be lost: `Summaries` makes the same ones again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from perdure.context.files import ABSTRACT, OVERVIEW
from perdure.context.parts import said_at
from perdure.context.reading import NodeReader
from perdure.model import IndexRecord, Level, RequestContext, Role, Uri
from perdure.model.record import ACCOUNT, OWNER_SPACE, record_id
from perdure.model.values import MAX_ABSTRACT, MAX_OVERVIEW, shortened
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
    """Makes the abstract and the overview of folders."""

    def __init__(self, reader: NodeReader, kept: Kept | None = None) -> None:
        self._reader = reader
        self._kept = kept

    def records(self, folder: Uri, beginning: Beginning | None = None) -> list[IndexRecord]:
        """Return the records of a folder, and keep what they say; none if one thing is in it."""
        owner = self._owner(folder)
        if folder.is_node or not owner:
            return []
        beginning = beginning or self.listed
        told = list(self._told(beginning(folder)[:MOST], beginning))
        if len(told) < _LEAST:
            told = []
        self._keep(folder, told)
        if not told:
            return []
        texts = _texts(folder, told)
        return [_record(folder, owner, level, text) for level, text in texts.items()]

    def said(self, folder: Uri, first: Iterable[str]) -> dict[Level, str]:
        """Return what the records of a folder say that begins with these places."""
        return _texts(folder, list(self._told(first, self.listed)))

    def listed(self, folder: Uri) -> list[str]:
        """Return all places in a folder, in order."""
        everybody = RequestContext(folder.account, "summaries", role=Role.ADMIN)
        return self._reader.list_children(str(folder), everybody)

    def is_there(self, place: Uri) -> bool:
        """Whether a place is surely listed in its folder."""
        return self._reader.is_active(place)

    def _owner(self, folder: Uri) -> str:
        """Return whose a folder is; empty above all owners, and for a session that is nobody's."""
        if len(folder.path) < (1 if folder.path[:1] == ("resources",) else 2):
            return ""
        return folder.owner_space or self._reader.reach.session_owner(folder) or ""

    def _told(self, first: Iterable[str], beginning: Beginning | None) -> Iterator[str]:
        """Yield a line for each of these places; of a folder, from what it begins with."""
        for place in map(Uri.parse, first):
            line = self._line(place)
            if not line and not place.is_node and beginning is not None:
                line = "; ".join(self._told(beginning(place)[:_MOST_BELOW], None))
            yield f"{place.words}: {line}" if line else place.words

    def _line(self, place: Uri) -> str:
        said = self._reader.look(place, ABSTRACT) if place.is_node else None
        return " ".join(said.split()) if isinstance(said, str) else ""

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
            "parent_uri": str(folder.parent),
        },
        payload={"title": folder.words, "folder": True},
    )
