"""A merge is undone: the page is as it was, what was merged is by itself, and nothing is lost."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perdure.engine.learn import statements
from perdure.engine.learn.evidence import merges_of, support_of
from perdure.engine.learn.merge import separated_cids
from perdure.errors import AccessDeniedError, ContextError, InvalidValueError
from perdure.model import RelationEdge, RequestContext, WriteAction
from perdure.testing.suite import examples
from tests.engine.learn.remembered import MEMORIES, PROFILE, SKILL, Memory, whole
from tests.support.merge.suite import POOL
from tests.support.merge.world import ANA

LISBON, PORTO, NURSE = "Ana lives in Lisbon.", "Ana now lives in Porto.", "Ana works as a nurse."
TABS, TABS_TOO = "Ana prefers tabs over spaces.", "Ana prefers tabs over the spaces."
TABS_PAGE = f"{MEMORIES}/preference/tabs"
PLACES = {"profile": PROFILE, "preference": TABS_PAGE, "skill": SKILL}
SLUGS = {"profile": "", "preference": "tabs", "skill": "make-ship"}
BY_HAND = "# Ana\n\n* Ana lives in Lisbon.  \n- Ana knits.\n\n| a |\n|---|\n\nSee also: Bo.\n"

few = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def memory() -> Memory:
    return Memory()


# ---------------------------------------------------------------- as it was
@few
@given(
    stated=st.lists(st.sampled_from(POOL), min_size=2, max_size=5),
    category=st.sampled_from(list(PLACES)),
)
@example(stated=[LISBON, NURSE, PORTO], category="profile")
@example(stated=[TABS, TABS_TOO], category="preference")
@example(stated=["a", "```\n- make\n```"], category="skill")
def test_the_last_merge_undone_leaves_all_as_it_was(stated: list[str], category: str) -> None:
    memory, page = Memory(), PLACES[category]
    for day, text in enumerate(stated[:-1], start=1):
        memory.save(text, category, SLUGS[category], day)
    memory.world.nodes.write_node(memory.read(page).revised(abstract="what I know"), ANA)
    before, stood = memory.read(page), memory.world.contents()
    plan = memory.save(stated[-1], category, SLUGS[category], 20)
    if plan.uri != page:
        return

    undone = memory.unmerge(page)

    assert whole(memory.read(page)) == whole(before)
    assert merges_of(memory.read(page)) == merges_of(before)
    assert support_of(memory.read(page)) == support_of(before)
    assert memory.texts(undone.apart) == [statements.plain(stated[-1])]
    left = memory.world.contents()
    assert {uri: left[uri] for uri in stood} == stood
    assert left.keys() - stood.keys() == {undone.apart}
    (saying,) = support_of(memory.read(undone.apart))[statements.cid_of(stated[-1])].mentions
    assert (saying.session, saying.wording) == ("day 20", "")


@few
@given(stated=st.lists(st.sampled_from(POOL), min_size=2, max_size=6))
@example(stated=[LISBON, NURSE, PORTO])
@example(stated=[LISBON, PORTO, "Ana now lives in Berlin."])
def test_all_merges_undone_one_by_one_leave_what_was_there_first(stated: list[str]) -> None:
    memory = Memory()
    stood = [memory.world.contents()]
    for day, text in enumerate(stated, start=1):
        plan = memory.save(text, day=day)
        if plan.uri == PROFILE and plan.node is not None:
            stood.append(memory.world.contents())

    for before in reversed(stood[1:-1]):
        memory.unmerge(PROFILE)
        assert memory.content(PROFILE) == before[PROFILE]

    with pytest.raises(InvalidValueError, match="nothing was merged"):
        memory.unmerge(PROFILE)


def test_relations_and_what_is_written_by_hand_are_as_they_were(memory: Memory) -> None:
    memory.save(LISBON)
    memory.edit(PROFILE, BY_HAND)
    edge = RelationEdge(PROFILE, f"{MEMORIES}/entity/bo", "knows")
    memory.world.nodes.write_node(memory.read(PROFILE).revised(relations=(edge,)), ANA)
    before = memory.read(PROFILE)
    plan = memory.save(PORTO, day=20)
    assert plan.former

    undone = memory.unmerge(PROFILE)

    assert whole(memory.read(PROFILE)) == whole(before)
    assert undone.back == tuple(each.uri for each in plan.former)
    assert not memory.world.exists(plan.former[0].uri)


# ---------------------------------------------------------------- what came after
def test_what_was_edited_since_stays(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(NURSE, day=6)
    memory.edit(PROFILE, f"# Ana\n\n- {LISBON}\n- {NURSE}\n- Ana knits.\n")

    memory.unmerge(PROFILE)

    assert memory.content(PROFILE) == f"# Ana\n\n- {LISBON}\n- Ana knits.\n"


def test_what_was_superseded_comes_back_into_a_page_that_was_edited(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(PORTO, day=20)
    memory.edit(PROFILE, f"# Ana\n\n- {PORTO} (since 2026-01-20)\n- Ana knits.\n")

    undone = memory.unmerge(PROFILE)

    assert memory.content(PROFILE) == f"# Ana\n\n- {LISBON}\n- Ana knits.\n"
    assert [each.session for each in memory.world.sayings(LISBON)] == ["day 5"]
    assert memory.content(undone.apart) == f"- {PORTO}\n"


def test_another_merge_that_came_after_stays(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(PORTO, day=20)
    memory.save(NURSE, day=21)

    memory.unmerge(PROFILE, PORTO)

    assert memory.texts(PROFILE) == [LISBON, NURSE]
    assert [each.statement for each in merges_of(memory.read(PROFILE))] == [
        statements.cid_of(NURSE)
    ]


def test_a_merge_is_named_by_its_statement_or_the_one_it_was_merged_into(memory: Memory) -> None:
    for name in (TABS, TABS_TOO, statements.cid_of(TABS_TOO), f" {TABS_TOO}\n"):
        memory = Memory()
        memory.save(TABS, "preference", "tabs")
        memory.save(TABS_TOO, "preference", "tabs", 6)
        memory.save("Ana has a desk with drawers.", "preference", "tabs", 7)

        undone = memory.unmerge(TABS_PAGE, name)

        assert memory.texts(undone.apart) == [TABS_TOO]
        assert [each.session for each in memory.world.sayings(TABS)] == ["day 5"]


def test_what_was_superseded_twice_is_undone_from_the_last(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(PORTO, day=10)
    memory.save("Ana now lives in Berlin.", day=20)
    before = memory.state()
    with pytest.raises(InvalidValueError, match="undo later changes"):
        memory.unmerge(PROFILE, PORTO)
    assert memory.state() == before

    memory.unmerge(PROFILE)
    memory.unmerge(PROFILE)

    assert memory.content(PROFILE) == f"- {LISBON}\n"


def test_a_late_statement_is_undone_after_an_edit_too(memory: Memory) -> None:
    memory.save(PORTO, day=20)
    late = memory.save(LISBON, day=5)
    assert (late.uri, len(late.former)) == (PROFILE, 1)
    memory.edit(PROFILE, f"{memory.content(PROFILE)}- Ana knits.\n")

    undone = memory.unmerge(PROFILE)

    assert memory.texts(PROFILE) == [PORTO, "Ana knits."]
    assert memory.texts(undone.apart) == [LISBON]
    assert not memory.world.exists(late.former[0].uri)


# ---------------------------------------------------------------- what was superseded
def test_what_its_owner_wrote_into_what_was_superseded_comes_back(memory: Memory) -> None:
    memory.save(LISBON)
    former = memory.save(PORTO, day=20).former[0].uri
    memory.edit(former, "Ana lives in Lisbon, near the river.\n")

    memory.unmerge(PROFILE)

    assert memory.content(PROFILE) == "- Ana lives in Lisbon, near the river.\n"


def test_a_merge_is_undone_although_what_it_superseded_was_deleted(memory: Memory) -> None:
    memory.save(LISBON)
    memory.delete(memory.save(PORTO, day=20).former[0].uri)

    undone = memory.unmerge(PROFILE)

    assert memory.content(PROFILE) == f"- {LISBON}\n"
    assert undone.back == ()


def test_an_archived_session_stays_archived(memory: Memory) -> None:
    memory.save(LISBON)
    former = memory.save(PORTO, day=20).former[0].uri
    memory.world.nodes.archive_node(former, ANA)
    memory.save(NURSE, day=21)

    memory.unmerge(PROFILE, PORTO)

    assert memory.texts(PROFILE) == [NURSE]
    memory.world.nodes.unarchive_node(former, ANA)
    assert memory.texts(former) == [LISBON]


# ---------------------------------------------------------------- never again
def test_what_was_taken_apart_is_not_merged_again(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(PORTO, day=20)
    undone = memory.unmerge(PROFILE)
    before = memory.world.contents()

    same = memory.save(PORTO, day=20)
    later = memory.save(PORTO, day=21)

    assert (same.action, same.uri) == (WriteAction.SKIP, undone.apart)
    assert (later.action, later.uri) == (WriteAction.MERGE, undone.apart)
    assert memory.world.contents() == before
    assert statements.cid_of(PORTO) in separated_cids(memory.read(PROFILE))


def test_what_was_taken_apart_from_a_topic_is_not_merged_again(memory: Memory) -> None:
    memory.save(TABS, "preference", "tabs")
    memory.save(TABS_TOO, "preference", "tabs", 6)
    undone = memory.unmerge(TABS_PAGE)

    again = memory.save(TABS_TOO, "preference", "tabs", 7)
    first = memory.save(TABS, "preference", "tabs", 8)

    assert (again.uri, first.uri) == (undone.apart, TABS_PAGE)
    assert [each.session for each in memory.world.sayings(TABS)] == ["day 5", "day 8"]


def test_what_was_taken_apart_twice_is_there_once(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(LISBON, day=6)
    memory.unmerge(PROFILE)
    memory.save(LISBON, day=7)

    apart = memory.unmerge(PROFILE).apart

    assert memory.content(apart) == f"- {LISBON}\n"
    grounds = support_of(memory.read(apart))[statements.cid_of(LISBON)]
    assert [each.session for each in grounds.mentions] == ["day 6", "day 7"]


def test_an_edit_of_the_owner_is_not_overwritten(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(LISBON, day=6)
    undone = memory.unmerge(PROFILE)
    memory.edit(undone.apart, "Something else.\n")
    memory.save(LISBON, day=7)

    memory.unmerge(PROFILE)

    assert memory.content(undone.apart) == f"Something else.\n\n- {LISBON}\n"


# ---------------------------------------------------------------- refused
def test_the_first_statement_of_a_page_was_not_merged(memory: Memory) -> None:
    memory.save(LISBON)
    before = memory.state()

    for statement in ("", LISBON, "Ana flies."):
        with pytest.raises(InvalidValueError, match="Fix: "):
            memory.unmerge(PROFILE, statement)

    assert memory.state() == before


def test_what_its_owner_took_out_by_hand_can_not_be_taken_out(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(NURSE, day=6)
    memory.edit(PROFILE, f"- {LISBON}\n")
    before = memory.state()

    with pytest.raises(InvalidValueError, match="history restore"):
        memory.unmerge(PROFILE)

    assert memory.state() == before


def test_a_page_is_not_left_empty(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(NURSE, day=6)
    memory.edit(PROFILE, f"- {NURSE}\n")
    before = memory.state()

    with pytest.raises(InvalidValueError, match="would be empty"):
        memory.unmerge(PROFILE)

    assert memory.state() == before


def test_unmerging_onto_an_archived_node_is_refused(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(LISBON, day=6)
    memory.world.nodes.archive_node(memory.unmerge(PROFILE).apart, ANA)
    memory.save(LISBON, day=7)
    before = memory.state()

    with pytest.raises(ContextError, match="Fix: "):
        memory.unmerge(PROFILE)

    assert memory.state() == before


def test_nobody_undoes_the_merges_of_others(memory: Memory) -> None:
    memory.save(LISBON)
    memory.save(NURSE, day=6)
    before = memory.state()

    with pytest.raises(AccessDeniedError):
        memory.unmerge(PROFILE, ctx=RequestContext("acme", "bob"))

    assert memory.state() == before
