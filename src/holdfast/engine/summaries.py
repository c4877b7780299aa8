"""What is in a folder, in a few lines: made from the abstracts in it, without a model.

A folder of folders is told from theirs, so summaries are made bottom-up. They live in a tier of
their own, which may be lost: `Summaries` makes the same ones again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from holdfast.context.files import ABSTRACT, OVERVIEW
from holdfast.context.parts import said_at
from holdfast.context.reading import NodeReader
from holdfast.model import IndexRecord, Level, RequestContext, Role, Uri
from holdfast.model.record import ACCOUNT, OWNER_SPACE, record_id
from holdfast.model.values import MAX_ABSTRACT, MAX_OVERVIEW, shortened
from holdfast.storage import Locator, StorageBackend

_LEAST = 2
"""What is alone in a folder says itself what is in it."""
_MOST = 20
"""How many of a folder are told of."""
_MOST_BELOW = 5
"""How many of each folder in it."""


class Summaries:
    """Makes the abstract and the overview of folders."""

    def __init__(
        self, reader: NodeReader, kept: Callable[[Sequence[Locator]], StorageBackend] | None = None
    ) -> None:
        self._reader = reader
        self._kept = kept
        """Opens the tier for some texts; each time, for somebody may have thrown it away."""

    def records(self, folder: Uri) -> list[IndexRecord]:
        """Return the records of a folder, and keep what they say; none if one thing is in it."""
        owner = self._owner(folder)
        if folder.is_node or not owner:
            return []
        told = list(self._told(folder, _MOST))
        if len(told) < _LEAST:
            told = []
        self._keep(folder, told)
        if not told:
            return []
        texts = {Level.ABSTRACT: abstract_of(folder, told), Level.OVERVIEW: overview_of(told)}
        return [_record(folder, owner, level, text) for level, text in texts.items()]

    def _owner(self, folder: Uri) -> str:
        """Return whose a folder is; empty above all owners, and for a session that is nobody's."""
        if len(folder.path) < (1 if folder.path[:1] == ("resources",) else 2):
            return ""
        return folder.owner_space or self._reader.reach.session_owner(folder) or ""

    def _told(self, folder: Uri, most: int) -> Iterator[str]:
        """Yield a line for each of the first in a folder."""
        everybody = RequestContext(folder.account, "summaries", role=Role.ADMIN)
        for uri in islice(self._reader.list_children(str(folder), everybody), most):
            place = Uri.parse(uri)
            line = self._line(place)
            if not line and not place.is_node and most == _MOST:
                line = "; ".join(self._told(place, _MOST_BELOW))
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
        kept = self._kept(list(wanted))
        changed = {at: text for at, text in wanted.items() if said_at(at, kept.read) != text}
        if changed:
            kept.write_all(changed)


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
