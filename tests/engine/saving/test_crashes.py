"""Killed at any moment, a commit of a session loses nothing, and the next one ends it."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perdure.engine import session_commit
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.session_commit import SessionCommitter
from perdure.model import ContextNode, RequestContext
from tests.context.opened import Opened, opened
from tests.engine.saving.sessions import user_messages
from tests.support.context.crashes import FolderGround, Ground, MemoryGround, every_crash

pytestmark = pytest.mark.search

ANA = RequestContext("acme", "ana")
PROFILE = "ctx://acme/users/ana/memories/profile"
TALK = [
    *user_messages("I live in Lisbon.", "I prefer tabs over spaces.", day="2027-01-05"),
    *user_messages(
        "I now live in Porto.", "I went to Rome yesterday.", "I love coffee.", day="2027-03-02"
    ),
]
LATER = datetime(2027, 6, 1, tzinfo=UTC)
SAVED = ContextNode(uri=PROFILE, content="- Ana lives in Berlin.\n")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk, and learn in several parts."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    monkeypatch.setattr(session_commit, "WINDOW_MESSAGES", 2)


@pytest.fixture(params=[MemoryGround, FolderGround])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    made = request.param(tmp_path / "ground")
    assert isinstance(made, Ground)
    return made


def commit(memory: Opened) -> None:
    known = KnownMemory(memory.nodes, lambda *_: {})
    saver = SessionCommitter(memory.nodes, known, clock=lambda: LATER)
    saver.commit(TALK, "s", ANA)


def test_who_is_killed_while_saving_loses_nothing_and_goes_on(
    ground: Ground, tmp_path: Path
) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(SAVED, ANA)
    undisturbed = ground.copied(tmp_path / "undisturbed")

    def run(ground: Ground) -> None:
        with opened(ground) as memory:
            commit(memory)

    run(undisturbed)
    wanted = undisturbed.all_texts()
    moments = 0
    for moment, left in every_crash(ground, run):
        moments += 1
        with opened(left) as memory:
            check_whole(memory, moment)
            commit(memory)
            assert left.all_texts() == wanted, moment
            events = memory.events()
            commit(memory)
            assert (left.all_texts(), memory.events()) == (wanted, events), moment
    assert moments > 20, "nobody was killed"


def check_whole(memory: Opened, moment: str) -> None:
    """See to it that no statement is lost: it is on its page, or among what held once."""
    texts = [
        memory.nodes.read_node(str(place), ANA).content
        for place in memory.nodes.walk(memory.nodes.read_node(PROFILE, ANA).place.parent)
        if memory.nodes.is_active(place)
    ]
    said_of_home = [text for text in texts if "Berlin" in text]
    assert len(said_of_home) == 1, moment
    learned = sum("Lisbon" in text for text in texts)
    assert learned <= 1, moment
    assert sum("Porto" in text for text in texts) <= learned, moment
