"""What status and doctor find."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from perdure.model.values import JSON
from perdure.storage import StoragePreview


@dataclass(frozen=True, slots=True)
class StatusPart:
    """One part of a memory: config, storage, nodes, history, index, outbox, model, llm or disk."""

    name: str
    facts: Mapping[str, JSON]
    trouble: str = ""
    """What is wrong, with the fix; empty if nothing is."""


class Severity(Enum):
    OK = "ok"
    NOTE = "note"
    """All is well, and could be better."""
    WARN = "warn"
    """It works, but somebody should look."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what came of it."""

    name: str
    level: Severity
    message: str
    """What was found; unless all is well, with the fix."""


@dataclass(frozen=True, slots=True)
class Checkup:
    storage: StoragePreview
    checks: tuple[Check, ...]
    """All, but for the storage."""

    @property
    def ok(self) -> bool:
        return self.storage.ok and all(check.level is not Severity.FAIL for check in self.checks)
