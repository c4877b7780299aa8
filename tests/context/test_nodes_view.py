"""Nodes and edges as of any moment are what they were then; and a past goes where its node goes."""

import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.artifacts import IndexState
from perdure.context.links import RelationReader, ScannedLinks
from perdure.context.nodes import Nodes, Relations
from perdure.context.reader import NodeReader
from perdure.errors import BrokenNodeError, ContextError, NodeNotFoundError
from perdure.model import ContextNode, RelationEdge, Uri
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History, View
from tests.support.context.base import ANA, CONTENT, memory, uri_of
from tests.support.context.outbox.base import HandClock

SLUGS = ("a", "b", "style/a", "style/c", "profile")
VERBS = (
    *("write",) * 3,
    *("relate",) * 2,
    *("unrelate", "edit", "break", "archive", "unarchive", "delete", "move"),
)
FOLDERS = (
    *dict.fromkeys(str(Uri.parse(uri_of(slug)).parent) for slug in SLUGS),
    "ctx://acme/users/ana",
)


@dataclass(frozen=True, slots=True)
class Present:
    inner: MemoryBackend
    backend: Recorded
    nodes: Nodes
    relations: Relations
    clock: HandClock

    @classmethod
    def open(cls, place: Path) -> "Present":
        clock, inner = HandClock(), MemoryBackend()
        backend = Recorded(inner, History.open(str(place / "history")))
        nodes = Nodes(backend, clock=clock)
        return cls(inner, backend, nodes, Relations(nodes, ScannedLinks(nodes)), clock)

    def state(self) -> IndexState:
        return IndexState(0, self.backend.history.position())


def seen(nodes: NodeReader, relations: RelationReader) -> dict[str, object]:
    """Return all that can be asked for."""
    answers: dict[str, object] = {}
    for slug in SLUGS:
        uri = uri_of(slug)
        answers[f"exists {slug}"] = nodes.exists(uri, ANA)
        answers[f"edges {slug}"] = relations.get_edges(uri, ANA)
        answers[f"one hop {slug}"] = relations.get_one_hop(uri, ANA, 2)
        answers[f"incoming {slug}"] = relations.get_incoming(uri, ANA)
        try:
            answers[slug] = nodes.read_node(uri, ANA)
        except (NodeNotFoundError, BrokenNodeError) as error:
            answers[slug] = type(error)
    for folder in FOLDERS:
        answers[folder] = nodes.list_children(folder, ANA)
    return answers


def seen_at(history: History, state: IndexState) -> dict[str, object]:
    reader = NodeReader(View(history, state))
    return seen(reader, RelationReader(reader, ScannedLinks(reader)))


def step(present: Present, chance: random.Random) -> None:
    """Do something, or nothing if that can't be done now."""
    slug, other = chance.choice(SLUGS), chance.choice(SLUGS)
    uri, target = uri_of(slug), uri_of(other)
    nodes, relations = present.nodes, present.relations
    present.clock.go_on(60)
    verb = chance.choice(VERBS)
    with suppress(ContextError):
        if verb == "write":
            content = f"# {chance.randrange(9)}\n\n[[{other}]]\n"
            new: ContextNode = memory(slug, content=content, metadata={"n": chance.randrange(9)})
            there = nodes.exists(uri, ANA)
            nodes.write_node(
                nodes.read_node(uri, ANA).revised(content=content) if there else new, ANA
            )
        elif verb == "edit":
            edit(present, uri, f"edited, [[{other}]]")
            nodes.adopt(uri, ANA)
        elif verb == "break":
            edit(present, uri, "---\nno end")
            present.backend.notice([file_of(uri)])
        elif verb == "archive":
            nodes.archive_node(uri, ANA)
        elif verb == "unarchive":
            nodes.unarchive_node(uri, ANA)
        elif verb == "delete":
            nodes.delete_node(uri, ANA)
        elif verb == "move":
            nodes.move_node(uri, target, ANA)
        elif verb == "relate":
            relations.upsert_edges([RelationEdge(uri, target, "related", chance.random())], ANA)
        else:
            relations.remove_edges([RelationEdge(uri, target, "related")], ANA)


def file_of(uri: str) -> Locator:
    return Locator(f"{Uri.parse(uri).key}/{CONTENT}")


def edit(present: Present, uri: str, text: str) -> None:
    if present.nodes.exists(uri, ANA):
        present.inner.write(file_of(uri), text)


@pytest.mark.parametrize("seed", range(4))
def test_the_past_is_as_it_was(seed: int, tmp_path: Path) -> None:
    present, chance = Present.open(tmp_path), random.Random(seed)
    moments: dict[int, dict[str, object]] = {}
    for _ in range(50):
        step(present, chance)
        moments[present.state().position] = seen(present.nodes, present.relations)

    assert len(moments) > 10
    for position, answers in moments.items():
        assert seen_at(present.backend.history, IndexState(0, position)) == answers


def test_a_view_shows_whole_nodes_only(tmp_path: Path) -> None:
    present = Present.open(tmp_path)
    for slug in ("a", "b", "style/c"):
        present.nodes.write_node(memory(slug, content=f"[[a]] {slug}"), ANA)
    present.nodes.move_node(uri_of("a"), uri_of("style/a"), ANA)
    whole = [seen_at(present.backend.history, present.state())]
    for position in range(present.state().position, -1, -1):
        now = seen_at(present.backend.history, IndexState(0, position))
        if now != whole[-1]:
            whole.append(now)

    assert len(whole) == 5  # nothing, three writes and a move
    assert all(now[slug] is not BrokenNodeError for now in whole for slug in SLUGS)


def test_the_past_of_a_node_follows_it(tmp_path: Path) -> None:
    present = Present.open(tmp_path)
    present.nodes.write_node(memory("a", content="first"), ANA)
    present.nodes.write_node(present.nodes.read_node(uri_of("a"), ANA).revised(content="2nd"), ANA)
    present.nodes.move_node(uri_of("a"), uri_of("style/c"), ANA)
    history = present.backend.history
    texts = [history.text(version) for version in history.versions(file_of(uri_of("style/c")))]

    assert texts == ["first", "2nd", "2nd"]


def test_a_change_records_its_actor(tmp_path: Path) -> None:
    present = Present.open(tmp_path)
    present.nodes.because("it was asked for").write_node(memory("a"), ANA)
    event = present.backend.history.current(file_of(uri_of("a")))

    assert event is not None
    assert (event.actor, event.reason) == ("ana/default", "it was asked for")
