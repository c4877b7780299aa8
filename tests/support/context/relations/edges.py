"""Edges that are written explicitly."""

import pytest

from perdure.errors import AccessDeniedError, InvalidValueError, NodeNotFoundError
from perdure.model import MENTIONS, ContextNode, EventType, RelationEdge
from perdure.testing.requirement import requirement
from perdure.testing.suite import when
from tests.support.context.base import (
    ADMIN,
    ANA,
    BOB,
    ON_THE_SEAM,
    RELATIONS,
    STRANGER,
    ContextSuite,
    Subject,
    edge,
    folder_of,
    uri_of,
)

A, B, C = uri_of("a"), uri_of("b"), uri_of("c")
GUIDE = "ctx://acme/resources/guide"


class EdgeTests(ContextSuite):
    @requirement("003-get-edges-outgoing", "003-upsert-edges-adds", "003-relations-weighted")
    def test_edges_that_were_added_are_there(self, subject: Subject) -> None:
        self._make(subject)
        subject.relations.upsert_edges([edge("a", "b", "supports", 0.25)], ANA)
        given = RelationEdge(A, C, "supports", 0.5, reason="as Ana said: é")
        subject.relations.upsert_edges([edge("a", "b", "contradicts", 0.75), given], ANA)
        found = {e.identity: (e.weight, e.reason) for e in subject.relations.get_edges(A, ANA)}

        assert found == {
            (A, B, "supports"): (0.25, ""),
            (A, B, "contradicts"): (0.75, ""),
            (A, C, "supports"): (0.5, "as Ana said: é"),
        }
        assert set(found) == {e.identity for e in subject.read("a").relations}

    @requirement("003-upsert-edges-updates")
    def test_an_edge_takes_the_place_of_the_one_with_its_identity(self, subject: Subject) -> None:
        self._make(subject)
        subject.relations.upsert_edges([edge("a", "b", weight=0.25), edge("a", "c")], ANA)
        created = subject.clock()
        subject.clock.go_on(60)
        subject.relations.upsert_edges([edge("a", "b", weight=0.5)], ANA)
        found = {e.to_uri: e for e in subject.relations.get_edges(A, ANA)}

        assert {uri: e.weight for uri, e in found.items()} == {B: 0.5, C: 1.0}
        assert found[B].created_at == created

    @requirement("003-upsert-edges-idempotent")
    def test_the_same_edges_twice_are_the_same_edges(self, subject: Subject) -> None:
        self._make(subject)
        edges = [edge("a", "b", weight=0.5), edge("b", "c")]
        subject.relations.upsert_edges(edges, ANA)
        before = subject.read("a"), subject.read("b")
        subject.clock.go_on(60)
        with subject.unchanged():
            subject.relations.upsert_edges(edges, ANA)

        assert (subject.read("a"), subject.read("b")) == before

    @requirement("003-relations-directed")
    def test_an_edge_belongs_to_its_start(self, subject: Subject) -> None:
        self._make(subject)
        subject.relations.upsert_edges([edge("a", "b")], ANA)

        assert [e.identity for e in subject.relations.get_edges(A, ANA)] == [(A, B, "related")]
        assert subject.relations.get_edges(B, ANA) == []
        assert subject.read("b").version == 1

    @when(ON_THE_SEAM)
    @requirement("003-relations-in-node-directory")
    def test_edges_are_stored_in_the_folder_of_their_start(self, subject: Subject) -> None:
        self._make(subject)
        before = subject.seam.text(B, RELATIONS)
        subject.relations.upsert_edges([edge("a", "b", "supports")], ANA)

        assert B in subject.seam.text(A, RELATIONS)
        assert "supports" in subject.seam.text(A, RELATIONS)
        assert subject.seam.text(B, RELATIONS) == before

    @requirement("003-get-edges-none", "003-get-edges-absent-node", "003-one-hop-none")
    def test_what_has_no_edges_or_is_not_there_gives_none(self, subject: Subject) -> None:
        self._make(subject)
        subject.nodes.archive_node(C, ANA)
        for uri in (A, uri_of("nowhere"), folder_of(), C):
            assert subject.relations.get_edges(uri, ANA) == []
            assert subject.relations.get_one_hop(uri, ANA) == []
            assert subject.relations.get_incoming(uri, ANA) == []

    def test_edges_can_be_taken_away(self, subject: Subject) -> None:
        self._make(subject)
        subject.relations.upsert_edges([edge("a", "b"), edge("a", "c"), edge("b", "c")], ANA)
        subject.relations.remove_edges([edge("a", "b", weight=0.1), edge("b", "a")], ANA)

        assert [e.to_uri for e in subject.relations.get_edges(A, ANA)] == [C]
        assert [e.to_uri for e in subject.relations.get_edges(B, ANA)] == [C]
        with subject.unchanged():
            subject.relations.remove_edges([edge("a", "b")], ANA)

    def test_an_edge_makes_the_next_version_and_keeps_the_rest(self, subject: Subject) -> None:
        self._make(subject)
        before = subject.rewrite("a", content="kept", abstract="kept", metadata={"a": 1})
        subject.relations.upsert_edges([edge("a", "b")], ANA)
        after = subject.read("a")

        assert after.version == before.version + 1
        for name in ("content", "abstract", "metadata", "created_at"):
            assert getattr(after, name) == getattr(before, name)

    def test_a_change_of_edges_registers_an_event(self, subject: Subject) -> None:
        self._make(subject)
        subject.events()
        subject.relations.upsert_edges([edge("a", "b"), edge("b", "c")], ANA)
        subject.relations.remove_edges([edge("a", "b")], ANA)

        assert subject.events() == [(EventType.UPSERT_RELATIONS, uri) for uri in (A, B, A)]

    # ------------------------------------------------------------ what is refused
    def test_an_edge_starts_and_ends_at_a_node(self, subject: Subject) -> None:
        self._make(subject)
        subject.nodes.archive_node(C, ANA)
        for one in (edge("nowhere", "a"), edge("a", "nowhere"), edge("a", "c"), edge("c", "a")):
            with subject.unchanged(), pytest.raises(NodeNotFoundError):
                subject.relations.upsert_edges([edge("a", "b"), one], ANA)

        assert subject.relations.get_edges(A, ANA) == []

    def test_an_edge_never_leaves_its_account(self, subject: Subject) -> None:
        self._make(subject)
        subject.write("a", STRANGER)
        with pytest.raises(InvalidValueError):
            RelationEdge(A, uri_of("a", STRANGER), "related")
        with subject.unchanged(), pytest.raises(AccessDeniedError):
            subject.relations.upsert_edges([edge("a", "b")], STRANGER)
        with subject.unchanged(), pytest.raises(AccessDeniedError):
            subject.relations.remove_edges([edge("a", "b")], STRANGER)

    def test_an_edge_starts_where_the_caller_may_write_and_ends_where_it_may_read(
        self, subject: Subject
    ) -> None:
        self._make(subject)
        subject.write("x", BOB)
        subject.nodes.write_node(ContextNode(uri=GUIDE), ADMIN)
        shared = RelationEdge(A, GUIDE, "related")
        foreign = RelationEdge(A, uri_of("x", BOB), "related")
        for one in (
            foreign,
            RelationEdge(GUIDE, A, "related"),
            RelationEdge(foreign.to_uri, A, "x"),
        ):
            with subject.unchanged(), pytest.raises(AccessDeniedError):
                subject.relations.upsert_edges([shared, one], ANA)
        subject.relations.upsert_edges([shared], ANA)

        assert [e.to_uri for e in subject.relations.get_edges(A, ANA)] == [GUIDE]

    def test_nobody_writes_the_edges_that_links_are(self, subject: Subject) -> None:
        self._make(subject)
        with subject.unchanged(), pytest.raises(InvalidValueError):
            subject.relations.upsert_edges([edge("a", "b", MENTIONS)], ANA)

    def test_what_is_out_of_reach_has_no_edges(self, subject: Subject) -> None:
        self._make(subject)
        subject.write("x", BOB)
        foreign = RelationEdge(A, uri_of("x", BOB), "related")
        subject.relations.upsert_edges([foreign, edge("a", "b")], ADMIN)
        back = RelationEdge(uri_of("x", BOB), A, "related")
        subject.relations.upsert_edges([back], ADMIN)

        for stranger in (BOB, STRANGER):
            assert subject.relations.get_edges(A, stranger) == []
            assert subject.relations.get_one_hop(A, stranger) == []
            assert subject.relations.get_incoming(A, stranger) == []
        assert [e.to_uri for e in subject.relations.get_edges(A, ANA)] == [B]
        assert [e.to_uri for e in subject.relations.get_one_hop(A, ANA)] == [B]
        assert subject.relations.get_incoming(A, ANA) == []
        assert len(subject.relations.get_edges(A, ADMIN)) == 2
        assert [e.identity for e in subject.relations.get_incoming(A, ADMIN)] == [back.identity]

    # ------------------------------------------------------------ the heaviest
    @requirement("003-one-hop-by-weight", "003-one-hop-limit", "003-one-hop-default-limit")
    def test_the_heaviest_edges_come_first(self, subject: Subject) -> None:
        weights = {"b": 0.25, "c": 1.0, "d": 0.5, "e": 0.75, "f": 0.0}
        for slug in ("a", *weights):
            subject.write(slug)
        subject.relations.upsert_edges([edge("a", s, weight=w) for s, w in weights.items()], ANA)
        ordered = [uri_of(slug) for slug in "cedbf"]

        assert [e.to_uri for e in subject.relations.get_one_hop(A, ANA)] == ordered[:3]
        for limit in (0, 1, 2, 4, 5, 9):
            found = subject.relations.get_one_hop(A, ANA, limit)
            assert [e.to_uri for e in found] == ordered[:limit]
        assert subject.relations.get_one_hop(A, ANA, limit=-1) == []

    def _make(self, subject: Subject) -> None:
        for slug in ("a", "b", "c"):
            subject.write(slug)
