"""The operator's own space: a verb of its own, and only with the operator's leave."""

import dataclasses
import inspect
import time
from pathlib import Path

import pytest

from perdure.errors import InvalidLocatorError
from perdure.storage import (
    ABSENT,
    Authorisation,
    ConcurrentModificationError,
    Locator,
    LockTimeout,
    LockTiming,
    PersonalWriteRefusedError,
    StorageBackend,
    StorageSelectionError,
    content_hash,
    vault_mutex,
)
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement

JOURNAL = Locator("Journal/today.md")
TEXT = "Lunch with Ana.\n"


@pytest.fixture
def personal(tmp_path: Path) -> Path:
    """Make the operator's folder, with the agent's store inside."""
    folder = tmp_path / "Notes"
    (folder / "Agent").mkdir(parents=True)
    return folder


@pytest.fixture
def vault(personal: Path, tmp_path: Path) -> VaultBackend:
    timing = LockTiming(timeout=0.2)
    home = str(tmp_path / "home")
    return VaultBackend(str(personal / "Agent"), home, timing, personal=str(personal))


def leave(locator: Locator = JOURNAL, text: str = TEXT) -> Authorisation:
    return Authorisation.grant("ana", locator, text)


@requirement("001-personal-own-verb", "001-personal-targets-above-store")
def test_an_authorised_text_lands_above_the_store(vault: VaultBackend, personal: Path) -> None:
    assert vault.write_personal(JOURNAL, TEXT, authorisation=leave()) == JOURNAL
    assert (personal / JOURNAL.key).read_text() == TEXT
    assert vault.list(Locator("")) == []


@requirement("001-personal-no-flag-on-write")
def test_write_has_no_argument_that_reaches_the_personal_space() -> None:
    for kind in (StorageBackend, VaultBackend, MemoryBackend):
        assert list(inspect.signature(kind.write).parameters) == [
            "self",
            "locator",
            "content",
            "expect",
        ]


@requirement("001-personal-refused-without-authorisation", "001-personal-authorisation-by-operator")
@pytest.mark.parametrize("no_leave", [None, True, "yes", {"operator": "ana"}, object()])
def test_whatever_is_no_authorisation_is_refused(
    vault: VaultBackend, personal: Path, no_leave: object
) -> None:
    with pytest.raises(PersonalWriteRefusedError, match="Fix:"):
        vault.write_personal(JOURNAL, TEXT, authorisation=no_leave)  # type: ignore[arg-type]

    assert [path.name for path in personal.iterdir()] == ["Agent"]


@requirement("001-personal-refused-without-authorisation")
def test_the_authorisation_is_no_optional_argument(vault: VaultBackend) -> None:
    with pytest.raises(TypeError):
        vault.write_personal(JOURNAL, TEXT)  # type: ignore[call-arg]


@requirement("001-personal-authorisation-by-operator")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (leave(Locator("Journal/other.md")), "other.md"),
        (leave(text="Another text.\n"), "not the one that the operator saw"),
        (dataclasses.replace(leave(), expires=time.time() - 1), "expired"),
        (dataclasses.replace(leave(), expires=float("inf")), "too long"),
        (dataclasses.replace(leave(), expires=float("nan")), "too long"),
    ],
)
def test_leave_for_something_else_is_no_leave(
    vault: VaultBackend, personal: Path, given: Authorisation, why: str
) -> None:
    with pytest.raises(PersonalWriteRefusedError, match=why):
        vault.write_personal(JOURNAL, TEXT, authorisation=given)

    assert [path.name for path in personal.iterdir()] == ["Agent"]


def test_leave_counts_once(vault: VaultBackend) -> None:
    given = leave()
    vault.write_personal(JOURNAL, TEXT, authorisation=given)
    with pytest.raises(PersonalWriteRefusedError, match="used already"):
        vault.write_personal(JOURNAL, TEXT, authorisation=given)


def test_leave_counts_once_for_all_who_share_a_home(
    vault: VaultBackend, personal: Path, tmp_path: Path
) -> None:
    other = VaultBackend(str(personal / "Agent"), str(tmp_path / "home"), personal=str(personal))
    given = leave()
    vault.write_personal(JOURNAL, TEXT, authorisation=given)
    with pytest.raises(PersonalWriteRefusedError, match="used already"):
        other.write_personal(JOURNAL, TEXT, authorisation=given)


def test_a_write_that_failed_does_not_use_up_the_leave(vault: VaultBackend) -> None:
    given = leave()
    with pytest.raises(ConcurrentModificationError):
        vault.write_personal(JOURNAL, TEXT, authorisation=given, expect=content_hash("stale"))

    vault.write_personal(JOURNAL, TEXT, authorisation=given)


def test_an_authorisation_needs_an_operator() -> None:
    with pytest.raises(ValueError, match="operator"):
        Authorisation.grant("  ", JOURNAL, TEXT)


@requirement("001-personal-composes-protocol")
def test_a_personal_write_compares_like_any_other(vault: VaultBackend, personal: Path) -> None:
    vault.write_personal(JOURNAL, TEXT, authorisation=leave(), expect=ABSENT)
    with pytest.raises(ConcurrentModificationError):
        vault.write_personal(JOURNAL, TEXT, authorisation=leave(), expect=content_hash("stale"))

    assert (personal / JOURNAL.key).read_text() == TEXT
    assert list((personal / "Journal").iterdir()) == [personal / JOURNAL.key]


@requirement("001-personal-composes-protocol", "001-one-write-library")
def test_a_personal_write_takes_the_lock_of_its_root(
    vault: VaultBackend, personal: Path, tmp_path: Path
) -> None:
    with (
        vault_mutex(str(personal), locks=str(tmp_path / "home" / "locks")),
        pytest.raises(LockTimeout),
    ):
        vault.write_personal(JOURNAL, TEXT, authorisation=leave())


@pytest.mark.parametrize("folder", ["Agent", "agent", "AGENT"])
def test_the_store_itself_is_not_personal(vault: VaultBackend, folder: str) -> None:
    inside = Locator(f"{folder}/note.md")
    with pytest.raises(InvalidLocatorError, match="use `write`"):
        vault.write_personal(inside, TEXT, authorisation=leave(inside))

    assert vault.list(Locator("")) == []


def test_without_a_personal_space_the_verb_says_so(tmp_path: Path) -> None:
    for backend in (MemoryBackend(), VaultBackend(str(tmp_path), str(tmp_path.parent / "home"))):
        with pytest.raises(PersonalWriteRefusedError, match="no personal space"):
            backend.write_personal(JOURNAL, TEXT, authorisation=leave())


@pytest.mark.parametrize("place", ["Agent", "Elsewhere"])
def test_a_personal_space_lies_above_the_store(personal: Path, tmp_path: Path, place: str) -> None:
    with pytest.raises(StorageSelectionError, match="above"):
        VaultBackend(
            str(personal / "Agent"), str(tmp_path / "home"), personal=str(personal / place)
        )
