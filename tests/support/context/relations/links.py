"""Links in a content are edges too."""

from perdure.model import MENTIONS, ContextNode
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
