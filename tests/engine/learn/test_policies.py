"""Each kind of memory has its own policy for statements."""

import pytest

from perdure.engine.learn.policies import (
    AggregateTopicPolicy,
    AppendOnlyPolicy,
    ProfilePolicy,
    SkillToolPolicy,
    policy_for,
)
from perdure.errors import NodeExistsError
from perdure.model import ContextNode, WriteAction
from perdure.testing.requirement import requirement
from tests.engine.learn.remembered import MEMORIES, PROFILE, SKILL, Memory
from tests.support.merge.world import ANA, NOON


@pytest.fixture
def memory() -> Memory:
    return Memory()


@requirement("003-merge-four-policies")
def test_each_kind_of_memory_has_its_policy(memory: Memory) -> None:
    known = memory.world.known
    kinds = {
        "profile": ProfilePolicy,
        "preference": AggregateTopicPolicy,
        "entity": AggregateTopicPolicy,
        "pattern": AggregateTopicPolicy,
        "something-else": AggregateTopicPolicy,
        "event": AppendOnlyPolicy,
        "case": AppendOnlyPolicy,
        "skill": SkillToolPolicy,
        "tool": SkillToolPolicy,
    }

    for category, kind in kinds.items():
        assert type(policy_for(category, known, lambda: NOON)) is kind


# ---------------------------------------------------------------- profile
@requirement("003-merge-profile")
def test_all_statements_about_a_user_are_merged_into_one_node(memory: Memory) -> None:
    plans = [
        memory.save("Ana lives in Lisbon.", "profile"),
        memory.save("Ana works as a nurse.", "profile", day=6),
        memory.save("Ana is vegan.", "profile", "diet", day=7),
        memory.save("Ana lives in Lisbon.", "profile", day=8),
        memory.save("Ana now lives in Porto.", "profile", day=9),
    ]

    assert [plan.action for plan in plans] == [WriteAction.CREATE, *[WriteAction.MERGE] * 4]
    assert {plan.uri for plan in plans} == {PROFILE}
    assert memory.content(PROFILE) == (
        "- Ana now lives in Porto. (since 2026-01-09)\n- Ana works as a nurse.\n- Ana is vegan.\n"
    )


def test_an_archived_profile_takes_no_statement(memory: Memory) -> None:
    memory.save("Ana lives in Lisbon.", "profile")
    memory.world.nodes.archive_node(PROFILE, ANA)

    with pytest.raises(NodeExistsError, match="Fix: unarchive"):
        memory.save("Ana is vegan.", "profile")


# ---------------------------------------------------------------- topics
@requirement("003-merge-aggregate-topic")
@pytest.mark.parametrize("category", ["preference", "entity", "pattern"])
def test_what_has_the_same_slug_joins_one_page(memory: Memory, category: str) -> None:
    first = memory.save("Ana likes green tea.", category, "tea")
    second = memory.save("Ana buys tea in Porto.", category, "tea", day=6)
    other = memory.save("Ana plays chess.", category, "chess", day=7)

    assert (first.action, second.action, other.action) == (
        WriteAction.CREATE,
        WriteAction.APPEND,
        WriteAction.CREATE,
    )
    assert first.uri == second.uri == f"{MEMORIES}/{category}/tea"
    assert memory.content(first.uri) == "- Ana likes green tea.\n- Ana buys tea in Porto.\n"
    assert other.uri == f"{MEMORIES}/{category}/chess"


def test_what_says_the_same_is_merged_under_another_slug_too(memory: Memory) -> None:
    first = memory.save("Ana prefers tabs over spaces.", "preference", "tabs")

    again = memory.save("Ana prefers tabs over the spaces.", "preference", "indentation", day=6)

    assert (again.action, again.uri) == (WriteAction.MERGE, first.uri)


def test_what_says_the_same_of_another_kind_is_another_memory(memory: Memory) -> None:
    first = memory.save("Ana prefers tabs over spaces.", "preference", "tabs")

    again = memory.save("Ana prefers tabs over spaces.", "pattern", "tabs", day=6)

    assert (again.action, again.uri) == (WriteAction.CREATE, f"{MEMORIES}/pattern/tabs")
    assert memory.world.read(first.uri).version == 1


def test_a_page_of_nearly_the_same_name_is_asked_for_contradictions(memory: Memory) -> None:
    first = memory.save("The team uses Python 3.11.", "entity", "python-version")

    later = memory.save("The team uses Python 3.12.", "entity", "version-python", day=6)

    assert (later.action, later.uri) == (WriteAction.MERGE, first.uri)
    assert [each.content for each in later.former] == ["The team uses Python 3.11.\n"]


def test_a_page_of_another_name_is_not_contradicted(memory: Memory) -> None:
    memory.save("The team uses Python 3.11.", "entity", "alpha")

    later = memory.save("The team uses Python 3.12.", "entity", "beta", day=6)

    assert (later.action, later.former) == (WriteAction.CREATE, ())


def test_a_day_since_when_it_holds_is_a_day_more(memory: Memory) -> None:
    memory.save("Ana sings.", "entity", "ana")

    memory.save("Ana sings in Porto (since 2025-04-05)", "entity", "ana", day=6)
    memory.save("Ana sings in Porto (since 2025-04-06)", "entity", "ana", day=7)
    memory.save("Ana sings (since 2025-04-05)", "entity", "ana", day=8)

    assert memory.content(f"{MEMORIES}/entity/ana") == (
        "- Ana sings.\n- Ana sings in Porto (since 2025-04-05)\n- Ana sings (since 2025-04-05)\n"
    )
    (_, later) = memory.world.sayings("Ana sings in Porto")
    assert later.wording == "Ana sings in Porto (since 2025-04-06)"


# ---------------------------------------------------------------- what happened
@requirement("003-merge-append-only")
@pytest.mark.parametrize("category", ["event", "case"])
def test_what_happened_is_always_created_under_an_id_of_its_own(
    memory: Memory, category: str
) -> None:
    texts = ("Ana went to Rome.", "Ana did not go to Rome.", "Ana went to Rome twice.")
    plans = [memory.save(text, category, "rome", day=5 + n) for n, text in enumerate(texts)]

    assert {plan.action for plan in plans} == {WriteAction.CREATE}
    assert len({plan.uri for plan in plans}) == len(texts)
    assert all(plan.uri.startswith(f"{MEMORIES}/{category}/rome") for plan in plans)
    assert [memory.content(plan.uri) for plan in plans] == [f"{text}\n" for text in texts]


def test_the_same_on_the_same_day_is_one_event(memory: Memory) -> None:
    plans = [memory.save("Ana ran 5 km.", "event", "run", day=day) for day in (5, 6, 5, 6)]

    assert [plan.action for plan in plans] == [*[WriteAction.CREATE] * 2, *[WriteAction.SKIP] * 2]


# ---------------------------------------------------------------- skills
@requirement("003-merge-skill-tool")
def test_practice_gathers_on_one_page_for_each_skill(memory: Memory) -> None:
    plans = [
        memory.save("To ship, run `make ship`.", "skill", "make-ship"),
        memory.save("Before shipping, run the tests.", "skill", "make-ship", day=6),
        memory.save("To ship, run `make ship`.", "skill", "make-ship", day=7),
    ]

    assert {plan.uri for plan in plans} == {SKILL}
    assert [plan.action for plan in plans] == [
        WriteAction.CREATE,
        WriteAction.APPEND,
        WriteAction.MERGE,
    ]
    assert memory.content(SKILL) == (
        "- To ship, run `make ship`.\n- Before shipping, run the tests.\n"
    )


def test_an_archived_skill_stays_archived(memory: Memory) -> None:
    memory.save("To ship, run `make ship`.", "skill", "make-ship")
    memory.world.nodes.archive_node(SKILL, ANA)

    other = memory.save("Before shipping, run the tests.", "skill", "make-ship", day=6)

    assert other.uri.startswith(f"{SKILL}-")


# ---------------------------------------------------------------- order
def test_statements_are_ordered_by_time_in_whatever_order_they_come(memory: Memory) -> None:
    for text, day in (("Ana sings.", 7), ("Ana knits.", 5), ("Ana swims.", 6)):
        memory.save(text, "entity", "ana", day)

    assert memory.content(f"{MEMORIES}/entity/ana") == (
        "- Ana knits.\n- Ana swims.\n- Ana sings.\n"
    )


def test_what_its_owner_wrote_last_stays_last(memory: Memory) -> None:
    page = memory.save("Ana sings.", "entity", "ana", 7).uri
    memory.edit(page, "- Ana sings.\n\nSee also: Bo.\n")

    memory.save("Ana knits.", "entity", "ana", 5)

    assert memory.content(page) == "- Ana sings.\n\nSee also: Bo.\n\n- Ana knits.\n"


def test_a_page_without_a_list_gets_one(memory: Memory) -> None:
    page = f"{MEMORIES}/entity/ana"
    memory.world.nodes.write_node(ContextNode(uri=page, content="Ana sings in the choir."), ANA)

    plan = memory.save("Ana knits.", "entity", "ana")

    assert plan.action is WriteAction.APPEND
    assert memory.content(page) == "Ana sings in the choir.\n\n- Ana knits.\n"


def test_slugs_that_differ_by_the_value_are_of_one_thing(memory: Memory) -> None:
    old = memory.save(
        "In this project the database is SQLite.", "pattern", "project-database-sqlite"
    )
    new = memory.save(
        "In this project the database is Postgres.", "pattern", "project-database-postgres", day=6
    )

    assert (new.action, new.uri, len(new.former)) == (WriteAction.MERGE, old.uri, 1)


def test_slugs_that_differ_by_more_are_not(memory: Memory) -> None:
    memory.save("The database is SQLite.", "pattern", "app-database-sqlite")
    new = memory.save("The database is Postgres.", "pattern", "site-database-postgres", day=6)

    assert (new.action, new.former) == (WriteAction.CREATE, ())
