"""Each check of importing, and each test of a format's contract, catches who breaks it."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.errors import PerdureError
from perdure.testing import suite
from perdure.transfer.contract import Format
from perdure.transfer.importers.claude import ClaudeFormat
from tests.bites import Bite, repeatable_search
from tests.transfer import broken_formats as formats
from tests.transfer import broken_importers as importers
from tests.transfer import checks
from tests.transfer.test_formats_conformance import TestClaude as Conformance

pytestmark = pytest.mark.search

__all__ = ["repeatable_search"]

SAME_TWICE = checks.the_same_twice_changes_nothing.__name__
DRY_RUN = checks.a_dry_run_says_what_would_be_and_writes_nothing.__name__
KILLED = checks.killed_anywhere_it_is_finished_by_doing_it_again.__name__
FOUND = checks.what_went_in_is_found.__name__
SPOILED = checks.unusable_items_are_findings_and_the_rest_is_imported.__name__
NAMED = checks.no_name_or_title_brings_a_secret_in.__name__

IMPORTERS = (
    (Bite(importers.WritesOnADryRun, DRY_RUN), "mem0"),
    (Bite(importers.ForgetsWhatADryRunFound, DRY_RUN), "markdown"),
    (Bite(importers.WritesNothing, FOUND), "markdown"),
    (Bite(importers.WritesNothing, SAME_TWICE), "claude"),
    (Bite(importers.TakesEverythingForNew, SAME_TWICE), "codex"),
    (Bite(importers.RelatesBeforeAllIsThere, SAME_TWICE, PerdureError), "mcp-memory"),
    (Bite(importers.SwallowsFindings, SPOILED), "markdown"),
    (Bite(importers.StopsAtTheFirstFinding, SPOILED), "markdown"),
    (Bite(importers.ForgetsTheFirst, SPOILED), "mem0"),
    (Bite(importers.NotesBeforeItCommits, KILLED), "chatgpt"),
    (Bite(importers.KeepsTitles, NAMED), "chatgpt"),
    (Bite(importers.KeepsTitles, NAMED), "claude"),
    (Bite(importers.TrustsNames, NAMED), "markdown"),
)
FORMATS = (
    Bite(formats.KnowsNothing, "test_it_knows_its_files"),
    Bite(formats.KnowsEverything, "test_it_takes_no_other_files_for_its_own"),
    Bite(formats.FindsTheFirstOnly, "test_it_finds_what_is_there"),
    Bite(formats.GivesAllTheSameId, "test_every_item_has_an_id_of_its_own"),
    Bite(formats.CountsItsItems, "test_the_same_files_give_the_same_items"),
    Bite(formats.TellsTheNewestFirst, "test_what_is_added_comes_after_what_was_there"),
    Bite(formats.OpensPaths, "test_it_reads_an_archive_like_a_folder", OSError),
    Bite(formats.TripsOnAMark, "test_a_byte_order_mark_and_line_breaks_mean_nothing"),
    Bite(formats.StopsAtWhatIsBad, "test_unusable_items_are_findings_and_the_rest_is_read"),
    Bite(formats.PassesOverWhatIsBad, "test_unusable_items_are_findings_and_the_rest_is_read"),
    Bite(
        formats.LetsErrorsOut,
        "test_no_file_is_answered_with_an_untyped_error",
        (json.JSONDecodeError, UnicodeDecodeError, RecursionError),
    ),
    Bite(
        formats.TrustsTypes,
        "test_a_value_of_another_type_is_a_finding_at_most",
        (AttributeError, TypeError, KeyError, ExceptionGroup),
    ),
)


def run(make: Callable[[], Format], test: str, place: Path) -> None:
    """Run one test of the suite as pytest would."""
    tested = type("Tested", (Conformance,), {"open_format": staticmethod(make)})
    method = getattr(tested(), test)
    wanted = inspect.signature(method).parameters
    given = {"format_": make(), "tmp_path": place}
    method(**{name: value for name, value in given.items() if name in wanted})


@pytest.mark.parametrize(
    ("bite", "name"), IMPORTERS, ids=[f"{bite.broken.__name__}-{name}" for bite, name in IMPORTERS]
)
def test_a_broken_importer_is_caught(bite: Bite, name: str, tmp_path: Path) -> None:
    with pytest.raises(bite.shown_as):
        getattr(checks, bite.caught_by)(tmp_path, name, bite.broken)


@pytest.mark.parametrize("bite", FORMATS, ids=lambda bite: bite.broken.__name__)
def test_a_broken_format_is_caught(bite: Bite, tmp_path: Path) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.caught_by, tmp_path)


@pytest.mark.parametrize("test", dict.fromkeys(bite.caught_by for bite in FORMATS))
def test_the_healthy_pass(test: str, tmp_path: Path) -> None:
    run(ClaudeFormat, test, tmp_path)


def test_every_check_and_every_test_of_the_contract_is_proved_to_bite() -> None:
    assert {bite.caught_by for bite, _ in IMPORTERS} == {each.__name__ for each in checks.EVERY}
    assert {bite.caught_by for bite in FORMATS} == set(suite.names_of_tests(Conformance))
