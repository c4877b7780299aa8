"""Selects the backend that the settings name, or raises; never falls back to another."""

from collections.abc import Callable, Mapping, Sequence

from perdure.dataclass import dataclass, field
from perdure.errors import (
    CapabilityMismatchError,
    ConfigError,
    OptionError,
    StorageError,
    StorageSelectionError,
)
from perdure.storage.contract import Capabilities, StorageBackend
from perdure.storage.registry import BackendRegistry
from perdure.storage.registry import registry as default_registry

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
    registry: BackendRegistry = default_registry,
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
    registry: BackendRegistry = default_registry,
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
