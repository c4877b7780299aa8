"""Each rule of recall and of its index is held by a test that fails for who breaks it."""

import errno
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perdure.engine.sessions import Sessions
from perdure.engine.upkeep import DifferenceKind
from perdure.errors import EmbeddingError, InvalidValueError, StorageError
from tests.engine import broken_recall as broken
from tests.engine import (
    test_another_model,
    test_passages_of_records,
    test_past,
    test_present,
    test_recall,
    test_recall_rules,
    test_recall_tenancy,
    test_sessions,
    test_summaries,
    test_token_budget,
    test_upkeep,
    test_validity,
    test_worker,
)
from tests.engine.changing_models import have_many
from tests.engine.recall_tenants import Moody
from tests.engine.remembering import BOB, of, opened, save_all

pytestmark = [pytest.mark.search, pytest.mark.usefixtures("agfs")]

Errors = tuple[type[BaseException], ...]
FAILED: Errors = (AssertionError, pytest.fail.Exception)
SILENT: Errors = (*FAILED, IndexError)
"""There is no first hit."""


@dataclass(frozen=True, slots=True)
class Bite:
    broken: Callable[[pytest.MonkeyPatch], None]
    where: ModuleType
    caught_by: str
    shown_as: Errors = FAILED
    """What the test raises."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the test beyond its fixtures."""
    semantic: bool = True

    def __str__(self) -> str:
        given = "".join(f", {value}" for value in self.given.values())
        return f"{self.broken.__name__}-{self.caught_by}{given}"


THEIRS = "test_on_a_busy_day_everybody_finds_what_is_theirs"
POISON = "test_a_poisoned_text_goes_to_the_dead_and_the_rest_goes_on"
OLD_ANSWERS = "test_old_vectors_answer_until_the_new_ones_are_computed"
HOSTILE = "test_settings_that_are_damaged_or_hostile_are_passed_over"
HEALED = "test_every_difference_is_named_and_healed"
ABOVE = "test_every_folder_above_a_node_is_summed_up"
EDITED = "test_an_edit_by_hand_is_found_as_it_is_now"
BUDGET = "TestBudget.test_it_is_never_exceeded_and_snippets_stay_whole"
ON, OFF = {"semantic": True}, {"semantic": False}
SUPERSEDED = "test_what_superseded_a_statement_comes_before_it"
FORMERLY = "test_who_asks_for_what_was_finds_it_first"
BITES = (
    # filters and confirmation
    Bite(broken.confirms_nothing, test_recall, "test_a_snippet_is_what_the_content_says"),
    Bite(broken.hides_what_is_stale, test_recall, EDITED, SILENT),
    Bite(
        broken.asks_nobody_for_reach,
        test_recall_rules,
        "test_a_record_under_the_wrong_owner_is_not_returned",
    ),
    Bite(
        broken.reads_every_session,
        test_recall_rules,
        "test_a_record_under_the_wrong_owner_is_not_returned",
    ),
    Bite(broken.leaves_the_owners_out, test_recall_tenancy, THEIRS, given=ON),
    Bite(broken.leaves_the_owners_out, test_recall_tenancy, THEIRS, given=OFF),
    Bite(broken.forgets_what_was_shown, test_recall_tenancy, THEIRS, given=OFF),
    Bite(broken.filters_no_passages, test_recall_tenancy, THEIRS, given=OFF),
    Bite(
        broken.ignores_when_it_held, test_recall, "test_only_what_held_then_is_found_if_asked_for"
    ),
    Bite(broken.ignores_what_it_is_filed_under, test_recall, "test_filters_leave_nothing_else"),
    Bite(
        broken.lets_filters_say_whose,
        test_recall_tenancy,
        "test_nobody_says_whose_memory_is_searched",
        (*SILENT, InvalidValueError),
        {"name": "owner_space"},
    ),
    Bite(
        broken.filters_no_neighbours,
        test_recall_rules,
        "test_what_did_not_hold_then_is_no_neighbour_either",
        given=OFF,
    ),
    Bite(
        broken.filters_no_children,
        test_recall_rules,
        "test_what_did_not_hold_then_is_no_neighbour_either",
        given=ON,
    ),
    Bite(
        broken.filters_no_relations,
        test_recall_rules,
        "test_what_is_related_is_filtered_too",
        given=OFF,
    ),
    Bite(
        broken.gives_more_than_was_asked_for,
        test_recall_rules,
        "test_no_more_hits_than_were_asked_for",
        given=OFF,
    ),
    # what holds
    Bite(broken.takes_all_to_hold, test_validity, SUPERSEDED, given={"question": "Lisbon"}),
    Bite(broken.hides_what_lapsed, test_validity, SUPERSEDED, given={"question": "Lisbon"}),
    Bite(
        broken.knows_no_successors,
        test_validity,
        SUPERSEDED,
        given={"question": "Lisbon"},
        semantic=False,
    ),
    Bite(
        broken.doubts_messages_of_the_future,
        test_validity,
        "test_a_message_holds_even_if_its_clock_was_ahead",
    ),
    Bite(
        broken.follows_one_edge,
        test_validity,
        "test_a_chain_is_followed_to_its_end",
        semantic=False,
    ),
    Bite(
        broken.follows_edges_out_of_reach,
        test_validity,
        "test_an_edge_to_another_users_node_is_ignored",
    ),
    Bite(
        broken.follows_edges_past_filters,
        test_validity,
        "test_filters_decide_what_may_come_with_it",
    ),
    Bite(
        broken.tells_how_a_page_begins,
        test_validity,
        "test_of_a_long_page_the_superseding_passage_is_returned",
    ),
    Bite(
        broken.demotes_all_alike,
        test_validity,
        "test_former_statements_do_not_crowd_out_what_holds",
        semantic=False,
    ),
    Bite(
        broken.hears_no_past,
        test_validity,
        FORMERLY,
        given={"question": "Where did Ana live before?"},
    ),
    Bite(
        broken.knows_no_periods,
        test_validity,
        FORMERLY,
        given={"question": "Where did Ana live in 2025?"},
    ),
    Bite(
        broken.gives_former_statements_nothing,
        test_validity,
        FORMERLY,
        given={"question": "Where did Ana live in 2025?"},
    ),
    Bite(
        broken.takes_today_for_the_past,
        test_validity,
        "test_a_period_that_is_not_over_asks_for_what_holds",
    ),
    Bite(
        broken.demotes_whatever_the_filter_says,
        test_validity,
        "test_with_a_valid_time_the_filter_decides_alone",
    ),
    Bite(
        broken.packs_what_was_remembered_to_the_letter,
        test_token_budget,
        "test_orders_in_what_was_remembered_are_marked_as_quoted",
    ),
    # results
    Bite(
        broken.says_nothing_of_a_missing_model,
        test_recall,
        "test_without_a_model_it_says_so",
        SILENT,
    ),
    Bite(
        broken.says_nothing_of_a_missing_model,
        test_recall,
        "test_a_question_that_can_not_be_embedded_is_answered_by_words",
        SILENT,
    ),
    Bite(
        broken.counts_what_waits_for_others,
        test_recall_tenancy,
        "test_a_poisoned_text_of_another_user_does_not_hold_up_recall",
    ),
    Bite(broken.never_says_that_it_is_behind, test_worker, POISON),
    Bite(
        broken.cites_what_history_has_not,
        test_present,
        "test_an_edit_that_the_index_knows_already_is_in_history_too",
    ),
    Bite(
        broken.refuses_what_can_not_be_caught_up_with,
        test_present,
        "test_an_index_that_can_not_be_brought_up_to_date_answers_as_it_is",
        (StorageError,),
        {"number": errno.EROFS},
    ),
    Bite(broken.exceeds_the_budget, test_recall, BUDGET, semantic=False),
    Bite(broken.counts_tokens_as_words, test_recall, BUDGET, semantic=False),
    Bite(broken.cuts_snippets, test_recall, BUDGET, semantic=False),
    Bite(
        broken.builds_low_fences,
        test_recall,
        "TestBudget.test_what_is_remembered_can_not_end_its_fence",
    ),
    # ranking
    Bite(
        broken.asks_for_all_words,
        test_recall,
        "test_one_word_is_enough_to_be_found",
        semantic=False,
    ),
    Bite(
        broken.trusts_every_word, test_recall_rules, "test_where_words_say_little_meaning_decides"
    ),
    Bite(broken.has_no_sense_of_meaning, test_recall, "test_with_a_model_meaning_takes_part"),
    Bite(
        broken.looks_beside_nothing,
        test_recall,
        "test_an_answer_is_found_by_the_question_before_it",
        semantic=False,
    ),
    Bite(
        broken.borrows_from_nobody,
        test_recall,
        "test_an_answer_is_found_by_the_question_before_it",
        semantic=False,
    ),
    Bite(
        broken.knows_no_relations,
        test_recall,
        "test_what_is_related_to_a_hit_is_found_with_it",
        semantic=False,
    ),
    Bite(
        broken.opens_no_summaries,
        test_recall,
        "test_a_passage_is_found_through_the_summary_above_it",
    ),
    Bite(
        broken.knows_no_dates,
        test_recall_rules,
        "test_what_is_from_the_time_that_was_named_comes_first",
    ),
    Bite(
        broken.hears_assistants_first, test_recall_rules, "test_a_user_is_heard_before_an_assistant"
    ),
    Bite(broken.hears_no_names, test_recall_rules, "test_who_is_named_is_heard_first"),
    # keeping up
    Bite(broken.works_on_nothing, test_recall, "test_what_was_saved_is_found_at_once", SILENT),
    Bite(
        broken.moves_the_cursor_without_records,
        test_worker,
        "test_every_kind_of_event_reaches_the_index",
    ),
    Bite(
        broken.compares_no_cursor,
        test_recall_rules,
        "test_a_reader_that_was_overtaken_by_a_writer_looks_again",
        SILENT,
    ),
    Bite(
        broken.goes_by_the_outbox_alone,
        test_recall_rules,
        "test_what_a_dead_writer_did_not_register_is_indexed_by_the_log",
        SILENT,
    ),
    Bite(
        broken.never_looks_again,
        test_worker,
        "test_what_was_edited_during_an_outage_is_embedded_after_it",
    ),
    Bite(
        broken.knows_no_folders,
        test_recall,
        "test_a_passage_is_found_through_the_summary_above_it",
    ),
    Bite(broken.looks_at_no_folder_above, test_upkeep, ABOVE, given={"rebuilt": False}),
    Bite(broken.looks_at_no_folder_above, test_upkeep, ABOVE, given={"rebuilt": True}),
    Bite(
        broken.indexes_what_is_archived, test_worker, "test_every_kind_of_event_reaches_the_index"
    ),
    Bite(broken.lets_poison_stop_the_rest, test_worker, POISON),
    Bite(broken.takes_poison_for_an_outage, test_worker, POISON, (*FAILED, EmbeddingError)),
    Bite(
        broken.takes_poison_for_an_outage,
        test_recall_tenancy,
        "test_a_poisoned_text_of_another_user_does_not_hold_up_recall",
    ),
    Bite(broken.drops_what_has_no_vector, test_worker, POISON),
    Bite(broken.takes_failed_for_done, test_worker, POISON),
    Bite(
        broken.forgets_what_failed,
        test_worker,
        "test_what_was_edited_during_an_outage_is_embedded_after_it",
    ),
    Bite(
        broken.switches_without_vectors,
        test_worker,
        "test_after_an_outage_all_vectors_are_computed",
    ),
    Bite(
        broken.throws_away_first,
        test_worker,
        "test_an_index_is_not_deleted_while_no_other_can_be_built",
    ),
    Bite(broken.tries_for_ever, test_worker, POISON),
    Bite(broken.embeds_one_by_one, test_worker, "test_all_texts_of_a_round_are_embedded_together"),
    Bite(
        broken.keeps_leases,
        test_worker,
        "test_leases_are_let_go_of_whatever_happens",
        (ValueError,),
    ),
    Bite(
        broken.stops_at_odd_nodes,
        test_passages_of_records,
        "test_a_node_that_can_not_be_indexed_does_not_stop_the_rest",
        (InvalidValueError,),
    ),
    # the past
    Bite(
        broken.builds_the_past_from_the_present,
        test_past,
        "test_what_was_known_then_is_found_as_it_was",
    ),
    Bite(broken.keeps_every_past, test_past, "test_only_a_few_past_states_stay_open"),
    Bite(
        broken.shows_the_past_to_everybody,
        test_past,
        "test_others_find_nothing_of_it_in_the_past_either",
    ),
    # vectors
    Bite(broken.remembers_no_vector, test_past, "test_nothing_is_embedded_again_for_the_past"),
    Bite(
        broken.shares_the_memo_between_owners,
        test_recall_rules,
        "test_the_same_text_is_embedded_once_for_each_owner",
    ),
    Bite(
        broken.shares_the_memo_between_models,
        test_recall_rules,
        "test_another_model_has_vectors_of_its_own",
    ),
    # another model
    Bite(broken.forgets_old_vectors, test_another_model, OLD_ANSWERS),
    Bite(broken.embeds_behind_ones_back, test_another_model, OLD_ANSWERS, (ValueError, *FAILED)),
    Bite(
        broken.takes_any_model_for_the_old_one,
        test_another_model,
        HOSTILE,
        given={"what": "another model"},
    ),
    Bite(
        broken.trusts_what_others_can_write,
        test_another_model,
        HOSTILE,
        given={"what": "for all to write"},
    ),
    Bite(
        broken.asks_endpoints_that_were_left,
        test_another_model,
        "test_an_endpoint_is_asked_as_long_as_the_config_names_it",
    ),
    Bite(broken.builds_beside_others, test_another_model, "test_two_do_not_embed_the_same"),
    Bite(broken.starts_over, test_another_model, "test_what_is_right_is_not_written_again"),
    Bite(
        broken.looks_for_nothing_lost,
        test_another_model,
        "test_what_is_taken_out_meanwhile_is_put_back",
    ),
    Bite(broken.stops_for_nobody, test_another_model, "test_the_progress_is_reported", SILENT),
    Bite(
        broken.switches_without_vectors,
        test_another_model,
        "test_a_model_that_is_out_of_order_takes_nobodys_place",
    ),
    Bite(
        broken.takes_the_end_for_the_beginning,
        test_another_model,
        "test_nodes_may_change_during_a_build",
        given={"step": 2},
    ),
    Bite(
        broken.lets_events_wait,
        test_another_model,
        "test_events_that_arrive_meanwhile_are_worked_on",
    ),
    Bite(
        broken.removes_who_answers,
        test_another_model,
        "test_the_one_that_answers_is_never_removed",
    ),
    Bite(broken.remembers_late, test_another_model, "test_two_do_not_embed_the_same"),
    # upkeep
    Bite(broken.finds_no_difference, test_upkeep, HEALED, given={"kind": DifferenceKind.MISSING}),
    Bite(broken.finds_no_difference, test_upkeep, HEALED, given={"kind": DifferenceKind.DIFFERENT}),
    Bite(broken.sees_no_surplus, test_upkeep, HEALED, given={"kind": DifferenceKind.SURPLUS}),
    Bite(broken.heals_nothing, test_upkeep, HEALED, given={"kind": DifferenceKind.MISSING}),
    Bite(broken.heals_by_forgetting, test_upkeep, HEALED, given={"kind": DifferenceKind.DIFFERENT}),
    Bite(
        broken.leaves_summaries_behind,
        test_summaries,
        "test_with_an_owner_all_that_was_derived_goes",
        given={"what": "account"},
    ),
    Bite(
        broken.forgets_the_indexes_of_yesterday,
        test_summaries,
        "test_with_an_owner_all_that_was_derived_goes",
        given={"what": "user"},
    ),
    # records, sessions, folders
    Bite(broken.miscounts_lines, test_recall, "test_a_hit_can_be_cited"),
    Bite(
        broken.knows_no_neighbours,
        test_recall,
        "test_an_answer_is_found_by_the_question_before_it",
        semantic=False,
    ),
    Bite(
        broken.hears_questions_everywhere,
        test_passages_of_records,
        "TestSessions.test_only_what_ends_with_a_question_asks",
    ),
    Bite(broken.knows_no_party, test_recall_rules, "test_who_is_named_is_heard_first"),
    Bite(
        broken.numbers_no_passages,
        test_passages_of_records,
        "TestNotes.test_a_note_has_its_abstract_its_overview_and_its_passages",
    ),
    Bite(
        broken.makes_a_whole_of_one,
        test_passages_of_records,
        "TestNotes.test_one_passage_is_no_whole_beside_itself",
    ),
    Bite(
        broken.keeps_silence,
        test_passages_of_records,
        "TestSessions.test_a_message_without_words_has_no_record",
    ),
    Bite(
        broken.takes_any_text_for_a_time,
        test_passages_of_records,
        "TestNotes.test_what_is_no_time_holds_always",
        given={"given": "soon"},
    ),
    Bite(
        broken.sums_up_all_users,
        test_summaries,
        "TestSummaries.test_above_all_owners_there_is_none",
        given={"path": ("users",)},
        shown_as=(AssertionError, InvalidValueError),
    ),
    Bite(
        broken.sums_up_what_is_alone,
        test_summaries,
        "TestSummaries.test_what_is_alone_needs_no_summary",
    ),
    Bite(
        broken.overwrites_earlier_messages,
        test_sessions,
        "test_other_messages_under_the_same_id_are_refused",
    ),
)


# ---------------------------------------------------------------- as pytest would
@contextmanager
def fixtures(bite: Bite, place: Path, patch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Give what a test may ask for, as its module makes it."""
    makers: dict[ModuleType, Callable[[], Any]] = {
        test_worker: test_worker.Moving,
        test_past: test_past.Counting,
        test_recall_tenancy: Moody,
    }
    embedder = makers[bite.where]() if bite.where in makers else None
    found: dict[str, Any] = {
        "tmp_path": place,
        "monkeypatch": patch,
        "embedder": embedder,
        **bite.given,
    }
    wanted = inspect.signature(caught_by(bite)).parameters
    if bite.where is test_another_model:
        have_many(place)
        found |= {"home": place, "besieged": place}
    with ExitStack() as stack:
        if not {"context", "memory", "sessions"}.isdisjoint(wanted):
            context = stack.enter_context(opened(place, embedder=embedder, semantic=bite.semantic))
            if bite.where in {test_upkeep, test_recall_tenancy, test_summaries}:
                save_all(of(context))
            if bite.where is test_upkeep:
                of(context, BOB).save("Likes soup.", category="preference", slug="soup")
            found |= {"context": context, "memory": context, "sessions": Sessions(context.nodes)}
        yield {name: found[name] for name in wanted}


def caught_by(bite: Bite) -> Callable[..., None]:
    found: Any = bite.where
    *outer, name = bite.caught_by.split(".")
    for each in outer:
        found = getattr(found, each)()
    return getattr(found, name)  # type: ignore[no-any-return] # a test


# ---------------------------------------------------------------- the tests
@pytest.mark.parametrize("bite", BITES, ids=str)
def test_the_broken_are_caught(bite: Bite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bite.broken(monkeypatch)

    with pytest.raises(bite.shown_as), fixtures(bite, tmp_path, monkeypatch) as given:
        caught_by(bite)(**given)


@pytest.mark.parametrize("name", sorted({bite.caught_by for bite in BITES}))
def test_the_healthy_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bite = next(bite for bite in BITES if bite.caught_by == name)

    with fixtures(bite, tmp_path, monkeypatch) as given:
        caught_by(bite)(**given)


def test_every_broken_recall_is_caught() -> None:
    defined = {
        each
        for name, each in inspect.getmembers(broken, inspect.isfunction)
        if each.__module__ == broken.__name__ and not name.startswith("_")
    }

    assert {bite.broken for bite in BITES} == defined
    assert len(defined) >= 30
