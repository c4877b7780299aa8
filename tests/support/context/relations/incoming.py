"""What leads to a node."""

from contextlib import suppress
from dataclasses import replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ContextError
from perdure.model import RelationEdge, RequestContext
from perdure.testing.suite import when
from tests.support.context.base import (
    ANA,
    CONTENT,
    ON_THE_SEAM,
    ContextSuite,
    Subject,
    edge,
    few,
    memory,
    uri_of,
)

B = uri_of("b")

SLUGS = ("a", "b", "style/a", "style/c", "profile")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "relate", "unrelate", "delete", "archive", "move"]),
        st.sampled_from(SLUGS),
        st.sampled_from(SLUGS),
    ),
    max_size=14,
)


class IncomingTests(ContextSuite):
    def test_edges_and_links_to_a_node_are_found(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", relations=(edge("a", "b", "supports"),))
        subject.write("c", content="[[b]]")
        subject.write("d", content="[[a]]")
        found = subject.relations.get_incoming(B, ANA)

        assert [(e.from_uri, e.relation_type) for e in found] == [
            (uri_of("a"), "supports"),
            (uri_of("c"), "mentions"),
        ]

    def test_what_leads_elsewhere_by_now_is_not_found(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", content="[[b]]", relations=(edge("a", "b"),))
        subject.write("c", content="[[b]]")
        assert len(subject.relations.get_incoming(B, ANA)) == 3
        subject.rewrite("a", content="no more", relations=())
        subject.nodes.delete_node(uri_of("c"), ANA)

        assert subject.relations.get_incoming(B, ANA) == []

    @when(ON_THE_SEAM)
    def test_what_leads_here_is_found_after_opening_again(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", content="[[b]]")
        before = subject.relations.get_incoming(B, ANA)
        subject.reopen()

        assert subject.relations.get_incoming(B, ANA) == before != []

    @when(ON_THE_SEAM)
    def test_links_of_a_broken_content_are_still_found(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", content="[[b]]")
        subject.seam.edit(uri_of("a"), CONTENT, "x" * 100_001)
        subject.write("c", content="[[b]]")
        found = {e.from_uri for e in subject.relations.get_incoming(B, ANA)}
        readable = bool(subject.relations.get_edges(uri_of("a"), ANA))

        assert found == ({uri_of("a"), uri_of("c")} if readable else {uri_of("c")})

    def test_incoming_edges_are_the_outgoing_ones_of_all(self, subject: Subject) -> None:
        numbers = count()

        @few(12)
        @given(STEPS)
        def check(steps: list[tuple[str, str, str]]) -> None:
            user = f"u{next(numbers)}"
            for slug in SLUGS:
                _do(subject, user, ("write", slug, "b"))
            for step in steps:
                _do(subject, user, step)
            every = [e for slug in SLUGS for e in _edges(subject, user, slug)]
            for slug in SLUGS:
                uri = _uri(user, slug)
                expected = sorted(e.identity for e in every if e.to_uri == uri)
                found = subject.relations.get_incoming(uri, _ctx(user))
                assert [e.identity for e in found] == expected

        check()


def _do(subject: Subject, user: str, step: tuple[str, str, str]) -> None:
    """Do one step, or nothing if that can't be done now."""
    verb, slug, other = step
    ctx, uri, target = _ctx(user), _uri(user, slug), _uri(user, other)
    nodes, relations = subject.nodes, subject.relations
    with suppress(ContextError):
        if verb == "write" and nodes.exists(uri, ctx):
            nodes.write_node(nodes.read_node(uri, ctx).revised(content=f"[[{other}]]"), ctx)
        elif verb == "write":
            nodes.write_node(memory(slug, ctx, content=f"[[{other}]] [[a]]"), ctx)
        elif verb == "delete":
            nodes.delete_node(uri, ctx)
        elif verb == "archive":
            nodes.archive_node(uri, ctx)
        elif verb == "move":
            nodes.move_node(uri, target, ctx)
        elif verb == "relate":
            relations.upsert_edges([RelationEdge(uri, target, "related")], ctx)
        else:
            relations.remove_edges([RelationEdge(uri, target, "related")], ctx)


def _edges(subject: Subject, user: str, slug: str) -> list[RelationEdge]:
    return subject.relations.get_edges(_uri(user, slug), _ctx(user))


def _uri(user: str, slug: str) -> str:
    return uri_of(slug, _ctx(user))


def _ctx(user: str) -> RequestContext:
    return replace(ANA, user_id=user)
