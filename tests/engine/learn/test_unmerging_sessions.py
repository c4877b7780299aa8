"""Merges of real sessions are undone: after a crash, without the session, and once for all."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.memory import Memory
from perdure.engine.restore import Unmerger
from perdure.engine.session_commit import SessionCommitter
from perdure.errors import InvalidValueError
from perdure.model import RequestContext
from perdure.storage.recorded import Recorded
from tests.context.opened import Opened, opened
from tests.engine.saving.sessions import ANA, PROFILE, open_home, user_messages
from tests.support.context.crashes import FolderGround, Ground, MemoryGround, every_crash

pytestmark = pytest.mark.search

JANUARY = user_messages("I live in Lisbon.", "I work as a nurse.")
MARCH = user_messages("I now live in Porto.", day="2026-03-02")
AT_FIRST = "- Ana lives in Lisbon.\n- Ana works as a nurse.\n"


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with open_home(tmp_path) as opened:
        yield opened


@pytest.fixture
def memory(context: Context) -> Memory:
    memory = context.memory.for_caller(ANA)
    memory.commit_session(JANUARY, session_id="january")
    memory.commit_session(MARCH, session_id="march")
    assert "Porto" in memory.read(PROFILE).content
    return memory


def test_the_same_session_again_does_not_merge_again(memory: Memory) -> None:
    undone = memory.unmerge(PROFILE)

    memory.commit_session(MARCH, session_id="march")
    memory.commit_session([*MARCH, *user_messages("Thanks!", day="2026-03-03")], session_id="march")
    done = memory.commit_session(
        user_messages("I now live in Porto.", day="2026-04-02"), session_id="april"
    )

    assert memory.read(PROFILE).content == AT_FIRST
    assert [each.uri for each in done.plans] == [undone.apart]
    assert memory.read(undone.apart).content == "- Ana now lives in Porto.\n"


def test_a_merge_of_a_session_that_is_gone_is_undone(context: Context, memory: Memory) -> None:
    context.nodes.delete_node("ctx://local/sessions/march/messages", ANA)

    undone = memory.unmerge(PROFILE)

    assert memory.read(PROFILE).content == AT_FIRST
    assert memory.read(undone.apart).content == "- Ana now lives in Porto.\n"


def test_what_came_in_with_the_page_itself_is_taken_out(memory: Memory) -> None:
    memory.unmerge(PROFILE)

    undone = memory.unmerge(PROFILE)

    assert memory.read(PROFILE).content == "- Ana lives in Lisbon.\n"
    assert memory.read(undone.apart).content == "- Ana works as a nurse.\n"


def test_who_recalls_finds_both(memory: Memory) -> None:
    undone = memory.unmerge(PROFILE)

    found = {hit.uri for hit in memory.recall("Where does Ana live: Lisbon or Porto?").hits}

    assert {PROFILE, undone.apart} <= found


# ---------------------------------------------------------------- crashes
CALLER = RequestContext("acme", "ana")
PAGE = "ctx://acme/users/ana/memories/profile"


@pytest.fixture(params=[MemoryGround, FolderGround])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    made = request.param(tmp_path / "ground")
    assert isinstance(made, Ground)
    return made


def texts_of(ground: Ground) -> dict[str, bytes]:
    """Return all texts; a directory that nothing is in says nothing."""
    return {key: text for key, text in ground.all_texts().items() if text}


def undo(memory: Opened) -> None:
    assert isinstance(memory.backend, Recorded)
    Unmerger(memory.nodes, memory.backend.history).unmerge(PAGE, CALLER, "Ana now lives in Porto.")


def test_who_is_killed_while_undoing_loses_nothing_and_can_do_it_again(
    ground: Ground, tmp_path: Path
) -> None:
    with opened(ground) as memory:
        saving = SessionCommitter(memory.nodes, KnownMemory(memory.nodes, lambda *_: {}))
        saving.commit(JANUARY, "january", CALLER)
        saving.commit(MARCH, "march", CALLER)
    undisturbed = ground.copied(tmp_path / "undisturbed")

    def run(ground: Ground) -> None:
        with opened(ground) as memory:
            undo(memory)

    run(undisturbed)
    wanted, begun = texts_of(undisturbed), texts_of(ground)
    seen = set()
    for moment, left in every_crash(ground, run):
        with opened(left) as memory:
            texts = texts_of(left)
            seen.add(moment)
            if texts == wanted:
                with pytest.raises(InvalidValueError, match="was not merged"):
                    undo(memory)
                continue
            assert texts == begun, moment
            undo(memory)
            assert texts_of(left) == wanted, moment
    assert len(seen) > 5, "nobody was killed"
