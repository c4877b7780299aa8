"""The storage seam: texts at places, whatever holds them."""

from typing import TYPE_CHECKING

from perdure.errors import (
    CapabilityMismatchError,
    ConcurrentModificationError,
    InvalidLocatorError,
    LockTimeout,
    OptionError,
    PersonalWriteRefusedError,
    ProtocolError,
    StorageSelectionError,
)
from perdure.exports import exports
from perdure.storage.content import (
    ABSENT,
    Expectation,
    check_expectation,
    check_found,
    content_hash,
    encode_text,
)
from perdure.storage.contract import (
    Capabilities,
    ConflictStrategy,
    Finding,
    FindingKind,
    Info,
    StorageBackend,
    TransactionalBackend,
    walk,
)
from perdure.storage.locator import Locator, normalize_key
from perdure.storage.registry import BackendOptions, BackendRegistry, registry

if TYPE_CHECKING:
    from perdure.storage.batch import atomic_write
    from perdure.storage.lock.mutex import LockTiming, Mutex, vault_mutex
    from perdure.storage.personal import Authorisation
    from perdure.storage.selection import (
        StoragePreview,
        StorageSettings,
        select_backend,
        storage_preview,
    )
    from perdure.storage.tiers import DerivedMaintenance, Tier, TierLayout
else:
    __getattr__ = exports(
        __name__,
        {
            "batch": "atomic_write",
            "lock.mutex": "LockTiming Mutex vault_mutex",
            "personal": "Authorisation",
            "selection": "StoragePreview StorageSettings select_backend storage_preview",
            "tiers": "DerivedMaintenance Tier TierLayout",
        },
    )

__all__ = [
    "ABSENT",
    "Authorisation",
    "BackendOptions",
    "BackendRegistry",
    "Capabilities",
    "CapabilityMismatchError",
    "ConcurrentModificationError",
    "ConflictStrategy",
    "DerivedMaintenance",
    "Expectation",
    "Finding",
    "FindingKind",
    "Info",
    "InvalidLocatorError",
    "Locator",
    "LockTimeout",
    "LockTiming",
    "Mutex",
    "OptionError",
    "PersonalWriteRefusedError",
    "ProtocolError",
    "StorageBackend",
    "StoragePreview",
    "StorageSelectionError",
    "StorageSettings",
    "Tier",
    "TierLayout",
    "TransactionalBackend",
    "atomic_write",
    "check_expectation",
    "check_found",
    "content_hash",
    "encode_text",
    "normalize_key",
    "registry",
    "select_backend",
    "storage_preview",
    "vault_mutex",
    "walk",
]
