"""Read-only backends, and the base of wrappers."""

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

from perdure.errors import AccessRefusedError
from perdure.storage.changes import Changes, Conditions, Expectation
from perdure.storage.contract import (
    ROOT,
    Capabilities,
    ConflictStrategy,
    DerivedMaintenance,
    Finding,
    Info,
    Listing,
    Skip,
    StorageBackend,
)
from perdure.storage.locator import Locator

if TYPE_CHECKING:
    from perdure.storage.personal import Authorisation


class ImmutableBackend(StorageBackend):
    """A backend whose verbs that change it raise `AccessRefusedError`."""

    def _refuse(self, locator: Locator) -> NoReturn:
        raise AccessRefusedError(
            f"{locator.key!a} can't be changed here: it was opened read-only. "
            "Fix: save it with `perdure save` or `perdure write`."
        )

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        del content, expect
        self._refuse(locator)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        del expect
        self._refuse(locator)

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        del expect
        for locator in changes:
            self._refuse(locator)

    def mkdir(self, locator: Locator) -> Locator:
        self._refuse(locator)

    def _write_personal(self, locator: Locator, *_: object) -> Locator:
        self._refuse(locator)


class DelegatingReader(StorageBackend):
    """A backend that delegates the reading verbs to its `inner`."""

    inner: StorageBackend

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def whereabouts(self) -> str:
        return self.inner.whereabouts

    @property
    def identity(self) -> str:
        return self.inner.identity

    def resolve(self, *parts: str) -> Locator:
        return self.inner.resolve(*parts)

    def read(self, locator: Locator) -> str:
        return self.inner.read(locator)

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return self.inner.read_all(directory, names)

    def list(self, locator: Locator) -> list[Locator]:
        return self.inner.list(locator)

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        return self.inner.scan(directory, skip=skip)

    def exists(self, locator: Locator) -> bool:
        return self.inner.exists(locator)

    def info(self, locator: Locator) -> Info:
        return self.inner.info(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return self.inner.findings(locator)

    def earlier(self, locator: Locator) -> Iterator[str]:
        return self.inner.earlier(locator)

    def saved(self, locator: Locator) -> str | None:
        return self.inner.saved(locator)

    def first(self, locator: Locator, most: int) -> Sequence[Locator]:
        return self.inner.first(locator, most)


class ReadOnly(DelegatingReader, ImmutableBackend):
    """A backend that can't be changed: it holds only the reading verbs of the one it wraps."""

    def __init__(self, inner: StorageBackend) -> None:
        verbs = "resolve read read_all list scan exists info findings earlier saved first"
        names = (*verbs.split(), "capabilities", "whereabouts", "identity", "is_past")
        readable = SimpleNamespace(**{name: getattr(inner, name) for name in names})
        self.inner = cast("StorageBackend", readable)


class BackendWrapper(DelegatingReader):
    """A backend around another one, `inner`, to which it delegates."""

    def _write_personal(
        self, locator: Locator, content: str, authorisation: "Authorisation", expect: Expectation
    ) -> Locator:
        return self.inner.write_personal(
            locator, content, authorisation=authorisation, expect=expect
        )

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return self.inner.conflict_strategy

    @property
    def derived_maintenance(self) -> DerivedMaintenance | None:
        return self.inner.derived_maintenance
