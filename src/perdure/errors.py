"""Every exception that Perdure raises on purpose.

    PerdureError
    ├── ProtocolError                      ValueError         a backend was registered badly
    ├── StorageSelectionError              RuntimeError       the configured backend can't be had
    │   ├── ConfigError                    ValueError         the config or environment is wrong
    │   ├── OptionError                    ValueError         a backend refuses one of its options
    │   ├── CapabilityMismatchError                           it can be had, but promises too little
    │   └── PluginError                    ImportError        an installed package can't be used
    ├── ArtifactError                                         the artifact store refused
    │   ├── InvalidCIDError                ValueError         the text or bytes name no content
    │   ├── InvalidArtifactError           ValueError         no such artifact can be
    │   │   └── CycleError                                    it would be derived from itself
    │   ├── OperationError                 RuntimeError       an operation is unknown, or failed
    │   ├── DeterminismError               RuntimeError       one derivation gave two results
    │   ├── DamageError                    RuntimeError       stored bytes are not what they were
    │   ├── StaleIndexError                RuntimeError       an index must be made anew
    │   ├── ProofError                     ValueError         a proof is malformed, or wrong
    │   ├── ArchiveError                   ValueError         an archive can't be taken in
    │   ├── UnknownContentError            LookupError        the content was never put
    │   ├── ClosedError                    RuntimeError       the store was closed
    │   └── StateError                     LookupError        no answer can be given as of a state
    │       ├── UnknownSnapshotError                          no such snapshot was taken
    │       ├── BeforeSnapshotError                           the position is before its snapshot
    │       ├── FuturePositionError                           the log is not that long yet
    │       └── RetentionError                                older than what is retained
    ├── ContextError                                          a verb of memory refused
    │   ├── InvalidValueError              ValueError         no such node, edge, event can be
    │   │   ├── InvalidUriError                               the text names no place in memory
    │   │   ├── EvidenceError                                 nobody said what is to be remembered
    │   │   ├── UnreadableSourceError                         what is to be imported can't be read
    │   │   └── SecretRefusedError                            it holds a key, token or password
    │   ├── AccessDeniedError              PermissionError    out of the caller's reach
    │   ├── NodeNotFoundError              FileNotFoundError  no such node, or it is not active
    │   ├── NodeExistsError                FileExistsError    a node is there already
    │   ├── VersionMismatchError           RuntimeError       not the version that was expected
    │   ├── BrokenNodeError                RuntimeError       its files can't be understood
    │   ├── UnregisteredError              RuntimeError       done, but the index was not told
    │   └── LeaseError                     RuntimeError       the event is somebody else's now
    ├── HarnessError                                          projects, their plans and state
    │   ├── ProjectError                   ValueError         no project, or one badly named
    │   ├── RepoRegistryError              ValueError         the list of repositories is broken
    │   ├── SlugTakenError                 FileExistsError    another repository has the name
    │   ├── StateModeError                 ValueError         no such way to keep state
    │   ├── StateUnavailableError          ValueError         where state is kept can't be had
    │   ├── PlanNameError                  ValueError         the text names no plan
    │   └── ActivePlanError                ValueError         the marker names no plan there is
    ├── PackageMissingError                ImportError        an extra is not installed
    ├── LanguageModelError                                    a language model was of no help
    │   ├── AnswerRefusedError             RuntimeError       the model declined
    │   ├── AnswerTruncatedError           RuntimeError       it stopped before it was done
    │   ├── AnswerMalformedError           ValueError         it is not what was asked for
    │   ├── RequestRefusedError            RuntimeError       the service turned it down
    │   ├── ServiceUnreachableError        OSError            no answer came
    │   └── OverBudgetError                RuntimeError       it might cost more than it may
    ├── EmbeddingError                                        texts get no vectors
    │   ├── ModelNotInstalledError         FileNotFoundError  the model is not on this machine
    │   ├── ModelDamagedError              RuntimeError       its files are not what they were
    │   ├── InstallError                   RuntimeError       it can't be got, or came out wrong
    │   └── EndpointError                  OSError            a service gave no good answer
    └── StorageError                                          a verb of the seam failed
        ├── InvalidLocatorError            ValueError         the key can name no place
        ├── NotTextError                   ValueError         the content is not UTF-8 text
        ├── AbsentError                    FileNotFoundError  nothing is there
        ├── DirectoryInTheWayError         IsADirectoryError
        ├── FileAboveError                 NotADirectoryError a file stands above
        ├── FileInTheWayError              FileExistsError
        ├── DirectoryNotEmptyError         OSError
        ├── LinkRefusedError               PermissionError    a link or device; never followed
        ├── AccessRefusedError             PermissionError    read-only, or not ours
        ├── PersonalWriteRefusedError      PermissionError    no operator authorised it
        ├── ConcurrentModificationError    RuntimeError       not the content that was expected
        ├── StorageFullError               OSError
        ├── StorageUnavailableError        OSError            the root is gone, or not mounted
        ├── StorageFaultError              OSError            the disk failed in another way
        ├── LockTimeout                    TimeoutError       somebody else holds the lock
        └── LockLostError                  RuntimeError       we stalled and were taken over

Each is also the builtin that a caller would expect, so `except FileNotFoundError` works.
A message says what happened, where, and how to mend it.
"""

from collections.abc import Callable, Mapping

__all__ = [
    "AbsentError",
    "AccessDeniedError",
    "AccessRefusedError",
    "ActivePlanError",
    "AnswerMalformedError",
    "AnswerRefusedError",
    "AnswerTruncatedError",
    "ArchiveError",
    "ArtifactError",
    "BeforeSnapshotError",
    "BrokenNodeError",
    "CapabilityMismatchError",
    "ClosedError",
    "ConcurrentModificationError",
    "ConfigError",
    "ContextError",
    "CycleError",
    "DamageError",
    "DeterminismError",
    "DirectoryInTheWayError",
    "DirectoryNotEmptyError",
    "EmbeddingError",
    "EndpointError",
    "EvidenceError",
    "FileAboveError",
    "FileInTheWayError",
    "FuturePositionError",
    "HarnessError",
    "InstallError",
    "InvalidArtifactError",
    "InvalidCIDError",
    "InvalidLocatorError",
    "InvalidUriError",
    "InvalidValueError",
    "LanguageModelError",
    "LeaseError",
    "LinkRefusedError",
    "LockLostError",
    "LockTimeout",
    "ModelDamagedError",
    "ModelNotInstalledError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NotTextError",
    "OperationError",
    "OptionError",
    "OverBudgetError",
    "PackageMissingError",
    "PerdureError",
    "PersonalWriteRefusedError",
    "PlanNameError",
    "PluginError",
    "ProjectError",
    "ProofError",
    "ProtocolError",
    "RepoRegistryError",
    "RequestRefusedError",
    "RetentionError",
    "SecretRefusedError",
    "ServiceUnreachableError",
    "SlugTakenError",
    "StaleIndexError",
    "StateError",
    "StateModeError",
    "StateUnavailableError",
    "StorageError",
    "StorageFaultError",
    "StorageFullError",
    "StorageSelectionError",
    "StorageUnavailableError",
    "UnknownContentError",
    "UnknownSnapshotError",
    "UnreadableSourceError",
    "UnregisteredError",
    "VersionMismatchError",
]


class PerdureError(Exception):
    """Base of all; catch this at a surface.

    `options` are arguments of the verb that would make it succeed, with the values to give. They
    are part of the message, spelled as a Python call; another door spells them its own way.
    """

    def __init__(self, *args: object, options: Mapping[str, object] | None = None) -> None:
        super().__init__(*args)
        self.options = dict(options or {})

    def __str__(self) -> str:
        return self.message(lambda name, value: f"{name}={value!r}")

    def message(self, spelled: Callable[[str, object], str]) -> str:
        """Return the message with its options spelled by a function of name and value.

        An option that it spells as an empty text is left out.
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


class VersionMismatchError(ContextError, RuntimeError): ...


class BrokenNodeError(ContextError, RuntimeError): ...


class UnregisteredError(ContextError, RuntimeError): ...


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
    """No answer came: nobody was there, or busy, too slow, failing, or gone in the middle of it."""

    def __init__(
        self, message: str, *, passing: bool = False, billed: bool = True, wait: float = 0.0
    ) -> None:
        super().__init__(message)
        self.passing = passing
        """Whether it may be otherwise in a moment."""
        self.billed = billed
        """Whether it may have to be paid for nevertheless."""
        self.wait = wait
        """For how many seconds the service wants to be left alone."""


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


class DirectoryInTheWayError(StorageError, IsADirectoryError): ...


class FileAboveError(StorageError, NotADirectoryError): ...


class FileInTheWayError(StorageError, FileExistsError): ...


class DirectoryNotEmptyError(StorageError, OSError): ...


class LinkRefusedError(StorageError, PermissionError): ...


class AccessRefusedError(StorageError, PermissionError): ...


class PersonalWriteRefusedError(StorageError, PermissionError): ...


class ConcurrentModificationError(StorageError, RuntimeError): ...


class StorageFullError(StorageError, OSError): ...


class StorageUnavailableError(StorageError, OSError): ...


class StorageFaultError(StorageError, OSError): ...


class LockTimeout(StorageError, TimeoutError):  # noqa: N818 - the seed's own name
    ...


class LockLostError(StorageError, RuntimeError): ...
