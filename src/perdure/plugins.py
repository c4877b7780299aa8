"""Names that are imported when first used: what a package of ours exports, and what plugins offer.

Plugins are implementations that installed packages offer as entry points.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from perdure.errors import PerdureError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class PluginGroup(Enum):
    """A contract that packages can implement. The value is the entry-point group."""

    BACKEND = "perdure.backends"
    INDEX = "perdure.indexes"
    EMBEDDER = "perdure.embedders"
    LLM = "perdure.llms"
    IMPORTER = "perdure.importers"

    def __str__(self) -> str:
        return "LLM" if self is PluginGroup.LLM else self.name.lower()


def offered(group: PluginGroup) -> set[str]:
    """Return the names that installed packages offer. Nothing is imported."""
    return {entry.name for entry in _entries(group)}


def find(group: PluginGroup, name: str, use: Callable[[object], T]) -> T | None:
    """Import what a package offers under a name and return `use` of it; None if none offers it.

    Raises `PluginError` if several packages offer it, or if it can't be imported or used. A
    `PerdureError` passes through, so that an implementation can refuse its settings.
    """
    offers = list({each.value: each for each in _entries(group) if each.name == name}.values())
    if not offers:
        return None
    if len(offers) > 1:
        raise PluginError(
            f"several installed packages offer the {group} {name!a}: "
            f"{', '.join(offer.value for offer in offers)}. Fix: uninstall all but one."
        )
    try:
        return use(offers[0].load())
    except PerdureError:
        raise
    except (Exception, SystemExit) as error:  # code of other authors can raise anything
        raise PluginError(
            f"the {group} {name!a} is installed, but {offers[0].value} can't be used: "
            f"{type(error).__name__}: {error}. Fix: repair or reinstall its package."
        ) from error


def create(group: PluginGroup, name: str, contract: type[T], *arguments: object) -> T:
    """Call the factory that a package offers under a name, and return the implementation.

    Raises `PluginError` if no package offers the name, or if the result lacks the contract.
    """

    def created(factory: object) -> T:
        if not callable(factory):
            raise TypeError(f"{factory!r} is not a class or a function")
        implementation = factory(*arguments)
        if not isinstance(implementation, contract):
            raise TypeError(f"{implementation!r} lacks what {contract.__name__} promises")
        return implementation

    found = find(group, name, created)
    if found is None:
        raise PluginError(
            f"no installed package offers the {group} {name!a}. "
            f"Fix: install a package with that entry point in {group.value}, or use another name."
        )
    return found


def _entries(group: PluginGroup) -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and rarely needed

    return entry_points(group=group.value)


def exports(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package, given the names in each of its modules."""
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def found(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next import of it costs nothing
        return value

    return found
