"""Links in texts are edges too; edges that lead to a node."""

from contextlib import suppress
from dataclasses import replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ContextError
from perdure.model import MENTIONS, ContextNode, RelationEdge, RequestContext
from perdure.storage import Locator
from perdure.testing.suite import when
from tests.support.context.base import (
    ADMIN,
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

A, B = uri_of("a"), uri_of("b")
AGENT = "ctx://acme/agents/default"


class LinkTests(ContextSuite):
    def test_a_link_is_an_edge_in_each_of_its_forms(self, subject: Subject) -> None:
        subject.write("tabs")
        for number, link in enumerate(
            [
                "[[tabs]]",
                "[[Tabs]]",
                "[[ tabs ]]",
                "[[preference/tabs]]",
                "[[tabs|shown to people]]",
                "[[tabs\\|in a table]]",
                "[[tabs#A heading]]",
                "[[tabs#^block|shown]]",
                "[[tabs.md]]",
                "![[tabs]]",
                f"[[{uri_of('tabs')}]]",
                f"[[{uri_of('tabs')}|shown]]",
                "[[accounts/acme/users/ana/memories/preference/tabs/content|tabs]]",
                "[[tabs/content.md]]",
            ]
        ):
            start = f"n{number}"
            subject.write(start, content=f"See {link}, please.")

            (found,) = subject.relations.get_edges(uri_of(start), ANA)
            assert found.identity == (uri_of(start), uri_of("tabs"), MENTIONS)
            assert 0 < found.weight < 1

    def test_what_stands_in_code_is_no_link(self, subject: Subject) -> None:
        subject.write("b")
        for number, content in enumerate(
            [
                "`[[b]]`",
                "`` ` [[b]] ``",
                "```\n[[b]]\n```",
                "```markdown\n[[b]]\n```\n",
                "~~~\n```\n[[b]]\n~~~",
                "````\n```\n[[b]]\n````",
                "> ```\n> [[b]]\n> ```",
                "  ```\n  [[b]]\n  ```",
                "```\nnever closed\n\n[[b]]",
                "`two\nlines [[b]]`",
                "\\[[b]]",
                "[[b",
                "[b]",
                "[[]]",
                "[[#only a heading]]",
            ]
        ):
            subject.write(f"n{number}", content=content)

            assert subject.relations.get_edges(uri_of(f"n{number}"), ANA) == [], content

    def test_code_ends_where_it_ends(self, subject: Subject) -> None:
        subject.write("b")
        for number, content in enumerate(
            [
                "a ` stray tick\n\n[[b]]\n\nand another `",
                "```\ncode\n```\n[[b]]",
                "```\n```python\n```\n[[b]]",
                "`code` [[b]] `code`",
                "\\`[[b]] `code`",
                "~~~\n`\n~~~\n[[b]] `x",
            ]
        ):
            subject.write(f"n{number}", content=content)

            (found,) = subject.relations.get_edges(uri_of(f"n{number}"), ANA)
            assert found.to_uri == B, content

    def test_a_link_to_nothing_becomes_an_edge_when_something_is_there(
        self, subject: Subject
    ) -> None:
        subject.write("a", content="[[b]], [[nowhere]], [[ctx://acme/x]], [[other/b]]")
        assert subject.relations.get_edges(A, ANA) == []
        subject.write("b")
        there = subject.relations.get_edges(A, ANA), subject.relations.get_incoming(B, ANA)
        subject.nodes.archive_node(B, ANA)
        archived = subject.relations.get_edges(A, ANA), subject.relations.get_incoming(B, ANA)

        assert [[e.to_uri for e in edges] for edges in there] == [[B], [B]]
        assert archived == ([], [])

    def test_a_link_leads_to_what_is_nearest(self, subject: Subject) -> None:
        guide = "ctx://acme/resources/b"
        places = [guide, f"{AGENT}/skills/b", f"{AGENT}/memories/case/b", f"{AGENT}/memories/z/b"]
        start = f"{AGENT}/memories/z/a"
        subject.nodes.write_node(ContextNode(uri=start, content="[[b]]"), ANA)
        for nearer in places:
            subject.nodes.write_node(ContextNode(uri=nearer), ADMIN)

            (found,) = subject.relations.get_edges(start, ANA)
            assert found.to_uri == nearer
        skill = f"{AGENT}/skills/a"
        subject.nodes.write_node(ContextNode(uri=skill, content="[[b]]"), ANA)

        (found,) = subject.relations.get_edges(skill, ANA)
        assert found.to_uri == f"{AGENT}/skills/b"

    def test_a_link_may_say_the_category(self, subject: Subject) -> None:
        for slug in ("b", "style/b", "profile", "style/profile"):
            subject.write(slug)
        for name, target in (
            ("style/b", "style/b"),
            ("preference/b", "b"),
            ("profile", "profile"),
            ("memories/profile", "profile"),
            ("style/profile", "style/profile"),
        ):
            start = f"n/{name.replace('/', '-')}"
            subject.write(start, content=f"[[{name}]]")

            (found,) = subject.relations.get_edges(uri_of(start), ANA)
            assert found.to_uri == uri_of(target)

    def test_a_node_does_not_link_to_itself(self, subject: Subject) -> None:
        subject.write("a", content=f"[[a]] [[{A}]]")

        assert subject.relations.get_edges(A, ANA) == []

    def test_a_link_does_not_leave_its_account(self, subject: Subject) -> None:
        subject.nodes.write_node(ContextNode(uri="ctx://acme/resources/b"), ADMIN)
        subject.write("a", content="[[ctx://other/resources/b]]")

        assert subject.relations.get_edges(A, ANA) == []

    def test_a_link_and_an_edge_are_two_relations(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", content="[[b]] and [[b|again]]", relations=(edge("a", "b"),))

        assert sorted(e.relation_type for e in subject.relations.get_edges(A, ANA)) == [
            MENTIONS,
            "related",
        ]
        assert subject.relations.get_one_hop(A, ANA, 1)[0].relation_type == "related"

    def test_odd_names_are_linked_by_their_uri(self, subject: Subject) -> None:
        for number, name in enumerate(["Read%20Me.md", "a/content", "%C3%9Cber"]):
            uri = f"ctx://acme/resources/{name}"
            subject.nodes.write_node(ContextNode(uri=uri), ADMIN)
            start = f"n{number}"
            subject.write(start, content=f"[[{uri}]]")

            assert [e.to_uri for e in subject.relations.get_edges(uri_of(start), ANA)] == [uri]
            assert [e.from_uri for e in subject.relations.get_incoming(uri, ANA)] == [uri_of(start)]

    @when(ON_THE_SEAM)
    def test_links_lead_past_what_others_put_there(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("style/a", content="[[b]]")
        theirs = "accounts/acme/users/ana/memories/Attachments/x.md"
        subject.seam.inner.write(Locator(theirs), "theirs")

        assert [e.to_uri for e in subject.relations.get_edges(uri_of("style/a"), ANA)] == [B]

    @when(ON_THE_SEAM)
    def test_links_written_by_hand_are_edges(self, subject: Subject) -> None:
        subject.write("b")
        subject.write("a", content="no link")
        subject.seam.replace(A, CONTENT, "no link", "[[b]]")
        before = [e.to_uri for e in subject.relations.get_edges(A, ANA)]
        subject.editable.adopt(A, ANA)

        assert before == [B]
        assert [e.from_uri for e in subject.relations.get_incoming(B, ANA)] == [A]


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
