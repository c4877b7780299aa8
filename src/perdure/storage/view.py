"""The past as a read-only backend: every text as of a state."""

from collections.abc import Iterator, Sequence
from typing import NoReturn

from perdure.artifacts import CID, IndexState
from perdure.artifacts.entry import Binding
from perdure.errors import AbsentError, AccessRefusedError, PathIsDirectoryError
from perdure.storage.contract import ROOT, Capabilities, Info, Listing, Skip
from perdure.storage.locator import Locator, children_named, is_key_segment
from perdure.storage.read_only import ImmutableBackend
from perdure.storage.text_history import History, decode_text

_ANY = CID.of(b"")


class View(ImmutableBackend):
    """A history as of a state. A directory exists while a text is below it.

    Raises `StateError` for a state that is not retained, at once or when that changes.
    """

    is_past: bool = True

    def __init__(self, history: History, state: IndexState) -> None:
        self._history = history
        self._store = history.store
        self._catalogue = history.store.catalogue
        self._state = state
        self._check()
        self._catalogue.follow()
        self._time = self._catalogue.commit_at(state.position)[1] / 1000

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def whereabouts(self) -> str:
        return f"the past, as of entry {self._state.position}"

    # ------------------------------------------------------------ reading
    def read(self, locator: Locator) -> str:
        bound = self._bound(locator)
        if bound is None or bound.cid is None:
            if self._is_directory(locator):
                raise PathIsDirectoryError(
                    f"{locator.key!a} was a directory. Fix: name a text below it."
                )
            raise self._absent(locator)
        data = self._store.get(bound.cid, self._state)
        if data is None:
            raise self._hidden(locator)
        return decode_text(data, locator.key)

    def list(self, locator: Locator) -> list[Locator]:
        if self._bound(locator) is not None:
            return []
        start = len(locator.key) + 1 if locator.key else 0
        names = {name for name, _ in self._catalogue.children(locator.key, self._state.position)}
        return children_named(locator, [n[start:] for n in names if is_key_segment(n[start:])])

    def first(self, locator: Locator, most: int) -> Sequence[Locator]:
        """Return the first of `list` without reading more; names that are not keys count too."""
        if self._bound(locator) is not None:
            return []
        start = len(locator.key) + 1 if locator.key else 0
        names = self._catalogue.first_children(locator.key, self._state.position, most)
        return children_named(locator, [n[start:] for n in names if is_key_segment(n[start:])])

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        for here, stamps in super().scan(directory, skip=skip):
            bound = {name: self._bound(here.child(name)) for name in stamps or ()}
            yield Listing(here, {name: b.cid.digest for name, b in bound.items() if b and b.cid})

    def exists(self, locator: Locator) -> bool:
        return self._bound(locator) is not None or self._is_directory(locator)

    def info(self, locator: Locator) -> Info:
        bound = self._bound(locator)
        if bound is not None and bound.cid is not None:
            location = self._store.locate(bound.cid, self._state)
            if location is None:
                raise self._hidden(locator)
            size = sum(part.length for part in location)
            return Info(locator, is_dir=False, size=size, mtime=bound.time / 1000)
        if self._is_directory(locator):
            return Info(locator, is_dir=True, size=0, mtime=self._time)
        raise self._absent(locator)

    def earlier(self, locator: Locator) -> Iterator[str]:
        return self._history.earlier(locator, self._state)

    def _bound(self, locator: Locator) -> Binding | None:
        self._check()
        bound = self._catalogue.last_binding(locator.key, self._state.position)
        return None if bound is None or bound.cid is None or not locator.key else bound

    def _is_directory(self, locator: Locator) -> bool:
        return not locator.key or self._catalogue.any_below(locator.key, self._state.position)

    def _check(self) -> None:
        self._store.has(_ANY, self._state)

    def _absent(self, locator: Locator) -> AbsentError:
        return AbsentError(
            f"nothing was at {locator.key!a} at entry {self._state.position}. "
            "Fix: list the directory above to see what was there."
        )

    def _hidden(self, locator: Locator) -> AbsentError:
        return AbsentError(
            f"the text at {locator.key!a} had been hidden or erased at entry "
            f"{self._state.position}. Fix: choose an earlier state."
        )

    def _refuse(self, locator: Locator) -> NoReturn:
        raise AccessRefusedError(
            f"{locator.key!a} can't be changed here: this is the past, as of entry "
            f"{self._state.position}. Fix: write to the present; `restore` brings a text back."
        )
