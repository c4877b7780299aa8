"""Any statements, in any order: each is stored once, and none is lost."""

import os
from itertools import permutations
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.engine.learn import statements
from perdure.engine.learn.evidence import STATEMENTS, support_of
from perdure.engine.learn.judge import Agreement, compare
from tests.engine.saving.sessions import (
    ANA,
    PROFILE,
    contents,
    nodes,
    open_home,
    remembering,
    user_messages,
)
from tests.tiers import searched

pytestmark = pytest.mark.search

UNRELATED = [
    user_messages("I live in Lisbon."),
    user_messages("I work as a nurse.", day="2026-01-06"),
    user_messages("I prefer tabs over spaces.", "My dog is called Rex.", day="2026-01-07"),
    user_messages("I went to Rome on 3 January 2026.", "I'm vegan.", day="2026-01-08"),
]
POOL = (
    "I live in Lisbon.",
    "I live in Porto.",
    "I prefer tabs over spaces.",
    "I prefer tabs over the spaces.",
    "I prefer spaces over tabs.",
    "I love coffee.",
    "I don't like coffee.",
    "My team uses Python 3.11.",
    "I work as a nurse.",
    "I went to Rome yesterday.",
    "To run the tests, use `make test`.",
    "Thanks!",
)

talks = st.lists(
    st.tuples(st.lists(st.sampled_from(POOL), min_size=1, max_size=4), st.integers(1, 28)),
    min_size=1,
    max_size=4,
)


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: nothing here takes away what was written."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


slow = settings(max_examples=searched(25), deadline=None, suppress_health_check=list(HealthCheck))


@slow
@given(talks=talks)
def test_committing_everything_again_changes_nothing(
    talks: list[tuple[list[str], int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with open_home(tmp_path_factory.mktemp("home")) as context:
        memory = context.memory.for_caller(ANA)
        for number, (texts, day) in enumerate(talks):
            memory.commit_session(
                user_messages(*texts, day=f"2026-02-{day:02}"), session_id=f"s{number}"
            )
        position, left = context.recorded.history.position(), contents(context)

        for number, (texts, day) in enumerate(talks):
            memory.commit_session(
                user_messages(*texts, day=f"2026-02-{day:02}"), session_id=f"s{number}"
            )

        assert context.recorded.history.position() == position
        assert contents(context) == left


@slow
@given(talks=talks)
def test_each_candidate_is_stored_once_with_its_evidence(
    talks: list[tuple[list[str], int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with open_home(tmp_path_factory.mktemp("home")) as context:
        memory = context.memory.for_caller(ANA)
        extracted: set[str] = set()
        for number, (texts, day) in enumerate(talks):
            done = memory.commit_session(
                user_messages(*texts, day=f"2026-02-{day:02}"), session_id=f"s{number}"
            )
            assert done.failed == 0
            extracted |= {each.candidate.content for each in done.plans}

        kept = nodes(context)
        stand = [
            (node, each) for node in kept.values() for each in statements.statements(node.content)
        ]
        worded = {
            saying.wording
            for node in kept.values()
            for grounds in support_of(node).values()
            for saying in grounds.mentions
        }
        assert {each.text for _, each in stand} <= extracted
        assert all(each.cid in support_of(node) for node, each in stand)
        skipped = {each.text for _, each in stand} | worded
        assert all(content in skipped or _is_reworded(content, skipped) for content in extracted)


def _is_reworded(content: str, kept: set[str]) -> bool:
    """Whether it was stated in a session that stated the same in other words."""
    return any(compare(each, content).agreement is Agreement.SAME for each in kept if each)


def test_what_has_nothing_to_do_with_each_other_may_come_in_any_order(tmp_path: Path) -> None:
    left = []
    for number, order in enumerate(permutations(enumerate(UNRELATED))):
        with open_home(tmp_path / str(number)) as context:
            memory = context.memory.for_caller(ANA)
            for session, talk in order:
                memory.commit_session(talk, session_id=f"s{session}")
            left.append(
                {
                    uri: (node.content, node.metadata.get(STATEMENTS), node.metadata.get("date"))
                    for uri, node in nodes(context).items()
                }
            )

    assert all(each == left[0] for each in left)
    assert len(left) == 24


# ---------------------------------------------------------------- several at once
def _commit(home: Path, session: str, texts: list[str]) -> None:
    with remembering(home) as memory:
        memory.commit_session(user_messages(*texts), session_id=session)


FACTS = [
    ["I live in Lisbon.", "I love coffee."],
    ["I work as a nurse.", "I love coffee."],
    ["I'm vegan.", "I prefer tabs over spaces."],
    ["I speak Portuguese.", "I prefer tabs over spaces."],
]


@pytest.mark.parametrize("same", [False, True], ids=["different sessions", "the same session"])
def test_processes_that_save_at_once_lose_nothing(tmp_path: Path, *, same: bool) -> None:
    with remembering(tmp_path) as memory:
        memory.save("nothing", category="entity", slug="first")
    work = [(f"s{number}", texts) for number, texts in enumerate(FACTS)]
    if same:
        work = [("s", [text for texts in FACTS for text in texts])] * len(FACTS)
    started = [
        get_context("spawn").Process(target=_commit, args=(tmp_path, *each)) for each in work
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0] * len(started)

    with open_home(tmp_path) as context:
        memory = context.memory.for_caller(ANA)
        stands = [each.text for each in statements.statements(memory.read(PROFILE).content)]
        assert sorted(stands) == [
            "Ana is vegan.",
            "Ana lives in Lisbon.",
            "Ana speaks Portuguese.",
            "Ana works as a nurse.",
        ]
        assert len([uri for uri in contents(context) if "/preference/" in uri]) == 2
