"""Backend classes by protocol name, their options, and the choice of the one that settings name.

A backend that can't be opened raises; another one is never opened in its place.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module

from perdure.dataclass import dataclass, field
from perdure.errors import (
    CapabilityMismatchError,
    ConfigError,
    OptionError,
    ProtocolError,
    StorageError,
    StorageSelectionError,
)
from perdure.plugins import PluginGroup, find, offered
from perdure.storage.contract import Capabilities, StorageBackend


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
        "memory": "perdure.storage.in_memory:MemoryBackend",
        "device-local": "perdure.storage.device_local:DeviceLocalBackend",
        "vault": "perdure.storage.vault:VaultBackend",
    }
)
"""The registry that selection uses by default."""


# ---------------------------------------------------------------- selection
DEFAULT_PROTOCOL = "device-local"


def _nowhere(place: Sequence[str]) -> str:
    return f"the option {'.'.join(place)}"


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """The storage settings of the config file and the environment."""

    home: str
    backend: str | None = None
    """The choice in the config; it overrides everything else."""
    vault_path: str | None = None
    """The environment's `MEMORY_VAULT_PATH`; it selects the vault if the config chooses nothing."""
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The config's tables `[storage.<protocol>]`."""
    where: Callable[[Sequence[str]], str] = _nowhere
    """Returns the file and line of an entry of the config."""

    @property
    def protocol(self) -> str:
        if self.backend is not None:
            return self.backend
        return "vault" if self.vault_path else DEFAULT_PROTOCOL

    @property
    def reason(self) -> str:
        """Why this protocol is selected: the setting to change."""
        if self.backend is not None:
            return "backend in [storage] of the config file"
        return "MEMORY_VAULT_PATH in the environment" if self.vault_path else "the default"

    def options_for(self, protocol: str) -> Mapping[str, object]:
        options = self.options.get(protocol, {})
        if protocol != "vault" or not self.vault_path:
            return options
        if self.backend is None:  # the environment selected the vault, and its path
            return {**options, "path": self.vault_path}
        return {"path": self.vault_path, **options}


@dataclass(frozen=True, slots=True)
class StoragePreview:
    protocol: str
    reason: str
    ok: bool
    message: str
    """The text of the error, or what would be opened."""
    capabilities: Capabilities | None = None


def select_backend(
    settings: StorageSettings,
    *,
    required: Capabilities | None = None,
    registry: BackendRegistry = registry,
) -> StorageBackend:
    """Open the backend that the settings choose; `StorageSelectionError` if that fails."""
    protocol = settings.protocol
    backend_class = _registered(settings, registry)
    try:
        backend = backend_class.from_options(settings.options_for(protocol), settings.home)
        promised = backend.capabilities
    except OptionError as error:
        place = ("storage", protocol, error.option)
        raise ConfigError(f"{settings.where(place)}: {error}") from error
    except StorageSelectionError:
        raise
    except StorageError as error:
        raise StorageSelectionError(f"the backend {protocol!a} can't be opened: {error}") from error
    except Exception as error:  # a plug-in may raise anything; the message still needs a fix
        raise StorageSelectionError(
            f"the backend {protocol!a}, chosen by {settings.reason}, failed to open: "
            f"{type(error).__name__}: {error}. Fix: correct its options or its package."
        ) from error
    _require(promised, required, settings)
    return backend


def storage_preview(
    settings: StorageSettings,
    *,
    required: Capabilities | None = None,
    registry: BackendRegistry = registry,
) -> StoragePreview:
    """Return what `select_backend` would do. Changes nothing, and never raises its errors."""
    protocol, reason = settings.protocol, settings.reason
    try:
        backend = select_backend(settings, required=required, registry=registry)
    except StorageSelectionError as refusal:
        return StoragePreview(protocol, reason, ok=False, message=str(refusal))
    message = f"{protocol} at {backend.whereabouts}" if backend.whereabouts else protocol
    return StoragePreview(protocol, reason, True, message, backend.capabilities)  # noqa: FBT003


def _registered(settings: StorageSettings, registry: BackendRegistry) -> type[StorageBackend]:
    protocol = settings.protocol
    backend_class = registry.get(protocol)
    if backend_class is None:
        raise StorageSelectionError(
            f"no backend is called {protocol!a}, chosen by {settings.reason}. "
            f"Installed: {', '.join(registry.protocols())}. "
            "Fix: install the package that provides it, or choose one of these."
        )
    return backend_class


def _require(
    promised: Capabilities, required: Capabilities | None, settings: StorageSettings
) -> None:
    if required is None:
        return
    missing = promised.missing(required)
    if missing:
        raise CapabilityMismatchError(
            f"the backend {settings.protocol!a}, chosen by {settings.reason}, does not promise "
            f"{', '.join(missing)}. Fix: choose a backend that does, or require less."
        )
