"""All memories can be again what they were at a moment: in one commit, and nothing is lost."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine.memory import Memory
from perdure.engine.restore import RewindOutcome
from perdure.errors import AccessDeniedError, NodeNotFoundError
from perdure.model import RelationEdge, RequestContext
from perdure.testing.suite import examples
from tests.engine.remembering import ANA, BOB, of, opened

pytestmark = pytest.mark.usefixtures("agfs")

MEMORIES = "ctx://local/users/ana/memories"
TEA, VIM, JUNK = f"{MEMORIES}/taste/tea", f"{MEMORIES}/habit/vim", f"{MEMORIES}/habit/junk"
SAID = {"role": "user", "name": "Ana", "content": "I live in Berlin.", "time": "2026-03-02"}
PROFILE = f"{MEMORIES}/profile"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        of(context).save("No milk.", category="taste", slug="tea")
        of(context).save("Uses vim.", category="habit", slug="vim")
        yield context


def now(context: Context) -> IndexState:
    return IndexState(0, context.recorded.history.position())


def bad_day(context: Context) -> IndexState:
    """Let a memory change, one go, and one come; return the moment before."""
    then = now(context)
    of(context).save("Much milk.", category="taste", slug="tea")
    context.nodes.delete_node(VIM, ANA)
    of(context).save("Nonsense.", category="habit", slug="junk")
    return then


def texts_of(memory: Memory, *uris: str) -> list[str | None]:
    return [_content(memory, uri) for uri in uris]


def _content(memory: Memory, uri: str) -> str | None:
    try:
        return memory.read(uri).content
    except NodeNotFoundError:
        return None


def test_what_changed_is_as_it_was_what_went_is_back_and_what_came_is_gone(
    context: Context,
) -> None:
    memory = of(context)
    then = bad_day(context)

    done = memory.rewind(then)

    assert texts_of(memory, TEA, VIM, JUNK) == ["No milk.", "Uses vim.", None]
    assert {each.uri: each.outcome for each in done.steps} == {
        TEA: RewindOutcome.RESTORED,
        VIM: RewindOutcome.BACK,
        JUNK: RewindOutcome.REMOVED,
    }
    assert {hit.uri for hit in memory.recall("milk vim nonsense").hits} == {TEA, VIM}
    assert memory.recall("milk").index_lag == 0


def test_it_is_one_commit_and_can_be_rewound_itself(context: Context) -> None:
    memory = of(context)
    then = bad_day(context)
    before = now(context)
    memory.rewind(then)
    commits = {each.commit for each in context.recorded.history.changes(before.position)}

    memory.rewind(before)

    assert len(commits) == 1
    assert texts_of(memory, TEA, VIM, JUNK) == ["Much milk.", None, "Nonsense."]


def test_a_dry_run_and_a_second_one_change_nothing(context: Context) -> None:
    memory = of(context)
    then = bad_day(context)
    before = now(context)

    planned = memory.rewind(then, dry_run=True)
    assert now(context) == before
    assert memory.rewind(then) == planned
    after = now(context)

    assert memory.rewind(then).steps == ()
    assert now(context) == after


def test_sessions_stay_and_learned_memories_are_rewound(context: Context) -> None:
    memory = of(context)
    then = now(context)
    memory.commit_session([SAID], session_id="march")

    done = memory.rewind(then)

    assert done.of(RewindOutcome.REMOVED) == (PROFILE,)
    assert "Berlin" in memory.read("ctx://local/sessions/march/messages").content
    assert memory.commit_session([SAID], session_id="march").extracted == 0
    assert memory.commit_session([SAID], session_id="march", again=True).created == 1


def test_a_contradiction_is_undone_with_what_it_superseded(context: Context) -> None:
    memory = of(context)
    memory.commit_session([SAID], session_id="march")
    then = now(context)
    moved = SAID | {"content": "I live in Lisbon.", "time": "2026-05-02"}
    memory.commit_session([moved], session_id="may")

    memory.rewind(then)

    assert memory.read(PROFILE).content == "- Ana lives in Berlin.\n"
    assert memory.why(PROFILE).superseded == ()


def test_only_the_folder_is_rewound(context: Context) -> None:
    memory = of(context)
    then = bad_day(context)

    memory.rewind(then, f"{MEMORIES}/taste")

    assert texts_of(memory, TEA, VIM, JUNK) == ["No milk.", None, "Nonsense."]


def test_what_its_owner_archived_stays_archived_and_is_reported(context: Context) -> None:
    memory = of(context)
    then = now(context)
    context.nodes.archive_node(TEA, ANA)
    memory.save("Junk.", category="habit", slug="junk")
    context.nodes.archive_node(JUNK, ANA)

    (step,) = memory.rewind(then).steps

    assert (step.uri, step.outcome, "unarchive" in step.reason) == (TEA, RewindOutcome.LEFT, True)
    with pytest.raises(NodeNotFoundError):
        memory.read(TEA)


def test_broken_files_stay_and_are_reported(context: Context, tmp_path: Path) -> None:
    then = bad_day(context)
    folder = tmp_path / ".perdure" / "memory" / "accounts" / "local"
    (folder / "users" / "ana" / "memories" / "taste" / "tea" / ".meta.json").write_text("{")

    done = of(context).rewind(then)

    assert done.of(RewindOutcome.LEFT) == (TEA,)
    assert texts_of(of(context), VIM) == ["Uses vim."]


def test_a_caller_can_not_rewind_nodes_of_others(context: Context) -> None:
    of(context, BOB).save("Bob's.", category="habit", slug="bob")
    then = bad_day(context)
    of(context, BOB).save("Bob's own.", category="habit", slug="bob")
    elsewhere = RequestContext("other", "ana")

    assert of(context, BOB).rewind(then).steps[0].uri.startswith("ctx://local/users/bob/")
    for request in (BOB, elsewhere):
        with pytest.raises(AccessDeniedError):
            of(context, request).rewind(then, MEMORIES)
    assert of(context, elsewhere).rewind(then).steps == ()
    whole = of(context, BOB).rewind(then, "ctx://local/users", dry_run=True)
    assert whole.steps == ()
    assert texts_of(of(context), TEA, JUNK) == ["Much milk.", "Nonsense."]


def test_edges_of_then_are_back(context: Context) -> None:
    node = of(context).read(TEA)
    edge = RelationEdge(TEA, VIM, "goes_with")
    context.nodes.write_node(replace(node.revised(), relations=(edge,)), ANA)
    then = now(context)
    context.nodes.delete_node(VIM, ANA)

    of(context).rewind(then)

    assert [each.to_uri for each in of(context).read(TEA).relations] == [VIM]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["one", "two", None])), max_size=8
)


@settings(max_examples=examples(25), deadline=None)
@given(before=STEPS, after=STEPS)
def test_whatever_happened_memory_is_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, str | None]],
    after: list[tuple[str, str | None]],
) -> None:
    with opened(tmp_path_factory.mktemp("rewound"), semantic=False) as context:
        memory = of(context)
        uris = [f"{MEMORIES}/habit/{name}" for name in "abc"]

        def do(steps: list[tuple[str, str | None]]) -> None:
            for name, text in steps:
                uri = f"{MEMORIES}/habit/{name}"
                if text is not None:
                    memory.save(text, category="habit", slug=name)
                elif _content(memory, uri) is not None:
                    context.nodes.delete_node(uri, ANA)

        do(before)
        was, then = texts_of(memory, *uris), now(context)
        do(after)
        memory.rewind(then)

        assert texts_of(memory, *uris) == was
