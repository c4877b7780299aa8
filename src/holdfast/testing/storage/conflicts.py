"""Conflict copies: told of, kept, and never taken for memories."""

from pathlib import Path

from holdfast.storage import FindingKind, Locator, StorageBackend, TierLayout, walk
from holdfast.testing.requirement import requirement
from holdfast.testing.storage.base import ROOT, StorageSuite, tree
from holdfast.testing.storage.derived import Mirror
from holdfast.testing.suite import when

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


class ConflictTests(StorageSuite):
    @when("conflict_files")
    @requirement("000-capabilities-conflict-files", "001-conflict-copies-tolerated")
    def test_conflict_copies_are_told_of(self, backend: StorageBackend, place: Path) -> None:
        self._plant_copies(backend, place)

        found = [f for f in backend.findings(ROOT) if f.kind is FindingKind.CONFLICT_COPY]

        assert sorted(finding.name for finding in found) == sorted(CONFLICT_COPIES)
        assert {finding.original for finding in found} == {Locator("plan.md")}
        assert all(finding.advice for finding in found)

    @when("conflict_files")
    def test_conflict_copies_are_no_memories(self, backend: StorageBackend, place: Path) -> None:
        self._plant_copies(backend, place)
        mirror = Mirror(backend, TierLayout(source=ROOT))

        assert list(walk(backend, ROOT)) == [Locator("plan.md")]
        assert mirror.changed_since(0.0) == [Locator("plan.md")]

    @when("conflict_files")
    @requirement("001-conflict-copies-tolerated")
    def test_conflict_copies_are_kept_and_readable(
        self, backend: StorageBackend, place: Path
    ) -> None:
        self._plant_copies(backend, place)
        backend.findings(ROOT)
        backend.write(Locator("plan.md"), "settled")

        copies = dict.fromkeys(CONFLICT_COPIES, OTHER_VERSION)
        assert tree(backend) == {**copies, "plan.md": "settled"}

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
        for key, text in own.items():
            self.plant(place, key, text)

        assert {text.key for text in walk(backend, ROOT)} == set(own)

    def _plant_copies(self, backend: StorageBackend, place: Path) -> None:
        backend.write(Locator("plan.md"), ORIGINAL)
        for name in CONFLICT_COPIES:
            self.plant(place, name, OTHER_VERSION)
