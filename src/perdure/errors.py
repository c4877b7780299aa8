"""Every exception that Perdure raises on purpose, and the one for an error of the system.

    PerdureError
    ├── ProtocolError                      ValueError         a backend can't be registered so
    ├── StorageSelectionError              RuntimeError       the configured backend is unavailable
    │   ├── ConfigError                    ValueError         the config or environment is invalid
    │   ├── OptionError                    ValueError         a backend refuses one of its options
    │   ├── CapabilityMismatchError                           it lacks a required capability
    │   ├── StoreIdentityError                                it may be another store, or a copy
    │   └── PluginError                    ImportError        an installed package can't be used
    ├── ArtifactError                                         the artifact store refused
    │   ├── InvalidCIDError                ValueError         the text or bytes are not a CID
    │   ├── InvalidArtifactError           ValueError         the artifact is invalid
    │   │   └── CycleError                                    it would be derived from itself
    │   ├── OperationError                 RuntimeError       an operation is unknown, or failed
    │   ├── DeterminismError               RuntimeError       one derivation gave two results
    │   ├── DamageError                    RuntimeError       stored bytes were altered
    │   ├── StaleIndexError                RuntimeError       an index must be rebuilt
    │   ├── ProofError                     ValueError         a proof is malformed, or wrong
    │   ├── ArchiveError                   ValueError         an archive can't be imported
    │   ├── UnknownContentError            LookupError        the content was never put
    │   ├── ClosedError                    RuntimeError       the store was closed
    │   └── StateError                     LookupError        the state can't be read
    │       ├── UnknownSnapshotError                          no such snapshot was taken
    │       ├── BeforeSnapshotError                           the position is before its snapshot
    │       ├── FuturePositionError                           the log is not that long yet
    │       └── RetentionError                                older than what is retained
    ├── ContextError                                          a verb of memory refused
    │   ├── InvalidValueError              ValueError         the node, edge or event is invalid
    │   │   ├── InvalidUriError                               the text is not a URI of memory
    │   │   ├── EvidenceError                                 a memory has no evidence
    │   │   ├── UnreadableSourceError                         the source of an import is unreadable
    │   │   └── SecretRefusedError                            it holds a key, token or password
    │   ├── AccessDeniedError              PermissionError    out of the caller's reach
    │   ├── NodeNotFoundError              FileNotFoundError  no such node, or it is not active
    │   ├── NodeExistsError                FileExistsError    a node is there already
    │   ├── ForgottenError                 FileExistsError    the user forgot it
    │   ├── SwitchedOffError               PermissionError    the user switched memory off here
    │   ├── VersionMismatchError           RuntimeError       not the version that was expected
    │   ├── BrokenNodeError                RuntimeError       its files can't be parsed
    │   └── LeaseError                     RuntimeError       another worker has the event
    ├── HarnessError                                          projects, their plans and state
    │   ├── ProjectError                   ValueError         no project, or an invalid name
    │   ├── RepoRegistryError              ValueError         the list of repositories is broken
    │   ├── SlugTakenError                 FileExistsError    another repository has the name
    │   ├── StateModeError                 ValueError         no such state mode
    │   ├── StateUnavailableError          ValueError         the store of state is unavailable
    │   ├── PlanNameError                  ValueError         the text is not a plan's name
    │   └── ActivePlanError                ValueError         the marker names a missing plan
    ├── PackageMissingError                ImportError        an extra is not installed
    ├── LanguageModelError                                    a language model gave no answer
    │   ├── AnswerRefusedError             RuntimeError       the model declined
    │   ├── AnswerTruncatedError           RuntimeError       the answer is incomplete
    │   ├── AnswerMalformedError           ValueError         the answer has the wrong form
    │   ├── RequestRefusedError            RuntimeError       the service refused the request
    │   ├── ServiceUnreachableError        OSError            the service did not answer
    │   └── OverBudgetError                RuntimeError       it might exceed the budget
    ├── EmbeddingError                                        texts get no vectors
    │   ├── ModelNotInstalledError         FileNotFoundError  the model is not on this machine
    │   ├── ModelDamagedError              RuntimeError       its files were altered
    │   ├── InstallError                   RuntimeError       it can't be downloaded or checked
    │   └── EndpointError                  OSError            a service gave no valid answer
    └── StorageError                                          a verb of the seam failed
        ├── InvalidLocatorError            ValueError         the key is invalid
        ├── NotTextError                   ValueError         the content is not UTF-8 text
        ├── AbsentError                    FileNotFoundError  nothing is there
        ├── PathIsDirectoryError         IsADirectoryError
        ├── ParentIsFileError              NotADirectoryError a file is above it
        ├── PathIsFileError                FileExistsError
        ├── DirectoryNotEmptyError         OSError
        ├── LinkRefusedError               PermissionError    a link or device; never followed
        ├── AccessRefusedError             PermissionError    read-only, or not permitted
        ├── PersonalWriteRefusedError      PermissionError    no operator authorised it
        ├── ConcurrentModificationError    RuntimeError       not the content that was expected
        ├── StorageFullError               OSError
        ├── StorageUnavailableError        OSError            the root is missing, or not mounted
        │   └── TextsGoneError                                many texts are missing at once
        ├── StorageFaultError              OSError            any other fault of the disk
        ├── LockTimeout                    TimeoutError       another process holds the lock
        └── LockLostError                  RuntimeError       another process took the lock over

Each is also the builtin that a caller would expect, so `except FileNotFoundError` works.
A message states what happened, where, and how to fix it.
"""

import errno
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING


class PerdureError(Exception):
    """Base of all; catch this at a surface.

    `options` are arguments with which the verb would succeed. They are part of the message, spelled
    as in a Python call; a surface can spell them in its own syntax.
    """

    def __init__(self, *args: object, options: Mapping[str, object] | None = None) -> None:
        super().__init__(*args)
        self.options = dict(options or {})

    def __str__(self) -> str:
        return self.message(lambda name, value: f"{name}={value!r}")

    def message(self, spelled: Callable[[str, object], str]) -> str:
        """Return the message with its options spelled by a function of name and value.

        An option that it spells as an empty text is omitted.
        """
        text = super().__str__()
        if not self.options:
            return text
        options = " or ".join(filter(None, (spelled(*each) for each in self.options.items())))
        return f"{text}, or pass {options}." if options else f"{text}."


class ProtocolError(PerdureError, ValueError): ...


class StorageSelectionError(PerdureError, RuntimeError): ...


class ConfigError(StorageSelectionError, ValueError): ...


class OptionError(StorageSelectionError, ValueError):
    """A backend refuses the option `option` of its table in the config."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option = option

    def __str__(self) -> str:
        return str(self.args[1])


class CapabilityMismatchError(StorageSelectionError): ...


class StoreIdentityError(StorageSelectionError): ...


class PluginError(StorageSelectionError, ImportError): ...


class ArtifactError(PerdureError): ...


class InvalidCIDError(ArtifactError, ValueError): ...


class InvalidArtifactError(ArtifactError, ValueError): ...


class CycleError(InvalidArtifactError): ...


class OperationError(ArtifactError, RuntimeError): ...


class DeterminismError(ArtifactError, RuntimeError): ...


class DamageError(ArtifactError, RuntimeError): ...


class StaleIndexError(ArtifactError, RuntimeError): ...


class ProofError(ArtifactError, ValueError): ...


class ArchiveError(ArtifactError, ValueError): ...


class UnknownContentError(ArtifactError, LookupError): ...


class ClosedError(ArtifactError, RuntimeError): ...


class StateError(ArtifactError, LookupError): ...


class UnknownSnapshotError(StateError): ...


class BeforeSnapshotError(StateError): ...


class FuturePositionError(StateError): ...


class RetentionError(StateError): ...


class ContextError(PerdureError): ...


class InvalidValueError(ContextError, ValueError): ...


class InvalidUriError(InvalidValueError): ...


class EvidenceError(InvalidValueError): ...


class UnreadableSourceError(InvalidValueError): ...


class SecretRefusedError(InvalidValueError): ...


class AccessDeniedError(ContextError, PermissionError): ...


class NodeNotFoundError(ContextError, FileNotFoundError): ...


class NodeExistsError(ContextError, FileExistsError): ...


class ForgottenError(ContextError, FileExistsError): ...


class SwitchedOffError(ContextError, PermissionError): ...


class VersionMismatchError(ContextError, RuntimeError): ...


class BrokenNodeError(ContextError, RuntimeError): ...


class LeaseError(ContextError, RuntimeError): ...


class HarnessError(PerdureError): ...


class ProjectError(HarnessError, ValueError): ...


class RepoRegistryError(HarnessError, ValueError): ...


class SlugTakenError(HarnessError, FileExistsError): ...


class StateModeError(HarnessError, ValueError): ...


class StateUnavailableError(HarnessError, ValueError): ...


class PlanNameError(HarnessError, ValueError): ...


class ActivePlanError(HarnessError, ValueError): ...


class PackageMissingError(PerdureError, ImportError): ...


class LanguageModelError(PerdureError): ...


class AnswerRefusedError(LanguageModelError, RuntimeError): ...


class AnswerTruncatedError(LanguageModelError, RuntimeError): ...


class AnswerMalformedError(LanguageModelError, ValueError): ...


class RequestRefusedError(LanguageModelError, RuntimeError): ...


class ServiceUnreachableError(LanguageModelError, OSError):
    """The service is absent, busy, too slow or failing, or it broke off its answer."""

    def __init__(
        self,
        message: str,
        *,
        is_transient: bool = False,
        may_be_billed: bool = True,
        wait: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.may_be_billed = may_be_billed
        """Whether the service may charge for the request."""
        self.wait = wait


class OverBudgetError(LanguageModelError, RuntimeError): ...


class EmbeddingError(PerdureError): ...


class ModelNotInstalledError(EmbeddingError, FileNotFoundError): ...


class ModelDamagedError(EmbeddingError, RuntimeError): ...


class InstallError(EmbeddingError, RuntimeError): ...


class EndpointError(EmbeddingError, OSError): ...


class StorageError(PerdureError): ...


class InvalidLocatorError(StorageError, ValueError): ...


class NotTextError(StorageError, ValueError): ...


class AbsentError(StorageError, FileNotFoundError): ...


class PathIsDirectoryError(StorageError, IsADirectoryError): ...


class ParentIsFileError(StorageError, NotADirectoryError): ...


class PathIsFileError(StorageError, FileExistsError): ...


class DirectoryNotEmptyError(StorageError, OSError): ...


class LinkRefusedError(StorageError, PermissionError): ...


class AccessRefusedError(StorageError, PermissionError): ...


class PersonalWriteRefusedError(StorageError, PermissionError): ...


class ConcurrentModificationError(StorageError, RuntimeError): ...


class StorageFullError(StorageError, OSError): ...


class StorageUnavailableError(StorageError, OSError): ...


class TextsGoneError(StorageUnavailableError): ...


class StorageFaultError(StorageError, OSError): ...


class LockTimeout(StorageError, TimeoutError):  # noqa: N818 - the seed's own name
    ...


class LockLostError(StorageError, RuntimeError): ...


if not TYPE_CHECKING:  # type checkers accept only a literal list
    _CLASSES = {name: each for name, each in globals().items() if isinstance(each, type)}
    __all__ = [name for name, each in _CLASSES.items() if issubclass(each, PerdureError)]


# ---------------------------------------------------------------- errors of the operating system
_UNAVAILABLE = (
    "the storage is no longer available",
    "mount the drive or start the sync client again, then try again",
)
_READ_ONLY = ("it can't be changed", "make the folder and its files writable for this user")
_TOO_MANY_OPEN = ("too many files are open", "close some, or raise the limit with ulimit -n")
_FULL = ("the disk or the quota is full, and nothing was changed", "free some space")

_MEANINGS: dict[int, tuple[type[StorageError], str, str]] = {
    errno.ENOENT: (AbsentError, "nothing is there", "list the folder above to see what is there"),
    errno.EISDIR: (PathIsDirectoryError, "it is a directory", "name a text below it"),
    errno.ENOTDIR: (ParentIsFileError, "a text is above it", "choose a place outside of it"),
    errno.EEXIST: (PathIsFileError, "a text is there", "choose another name or remove it"),
    errno.ENOTEMPTY: (DirectoryNotEmptyError, "it is not empty", "remove what it holds first"),
    errno.ELOOP: (
        LinkRefusedError,
        "it is a link or a device, and those are never followed",
        "replace it with a real file or folder",
    ),
    errno.ENAMETOOLONG: (InvalidLocatorError, "its name is too long for the disk", "shorten it"),
    errno.ENOSPC: (StorageFullError, *_FULL),
    errno.EDQUOT: (StorageFullError, *_FULL),
    errno.EFBIG: (StorageFullError, *_FULL),
    errno.EACCES: (AccessRefusedError, *_READ_ONLY),
    errno.EPERM: (AccessRefusedError, *_READ_ONLY),
    errno.EROFS: (AccessRefusedError, *_READ_ONLY),
    errno.EMFILE: (StorageFaultError, *_TOO_MANY_OPEN),
    errno.ENFILE: (StorageFaultError, *_TOO_MANY_OPEN),
    errno.ESTALE: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENOTCONN: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENODEV: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENXIO: (StorageUnavailableError, *_UNAVAILABLE),
}


_UNREADABLE = (
    AccessRefusedError,
    "it may not be read",
    "make the folder and its files readable for this user",
)


def storage_read_error(error: OSError, root: str, key: str) -> StorageError:
    """Return the error to raise for an `error` of a read."""
    if error.errno in {errno.EACCES, errno.EPERM}:
        return _storage_error(_UNREADABLE, root, key)
    return storage_error(error, root, key)


def storage_error(error: OSError, root: str, key: str) -> StorageError:
    """Return the error to raise for an `error` at the key `key` in the folder `root`."""
    unknown = (
        StorageFaultError,
        f"the disk reported {error.strerror!a}",
        "check the disk, then try again",
    )
    return _storage_error(_MEANINGS.get(error.errno or 0, unknown), root, key)


def _storage_error(
    meaning: tuple[type[StorageError], str, str], root: str, key: str
) -> StorageError:
    kind, what, fix = meaning
    return kind(f"{key!a} in {root!a}: {what}. Fix: {fix}.")


def absent_error(root: str, key: str) -> StorageError:
    return storage_error(FileNotFoundError(errno.ENOENT, ""), root, key)
