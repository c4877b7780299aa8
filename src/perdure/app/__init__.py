"""The composition root: the only part that names concrete classes."""

from typing import TYPE_CHECKING

from perdure.app.opening import (
    adopt_history,
    caller_for,
    default_request,
    find_history,
    history_folder,
    import_memory,
    open_context,
    open_log,
    open_memory,
    open_recorded,
    open_signing_key,
    open_storage,
    preview_storage,
)
from perdure.app.signing import signing_key_file

if TYPE_CHECKING:
    from perdure.app.context import Context

__all__ = [
    "Context",
    "adopt_history",
    "caller_for",
    "default_request",
    "find_history",
    "history_folder",
    "import_memory",
    "open_context",
    "open_log",
    "open_memory",
    "open_recorded",
    "open_signing_key",
    "open_storage",
    "preview_storage",
    "signing_key_file",
]


def __getattr__(name: str) -> object:
    """Import what is asked for by name; `doctor` pays for none of it."""
    if name != "Context":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from perdure.app.context import Context

    return Context
