"""The storage below what is under test: watched, edited by hand, and broken on purpose."""

from collections.abc import Callable, Mapping

from perdure.errors import NotTextError, StorageFaultError
from perdure.model import Uri
from perdure.storage import Capabilities, Expectation, Info, Locator, StorageBackend
from perdure.testing.storage.storage_suite import tree


class Died(BaseException):
    """The process is gone: nobody goes on, and nobody cleans up."""


class Seam(StorageBackend):
    """Stands between what is under test and its storage, once it is called with that storage.

    The first content stays: a place that is opened again has what was there.
    """

    def __init__(self) -> None:
        self._inner: StorageBackend | None = None
        self._garbled: set[Locator] = set()
        self._left: int | None = None
        self._end: type[BaseException] = Died
        self._first: Callable[[], object] | None = None
        self.changed: list[str] = []
        """The keys that were written or removed, in order."""

    def __call__(self, inner: StorageBackend) -> StorageBackend:
        if self._inner is None:
            self._inner = inner
        return self

    @property
    def inner(self) -> StorageBackend:
        assert self._inner is not None, "promised to be on the seam, but did not ask for it"
        return self._inner

    @property
    def used(self) -> bool:
        return self._inner is not None

    # ------------------------------------------------------------ by hand
    def text(self, uri: str, name: str) -> str:
        return self.inner.read(_file(uri, name))

    def edit(self, uri: str, name: str, text: str) -> None:
        """Write a file as an editor would, which asks nobody."""
        self._garbled.discard(_file(uri, name))
        self.inner.write(_file(uri, name), text)

    def replace(self, uri: str, name: str, old: str, new: str) -> None:
        before = self.text(uri, name)
        assert old in before
        self.edit(uri, name, before.replace(old, new))

    def take_away(self, uri: str, name: str) -> None:
        self.inner.remove(_file(uri, name))

    def garble(self, uri: str, name: str) -> None:
        """Let a file be no text any more."""
        self._garbled.add(_file(uri, name))

    def files(self) -> dict[str, str]:
        """Return all texts that are there."""
        return {key: text for key, text in tree(self.inner).items() if text is not None}

    def names(self, uri: str) -> list[str]:
        """Return what is in the folder of a node."""
        return [child.name for child in self.inner.list(Locator(Uri.parse(uri).key))]

    # ------------------------------------------------------------ going wrong
    def die_after(self, changes: int) -> None:
        """Let the process end after so many changes."""
        self._left, self._end = changes, Died

    def fail_after(self, changes: int) -> None:
        """Let one change fail, after so many that succeed."""
        self._left, self._end = changes, StorageFaultError

    def work_again(self) -> None:
        self._left = None

    def before_next(self, action: Callable[[], object]) -> None:
        """Run a function just before the next change."""
        self._first = action

    def _change(self, locator: Locator) -> None:
        if self._left == 0:
            if self._end is StorageFaultError:
                self._left = None
            raise self._end(f"{locator.key!a} could not be written")
        if self._left is not None:
            self._left -= 1
        self.changed.append(locator.key)

    # ------------------------------------------------------------ the verbs
    def read(self, locator: Locator) -> str:
        if locator in self._garbled:
            raise NotTextError(f"{locator.key!a} is no text")
        return self.inner.read(locator)

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self._change(locator)
        written = self.inner.write(locator, content, expect=expect)
        self._garbled.discard(locator)
        return written

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self._change(locator)
        self.inner.remove(locator, expect=expect)
        self._garbled.discard(locator)

    def write_all(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        first, self._first = self._first, None
        if first is not None:
            first()
        if self._left is not None:
            super().write_all(changes, expect=expect)
            return
        self.inner.write_all(changes, expect=expect)
        self.changed.extend(locator.key for locator in changes)
        self._garbled.difference_update(changes)

    def list(self, locator: Locator) -> list[Locator]:
        return self.inner.list(locator)

    def exists(self, locator: Locator) -> bool:
        return self.inner.exists(locator)

    def info(self, locator: Locator) -> Info:
        return self.inner.info(locator)

    def mkdir(self, locator: Locator) -> Locator:
        return self.inner.mkdir(locator)

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities


def _file(uri: str, name: str) -> Locator:
    return Locator(f"{Uri.parse(uri).key}/{name}")
