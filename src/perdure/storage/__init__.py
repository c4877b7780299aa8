"""The storage seam: texts at locators, in any backend."""

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
from perdure.plugins import exports
from perdure.storage.changes import (
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
    DerivedMaintenance,
    Finding,
    FindingKind,
    Info,
    StorageBackend,
    Tier,
    TierLayout,
    TransactionalBackend,
    walk,
)
from perdure.storage.locator import Locator, normalize_key
from perdure.storage.registry import (
    BackendOptions,
    BackendRegistry,
    StoragePreview,
    StorageSettings,
    registry,
    select_backend,
    storage_preview,
)

if TYPE_CHECKING:
    from perdure.storage.batch import atomic_write
    from perdure.storage.mutex import LockTiming, Mutex, vault_mutex
    from perdure.storage.personal import Authorisation
else:
    __getattr__ = exports(
        __name__,
        {
            "batch": "atomic_write",
            "mutex": "LockTiming Mutex vault_mutex",
            "personal": "Authorisation",
        },
    )

__all__ = ["Capabilities", "ConflictStrategy", "Finding", "FindingKind", "Info", "StorageBackend"]
__all__ += ["TransactionalBackend", "walk"]
__all__ += ["ABSENT", "Expectation", "check_expectation", "check_found"]
__all__ += ["Locator", "content_hash", "encode_text", "normalize_key"]
__all__ += ["BackendOptions", "BackendRegistry", "registry"]
__all__ += ["StoragePreview", "StorageSettings", "select_backend", "storage_preview"]
__all__ += ["LockTiming", "Mutex", "atomic_write", "vault_mutex"]
__all__ += ["Authorisation", "DerivedMaintenance", "Tier", "TierLayout"]
__all__ += ["CapabilityMismatchError", "ConcurrentModificationError", "InvalidLocatorError"]
__all__ += ["LockTimeout", "OptionError", "PersonalWriteRefusedError"]
__all__ += ["ProtocolError", "StorageSelectionError"]
