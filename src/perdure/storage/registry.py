"""Backend classes by protocol name, and the options of a backend in the config file."""

import os
from collections.abc import Collection, Mapping
from importlib import import_module

from perdure.errors import OptionError, ProtocolError
from perdure.plugins import PluginGroup, find, offered
from perdure.storage.contract import StorageBackend


class BackendOptions:
    """The table `[storage.<protocol>]`; an unknown option raises `OptionError`."""

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
        """Return an absolute path. The config has replaced `~` by the user's home."""
        path = self.text(name)
        if path is not None and not os.path.isabs(path):
            raise self._refused(name, f"is {path!a}, not an absolute path", "start it with / or ~")
        return path

    def _refused(self, name: str, what: str, fix: str) -> OptionError:
        message = f"{name!a} in [storage.{self._protocol}] {what}. Fix: {fix}."
        return OptionError(name, message)


class BackendRegistry:
    """Backend classes by name. A bad registration raises; `get` of an unknown name is None."""

    def __init__(self) -> None:
        self._backends: dict[str, type[StorageBackend]] = {}

    def register(
        self, protocol: str, backend: type[StorageBackend], *, clobber: bool = False
    ) -> None:
        if not protocol.strip():
            raise ProtocolError("a backend needs a protocol name. Fix: register it under one.")
        _checked(backend)
        if protocol in self and not clobber:
            raise ProtocolError(
                f"the protocol {protocol!a} is taken. Fix: choose another name, or pass "
                "clobber=True to replace it on purpose."
            )
        self._backends[protocol] = backend

    def get(self, protocol: str) -> type[StorageBackend] | None:
        return self._backends.get(protocol)

    def __contains__(self, protocol: object) -> bool:
        return protocol in self._backends

    def protocols(self) -> tuple[str, ...]:
        return tuple(sorted(self._backends))


class InstalledBackends(BackendRegistry):
    """Registered, built-in and entry-point backends; each is imported when first used."""

    def __init__(self, built_in: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._built_in = dict(built_in or {})
        """Module and class, as an entry point names them."""
        self._loaded: dict[str, type[StorageBackend]] = {}

    def get(self, protocol: str) -> type[StorageBackend] | None:
        """Return the class; `PluginError` if an installed package offers one that can't be used."""
        registered = super().get(protocol)
        if registered is not None:
            return registered
        if protocol not in self._loaded:
            if protocol in self._built_in:
                self._loaded[protocol] = _imported(self._built_in[protocol])
            elif (found := find(PluginGroup.BACKEND, protocol, _checked)) is not None:
                self._loaded[protocol] = found
        return self._loaded.get(protocol)

    def __contains__(self, protocol: object) -> bool:
        known = super().__contains__(protocol) or protocol in self._built_in
        return known or protocol in offered(PluginGroup.BACKEND)

    def protocols(self) -> tuple[str, ...]:
        known = self._built_in.keys() | self._backends.keys()
        return tuple(sorted(offered(PluginGroup.BACKEND) | known))


def _imported(target: str) -> type[StorageBackend]:
    module, _, name = target.partition(":")
    return _checked(getattr(import_module(module), name))


def _checked(backend: object) -> type[StorageBackend]:
    if not (isinstance(backend, type) and issubclass(backend, StorageBackend)):
        raise TypeError(f"{backend!r} is not a class of StorageBackend; it can't be registered")
    if missing := sorted(backend.__abstractmethods__):
        raise TypeError(f"{backend.__name__} can't be registered: it lacks {missing}")
    return backend


registry: BackendRegistry = InstalledBackends(
    {
        "memory": "perdure.storage.backends.in_memory:MemoryBackend",
        "device-local": "perdure.storage.backends.device_local:DeviceLocalBackend",
        "vault": "perdure.storage.backends.vault:VaultBackend",
    }
)
"""The registry that selection uses by default."""
