"""A backend's own table of the config file."""

import os
from collections.abc import Collection, Mapping

from perdure.errors import OptionError


class BackendOptions:
    """The table `[storage.<protocol>]`; an option that the backend doesn't know is refused."""

    def __init__(
        self, protocol: str, options: Mapping[str, object], known: Collection[str]
    ) -> None:
        self._protocol = protocol
        self._options = options
        for name in options:
            if name not in known:
                raise self._refused(name, "is not an option", f"use one of {sorted(known)}")

    def text(self, name: str) -> str | None:
        value = self._options.get(name)
        if value is None or isinstance(value, str):
            return value or None
        raise self._refused(name, f"is {value!r}, not text", "put it in quotes")

    def folder(self, name: str) -> str | None:
        """Return an absolute path. The config has put the user's home in place of `~`."""
        path = self.text(name)
        if path is not None and not os.path.isabs(path):
            raise self._refused(name, f"is {path!a}, not an absolute path", "start it with / or ~")
        return path

    def _refused(self, name: str, what: str, fix: str) -> OptionError:
        message = f"{name!a} in [storage.{self._protocol}] {what}. Fix: {fix}."
        return OptionError(name, message)
