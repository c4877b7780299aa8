"""Which files are a sync client's conflict copies, and which only look so."""

from pathlib import Path

import pytest

from perdure.storage import FindingKind, Locator, walk
from perdure.storage.changes import is_similar, marked_original, original_of
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement

ROOT = Locator("")

MARKED = {
    # Dropbox
    "plan (Ana's conflicted copy 2026-03-02).md": "plan.md",
    "plan (Ana's conflicted copy).md": "plan.md",
    "plan (Ana\u2019s MacBook Pro's conflicted copy 2026-03-02).md": "plan.md",
    "plan (DESKTOP-7QK2's conflicted copy 2026-03-02).md": "plan.md",
    "plan (Ana's conflicted copy 2026-03-02) (1).md": "plan.md",
    "plan (Ana's conflicted copy 2026-03-02 (1)).md": "plan.md",
    "Makefile (Ana's conflicted copy 2026-03-02)": "Makefile",
    "v1.2 plan (Ana's conflicted copy 2026-03-02).md": "v1.2 plan.md",
    "plan (2026) (Ana's conflicted copy 2026-03-02).md": "plan (2026).md",
    "plan (old) and more (Ana's conflicted copy 2026-03-02).md": "plan (old) and more.md",
    "plan (Case Conflict).md": "plan.md",
    "plan (Case Conflict 1).md": "plan.md",
    "plan (Unicode Encoding Conflict).md": "plan.md",
    "plan (Whitespace Conflict 2).md": "plan.md",
    "plan (Selective Sync Conflict).md": "plan.md",
    "plans (Selective Sync Conflict 1)": "plans",
    "plan (2026) (Case Conflict).md": "plan (2026).md",
    # Nextcloud
    "plan (conflicted copy 2026-03-02 101500).md": "plan.md",
    # Obsidian Sync
    "plan (Conflicted copy laptop 202603021015).md": "plan.md",
    "plan (Conflicted copy Ana's iPhone 202603021015).md": "plan.md",
    "plan (2026) (Conflicted copy laptop 202603021015).md": "plan (2026).md",
    # Syncthing
    "plan.sync-conflict-20260302-101500-ABCDEF7.md": "plan.md",
    "plan.sync-conflict-20260302-101500.md": "plan.md",
    "plan.sync-conflict-20260302-101500-ABCDEF7": "plan",
    "plan.tar.sync-conflict-20260302-101500-ABCDEF7.gz": "plan.tar.gz",
    ".plan.sync-conflict-20260302-101500-ABCDEF7.md": ".plan.md",
    "plan (1).sync-conflict-20260302-101500-ABCDEF7.md": "plan (1).md",
    # Drive
    "plan [Conflict].md": "plan.md",
    "plan [Conflict 1].md": "plan.md",
    "plan (Conflict).md": "plan.md",
    "plan_[Conflict].md": "plan.md",
    "plan (Conflict 2026-03-02-10-15).md": "plan.md",
}
UNMARKED = {
    # Drive
    "plan (1).md": "plan.md",
    "plan (12).md": "plan.md",
    "plan(1).md": "plan.md",
    "plan (1)": "plan",
    "plan (1) (1).md": "plan (1).md",
    "plan.tar (1).gz": "plan.tar.gz",
    # iCloud
    "plan 2.md": "plan.md",
    "plan 13.md": "plan.md",
    "plan 2": "plan",
    "plan 2026 2.md": "plan 2026.md",
    ".plan 2.md": ".plan.md",
    # OneDrive
    "plan-DESKTOP-7QK2.md": "plan.md",
    "plan-LAPTOP.md": "plan.md",
    # by hand
    "plan (conflict).md": "plan.md",
    "plan (conflict 2).md": "plan.md",
}
NAMES_OF_THEIR_OWN = (
    "plan.md",
    "conflict.md",
    "conflicted copy.md",
    "Ana's conflicted copy.md",
    "plan - conflicted copy.md",
    "(Ana's conflicted copy 2026-03-02).md",
    "conflict of interest (draft).md",
    "conflict (resolved).md",
    "plan (conflict resolution).md",
    "plan (in conflict).md",
    "plan (case conflicts).md",
    "plan (a case conflict of laws).md",
    "plan (conflicting copy).md",
    "plan (someone's conflicted copyright).md",
    "plan (unconflicted copy).md",
    "The (conflicted copy) problem.md",
    "War (conflict 1939-1945).md",
    "Korea [conflict 1950].md",
    "Cold War (conflict 1947-1991).md",
    "sync-conflict-20260302-101500-ABCDEF7.md",
    "On sync-conflict-20260302-101500-ABCDEF7.md",
    "plan.sync-conflict.md",
    "plan.sync-conflict-2026-03-02.md",
    "plan.sync-conflict-20260302.md",
    "plan.sync-conflict-20260302-101500-TOOLONGTOBEADEVICE.md",
)
NUMBERED_OTHERWISE = (
    "plan (0).md",
    "plan (01).md",
    "plan (100).md",
    "plan (2026).md",
    "plan (a).md",
    "plan [1].md",
    "plan 0.md",
    "plan 1.md",
    "plan 100.md",
    "plan 2026.md",
    "plan-2.md",
    "plan_2.md",
    "plan2.md",
    "plan.2.md",
    "plan v2.md",
    "plan #2.md",
    "2.md",
    "(1).md",
)

PLAN = "# Plan\n\nBuy bread and butter.\nCall the bank about the card.\nWrite to the landlord.\n"
LONG = "".join(f"{number}. Something that has to be done some day.\n" for number in range(500))


class TestMark:
    @requirement("001-conflict-copies-tolerated")
    @pytest.mark.parametrize(("name", "original"), MARKED.items())
    def test_a_marked_name_tells_its_original(self, name: str, original: str) -> None:
        assert marked_original(name) == original

    @pytest.mark.parametrize(("name", "original"), MARKED.items())
    def test_a_marked_copy_needs_nothing_beside_it(self, name: str, original: str) -> None:
        def unread(name: str) -> str:
            raise AssertionError(f"{name} was read")

        assert original_of(name, [name], unread) == original

    @pytest.mark.parametrize("name", NAMES_OF_THEIR_OWN)
    def test_a_name_that_only_speaks_of_conflicts_has_no_mark(self, name: str) -> None:
        assert marked_original(name) is None

    @pytest.mark.parametrize("name", UNMARKED)
    def test_a_number_is_no_mark(self, name: str) -> None:
        assert marked_original(name) is None


class TestNumber:
    @requirement("001-conflict-copies-tolerated")
    @pytest.mark.parametrize(("name", "original"), UNMARKED.items())
    @pytest.mark.parametrize("head", ["", "---\nkind: plan\nid: pattern/plan\n---\n"])
    def test_a_numbered_file_beside_one_that_says_the_same_is_a_copy(
        self, name: str, original: str, head: str
    ) -> None:
        texts = {
            original: head + PLAN,
            name: head + PLAN.replace("card", "loan" if head else "card"),
        }

        assert original_of(name, texts, texts.__getitem__) == original
        assert original_of(original, texts, texts.__getitem__) is None

    @pytest.mark.parametrize(("name", "original"), UNMARKED.items())
    def test_a_numbered_file_beside_one_that_says_something_else_is_none(
        self, name: str, original: str
    ) -> None:
        texts = {original: PLAN, name: "The sea was calm, and nobody spoke of the night before."}

        assert original_of(name, texts, texts.__getitem__) is None

    @pytest.mark.parametrize(("name", "original"), UNMARKED.items())
    def test_a_numbered_file_that_says_nearly_the_same_is_a_note(
        self, name: str, original: str
    ) -> None:
        texts = {original: PLAN, name: PLAN.replace("card", "loan")}

        assert (original_of(name, texts, texts.__getitem__) is None) != ("(conflict" in name)

    @pytest.mark.parametrize("name", UNMARKED)
    def test_a_numbered_file_without_its_original_is_none(self, name: str) -> None:
        texts = {name: PLAN, "another.md": PLAN}

        assert original_of(name, texts, texts.__getitem__) is None

    @pytest.mark.parametrize("name", NUMBERED_OTHERWISE)
    def test_a_number_that_no_client_would_give_is_none(self, name: str) -> None:
        texts = dict.fromkeys(["plan.md", ".md", name], PLAN)

        assert original_of(name, texts, texts.__getitem__) is None


class TestAlike:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (PLAN, PLAN),
            (PLAN, PLAN.replace("card", "loan")),
            (PLAN, PLAN.replace("\n", "\r\n")),
            (PLAN, PLAN + "Water the plants.\n"),
            (PLAN, PLAN.replace("Write to the landlord.\n", "")),
            (PLAN, "".join(f"  {line}\n" for line in PLAN.splitlines())),
            (LONG, LONG + "And one more.\n"),
            (LONG, LONG.replace("7. Something", "7. Nothing")),
            ("Buy bread and butter.", "Buy bread and milk."),
        ],
    )
    def test_two_versions_of_a_text_are_alike(self, one: str, other: str) -> None:
        assert is_similar(one, other)
        assert is_similar(other, one)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (PLAN, ""),
            (PLAN, "# Plan\n"),
            (PLAN, "# Plan\n\nSell the car.\nFind the keys first, then the papers.\n"),
            ("# Chapter\n\nIt was night.", "# Chapter\n\nThe morning came at last."),
            (LONG, PLAN),
            (LONG, LONG.upper()),
            ("", " \n"),
        ],
    )
    def test_two_texts_that_share_a_form_are_not(self, one: str, other: str) -> None:
        assert not is_similar(one, other)
        assert not is_similar(other, one)

    def test_two_empty_notes_are_two_notes(self) -> None:
        assert not is_similar("", "")
        assert not is_similar("\n", "\n")

    def test_notes_from_one_template_are_not_alike(self) -> None:
        form = "# Week\n\n## Mood\n{}\n\n## Done\n{}\n\n## Next\n{}\n\n## Thanks\n{}\n"
        one = form.format("tired", "fixed the roof", "paint the fence", "for Ana's soup")
        other = form.format("happy", "went to the sea", "call a plumber", "for a quiet day")

        assert not is_similar(one, other)


class TestVault:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "vault").mkdir()
        return tmp_path / "vault"

    @pytest.fixture
    def vault(self, folder: Path) -> VaultBackend:
        return VaultBackend(str(folder), str(folder.with_name("home")))

    @pytest.mark.parametrize(("copy", "original"), [*MARKED.items(), *UNMARKED.items()])
    def test_a_copy_is_reported_with_its_original(
        self, vault: VaultBackend, folder: Path, copy: str, original: str
    ) -> None:
        (folder / original).write_text(PLAN, encoding="utf-8")
        theirs = PLAN.replace("card", "loan") if copy in MARKED else PLAN
        (folder / copy).write_text(theirs, encoding="utf-8")

        (finding,) = vault.findings(ROOT)

        assert finding.kind is FindingKind.CONFLICT_COPY
        assert (finding.name, finding.original) == (copy, Locator(original))
        assert list(walk(vault, ROOT)) == [Locator(original)]

    @pytest.mark.parametrize("name", [*NAMES_OF_THEIR_OWN, *NUMBERED_OTHERWISE])
    def test_a_file_of_its_own_is_a_memory(
        self, vault: VaultBackend, folder: Path, name: str
    ) -> None:
        (folder / name).write_text(PLAN, encoding="utf-8")

        assert list(vault.findings(ROOT)) == []
        assert list(walk(vault, ROOT)) == [Locator(name)]

    @pytest.mark.parametrize("name", ["Archive 2", "Archive (1)"])
    def test_a_numbered_folder_is_a_folder_of_its_own(self, vault: VaultBackend, name: str) -> None:
        vault.write(Locator("Archive/a.md"), "one text")
        vault.write(Locator(f"{name}/b.md"), "another text")

        assert list(vault.findings(ROOT)) == []
        assert set(walk(vault, ROOT)) == {Locator("Archive/a.md"), Locator(f"{name}/b.md")}

    def test_a_numbered_folder_beside_an_empty_text_is_a_folder_of_its_own(
        self, vault: VaultBackend
    ) -> None:
        vault.write(Locator("Archive"), "")
        vault.write(Locator("Archive 2/b.md"), "text")

        assert list(walk(vault, ROOT)) == [Locator("Archive"), Locator("Archive 2/b.md")]

    @pytest.mark.parametrize(
        "name",
        [
            ".. (Case Conflict)",
            ". (Case Conflict)",
            ".. (Ana's conflicted copy 2026-03-02)",
            ".. [Conflict]",
            "...sync-conflict-20260302-101500-ABCDEF7",
            "a.perdure-tmp (Case Conflict)",
        ],
    )
    def test_a_copy_of_what_can_have_no_name_does_not_stop_the_walk(
        self, vault: VaultBackend, folder: Path, name: str
    ) -> None:
        vault.write(Locator("plan.md"), PLAN)
        (folder / name).write_text("planted", encoding="utf-8")

        vault.findings(ROOT)

        assert Locator("plan.md") in list(walk(vault, ROOT))
