"""The composition root: the only package that names concrete classes."""

from typing import TYPE_CHECKING

from perdure.app.open import (
    adopt_store,
    caller_for,
    default_request,
    find_history,
    import_memory,
    open_log,
    open_recorded,
    open_signing_key,
    open_storage,
    open_texts,
    preview_storage,
    separate_store,
)
from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.app.composition import Context, open_context, open_memory
else:
    __getattr__ = exports(__name__, {"composition": "Context open_context open_memory"})

__all__ = [
    "Context",
    "adopt_store",
    "caller_for",
    "default_request",
    "find_history",
    "import_memory",
    "open_context",
    "open_log",
    "open_memory",
    "open_recorded",
    "open_signing_key",
    "open_storage",
    "open_texts",
    "preview_storage",
    "separate_store",
]
