"""Read, deleted, archived, taken back."""

import pytest

from perdure.errors import NodeNotFoundError
from perdure.model import EventType, NodeStatus
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

    # ------------------------------------------------------------ the index is told
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
