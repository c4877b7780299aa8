"""The composition root: from a user's environment to the parts that work for it."""

from collections.abc import Mapping

from holdfast.config import load_config
from holdfast.errors import ConfigError
from holdfast.storage import (
    Capabilities,
    StorageBackend,
    StoragePreview,
    select_backend,
    storage_preview,
)


def open_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StorageBackend:
    """Open the backend that this user configured; `StorageSelectionError` if it can't be had."""
    return select_backend(load_config(environ).storage, required=required)


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
