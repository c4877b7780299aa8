"""Each test of the contract of merge policies catches who breaks it, and lets the honest pass."""

import inspect
from collections.abc import Callable

import pytest

from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import MergePolicy
from perdure.errors import AccessDeniedError
from perdure.testing import suite
from tests.bites import Bite, repeatable_search, run_with_each_parameter
from tests.engine.learn import broken_policies as broken
from tests.engine.learn import test_policies_conformance as conformance
from tests.support.merge import ALONE, JOINS, MergePolicySuite
from tests.support.merge.world import World

pytestmark = pytest.mark.search

__all__ = ["repeatable_search"]

BASES: dict[str, type[MergePolicySuite]] = {
    "profile": conformance.TestProfile,
    "preference": conformance.TestAggregateTopic,
    "event": conformance.TestAppendOnly,
    "skill": conformance.TestSkillTool,
}
BITES = (
    # shape
    Bite(broken.ArchivesWhatIsKnown, "test_a_plan_is_to_create_merge_append_or_skip"),
    Bite(broken.WritesAtOnce, "test_a_plan_writes_nothing"),
    Bite(broken.CountsItsPlans, "test_the_same_memory_gives_the_same_plan"),
    # once
    Bite(broken.SaysItAgain, "test_the_same_candidate_twice_is_skipped"),
    Bite(broken.SaysItOnceInEachSession, "test_the_same_in_another_session_is_there_once"),
    Bite(
        broken.ForgetsItsMentions,
        "test_a_written_statement_has_the_mention_as_evidence",
        ValueError,
    ),
    Bite(broken.MergesWhatIsNearlyTheSame, "test_what_differs_by_a_little_is_not_merged"),
    # nothing is lost
    Bite(broken.DropsWhatItSupersedes, "test_no_statement_is_lost"),
    Bite(broken.ContradictsNothing, "test_a_contradiction_keeps_what_held_before", ValueError),
    Bite(
        broken.BelievesWhoSpeaksLast,
        "test_the_order_of_commits_does_not_decide_what_holds",
    ),
    Bite(broken.ForgetsHowItWasWorded, "test_a_merge_keeps_the_time_of_creation_and_both_parents"),
    Bite(broken.RemembersNoMerges, "test_a_node_lists_each_merge"),
    Bite(broken.TidiesUp, "test_what_was_written_by_hand_stays_to_the_letter"),
    # each alone
    Bite(broken.GathersWhatHappened, "test_another_candidate_is_a_memory_of_its_own"),
    Bite(broken.KnowsNoDays, "test_what_happened_on_another_day_is_another_one"),
    # others
    Bite(broken.PutsTheNewestLast, "test_unrelated_candidates_may_come_in_any_order"),
    Bite(broken.WritesToAnotherOwner, "test_the_pages_of_others_are_left_alone", AccessDeniedError),
    Bite(broken.BringsBackWhatWasPutAway, "test_an_archived_node_is_not_written"),
)
PROMISED = "test_it_promises_that_candidates_join_or_that_they_do_not"


def run(make: Callable[[KnownMemory], MergePolicy], category: str, test: str) -> None:
    """Run one test of the suite as pytest would, with each of its parameters."""
    opener = {"open_policy": staticmethod(make)}
    tested: MergePolicySuite = type("Tested", (BASES[category],), opener)()
    method = getattr(tested, test)

    def with_a_world(**given: object) -> None:
        wants = "world" in inspect.signature(method).parameters
        method(**({"world": World(make)} if wants else {}), **given)

    with_a_world.__dict__.update(method.__func__.__dict__)
    run_with_each_parameter(with_a_world)


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}-{bite.caught_by}")
def test_the_broken_are_caught(bite: Bite) -> None:
    with pytest.raises(bite.shown_as):
        run(bite.broken, bite.broken.category, bite.caught_by)


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.category}-{bite.caught_by}")
def test_the_healthy_pass(bite: Bite) -> None:
    category = bite.broken.category
    healthy = type("Healthy", (broken.Faulty,), {"category": category})
    run(healthy, category, bite.caught_by)


@pytest.mark.parametrize("promises", [frozenset(), frozenset({JOINS, ALONE})], ids=len)
def test_who_promises_nothing_or_both_is_caught(promises: frozenset[str]) -> None:
    tested = type("Tested", (MergePolicySuite,), {"promises": promises})

    with pytest.raises(AssertionError):
        getattr(tested(), PROMISED)()


def test_every_test_of_the_contract_is_proved_to_bite() -> None:
    tests = {name for base in BASES.values() for name in suite.names_of_tests(base)}

    assert {bite.caught_by for bite in BITES} == tests - {PROMISED}


def test_every_broken_policy_is_caught() -> None:
    made = {
        each
        for _, each in inspect.getmembers(broken, inspect.isclass)
        if issubclass(each, broken.Faulty)
    }

    assert {bite.broken for bite in BITES} == made - {broken.Faulty}


@pytest.mark.parametrize("base", [MergePolicySuite, *BASES.values()])
def test_nothing_of_the_contract_can_be_replaced(base: type[MergePolicySuite]) -> None:
    for name in (*suite.names_of_tests(base), "world", "candidate"):
        with pytest.raises(TypeError, match=name):
            type("Weak", (base,), {name: None})
