"""A backend around another one, of which it reads and tells what that one does."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from perdure.storage.content import Expectation
from perdure.storage.contract import (
    Capabilities,
    ConflictStrategy,
    Finding,
    Info,
    StorageBackend,
    TransactionalBackend,
)
from perdure.storage.locator import Locator

if TYPE_CHECKING:
    from perdure.storage.personal import Authorisation
    from perdure.storage.tiers import DerivedMaintenance


class Wrapped(TransactionalBackend):
    def __init__(self, inner: StorageBackend) -> None:
        self.inner = inner

    def resolve(self, *parts: str) -> Locator:
        return self.inner.resolve(*parts)

    def read(self, locator: Locator) -> str:
        return self.inner.read(locator)

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return self.inner.read_all(directory, names)

    def list(self, locator: Locator) -> list[Locator]:
        return self.inner.list(locator)

    def exists(self, locator: Locator) -> bool:
        return self.inner.exists(locator)

    def info(self, locator: Locator) -> Info:
        return self.inner.info(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return self.inner.findings(locator)

    def mkdir(self, locator: Locator) -> Locator:
        return self.inner.mkdir(locator)

    def write_personal(
        self,
        locator: Locator,
        content: str,
        *,
        authorisation: "Authorisation",
        expect: Expectation = None,
    ) -> Locator:
        """Write into the operator's own space, as `inner` does; it is no part of any commit."""
        return self.inner.write_personal(
            locator, content, authorisation=authorisation, expect=expect
        )

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def whereabouts(self) -> str:
        return self.inner.whereabouts

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return self.inner.conflict_strategy

    @property
    def derived_maintenance(self) -> "DerivedMaintenance | None":
        return self.inner.derived_maintenance
