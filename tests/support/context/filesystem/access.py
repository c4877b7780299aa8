"""Who may see, list and change which nodes; others learn nothing about them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from perdure.errors import AccessDeniedError
from perdure.model import ContextNode, RequestContext, Uri
from perdure.storage import Locator
from perdure.testing.requirement import requirement
from perdure.testing.suite import when
from tests.support.context.base import (
    ADMIN,
    ANA,
    BOB,
    ON_THE_SEAM,
    STRANGER,
    ContextSuite,
    Subject,
    folder_of,
    memory,
    uri_of,
)

TABS = uri_of("tabs")
SHARED = "ctx://acme/resources/guide"
NOTE = "ctx://acme/sessions/s1/note"


def verbs(subject: Subject, uri: str, ctx: RequestContext) -> list[Callable[[], object]]:
    """Return each verb that refuses, called for a place and a caller."""
    nodes = subject.nodes
    own = f"ctx://{ctx.account_id}/users/{ctx.user_id}/memories/preference/own"
    return [
        lambda: nodes.write_node(ContextNode(uri=uri), ctx),
        lambda: nodes.write_node(ContextNode(uri=uri, version=2), ctx),
        lambda: nodes.read_node(uri, ctx),
        lambda: nodes.delete_node(uri, ctx),
        lambda: nodes.archive_node(uri, ctx),
        lambda: nodes.unarchive_node(uri, ctx),
        lambda: nodes.move_node(uri, own, ctx),
        lambda: nodes.move_node(own, uri, ctx),
        lambda: nodes.list_children(uri, ctx),
    ]


class AccessTests(ContextSuite):
    @requirement(
        "003-contextfs-access-every-method",
        "003-contextfs-account-prefix",
        "003-write-node-other-account-denied",
        "003-read-node-other-account-denied",
        "003-delete-node-other-account-denied",
        "003-archive-node-other-account-denied",
        "003-move-node-source-denied",
        "003-move-node-target-denied",
    )
    def test_no_verb_reaches_into_another_account(self, subject: Subject) -> None:
        subject.write("tabs", content="secret")
        subject.write("own", STRANGER)
        for stranger in (STRANGER, replace(ADMIN, account_id="other", user_id="ana")):
            self._refuse_everything(subject, TABS, stranger)

    @requirement("003-contextfs-access-every-method")
    def test_no_verb_reaches_into_the_space_of_another_user(self, subject: Subject) -> None:
        subject.write("tabs", content="secret")
        subject.write("own", BOB)
        self._refuse_everything(subject, TABS, BOB)

    def _refuse_everything(self, subject: Subject, uri: str, ctx: RequestContext) -> None:
        with subject.unchanged():
            for verb in verbs(subject, uri, ctx):
                with pytest.raises(AccessDeniedError):
                    verb()
        assert subject.nodes.exists(uri, ANA)
        assert not subject.nodes.exists(uri, ctx)

    def test_a_refusal_does_not_tell_whether_something_is_there(self, subject: Subject) -> None:
        subject.write("own", BOB)
        absent = [_message(verb) for verb in verbs(subject, TABS, BOB)]
        subject.write("tabs", content="secret")
        there = [_message(verb) for verb in verbs(subject, TABS, BOB)]

        assert absent == there

    def test_what_was_shown_can_be_read_and_changed(self, subject: Subject) -> None:
        node = subject.write("tabs")
        friend = replace(BOB, visible_owner_spaces=frozenset({"user:ana"}))

        assert subject.nodes.read_node(TABS, friend) == node
        subject.nodes.write_node(node.revised(content="by bob"), friend)
        assert subject.read("tabs").content == "by bob"

    def test_an_admin_reaches_all_of_its_account(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ADMIN)
        subject.nodes.delete_node(TABS, ADMIN)

        assert not subject.nodes.exists(TABS, ANA)

    def test_what_the_account_shares_is_read_by_all_and_changed_by_admins(
        self, subject: Subject
    ) -> None:
        with pytest.raises(AccessDeniedError):
            subject.nodes.write_node(ContextNode(uri=SHARED), ANA)
        subject.nodes.write_node(ContextNode(uri=SHARED, content="for all"), ADMIN)

        assert subject.nodes.read_node(SHARED, BOB).content == "for all"
        assert subject.nodes.read_node(SHARED, BOB).owner_space == "account:acme"
        for change in verbs(subject, SHARED, BOB)[:2]:
            with pytest.raises(AccessDeniedError):
                change()

    def test_a_session_belongs_to_who_began_it(self, subject: Subject) -> None:
        ana, bob = replace(ANA, session_id="s1"), replace(BOB, session_id="s1")
        subject.nodes.write_node(ContextNode(uri=NOTE, content="mine"), ana)
        subject.nodes.write_node(ContextNode(uri=f"{NOTE}/below"), ANA)
        with subject.unchanged():
            for verb in verbs(subject, NOTE, bob):
                with pytest.raises(AccessDeniedError):
                    verb()

        assert subject.nodes.read_node(NOTE, ANA).owner_space == "user:ana"
        assert subject.nodes.list_children("ctx://acme/sessions", bob) == []
        assert subject.nodes.list_children("ctx://acme/sessions", ANA) == ["ctx://acme/sessions/s1"]

    @requirement("003-list-children-accessible-only")
    def test_only_what_is_in_reach_is_listed(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("tabs", BOB)
        subject.nodes.write_node(memory("tabs", STRANGER), STRANGER)

        assert subject.nodes.list_children("ctx://acme/users", ANA) == ["ctx://acme/users/ana"]
        assert subject.nodes.list_children("ctx://acme/users", ADMIN) == [
            "ctx://acme/users/ana",
            "ctx://acme/users/bob",
        ]
        with pytest.raises(AccessDeniedError):
            subject.nodes.list_children(folder_of(), BOB)


def _message(verb: Callable[[], object]) -> str:
    with pytest.raises(AccessDeniedError) as refusal:
        verb()
    return str(refusal.value)


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
