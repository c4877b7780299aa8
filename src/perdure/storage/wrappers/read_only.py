"""Backends that can be read, and nothing else; and how a backend passes verbs on to another."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from perdure.errors import AccessRefusedError
from perdure.storage.content import Changes, Conditions, Expectation
from perdure.storage.contract import StorageBackend
from perdure.storage.locator import Locator

if TYPE_CHECKING:
    from perdure.storage.personal import Authorisation

Verb = TypeVar("Verb", bound=Callable[..., Any])


def passed_on(verb: Verb) -> Verb:
    """Return a verb of a wrapper that is the same verb of what it wraps, its `inner`."""
    name = verb.__name__
    return cast("Verb", lambda self, *given, **named: getattr(self.inner, name)(*given, **named))


def told_by_inner(name: str) -> property:
    """Return a property of a wrapper that is the same of what it wraps."""
    return property(lambda self: getattr(self.inner, name))


class Unchangeable(StorageBackend):
    """A backend of which each verb that would change it is an `AccessRefusedError`."""

    def _refuse(self, locator: Locator) -> NoReturn:
        raise AccessRefusedError(
            f"{locator.key!a} can't be changed here: it was opened to be read only. "
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

    def write_personal(
        self,
        locator: Locator,
        content: str,
        *,
        authorisation: "Authorisation",
        expect: Expectation = None,
    ) -> Locator:
        del content, authorisation, expect
        self._refuse(locator)


class Reading(StorageBackend):
    """A backend that is read as its `inner`."""

    resolve = passed_on(StorageBackend.resolve)
    read = passed_on(StorageBackend.read)
    read_all = passed_on(StorageBackend.read_all)
    list = passed_on(StorageBackend.list)
    exists = passed_on(StorageBackend.exists)
    info = passed_on(StorageBackend.info)
    findings = passed_on(StorageBackend.findings)
    earlier = passed_on(StorageBackend.earlier)
    capabilities = told_by_inner("capabilities")
    whereabouts = told_by_inner("whereabouts")
    identity = told_by_inner("identity")


class ReadOnly(Reading, Unchangeable):
    """A backend without any way to change it: of what it wraps it keeps the reading verbs only."""

    def __init__(self, inner: StorageBackend) -> None:
        verbs = "resolve read read_all list exists info findings earlier"
        names = (*verbs.split(), "capabilities", "whereabouts", "identity")
        self.inner = SimpleNamespace(**{name: getattr(inner, name) for name in names})
