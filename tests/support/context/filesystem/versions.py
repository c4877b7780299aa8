"""Each version follows the one before, and keeps what it does not name."""

import pytest

from perdure.errors import InvalidValueError, NodeExistsError, VersionMismatchError
from perdure.testing.suite import when
from tests.support.context.base import (
    ANA,
    META,
    ON_THE_SEAM,
    ContextSuite,
    Subject,
    edge,
    memory,
    uri_of,
)
from tests.support.context.outbox.base import START
from tests.support.context.seam import Died

TABS = uri_of("tabs")


class VersionTests(ContextSuite):
    def test_versions_are_counted_from_one(self, subject: Subject) -> None:
        assert subject.write("tabs").version == 1
        assert subject.rewrite("tabs", content="two").version == 2
        assert subject.rewrite("tabs", content="three").version == 3

    def test_a_node_is_created_only_once(self, subject: Subject) -> None:
        before = subject.write("tabs", content="one")
        with subject.unchanged(), pytest.raises(NodeExistsError):
            subject.write("tabs", content="two")

        assert subject.read("tabs") == before

    def test_nothing_is_created_over_an_archived_node(self, subject: Subject) -> None:
        node = subject.write("tabs", content="one")
        subject.nodes.archive_node(TABS, ANA)
        for version in (1, 2, 3):
            with subject.unchanged(), pytest.raises(NodeExistsError):
                subject.nodes.write_node(memory("tabs", version=version), ANA)
        subject.nodes.unarchive_node(TABS, ANA)

        assert subject.read("tabs").content == node.content

    def test_a_version_must_follow_the_one_that_is_there(self, subject: Subject) -> None:
        first = subject.write("tabs", content="one")
        subject.rewrite("tabs", content="two")
        for stale in (first.revised(content="lost"), first.revised(version=4), first):
            with subject.unchanged(), pytest.raises((VersionMismatchError, NodeExistsError)):
                subject.nodes.write_node(stale, ANA)
        with pytest.raises(VersionMismatchError):
            subject.nodes.write_node(first.revised(content="lost"), ANA)

        assert subject.read("tabs").content == "two"

    def test_a_later_version_needs_an_earlier_one(self, subject: Subject) -> None:
        with subject.unchanged(), pytest.raises(VersionMismatchError):
            subject.nodes.write_node(memory("tabs", version=2), ANA)

        assert not subject.nodes.exists(TABS, ANA)

    # ------------------------------------------------------------ what stays
    def test_metadata_that_a_rewrite_does_not_name_stays(self, subject: Subject) -> None:
        subject.write("tabs", metadata={"source": "chat", "tags": ["a"]})
        subject.nodes.write_node(memory("tabs", version=2, metadata={"tags": ["b"]}), ANA)

        assert subject.read("tabs").metadata == {"source": "chat", "tags": ("b",)}

    def test_none_takes_a_key_of_the_metadata_away(self, subject: Subject) -> None:
        subject.write("tabs", metadata={"source": "chat", "tags": "a", "other": None})
        found = subject.rewrite("tabs", metadata={"source": None})

        assert found.metadata == {"tags": "a"}

    def test_metadata_survives_every_verb(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.write("tabs", metadata={"source": "chat"})
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.unarchive_node(TABS, ANA)
        subject.relations.upsert_edges([edge("tabs", "spaces")], ANA)
        subject.nodes.move_node(uri_of("spaces"), uri_of("blanks"), ANA)
        subject.nodes.move_node(TABS, uri_of("style/tabs"), ANA)

        assert subject.read("style/tabs").metadata == {"source": "chat"}

    def test_the_time_of_creation_stays_and_that_of_the_update_moves(
        self, subject: Subject
    ) -> None:
        created = subject.write("tabs")
        subject.clock.go_on(60)
        later = subject.clock()
        rewritten = subject.rewrite("tabs", content="two", created_at=later, updated_at=START)

        assert (created.created_at, created.updated_at) == (START, START)
        assert (rewritten.created_at, rewritten.updated_at) == (START, later)

    # ------------------------------------------------------------ several at once
    @when(ON_THE_SEAM)
    def test_many_nodes_are_written_together(self, subject: Subject) -> None:
        nodes = [memory(slug, content=slug) for slug in ("a", "b", "c")]
        subject.editable.write_nodes(nodes, ANA)

        assert [subject.read(slug).content for slug in "abc"] == ["a", "b", "c"]
        assert sorted(uri for _, uri in subject.events()) == [uri_of(slug) for slug in "abc"]

    @when(ON_THE_SEAM)
    def test_of_many_nodes_all_are_written_or_none(self, subject: Subject) -> None:
        subject.write("c")
        nodes = [memory(slug) for slug in ("a", "b", "c")]
        with subject.unchanged(), pytest.raises(NodeExistsError):
            subject.editable.write_nodes(nodes, ANA)
        for changes in (1, 5, 9):
            subject.seam.die_after(changes)
            with pytest.raises(Died):
                subject.editable.write_nodes(nodes[:2], ANA)
            subject.seam.work_again()
            subject.reopen()
            assert not any(subject.nodes.exists(uri_of(slug), ANA) for slug in "ab")

    @when(ON_THE_SEAM)
    def test_one_node_can_not_be_written_twice_at_once(self, subject: Subject) -> None:
        with subject.unchanged(), pytest.raises(InvalidValueError):
            subject.editable.write_nodes([memory("a"), memory("a", content="two")], ANA)

    @when(ON_THE_SEAM)
    def test_two_who_write_at_once_do_not_overwrite_each_other(self, subject: Subject) -> None:
        """Somebody else's version lands after we looked, and before we write."""
        node = subject.write("tabs", content="one")
        theirs = subject.seam.text(TABS, META).replace('"version": 1', '"version": 2')
        subject.seam.before_next(lambda: subject.seam.edit(TABS, META, theirs))
        with pytest.raises(VersionMismatchError):
            subject.nodes.write_node(node.revised(content="ours"), ANA)

        assert subject.read("tabs").version == 2
        assert subject.read("tabs").content == "one"
