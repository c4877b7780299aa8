"""What an event says, and who may register it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from perdure.artifacts import CID
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import AccessDeniedError, InvalidValueError
from perdure.model import (
    ContextNode,
    EventStatus,
    EventType,
    OutboxEvent,
    RelationEdge,
    RequestContext,
    Role,
)
from perdure.model.values import JSON
from perdure.testing.requirement import requirement
from tests.support.context.outbox.base import (
    ACCOUNT,
    ANA,
    BOB,
    START,
    HandClock,
    Neighbours,
    OutboxBase,
    all_of,
    memory,
    pending,
    uri_of,
    written,
)

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
NOTE = memory(
    content="# Tabs, not spaces\n\nsecret-of-the-content é",
    abstract="Prefers tabs.",
    overview="Said so twice.",
    version=3,
    created_at=CREATED,
    updated_at=START,
)
DESCRIBED = {
    "version": 3,
    "cid": str(CID.of(NOTE.content.encode())),
    "title": "Tabs, not spaces",
    "abstract": "Prefers tabs.",
    "overview": "Said so twice.",
    "context_type": "MEMORY",
    "category": "preference",
    "level": 5,
    "owner_space": "user:ana",
    "created_at": CREATED.isoformat(),
    "updated_at": START.isoformat(),
}
SESSION = f"ctx://{ACCOUNT}/sessions/s1/messages"
ADMIN = RequestContext(ACCOUNT, "root", role=Role.ADMIN)

Register = Callable[[OutboxStore, ContextNode, RequestContext], object]
REGISTERS: tuple[Register, ...] = (
    lambda outbox, node, ctx: outbox.register_write(node, ctx),
    lambda outbox, node, ctx: outbox.register_writes([node], ctx),
    lambda outbox, node, ctx: outbox.register_delete(node.uri, ctx, owner_space=node.owner_space),
    lambda outbox, node, ctx: outbox.register_archive(node.uri, ctx, owner_space=node.owner_space),
    lambda outbox, node, ctx: outbox.register_move(f"{node.uri}-before", node, ctx),
    lambda outbox, node, ctx: outbox.register_relations(node, ctx),
    lambda outbox, node, ctx: outbox.register_directory(node, ctx),
)


def check(outbox: OutboxStore, event: OutboxEvent, kind: EventType, uri: str) -> None:
    """Assert that an event is as it should be at the beginning, and is listed like that."""
    assert (event.event_type, event.uri, event.account_id) == (kind, uri, ACCOUNT)
    assert (event.status, event.retry_count) == (EventStatus.PENDING, 0)
    assert (event.next_retry_at, event.last_error) == (None, "")
    assert event.created_at == START
    assert outbox.list_pending(ACCOUNT) == [(uri, event)]


class RegisterTests(OutboxBase):
    @requirement("003-outbox-register-write", "003-outbox-list-pending")
    def test_a_write_says_all_of_the_node_but_its_content(self, outbox: OutboxStore) -> None:
        event = outbox.register_write(NOTE, ANA)

        check(outbox, event, EventType.UPSERT_NODE, NOTE.uri)
        assert event.owner_space == "user:ana"
        assert event.payload == DESCRIBED
        assert "secret-of-the-content" not in repr(outbox.list_pending(ACCOUNT))

    def test_many_writes_are_registered_in_their_order(self, outbox: OutboxStore) -> None:
        nodes = [memory(f"n{number}") for number in (3, 1, 2)]
        events = outbox.register_writes(iter(nodes), ANA)

        assert [event.uri for event in events] == [node.uri for node in nodes]
        assert outbox.list_pending(ACCOUNT) == [(event.uri, event) for event in events]

    def test_of_many_writes_all_are_registered_or_none(self, outbox: OutboxStore) -> None:
        with pytest.raises(AccessDeniedError):
            outbox.register_writes([memory("one"), memory("two", BOB)], ANA)

        assert outbox.register_writes([], ANA) == []
        assert pending(outbox) == []

    def test_every_event_has_an_id_of_its_own(self, outbox: OutboxStore) -> None:
        many = outbox.register_writes([NOTE] * 50, ANA)
        single = [outbox.register_write(NOTE, ANA) for _ in range(50)]

        assert len({event.event_id for event in (*many, *single)}) == 100
        assert len(pending(outbox)) == 100

    @requirement("003-outbox-register-delete")
    def test_a_delete_says_whose_the_node_was(self, outbox: OutboxStore) -> None:
        event = outbox.register_delete(NOTE.uri, ANA)

        check(outbox, event, EventType.DELETE_NODE, NOTE.uri)
        assert (event.owner_space, event.payload) == ("user:ana", {"owner_space": "user:ana"})

    @requirement("003-outbox-register-archive")
    def test_an_archive_says_whose_the_node_is(self, outbox: OutboxStore) -> None:
        event = outbox.register_archive(NOTE.uri, ANA)

        check(outbox, event, EventType.ARCHIVE_NODE, NOTE.uri)
        assert (event.owner_space, event.payload) == ("user:ana", {"owner_space": "user:ana"})

    def test_a_move_says_what_a_write_does_and_where_from(self, outbox: OutboxStore) -> None:
        event = outbox.register_move(uri_of("spaces"), NOTE, ANA)

        check(outbox, event, EventType.MOVE_NODE, NOTE.uri)
        assert event.payload == {**DESCRIBED, "from_uri": uri_of("spaces")}

    def test_relations_are_reported_edge_by_edge(self, outbox: OutboxStore) -> None:
        edge = RelationEdge(uri_of("a"), uri_of("b"), "supports", 0.25, "é", START)
        event = outbox.register_relations(memory("a", relations=(edge,)), ANA)

        check(outbox, event, EventType.UPSERT_RELATIONS, uri_of("a"))
        assert event.payload["edges"] == (
            {
                "from_uri": uri_of("a"),
                "to_uri": uri_of("b"),
                "relation_type": "supports",
                "weight": 0.25,
                "reason": "é",
                "created_at": START.isoformat(),
            },
        )

    @requirement("003-outbox-register-directory", "003-outbox-directory-self-contained")
    def test_a_directory_event_is_of_the_folder_and_needs_no_other_node(
        self, outbox: OutboxStore, neighbours: Neighbours
    ) -> None:
        neighbours.answer = [(uri_of("a"), "First."), (NOTE.uri, "Stale."), (uri_of("z"), "Last.")]
        event = outbox.register_directory(NOTE, ANA)

        folder = str(NOTE.place.parent)
        check(outbox, event, EventType.UPSERT_DIRECTORY, folder)
        assert (event.owner_space, event.payload["directory"]) == ("user:ana", folder)
        assert siblings_in(event) == {
            NOTE.uri: "Prefers tabs.",
            uri_of("a"): "First.",
            uri_of("z"): "Last.",
        }

    @requirement("003-outbox-directory-siblings")
    def test_a_directory_event_names_at_most_20_nodes_and_always_its_own(
        self, outbox: OutboxStore, neighbours: Neighbours
    ) -> None:
        neighbours.answer = [(uri_of(f"n{number}"), str(number)) for number in range(30)]
        siblings = siblings_in(outbox.register_directory(NOTE, ANA))

        assert len(siblings) == 20
        assert siblings[NOTE.uri] == NOTE.abstract
        assert set(siblings) - {NOTE.uri} <= {uri for uri, _ in neighbours.answer}

    def test_events_of_a_session_have_the_given_owner(self, outbox: OutboxStore) -> None:
        node = ContextNode(uri=SESSION, owner_space="user:ana")
        for register in REGISTERS:
            register(outbox, node, ANA)

        events = [event for _, event in outbox.list_pending(ACCOUNT)]
        assert [event.owner_space for event in events] == ["user:ana"] * len(REGISTERS)
        assert {event.payload["owner_space"] for event in events} == {"user:ana"}

    def test_what_is_out_of_reach_is_refused_by_every_verb(self, outbox: OutboxStore) -> None:
        elsewhere = RequestContext("other", "ana", role=Role.ADMIN)
        shared = ContextNode(uri=f"ctx://{ACCOUNT}/resources/handbook")
        session = ContextNode(uri=SESSION, owner_space="user:ana")
        refused = ((NOTE, elsewhere), (NOTE, BOB), (session, BOB), (shared, ANA))
        for register in REGISTERS:
            for node, ctx in refused:
                with pytest.raises(AccessDeniedError):
                    register(outbox, node, ctx)

        assert all_of(outbox) == all_of(outbox, "other") == set()

    def test_nothing_is_moved_out_of_a_place_out_of_reach(self, outbox: OutboxStore) -> None:
        for source in (uri_of(ctx=BOB), uri_of(ctx=RequestContext("other", "ana"))):
            with pytest.raises(AccessDeniedError):
                outbox.register_move(source, NOTE, ANA)

        assert pending(outbox) == []

    def test_those_who_govern_may_register_for_all_of_the_account(
        self, outbox: OutboxStore
    ) -> None:
        shared = ContextNode(uri=f"ctx://{ACCOUNT}/resources/handbook")
        for register in REGISTERS:
            for node in (NOTE, shared):
                register(outbox, node, ADMIN)

        assert len(pending(outbox)) == 2 * len(REGISTERS)

    def test_only_nodes_are_deleted_archived_or_moved(self, outbox: OutboxStore) -> None:
        for folder in (f"ctx://{ACCOUNT}", str(NOTE.place.parent)):
            with pytest.raises(InvalidValueError):
                outbox.register_delete(folder, ADMIN)
            with pytest.raises(InvalidValueError):
                outbox.register_archive(folder, ADMIN)
            with pytest.raises(InvalidValueError):
                outbox.register_move(folder, NOTE, ADMIN)

        assert pending(outbox) == []

    def test_events_are_listed_in_the_order_of_registration_whatever_the_clock_says(
        self, outbox: OutboxStore, clock: HandClock
    ) -> None:
        events = []
        for number in (5, 3, 4, 1, 2):
            clock.go_on(-3600)
            events.append(written(outbox, f"n{number}"))
        clock.go_on(100_000)

        assert pending(outbox) == [event.event_id for event in events]


def siblings_in(event: OutboxEvent) -> dict[JSON, JSON]:
    found = event.payload["siblings"]
    assert isinstance(found, tuple)
    return {each["uri"]: each["abstract"] for each in found}
