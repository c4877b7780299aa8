"""Tenancy is a property of every verb, not a check in some of them."""

import inspect
from typing import Any

import pytest

from perdure.context.contract import ContextFS, RelationStore
from perdure.context.node_files import META
from perdure.context.nodes import Nodes, Relations
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.repair import Repair
from perdure.errors import AccessDeniedError, InvalidUriError, NodeNotFoundError
from perdure.model import ContextNode, RelationEdge, RequestContext, Role, Uri
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.testing.requirement import requirement
from tests.context.broken_tenancy import BROKEN, opened
from tests.context.tenancy_worlds import open_in_memory, open_on_disk
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.context.memory_outbox import MemoryOutbox
from tests.support.context.tenancy import VERBS, Leak, Row, check_row, rows, run_tenancy
from tests.tiers import searched

STORES: dict[str, tuple[type, ...]] = {
    "nodes": (ContextFS, Nodes),
    "relations": (RelationStore, Relations),
    "outbox": (OutboxStore, MemoryOutbox, OutboxStore),
    "namespaces": (NamespaceManager,),
    "repair": (Repair,),
}
TRUSTED = {
    "nodes": {
        # They take no request: whoever calls has asked `reach`, or works for nobody.
        *("active", "load", "is_active", "walk", "categories", "hidden_edges", "leading_to"),
        *("named", "names_of", "in_use", "file_of", "path_of", "place_at", "has_file"),
        *("lines_above", "versioned", "copies_of", "read_files"),
        # They are other verbs for many: in test_parsed_nodes.py and test_firsts.py of tests/engine.
        *("visible_nodes", "first_children"),
        *("text_at", "files", "file", "folder", "marker", "clear", "settle", "because"),
        # They take a plan that asks by itself.
        *("change", "owned", "plan_archive"),
    },
    # What is kept in SQLite alone is asked for beside it: in tests/context/test_outbox_sqlite.py.
    "outbox": {"count", "forget_places", "fail", "list_due", "list_failed"},
    # They are asked for where texts that are no nodes are: in tests/engine/test_repair.py.
    "repair": {"notes", "make_nodes", "examine_changed"},
}
"""What no caller reaches, so that no rule asks for it, and what is asked for elsewhere."""

ANA = RequestContext("acme", "ana", session_id="s")
BOB = RequestContext("acme", "bob", session_id="s")
ADMIN = RequestContext("acme", "eve", role=Role.ADMIN)


def note(uri: str, content: str = "", **more: Any) -> ContextNode:  # noqa: ANN401 - its fields
    return ContextNode(uri=uri, content=content, **more)


# ---------------------------------------------------------------- the property
@pytest.mark.search
@requirement("003-contextfs-access-every-method")
def test_nothing_out_of_reach_is_revealed_or_changed_in_memory() -> None:
    asked = run_tenancy(open_in_memory, examples=max(searched(25), 5), steps=30)

    assert asked == set(VERBS) - {"edit"}


def test_nothing_out_of_reach_is_revealed_or_changed_on_disk() -> None:
    run_tenancy(open_on_disk, examples=5, steps=20)


@pytest.mark.parametrize("part", STORES)
def test_every_public_verb_is_asked_for(part: str) -> None:
    public = {
        name
        for each in STORES[part]
        for name, _ in inspect.getmembers(each, callable)
        if not name.startswith("_")
    }
    asked = {name.partition(".")[2] for name in VERBS if name.startswith(f"{part}.")}
    in_table = {row[0].partition(" ")[0] for row in rows()}

    assert public - TRUSTED.get(part, set()) == asked
    assert {f"{part}.{name}" for name in asked} <= in_table


@requirement("003-contextfs-account-prefix")
@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}, {row[1].value}")
def test_each_role_does_what_it_may_and_no_more(row: Row) -> None:
    assert check_row(open_in_memory, row) == []


@pytest.mark.search
@pytest.mark.parametrize("name", BROKEN)
def test_a_memory_without_one_check_is_caught(name: str) -> None:
    break_it, verbs = BROKEN[name]
    open_world = opened(break_it, open_in_memory)
    in_table = (row for row in rows() if row[0].partition(" ")[0] in verbs)

    if not any(check_row(open_world, row) for row in in_table):
        with pytest.raises(Leak):
            run_tenancy(open_world, verbs=verbs, examples=60, steps=25, shrink=False)


@pytest.mark.parametrize("what", ["account", "user", "agent"])
def test_an_id_of_ten_thousand_letters_is_refused(what: str) -> None:
    ids = {"account": "acme", "user": "ana", "agent": "bot", what: "a" * 10_000}

    with pytest.raises(InvalidUriError, match="too long"):
        RequestContext(ids["account"], ids["user"], ids["agent"])


# ---------------------------------------------------------------- what was once told
class TestASessionThatBecomesSomebodysMeanwhile:
    """Bob is let in while the session is nobody's; before he does what he came for, it is Ana's."""

    PLACE = "ctx://acme/sessions/s/m"

    @pytest.fixture
    def nodes(self) -> Nodes:
        inner = MemoryBackend()
        nodes = Nodes(Recorded(inner, History.on_disk(MemoryDisk())))
        read = inner.read
        pending = [
            lambda: nodes.write_node(note(self.PLACE, "secret", owner_space="user:ana"), ANA)
        ]

        def read_late(locator: Locator) -> str:
            try:
                return read(locator)
            except FileNotFoundError:
                if locator.name == ".owner" and pending:
                    pending.pop()()
                raise

        inner.read = read_late  # type: ignore[method-assign]
        return nodes

    def test_is_not_read(self, nodes: Nodes) -> None:
        with pytest.raises(AccessDeniedError):
            nodes.read_node(self.PLACE, BOB)

    def test_is_not_listed(self, nodes: Nodes) -> None:
        with pytest.raises(AccessDeniedError):
            nodes.list_children("ctx://acme/sessions/s", BOB)

    def test_is_not_reported_as_existing(self, nodes: Nodes) -> None:
        assert not nodes.exists(self.PLACE, BOB)

    @pytest.mark.parametrize("verb", ["archive_node", "delete_node"])
    def test_is_not_changed(self, nodes: Nodes, verb: str) -> None:
        with pytest.raises(AccessDeniedError):
            getattr(nodes, verb)(self.PLACE, BOB)

        assert nodes.read_node(self.PLACE, ANA).content == "secret"

    def test_is_not_written_to(self, nodes: Nodes) -> None:
        other = note("ctx://acme/sessions/s/other", owner_space="user:bob")

        with pytest.raises(AccessDeniedError):
            nodes.write_node(other, BOB)

        assert nodes.list_children("ctx://acme/sessions/s", ANA) == [self.PLACE]


def test_a_broken_node_of_another_owner_is_not_revealed() -> None:
    world = open_in_memory()
    mine, theirs = (f"ctx://acme/users/{who}/memories/event/x" for who in ("ana", "bob"))
    for uri in (mine, theirs):
        world.nodes.write_node(note(uri), ADMIN)
    world.relations.upsert_edges([RelationEdge(theirs, mine, "knows")], ADMIN)
    assert isinstance(world.nodes, Nodes)
    meta = world.nodes.file(Uri.parse(theirs), META)
    text = world.nodes.backend.read(meta)
    world.nodes.backend.write(meta, text.replace("user:bob", "user:ana"))

    assert world.relations.get_incoming(mine, ANA) == []


def test_a_planted_link_does_not_reveal_where_a_node_went() -> None:
    world = open_in_memory()
    mine = "ctx://acme/users/ana/memories/event/x"
    old, new = (f"ctx://acme/users/bob/memories/event/{name}" for name in ("old", "new"))
    world.nodes.write_node(note(mine, f"[[{old}]]"), ANA)
    world.nodes.write_node(note(old), BOB)

    world.nodes.move_node(old, new, ADMIN)

    assert world.nodes.read_node(mine, ANA).content == f"[[{old}]]"


def test_an_edge_out_of_reach_stays_when_its_start_is_rewritten() -> None:
    world = open_in_memory()
    mine, theirs = (f"ctx://acme/users/{who}/memories/event/x" for who in ("ana", "bob"))
    for uri in (mine, theirs):
        world.nodes.write_node(note(uri), ADMIN)
    world.relations.upsert_edges([RelationEdge(mine, theirs, "knows")], ADMIN)
    seen = world.nodes.read_node(mine, ANA)

    world.nodes.write_node(seen.revised(content="rewritten"), ANA)

    assert seen.relations == ()
    assert [edge.to_uri for edge in world.relations.get_edges(mine, ADMIN)] == [theirs]


def test_a_node_can_be_moved_into_a_session() -> None:
    world = open_in_memory()
    mine, there = "ctx://acme/users/ana/memories/event/x", "ctx://acme/sessions/s/x"
    world.nodes.write_node(note(mine, "mine"), ANA)

    world.nodes.move_node(mine, there, ANA)

    assert world.nodes.read_node(there, ANA).owner_space == "user:ana"
    with pytest.raises(AccessDeniedError):
        world.nodes.read_node(there, BOB)


def test_an_archived_resource_is_not_listed_whatever_its_name() -> None:
    world = open_in_memory()
    for name in ("A", "%2541"):
        world.nodes.write_node(note(f"ctx://acme/resources/{name}"), ADMIN)

    world.nodes.archive_node("ctx://acme/resources/A", ADMIN)

    assert world.nodes.list_children("ctx://acme/resources", ANA) == ["ctx://acme/resources/%2541"]
    with pytest.raises(NodeNotFoundError):
        world.nodes.read_node("ctx://acme/resources/A", ANA)
