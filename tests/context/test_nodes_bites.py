"""Each test of nodes and relations catches somebody who breaks the contract."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from perdure.context.events import Clock
from perdure.context.nodes import Nodes, Relations
from perdure.errors import (
    AccessDeniedError,
    BrokenNodeError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
)
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.testing import suite
from tests.bites import Bite, repeatable_search  # noqa: F401 - the fixture is used by being here
from tests.context import broken_nodes as broken
from tests.context import test_nodes_conformance as conformance
from tests.support.context import ContextFSSuite, RelationSuite, Stores
from tests.support.context.base import ContextSuite, Subject
from tests.support.context.index_outbox import LoggedOutbox, indexed_links

pytestmark = pytest.mark.search

Broken = type[Nodes] | type[Relations] | Callable[[pytest.MonkeyPatch], None]

BITES = (
    Bite(broken.goes_past_the_seam, "test_it_is_on_the_seam_if_configured"),
    # writing
    Bite(broken.LacksAVerb, "test_it_has_the_shape_of_the_protocol"),
    Bite(broken.ForgetsOverviews, "test_what_was_written_is_read"),
    Bite(broken.TranslatesLineEnds, "test_any_content_comes_back_to_the_letter"),
    Bite(broken.takes_contents_for_frontmatter, "test_any_content_comes_back_to_the_letter"),
    Bite(broken.CutsLongContents, "test_the_longest_content_comes_back"),
    Bite(broken.StripsSummaries, "test_any_summary_comes_back_to_the_letter"),
    Bite(broken.LivesElsewhere, "test_a_memory_is_five_files_in_the_folder_of_its_name"),
    Bite(broken.writes_summaries_first, "test_the_content_is_written_first_and_the_meta_last"),
    Bite(broken.WritesTheMetaFirst, "test_the_content_is_written_first_and_the_meta_last"),
    Bite(broken.WritesTheMetaFirst, "test_an_interrupted_write_is_not_visible"),
    Bite(broken.WritesOneByOne, "test_an_interrupted_rewrite_leaves_what_was_there"),
    Bite(broken.tells_nobody_of_writes, "test_a_write_registers_an_event"),
    Bite(
        broken.tells_of_what_was_undone, "test_a_write_that_fails_changes_nothing_and_tells_nobody"
    ),
    Bite(broken.WritesOneByOne, "test_a_write_that_fails_changes_nothing_and_tells_nobody"),
    # versions
    Bite(broken.writes_version_one_always, "test_versions_are_counted_from_one"),
    Bite(broken.overwrites_any_version, "test_a_node_is_created_only_once"),
    Bite(broken.revives_what_was_archived, "test_nothing_is_created_over_an_archived_node"),
    Bite(broken.overwrites_any_version, "test_a_version_must_follow_the_one_that_is_there"),
    Bite(broken.BeginsAnywhere, "test_a_later_version_needs_an_earlier_one"),
    Bite(broken.replaces_metadata, "test_metadata_that_a_rewrite_does_not_name_stays"),
    Bite(broken.replaces_metadata, "test_none_takes_a_key_of_the_metadata_away"),
    Bite(broken.ForgetsMetadataOnTheWay, "test_metadata_survives_every_verb"),
    Bite(
        broken.takes_times_from_the_caller,
        "test_the_time_of_creation_stays_and_that_of_the_update_moves",
    ),
    Bite(broken.WritesTheFirstOnly, "test_many_nodes_are_written_together", NodeNotFoundError),
    Bite(broken.WritesOneAfterAnother, "test_of_many_nodes_all_are_written_or_none"),
    Bite(
        broken.WritesOneAfterAnother,
        "test_one_node_can_not_be_written_twice_at_once",
        NodeExistsError,
    ),
    Bite(broken.expects_nothing, "test_two_who_write_at_once_do_not_overwrite_each_other"),
    # reach
    Bite(
        broken.reaches_other_accounts, "test_no_verb_reaches_into_another_account", NodeExistsError
    ),
    Bite(
        broken.reaches_other_users,
        "test_no_verb_reaches_into_the_space_of_another_user",
        NodeExistsError,
    ),
    Bite(
        broken.LooksBeforeItAsks,
        "test_a_refusal_does_not_tell_whether_something_is_there",
        NodeNotFoundError,
    ),
    Bite(
        broken.ignores_what_was_shown,
        "test_what_was_shown_can_be_read_and_changed",
        AccessDeniedError,
    ),
    Bite(broken.knows_no_admins, "test_an_admin_reaches_all_of_its_account", AccessDeniedError),
    Bite(
        broken.lets_all_change_what_is_shared,
        "test_what_the_account_shares_is_read_by_all_and_changed_by_admins",
    ),
    Bite(broken.opens_every_session, "test_a_session_belongs_to_who_began_it", NodeExistsError),
    Bite(broken.ListsEverybody, "test_only_what_is_in_reach_is_listed"),
    # states
    Bite(
        broken.ReadsNothingAsEmpty,
        "test_what_is_not_there_is_not_found",
        (AssertionError, pytest.fail.Exception, InvalidValueError),
    ),
    Bite(broken.shows_what_is_not_active, "test_only_an_active_node_is_there"),
    Bite(broken.DeletesNothing, "test_a_deleted_node_is_gone"),
    Bite(broken.DeletesTheMetaOnly, "test_a_deleted_node_leaves_no_file"),
    Bite(broken.DeletesWhatIsNotThere, "test_to_delete_nothing_is_not_found"),
    Bite(
        broken.DeletesOnlyWhatItCanRead,
        "test_an_archived_node_can_be_deleted",
        NodeNotFoundError,
    ),
    Bite(broken.DeletesOnlyWhatItCanRead, "test_a_broken_node_can_be_deleted", BrokenNodeError),
    Bite(broken.DeletesTheMetaOnly, "test_a_place_can_be_used_again", BrokenNodeError),
    Bite(broken.ArchivesByDeleting, "test_an_archived_node_keeps_its_files"),
    Bite(broken.ArchivesNothing, "test_an_archived_node_is_neither_read_nor_there"),
    Bite(broken.ArchivesTheAbsent, "test_only_a_node_in_use_can_be_archived"),
    Bite(broken.TakesNothingBack, "test_an_archived_node_can_be_taken_back", NodeNotFoundError),
    Bite(broken.TakesAnythingBack, "test_only_an_archived_node_can_be_taken_back"),
    Bite(broken.tells_nobody_of_archives, "test_each_change_of_state_registers_an_event"),
    # moving
    Bite(broken.MovesByCopying, "test_a_moved_node_is_found_at_its_new_name_only"),
    Bite(broken.MovesByMakingAnew, "test_a_moved_node_is_found_at_its_new_name_only"),
    Bite(broken.MovesTheMetaOnly, "test_a_moved_node_leaves_no_file_behind"),
    Bite(
        broken.StaysWithItsOwner,
        "test_a_node_can_be_moved_to_another_owner",
        AccessDeniedError,
    ),
    Bite(broken.MovesOverOthers, "test_a_place_that_is_taken_is_refused"),
    Bite(broken.MovesTheArchived, "test_only_a_node_in_use_is_moved"),
    Bite(broken.MovesToWhereItIs, "test_a_node_is_moved_to_another_node_only"),
    Bite(
        broken.MovesByMakingAnew,
        "test_the_edges_of_a_moved_node_start_at_its_new_name",
        ValueError,
    ),
    Bite(broken.IsFollowedByNobody, "test_edges_to_a_moved_node_follow_it"),
    Bite(broken.IsFollowedByNobody, "test_links_to_a_moved_node_follow_it_and_read_as_before"),
    Bite(broken.shows_the_new_name, "test_links_to_a_moved_node_follow_it_and_read_as_before"),
    Bite(broken.breaks_tables, "test_links_to_a_moved_node_follow_it_and_read_as_before"),
    Bite(broken.LeavesItsOwnLinks, "test_links_of_a_moved_node_lead_to_where_they_led"),
    Bite(
        broken.names_skills_by_their_category,
        "test_links_to_a_moved_skill_follow_it",
        ValueError,
    ),
    Bite(
        broken.LeavesItsOwnLinks,
        "test_a_node_may_take_the_place_that_it_led_to",
        InvalidValueError,
    ),
    Bite(broken.IsFollowedByAll, "test_what_the_caller_may_not_change_does_not_follow"),
    Bite(broken.WritesOneByOne, "test_a_move_is_done_wholly_or_not_at_all"),
    Bite(broken.tells_nobody_of_moves, "test_a_move_registers_an_event"),
    Bite(
        broken.MovesByCopying,
        "test_a_place_that_was_left_can_be_used_again",
        NodeExistsError,
    ),
    # listing
    Bite(broken.ListsBackwards, "test_the_children_are_listed_in_order"),
    Bite(broken.ListsPlainNamesOnly, "test_the_children_are_listed_in_order"),
    Bite(broken.ListsThePlaceItself, "test_below_nothing_is_nothing"),
    Bite(broken.ListsPlainNamesOnly, "test_nodes_below_a_node_are_its_children"),
    Bite(
        broken.marks_nothing_as_archived,
        "test_archived_nodes_are_left_out_until_they_are_taken_back",
    ),
    Bite(broken.LeavesFolders, "test_what_was_deleted_is_not_listed"),
    Bite(broken.ListsWhateverIsThere, "test_what_others_put_there_is_not_listed"),
    # frontmatter
    Bite(broken.writes_a_title, "test_a_file_has_the_content_and_nothing_else"),
    Bite(
        broken.drops_lines_that_it_did_not_write,
        "test_added_lines_stay",
    ),
    Bite(
        broken.drops_lines_that_it_did_not_write,
        "test_lines_of_the_user_are_preserved_exactly",
    ),
    Bite(broken.knows_plain_fences_only, "test_fences_may_end_as_an_editor_ends_lines"),
    Bite(
        broken.drops_lines_that_it_did_not_write,
        "test_frontmatter_that_was_taken_away_stays_away",
    ),
    Bite(broken.IgnoresGivenFrontmatter, "test_a_writer_may_set_the_frontmatter"),
    Bite(broken.takes_any_frontmatter, "test_frontmatter_that_nobody_could_read_is_refused"),
    # edits
    Bite(broken.sees_no_edits, "test_each_edited_text_is_picked_up"),
    Bite(broken.refuses_missing_summaries, "test_summaries_and_edges_may_be_taken_away"),
    Bite(broken.DoesNotCountEdits, "test_who_did_not_see_an_edit_can_not_overwrite_it"),
    Bite(broken.ForgetsWhatItWasBasedOn, "test_who_did_not_see_an_edit_can_not_overwrite_it"),
    Bite(broken.looks_at_the_content_only, "test_who_did_not_see_an_edit_can_not_overwrite_it"),
    Bite(broken.sees_no_edits, "test_an_edit_survives_rewrites_of_the_rest"),
    Bite(broken.compares_with_the_meta_only, "test_an_edit_can_be_taken_back_by_who_saw_it"),
    Bite(broken.AdoptsNothing, "test_an_edit_can_be_adopted"),
    Bite(
        broken.finds_no_earlier_text,
        "test_a_broken_text_counts_as_it_was_before",
        BrokenNodeError,
    ),
    Bite(
        broken.refuses_edits_of_broken_frontmatter,
        "test_a_content_whose_frontmatter_is_broken_is_readable",
    ),
    Bite(broken.NamesNoProblem, "test_a_part_that_is_no_text_is_as_it_was_before"),
    Bite(
        broken.finds_no_earlier_text,
        "test_a_content_that_is_gone_is_as_it_was_before",
        BrokenNodeError,
    ),
    Bite(
        broken.TakesBrokenForAbsent,
        "test_a_meta_that_nobody_understands_is_a_broken_node",
        NodeNotFoundError,
    ),
    Bite(broken.expects_nothing, "test_files_that_are_no_node_are_not_overwritten"),
    # edges
    Bite(broken.AddsTheFirstOnly, "test_edges_that_were_added_are_there"),
    Bite(broken.dates_edges_anew, "test_an_edge_takes_the_place_of_the_one_with_its_identity"),
    Bite(broken.dates_edges_anew, "test_the_same_edges_twice_are_the_same_edges"),
    Bite(broken.RelatesBothWays, "test_an_edge_belongs_to_its_start"),
    Bite(broken.RelatesBothWays, "test_edges_are_stored_in_the_folder_of_their_start"),
    Bite(
        broken.RaisesForTheAbsent,
        "test_what_has_no_edges_or_is_not_there_gives_none",
        NodeNotFoundError,
    ),
    Bite(broken.RemovesAllEdges, "test_edges_can_be_taken_away"),
    Bite(broken.WipesTheNode, "test_an_edge_makes_the_next_version_and_keeps_the_rest"),
    Bite(broken.tells_nobody_of_relations, "test_a_change_of_edges_registers_an_event"),
    Bite(broken.RefusesNoEdge, "test_an_edge_starts_and_ends_at_a_node"),
    Bite(broken.changes_whatever_it_is_told_to, "test_an_edge_never_leaves_its_account"),
    Bite(
        broken.RefusesNoEdge,
        "test_an_edge_starts_where_the_caller_may_write_and_ends_where_it_may_read",
    ),
    Bite(broken.RefusesNoEdge, "test_nobody_writes_the_edges_that_links_are"),
    Bite(broken.reaches_other_users, "test_what_is_out_of_reach_has_no_edges"),
    Bite(broken.PutsTheLightestFirst, "test_the_heaviest_edges_come_first"),
    Bite(broken.GivesAllNeighbours, "test_the_heaviest_edges_come_first"),
    # links
    Bite(broken.knows_plain_links_only, "test_a_link_is_an_edge_in_each_of_its_forms", ValueError),
    Bite(broken.knows_no_code, "test_what_stands_in_code_is_no_link"),
    Bite(broken.takes_stray_ticks_for_code, "test_code_ends_where_it_ends", ValueError),
    Bite(
        broken.links_to_what_is_not_there,
        "test_a_link_to_nothing_becomes_an_edge_when_something_is_there",
    ),
    Bite(broken.looks_far_away_first, "test_a_link_leads_to_what_is_nearest"),
    Bite(broken.ignores_categories, "test_a_link_may_say_the_category"),
    Bite(broken.links_to_itself, "test_a_node_does_not_link_to_itself", InvalidValueError),
    Bite(broken.takes_other_accounts_for_its_own, "test_a_link_does_not_leave_its_account"),
    Bite(broken.GivesOneEdgeForEachTarget, "test_a_link_and_an_edge_are_two_relations"),
    Bite(broken.files_uris_by_their_last_part, "test_odd_names_are_linked_by_their_uri"),
    Bite(
        broken.takes_any_folder_for_a_category,
        "test_links_lead_past_what_others_put_there",
        InvalidValueError,
    ),
    Bite(broken.sees_no_links, "test_links_written_by_hand_are_edges"),
    # what leads to a node
    Bite(broken.looks_for_links_only, "test_edges_and_links_to_a_node_are_found"),
    Bite(broken.RemembersWhatLedHere, "test_what_leads_elsewhere_by_now_is_not_found"),
    Bite(broken.follows_from_now_on, "test_what_leads_here_is_found_after_opening_again"),
    Bite(
        broken.PassesOverTheBroken,
        "test_links_of_a_broken_content_are_still_found",
    ),
    Bite(broken.FindsOneOnly, "test_incoming_edges_are_the_outgoing_ones_of_all"),
    Bite(broken.looks_for_links_only, "test_incoming_edges_are_the_outgoing_ones_of_all"),
)

SUITES: tuple[type[ContextSuite], ...] = (
    conformance.TestRecordedNodesInMemory,
    conformance.TestRecordedRelationsInMemory,
)


def opened(
    makers: tuple[type[Nodes], type[Relations]],
    place: Path,
    clock: Clock,
    seam: conformance.Seam,
) -> Stores:
    make_nodes, make_relations = makers
    history = History.open(str(place / "history"))
    backend = Recorded(seam(MemoryBackend()), history)
    links = indexed_links(history, backend, str(place / "index"))
    nodes = make_nodes(backend, backlinks=links, clock=clock)

    def close() -> None:
        links.index.close()
        history.close()

    outbox = LoggedOutbox(history, nodes, clock=clock)
    return Stores(nodes, make_relations(nodes, links), outbox, close)


def run(test: str, makers: tuple[type[Nodes], type[Relations]], place: Path) -> None:
    """Run one test of the suites as pytest would, on the empty folder `place`."""
    suite_of_it = next(each for each in SUITES if hasattr(each, test))
    subject = Subject(partial(opened, makers), place)
    try:
        getattr(suite_of_it(), test)(subject)
    finally:
        subject.close()


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    makers: tuple[type[Nodes], type[Relations]] = (Nodes, Relations)
    if not isinstance(bite.broken, type):
        bite.broken(monkeypatch)
    elif issubclass(bite.broken, Relations):
        makers = (Nodes, bite.broken)
    elif issubclass(bite.broken, Nodes):
        makers = (bite.broken, Relations)
    with pytest.raises(bite.shown_as):
        run(bite.caught_by, makers, tmp_path)


def test_every_test_of_the_contracts_is_proved_to_bite() -> None:
    contracts = {
        name
        for contract in (ContextFSSuite, RelationSuite)
        for name in (*suite.names_of_tests(contract), *suite.gated_tests(contract))
    }

    assert {bite.caught_by for bite in BITES} == contracts


def test_every_broken_implementation_is_caught() -> None:
    bases = {broken.Writing}
    created = {
        each
        for _, each in inspect.getmembers(broken)
        if getattr(each, "__module__", "") == broken.__name__
        if each not in {*bases, broken.nothing, broken.patch_links}
    }

    assert {bite.broken for bite in BITES} == created


@pytest.mark.parametrize("contract", [ContextFSSuite, RelationSuite])
def test_without_promises_only_what_is_marked_is_left_out(contract: type[ContextSuite]) -> None:
    without: type[ContextSuite] = type("Without", (contract,), {"promises": frozenset()})
    gated = suite.gated_tests(contract)

    assert {*suite.names_of_tests(without), *gated} == set(suite.names_of_tests(contract))
    assert set(suite.names_of_tests(without)).isdisjoint(gated)


@pytest.mark.parametrize("healthy", SUITES)
@pytest.mark.parametrize("name", ["subject", "hooks", "test_it_is_on_the_seam_if_configured"])
def test_nothing_of_the_contracts_can_be_replaced(healthy: type[ContextSuite], name: str) -> None:
    with pytest.raises(TypeError, match=name):
        type("Weak", (healthy,), {name: None})
