"""Notes as their files have them, for whoever finds no index, or one that does not know them."""

from collections.abc import Iterable, Iterator
from itertools import islice

from perdure.app.opening import ACCOUNT
from perdure.app.reading import AGENT, Reading
from perdure.context.reading import NodeReader, Stored
from perdure.engine.noting import is_noted, note_of
from perdure.engine.recall.result import hit_of
from perdure.engine.recall.token_budget import render_hit
from perdure.errors import BrokenNodeError, ContextError, StorageError
from perdure.index.account.schema import Note, Notes
from perdure.model import Uri
from perdure.model.record import NOTED

MOST_WALKED = 5_000
"""More nodes are not looked at one by one while somebody waits."""
_NO_INDEX = "there is no index yet. Fix: run `perdure index rebuild`"


def walked(reading: Reading, project: str) -> tuple[Notes, str]:
    """Return the notes for a project without any index, and what to do about that."""
    reader = NodeReader(reading.backend)
    places = list(islice(_places(reader, reading.user, project), MOST_WALKED + 1))
    notes = notes_at(reading, project, map(str, places[:MOST_WALKED]))
    if len(places) <= MOST_WALKED:
        return notes, ""
    return notes, f"only {MOST_WALKED:,} nodes were looked at, because {_NO_INDEX}."


def notes_at(reading: Reading, project: str, uris: Iterable[str]) -> Notes:
    """Return the notes for a project among some nodes, the newest first."""
    reader = NodeReader(reading.backend)
    found = [stored for uri in uris if (stored := _stored(reader, uri)) is not None]
    found.sort(key=lambda stored: stored.node.updated_at, reverse=True)
    always, of_project = list[Note](), list[Note]()
    for stored in found:
        told = note_of(stored) if is_noted(stored.node) else {}
        if told.get(NOTED) == project or (told.get(NOTED) == "" and told["always"]):
            (always if told["always"] else of_project).append(Note(stored.node.uri, told))
    return Notes(0, always, of_project)


def entry_of(reading: Reading, project: str, uri: str) -> str | None:
    """Return a note as it may be shown now; None if it is none for the project any more."""
    stored = _stored(NodeReader(reading.backend), uri)
    if stored is None or not is_noted(stored.node):
        return None
    if stored.node.project not in {project, ""}:
        return None
    return render_hit(hit_of(stored))


def _places(reader: NodeReader, user: str, project: str) -> Iterator[Uri]:
    of_project = [("resources", "projects", project)] if project else []
    for path in (*of_project, ("users", user), ("agents", AGENT)):
        yield from (place for place in reader.walk(Uri(ACCOUNT, path)) if place.is_node)


def _stored(reader: NodeReader, uri: str) -> Stored | None:
    try:
        return reader.active(Uri.parse(uri))
    except (BrokenNodeError, ContextError, StorageError):  # it is not there, or not to be read
        return None
