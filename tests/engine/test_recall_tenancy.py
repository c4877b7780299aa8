"""Recall returns nothing out of a caller's reach, and everything within it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.errors import AccessDeniedError, InvalidValueError
from perdure.model import ContextNode
from tests.engine.recall_tenants import ASKING, STEPS, Moody, Step, World, attack, check, do
from tests.engine.remembering import ADMIN, ANA, BOB, EVE, of, opened, save_all, uris
from tests.tiers import searched

pytestmark = pytest.mark.usefixtures("agfs")

USUAL = ("write",) * 8 + ("say", "relate") * 3 + ("edit",) * 4 + ("archive", "move") * 2
STEP = st.tuples(
    st.sampled_from((*USUAL, *STEPS)),
    st.sampled_from(("acme", "acme", "acme", "other")),
    st.sampled_from(("user:ana", "user:bob", "user:ana", "user:bob", "agent:helper", "account")),
    st.integers(0, 20),
)
BEGINNING: tuple[Step, ...] = (
    ("write", "acme", "user:ana", 1),
    ("write", "acme", "user:bob", 3),
    ("write", "acme", "user:bob", 1),
    ("write", "acme", "account", 1),
    ("say", "acme", "user:ana", 0),
    ("relate", "acme", "user:ana", 0),
    ("write", "other", "user:ana", 3),
)


@contextmanager
def a_world(*, semantic: bool) -> Iterator[World]:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with opened(home, embedder=Moody(), semantic=semantic) as context:
            yield World(context, home)


# ---------------------------------------------------------------- the property
@pytest.mark.search
@settings(max_examples=searched(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEP, min_size=3, max_size=9),
    picks=st.lists(st.integers(0, 1_000), min_size=9, max_size=9),
    semantic=st.booleans(),
)
@example(
    steps=[("edit", "acme", "user:bob", 1), ("forget", "acme", "user:ana", 0)],
    picks=[0] * 9,
    semantic=True,
)
@example(
    steps=[("move", "acme", "user:bob", 0), ("archive", "acme", "account", 0)],
    picks=[5] * 9,
    semantic=False,
)
@example(
    steps=[
        ("write", "acme", "user:ana", 0),
        ("edit", "acme", "user:bob", 0),
        ("move", "acme", "user:bob", 0),
    ],
    picks=[0] * 9,
    semantic=False,
)
def test_whatever_happens_everybody_finds_what_is_theirs_and_nothing_else(
    steps: list[Step],
    picks: list[int],
    semantic: bool,  # noqa: FBT001 - drawn
) -> None:
    with a_world(semantic=semantic) as world:
        for step in BEGINNING:
            do(world, step)
        for step, pick in zip(steps, picks, strict=False):
            do(world, step)
            for who in ASKING:
                check(world, who, world.nodes, None)
            who = ASKING[pick % len(ASKING)]
            attack(world, who, pick)
            state, then = world.past[pick % len(world.past)]
            check(world, who, then, state)


# ---------------------------------------------------------------- examples
BUSY_DAY: tuple[Step, ...] = (
    *BEGINNING,
    ("say", "acme", "user:bob", 1),
    ("edit", "acme", "user:bob", 1),
    ("write", "acme", "agent:helper", 6),
    ("relate", "acme", "user:bob", 3),
    ("move", "acme", "user:bob", 4),
    ("archive", "acme", "user:ana", 0),
    ("forget", "acme", "user:bob", 0),
)


@pytest.mark.parametrize("semantic", [True, False])
def test_on_a_busy_day_everybody_finds_what_is_theirs(*, semantic: bool) -> None:
    with a_world(semantic=semantic) as world:
        for number, step in enumerate(BUSY_DAY):
            do(world, step)
            for who in ASKING:
                check(world, who, world.nodes, None)
            attack(world, ASKING[number % len(ASKING)], number)
        for number, (state, then) in enumerate(world.past[::3]):
            check(world, ASKING[number % len(ASKING)], then, state)


@pytest.fixture(params=["semantic", "lexical"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, embedder=Moody(), semantic=request.param == "semantic") as context:
        save_all(of(context))
        yield context


TABS = "ctx://local/users/ana/memories/preference/indentation"


@pytest.mark.parametrize(
    "filters",
    [
        {"uri": TABS},
        {"uri": [TABS, "ctx://local/users/bob/memories/preference/soup"]},
        {"context_type": "MEMORY"},
        {"session_id": "s1"},
        {"category": "preference"},
    ],
)
def test_no_filter_reaches_farther_than_its_caller(
    context: Context, filters: dict[str, object]
) -> None:
    of(context).commit_session(
        [{"role": "user", "content": "tabs"}], session_id="s1", extract=False
    )

    for who in (BOB, EVE, replace(BOB, session_id="s1")):
        result = of(context, who).recall("tabs coffee", filters=filters)  # type: ignore[arg-type]

        assert (result.hits, result.stale, result.index_lag) == ((), frozenset(), 0)
        assert "indentation" not in str(result)


@pytest.mark.parametrize("name", ["account_id", "owner_space"])
def test_nobody_says_whose_memory_is_searched(context: Context, name: str) -> None:
    with pytest.raises(InvalidValueError, match="a filter can't choose") as refused:
        of(context, BOB).recall("tabs", filters={name: "user:ana"})

    assert "ana" not in str(refused.value)


def test_a_relation_does_not_lead_out_of_reach(context: Context) -> None:
    of(context, BOB).save(f"Bob knows tabs: [[{TABS}]]", category="event", slug="soup")

    assert uris(of(context, BOB), "bob knows") == ["ctx://local/users/bob/memories/event/soup"]
    assert TABS in uris(of(context, ADMIN), "bob knows")


def test_a_session_that_changed_its_owner_is_only_the_new_owners(context: Context) -> None:
    messages = [{"role": "user", "content": "The zebra is mine."}]
    of(context, BOB).commit_session(messages, session_id="s1", extract=False)
    then = IndexState(0, context.recorded.history.position())
    context.namespaces.delete_user("local", "bob", context.request)
    messages[0]["content"] = "The giraffe is mine."
    of(context).commit_session(messages, session_id="s1", extract=False)

    found = of(context).recall("zebra giraffe").hits
    assert {hit.snippet for hit in found if hit.session_id} == {"The giraffe is mine."}
    assert uris(of(context, BOB), "zebra giraffe mine") == []
    assert of(context).recall("zebra", at=then).hits == ()


def test_what_was_somebodys_before_a_move_is_not_theirs_now(context: Context) -> None:
    then = IndexState(0, context.recorded.history.position())
    target = "ctx://local/users/bob/memories/preference/taken"
    context.nodes.move_node(TABS, target, ADMIN)

    assert TABS not in uris(of(context), "tabs spaces")
    assert uris(of(context, BOB), "tabs spaces") == [target]
    assert of(context, BOB).recall("tabs", at=then).hits == ()
    assert of(context).recall("tabs", at=then).hits[0].uri == TABS


def test_a_refusal_to_read_tells_nothing(context: Context) -> None:
    refusals = []
    for uri in (TABS, TABS.replace("indentation", "nothing-here")):
        with pytest.raises(AccessDeniedError) as refused:
            of(context, BOB).read(uri)
        refusals.append(str(refused.value).replace(uri, "it"))

    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    "heading", [f"## {'A' * 500} (user) ^m0", "## Ana (user), 0001-01-01T00:00:00+14:00 ^m0"]
)
def test_an_odd_text_of_another_user_does_not_stop_recall(context: Context, heading: str) -> None:
    inside = replace(BOB, session_id="s1")
    odd = ContextNode(uri="ctx://local/sessions/s1/notes", content=f"{heading}\n\nhi\n")
    context.nodes.write_node(replace(odd, owner_space="user:bob"), inside)

    for _ in range(2):
        result = of(context).recall("tabs")
        assert (result.hits[0].uri, result.index_lag) == (TABS, 0)
    assert uris(of(context, BOB), "hi") == [odd.uri]


def test_a_poisoned_text_of_another_user_does_not_hold_up_recall(tmp_path: Path) -> None:
    with opened(tmp_path, embedder=Moody()) as context:
        save_all(of(context))
        aaron = replace(BOB, user_id="aaron")
        for who in (aaron, ANA):
            for category in ("event", "preference"):
                for slug in ("one", "two"):
                    bad = "poison " if (who, slug) == (aaron, "one") else ""
                    uri = f"ctx://local/users/{who.user_id}/memories/{category}/{slug}"
                    node = ContextNode(uri=uri, content=f"{bad}{slug}", abstract=f"{bad}{slug}")
                    context.nodes.write_node(node, who)

        assert of(context).recall("two").index_lag == 0
        assert of(context, aaron).recall("two").index_lag == 2
