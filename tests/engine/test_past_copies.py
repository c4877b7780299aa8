"""The index of a past state, copied from a nearby one, equals one that was built whole."""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine import past
from perdure.engine.indexing.indexer import IndexBatch, Indexer
from perdure.engine.past import PastIndexFiles
from perdure.errors import EmbeddingError
from perdure.index.filters import root_digest
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import Uri
from perdure.storage import Locator
from tests.engine.histories import (
    MORE,
    Step,
    answers,
    changing,
    done,
    forgetting,
    littering,
    looking,
    meddling,
    saving,
    saying,
)
from tests.engine.remembering import of, opened
from tests.support.hints import texts_of
from tests.tiers import searched


def state_answers(context: Context, state: IndexState) -> tuple[object, ...]:
    """Return what a moment answers, and what its index holds."""
    found = answers(lambda q, who: of(context, who).recall(q, at=state).hits)
    index = context.indexes.past_states("local").at(state).index
    stamps = index.stamps("local")
    return found, stamps, root_digest(stamps), index.check("local"), index.owner_spaces("local")


def forget(context: Context) -> None:
    """Throw all indexes of moments away."""
    context.indexes.tenant_data()["past indexes"].delete_account_data("local")


@contextmanager
def always() -> Iterator[None]:
    """Copy past indexes however much differs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past, "_REMOVAL_RATIO", inf)
        yield


@contextmanager
def never() -> Iterator[None]:
    """Build past indexes whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past.PastState, "_copy_nearby", lambda *_: None)
        yield


@pytest.mark.search
@settings(
    max_examples=searched(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.reuse, Phase.generate],  # to shrink takes longer than a test may
)
@given(st.lists(MORE, min_size=4, max_size=14), st.data(), st.booleans())
def test_what_is_copied_and_mended_is_what_would_be_built(
    steps: list[Step],
    data: st.DataObject,
    semantic: bool,  # noqa: FBT001 - drawn
) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder), semantic=semantic) as context:
        states = done(steps, context)
        if not states:
            return
        asked = data.draw(st.lists(st.sampled_from(states), min_size=1, max_size=3, unique=True))
        with always():
            copied = [state_answers(context, state) for state in asked]
        forget(context)
        with never():
            built = [state_answers(context, state) for state in asked]

    assert copied == built


def compare(context: Context, *states: IndexState) -> None:
    """Ask about moments that are copied, and again when they are built."""
    with always():
        copied = [state_answers(context, state) for state in states]
    forget(context)
    with never():
        assert copied == [state_answers(context, state) for state in states]


ONE, TWO = saving(0, "one", "tabs coffee"), saving(0, "two", "cat soup")
CONTENT = "users/ana/memories/preference/one/content.md"


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([meddling(CONTENT, "train"), looking(rebuild=False)], id="an edit"),
        pytest.param([meddling(CONTENT, "train"), looking(rebuild=True)], id="an edit, rebuilt"),
        pytest.param(
            [meddling("users/ana/memories/preference/one/*", ""), looking(rebuild=True)],
            id="a node that is gone",
        ),
        pytest.param([littering(0, "three"), looking(rebuild=True)], id="a folder"),
        pytest.param([meddling(CONTENT, ""), looking(rebuild=True)], id="a broken node"),
    ],
)
def test_what_nobody_noticed_is_not_in_the_past(tmp_path: Path, later: list[Step]) -> None:
    with opened(tmp_path) as context:
        (*_, state) = done([ONE, TWO, looking(rebuild=False)], context)
        done([*later, saving(1, "one", "lisbon")], context)
        compare(context, state)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([ONE, TWO, changing("move_node", 0, "one", "three")], id="moved"),
        pytest.param([ONE, TWO, changing("archive_node", 0, "one", "one")], id="archived"),
        pytest.param([ONE, TWO, changing("delete_node", 0, "one", "one"), ONE], id="deleted"),
        pytest.param([ONE, saying(0, "s", ["cat", "soup"]), forgetting(0)], id="a user deleted"),
    ],
)
def test_each_past_index_can_be_copied_from_any_other(tmp_path: Path, steps: list[Step]) -> None:
    with opened(tmp_path) as context:
        states = done(steps, context)
        for asked in (states, states[::-1]):
            compare(context, *asked)


class Moody(HashingEmbedder):
    """Can't embed what is about cats, until it can."""

    hates = "cat"

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if self.hates and any(self.hates in text for text in texts):
            raise EmbeddingError("no cats. Fix: ask for dogs.")
        return super().embed_texts(texts)


def test_what_could_not_be_embedded_is_tried_again(tmp_path: Path) -> None:
    embedder = Moody()
    with opened(tmp_path, embedder=embedder) as context:
        (*_, state) = done([ONE, TWO, saving(1, "one", "lisbon")], context)
        embedder.hates = ""
        compare(context, state)


def test_what_is_hidden_in_the_past_is_not_copied_from_a_file(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        done([ONE, TWO], context)
        place = Locator(f"accounts/local/{CONTENT}")
        hidden = context.recorded.history.versions(place)[-1].cid
        assert hidden is not None
        context.recorded.history.store.tombstone(hidden, "")
        (state,) = done([saving(1, "one", "lisbon")], context)
        compare(context, state)


# ---------------------------------------------------------------- which index is copied
@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path) as context:
        for number in range(20):
            of(context).save(f"tabs {number}", category="event", slug=f"n{number}")
        yield context


def changed(context: Context) -> IndexState:
    """Change a little; return the state before."""
    state = IndexState(0, context.recorded.history.position())
    of(context).save("coffee", category="event", slug="n3")
    return state


def counted(patch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of places of each batch that is indexed from now on."""
    found: list[int] = []
    make = Indexer.batch

    def counting(self: Indexer, places: Iterable[Uri], *more: Any) -> IndexBatch:  # noqa: ANN401 - as given
        every = list(places)
        found.append(len(every))
        return make(self, every, *more)

    patch.setattr(Indexer, "batch", counting)
    return found


def test_only_what_differs_is_indexed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    first = changed(context)
    second = changed(context)
    counts = counted(monkeypatch)

    assert len(of(context).recall("tabs", at=second, top_k=50).hits) == 19
    assert len(of(context).recall("tabs", at=first, top_k=50).hits) == 20
    assert sum(counts) < 20


def test_where_most_differs_everything_is_indexed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = IndexState(0, context.recorded.history.position())
    for number in range(20):
        of(context).save(f"coffee {number}", category="event", slug=f"n{number}")
    monkeypatch.setattr(SqliteIndex, "adopt", None)

    assert len(of(context).recall("tabs", at=state, top_k=50).hits) == 20


@pytest.mark.parametrize("when", ["duplicate", "replace", "adopt"])
def test_a_copy_that_was_cut_off_is_never_taken_for_one(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    state = changed(context)
    verb = getattr(SqliteIndex, when)

    class Killed(BaseException):
        pass

    def cut(*given: object, **named: object) -> None:
        if when != "adopt":
            verb(*given, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SqliteIndex, when, cut)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # the dead tidy nothing
        with pytest.raises(Killed):
            of(context).recall("tabs", at=state)
    assert not list(tmp_path.rglob(f"past/*/{state.position}/*.sqlite"))

    assert len(of(context).recall("tabs", at=state, top_k=50).hits) == 20


def test_a_damaged_index_is_not_copied(context: Context, tmp_path: Path) -> None:
    state = changed(context)
    of(context).recall("tabs")
    with closing(sqlite3.connect(next(tmp_path.rglob("index/*/local.sqlite")))) as db:
        db.execute("UPDATE changes SET cursor = cursor + 1")
        db.commit()

    assert len(of(context).recall("tabs", at=state, top_k=50).hits) == 20


def test_a_damaged_past_index_is_rebuilt(context: Context, tmp_path: Path) -> None:
    state = changed(context)
    of(context).recall("tabs", at=state)
    with closing(sqlite3.connect(next(tmp_path.rglob("past/*/*/local.sqlite")))) as db:
        db.execute("DELETE FROM texts")  # which are remembered, but for this
        db.execute("UPDATE changes SET token = token + 1")
        db.commit()

    result = of(context).recall("tabs", at=state, top_k=50)
    assert len(result.hits) == 20
    assert any("built again" in note for note in texts_of(result))


def test_the_second_builder_leaves_the_index_of_the_first(context: Context, tmp_path: Path) -> None:
    state = changed(context)
    of(context).recall("tabs", at=state)
    (file,) = tmp_path.rglob("past/*/*/local.sqlite")
    before = file.stat().st_ino
    near = PastIndexFiles(file.parents[1], next(tmp_path.rglob("index/*/local.sqlite")).parent)
    (origin,) = near.near("local", state.position)
    with near.duplicated("local", origin, state.position) as index:
        index.replace("local", {}, cursor=state.position)

    assert file.stat().st_ino == before
    assert len(of(context).recall("tabs", at=state, top_k=50).hits) == 20
