"""The verbs of memory. A module is imported when `engine.NAME` is first used."""

from importlib import import_module
from typing import TYPE_CHECKING

if not TYPE_CHECKING:  # which knows the modules themselves

    def __getattr__(name: str) -> object:
        path = f"{__name__}.{name}"
        try:
            return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
