import math
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from perdure.errors import InvalidUriError, InvalidValueError
from perdure.model import MENTIONS, ContextNode, ContextType, NodeStatus, RelationEdge, Uri
from perdure.model.values import CUT

TABS = "ctx://local/users/ana/memories/preference/tabs"
SPACES = "ctx://local/users/ana/memories/preference/spaces"
MESSAGE = "ctx://local/sessions/s/1"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
EDGE = RelationEdge(TABS, SPACES, "contradicts")


def node(uri: str = TABS, **fields: Any) -> ContextNode:  # noqa: ANN401 - the fields' own types
    return ContextNode(uri=uri, **fields)


class TestContextNode:
    def test_a_new_node_is_pending_at_version_one_and_its_owners(self) -> None:
        new = node()

        assert (new.version, new.status, new.owner_space) == (1, NodeStatus.PENDING, "user:ana")
        assert (new.content, new.relations, new.metadata, new.frontmatter) == ("", (), {}, None)

    def test_what_the_uri_implies_is_not_stated_twice(self) -> None:
        new = node()

        assert new.place == Uri.parse(TABS)
        assert (new.account_id, new.category, new.level) == ("local", "preference", 5)
        assert new.context_type is ContextType.MEMORY

    @pytest.mark.parametrize(
        ("uri", "kind"),
        [
            ("ctx://a/users/b/memories/skill/x", ContextType.MEMORY),
            ("ctx://a/users/skills/memories/skills/x", ContextType.MEMORY),
            ("ctx://a/agents/b/memories/profile", ContextType.MEMORY),
            ("ctx://a/agents/b/skills/x", ContextType.SKILL),
            ("ctx://a/resources/x", ContextType.RESOURCE),
            ("ctx://a/resources/b/skills/x", ContextType.RESOURCE),
            ("ctx://a/sessions/resources/skills/x", ContextType.MEMORY),
        ],
    )
    def test_its_place_says_what_it_is(self, uri: str, kind: ContextType) -> None:
        assert node(uri).context_type is kind

    @pytest.mark.parametrize(
        "uri",
        ["ctx://a", "ctx://a/users/b/memories/event", "ctx://a/sessions/s", "ctx://a/resources"],
    )
    def test_a_folder_is_no_node(self, uri: str) -> None:
        with pytest.raises(InvalidValueError, match=r"is a folder of nodes\. Fix: "):
            node(uri)

    @pytest.mark.parametrize("uri", ["", "tabs", "ctx://a/users/b/memories/E/x", None, 3])
    def test_it_has_a_place(self, uri: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidUriError):
            node(uri)

    @pytest.mark.parametrize(
        ("field", "limit"), [("abstract", 200), ("overview", 5_000), ("content", 100_000)]
    )
    def test_each_text_has_its_limit(self, field: str, limit: int) -> None:
        assert getattr(node(**{field: "x" * limit}), field) == "x" * limit
        for length in (limit + 1, limit * 11 // 10):
            cut = getattr(node(**{field: "x" * length}), field)
            assert len(cut) == limit
            assert cut.endswith(CUT)
        with pytest.raises(InvalidValueError, match=f"the {field} has .* Fix: "):
            node(**{field: "x" * (limit * 11 // 10 + 1)})

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"content": None}, {"content": b"x"}, {"abstract": 3}, {"overview": ["x"]}),
            *({"content": "\ud800"}, {"abstract": "\udfff"}, {"overview": "a\ud800"}),
            *({"frontmatter": 3}, {"frontmatter": "\ud800"}, {"frontmatter": b"x"}),
            *({"metadata": None}, {"metadata": {"a": {1}}}, {"metadata": {"a": math.nan}}),
            *({"status": "ACTIVE"}, {"status": None}, {"basis": b""}, {"basis": None}),
            *({"version": 0}, {"version": True}, {"version": 1.0}, {"version": "1"}),
            *(
                {"relations": None},
                {"relations": "edges"},
                {"relations": [TABS]},
                {"relations": {}},
            ),
            *({"created_at": None}, {"created_at": NOON.replace(tzinfo=None)}, {"updated_at": 0}),
            *({"owner_space": "user:bo"}, {"owner_space": "ana"}, {"owner_space": None}),
            *({"problems": (3,)}, {"problems": ("\ud800",)}),
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            node(**wrong)
        with pytest.raises(InvalidValueError, match="Fix: "):
            node().revised(**wrong)

    def test_times_are_in_utc(self) -> None:
        east = NOON.astimezone(timezone(timedelta(hours=9)))

        assert node(created_at=east, updated_at=east).created_at.tzinfo is UTC
        assert node(created_at=east, updated_at=east).updated_at.tzinfo is UTC

    def test_the_owner_of_a_session_is_stated_and_others_are_in_the_uri(self) -> None:
        assert node(MESSAGE, owner_space="agent:coder").owner_space == "agent:coder"
        assert node(MESSAGE).owner_space == ""
        assert node("ctx://local/resources/x").owner_space == "account:local"
        for wrong in ("ana", "user:", "account:local", "group:x"):
            with pytest.raises(InvalidValueError, match="Fix: "):
                node(MESSAGE, owner_space=wrong)

    def test_a_revision_is_the_next_version_with_all_else_unchanged(self) -> None:
        first = node(content="one", metadata={"a": [1]}, relations=[EDGE], created_at=NOON)

        second = first.revised(content="two")

        assert (second.version, second.content) == (2, "two")
        assert (second.metadata, second.relations) == (first.metadata, (EDGE,))
        assert second.created_at == NOON
        assert (first.version, first.content) == (1, "one")
        assert first.revised(version=7).version == 7

    def test_what_it_was_read_from_does_not_make_it_another(self) -> None:
        assert node(basis="f01") == node(basis="f02", problems=["content.md: broken"])
        assert node(basis="f01").revised().basis == "f01"
        assert node(problems=["x"]).problems == ("x",)


class TestEdgesOfANode:
    def test_they_start_at_it(self) -> None:
        with pytest.raises(InvalidValueError, match="Fix: give it to that node"):
            node(SPACES, relations=(EDGE,))

    def test_of_two_alike_the_last_counts(self) -> None:
        light = RelationEdge(TABS, SPACES, "contradicts", 0.1)
        other = RelationEdge(TABS, SPACES, "follows")

        assert node(relations=[EDGE, other, light]).relations == (light, other)

    def test_later_changes_of_the_list_do_not_show(self) -> None:
        edges = [EDGE]

        stored = node(relations=edges)
        edges.clear()

        assert stored.relations == (EDGE,)


class TestTitle:
    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ("# Tabs\ntext", "Tabs"),
            ("text\n\n###   Tabs  over\tspaces \r\n", "Tabs over spaces"),
            ("# Tabs ##", "Tabs"),
            ("# C#", "C#"),
            ("# C# #", "C#"),
            ("#hashtag\n# Tabs", "Tabs"),
            ("####### seven\n# Tabs", "Tabs"),
            ("```sh\n# a comment\n```\n# Tabs", "Tabs"),
            ("~~~~\n# a\n~~~\n# b\n~~~~\n# Tabs", "Tabs"),
            ("```x``` inline\n# Tabs", "Tabs"),
            ("```\n# never closed", "in short"),
            ("#   \n# Tabs", "Tabs"),
            ("# ##\n", "in short"),
            ("no heading", "in short"),
            ("# " + "x" * 121, "x" * 119 + "\u2026"),
        ],
    )
    def test_it_is_the_first_heading_else_the_abstract(self, content: str, title: str) -> None:
        assert node(content=content, abstract="\n in  short\nmore").title == title

    def test_without_both_it_is_the_name(self) -> None:
        assert node("ctx://a/users/b/memories/event/red_hot-tea").title == "red hot tea"

    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ("Eats porridge daily.", "Eats porridge daily."),
            ("\n  Eats\tporridge \nevery day.", "Eats porridge"),
            ("- [ ] buy **milk**\n- eggs", "buy **milk**"),
            ("> 1. So she said", "So she said"),
            ("```python\nprint()\n```\nThat.", "print()"),
            ("---\n***\nThen", "Then"),
            ("a" * 59 + " bcd", "a" * 59 + "…"),
            ("word " * 20, "word " * 11 + "word…"),
            ("x" * 200, "x" * 59 + "…"),
            ("***", "tea"),
        ],
    )
    def test_without_both_it_is_how_the_text_begins(self, content: str, title: str) -> None:
        found = node("ctx://a/users/b/memories/event/tea", content=content).title

        assert found == title
        assert len(found) <= 60

    @pytest.mark.parametrize(
        "content",
        [
            "# a" + " " * 99_000 + "b",
            "# " + "#" * 99_000 + "b",
            "#" + " " * 99_000,
            "```\n" * 24_000,
        ],
        ids=["spaces", "hashes", "blank", "fences"],
    )
    def test_no_content_makes_it_slow(self, content: str) -> None:
        started = time.process_time()

        assert len(node(content=content).title) <= 120
        assert time.process_time() - started < 2


class TestRelationEdge:
    def test_start_target_and_type_tell_it_from_others(self) -> None:
        assert EDGE.identity == (TABS, SPACES, "contradicts")
        assert EDGE.weight == 1.0
        assert RelationEdge(TABS, SPACES, MENTIONS, 0).weight == 0.0

    @pytest.mark.parametrize(
        "wrong",
        [
            *((TABS, "ctx://other/resources/x", "follows"), (TABS, TABS, "follows")),
            *((TABS, "ctx://local/users/ana", "follows"), ("ctx://local", TABS, "follows")),
            *((TABS, "spaces", "follows"), (TABS, None, "follows"), ([], TABS, "follows")),
            *((TABS, SPACES, "Follows"), (TABS, SPACES, ""), (TABS, SPACES, None)),
            *((TABS, SPACES, "x", -0.1), (TABS, SPACES, "x", 1.1), (TABS, SPACES, "x", math.nan)),
            *((TABS, SPACES, "x", True), (TABS, SPACES, "x", "1"), (TABS, SPACES, "x", None)),
            *((TABS, SPACES, "x", 1, None), (TABS, SPACES, "x", 1, "x" * 221)),
            *((TABS, SPACES, "x", 1, "\ud800"), (TABS, SPACES, "x", 1, "", None)),
            (TABS, SPACES, "x", 1, "", NOON.replace(tzinfo=None)),
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: tuple[Any, ...]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            RelationEdge(*wrong)

    def test_its_reason_is_as_long_as_an_abstract(self) -> None:
        assert len(RelationEdge(TABS, SPACES, "x", reason="r" * 220).reason) == 200

    def test_its_time_is_in_utc(self) -> None:
        east = NOON.astimezone(timezone(timedelta(hours=9)))

        assert RelationEdge(TABS, SPACES, "x", created_at=east).created_at.tzinfo is UTC
