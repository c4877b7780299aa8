"""Killed at any moment, a verb leaves each node wholly old or wholly new, and repair ends it."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from perdure.context.notes import NotesLayout
from perdure.engine.repair import RepairState
from perdure.errors import (
    ConcurrentModificationError,
    ContextError,
    NodeExistsError,
    NodeNotFoundError,
)
from perdure.model import ContextNode, RelationEdge, Uri
from perdure.storage import Locator
from perdure.storage.reconciliation import record_edits
from perdure.testing.storage.processes import start
from tests.context.opened import (
    ADMIN,
    ANA,
    EVENING,
    GROUNDS,
    DictIndex,
    Opened,
    check_logged,
    memory_uri,
    note,
    opened,
)
from tests.support.context.crashes import Crash, FolderGround, Ground, every_crash

ONE, TWO, AWAY, EDITED, NEW, MOVED = map(
    memory_uri, ("one", "two", "away", "edited", "new", "moved")
)
TALK = "ctx://acme/sessions/monday/talk"
URIS = (ONE, TWO, AWAY, EDITED, NEW, MOVED, TALK, memory_uri("newer"), memory_uri("newest"))
EDGE = RelationEdge(TWO, ONE, "supports", 0.7, "since it says so")


def fill(memory: Opened) -> None:
    """Have nodes in every state that a verb leaves, and one that was edited since."""
    memory.nodes.write_node(note("one"), ANA)
    two = replace(note("two", "as in [[one]]"), relations=(EDGE,))
    memory.nodes.write_nodes([two, note("away"), note("edited")], ANA)
    memory.nodes.archive_node(AWAY, ANA)
    edited = note("edited").place
    if isinstance(layout := memory.backend.inner, NotesLayout):
        path = Locator(memory.nodes.path_of(edited))
        texts = layout.inner.read(path)
        layout.inner.write(path, texts.replace(note("edited").content, "by hand\n"))
    else:
        layout.write(memory.nodes.file(edited, "content.md"), "by hand\n")  # behind its back


def update(memory: Opened) -> None:
    one = memory.nodes.read_node(ONE, ANA)
    changed = one.revised(content="second", abstract="2", overview="II", metadata={"k": 2})
    memory.nodes.write_node(changed, ANA)


VERBS: dict[str, Callable[[Opened], object]] = {
    "create": lambda memory: memory.nodes.write_node(note("new"), ANA),
    "create in a session": lambda memory: memory.nodes.write_node(
        note("talk", uri=TALK, owner_space="user:ana"), replace(ANA, session_id="monday")
    ),
    "update": update,
    "write three": lambda memory: memory.nodes.write_nodes(
        [note("new"), memory.nodes.read_node(ONE, ANA).revised(content="2"), note("newest")], ANA
    ),
    "archive": lambda memory: memory.nodes.archive_node(ONE, ANA),
    "unarchive": lambda memory: memory.nodes.unarchive_node(AWAY, ANA),
    "delete": lambda memory: memory.nodes.delete_node(ONE, ANA),
    "delete the archived": lambda memory: memory.nodes.delete_node(AWAY, ANA),
    "move": lambda memory: memory.nodes.move_node(ONE, MOVED, ANA),
    "adopt": lambda memory: memory.nodes.adopt(EDITED, ANA),
    "relate": lambda memory: memory.relations.upsert_edges(
        [RelationEdge(ONE, TWO, "refutes"), RelationEdge(TWO, ONE, "supports", 0.9)], ANA
    ),
    "unrelate": lambda memory: memory.relations.remove_edges([EDGE], ANA),
}


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: a kill takes nothing away that was written."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture(params=GROUNDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ground(kind: str, tmp_path: Path) -> Ground:
    return GROUNDS[kind](tmp_path / "ground")


class Watched:
    """A memory before and after a verb, and what its index had before."""

    def __init__(self, ground: Ground, verb: Callable[[Opened], object]) -> None:
        self.ground, self.verb = ground, verb
        with opened(ground) as memory:
            fill(memory)
            self.index = DictIndex().take(memory.drain())
            self.position = memory.backend.history.position()
            self.before = memory.read_all(URIS)
        self.after = self._after()

    def _after(self) -> dict[str, object]:
        copied = self.ground.copied(self.ground.folder.parent / "after")
        with opened(copied, now=EVENING) as memory:
            self.verb(memory)
            reported, active = self.index.take(memory.events()).contents("acme"), memory.active()
            assert {**reported, EDITED: None} == {**active, EDITED: None}, "the index was not told"
            return memory.read_all(URIS)

    def crashes(self) -> Iterator[Crash]:
        """Return what each kill leaves. Whoever reads meanwhile sees whole nodes only."""
        with opened(self.ground) as reader:
            seen: list[str] = []

            def look(moment: str) -> None:
                seen.append(moment)
                self.check_whole(reader.read_all(URIS), moment)

            def run(ground: Ground) -> None:
                with opened(ground, now=EVENING) as memory:
                    self.verb(memory)

            yield from every_crash(self.ground, run, look)
            assert len(seen) > 3, "the verb was stopped nowhere"

    def check_unsettled(self, left: Ground, moment: str) -> None:
        """Let a process that was open all the while go on, on a copy of what is left."""
        copied = left.copied(left.folder.parent / "unsettled")
        with opened(copied, settle=False) as memory:
            self.check_whole(memory.read_all(URIS), moment)
            memory.repair.run(ADMIN)
            found = memory.read_all(URIS)
            assert memory.repair.run(ADMIN) == [], moment
        with opened(copied) as memory:
            assert memory.repair.run(ADMIN) == [], moment
            check_stored(memory, found, moment)
            self.check_whole(found | {EDITED: self.before[EDITED]}, moment)
        shutil.rmtree(copied.folder)

    def check_whole(self, found: dict[str, object], moment: str) -> None:
        for uri, node in found.items():
            assert node in (self.before[uri], self.after[uri]), f"{moment}: {uri}"


ON_A_DISK = ("create", "write three", "archive", "delete", "move", "relate")
"""Those whose steps are of all kinds; the others take the same on any backend."""
KILLED = [
    (kind, verb) for kind in GROUNDS for verb in VERBS if kind == "memory" or verb in ON_A_DISK
]


@pytest.mark.search
@pytest.mark.parametrize(("kind", "verb"), KILLED)
def test_who_is_killed_leaves_whole_nodes_and_repair_ends_it(
    verb: str, ground: Ground, kind: str
) -> None:
    watched = Watched(ground, VERBS[verb])
    states = set()
    for moment, left in watched.crashes():
        if kind == "memory":
            watched.check_unsettled(left, moment)
        with opened(left) as memory:
            found = memory.read_all(URIS)
            assert found in (watched.before, watched.after), moment
            states.add(found == watched.after)
            check_repair(memory, left, watched, moment)
            check_stored(memory, found, moment)
    assert states == {False, True}


def check_stored(memory: Opened, found: dict[str, object], moment: str) -> None:
    """All is as it was found, but for the edit, which is a version of its own by now."""
    repaired = memory.read_all(URIS)
    edited = repaired[EDITED]
    assert repaired == found | {EDITED: edited}, moment
    assert isinstance(edited, ContextNode)
    assert edited.content == "by hand\n"


AFTER_A_KILL = {RepairState.EDITED, RepairState.LEFTOVER}
"""What may be left: the edit, and an empty folder."""


def check_repair(memory: Opened, ground: Ground, watched: Watched, moment: str) -> None:
    """Repair registers no more than what it mends, and is quiet; the log names what changed."""
    bytes_before = ground.everything()
    found = memory.repair.examine(ADMIN)
    assert ground.everything() == bytes_before, moment
    events = memory.events()

    ran = memory.repair.run(ADMIN)

    assert {finding.uri for finding in found} == {finding.uri for finding in ran}, moment
    assert {finding.state for finding in ran} <= AFTER_A_KILL, moment
    registered = {event.uri for event in memory.events() if event not in events}
    assert registered <= {finding.uri for finding in ran}, moment
    if memory.nodes.has_layout:
        record_edits(memory.backend)  # in a note an edit is a version when it is noticed
    check_logged(memory, watched.index.contents("acme"), watched.position, moment)
    assert memory.repair.run(ADMIN) == [], moment
    assert memory.repair.examine(ADMIN) == [], moment


@pytest.mark.parametrize("kind", ["memory"])
def test_repair_alone_undoes_what_a_killed_delete_left(ground: Ground) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(note("one"), ANA)

    def run(ground: Ground) -> None:
        with opened(ground) as memory:
            memory.nodes.delete_node(ONE, ANA)

    for moment, left in every_crash(ground, run):
        with opened(left, settle=False) as memory:
            memory.repair.run(ADMIN)
            found = memory.read_all([ONE])
        with opened(left) as memory:
            assert memory.read_all([ONE]) == found, moment


AGAIN = ("create", "archive", "unarchive", "delete", "delete the archived", "move")


@pytest.mark.parametrize("verb", AGAIN)
@pytest.mark.parametrize("kind", ["memory"])
def test_the_next_process_can_call_the_verb_again(verb: str, ground: Ground) -> None:
    """It was open all the while, so it meets what the other left before anybody settled it."""
    watched = Watched(ground, VERBS[verb])
    for moment, left in watched.crashes():
        with opened(left, now=EVENING, settle=False) as memory:
            with suppress(NodeExistsError, NodeNotFoundError):  # the other had finished
                VERBS[verb](memory)
            assert memory.read_all(URIS) == watched.after, moment
            memory.repair.run(ADMIN)
            check_stored(memory, watched.after, moment)


@pytest.mark.parametrize("kind", ["memory", "device-local"])  # a note has its meta at once
def test_a_commit_that_ends_while_it_is_looked_at_is_not_taken_for_an_edit(
    ground: Ground,
) -> None:
    """The reader sees the old meta and the new parts, twice, and yet nobody ever edited it."""
    reached, go_on = threading.Event(), threading.Event()

    def stop(moment: str) -> None:
        if moment.startswith("before") and ".meta.json" in moment:
            reached.set()
            assert go_on.wait(30)

    def write() -> None:
        with opened(ground.watched(stop)) as memory:
            update(memory)

    with opened(ground) as memory:
        memory.nodes.write_node(note("one"), ANA)
        writer = threading.Thread(target=write)
        writer.start()
        assert reached.wait(30)

        def committed(locator: Locator) -> str | None:
            text = memory.backend.committed(locator)
            go_on.set()
            writer.join()
            return text

        memory.nodes._committed = committed
        node = memory.nodes.read_node(ONE, ANA)

        assert (node.version, node.content, node.abstract, node.metadata) == (
            *(2, "second", "2"),
            {"k": 2},
        )


# ---------------------------------------------------------------- real kills

SHARED = tuple(memory_uri(f"shared-{number}") for number in range(3))


def write_for_ever(folder: Path, seed: int) -> None:
    """Write, move, put away and delete nodes, each of which says one number in all its parts."""
    with opened(FolderGround(folder)) as memory:
        for lock in count(seed * 1_000_000):
            verb = VERBS_FOR_EVER[lock % len(VERBS_FOR_EVER)]
            with suppress(ContextError, ConcurrentModificationError):
                verb(memory, SHARED[lock // 7 % 3], str(lock))


def _save(memory: Opened, uri: str, text: str) -> None:
    try:
        node = memory.nodes.read_node(uri, ANA).revised(content=text, abstract=text, overview=text)
    except NodeNotFoundError:
        node = ContextNode(uri=uri, content=text, abstract=text, overview=text)
    memory.nodes.write_node(replace(node, metadata={"text": text}), ANA)


VERBS_FOR_EVER: tuple[Callable[[Opened, str, str], object], ...] = (
    _save,
    _save,
    lambda memory, uri, _: memory.nodes.archive_node(uri, ANA),
    lambda memory, uri, _: memory.nodes.unarchive_node(uri, ANA),
    _save,
    lambda memory, uri, _: memory.nodes.delete_node(uri, ANA),
    lambda memory, uri, text: memory.nodes.move_node(uri, memory_uri(f"moved-{text}"), ANA),
)


def test_processes_that_are_killed_leave_whole_nodes(tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    with opened(ground) as watching:
        for lock in range(10):
            before, position = watching.active(), watching.backend.history.position()
            writers = [start(partial(write_for_ever, ground.folder, 2 * lock + n)) for n in (0, 1)]
            while not watching.events() and all(writer.is_alive() for writer in writers):
                continue  # they have not come to their first write yet
            threading.Event().wait(0.05 + 0.03 * lock)
            for writer in writers:
                writer.kill()
                writer.join()
                assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"
            check_whole_nodes(watching)
            if lock % 2:
                with opened(ground) as another:
                    check_whole_nodes(another)
            watching.repair.run(ADMIN)

            check_whole_nodes(watching)
            assert watching.repair.run(ADMIN) == []
            watching.drain()
            check_logged(watching, before, position, f"turn {lock}")


def check_whole_nodes(memory: Opened) -> None:
    for place in memory.nodes.walk(Uri("acme")):
        stored = memory.nodes.load(place)
        if stored is not None:
            node = stored.node
            texts = {node.content, node.abstract, node.overview, str(node.metadata["text"])}
            assert len(texts) == 1, node
            assert not stored.edited
