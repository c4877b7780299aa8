"""The derived tiers of a memory: what they are made of again, and what is newer than they are."""

import time

from perdure.dataclass import dataclass
from perdure.engine.building import accounts_of, with_folders
from perdure.engine.edits import look_for_edits, record
from perdure.engine.parts import Parts
from perdure.model import Uri
from perdure.storage import DerivedMaintenance, Locator, Tier
from perdure.storage.contract import Layout
from perdure.storage.stamps import save_scan


@dataclass(frozen=True, slots=True)
class DerivedTiers(DerivedMaintenance):
    parts: Parts

    def reindex(self, tier: Tier) -> None:
        if not tier.derived:
            raise ValueError("the source is the truth. Fix: reindex a derived tier.")
        reader, indexes = self.parts.reader, self.parts.indexes
        for account in accounts_of(reader):
            if tier is Tier.LOCAL_INDEX:
                indexes.upkeep.rebuild(account)
                continue
            for place in with_folders(reader.walk(Uri(account))):
                if not place.is_node:
                    indexes.summaries.records(place)

    def changed_since(self, mtime: float) -> list[Locator]:
        """As promised, from the table of what was seen of each text, which is brought up to date.

        `TextsGoneError` if so many are gone that nothing is recorded.
        """
        parts, backend = self.parts, self.parts.recorded.inner
        began = time.time()
        checked = look_for_edits(backend, parts.recorded.history, parts.seen)
        record(parts, checked)
        save_scan(parts.seen, checked, began)
        if not isinstance(backend, Layout):
            return sorted(map(Locator, parts.seen.newer(mtime, backend)))
        texts = backend.logical(parts.seen.newer(mtime, backend.inner))
        return sorted(text for text in texts if backend.exists(text))
