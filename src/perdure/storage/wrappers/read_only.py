"""A backend that can be read, and nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from perdure.errors import AccessRefusedError
from perdure.storage.content import Expectation
from perdure.storage.contract import Capabilities, Finding, Info, StorageBackend
from perdure.storage.locator import Locator

if TYPE_CHECKING:
    from perdure.storage.personal import Authorisation


class ReadOnly(StorageBackend):
    """`inner`, without any way to change it. Each verb that would is an `AccessRefusedError`.

    It keeps `inner` in no attribute: whoever has only this can't get at what could write.
    """

    def __init__(self, inner: StorageBackend) -> None:
        self._resolve = inner.resolve
        self._read = inner.read
        self._read_all = inner.read_all
        self._list = inner.list
        self._exists = inner.exists
        self._info = inner.info
        self._findings = inner.findings
        self._earlier = inner.earlier
        self._told = inner.capabilities, inner.whereabouts, inner.identity

    # ------------------------------------------------------------ reading
    def resolve(self, *parts: str) -> Locator:
        return self._resolve(*parts)

    def read(self, locator: Locator) -> str:
        return self._read(locator)

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return self._read_all(directory, names)

    def list(self, locator: Locator) -> list[Locator]:
        return self._list(locator)

    def exists(self, locator: Locator) -> bool:
        return self._exists(locator)

    def info(self, locator: Locator) -> Info:
        return self._info(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return self._findings(locator)

    def earlier(self, locator: Locator) -> Iterator[str]:
        return self._earlier(locator)

    @property
    def capabilities(self) -> Capabilities:
        return self._told[0]

    @property
    def whereabouts(self) -> str:
        return self._told[1]

    @property
    def identity(self) -> str:
        return self._told[2]

    # ------------------------------------------------------------ what is refused
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        del content, expect
        _refuse(locator)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        del expect
        _refuse(locator)

    def write_all(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        del expect
        for locator in changes:
            _refuse(locator)

    def mkdir(self, locator: Locator) -> Locator:
        _refuse(locator)

    def write_personal(
        self,
        locator: Locator,
        content: str,
        *,
        authorisation: "Authorisation",
        expect: Expectation = None,
    ) -> Locator:
        del content, authorisation, expect
        _refuse(locator)


def _refuse(locator: Locator) -> NoReturn:
    raise AccessRefusedError(
        f"{locator.key!a} can't be changed here: it was opened to be read only. "
        "Fix: save it with `perdure save` or `perdure write`."
    )
