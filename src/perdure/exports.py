"""Names that a package exports, each imported when it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


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
