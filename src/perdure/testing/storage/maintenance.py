"""Derived tiers can be rebuilt from the source; conflict copies are reported, and not memories."""

from pathlib import Path

import pytest

from perdure.storage import (
    DerivedMaintenance,
    FindingKind,
    Locator,
    StorageBackend,
    Tier,
    TierLayout,
    walk,
)
from perdure.testing.requirement import requirement
from perdure.testing.storage.storage_suite import StorageSuite, tree
from perdure.testing.suite import when


class MirrorMaintenance(DerivedMaintenance):
    """Derives each tier as a byte-for-byte copy of the source: the simplest correct one."""

    def __init__(self, backend: StorageBackend, layout: TierLayout) -> None:
        self._backend = backend
        self._layout = layout

    def reindex(self, tier: Tier) -> None:
        if not tier.derived:
            raise ValueError("the source is the truth. Fix: reindex a derived tier.")
        root = self._layout.root_for(tier)
        clear(self._backend, root)
        for text in self._source():
            below = text.parts[len(self._layout.source.parts) :]
            self._backend.write(root.child(*below), self._backend.read(text))

    def changed_since(self, mtime: float) -> list[Locator]:
        return sorted(text for text in self._source() if self._backend.info(text).mtime > mtime)

    def _source(self) -> list[Locator]:
        derived = [self._layout.root_for(tier) for tier in Tier if tier.derived]
        texts = walk(self._backend, self._layout.source)
        return [text for text in texts if not any(root.contains(text) for root in derived)]


def clear(backend: StorageBackend, root: Locator) -> None:
    """Remove everything below `root`."""
    for child in backend.list(root):
        if backend.info(child).is_dir:
            clear(backend, child)
        backend.remove(child)


class DerivedTests(StorageSuite):
    layout = TierLayout()

    def make_maintenance(self, backend: StorageBackend) -> DerivedMaintenance:
        return MirrorMaintenance(backend, self.layout)

    @requirement("000-maintenance-reindex-rebuilds", "000-tier-derived-rebuilds-from-source")
    def test_a_lost_tier_is_rebuilt_from_the_source_of_now(self, backend: StorageBackend) -> None:
        maintenance = self.make_maintenance(backend)
        self._write_source(backend, {"a.md": "one", "b/c.md": "two", "gone.md": "three"})
        for tier in self._derived_tiers():
            maintenance.reindex(tier)
            clear(backend, self.layout.root_for(tier))
        self._write_source(backend, {"a.md": "changed", "new/d.md": "four"})
        backend.remove(self.layout.source.child("gone.md"))
        expected = {"a.md": "changed", "b/c.md": "two", "new/d.md": "four"}

        for tier in self._derived_tiers():
            maintenance.reindex(tier)

            assert self._texts_below(backend, tier) == expected

    def test_reindexing_drops_what_the_source_has_lost(self, backend: StorageBackend) -> None:
        maintenance = self.make_maintenance(backend)
        self._write_source(backend, {"a.md": "one", "b/c.md": "two"})
        for tier in self._derived_tiers():
            maintenance.reindex(tier)
            backend.write(self.layout.root_for(tier).child("stray.md"), "stray")
        clear(backend, self.layout.source.child("b"))

        for tier in self._derived_tiers():
            maintenance.reindex(tier)

            assert self._texts_below(backend, tier) == {"a.md": "one"}

    def test_reindexing_leaves_the_source_alone(self, backend: StorageBackend) -> None:
        self._write_source(backend, {"a.md": "one"})
        before = tree(backend, self.layout.source)
        for tier in self._derived_tiers():
            self.make_maintenance(backend).reindex(tier)

        assert tree(backend, self.layout.source) == before

    def test_the_source_can_not_be_reindexed(self, backend: StorageBackend) -> None:
        self._write_source(backend, {"a.md": "one"})
        with pytest.raises(ValueError, match="source"):
            self.make_maintenance(backend).reindex(Tier.SOURCE)

        assert self._texts_below(backend, Tier.SOURCE) == {"a.md": "one"}

    @requirement("000-maintenance-changed-since-newer")
    def test_changed_since_gives_only_what_is_newer(self, backend: StorageBackend) -> None:
        maintenance = self.make_maintenance(backend)
        self._write_source(backend, {"b.md": "one", "a/c.md": "two"})
        texts = [self.layout.source.child("a", "c.md"), self.layout.source.child("b.md")]
        mtimes = {text: backend.info(text).mtime for text in texts}
        newest = max(mtimes.values())
        for tier in self._derived_tiers():
            maintenance.reindex(tier)

        assert maintenance.changed_since(0.0) == texts
        assert maintenance.changed_since(newest) == []
        for since in mtimes.values():
            newer = [text for text in texts if mtimes[text] > since]
            assert maintenance.changed_since(since) == newer

    def _write_source(self, backend: StorageBackend, texts: dict[str, str]) -> None:
        for key, text in texts.items():
            backend.write(self.layout.source.child(key), text)

    def _derived_tiers(self) -> list[Tier]:
        return [tier for tier in Tier if tier.derived]

    def _texts_below(self, backend: StorageBackend, tier: Tier) -> dict[str, str]:
        root = self.layout.root_for(tier)
        return {
            key.removeprefix(f"{root.key}/"): text
            for key, text in tree(backend, root).items()
            if text is not None
        }


CONFLICT_COPIES = (
    "plan (Ana's conflicted copy 2026-03-02).md",  # Dropbox
    "plan (Case Conflict).md",  # Dropbox
    "plan.sync-conflict-20260302-101500-ABCDEF7.md",  # Syncthing
    "plan (Conflicted copy laptop 202603021015).md",  # Obsidian Sync
    "plan (1).md",  # Drive
    "plan [Conflict].md",  # Drive
    "plan 2.md",  # iCloud
)
ORIGINAL = "# Plan\n\nBuy bread.\nCall the bank about the card.\n"
OTHER_VERSION = "# Plan\n\nBuy bread.\nCall the bank about the loan.\n"


def _text(name: str) -> str:
    """Return another version of the text; the same, where the name may be a note's own."""
    return OTHER_VERSION if "onflict" in name else ORIGINAL


class ConflictTests(DerivedTests):
    @when("conflict_files")
    @requirement("000-capabilities-conflict-files", "001-conflict-copies-tolerated")
    def test_conflict_copies_are_reported(self, backend: StorageBackend, place: Path) -> None:
        original = self._plant_copies(backend, place)
        source = self.layout.source

        found = [f for f in backend.findings(source) if f.kind is FindingKind.CONFLICT_COPY]

        assert sorted(finding.name for finding in found) == sorted(CONFLICT_COPIES)
        assert {finding.original for finding in found} == {original}
        assert all(finding.advice for finding in found)

    @when("conflict_files")
    def test_conflict_copies_are_no_memories(self, backend: StorageBackend, place: Path) -> None:
        original = self._plant_copies(backend, place)

        assert list(walk(backend, self.layout.source)) == [original]
        assert self.make_maintenance(backend).changed_since(0.0) == [original]

    @when("conflict_files")
    @requirement("001-conflict-copies-tolerated")
    def test_conflict_copies_stay_and_are_readable(
        self, backend: StorageBackend, place: Path
    ) -> None:
        original = self._plant_copies(backend, place)
        source = self.layout.source
        backend.findings(source)
        backend.write(original, "settled")

        copies = {source.child(name).key: _text(name) for name in CONFLICT_COPIES}
        assert tree(backend, source) == {**copies, original.key: "settled"}

    @when("conflict_files")
    def test_files_that_only_look_like_copies_are_memories(
        self, backend: StorageBackend, place: Path
    ) -> None:
        own = {
            "chapter 1.md": "It was a dark night.",
            "chapter 2.md": "The morning came.",
            "chapter.md": "# All chapters\n\nA list of them, with what is still to be done.",
            "alone (1).md": "There is no other.",
            "conflict of interest.md": "Notes on a policy.",
            "on sync-conflict files.md": "Notes on a program.",
        }
        source = self.layout.source
        backend.mkdir(source)
        for key, text in own.items():
            self.plant(place, source.child(key).key, text)

        assert {text.name for text in walk(backend, source)} == set(own)

    def _plant_copies(self, backend: StorageBackend, place: Path) -> Locator:
        """Write a text and plant its copies beside it; return the locator of the text."""
        original = backend.write(self.layout.source.child("plan.md"), ORIGINAL)
        for name in CONFLICT_COPIES:
            self.plant(place, self.layout.source.child(name).key, _text(name))
        return original
