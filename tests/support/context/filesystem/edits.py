"""What people do to the files is theirs: it is picked up, counted as a version, and kept."""

import pytest

from perdure.errors import BrokenNodeError, VersionMismatchError
from perdure.model import ContextNode, EventType
from perdure.testing.suite import when
from tests.support.context.base import (
    ABSTRACT,
    ANA,
    CONTENT,
    KEEPS_HISTORY,
    META,
    ON_THE_SEAM,
    OVERVIEW,
    RELATIONS,
    ContextSuite,
    Subject,
    edge,
    uri_of,
)

TABS = uri_of("tabs")
OWN = "title: My own\n# a comment\ntags: [a, 'b']\n"


class EditTests(ContextSuite):
    # ------------------------------------------------------------ frontmatter
    @when(ON_THE_SEAM)
    def test_a_file_has_the_content_and_nothing_else(self, subject: Subject) -> None:
        node = subject.write("tabs", content='# Tabs: "hard" ones\n\nText.\n')

        assert subject.seam.text(TABS, CONTENT) == node.content
        assert (node.content, node.frontmatter) == ('# Tabs: "hard" ones\n\nText.\n', None)

    @when(ON_THE_SEAM)
    def test_added_lines_stay(self, subject: Subject) -> None:
        subject.write("tabs", content="# One")
        subject.seam.replace(TABS, CONTENT, "# One", "---\ntags: [a] # mine\n---\n# One")
        found = subject.read("tabs")
        subject.rewrite("tabs", content="# Two")

        assert found.frontmatter == "tags: [a] # mine\n"
        assert subject.seam.text(TABS, CONTENT) == "---\ntags: [a] # mine\n---\n# Two"

    @when(ON_THE_SEAM)
    def test_lines_of_the_user_are_preserved_exactly(self, subject: Subject) -> None:
        for number, lines in enumerate([OWN, OWN.replace("\n", "\r\n"), "# only a comment\n"]):
            slug = f"n{number}"
            subject.write(slug, content="# One")
            subject.seam.edit(uri_of(slug), CONTENT, f"---\n{lines}---\n# One")
            found = subject.read(slug)
            subject.rewrite(slug, content="# Two", metadata={"a": 1})

            assert (found.frontmatter, found.content, found.version) == (lines, "# One", 2)
            assert subject.seam.text(uri_of(slug), CONTENT) == f"---\n{lines}---\n# Two"
            assert subject.read(slug).problems == ()

    @when(ON_THE_SEAM)
    def test_fences_may_end_as_an_editor_ends_lines(self, subject: Subject) -> None:
        subject.write("tabs", content="# One\n")
        for text in (
            "---\r\ntitle: x\r\n---\r\n# Two\r\n",
            "--- \ntitle: x\n---\t\n# Two\r\n",
            "\ufeff---\ntitle: x\n---\n# Two\r\n",
        ):
            subject.seam.edit(TABS, CONTENT, text)
            found = subject.read("tabs")

            assert found.content == "# Two\r\n"
            assert (found.frontmatter or "").strip() == "title: x"
        subject.seam.edit(TABS, CONTENT, "---\ntitle: x\n---")

        assert subject.read("tabs").content == ""

    @when(ON_THE_SEAM)
    def test_frontmatter_that_was_taken_away_stays_away(self, subject: Subject) -> None:
        subject.write("tabs", content="# One")
        subject.seam.edit(TABS, CONTENT, "# Mine")
        found = subject.read("tabs")
        rewritten = subject.rewrite("tabs", content="# Two")

        assert (found.content, found.version) == ("# Mine", 2)
        assert subject.seam.text(TABS, CONTENT) == "# Two"
        assert rewritten.content == "# Two"
        assert subject.rewrite("tabs", content="---\na\n---\n").content == "---\na\n---\n"

    @when(ON_THE_SEAM)
    def test_a_writer_may_set_the_frontmatter(self, subject: Subject) -> None:
        subject.write("tabs", content="one", frontmatter="a: 1")
        subject.write("spaces", content="one")
        subject.rewrite("spaces", frontmatter="b: 2\n")

        assert subject.seam.text(TABS, CONTENT) == "---\na: 1\n---\none"
        assert subject.seam.text(uri_of("spaces"), CONTENT) == "---\nb: 2\n---\none"
        assert subject.read("tabs").frontmatter == "a: 1\n"

    @when(ON_THE_SEAM)
    def test_frontmatter_that_nobody_could_read_is_refused(self, subject: Subject) -> None:
        node = subject.write("tabs", content="one")
        for lines in (
            "a: [",
            "- a\n- b",
            "just text",
            "---\na: 1",
            "a: 1\n---\nb: 2",
            "a: 1\n--- \n",
        ):
            with subject.unchanged(), pytest.raises(ValueError, match="frontmatter"):
                subject.nodes.write_node(node.revised(frontmatter=lines), ANA)
            with subject.unchanged(), pytest.raises(ValueError, match="frontmatter"):
                subject.write("spaces", frontmatter=lines)

    # ------------------------------------------------------------ texts
    @when(ON_THE_SEAM)
    def test_each_edited_text_is_picked_up(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.write("tabs", content="one", abstract="one", overview="one")
        subject.seam.replace(TABS, CONTENT, "one", "mine")
        subject.seam.edit(TABS, ABSTRACT, "my abstract")
        subject.seam.edit(TABS, OVERVIEW, "my overview\r\n")
        subject.write("other", relations=(edge("other", "spaces", "contradicts"),))
        subject.seam.edit(TABS, RELATIONS, subject.seam.text(uri_of("other"), RELATIONS))
        found = subject.read("tabs")

        assert (found.content, found.abstract, found.overview) == (
            "mine",
            "my abstract",
            "my overview\r\n",
        )
        assert [e.identity for e in found.relations] == [
            (TABS, uri_of("spaces"), "contradicts"),
        ]
        assert (found.version, found.problems) == (2, ())

    @when(ON_THE_SEAM)
    def test_summaries_and_edges_may_be_taken_away(self, subject: Subject) -> None:
        subject.write("spaces")
        relations = (edge("tabs", "spaces"),)
        subject.write("tabs", abstract="one", overview="one", relations=relations)
        for name in (ABSTRACT, OVERVIEW, RELATIONS):
            subject.seam.take_away(TABS, name)
        found = subject.read("tabs")

        assert (found.abstract, found.overview, found.relations) == ("", "", ())
        assert (found.version, found.problems) == (2, ())

    @when(ON_THE_SEAM)
    def test_who_did_not_see_an_edit_can_not_overwrite_it(self, subject: Subject) -> None:
        stale = subject.write("tabs", content="one")
        for name in (CONTENT, ABSTRACT):
            subject.seam.edit(TABS, name, "mine")
            with subject.unchanged(), pytest.raises(VersionMismatchError):
                subject.nodes.write_node(stale.revised(content="lost"), ANA)
        for name in (CONTENT, ABSTRACT, OVERVIEW):
            seen = subject.read("tabs")
            subject.seam.edit(TABS, name, "mine again")
            with subject.unchanged(), pytest.raises(VersionMismatchError):
                subject.nodes.write_node(seen.revised(content="lost"), ANA)

        assert subject.read("tabs").content == "mine again"

    @when(ON_THE_SEAM)
    def test_an_edit_survives_rewrites_of_the_rest(self, subject: Subject) -> None:
        subject.write("spaces")
        subject.write("tabs", content="one", abstract="one", metadata={"a": 1})
        subject.seam.replace(TABS, CONTENT, "one", "mine")
        subject.seam.edit(TABS, ABSTRACT, "mine")
        subject.relations.upsert_edges([edge("tabs", "spaces")], ANA)
        subject.rewrite("tabs", metadata={"b": 2})
        subject.nodes.archive_node(TABS, ANA)
        subject.nodes.unarchive_node(TABS, ANA)
        subject.nodes.move_node(TABS, uri_of("hard"), ANA)
        found = subject.read("hard")

        assert (found.content, found.abstract) == ("mine", "mine")
        assert found.metadata == {"a": 1, "b": 2}
        assert len(found.relations) == 1

    @when(ON_THE_SEAM)
    def test_an_edit_can_be_taken_back_by_who_saw_it(self, subject: Subject) -> None:
        subject.write("tabs", content="one", abstract="one")
        subject.seam.replace(TABS, CONTENT, "one", "mine")
        subject.seam.edit(TABS, ABSTRACT, "mine")
        found = subject.rewrite("tabs", content="one", abstract="one")

        assert (found.content, found.abstract, found.version) == ("one", "one", 3)
        assert subject.seam.text(TABS, ABSTRACT) == "one"

    @when(ON_THE_SEAM)
    def test_an_edit_can_be_adopted(self, subject: Subject) -> None:
        subject.write("tabs", content="one")
        assert not subject.editable.adopt(TABS, ANA)
        subject.events()
        subject.seam.replace(TABS, CONTENT, "one", "mine")
        before = subject.read("tabs")
        subject.clock.go_on(60)

        assert subject.editable.adopt(TABS, ANA)
        assert subject.events() == [(EventType.UPSERT_NODE, TABS)]
        assert not subject.editable.adopt(TABS, ANA)
        after = subject.read("tabs")
        assert (after.content, after.version) == (before.content, before.version) == ("mine", 2)
        assert after.updated_at == subject.clock()

    # ------------------------------------------------------------ what was broken
    @when(ON_THE_SEAM)
    def test_a_broken_text_counts_as_it_was_before(self, subject: Subject) -> None:
        for number, (name, text) in enumerate(
            [
                (CONTENT, "x" * 100_001),
                (ABSTRACT, "x" * 201),
                (OVERVIEW, "x" * 5_001),
                (RELATIONS, "["),
                (RELATIONS, "{}"),
                (RELATIONS, '[{"to": "ctx://other/resources/x", "type": "related"}]'),
                (RELATIONS, '[{"to": "x", "type": 1, "weight": 7}]'),
            ]
        ):
            slug = f"n{number}"
            before = subject.write(slug, content="one", abstract="one")
            subject.seam.edit(uri_of(slug), name, text)
            self._see_it_broken(subject, slug, name, before)

    @when(ON_THE_SEAM)
    def test_a_content_whose_frontmatter_is_broken_is_readable(self, subject: Subject) -> None:
        for number, text in enumerate(
            ("---\ntitle: x\ntwo", "---\na: [\n---\ntwo", "---\n- a\n---\ntwo")
        ):
            slug = f"n{number}"
            subject.write(slug, content="one")
            subject.seam.edit(uri_of(slug), CONTENT, text)
            found = subject.read(slug)

            assert found.content.endswith("two")
            assert subject.seam.text(uri_of(slug), CONTENT) == text

    @when(ON_THE_SEAM)
    def test_a_part_that_is_no_text_is_as_it_was_before(self, subject: Subject) -> None:
        for slug, name in (("a", CONTENT), ("b", ABSTRACT), ("c", RELATIONS)):
            before = subject.write(slug, content="one", abstract="one")
            subject.seam.garble(uri_of(slug), name)
            self._see_it_broken(subject, slug, name, before)

    @when(ON_THE_SEAM)
    def test_a_content_that_is_gone_is_as_it_was_before(self, subject: Subject) -> None:
        before = subject.write("tabs", content="one")
        subject.seam.take_away(TABS, CONTENT)
        self._see_it_broken(subject, "tabs", CONTENT, before)

    @when(ON_THE_SEAM)
    def test_a_meta_that_nobody_understands_is_a_broken_node(self, subject: Subject) -> None:
        subject.write("tabs")
        good = subject.seam.text(TABS, META)
        for text in (
            "",
            "{",
            "[]",
            good.replace('"ACTIVE"', '"WELL"'),
            good.replace('"version": 1', '"version": 0'),
            good.replace('"metadata": {}', '"metadata": {"a": NaN}'),
            good.replace('"metadata": {}', '"metadata": {"a": 1, "a": 2}'),
            good.replace('"format": 1', '"format": 2'),
        ):
            assert text != good
            subject.seam.edit(TABS, META, text)
            with pytest.raises(BrokenNodeError):
                subject.read("tabs")
            assert subject.relations.get_edges(TABS, ANA) == []
        subject.seam.edit(TABS, META, good)

        assert subject.read("tabs").version == 1

    @when(ON_THE_SEAM)
    def test_files_that_are_no_node_are_not_overwritten(self, subject: Subject) -> None:
        subject.seam.edit(TABS, CONTENT, "somebody's own")
        with subject.unchanged(), pytest.raises(BrokenNodeError):
            subject.write("tabs")
        subject.write("spaces")
        with subject.unchanged(), pytest.raises(BrokenNodeError):
            subject.nodes.move_node(uri_of("spaces"), TABS, ANA)

        assert not subject.nodes.exists(TABS, ANA)

    def _see_it_broken(self, subject: Subject, slug: str, name: str, before: ContextNode) -> None:
        """Read the part as it was, if there is a history; else the node is broken."""
        if KEEPS_HISTORY not in self.promises:
            with pytest.raises(BrokenNodeError, match=name):
                subject.read(slug)
            return
        found = subject.read(slug)
        assert found == before
        assert len(found.problems) == 1
        assert found.problems[0].startswith(f"{name}: ")
        assert "Fix: " in found.problems[0]
