"""What the log says of the places of an account."""

from collections.abc import Collection, Iterator, Mapping

from perdure.artifacts import CID
from perdure.context.files import FILES, OWNER
from perdure.context.parts import Files
from perdure.context.reading import NodeReader
from perdure.engine.made import Made
from perdure.model import Uri
from perdure.storage.history import History


class Logged:
    """Reads names and contents in a history, for the places that a reader reads."""

    def __init__(self, history: History, reader: NodeReader) -> None:
        self._history = history
        self._reader = reader

    def changed(self, account_id: str, after: int, until: int | None = None) -> list[Uri]:
        """Return the places whose texts were named after a position, and the folders above.

        With `until`, what was named later does not count. Whose a session is, is told of all
        folders in it.
        """
        self._history.position()  # so that the names are known
        below = self._below(account_id)
        places: dict[Uri, None] = {}
        named = self._history.store.catalogue.named_since(after, until)
        keys = [key for key in named if key.startswith(below)]
        for place in filter(None, map(self._place_at, dict.fromkeys(map(_folder, keys)))):
            places |= dict.fromkeys((place, *folders_of(place)))
        for key in keys:
            session = self._place(key) if key.endswith(f"/{OWNER}") else None
            for node in () if session is None else self._reader.walk(session):
                places |= dict.fromkeys(folders_of(node))
        return list(places)

    def differing(self, read: Mapping[Uri, Files], position: int) -> set[str]:
        """Return the places where files were read that are not what the log says as of then."""
        files = {
            self._reader.file(place, name).key: (place, found)
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
        places = {self._place(key) for key in names if key.rpartition("/")[2] in FILES}
        for place in places:
            if place is not None and place.is_node and place not in seen:
                yield place

    def _below(self, account_id: str) -> str:
        return self._reader.folder(Uri(account_id)).key + "/"

    def _place(self, key: str) -> Uri | None:
        """Return the place whose folder a text lies in."""
        return self._place_at(_folder(key))

    def _place_at(self, folder: str) -> Uri | None:
        root = len(self._reader.root.key) + 1 if self._reader.root.key else 0
        return Uri.of_key(folder[root:])


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def folders_of(place: Uri) -> Iterator[Uri]:
    """Yield the folders above a node that have an owner, the nearest first."""
    folder = place.parent
    while len(folder.path) > 1:
        yield folder
        folder = folder.parent
