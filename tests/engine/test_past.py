"""Recall as of a moment equals recall on a fresh memory built to that moment."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perdure
from perdure import Memory
from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine import upkeep
from perdure.engine.briefing import Briefing, ProjectScope
from perdure.engine.past import RETAINED
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.storage import Locator, walk
from perdure.storage.text_history import View
from tests.engine.histories import STEPS, Step, answers, done
from tests.engine.remembering import ANA, BOB, of, opened, save_all
from tests.tiers import searched


def copied(context: Context, state: IndexState, home: Path) -> None:
    """Build a memory with the texts of a state, and nothing else."""
    view = View(context.recorded.history, state)
    for folder in ("accounts",):
        for locator in _every(view, Locator(folder)):
            file = home / ".perdure" / "memory" / locator.key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(view.read(locator).encode())


def _every(view: View, folder: Locator) -> list[Locator]:
    found = []
    for child in view.list(folder):
        found += _every(view, child) if view.info(child).is_dir else [child]
    return found


@pytest.mark.search
@settings(max_examples=searched(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=3, max_size=10), st.data(), st.booleans())
def test_recall_as_of_a_state_is_recall_on_a_memory_built_to_it(
    steps: list[Step],
    data: st.DataObject,
    semantic: bool,  # noqa: FBT001 - drawn
) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder), semantic=semantic) as context:
        states = done(steps, context)
        if not states:
            return
        state = data.draw(st.sampled_from(states))
        then = answers(lambda q, who: of(context, who).recall(q, at=state).hits)
        with TemporaryDirectory() as other:
            copied(context, state, Path(other))
            with opened(Path(other), semantic=semantic) as fresh:
                built = answers(lambda q, who: of(fresh, who).recall(q).hits)

    assert then == built


@pytest.mark.search
@settings(max_examples=searched(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=3, max_size=10), st.data())
def test_a_briefing_as_of_a_state_is_that_of_a_memory_built_to_it(
    steps: list[Step], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder), semantic=False) as context:
        states = done(steps, context)
        if not states:
            return
        state = data.draw(st.sampled_from(states))
        then = [of(context, who).briefing(budget_tokens=2_000, at=state) for who in (ANA, BOB)]
        with TemporaryDirectory() as other:
            copied(context, state, Path(other))
            with opened(Path(other), semantic=False) as fresh:
                moment = of(context).at(state)._past._time
                built = [briefed(of(fresh, who), moment) for who in (ANA, BOB)]

    assert then == built


def briefed(memory: Memory, now: datetime) -> Briefing:
    """Return the briefing of a memory as if it was then."""
    services, account = memory._services, memory.caller.account_id
    memory.recall("anything")
    index, names = services.indexes.current(account).follower.index, memory._names(memory.project)
    scope = ProjectScope(services.reader, index, memory.caller, names)
    return scope.briefing(budget_tokens=2_000, now=now)


def test_a_briefing_as_of_a_state_knows_nothing_that_came_later(tmp_path: Path) -> None:
    with perdure.open(home=tmp_path, user="ana", project="harbour") as memory:
        memory.remember("Never deploy on Fridays.", kind="rule")
        talk = [{"role": "user", "content": "Always run the linter before you push."}]
        memory.commit_session(talk, session_id="s", extract=False)
        before, then = memory.briefing(), memory.position
        memory.forget(memory.remember("Always sign commits with a key.", kind="rule").uri)
        memory.remember("Releases are cut from main.", kind="decision")
        memory.projects.rename("harbour", "port")

        assert "Releases" in memory.briefing().text
        assert memory.briefing(at=then) == memory.at(then).briefing()
        assert memory.briefing(at=then).text == before.text
        assert [item.kind for item in before.items] == ["rule", "rule"]


def test_a_briefing_of_the_past_hides_what_was_forgotten_since(tmp_path: Path) -> None:
    with perdure.open(home=tmp_path, user="ana", project="harbour") as memory:
        rule = memory.remember("Never deploy on Fridays.", kind="rule").uri
        memory.remember("Always run the linter before you push.", kind="rule")
        then = memory.position
        memory.forget(rule)

        assert [item.text for item in memory.briefing(at=then).items] == [
            "Always run the linter before you push."
        ]


@pytest.mark.search
@settings(max_examples=searched(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=3, max_size=10), st.booleans())
def test_every_derived_thing_can_be_thrown_away(
    steps: list[Step],
    semantic: bool,  # noqa: FBT001 - drawn
) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with opened(home, semantic=semantic) as context:
            done(steps, context)
            before = answers(lambda q, who: of(context, who).recall(q).hits)
        thrown_away(home)
        with opened(home, semantic=semantic) as context:
            after = answers(lambda q, who: of(context, who).recall(q).hits)
            assert upkeep.verify_index(context.indexes.configured.follower, "local").holds

    assert after == before


def thrown_away(home: Path) -> None:
    (history,) = (home / ".perdure" / "histories").glob("*")
    for name in ("index", "vectors", "abstracts"):
        rmtree(history / name, ignore_errors=True)
    for file in history.glob("*.sqlite*"):
        file.unlink()


# ---------------------------------------------------------------- examples
class Counting(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += len(texts)
        return super().embed_texts(texts)


@pytest.fixture
def embedder() -> Counting:
    return Counting()


def test_what_was_known_then_is_found_as_it_was(tmp_path: Path, embedder: Counting) -> None:
    with opened(tmp_path, embedder=embedder) as context:
        memory = of(context)
        save_all(memory)
        then = IndexState(0, context.recorded.history.position())
        memory.save("Prefers spaces now.", category="preference", slug="indentation")
        context.nodes.delete_node("ctx://local/users/ana/memories/preference/coffee", ANA)

        past = memory.recall("tabs coffee", at=then).hits

        assert {hit.snippet[:12] for hit in past[:2]} == {"Drinks coffe", "Prefers tabs"}
        assert memory.recall("prefers").hits[0].snippet == "Prefers spaces now."
        assert memory.at(then).read(past[0].uri).content.startswith(past[0].snippet)


def test_nothing_is_embedded_again_for_the_past(tmp_path: Path, embedder: Counting) -> None:
    with opened(tmp_path, embedder=embedder) as context:
        save_all(of(context))
        then = IndexState(0, context.recorded.history.position())
        of(context).save("Prefers spaces now.", category="preference", slug="indentation")
        asked = embedder.asked

        of(context).recall("tabs", at=then)
        of(context).recall("tabs", at=then)

        assert embedder.asked == asked + 2  # the two questions


def test_only_a_few_past_states_stay_open(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        states = []
        for number in range(RETAINED + 3):
            of(context).save(f"Text {number}.", category="event", slug=f"n{number}")
            states.append(IndexState(0, context.recorded.history.position()))

        found = [len(of(context).recall("text", at=state).hits) for state in states]

        assert found == list(range(1, RETAINED + 4))
        assert len(list(tmp_path.rglob("past/*/*"))) == RETAINED
        assert of(context).recall("text", at=states[0]).hits[0].snippet == "Text 0."
        context.namespaces.delete_user("local", "ana", context.request)
        assert list(tmp_path.rglob("past/*/*")) == []


def test_before_anything_was_there_nothing_is_found(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))

        assert of(context).recall("tabs", at="2001-01-01").hits == ()
        assert of(context).recall("tabs", at="2999-01-01").hits != ()


def test_others_find_nothing_of_it_in_the_past_either(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        then = IndexState(0, context.recorded.history.position())

        assert of(context, BOB).recall("tabs coffee", at=then).hits == ()
        assert list(walk(context.recorded, Locator("accounts")))
