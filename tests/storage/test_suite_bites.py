"""Each test of the contract catches a backend that breaks it, and passes a correct one."""

import inspect
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

from perdure.storage import (
    Capabilities,
    ConcurrentModificationError,
    InvalidLocatorError,
    StorageBackend,
)
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing import suite
from perdure.testing.storage import SURVIVES_REOPENING, MirrorMaintenance, StorageConformance
from perdure.testing.storage.maintenance import ConflictTests
from perdure.testing.storage.processes import ProcessTests
from tests.bites import Bite, repeatable_search  # noqa: F401 - the fixture is used by being here
from tests.storage import broken, test_conformance

pytestmark = pytest.mark.search

Suite = type[StorageConformance]
Broken = type[StorageBackend] | type[MirrorMaintenance]

BITES = (
    # resolve
    Bite(broken.ResolvesTheLastPartOnly, "test_resolve_joins_its_parts"),
    Bite(broken.ResolvesNothingToAHome, "test_resolve_without_parts_is_the_root"),
    Bite(broken.CollapsesUpwardSteps, "test_resolve_refuses_an_upward_step"),
    # write and read
    Bite(broken.TranslatesLineEnds, "test_texts_come_back_byte_for_byte"),
    Bite(broken.DropsByteOrderMarks, "test_texts_come_back_byte_for_byte"),
    Bite(broken.StopsAtNul, "test_texts_come_back_byte_for_byte"),
    Bite(broken.ComposesTexts, "test_texts_come_back_byte_for_byte"),
    Bite(broken.CutsLongTexts, "test_texts_come_back_byte_for_byte"),
    Bite(broken.EndsTextsWithANewline, "test_texts_come_back_byte_for_byte"),
    Bite(broken.WriteReturnsTheDirectory, "test_write_returns_where_it_wrote"),
    Bite(broken.OverwritesTheBeginningOnly, "test_write_replaces_what_was_there"),
    Bite(broken.KeepsABackupBeside, "test_write_replaces_what_was_there"),
    Bite(broken.WantsDirectoriesFirst, "test_write_makes_the_directories_above", FileNotFoundError),
    Bite(broken.ListsNoDirectories, "test_write_makes_the_directories_above"),
    Bite(broken.GivesAllKeysOneText, "test_keys_do_not_share_their_texts"),
    Bite(broken.WritesOverEmptyDirectories, "test_write_onto_a_directory_is_refused"),
    Bite(broken.WritesTheRootElsewhere, "test_write_onto_the_root_is_refused"),
    Bite(broken.ReplacesTheTextAbove, "test_write_below_a_text_is_refused"),
    Bite(broken.LooksOnlyOneStepUp, "test_write_below_a_text_is_refused"),
    Bite(broken.ReplacesHalfCharacters, "test_half_characters_are_refused_and_leave_nothing"),
    Bite(broken.LeavesDirectoriesBehind, "test_half_characters_are_refused_and_leave_nothing"),
    Bite(broken.WritesAnythingAsText, "test_write_takes_text_only"),
    Bite(broken.ReadsNothingAsEmpty, "test_reading_nothing_is_file_not_found"),
    Bite(broken.CallsTheAbsentInvalid, "test_reading_nothing_is_file_not_found"),
    Bite(
        broken.LetsTheKernelsErrorsThrough,
        "test_reading_nothing_is_file_not_found",
        NotADirectoryError,
    ),
    Bite(broken.ReadsDirectoriesAsEmpty, "test_reading_a_directory_is_refused"),
    # several texts of a directory
    Bite(broken.LeavesEmptyTextsOut, "test_read_all_returns_the_texts_by_name"),
    Bite(broken.TellsOfTheAbsentAsEmpty, "test_read_all_leaves_out_what_is_no_text_there"),
    Bite(broken.ReadsAllThatIsThere, "test_read_all_reads_only_what_is_asked_for"),
    # scan
    Bite(broken.ScansTheTopOnly, "test_scan_meets_every_text_once"),
    Bite(broken.ScansBackwards, "test_scan_meets_directories_in_key_order"),
    Bite(broken.ScansWhatIsSkipped, "test_scan_enters_nothing_that_is_skipped"),
    Bite(broken.StampsSizes, "test_stamps_tell_contents_apart"),
    # list
    Bite(broken.ListsEverythingBelow, "test_list_gives_the_immediate_children"),
    Bite(broken.ListsByPrefix, "test_list_gives_the_immediate_children"),
    Bite(broken.ListsUnsorted, "test_list_is_in_key_order"),
    Bite(broken.ListsIgnoringCase, "test_list_is_in_key_order"),
    Bite(broken.ListsAnEmptyDirectoryAsItself, "test_list_of_an_empty_directory_is_empty"),
    Bite(broken.ListsATextAsItself, "test_list_of_nothing_or_of_a_text_is_empty"),
    Bite(
        broken.RefusesToListNothing, "test_list_of_nothing_or_of_a_text_is_empty", FileNotFoundError
    ),
    # exists and info
    Bite(broken.SeesNoDirectories, "test_exists_for_texts_and_directories_only"),
    Bite(broken.SeesEveryPrefix, "test_exists_for_texts_and_directories_only"),
    Bite(broken.DoubtsItsRoot, "test_exists_for_texts_and_directories_only"),
    Bite(broken.CountsCharacters, "test_info_counts_bytes_not_characters"),
    Bite(broken.WeighsDirectories, "test_info_of_a_directory_has_no_size"),
    Bite(broken.TellsMilliseconds, "test_info_tells_when_a_text_changed"),
    Bite(broken.TellsWholeSeconds, "test_info_tells_when_a_text_changed"),
    Bite(broken.ReportsCreationTime, "test_info_tells_when_a_text_changed"),
    Bite(broken.DescribesNothing, "test_info_of_nothing_is_file_not_found"),
    # mkdir
    Bite(broken.MkdirMakesNothing, "test_mkdir_makes_a_directory_and_those_above"),
    Bite(broken.MkdirReturnsTheDirectoryAbove, "test_mkdir_makes_a_directory_and_those_above"),
    Bite(broken.MkdirWorksOnlyOnce, "test_mkdir_again_changes_nothing", FileExistsError),
    Bite(broken.MkdirEmptiesTheDirectory, "test_mkdir_again_changes_nothing"),
    Bite(broken.MkdirReplacesTexts, "test_mkdir_onto_a_text_is_refused"),
    Bite(broken.MkdirTakesAboveForThere, "test_mkdir_below_a_text_is_refused", FileExistsError),
    Bite(broken.LooksOnlyOneStepUp, "test_mkdir_below_a_text_is_refused"),
    # remove
    Bite(broken.RemoveDoesNothing, "test_a_removed_text_is_gone"),
    Bite(broken.RemovesTheNeighboursToo, "test_a_removed_text_is_gone"),
    Bite(broken.RemovesWhatIsNotThere, "test_removing_nothing_is_file_not_found"),
    Bite(broken.RemovesTextsOnly, "test_an_empty_directory_can_be_removed", IsADirectoryError),
    Bite(broken.RemovesEmptyDirectoriesAbove, "test_an_empty_directory_can_be_removed"),
    Bite(broken.RemovesNonEmptyDirectories, "test_a_directory_with_children_is_not_removed"),
    Bite(broken.RemovesTheRoot, "test_the_root_is_not_removed"),
    # promises
    Bite(broken.PromisesWritersItHasNot, "test_the_backend_has_the_promised_capabilities"),
    Bite(broken.HidesItsWriters, "test_the_backend_has_the_promised_capabilities"),
    Bite(broken.PromisesInItsOwnWords, "test_the_backend_has_the_promised_capabilities"),
    Bite(broken.SurfacesCopiesItHasNot, "test_the_conflict_strategy_fits_the_capabilities"),
    Bite(broken.HidesItsStrategy, "test_the_conflict_strategy_fits_the_capabilities"),
    Bite(broken.MkdirReturnsAPath, "test_no_verb_hands_out_a_path"),
    Bite(broken.DescribesAPath, "test_no_verb_hands_out_a_path"),
    Bite(broken.OpensAnotherFolderEachTime, "test_what_was_written_is_there_when_opened_again"),
    # conditions
    Bite(broken.NeverExpectsNothing, "test_expecting_nothing_creates", ConcurrentModificationError),
    Bite(broken.IgnoresExpectation, "test_expecting_nothing_never_overwrites"),
    Bite(broken.TakesEmptyForAbsent, "test_expecting_nothing_never_overwrites"),
    Bite(
        broken.HashesTranslatedTexts,
        "test_the_expected_text_is_replaced",
        ConcurrentModificationError,
    ),
    Bite(broken.IgnoresExpectation, "test_another_text_is_never_replaced"),
    Bite(broken.WritesBeforeItCompares, "test_another_text_is_never_replaced"),
    Bite(broken.TakesAbsenceForAnyText, "test_expecting_a_text_where_nothing_is_fails"),
    Bite(broken.LeavesDirectoriesBehind, "test_expecting_a_text_where_nothing_is_fails"),
    Bite(
        broken.TakesAnyCondition,
        "test_a_condition_that_is_no_hash_is_refused",
        ConcurrentModificationError,
    ),
    Bite(broken.TakesHashesInCapitals, "test_a_condition_that_is_no_hash_is_refused"),
    Bite(
        broken.RemovesOnAnyCondition,
        "test_a_condition_that_is_no_hash_is_refused",
        ConcurrentModificationError,
    ),
    Bite(
        broken.CallsEveryRefusalAConflict,
        "test_a_condition_does_not_excuse_a_wrong_place",
        ConcurrentModificationError,
    ),
    Bite(broken.RemovesNothingConditionally, "test_the_expected_text_is_removed"),
    Bite(broken.RemovesAnyText, "test_another_text_is_never_removed"),
    Bite(
        broken.CallsTheGoneAbsent,
        "test_removing_an_expected_text_that_is_gone_fails",
        FileNotFoundError,
    ),
    Bite(broken.RemovesAbsence, "test_absence_can_not_be_removed"),
    Bite(broken.ComparesDirectoriesAsEmpty, "test_a_directory_has_no_content_to_expect"),
    Bite(broken.ChecksThenWritesWithoutLock, "test_threads_lose_no_conditional_write"),
    # several texts
    Bite(broken.ChangesTheFirstOnly, "test_all_of_several_texts_are_written"),
    Bite(broken.TrimsSeveralTexts, "test_several_texts_come_back_byte_for_byte"),
    Bite(
        broken.WantsDirectoriesForSeveral,
        "test_directories_are_created_for_several_texts",
        FileNotFoundError,
    ),
    Bite(
        broken.WritesSeveralUnderPlainNames,
        "test_texts_with_names_in_any_script_are_written_and_removed",
    ),
    Bite(broken.WantsSomethingToChange, "test_no_changes_change_nothing", StopIteration),
    Bite(broken.StopsAfterAHundred, "test_more_texts_than_a_process_may_open_are_written"),
    Bite(broken.EmptiesWhatItShouldRemove, "test_texts_that_are_none_are_removed"),
    Bite(
        broken.RemovesOnlyWhatIsThere,
        "test_a_text_that_is_gone_can_be_removed_among_several",
        FileNotFoundError,
    ),
    Bite(broken.RemovesDirectoriesAmongSeveral, "test_a_directory_is_not_removed_among_several"),
    Bite(
        broken.MeetsNoConditions,
        "test_several_texts_are_written_if_all_is_as_expected",
        ConcurrentModificationError,
    ),
    Bite(
        broken.IgnoresConditionsOfSeveral,
        "test_one_condition_that_fails_keeps_all_texts_as_they_were",
    ),
    Bite(
        broken.ChecksSeveralOneByOne, "test_one_condition_that_fails_keeps_all_texts_as_they_were"
    ),
    Bite(
        broken.IgnoresConditionsOfSeveral,
        "test_an_expected_text_that_is_not_there_is_not_removed_among_several",
    ),
    Bite(broken.ComparesSeveralWithoutLock, "test_threads_lose_nothing_of_several_texts"),
    Bite(broken.ChecksSeveralOneByOne, "test_wrong_arguments_among_several_change_nothing"),
    Bite(broken.ChecksSeveralOneByOne, "test_wrong_places_among_several_change_nothing"),
    Bite(broken.ChecksSeveralOneByOne, "test_a_text_can_not_lie_below_another_of_several"),
    # keys
    Bite(broken.TrustsItsKeys, "test_hostile_keys_name_no_place"),
    Bite(broken.MendsHostileKeys, "test_hostile_keys_name_no_place"),
    Bite(broken.RefusesAbsoluteKeys, "test_an_absolute_key_stays_inside", InvalidLocatorError),
    Bite(broken.ListsLooseLocators, "test_listed_places_lead_no_further_out"),
    Bite(broken.TrustsItsKeys, "test_one_name_in_two_spellings_is_one_place", FileNotFoundError),
    Bite(broken.RefusesLongNames, "test_the_longest_allowed_names_work", OSError),
    Bite(broken.CutsLongNames, "test_the_longest_allowed_names_work"),
    Bite(broken.ReplacesOddCharacters, "test_odd_but_harmless_names_work"),
    Bite(broken.TrimsNames, "test_odd_but_harmless_names_work"),
    Bite(broken.UnquotesKeys, "test_odd_but_harmless_names_work", InvalidLocatorError),
    # any sequence
    Bite(
        broken.ForgetsDirectoriesWithTheirLastText,
        "test_any_sequence_of_verbs_behaves_like_a_dictionary",
    ),
    # derived tiers
    Bite(broken.ReindexesNothing, "test_a_lost_tier_is_rebuilt_from_the_source_of_now"),
    Bite(broken.ReplaysACachedCopy, "test_a_lost_tier_is_rebuilt_from_the_source_of_now"),
    Bite(broken.LeavesOrphans, "test_reindexing_drops_what_the_source_has_lost"),
    Bite(broken.StampsTheSource, "test_reindexing_leaves_the_source_alone"),
    Bite(broken.AcceptsTheSource, "test_the_source_can_not_be_reindexed"),
    Bite(broken.ClearsBeforeItRefuses, "test_the_source_can_not_be_reindexed"),
    Bite(broken.TakesTheSameTimeForNewer, "test_changed_since_gives_only_what_is_newer"),
    Bite(broken.TellsOfChangesUnsorted, "test_changed_since_gives_only_what_is_newer"),
    Bite(broken.TellsOfEverythingAlways, "test_changed_since_gives_only_what_is_newer"),
    Bite(broken.TakesTheDerivedForSource, "test_changed_since_gives_only_what_is_newer"),
    # conflict copies
    Bite(broken.SaysNothingOfCopies, "test_conflict_copies_are_reported"),
    Bite(broken.KnowsMarkedCopiesOnly, "test_conflict_copies_are_reported"),
    Bite(broken.NamesNoOriginal, "test_conflict_copies_are_reported"),
    Bite(broken.GivesNoAdvice, "test_conflict_copies_are_reported"),
    Bite(broken.SaysNothingOfCopies, "test_conflict_copies_are_no_memories"),
    Bite(broken.SweepsCopiesAway, "test_conflict_copies_stay_and_are_readable"),
    Bite(broken.SettlesCopiesItself, "test_conflict_copies_stay_and_are_readable"),
    Bite(broken.HidesCopies, "test_conflict_copies_stay_and_are_readable"),
    Bite(broken.ComparesNoTexts, "test_files_that_only_look_like_copies_are_memories"),
    # several processes
    Bite(broken.ComparesOutsideTheLock, "test_processes_lose_no_conditional_write"),
    Bite(broken.LooksBeforeItCreates, "test_only_one_process_creates"),
    Bite(broken.LooksBeforeItRemoves, "test_only_one_process_removes"),
    Bite(broken.YieldsToOthers, "test_different_keys_can_be_written_at_once"),
    Bite(broken.KeepsItsIndexWithoutLock, "test_different_keys_can_be_written_at_once"),
    Bite(broken.WritesInPlace, "test_readers_meet_whole_texts_only"),
    Bite(broken.RemovesBeforeItWrites, "test_readers_meet_whole_texts_only", FileNotFoundError),
    Bite(broken.WritesInPlace, "test_a_killed_writer_leaves_a_whole_text_and_no_lock"),
    Bite(broken.LeavesUnfinishedFiles, "test_a_killed_writer_leaves_a_whole_text_and_no_lock"),
    Bite(
        broken.IsOutlivedByItsLock,
        "test_a_killed_writer_leaves_a_whole_text_and_no_lock",
        FileExistsError,
    ),
    Bite(broken.ComparesSeveralOutsideTheLock, "test_processes_lose_nothing_of_several_texts"),
    Bite(broken.WritesSeveralInKeyOrder, "test_readers_meet_several_texts_in_their_order"),
    Bite(broken.WritesSeveralInKeyOrder, "test_a_killed_writer_leaves_the_first_of_several_texts"),
    Bite(broken.LeavesSeveralUnfinished, "test_a_killed_writer_leaves_the_first_of_several_texts"),
)


HEALTHY: dict[Broken, Suite] = {
    MemoryBackend: test_conformance.TestMemory,
    DeviceLocalBackend: test_conformance.TestDeviceLocal,
    VaultBackend: test_conformance.TestVault,
    MirrorMaintenance: test_conformance.TestMemory,
}
SHIPPED = tuple(dict.fromkeys(HEALTHY.values()))


def opened(backend: type[StorageBackend], place: Path) -> StorageBackend:
    if issubclass(backend, VaultBackend):
        (place / "vault").mkdir(exist_ok=True)
        return backend(str(place / "vault"), str(place / "home"))
    if issubclass(backend, DeviceLocalBackend):
        return backend(str(place / "memory"), str(place / "home"))
    return backend()


def healthy_suite(implementation: Broken) -> Suite:
    """Return the suite of the healthy class that `implementation` breaks."""
    return next(HEALTHY[base] for base in implementation.__mro__ if base in HEALTHY)


def broken_suite(implementation: Broken) -> Suite:
    overrides: dict[str, object] = {}
    if issubclass(implementation, StorageBackend):
        overrides["open_backend"] = staticmethod(partial(opened, implementation))
    else:
        overrides["make_maintenance"] = lambda self, backend: implementation(backend, self.layout)
    return type(implementation.__name__, (healthy_suite(implementation),), overrides)


def suite_with(healthy: Suite, promises: frozenset[str]) -> Suite:
    return type("Told", (healthy,), {"promises": promises})


def run(conformance: Suite, test: str, place: Path) -> None:
    """Run one test of a suite as pytest would, on the empty folder `place`."""
    method = getattr(conformance(), test)
    fixtures = {"place": place, "backend": conformance.open_backend(place)}
    method(**{name: fixtures[name] for name in inspect.signature(method).parameters})


# ---------------------------------------------------------------- the tests bite


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite, tmp_path: Path) -> None:
    with pytest.raises(bite.shown_as):
        run(broken_suite(bite.broken), bite.caught_by, tmp_path)


@pytest.mark.parametrize(
    ("healthy", "test"),
    dict.fromkeys((healthy_suite(bite.broken), bite.caught_by) for bite in BITES),
)
def test_the_healthy_pass(healthy: Suite, test: str, tmp_path: Path) -> None:
    run(healthy, test, tmp_path)


def test_every_test_of_the_contract_is_proved_to_bite() -> None:
    contract = {*suite.names_of_tests(StorageConformance), *suite.gated_tests(StorageConformance)}

    assert {bite.caught_by for bite in BITES} == contract


def test_every_broken_implementation_is_caught() -> None:
    implementations = {
        implementation
        for _, implementation in inspect.getmembers(broken, inspect.isclass)
        if issubclass(implementation, (StorageBackend, MirrorMaintenance))
        if implementation.__module__ == broken.__name__
    }

    assert {bite.broken for bite in BITES} == implementations


# ---------------------------------------------------------------- nobody can weaken a suite


OF_CONFLICTS = set(vars(ConflictTests)) & set(suite.names_of_tests(ConflictTests))
GATED = "test_only_one_process_creates"
NOT_GATED = "test_texts_come_back_byte_for_byte"


@pytest.mark.parametrize("name", [GATED, NOT_GATED])
@pytest.mark.parametrize("replacement", [lambda self: None, None], ids=["empty", "None"])
@pytest.mark.parametrize("base", [StorageConformance, *SHIPPED])
def test_a_subclass_can_not_replace_a_test(name: str, replacement: object, base: Suite) -> None:
    with pytest.raises(TypeError, match=f"Weak replaces {name}"):
        type("Weak", (base,), {name: replacement})


@pytest.mark.parametrize(
    "name", [GATED, NOT_GATED, "_derived_tiers", "_plant_copies", "backend", "place", "hooks"]
)
@pytest.mark.parametrize("base", [StorageConformance, *SHIPPED])
def test_nothing_of_the_contract_can_be_replaced_or_mixed_over(name: str, base: Suite) -> None:
    with pytest.raises(TypeError, match=name):
        type("Weak", (base,), {name: None})
    mixin = type("Mixin", (), {name: None})
    with pytest.raises(TypeError, match=name):
        type("Weak", (mixin, base), {})


def test_a_promise_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="survives_reopenning"):
        suite_with(StorageConformance, frozenset({"survives_reopenning"}))


def test_a_subclass_may_add_a_test() -> None:
    more: Suite = type("More", (test_conformance.TestMemory,), {"test_more": lambda self: None})

    assert suite.names_of_tests(more) == sorted(
        [*suite.names_of_tests(test_conformance.TestMemory), "test_more"]
    )


@pytest.mark.parametrize(
    ("promise", "gated"),
    [
        ("concurrent_writers", suite.names_of_tests(ProcessTests)),
        (
            "conflict_files",
            sorted(name for name in vars(ConflictTests) if name.startswith("test_")),
        ),
        (SURVIVES_REOPENING, ["test_what_was_written_is_there_when_opened_again"]),
    ],
)
def test_a_promise_switches_its_tests_on(promise: str, gated: list[str]) -> None:
    without = suite.names_of_tests(suite_with(StorageConformance, frozenset()))
    with_it = suite.names_of_tests(suite_with(StorageConformance, frozenset({promise})))

    assert set(gated).isdisjoint(without)
    assert with_it == sorted([*without, *gated])


def test_a_suite_without_promises_lacks_the_gated_tests_only() -> None:
    without = suite.names_of_tests(suite_with(StorageConformance, frozenset()))

    assert {*without, *suite.gated_tests(StorageConformance)} == set(
        suite.names_of_tests(StorageConformance)
    )


def test_a_subclass_can_promise_what_its_base_did_not() -> None:
    nothing = suite_with(StorageConformance, frozenset())
    everything = test_conformance.TestVault.promises

    assert GATED in suite.names_of_tests(suite_with(nothing, everything))
    assert GATED not in suite.names_of_tests(
        suite_with(suite_with(nothing, everything), frozenset())
    )


@pytest.mark.parametrize("healthy", SHIPPED)
@pytest.mark.parametrize("promise", [field.name for field in fields(Capabilities)])
def test_a_suite_that_is_given_wrong_promises_fails(
    healthy: Suite, promise: str, tmp_path: Path
) -> None:
    mistaken = suite_with(healthy, healthy.promises ^ {promise})

    with pytest.raises(AssertionError):
        run(mistaken, "test_the_backend_has_the_promised_capabilities", tmp_path)
