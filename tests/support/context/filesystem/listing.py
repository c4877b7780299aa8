"""What is directly below a place."""

from perdure.model import ContextNode, Uri
from perdure.storage import Locator
from perdure.testing.requirement import requirement
from perdure.testing.suite import when
from tests.support.context.base import (
    ADMIN,
    ANA,
    ON_THE_SEAM,
    ContextSuite,
    Subject,
    folder_of,
    uri_of,
)

USER = "ctx://acme/users/ana"
RESOURCES = "ctx://acme/resources"


class ListTests(ContextSuite):
    @requirement("003-list-children")
    def test_the_children_are_listed_in_order(self, subject: Subject) -> None:
        for slug in ("tabs", "a-b", "spaces", "a_b", "a", "9", "con", "profile", "style/x"):
            subject.write(slug)

        assert subject.nodes.list_children(folder_of(), ANA) == [
            uri_of(slug) for slug in ("9", "a", "a-b", "a_b", "con", "spaces", "tabs")
        ]
        assert subject.nodes.list_children(f"{USER}/memories", ANA) == [
            f"{USER}/memories/{name}" for name in ("preference", "profile", "style")
        ]
        assert subject.nodes.list_children(USER, ANA) == [f"{USER}/memories"]
        assert subject.nodes.list_children("ctx://acme", ANA) == ["ctx://acme/users"]

    def test_below_nothing_is_nothing(self, subject: Subject) -> None:
        subject.write("tabs")
        for uri in (folder_of("other"), uri_of("tabs"), uri_of("other"), RESOURCES):
            assert subject.nodes.list_children(uri, ANA) == []

    def test_nodes_below_a_node_are_its_children(self, subject: Subject) -> None:
        for name in ("guide", "guide/b", "guide/a.md", "guide/Ä b", "other/deep"):
            uri = str(Uri("acme", ("resources", *name.split("/"))))
            subject.nodes.write_node(ContextNode(uri=uri), ADMIN)

        assert subject.nodes.list_children(f"{RESOURCES}/guide", ANA) == [
            f"{RESOURCES}/guide/{name}" for name in ("%C3%84%20b", "a.md", "b")
        ]
        assert subject.nodes.list_children(RESOURCES, ANA) == [
            f"{RESOURCES}/guide",
            f"{RESOURCES}/other",
        ]

    def test_archived_nodes_are_left_out_until_they_are_taken_back(self, subject: Subject) -> None:
        for slug in ("a", "b", "c"):
            subject.write(slug)
        subject.nodes.archive_node(uri_of("b"), ANA)
        subject.nodes.archive_node(uri_of("c"), ANA)
        subject.nodes.unarchive_node(uri_of("c"), ANA)

        assert subject.nodes.list_children(folder_of(), ANA) == [uri_of("a"), uri_of("c")]

    def test_what_was_deleted_is_not_listed(self, subject: Subject) -> None:
        guide = f"{RESOURCES}/guide"
        subject.write("tabs")
        subject.nodes.write_node(ContextNode(uri=guide), ADMIN)
        subject.nodes.delete_node(uri_of("tabs"), ANA)
        subject.nodes.delete_node(guide, ADMIN)

        assert subject.nodes.list_children(RESOURCES, ANA) == []
        for folder in (folder_of(), f"{USER}/memories"):
            assert subject.nodes.list_children(folder, ANA) == []

    @when(ON_THE_SEAM)
    def test_what_others_put_there_is_not_listed(self, subject: Subject) -> None:
        subject.write("tabs")
        guide = f"{RESOURCES}/guide"
        subject.nodes.write_node(ContextNode(uri=guide), ADMIN)
        top, user = "accounts/acme", "accounts/acme/users/ana"
        for key in (
            f"{user}/memories/preference/tabs/photo.png",
            f"{user}/memories/preference/note.md",
            f"{user}/memories/preference/README",
            f"{user}/memories/preference/Pasted Images/x.md",
            f"{user}/memories/Attachments/x.md",
            f"{user}/junk/x.md",
            f"{top}/.obsidian/app.json",
            f"{top}/stuff/x.md",
            f"{top}/resources/note.md",
        ):
            subject.seam.inner.write(Locator(key), "theirs")

        assert subject.nodes.list_children(folder_of(), ANA) == [uri_of("tabs")]
        assert subject.nodes.list_children(uri_of("tabs"), ANA) == []
        assert subject.nodes.list_children(f"{USER}/memories", ANA) == [folder_of()]
        assert subject.nodes.list_children(USER, ANA) == [f"{USER}/memories"]
        assert subject.nodes.list_children("ctx://acme", ANA) == [
            RESOURCES,
            "ctx://acme/users",
        ]
        assert subject.nodes.list_children(RESOURCES, ANA) == [guide]
