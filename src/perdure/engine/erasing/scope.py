"""What is to be erased, as keys of the history: the folders of places, and for how long."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perdure.context.files import OWNER
from perdure.context.reading import NodeReader
from perdure.model import Uri
from perdure.storage.history import Event, History
from perdure.storage.locator import Locator

_NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Span:
    """The keys of a folder, or one key, from one commit to another."""

    prefix: str
    deep: bool
    """Whether what lies in folders of the folder belongs to it."""
    since: int = 0
    until: int = _NO_END

    def holds(self, event: Event) -> bool:
        return self.since <= event.commit <= self.until and self.covers(event.key)

    def covers(self, key: str) -> bool:
        """Whether it is one of the keys, at whatever time."""
        if key == self.prefix:
            return True
        below = key.removeprefix(f"{self.prefix}/")
        return below != key and (self.deep or "/" not in below)


def spans_of(places: Iterable[Uri], reader: NodeReader) -> list[Span]:
    """Return the keys of nodes, or of all that is in a folder."""
    return [span for place in places for span in _spans(place, reader)]


def _spans(place: Uri, reader: NodeReader) -> Iterator[Span]:
    yield Span(reader.folder(place).key, deep=not place.is_node)
    if place.is_node:
        yield Span(reader.marker(place).key, deep=False)


def spans_of_sessions(
    history: History, reader: NodeReader, account_id: str, owner_space: str
) -> list[Span]:
    """Return the sessions that were an owner's, each for as long as it was theirs."""
    below = f"{reader.folder(Uri(account_id, ('sessions',))).key}/"
    history.position()
    owned: dict[str, int] = {}
    spans = []
    for event in history.changes():
        folder, _, name = event.key.rpartition("/")
        if name != OWNER or not event.key.startswith(below):
            continue
        if folder in owned:
            spans.append(Span(folder, deep=True, since=owned.pop(folder), until=event.commit))
        if _is_of(history, event, owner_space):
            owned[folder] = event.commit
    return [*spans, *(Span(folder, deep=True, since=at) for folder, at in owned.items())]


def _is_of(history: History, event: Event, owner_space: str) -> bool:
    """Whether a file says that a session is an owner's; what was erased says it of nobody."""
    data = None if event.cid is None else history.store.get(event.cid)
    return data == f"{owner_space}\n".encode()


def texts_in(spans: Iterable[Span], reader: NodeReader) -> list[Locator]:
    """Return the texts that are there now; of a session the owner comes last."""
    found = {text: None for span in spans if span.until == _NO_END for text in _texts(span, reader)}
    return sorted(found, key=lambda text: text.name == OWNER)


def _texts(span: Span, reader: NodeReader) -> Iterator[Locator]:
    backend, place = reader.backend, Locator(span.prefix)
    if not backend.exists(place):
        return
    if not backend.info(place).is_dir:
        yield place
        return
    for child in backend.list(place):
        if not backend.info(child).is_dir:
            yield child
        elif span.deep:
            yield from _texts(Span(child.key, deep=True), reader)
