"""Hits that hold come first; others come after what superseded them, and are never hidden."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.context.reader import NodeReader, StoredNode
from perdure.engine.recall.question import parse_question
from perdure.engine.recall.score import RetrievalConfig
from perdure.model import RelationEdge, RequestContext
from tests.engine.remembering import ADMIN, ANA, BOB, of, opened, save_all
from tests.engine.superseding import HOME, MEMORIES, former, found, moved_to_porto

PORTO, LISBON = "Ana lives in Porto", "Ana lives in Lisbon"
NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture(params=["semantic", "lexical"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=request.param == "semantic") as context:
        yield context


# ---------------------------------------------------------------- the order
@pytest.mark.parametrize("question", ["Does Ana live in Lisbon?", "Lisbon", "Where does Ana live?"])
def test_what_superseded_a_statement_comes_before_it(context: Context, question: str) -> None:
    moved_to_porto(context)

    assert found(context, question) == [PORTO, LISBON]
    assert found(context, question, top_k=1) == [PORTO]


def test_what_superseded_it_has_the_place_that_it_would_have_had(context: Context) -> None:
    moved_to_porto(context)
    of(context).save("Lisbon is large.", category="event", slug="large")

    assert found(context, "Does Ana live in Lisbon?") == [PORTO, LISBON, "Lisbon is large"]


def test_scores_fall_and_are_the_sum_of_their_terms(context: Context) -> None:
    moved_to_porto(context)
    save_all(of(context))

    hits = of(context).recall("Does Ana live in Lisbon and drink coffee?").hits

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score == pytest.approx(sum(hit.score_terms.values())) for hit in hits)


def test_a_chain_is_followed_to_its_end(context: Context) -> None:
    of(context).save("Ana lives in Porto.", category="preference", slug="home")
    braga = former(context, "Ana lives in Braga.", HOME)
    faro = former(context, "Ana resides at Faro.", braga, valid=("", "2025-01-01"))
    former(context, "Home was Lisbon.", faro, valid=("", "2024-01-01"))

    chain = [PORTO, "Ana lives in Braga", "Ana resides at Faro", "Home was Lisbon"]

    assert found(context, "Lisbon") == chain


def test_a_circle_ends(context: Context) -> None:
    lisbon = former(context, "Ana lives in Lisbon.")
    porto = former(context, "Ana lives in Porto.", lisbon)
    context.relations.upsert_edges(
        [RelationEdge(lisbon, porto, "superseded_by")], of(context).caller
    )

    assert sorted(found(context, "Lisbon")) == [LISBON, PORTO]


def test_what_is_gone_is_left_out(context: Context) -> None:
    moved_to_porto(context)
    context.nodes.archive_node(HOME, of(context).caller)

    assert found(context, "Lisbon") == [LISBON]


def test_former_statements_do_not_crowd_out_what_holds(context: Context) -> None:
    memory = of(context)
    memory.save("Ana drinks tea.", category="preference", slug="drink")
    memory.save("Somebody once spilled coffee.", category="event", slug="spilled")
    for kind in ("black", "white", "iced", "strong", "weak", "cold", "hot", "sweet", "sour"):
        former(context, f"Ana drinks {kind} coffee.", f"{MEMORIES}/preference/drink")

    first = found(context, "Does Ana drink coffee?", top_k=4)

    assert first[0] == "Ana drinks tea"
    assert "Somebody once spilled coffee" in first
    assert len(found(context, "Does Ana drink coffee?", top_k=20)) == 11


def test_of_a_long_page_the_superseding_passage_is_returned(context: Context) -> None:
    sections = [f"## Part {number}\n\nNothing of note, {number}.\n\n" for number in range(5)]
    page = "".join(sections) + "## Home\n\nAna lives in Porto.\n"
    of(context).save(page, category="profile")
    former(context, "Ana lives in Lisbon.", f"{MEMORIES}/profile")

    assert found(context, "Lisbon", top_k=1) == [PORTO]


def test_what_does_not_hold_yet_comes_later(context: Context) -> None:
    memory = of(context)
    validity = {"valid_from": "2999-01-01"}
    memory.save("The office is in Basel.", category="event", slug="basel", metadata=validity)
    memory.save("The office is in Bern.", category="event", slug="bern")

    bern, basel = memory.recall("Where is the office, in Basel?").hits

    assert (bern.holds, basel.holds) == (True, False)
    assert basel.uri.endswith("basel")


def test_a_message_holds_even_if_its_clock_was_ahead(context: Context) -> None:
    messages = [{"role": "user", "content": "Zebras are fine.", "time": "2999-01-01T10:00:00Z"}]
    of(context).commit_session(messages, session_id="s", extract=False)

    node = of(context).read("ctx://local/sessions/s/messages")
    metadata = {**node.metadata, "valid_from": "2999-01-01"}
    context.nodes.write_node(replace(node, version=node.version + 1, metadata=metadata), ANA)

    (hit,) = of(context).recall("zebras").hits

    assert hit.holds
    assert "validity" not in hit.score_terms


def test_memories_without_intervals_cost_no_more_reads(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, read = of(context), list[str]()
    for number in range(8):
        memory.save(f"Coffee number {number}.", category="event", slug=f"n{number}")
    visible = NodeReader.visible_nodes

    def noted(
        self: NodeReader, uris: Sequence[str], ctx: RequestContext
    ) -> dict[str, StoredNode | None]:
        read.extend(uris)
        return visible(self, uris, ctx)

    monkeypatch.setattr(NodeReader, "visible_nodes", noted)

    hits = memory.recall("coffee", top_k=3).hits

    assert read[:3] == [hit.uri for hit in hits]
    assert len(read) == len(set(read)) == RetrievalConfig().related


# ---------------------------------------------------------------- questions about other times
@pytest.mark.parametrize(
    "question",
    [
        "Where did Ana live before?",
        "Where did Ana use to live?",
        "Ana used to live where?",
        "Where did Ana live formerly?",
        "Where did Ana live previously?",
        "Where did Ana live back then?",
        "Where did Ana live in 2025?",
        "Where did Ana live in February 2026?",
        "Where did Ana live before March 2026?",
    ],
)
def test_who_asks_for_what_was_finds_it_first(context: Context, question: str) -> None:
    moved_to_porto(context)
    save_all(of(context))

    assert found(context, question)[:2] == [LISBON, PORTO]
    assert found(context, question, top_k=1) == [LISBON]


def test_a_period_when_it_did_not_hold_either_changes_nothing(context: Context) -> None:
    moved_to_porto(context)

    assert found(context, "Where did Ana live in 2020?") == [PORTO, LISBON]


def test_a_period_that_is_not_over_asks_for_what_holds(context: Context) -> None:
    of(context).save("Ana lives in Porto.", category="preference", slug="home")
    former(context, "Ana lives in Lisbon.", HOME, valid=("", datetime.now(UTC).isoformat()))

    assert found(context, "Does Ana live in Lisbon today?") == [PORTO, LISBON]
    assert found(context, "Does Ana live in Lisbon this year?") == [PORTO, LISBON]


@pytest.mark.parametrize(
    ("question", "past"),
    [
        ("What is used to format code?", False),
        ("Which tools are used to it?", False),
        ("Do I get used to it?", False),
        ("How old is Ana?", False),
        ("What must I do before the release?", False),
        ("Where does Ana live?", False),
        ("What did Ana use to drink?", True),
        ("What was Ana's old address?", True),
        ("Has Ana ever lived in Lisbon?", True),
        ("Where did Ana live before the move?", True),
        ("What does she no longer eat?", True),
    ],
)
def test_a_question_says_whether_it_asks_for_what_was(question: str, *, past: bool) -> None:
    assert parse_question(question, NOW).asks_for_past is past


def test_with_a_valid_time_the_filter_decides_alone(context: Context) -> None:
    moved_to_porto(context)

    (then,) = of(context).recall("Does Ana live in Lisbon?", valid_at="2025-01-01").hits
    (now,) = of(context).recall("Does Ana live in Porto?", valid_at="2026-06-01").hits

    assert (then.snippet, now.snippet) == (f"{LISBON}.", f"{PORTO}.")
    assert then.holds
    assert "validity" not in then.score_terms


def test_filters_decide_what_may_come_with_it(context: Context) -> None:
    moved_to_porto(context)

    assert found(context, "Lisbon", filters={"category": "former"}) == [LISBON]


# ---------------------------------------------------------------- results
def test_a_hit_says_when_it_holds(context: Context) -> None:
    lisbon = moved_to_porto(context)

    now, then = of(context).recall("Does Ana live in Lisbon?", budget_tokens=500).hits

    assert (now.valid_from, now.valid_until) == (datetime(2026, 3, 2, tzinfo=UTC), None)
    assert (then.uri, then.holds) == (lisbon, False)
    assert then.valid_until == datetime(2026, 3, 2, tzinfo=UTC)
    assert now.about.endswith(" · since 2026-03-02")
    assert then.about.endswith(" · from 2024-05-01 until 2026-03-02")


def test_a_prompt_says_until_when_it_held(context: Context) -> None:
    moved_to_porto(context)

    text = of(context).recall("Does Ana live in Lisbon?", budget_tokens=500).context

    assert text.index("since 2026-03-02") < text.index(PORTO) < text.index(LISBON)
    assert "until 2026-03-02\nAna lives in Lisbon." in text


def test_the_trace_says_what_does_not_hold(context: Context) -> None:
    moved_to_porto(context)

    steps = {step.name: step.text for step in of(context).recall("Lisbon").trace}

    assert steps["validity"] == "1 that do not hold now, 1 demoted"
    assert "validity" not in {step.name for step in of(context).recall("soup").trace}


# ---------------------------------------------------------------- others, and the past
def test_an_edge_to_another_users_node_is_ignored(context: Context) -> None:
    of(context).save("Ana lives in Porto.", category="preference", slug="home")
    lisbon = former(context, "Somebody lives in Lisbon.", who=BOB)
    context.relations.upsert_edges([RelationEdge(lisbon, HOME, "superseded_by")], ADMIN)

    assert [hit.uri for hit in of(context, BOB).recall("Lisbon").hits] == [lisbon]
    assert [hit.uri for hit in of(context, ADMIN).recall("Lisbon").hits] == [HOME, lisbon]


def test_at_a_moment_holds_what_held_then(context: Context) -> None:
    memory = of(context)
    memory.save("Ana lives in Lisbon.", category="preference", slug="home")
    before = IndexState(0, context.recorded.history.position())
    memory.save("Ana lives in Porto.", category="preference", slug="home")
    soon = datetime.now(UTC) + timedelta(days=1)
    former(context, "Ana lives in Lisbon.", HOME, valid=("", datetime.now(UTC).isoformat()))
    after = IndexState(0, context.recorded.history.position())
    tea = {"valid_until": soon.isoformat()}
    memory.save("Tea is served.", category="event", slug="tea", metadata=tea)

    assert found(context, "Lisbon", at=before) == [LISBON]
    assert found(context, "Lisbon", at=after) == found(context, "Lisbon") == [PORTO, LISBON]
    assert memory.recall("tea").hits[0].holds
