"""Who owns the truth, and what may be replicated."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from perdure.storage.locator import Locator


class Tier(Enum):
    SOURCE = "source"
    """The Markdown: the truth that the others are rebuilt from."""
    SHARED_ABSTRACTS = "shared-abstracts"
    """Summaries: useful on every device, rebuilt if lost."""
    LOCAL_INDEX = "local-index"
    """Databases: for one device, because a replicated database file gets corrupted."""

    @property
    def syncs(self) -> bool:
        """Whether something else may replicate this tier."""
        return self is not Tier.LOCAL_INDEX

    @property
    def derived(self) -> bool:
        """Whether this tier can be rebuilt from the source."""
        return self is not Tier.SOURCE


@dataclass(frozen=True, slots=True)
class TierLayout:
    """Where each tier has its root. Placing them creates nothing."""

    source: Locator = Locator("source")
    shared_abstracts: Locator = Locator("shared-abstracts")
    local_index: Locator = Locator("local-index")

    def __post_init__(self) -> None:
        """Refuse roots by which rebuilding one tier would wipe another."""
        for derived in (Tier.SHARED_ABSTRACTS, Tier.LOCAL_INDEX):
            for other in Tier:
                if other is not derived and self.root_for(derived).contains(self.root_for(other)):
                    raise ValueError(
                        f"the {derived.value} tier at {str(self.root_for(derived))!a} would hold "
                        f"the {other.value} tier at {str(self.root_for(other))!a}. "
                        "Fix: give each tier a root of its own."
                    )

    @property
    def never_sync_root(self) -> Locator:
        return self.local_index

    def root_for(self, tier: Tier) -> Locator:
        roots = {
            Tier.SOURCE: self.source,
            Tier.SHARED_ABSTRACTS: self.shared_abstracts,
            Tier.LOCAL_INDEX: self.local_index,
        }
        return roots[tier]


class DerivedMaintenance(ABC):
    """Keeps what is derived in step with the source."""

    @abstractmethod
    def reindex(self, tier: Tier) -> None:
        """Rebuild a derived tier wholly from the source.

        Afterwards it holds what the source says now and nothing else, whatever was there before.
        `Tier.SOURCE` is the truth and can't be rebuilt: `ValueError`.
        """

    @abstractmethod
    def changed_since(self, mtime: float) -> list[Locator]:
        """Return source texts newer than `mtime`, in key order; a hint, as clients set any time."""
