"""What no longer holds leaves its page, whole, with its proof and its time."""

from itertools import pairwise, permutations

import pytest

from perdure.engine.learn.evidence import support_of
from perdure.engine.learn.statements import cid_of
from perdure.model import SUPERSEDED_BY, WriteAction
from tests.engine.learn.remembered import PROFILE, Memory

LISBON, PORTO, BERLIN = (
    "Ana lives in Lisbon.",
    "Ana now lives in Porto.",
    "Ana now lives in Berlin.",
)


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_it_keeps_its_proof_and_says_until_when_it_held(memory: Memory) -> None:
    memory.save(LISBON, day=5)

    (former,) = memory.save(PORTO, day=9).former

    kept = memory.read(former.uri)
    assert kept.metadata["valid_until"] == "2026-01-09T10:00:00+00:00"
    assert [each.session for each in support_of(kept)[cid_of(LISBON)].mentions] == ["day 5"]
    (edge,) = kept.relations
    assert (edge.from_uri, edge.to_uri, edge.relation_type) == (kept.uri, PROFILE, SUPERSEDED_BY)
    assert edge.reason == f"On 2026-01-09: {PORTO}"
    assert cid_of(LISBON) not in support_of(memory.read(PROFILE))


def test_what_held_in_between_says_from_when_to_when(memory: Memory) -> None:
    for text, day in ((LISBON, 5), (PORTO, 9)):
        memory.save(text, day=day)

    (former,) = memory.save(BERLIN, day=20).former

    assert memory.read(former.uri).metadata["valid_from"] == "2026-01-09"
    assert memory.content(PROFILE) == f"- {BERLIN} (since 2026-01-20)\n"


def test_any_order_of_statements_gives_the_same_present_and_past() -> None:
    lives = ((LISBON, 5), (PORTO, 9), ("Ana now lives in Rome.", 14), (BERLIN, 20))
    for order in permutations(lives):
        memory = Memory()
        for text, day in order:
            memory.save(text, day=day)

        assert memory.texts(PROFILE) == [BERLIN]
        formers = [node for node in memory.world.all().values() if node.category == "former"]
        held = {node.content.strip(): node for node in formers}
        assert held.keys() == {text for text, _ in lives[:-1]}
        for (text, _), (after, until) in pairwise(lives):
            assert str(held[text].metadata["valid_until"])[:10] == f"2026-01-{until:02}"
            assert held[text].relations[0].reason == f"On 2026-01-{until:02}: {after}"


def test_a_late_statement_twice_is_stored_once(memory: Memory) -> None:
    memory.save(PORTO, day=9)
    memory.save(LISBON, day=5)
    before = memory.world.contents()

    same = memory.save(LISBON, day=5)
    later = memory.save(LISBON, day=6)

    assert (same.action, later.action) == (WriteAction.SKIP, WriteAction.MERGE)
    assert memory.world.contents() == before


def test_several_statements_are_superseded_by_one(memory: Memory) -> None:
    memory.save("Ana knits.", day=4)
    memory.edit(PROFILE, f"- {LISBON}\n- Ana knits.\n- {BERLIN}\n")

    plan = memory.save(PORTO, day=28)

    # a text by hand has the time at which it was written, which is later than the candidate
    assert memory.world.statements() == sorted(["Ana knits.", LISBON, BERLIN, PORTO])
    assert plan.reason


def test_a_statement_that_stands_twice_is_superseded_once(memory: Memory) -> None:
    memory.save(LISBON, day=5)
    memory.edit(PROFILE, f"- {LISBON}\n- Ana knits.\n- {LISBON}\n")

    plan = memory.save(PORTO, day=9)

    assert memory.texts(PROFILE) == [PORTO, "Ana knits."]
    (former,) = plan.former
    assert memory.texts(former.uri) == [LISBON]
    memory.unmerge(PROFILE)
    assert memory.content(PROFILE) == f"- {LISBON}\n- Ana knits.\n- {LISBON}\n"


def test_a_paragraph_is_superseded_by_an_item(memory: Memory) -> None:
    memory.save(LISBON, day=5)
    memory.edit(PROFILE, f"# Ana\n\n{LISBON}\n\n- Ana knits.\n")

    memory.save(PORTO, day=9)

    assert memory.content(PROFILE) == f"# Ana\n\n- {PORTO} (since 2026-01-09)\n\n- Ana knits.\n"


def test_a_later_edit_by_the_owner_holds(memory: Memory) -> None:
    memory.save("Ana knits.", day=4)
    memory.edit(PROFILE, f"- {BERLIN}\n")

    memory.save(PORTO, day=9)

    assert memory.texts(PROFILE) == [BERLIN]
    assert PORTO in memory.world.statements()
