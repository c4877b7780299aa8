"""Each test of the contract of an index fails for a broken index, and passes for a correct one."""

import inspect
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from perdure.index.contract import NodeIndex
from perdure.index.sqlite_index import SqliteIndex
from perdure.testing import suite
from perdure.testing.index import (
    CONCURRENT_PROCESSES,
    SURVIVES_REOPENING,
    IndexSuite,
    MemoryIndex,
)
from tests.bites import Bite, repeatable_search  # noqa: F401 - the fixture is used by being here
from tests.index import broken_indexes as broken
from tests.index import test_index_conformance

pytestmark = pytest.mark.search

Suite = type[IndexSuite]
Broken = type[MemoryIndex] | type[SqliteIndex]

BITES = (
    # changes
    Bite(broken.KeepsNothing, "test_an_upserted_record_is_found"),
    Bite(broken.Appends, "test_a_record_replaces_the_one_with_its_id"),
    Bite(broken.KeepsTheFirst, "test_a_record_replaces_the_one_with_its_id"),
    Bite(broken.ForgetsTheWordsOfTheNew, "test_a_record_replaces_the_one_with_its_id"),
    Bite(broken.Appends, "test_upsert_is_idempotent"),
    Bite(broken.KeepsTheFirst, "test_of_records_with_one_id_the_last_counts"),
    Bite(broken.LeavesTheOldUri, "test_a_record_that_comes_to_another_uri_leaves_nothing_behind"),
    Bite(broken.PutsOneByOne, "test_if_one_record_is_refused_none_is_put"),
    Bite(broken.DeletesNothing, "test_deleted_records_are_found_no_more_and_all_others_are"),
    Bite(broken.DeletesTheFirstOnly, "test_deleted_records_are_found_no_more_and_all_others_are"),
    Bite(broken.DeletesByTheBeginning, "test_deleted_records_are_found_no_more_and_all_others_are"),
    Bite(broken.DeletesTheWholeNode, "test_deleted_records_are_found_no_more_and_all_others_are"),
    Bite(broken.MissesWhatIsGone, "test_deleting_absent_ids_does_nothing", KeyError),
    Bite(broken.FoldsIds, "test_ids_are_compared_exactly"),
    Bite(broken.DeletesByTheBeginning, "test_ids_are_compared_exactly"),
    # vectors
    Bite(broken.ForgetsPayloads, "test_a_hit_has_the_fields_of_its_record"),
    Bite(broken.SaysTheSameOfAllLevels, "test_a_hit_has_the_fields_of_its_record"),
    Bite(broken.SearchesOneLevelOnly, "test_hits_of_all_levels_are_found_together"),
    Bite(broken.ReturnsTheWorstFirst, "test_the_nearest_are_first_however_long_they_are"),
    Bite(broken.LeavesOutTheOpposite, "test_the_nearest_are_first_however_long_they_are"),
    Bite(broken.RoundsScores, "test_the_nearest_are_first_however_long_they_are"),
    Bite(broken.ScoresByLength, "test_the_nearest_are_first_however_long_they_are"),
    Bite(broken.ReturnsOneMore, "test_no_more_are_returned_than_asked_for"),
    Bite(broken.ReturnsTiesAsTheyCame, "test_equal_scores_are_in_the_order_of_their_ids"),
    Bite(broken.CutsTiesAsTheyCame, "test_ids_decide_which_of_equal_scores_are_left_out"),
    Bite(broken.FillsVectorsUp, "test_vectors_of_another_length_are_not_found"),
    Bite(broken.TakesZeroForEverything, "test_a_query_without_a_direction_finds_nothing"),
    Bite(broken.TakesAnySearch, "test_an_invalid_search_is_refused"),
    # children
    Bite(
        broken.FindsAllThatIsBelow,
        "test_below_a_folder_are_the_abstracts_and_overviews_of_what_is_in_it",
    ),
    Bite(
        broken.FindsByTheBeginning,
        "test_below_a_folder_are_the_abstracts_and_overviews_of_what_is_in_it",
    ),
    Bite(broken.FindsTheAbstractBelowItsNode, "test_below_a_node_are_its_passages"),
    Bite(broken.FindsAllThatIsBelow, "test_deep_below_is_not_directly_below"),
    Bite(broken.FindsTheAccountBelowItself, "test_deep_below_is_not_directly_below"),
    Bite(broken.FiltersNoChildren, "test_children_are_the_best_that_the_filters_let_through"),
    Bite(broken.TakesAnyParent, "test_a_parent_is_a_place"),
    # words
    Bite(broken.WantsAllWords, "test_one_of_the_words_is_enough"),
    Bite(
        broken.ComparesLetterByLetter,
        "test_words_are_compared_by_stem_without_case_and_accents",
    ),
    Bite(broken.TakesAStarForTheRest, "test_nothing_in_a_word_is_syntax"),
    Bite(broken.TakesSyntax, "test_nothing_in_a_word_is_syntax"),
    Bite(broken.FindsAllForNothing, "test_words_without_letters_match_nothing"),
    Bite(
        broken.TakesPhrasesApart,
        "test_a_compound_word_matches_where_its_tokens_are_adjacent",
    ),
    Bite(
        broken.CountsWordsOnly,
        "test_rare_words_and_frequent_mention_and_short_texts_count_more",
    ),
    Bite(broken.ScoresAsTheWorld, "test_scores_are_those_of_bm25"),
    Bite(
        broken.CallsNothingRare,
        "test_the_ceiling_is_what_a_passage_of_usual_length_gets_for_all_words",
    ),
    Bite(broken.ForgetsTheContext, "test_a_word_in_the_context_counts_with_its_weight"),
    Bite(broken.WeighsContextAsText, "test_a_word_in_the_context_counts_with_its_weight"),
    Bite(
        broken.ReturnsEqualTextsAsTheyCame,
        "test_equal_texts_are_in_the_order_of_their_ids_also_at_the_end",
    ),
    Bite(
        broken.CutsEqualTextsAsTheyCame,
        "test_equal_texts_are_in_the_order_of_their_ids_also_at_the_end",
    ),
    Bite(
        broken.CountsWhatWasDeleted,
        "test_scores_depend_on_what_is_there_and_not_on_how_it_came",
    ),
    Bite(
        broken.ComparesAllLevels,
        "test_each_level_is_compared_with_its_like",
    ),
    Bite(broken.MatchesWithTheWorst, "test_a_match_has_the_uris_and_best_scores_of_a_search"),
    Bite(broken.CountsAllAccounts, "test_scores_depend_on_nothing_of_other_accounts"),
    Bite(broken.TakesAnySearch, "test_an_invalid_search_for_text_is_refused"),
    # filters
    Bite(broken.DropsTheSession, "test_only_what_is_filed_under_a_value_is_found"),
    Bite(broken.FoldsValues, "test_only_what_is_filed_under_a_value_is_found"),
    Bite(broken.TakesAbsentForEmpty, "test_only_what_is_filed_under_a_value_is_found"),
    Bite(broken.TakesAListForItsFirst, "test_only_what_is_filed_under_a_value_is_found"),
    Bite(broken.TakesAnEmptyListForAll, "test_only_what_is_filed_under_a_value_is_found"),
    Bite(broken.DropsTheLevel, "test_uri_and_level_are_filters_too"),
    Bite(broken.DropsTheUri, "test_uri_and_level_are_filters_too"),
    Bite(broken.AppliesOneFilterOnly, "test_all_filters_apply_at_once"),
    Bite(
        broken.FiltersAfterTheLimit,
        "test_the_best_of_what_is_let_through_are_found_whatever_else_there_is",
    ),
    Bite(
        broken.FiltersTextsAfterTheLimit,
        "test_the_best_of_what_is_let_through_are_found_whatever_else_there_is",
    ),
    Bite(broken.DropsTheOwner, "test_a_search_finds_no_records_of_other_owners"),
    Bite(
        broken.IgnoresTime,
        "test_what_holds_at_a_time_is_found_and_what_says_nothing_always_does",
    ),
    Bite(
        broken.HoldsAMomentTooLong,
        "test_what_holds_at_a_time_is_found_and_what_says_nothing_always_does",
    ),
    Bite(
        broken.PassesOverTheZone,
        "test_what_holds_at_a_time_is_found_and_what_says_nothing_always_does",
    ),
    Bite(
        broken.PassesOverWhatItDoesNotKnow,
        "test_invalid_filters_are_refused",
    ),
    Bite(broken.TakesTruthsForTexts, "test_invalid_filters_are_refused"),
    Bite(broken.SearchesForEverybody, "test_a_search_needs_account_and_owner"),
    Bite(broken.FilesUnderAnything, "test_a_record_with_invalid_filters_is_refused"),
    # tenants
    Bite(broken.FoldsCase, "test_each_account_finds_its_own_records_only"),
    Bite(broken.DropsOddCharacters, "test_each_account_finds_its_own_records_only"),
    Bite(broken.ComposesAccounts, "test_each_account_finds_its_own_records_only"),
    Bite(broken.TakesTheAccountOfTheFirst, "test_one_upsert_can_be_of_several_accounts"),
    Bite(
        broken.SearchesBelowInTheParentsAccount,
        "test_what_is_below_a_place_is_found_in_its_own_account_only",
    ),
    Bite(broken.KeepsTheCursorOfDeleted, "test_an_account_is_deleted_wholly_and_alone"),
    Bite(broken.CountsNoDeleted, "test_an_account_is_deleted_wholly_and_alone"),
    Bite(broken.DeletesAccountsByTheBeginning, "test_an_account_is_deleted_wholly_and_alone"),
    Bite(broken.RefusesDeletedAccounts, "test_a_deleted_account_can_be_filled_again"),
    Bite(broken.DeletesOwnersEverywhere, "test_what_one_owner_has_is_deleted_wholly_and_alone"),
    Bite(
        broken.DeletesOwnersByTheBeginning,
        "test_what_one_owner_has_is_deleted_wholly_and_alone",
    ),
    Bite(broken.DeletesTheAgentToo, "test_what_one_owner_has_is_deleted_wholly_and_alone"),
    Bite(broken.TakesAnyOwner, "test_an_owner_is_a_user_or_an_agent"),
    Bite(broken.RemembersOwners, "test_owner_spaces_are_those_with_records"),
    # keeping
    Bite(broken.LeavesOldPassages, "test_replacing_a_node_removes_its_earlier_records"),
    Bite(broken.ReplacesTheAccount, "test_replacing_a_node_removes_its_earlier_records"),
    Bite(broken.LeavesWhatIsGone, "test_a_removed_node_has_no_records"),
    Bite(broken.ForgetsTheCursor, "test_the_cursor_is_the_last_that_was_set"),
    Bite(broken.OnlyMovesTheCursorOn, "test_the_cursor_is_the_last_that_was_set"),
    Bite(broken.HasOneCursor, "test_the_cursor_is_the_last_that_was_set"),
    Bite(broken.ExpectsNothing, "test_an_unexpected_cursor_changes_nothing"),
    Bite(broken.RefusesAfterTheChange, "test_an_unexpected_cursor_changes_nothing"),
    Bite(broken.TakesRecordsOfOtherNodes, "test_invalid_nodes_and_cursors_change_nothing"),
    Bite(broken.MovesTheCursorFirst, "test_invalid_nodes_and_cursors_change_nothing"),
    Bite(broken.NeverMarks, "test_what_is_unlogged_stays_so_until_it_is_replaced"),
    Bite(broken.NeverUnmarks, "test_what_is_unlogged_stays_so_until_it_is_replaced"),
    Bite(broken.MarksBeforeItRefuses, "test_an_unexpected_cursor_marks_nothing"),
    Bite(broken.NamesTheDeleted, "test_a_deleted_owner_is_named_no_more_by_what_is_unlogged"),
    Bite(broken.ForgetsThatItForgot, "test_a_deleted_owner_is_named_no_more_by_what_is_unlogged"),
    Bite(broken.ReadsWithoutVectors, "test_records_are_read_as_they_were_put"),
    Bite(broken.ReadsAllAccounts, "test_records_are_read_as_they_were_put"),
    Bite(broken.RewritesTimes, "test_records_are_read_as_they_were_put"),
    Bite(broken.KeepsFractions, "test_vectors_are_read_as_whole_numbers_of_their_direction"),
    Bite(
        broken.LooksWithoutFilters,
        "test_hits_by_id_are_filtered_and_have_no_score",
    ),
    Bite(
        broken.LooksInTheOrderAsked,
        "test_hits_by_id_are_filtered_and_have_no_score",
    ),
    Bite(
        broken.NotesTheOldestFirst,
        "test_briefing_hits_are_newest_first_and_filtered",
    ),
    Bite(broken.NotesForEverybody, "test_briefing_hits_are_newest_first_and_filtered"),
    Bite(broken.NotesWhateverIsNamed, "test_briefing_hits_are_found_by_name"),
    Bite(broken.LeadsByAnyName, "test_records_are_found_by_the_names_they_link_to"),
    Bite(broken.LeadsFromWhatIsGone, "test_records_are_found_by_the_names_they_link_to"),
    Bite(broken.StampsOnlyWhatReplaces, "test_each_uri_has_the_stamp_of_what_was_put"),
    Bite(broken.StampsTheTextsOnly, "test_each_uri_has_the_stamp_of_what_was_put"),
    Bite(broken.StampsTheHistory, "test_stamps_depend_on_what_is_there_and_not_on_how_it_came"),
    Bite(broken.SuspectsEverything, "test_a_check_of_what_was_put_finds_nothing"),
    # any sequence
    Bite(
        broken.CutsTiesAsTheyCame,
        "test_any_sequence_of_verbs_answers_as_the_index_in_memory_does",
    ),
    Bite(
        broken.LeavesOldPassages,
        "test_any_sequence_of_verbs_answers_as_the_index_in_memory_does",
    ),
    # together
    Bite(broken.CopiesToPut, "test_threads_lose_no_record"),
    Bite(broken.StartsAnew, "test_records_survive_reopening"),
    Bite(broken.ReplacesNodeByNode, "test_a_reader_meets_whole_changes_only"),
    Bite(broken.SkipsWritesAfterOthers, "test_writers_wait_for_each_other_and_lose_nothing"),
)

HEALTHY: dict[Broken, Suite] = {
    MemoryIndex: test_index_conformance.TestMemory,
    SqliteIndex: test_index_conformance.TestSqlite,
}
BASES = (
    broken.Answering,
    broken.AnsweringWords,
    broken.Asking,
    broken.Admitting,
    broken.Filtering,
    broken.Finding,
    broken.Keeping,
    broken.FoldingAccounts,
    broken.Replacing,
    broken.Marking,
)
"""What some of the broken have in common."""


def opened(index: Broken, place: Path) -> NodeIndex:
    if issubclass(index, SqliteIndex):
        return index(str(place / "home"))
    return index()


def healthy_suite(implementation: Broken) -> Suite:
    """Return the suite of the healthy class that `implementation` breaks."""
    return next(HEALTHY[base] for base in implementation.__mro__ if base in HEALTHY)


def broken_suite(implementation: Broken) -> Suite:
    opening = staticmethod(partial(opened, implementation))
    return type(implementation.__name__, (healthy_suite(implementation),), {"open_index": opening})


def run(conformance: Suite, test: str, place: Path) -> None:
    """Run one test of a suite as pytest would, on the empty folder `place`."""
    method = getattr(conformance(), test)
    with closing(conformance.open_index(place)) as index:
        fixtures = {"place": place, "index": index}
        method(**{name: fixtures[name] for name in inspect.signature(method).parameters})


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
    contract = {*suite.names_of_tests(IndexSuite), *suite.gated_tests(IndexSuite)}

    assert {bite.caught_by for bite in BITES} == contract


def test_every_broken_implementation_is_caught() -> None:
    implementations = {
        implementation
        for _, implementation in inspect.getmembers(broken, inspect.isclass)
        if issubclass(implementation, (MemoryIndex, SqliteIndex))
        if implementation.__module__ == broken.__name__
        if implementation not in BASES
    }

    assert {bite.broken for bite in BITES} == implementations


@pytest.mark.parametrize("base", [IndexSuite, *HEALTHY.values()])
def test_nothing_of_the_contract_can_be_replaced(base: Suite) -> None:
    for name in (*suite.names_of_tests(base), "index", "place"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})


@pytest.mark.parametrize(("promise", "count"), [(SURVIVES_REOPENING, 1), (CONCURRENT_PROCESSES, 2)])
def test_a_promise_switches_its_tests_on(promise: str, count: int) -> None:
    def caught(promises: frozenset[str]) -> set[str]:
        return set(suite.names_of_tests(type("Promising", (IndexSuite,), {"promises": promises})))

    assert len(caught(frozenset({promise})) - caught(frozenset())) == count
