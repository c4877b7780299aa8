"""Each fault in statements, superseding or unmerging is caught by a test."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest

from perdure.errors import PerdureError
from tests.bites import repeatable_search, run_with_each_parameter
from tests.engine.learn import breakages, test_statements, test_unmerging
from tests.engine.learn.remembered import Memory
from tests.engine.learn.test_policies_conformance import TestProfile as Profile
from tests.support.merge import MergePolicySuite
from tests.support.merge.world import World

pytestmark = pytest.mark.search

__all__ = ["repeatable_search"]

ALL = "test_what_stands_together_is_read_as_it_is_alone"
LAST = "test_the_last_merge_undone_leaves_all_as_it_was"


@dataclass(frozen=True, slots=True)
class Bite:
    broken: Callable[[pytest.MonkeyPatch], None]
    where: ModuleType | type[MergePolicySuite]
    caught_by: str

    def run(self) -> None:
        if isinstance(self.where, ModuleType):
            _run(getattr(self.where, self.caught_by))
        else:
            _run(getattr(self.where(), self.caught_by))


def _run(test: Callable[..., None]) -> None:
    """Run a test as pytest would, with a new memory each time."""
    wanted = inspect.signature(test).parameters

    def with_a_memory(**given: object) -> None:
        made = {"memory": Memory} | {"world": lambda: World(Profile.open_policy)}
        given |= {name: make() for name, make in made.items() if name in wanted}
        test(**given)

    with_a_memory.__dict__.update(getattr(test, "__func__", test).__dict__)
    run_with_each_parameter(with_a_memory)


CAUGHT = (AssertionError, pytest.fail.Exception, PerdureError, ValueError, StopIteration, KeyError)
"""What a test raises, or what it meets on the way to what it looks for."""
PAGES, UNDOING = test_statements, test_unmerging
HELD = "test_a_contradiction_keeps_what_held_before"
BITES = (
    Bite(breakages.reads_lines_as_python_does, PAGES, "test_a_page_says_its_items_and_paragraphs"),
    Bite(breakages.reads_items_in_code, PAGES, ALL),
    Bite(breakages.reads_items_in_comments, PAGES, ALL),
    Bite(breakages.reads_headings_as_statements, PAGES, ALL),
    Bite(breakages.reads_properties_as_statements, PAGES, ALL),
    Bite(breakages.ends_items_at_gaps, PAGES, "test_an_item_has_its_evidence"),
    Bite(breakages.leaves_the_gap, PAGES, "test_the_gap_that_something_leaves_is_closed"),
    Bite(breakages.cuts_one_character_more, PAGES, "test_what_is_taken_out_takes_nothing_along"),
    Bite(breakages.rewrites_the_node, PAGES, "test_what_is_added_comes_last_and_all_else_stays"),
    Bite(breakages.looks_at_no_neighbours, PAGES, "test_any_page_keeps_what_it_says"),
    Bite(
        breakages.names_statements_by_their_letters,
        PAGES,
        "test_the_day_since_which_it_holds_is_not_part_of_a_statement",
    ),
    Bite(breakages.always_draws_a_dash, PAGES, "test_an_item_has_its_evidence"),
    # superseding
    Bite(breakages.supersedes_without_a_trace, Profile, HELD),
    Bite(breakages.leads_nowhere, Profile, HELD),
    Bite(breakages.says_not_how_long_it_held, Profile, HELD),
    Bite(
        breakages.believes_the_last_it_hears,
        Profile,
        "test_the_order_of_commits_does_not_decide_what_holds",
    ),
    Bite(
        breakages.says_not_since_when,
        UNDOING,
        "test_a_late_statement_is_undone_after_an_edit_too",
    ),
    # unmerging
    Bite(
        breakages.forgets_what_was_superseded,
        UNDOING,
        "test_what_was_superseded_comes_back_into_a_page_that_was_edited",
    ),
    Bite(breakages.leaves_what_was_superseded, UNDOING, LAST),
    Bite(breakages.overwrites_what_came_after, UNDOING, "test_what_was_edited_since_stays"),
    Bite(breakages.keeps_nothing_apart, UNDOING, "test_what_was_taken_apart_is_not_merged_again"),
    Bite(
        breakages.appends_what_was_taken_apart,
        UNDOING,
        "test_what_was_taken_apart_is_not_merged_again",
    ),
    Bite(breakages.loses_the_proof, UNDOING, LAST),
    Bite(
        breakages.forgets_the_merges_before,
        UNDOING,
        "test_all_merges_undone_one_by_one_leave_what_was_there_first",
    ),
    Bite(
        breakages.overwrites_what_is_apart,
        UNDOING,
        "test_an_edit_of_the_owner_is_not_overwritten",
    ),
    Bite(
        breakages.reads_only_what_is_there,
        UNDOING,
        "test_a_merge_is_undone_although_what_it_superseded_was_deleted",
    ),
    Bite(
        breakages.puts_it_back_where_it_was_edited,
        UNDOING,
        "test_what_its_owner_wrote_into_what_was_superseded_comes_back",
    ),
    Bite(
        breakages.tells_of_late_news_as_of_others,
        UNDOING,
        "test_a_late_statement_is_undone_after_an_edit_too",
    ),
)


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.broken.__name__}")
def test_the_broken_are_caught(bite: Bite, monkeypatch: pytest.MonkeyPatch) -> None:
    bite.broken(monkeypatch)

    with pytest.raises(CAUGHT):
        bite.run()


@pytest.mark.parametrize(
    "test",
    {(bite.where, bite.caught_by): bite for bite in BITES}.values(),
    ids=lambda bite: bite.caught_by,
)
def test_the_healthy_pass(test: Bite) -> None:
    test.run()


def test_every_breakage_is_caught() -> None:
    made = {
        each
        for _, each in inspect.getmembers(breakages, inspect.isfunction)
        if each.__module__ == breakages.__name__
    }

    assert {bite.broken for bite in BITES} == made
