"""Each test of the outbox's contract catches somebody who breaks it, and lets the honest pass."""

import inspect
from functools import partial
from pathlib import Path

import pytest

from perdure.context.events import Clock, Siblings
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import AccessDeniedError, LeaseError
from perdure.testing import suite
from tests.bites import Bite, repeatable_search  # noqa: F401 - the fixture is used by being here
from tests.context import broken_outboxes as broken
from tests.context import test_outbox_conformance
from tests.support.context.index_outbox import SqliteOutbox
from tests.support.context.memory_outbox import MemoryOutbox
from tests.support.context.outbox import CONCURRENT_WORKERS, SURVIVES_REOPENING, OutboxSuite
from tests.support.context.outbox.base import HandClock, Neighbours, closing

pytestmark = pytest.mark.search

Suite = type[OutboxSuite]
Broken = type[MemoryOutbox] | type[SqliteOutbox]

BITES = (
    # registering
    Bite(broken.PutsTheContentInside, "test_a_write_says_all_of_the_node_but_its_content"),
    Bite(broken.LeavesOutTheCid, "test_a_write_says_all_of_the_node_but_its_content"),
    Bite(broken.KeepsNothing, "test_a_write_says_all_of_the_node_but_its_content"),
    Bite(broken.RoundsItsTimes, "test_a_write_says_all_of_the_node_but_its_content"),
    Bite(broken.SortsManyWrites, "test_many_writes_are_registered_in_their_order"),
    Bite(broken.RegistersManyOneByOne, "test_of_many_writes_all_are_registered_or_none"),
    Bite(broken.NamesEventsByTheirTime, "test_every_event_has_an_id_of_its_own"),
    Bite(broken.TakesADeleteForAnArchive, "test_a_delete_says_whose_the_node_was"),
    Bite(broken.TakesAnArchiveForADelete, "test_an_archive_says_whose_the_node_is"),
    Bite(broken.ForgetsWhereFrom, "test_a_move_says_what_a_write_does_and_where_from"),
    Bite(broken.TellsNoEdges, "test_relations_are_reported_edge_by_edge"),
    Bite(
        broken.FilesTheFolderUnderItsNode,
        "test_a_directory_event_is_of_the_folder_and_needs_no_other_node",
    ),
    Bite(
        broken.TellsTheNamesOfSiblingsOnly,
        "test_a_directory_event_is_of_the_folder_and_needs_no_other_node",
    ),
    Bite(
        broken.TellsOfAllSiblings,
        "test_a_directory_event_names_at_most_20_nodes_and_always_its_own",
    ),
    Bite(
        broken.LetsOthersCrowdOutTheNode,
        "test_a_directory_event_names_at_most_20_nodes_and_always_its_own",
        KeyError,
    ),
    Bite(broken.KnowsOwnersByNameOnly, "test_events_of_a_session_have_the_given_owner"),
    Bite(broken.AsksNobody, "test_what_is_out_of_reach_is_refused_by_every_verb"),
    Bite(broken.AsksForTheAccountOnly, "test_what_is_out_of_reach_is_refused_by_every_verb"),
    Bite(
        broken.LooksAtTheTargetOfAMoveOnly,
        "test_nothing_is_moved_out_of_a_place_out_of_reach",
    ),
    Bite(
        broken.RefusesAdmins,
        "test_those_who_govern_may_register_for_all_of_the_account",
        AccessDeniedError,
    ),
    Bite(broken.DeletesFolders, "test_only_nodes_are_deleted_archived_or_moved"),
    Bite(
        broken.ListsByTime,
        "test_events_are_listed_in_the_order_of_registration_whatever_the_clock_says",
    ),
    # working
    Bite(broken.TakesWaitingForUnfinished, "test_all_that_is_not_done_is_listed_with_its_state"),
    Bite(broken.SaysOfAllThatTheyWait, "test_all_that_is_not_done_is_listed_with_its_state"),
    Bite(
        broken.MarksNothing,
        "test_an_event_marked_as_being_worked_on_is_left_out_until_a_lease_would_lapse",
    ),
    Bite(
        broken.MarksForEver,
        "test_an_event_marked_as_being_worked_on_is_left_out_until_a_lease_would_lapse",
    ),
    Bite(broken.MarksOverALease, "test_marking_leaves_a_lease_as_it_is"),
    Bite(broken.KeepsTheDeadWhenDone, "test_what_is_done_is_gone_for_good"),
    Bite(broken.ReleasesWhatIsDone, "test_what_is_done_is_gone_for_good"),
    Bite(
        broken.MissesWhatIsGone,
        "test_what_is_gone_can_be_finished_again_without_an_error",
        KeyError,
    ),
    Bite(broken.CountsFromTheEventInHand, "test_a_failure_is_counted_with_its_error"),
    Bite(broken.ForgetsWhenToRetry, "test_a_failed_event_waits_until_its_next_attempt"),
    Bite(broken.LeasesWhatIsNotDue, "test_a_failed_event_waits_until_its_next_attempt"),
    Bite(broken.KeepsTheLeaseOfAFailure, "test_a_failure_ends_the_lease"),
    Bite(broken.ChokesOnHalfCharacters, "test_any_error_can_be_noted", UnicodeEncodeError),
    Bite(
        broken.NeverTellsHowOftenItFailed,
        "test_five_retries_are_allowed_and_the_sixth_failure_buries",
    ),
    Bite(broken.ForgetsWhenToRetry, "test_five_retries_are_allowed_and_the_sixth_failure_buries"),
    Bite(broken.TrustsTheId, "test_an_event_is_not_taken_for_that_of_another_node"),
    # leases
    Bite(broken.LeasesToEverybody, "test_a_leased_event_is_for_no_other_worker"),
    Bite(broken.ListsWhatIsLeased, "test_a_leased_event_is_for_no_other_worker"),
    Bite(broken.LeasesTheWholeQueue, "test_a_lease_is_of_one_event_only"),
    Bite(broken.LeasesForEver, "test_a_lease_lapses_and_the_event_waits_again"),
    Bite(broken.LeasesForAMinute, "test_a_lease_lasts_300_seconds_by_default"),
    Bite(
        broken.LeasesOnceOnly,
        "test_the_same_worker_that_asks_again_has_it_still_and_for_longer",
    ),
    Bite(
        broken.DoesNotStartAnew,
        "test_the_same_worker_that_asks_again_has_it_still_and_for_longer",
    ),
    Bite(broken.FoldsWorkers, "test_workers_are_distinguished_exactly"),
    Bite(broken.ComposesWorkers, "test_workers_are_distinguished_exactly"),
    Bite(broken.LeasesTheDead, "test_what_is_done_or_dead_is_leased_to_nobody"),
    Bite(broken.OnlySaysThatItExtends, "test_an_extended_lease_lasts_longer"),
    Bite(
        broken.ExtendsLapsedLeases,
        "test_only_a_lease_of_ones_own_that_has_not_lapsed_can_be_extended",
    ),
    Bite(broken.ReleasesNothing, "test_a_released_event_is_for_the_next_worker"),
    Bite(broken.ReleasesOnlyForItsWorker, "test_a_released_event_is_for_the_next_worker"),
    Bite(broken.WantsALeaseToRelease, "test_there_need_be_no_lease_to_release", LeaseError),
    Bite(
        broken.ForgetsTheTimeWhenItReleases,
        "test_a_release_does_not_bypass_the_time_of_the_next_attempt",
    ),
    Bite(broken.LeasesForNoTime, "test_leases_that_can_not_be_are_refused"),
    # late workers
    Bite(broken.LetsTheLateFinish, "test_a_late_worker_can_not_finish_what_another_has"),
    Bite(broken.SaysNoAndFinishes, "test_a_late_worker_can_not_finish_what_another_has"),
    Bite(broken.SaysNothingToTheLate, "test_a_late_worker_can_not_finish_what_another_has"),
    Bite(broken.LetsTheLateBury, "test_a_late_worker_can_not_bury_what_another_has"),
    Bite(
        broken.LetsTheLateFail,
        "test_a_late_worker_can_not_count_a_failure_of_what_another_has",
    ),
    Bite(broken.LetsTheLateRelease, "test_a_late_worker_can_not_release_what_another_has"),
    Bite(broken.LetsTheLateExtend, "test_a_late_worker_can_not_extend_what_another_has"),
    Bite(broken.TakesAMarkForNoLease, "test_what_was_only_marked_is_no_named_worker_s"),
    Bite(
        broken.HoldsLapsesAgainstWorkers,
        "test_a_lapsed_lease_that_nobody_took_over_does_not_hinder",
        LeaseError,
    ),
    # the dead
    Bite(
        broken.ForgetsWhatItBuries,
        "test_a_buried_event_is_in_the_dead_letter_queue_only",
        ValueError,
    ),
    Bite(broken.ListsTheDeadAsPending, "test_a_buried_event_is_in_the_dead_letter_queue_only"),
    Bite(
        broken.ListsTheLastToDieFirst,
        "test_the_dead_are_listed_in_the_order_of_registration",
    ),
    Bite(broken.RevivesWhatFailsAgain, "test_the_dead_stay_dead_whatever_a_worker_does"),
    Bite(broken.BuriesTheLeaseToo, "test_to_bury_ends_a_lease"),
    Bite(
        broken.RequeuesWithTheFailures,
        "test_a_requeued_event_waits_in_its_old_place_as_if_it_had_never_failed",
    ),
    Bite(
        broken.RequeuesAtTheEnd,
        "test_a_requeued_event_waits_in_its_old_place_as_if_it_had_never_failed",
    ),
    Bite(broken.RequeuesAll, "test_only_the_chosen_dead_are_requeued"),
    Bite(broken.CountsWhatWasAskedFor, "test_only_the_chosen_dead_are_requeued"),
    Bite(broken.PurgesNothing, "test_purged_events_are_gone_for_good"),
    Bite(broken.PurgesTheLiving, "test_purged_events_are_gone_for_good"),
    Bite(broken.PurgesAll, "test_only_the_chosen_dead_are_purged"),
    Bite(broken.PurgesTheLiving, "test_only_the_chosen_dead_are_purged"),
    # tenants
    Bite(broken.CanNotForget, "test_an_outbox_can_purge_events"),
    Bite(broken.FoldsCase, "test_each_account_lists_its_own_events_only"),
    Bite(broken.DropsOddCharacters, "test_each_account_lists_its_own_events_only"),
    Bite(broken.ComposesAccounts, "test_each_account_lists_its_own_events_only"),
    Bite(broken.ReadsAccountsAsNumbers, "test_each_account_lists_its_own_events_only"),
    Bite(
        broken.RequeuesByTheIdAlone,
        "test_the_dead_of_an_account_are_not_requeued_through_another",
    ),
    Bite(broken.PurgesByTheIdAlone, "test_the_dead_of_an_account_are_not_purged_through_another"),
    Bite(broken.FindsByTheIdAlone, "test_an_id_alone_opens_nothing_of_another_account"),
    Bite(broken.KeepsTheDeadOfAccounts, "test_an_account_is_deleted_wholly_and_alone"),
    Bite(broken.CountsNoDeletedAccounts, "test_an_account_is_deleted_wholly_and_alone"),
    Bite(
        broken.KeepsWhatOwnersHaveLeased,
        "test_what_belongs_to_one_owner_is_deleted_wholly_and_alone",
    ),
    Bite(
        broken.DeletesOwnersEverywhere,
        "test_what_belongs_to_one_owner_is_deleted_wholly_and_alone",
    ),
    Bite(broken.MatchesOwnersByTheirBeginning, "test_owners_are_distinguished_exactly"),
    Bite(broken.DeletesByTheIdOfTheOwner, "test_owners_are_distinguished_exactly"),
    # any sequence
    Bite(broken.RevivesWhatFailsAgain, "test_any_sequence_of_verbs_behaves_like_a_dictionary"),
    Bite(broken.ExtendsLapsedLeases, "test_any_sequence_of_verbs_behaves_like_a_dictionary"),
    Bite(broken.LetsTheLateFinish, "test_any_sequence_of_verbs_behaves_like_a_dictionary"),
    Bite(broken.RequeuesAtTheEnd, "test_any_sequence_of_verbs_behaves_like_a_dictionary"),
    # many at once
    Bite(broken.LooksBeforeItLeases, "test_of_many_threads_one_gets_each_event"),
    Bite(broken.CopiesItsEventsToAdd, "test_threads_lose_no_event"),
    Bite(broken.LooksIntoTheFileBeforeItLeases, "test_of_many_processes_one_gets_each_event"),
    Bite(broken.GivesUpWhenBusy, "test_processes_lose_no_event"),
    # reopening
    Bite(broken.StartsAnew, "test_every_event_is_as_it_was_when_opened_again"),
    Bite(broken.LeasesUntilItIsClosed, "test_every_event_is_as_it_was_when_opened_again"),
    Bite(broken.RemembersWhatIsDone, "test_what_was_deleted_is_not_there_when_opened_again"),
)

HEALTHY: dict[Broken, Suite] = {
    MemoryOutbox: test_outbox_conformance.TestMemory,
    SqliteOutbox: test_outbox_conformance.TestDatabase,
}
BASES = (broken.Redrafting, broken.Leasing, broken.FoldingAccounts)
"""What some of the broken have in common."""


def opened(outbox: Broken, place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
    if issubclass(outbox, SqliteOutbox):
        return outbox(str(place / "home" / "outbox.db"), clock=clock, siblings=siblings)
    return outbox(clock=clock, siblings=siblings)


def healthy_suite(implementation: Broken) -> Suite:
    """Return the suite of the healthy class that `implementation` breaks."""
    return next(HEALTHY[base] for base in implementation.__mro__ if base in HEALTHY)


def broken_suite(implementation: Broken) -> Suite:
    opening = staticmethod(partial(opened, implementation))
    return type(implementation.__name__, (healthy_suite(implementation),), {"open_outbox": opening})


def run(conformance: Suite, test: str, place: Path) -> None:
    """Run one test of a suite as pytest would, on the empty folder `place`."""
    method = getattr(conformance(), test)
    clock, neighbours = HandClock(), Neighbours()
    with closing(conformance.open_outbox(place, clock, neighbours)) as outbox:
        fixtures = {"place": place, "clock": clock, "neighbours": neighbours, "outbox": outbox}
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
    contract = {*suite.names_of_tests(OutboxSuite), *suite.gated_tests(OutboxSuite)}

    assert {bite.caught_by for bite in BITES} == contract


def test_every_broken_implementation_is_caught() -> None:
    implementations = {
        implementation
        for _, implementation in inspect.getmembers(broken, inspect.isclass)
        if issubclass(implementation, (MemoryOutbox, SqliteOutbox))
        if implementation.__module__ == broken.__name__
        if implementation not in BASES
    }

    assert {bite.broken for bite in BITES} == implementations


@pytest.mark.parametrize("base", [OutboxSuite, *HEALTHY.values()])
def test_nothing_of_the_contract_can_be_replaced(base: Suite) -> None:
    for name in (*suite.names_of_tests(base), "outbox", "clock", "place"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})


@pytest.mark.parametrize(("promise", "count"), [(SURVIVES_REOPENING, 2), (CONCURRENT_WORKERS, 2)])
def test_a_promise_switches_its_tests_on(promise: str, count: int) -> None:
    def reported(promises: frozenset[str]) -> set[str]:
        return set(suite.names_of_tests(type("Told", (OutboxSuite,), {"promises": promises})))

    assert len(reported(frozenset({promise})) - reported(frozenset())) == count
