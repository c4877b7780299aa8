"""The composition root: from a user's environment to the parts that work for it."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from holdfast.config import load_config
from holdfast.errors import ConfigError, StorageSelectionError
from holdfast.storage import (
    Capabilities,
    StorageBackend,
    StoragePreview,
    select_backend,
    storage_preview,
)
from holdfast.storage.history import History
from holdfast.storage.wrappers.recorded import Recorded


def open_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StorageBackend:
    """Open the backend that this user configured; `StorageSelectionError` if it can't be had."""
    return select_backend(load_config(environ).storage, required=required)


def open_recorded(environ: Mapping[str, str]) -> Recorded:
    """Open the backend that this user configured, with the history of its texts."""
    config = load_config(environ)
    backend = select_backend(config.storage)
    if not backend.identity:
        raise StorageSelectionError(
            f"the backend {config.storage.protocol!a} keeps nothing that a history could be of. "
            "Fix: choose another one with backend in [storage] of the config file."
        )
    return Recorded(backend, History.open(str(history_folder(config.home, backend.identity))))


def history_folder(home: Path, identity: str) -> Path:
    """Return where the history of a tree is kept: in the home, and never in the tree itself."""
    return home / "histories" / sha256(identity.encode(errors="surrogateescape")).hexdigest()[:32]


def signing_key_file(home: Path) -> Path:
    """Return where the key is kept that checkpoints are signed with."""
    return home / "signing-key"


def preview_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StoragePreview:
    """Say what `open_storage` would do, in its own words; changes nothing, refuses nothing."""
    try:
        settings = load_config(environ).storage
    except ConfigError as refusal:
        reason = "the config file and the environment"
        return StoragePreview("unknown", reason, ok=False, message=str(refusal))
    return storage_preview(settings, required=required)
