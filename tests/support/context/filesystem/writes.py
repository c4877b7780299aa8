"""Writes of nodes: their order, atomicity, events and versions."""

from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.context.contract import ContextFS
from perdure.errors import (
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    StorageFaultError,
    VersionMismatchError,
)
from perdure.model import EventType, NodeStatus
from perdure.model.values import MAX_CONTENT
from perdure.testing.requirement import requirement
from perdure.testing.suite import when
from tests.support.context.base import (
    ABSTRACT,
    ANA,
    CONTENT,
    META,
    ON_THE_SEAM,
    OVERVIEW,
    RELATIONS,
    ContextSuite,
    Subject,
    edge,
    few,
    memory,
    uri_of,
)
from tests.support.context.outbox.base import START
from tests.support.context.seam import Died

TABS = uri_of("tabs")
CHANGES = 5
"""How many files a node is."""


class WriteTests(ContextSuite):
    @requirement("003-protocols-structural", "003-contextfs-runtime-checkable")
    def test_it_has_the_shape_of_the_protocol(self, subject: Subject) -> None:
        assert isinstance(subject.nodes, ContextFS)
        assert not isinstance(subject.outbox, ContextFS)

    # ------------------------------------------------------------ what comes back
    @requirement("003-read-node-returns")
    def test_what_was_written_is_read(self, subject: Subject) -> None:
        subject.write("spaces")
        written = memory(
            "tabs",
            content="# Tabs\n\nUse tabs.\n",
            abstract="Prefers tabs.",
            overview="Tabs, in all files.",
            relations=(edge("tabs", "spaces", "contradicts", 0.25),),
            metadata={"source": "chat", "tags": ["style", {"weight": 0.5}], "count": 3},
        )
        subject.nodes.write_node(written, ANA)
        found = subject.read("tabs")

        for name in ("uri", "content", "abstract", "overview", "metadata", "version"):
            assert getattr(found, name) == getattr(written, name)
        assert [(e.identity, e.weight) for e in found.relations] == [
            (e.identity, e.weight) for e in written.relations
        ]
        assert found.status is NodeStatus.ACTIVE
        assert (found.owner_space, found.problems) == ("user:ana", ())

    def test_any_content_comes_back_to_the_letter(self, subject: Subject) -> None:
        numbers = count()

        @few()
        @given(st.text(max_size=50), st.sampled_from(["", "---\n", "---\na: 1\n---\n", "# A\r\n"]))
        @example("one\r\ntwo\rthree\n", "")
        @example("\ufeffé🗝\u2028", "---\r\n")
        @example("---", "---\n")
        def check(text: str, beginning: str) -> None:
            content = beginning + text
            found = subject.write(f"n{next(numbers)}", content=content)

            assert found.content == content
            assert found.frontmatter is None

        check()

    def test_the_longest_content_comes_back(self, subject: Subject) -> None:
        content = "é" * MAX_CONTENT

        assert subject.write("long", content=content).content == content

    def test_any_summary_comes_back_to_the_letter(self, subject: Subject) -> None:
        for number, text in enumerate(["", "\n", "---\n", "one\r\ntwo", " é🗝"]):
            found = subject.write(f"n{number}", abstract=text, overview=text)

            assert (found.abstract, found.overview) == (text, text)

    # ------------------------------------------------------------ where and in which order
    @when(ON_THE_SEAM)
    @requirement("003-contextfs-directory", "003-contextfs-files")
    def test_a_memory_is_five_files_in_the_folder_of_its_name(self, subject: Subject) -> None:
        subject.write("tabs")
        folder = "accounts/acme/users/ana/memories/preference/tabs"

        assert sorted(subject.seam.files()) == sorted(
            f"{folder}/{name}" for name in (CONTENT, RELATIONS, ABSTRACT, OVERVIEW, META)
        )

    @when(ON_THE_SEAM)
    @requirement(
        "003-write-node-content-first",
        "003-write-node-relations-second",
        "003-write-node-summaries-third",
        "003-write-node-meta-last",
        "003-write-node-order-strict",
    )
    def test_the_content_is_written_first_and_the_meta_last(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.seam.changed.clear()
        subject.write("tabs", content="one", abstract="one", overview="one")
        written = [key.rpartition("/")[2] for key in subject.seam.changed]
        subject.seam.changed.clear()
        relations = (edge("tabs", "spaces"),)
        subject.rewrite("tabs", content="2", abstract="2", overview="2", relations=relations)
        rewritten = [key.rpartition("/")[2] for key in subject.seam.changed]

        for order in (written, rewritten):
            assert order[:2] == [CONTENT, RELATIONS]
            assert sorted(order[2:4]) == [ABSTRACT, OVERVIEW]
            assert order[4:] == [META]
        assert '"ACTIVE"' in subject.seam.text(TABS, META)

    @when(ON_THE_SEAM)
    @requirement("003-write-node-torn-invisible", "003-write-node-order-strict")
    def test_an_interrupted_write_is_not_visible(self, subject: Subject) -> None:
        for changes in range(CHANGES):
            subject.seam.die_after(changes)
            with pytest.raises(Died):
                subject.write("tabs", content="one")
            subject.seam.work_again()

            self._refuse_half(subject)
            subject.reopen()
            self._refuse_half(subject)
        subject.write("tabs", content="two")

        assert subject.read("tabs").content == "two"

    def _refuse_half(self, subject: Subject) -> None:
        assert not subject.nodes.exists(TABS, ANA)
        with pytest.raises(NodeNotFoundError):
            subject.read("tabs")

    @when(ON_THE_SEAM)
    def test_an_interrupted_rewrite_leaves_what_was_there(self, subject: Subject) -> None:
        before = subject.write("tabs", content="one", abstract="one", overview="one")
        after = before.revised(content="two", abstract="two", overview="two")
        for changes in range(4):
            subject.seam.die_after(changes)
            with pytest.raises(Died):
                subject.nodes.write_node(after, ANA)
            subject.seam.work_again()

            assert subject.read("tabs") == before
            subject.reopen()
            assert subject.read("tabs") == before

    # ------------------------------------------------------------ events
    @requirement("003-write-node-registers-event")
    def test_a_write_registers_an_event(self, subject: Subject) -> None:
        subject.write("tabs", content="one")
        subject.rewrite("tabs", content="two")
        pending = subject.outbox.list_pending("acme")

        assert [event.event_type for _, event in pending] == [EventType.UPSERT_NODE] * 2
        assert [uri for uri, _ in pending] == [TABS, TABS]
        assert [event.payload["version"] for _, event in pending] == [1, 2]

    @when(ON_THE_SEAM)
    @requirement("003-write-node-registers-event", "003-outbox-register-write-after")
    def test_a_write_that_fails_changes_nothing_and_tells_nobody(self, subject: Subject) -> None:
        node = subject.write("tabs", content="one", abstract="one", overview="one")
        after = node.revised(content="two", abstract="two", overview="two")
        for changes in range(4):
            with subject.unchanged():
                subject.seam.fail_after(changes)
                with pytest.raises(StorageFaultError):
                    subject.nodes.write_node(after, ANA)
        for changes in range(CHANGES):
            with subject.unchanged():
                subject.seam.fail_after(changes)
                with pytest.raises(StorageFaultError):
                    subject.write("spaces", content="one")


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
