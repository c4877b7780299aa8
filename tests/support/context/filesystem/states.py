"""A node that is read, deleted, archived, unarchived or moved."""

import pytest

from perdure.errors import InvalidValueError, NodeExistsError, NodeNotFoundError
from perdure.model import ContextNode, EventType, NodeStatus, RelationEdge
from perdure.testing.requirement import requirement
from perdure.testing.suite import when
from tests.support.context.base import (
    ADMIN,
    ANA,
    CONTENT,
    META,
    ON_THE_SEAM,
    RELATIONS,
    ContextSuite,
    Subject,
    edge,
    folder_of,
    memory,
    uri_of,
)
from tests.support.context.seam import Died

TABS = uri_of("tabs")


class StateTests(ContextSuite):
    @requirement("003-read-node-absent")
    def test_what_is_not_there_is_not_found(self, subject: Subject) -> None:
        subject.write("tabs")
        for uri in (uri_of("other"), uri_of("other/tabs"), uri_of("profile"), folder_of()):
            with pytest.raises(NodeNotFoundError):
                subject.nodes.read_node(uri, ANA)
            assert not subject.nodes.exists(uri, ANA)

        assert subject.nodes.exists(TABS, ANA)

    @when(ON_THE_SEAM)
    @requirement("003-read-node-not-active", "003-exists-active-only", "003-exists-pending-hidden")
    def test_only_an_active_node_is_there(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.write("tabs", content="[[spaces]]", relations=(edge("tabs", "spaces"),))
        for status in (NodeStatus.PENDING, NodeStatus.BROKEN, NodeStatus.ARCHIVED):
            subject.seam.replace(TABS, META, '"ACTIVE"', f'"{status.value}"')

            assert not subject.nodes.exists(TABS, ANA)
            assert subject.relations.get_edges(TABS, ANA) == []
            assert subject.relations.get_incoming(uri_of("spaces"), ANA) == []
            for verb in (subject.nodes.read_node, subject.nodes.archive_node):
                with pytest.raises(NodeNotFoundError):
                    verb(TABS, ANA)
            subject.seam.replace(TABS, META, f'"{status.value}"', '"ACTIVE"')
        subject.seam.take_away(TABS, META)

        assert not subject.nodes.exists(TABS, ANA)
        with pytest.raises(NodeNotFoundError):
            subject.read("tabs")

    # ------------------------------------------------------------ delete
    @requirement("003-delete-node-removes")
    def test_a_deleted_node_is_gone(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("spaces")
        subject.nodes.delete_node(TABS, ANA)

        assert not subject.nodes.exists(TABS, ANA)
        assert subject.nodes.list_children(folder_of(), ANA) == [uri_of("spaces")]
        with pytest.raises(NodeNotFoundError):
            subject.read("tabs")

    @when(ON_THE_SEAM)
    def test_a_deleted_node_leaves_no_file(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.delete_node(TABS, ANA)
        subject.nodes.write_node(memory("profile"), ANA)
        subject.nodes.delete_node(uri_of("profile"), ANA)

        assert subject.seam.files() == {}

    def test_to_delete_nothing_is_not_found(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.nodes.delete_node(uri_of("spaces"), ANA)
        for uri in (TABS, uri_of("spaces")):
            with subject.unchanged(), pytest.raises(NodeNotFoundError):
                subject.nodes.delete_node(uri, ANA)

    def test_an_archived_node_can_be_deleted(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.delete_node(TABS, ANA)
        with pytest.raises(NodeNotFoundError):
            subject.nodes.unarchive_node(TABS, ANA)

        assert subject.write("tabs").version == 1
        assert subject.nodes.list_children(folder_of(), ANA) == [TABS]

    @when(ON_THE_SEAM)
    def test_a_broken_node_can_be_deleted(self, subject: Subject) -> None:
        for name, text in (
            (META, "{"),
            (META, '{"format": 99}'),
            (CONTENT, "---\nno end"),
            (RELATIONS, "[["),
        ):
            subject.write("tabs")
            subject.seam.edit(TABS, name, text)
            subject.nodes.delete_node(TABS, ANA)

            assert not subject.nodes.exists(TABS, ANA)
            assert subject.seam.files() == {}
        for name in (META, CONTENT):
            subject.write("tabs")
            subject.seam.take_away(TABS, name)
            subject.nodes.delete_node(TABS, ANA)

            assert subject.seam.files() == {}
        for name in (META, CONTENT):
            subject.write("tabs")
            subject.seam.garble(TABS, name)
            subject.nodes.delete_node(TABS, ANA)

            assert subject.seam.files() == {}

    def test_a_place_can_be_used_again(self, subject: Subject) -> None:
        subject.write("tabs", content="one", metadata={"old": True})
        subject.nodes.delete_node(TABS, ANA)
        subject.clock.go_on(60)
        again = subject.write("tabs", content="two")

        assert (again.version, again.content, again.metadata) == (1, "two", {})
        assert again.created_at == subject.clock()

    # ------------------------------------------------------------ archive
    @when(ON_THE_SEAM)
    @requirement("003-archive-node-marks")
    def test_an_archived_node_keeps_its_files(self, subject: Subject) -> None:
        subject.write("tabs", content="kept")
        before = {key: text for key, text in subject.seam.files().items() if META not in key}
        subject.nodes.archive_node(TABS, ANA)

        assert before.items() <= subject.seam.files().items()
        assert '"ARCHIVED"' in subject.seam.text(TABS, META)

    @requirement("003-archive-node-hides")
    def test_an_archived_node_is_neither_read_nor_there(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("spaces")
        subject.nodes.archive_node(TABS, ANA)

        assert not subject.nodes.exists(TABS, ANA)
        assert subject.nodes.list_children(folder_of(), ANA) == [uri_of("spaces")]
        with pytest.raises(NodeNotFoundError):
            subject.read("tabs")

    @requirement("003-archive-node-absent")
    def test_only_a_node_in_use_can_be_archived(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ANA)
        for uri in (TABS, uri_of("other")):
            with subject.unchanged(), pytest.raises(NodeNotFoundError):
                subject.nodes.archive_node(uri, ANA)

    def test_an_archived_node_can_be_taken_back(self, subject: Subject) -> None:
        subject.write("spaces")
        before = subject.write(
            "tabs",
            content="kept",
            abstract="a",
            metadata={"a": 1},
            relations=(edge("tabs", "spaces"),),
        )
        subject.clock.go_on(60)
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.unarchive_node(TABS, ANA)
        after = subject.read("tabs")

        for name in ("content", "abstract", "metadata", "relations", "created_at", "status"):
            assert getattr(after, name) == getattr(before, name)
        assert after.version > before.version
        assert TABS in subject.nodes.list_children(folder_of(), ANA)

    def test_only_an_archived_node_can_be_taken_back(self, subject: Subject) -> None:
        subject.write("tabs")
        for uri in (TABS, uri_of("other")):
            with subject.unchanged(), pytest.raises(NodeNotFoundError):
                subject.nodes.unarchive_node(uri, ANA)

    # ------------------------------------------------------------ events
    def test_each_change_of_state_registers_an_event(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.unarchive_node(TABS, ANA)
        subject.nodes.delete_node(TABS, ADMIN)

        assert subject.events() == [
            (EventType.UPSERT_NODE, TABS),
            (EventType.ARCHIVE_NODE, TABS),
            (EventType.UPSERT_NODE, TABS),
            (EventType.DELETE_NODE, TABS),
        ]


HARD = uri_of("hard-tabs")
SKILL = "ctx://acme/agents/default/skills"


class MoveTests(ContextSuite):
    @requirement("003-move-node-renames")
    def test_a_moved_node_is_found_at_its_new_name_only(self, subject: Subject) -> None:
        before = subject.write("tabs", content="# Tabs", abstract="a", metadata={"a": 1})
        subject.clock.go_on(60)
        subject.nodes.move_node(TABS, HARD, ANA)
        after = subject.read("hard-tabs")

        assert not subject.nodes.exists(TABS, ANA)
        assert subject.nodes.list_children(folder_of(), ANA) == [HARD]
        for name in ("content", "abstract", "metadata", "created_at", "owner_space", "status"):
            assert getattr(after, name) == getattr(before, name)
        with pytest.raises(NodeNotFoundError):
            subject.read("tabs")

    @when(ON_THE_SEAM)
    def test_a_moved_node_leaves_no_file_behind(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.move_node(TABS, uri_of("style/tabs"), ANA)

        assert not any("preference" in key for key in subject.seam.files())

    def test_a_node_can_be_moved_to_another_owner(self, subject: Subject) -> None:
        target = "ctx://acme/agents/default/memories/pattern/tabs"
        subject.write("tabs", content="one")
        subject.nodes.move_node(TABS, target, ANA)
        after = subject.nodes.read_node(target, ANA)

        assert (after.content, after.owner_space) == ("one", "agent:default")

    def test_a_place_that_is_taken_is_refused(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("hard-tabs", content="theirs")
        for _ in ("active", "archived"):
            with subject.unchanged(), pytest.raises(NodeExistsError):
                subject.nodes.move_node(TABS, HARD, ANA)
            subject.nodes.archive_node(HARD, ANA)
            subject.nodes.unarchive_node(HARD, ANA)
            assert subject.read("hard-tabs").content == "theirs"
        subject.nodes.archive_node(HARD, ANA)
        with subject.unchanged(), pytest.raises(NodeExistsError):
            subject.nodes.move_node(TABS, HARD, ANA)

    def test_only_a_node_in_use_is_moved(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.nodes.archive_node(TABS, ANA)
        for start in (TABS, uri_of("other")):
            with subject.unchanged(), pytest.raises(NodeNotFoundError):
                subject.nodes.move_node(start, HARD, ANA)

    def test_a_node_is_moved_to_another_node_only(self, subject: Subject) -> None:
        subject.write("tabs")
        for target in (TABS, folder_of(), "ctx://acme/users/ana"):
            with subject.unchanged(), pytest.raises(InvalidValueError):
                subject.nodes.move_node(TABS, target, ANA)

    # ------------------------------------------------------------ what follows
    def test_the_edges_of_a_moved_node_start_at_its_new_name(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.write("tabs", relations=(edge("tabs", "spaces", "contradicts", 0.25),))
        subject.nodes.move_node(TABS, HARD, ANA)

        (found,) = subject.relations.get_edges(HARD, ANA)
        assert found.identity == (HARD, uri_of("spaces"), "contradicts")
        assert found.weight == 0.25

    def test_edges_to_a_moved_node_follow_it(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("spaces", relations=(edge("spaces", "tabs"),))
        before = subject.relations.get_edges(uri_of("spaces"), ANA)
        subject.nodes.move_node(TABS, HARD, ANA)
        (after,) = subject.relations.get_edges(uri_of("spaces"), ANA)

        assert after.identity == (uri_of("spaces"), HARD, "related")
        assert after.created_at == before[0].created_at
        assert subject.relations.get_incoming(HARD, ANA) == [after]

    def test_links_to_a_moved_node_follow_it_and_read_as_before(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write(
            "style/code",
            content="[[tabs]], [[tabs|them]], [[tabs#Why]] and [[preference/tabs]]; [[spaces]], "
            f"`[[tabs]]`\n\n| a | [[tabs]] | [[tabs\\|them]] |\n\n[[{TABS}]]\n",
        )
        subject.nodes.move_node(TABS, HARD, ANA)

        assert subject.read("style/code").content == (
            "[[preference/hard-tabs|tabs]], [[preference/hard-tabs|them]], "
            "[[preference/hard-tabs#Why|tabs]] and [[preference/hard-tabs|preference/tabs]]; "
            "[[spaces]], `[[tabs]]`\n\n"
            "| a | [[preference/hard-tabs\\|tabs]] | [[preference/hard-tabs\\|them]] |\n\n"
            "[[preference/hard-tabs]]\n"
        )
        assert [e.to_uri for e in subject.relations.get_edges(uri_of("style/code"), ANA)] == [HARD]

    def test_links_of_a_moved_node_lead_to_where_they_led(self, subject: Subject) -> None:
        subject.write("spaces", content="meant")
        subject.write("style/spaces", content="not meant")
        subject.write("tabs", content="[[spaces]]")
        subject.nodes.move_node(TABS, uri_of("style/tabs"), ANA)

        (found,) = subject.relations.get_edges(uri_of("style/tabs"), ANA)
        assert found.to_uri == uri_of("spaces")
        assert subject.read("style/tabs").content == "[[preference/spaces|spaces]]"

    def test_links_to_a_moved_skill_follow_it(self, subject: Subject) -> None:
        nodes = subject.nodes
        nodes.write_node(ContextNode(uri=f"{SKILL}/lint"), ANA)
        start = "ctx://acme/agents/default/memories/pattern/style"
        nodes.write_node(ContextNode(uri=start, content="[[lint]]"), ANA)
        nodes.write_node(ContextNode(uri=f"{SKILL}/format", content="[[lint]]"), ANA)
        nodes.move_node(f"{SKILL}/lint", f"{SKILL}/check", ANA)

        for follower in (start, f"{SKILL}/format"):
            (found,) = subject.relations.get_edges(follower, ANA)
            assert found.to_uri == f"{SKILL}/check"

    def test_a_node_may_take_the_place_that_it_led_to(self, subject: Subject) -> None:
        subject.write("hard-tabs")
        subject.write("tabs", relations=(edge("tabs", "hard-tabs"),))
        subject.nodes.delete_node(HARD, ANA)
        subject.nodes.move_node(TABS, HARD, ANA)

        assert subject.read("hard-tabs").relations == ()

    def test_what_the_caller_may_not_change_does_not_follow(self, subject: Subject) -> None:
        guide = "ctx://acme/resources/guide"
        subject.write("tabs")
        edges = (RelationEdge(guide, TABS, "related"),)
        subject.nodes.write_node(ContextNode(uri=guide, relations=edges), ADMIN)
        subject.nodes.move_node(TABS, HARD, ANA)

        assert subject.nodes.read_node(guide, ADMIN).version == 1
        assert not subject.relations.get_incoming(HARD, ADMIN)

    @when(ON_THE_SEAM)
    def test_a_move_is_done_wholly_or_not_at_all(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("spaces", content="[[tabs]]")
        before = subject.read("tabs"), subject.read("spaces")
        for changes in range(0, 11, 2):
            subject.seam.die_after(changes)
            with pytest.raises(Died):
                subject.nodes.move_node(TABS, HARD, ANA)
            subject.seam.work_again()
            subject.reopen()

            assert (subject.read("tabs"), subject.read("spaces")) == before
            assert not subject.nodes.exists(HARD, ANA)

    def test_a_move_registers_an_event(self, subject: Subject) -> None:
        subject.write("tabs")
        subject.write("spaces", content="[[tabs]]")
        subject.events()
        subject.nodes.move_node(TABS, HARD, ANA)
        pending = subject.outbox.list_pending("acme")

        assert [(event.event_type, uri) for uri, event in pending] == [
            (EventType.MOVE_NODE, HARD),
            (EventType.UPSERT_NODE, uri_of("spaces")),
        ]
        assert pending[0][1].payload["from_uri"] == TABS

    def test_a_place_that_was_left_can_be_used_again(self, subject: Subject) -> None:
        subject.write("tabs", content="old")
        subject.nodes.move_node(TABS, HARD, ANA)
        subject.nodes.write_node(memory("tabs", content="new"), ANA)
        subject.nodes.archive_node(TABS, ANA)

        assert subject.read("hard-tabs").content == "old"
        assert subject.nodes.list_children(folder_of(), ANA) == [HARD]
