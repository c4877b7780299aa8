"""Conflict copies: told of, kept, and never taken for memories."""

from pathlib import Path

from perdure.storage import FindingKind, Locator, StorageBackend, walk
from perdure.testing.requirement import requirement
from perdure.testing.storage.base import tree
from perdure.testing.storage.derived import DerivedTests
from perdure.testing.suite import when

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
    """Return another version; but the same, where a name may be a note's own."""
    return OTHER_VERSION if "onflict" in name else ORIGINAL


class ConflictTests(DerivedTests):
    @when("conflict_files")
    @requirement("000-capabilities-conflict-files", "001-conflict-copies-tolerated")
    def test_conflict_copies_are_told_of(self, backend: StorageBackend, place: Path) -> None:
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
    def test_conflict_copies_are_kept_and_readable(
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
        """Write a text and lay its copies beside it; return the place of the text."""
        original = backend.write(self.layout.source.child("plan.md"), ORIGINAL)
        for name in CONFLICT_COPIES:
            self.plant(place, self.layout.source.child(name).key, _text(name))
        return original
