import math
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, ContextNode, WriteAction, WritePlan
from perdure.model.values import CUT

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TABS = "ctx://local/users/ana/memories/preference/tabs"
NEW = ContextNode(uri=TABS, content="Tabs.")
NEXT = NEW.revised(content="Tabs, always.")


def candidate(**fields: Any) -> CandidateMemory:  # noqa: ANN401 - the fields' own types
    text = {"category": "event", "slug": "rain", "content": "It rained.", "owner_space": "user:ana"}
    return CandidateMemory(**{**text, **fields})


class TestCandidateMemory:
    def test_only_content_and_owner_are_required(self) -> None:
        found = candidate()

        assert (found.when, found.who, found.where, found.quote) == (None, (), "", "")
        assert (found.speaker, found.confidence, found.metadata) == ("", 1.0, {})

    def test_it_may_say_when_who_where_and_what_shows_it(self) -> None:
        found = candidate(
            when=NOON, who=["Ana", "Bo"], where="Oslo", quote="It poured!", speaker="Ana"
        )

        assert (found.when, found.who, found.where) == (NOON, ("Ana", "Bo"), "Oslo")
        assert (found.quote, found.speaker) == ("It poured!", "Ana")

    def test_only_the_profile_needs_no_slug(self) -> None:
        assert candidate(category="profile", slug="").slug == ""
        with pytest.raises(InvalidValueError, match="is not a slug"):
            candidate(category="event", slug="")

    @pytest.mark.parametrize(
        ("field", "limit"),
        [
            *(("abstract", 200), ("overview", 5_000), ("content", 100_000)),
            *(("quote", 5_000), ("where", 200), ("speaker", 200)),
        ],
    )
    def test_each_text_has_its_limit(self, field: str, limit: int) -> None:
        assert getattr(candidate(**{field: "x" * limit}), field) == "x" * limit
        assert getattr(candidate(**{field: "x" * (limit + 1)}), field).endswith(CUT)
        with pytest.raises(InvalidValueError, match=f"the {field} has"):
            candidate(**{field: "x" * (limit * 11 // 10 + 1)})

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"category": ""}, {"category": "Event"}, {"category": None}, {"slug": "x" * 101}),
            *({"slug": "a b"}, {"slug": None}, {"category": "profile", "slug": None}),
            *({"content": ""}, {"content": " \n"}, {"content": None}, {"content": "\ud800"}),
            *({"confidence": -0.1}, {"confidence": 1.1}, {"confidence": math.nan}),
            *(
                {"confidence": True},
                {"confidence": False},
                {"confidence": "1"},
                {"confidence": None},
            ),
            *({"owner_space": ""}, {"owner_space": "ana"}, {"owner_space": "account:local"}),
            *({"when": "today"}, {"when": NOON.replace(tzinfo=None)}, {"where": None}),
            *(
                {"who": "Ana"},
                {"who": None},
                {"who": [None]},
                {"who": ["x" * 221]},
                {"who": {"Ana"}},
            ),
            *({"quote": None}, {"quote": "\ud800"}, {"speaker": 3}, {"metadata": {"a": {1}}}),
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            candidate(**wrong)


class TestWritePlan:
    @pytest.mark.parametrize(
        ("action", "node"),
        [
            (WriteAction.CREATE, NEW),
            (WriteAction.MERGE, NEXT),
            (WriteAction.APPEND, NEXT),
            (WriteAction.SKIP, None),
            (WriteAction.ARCHIVE, None),
        ],
    )
    def test_what_is_written_comes_with_its_node(
        self, action: WriteAction, node: ContextNode | None
    ) -> None:
        assert WritePlan(action=action, uri=TABS, reason="because", node=node).node == node

    @pytest.mark.parametrize(
        ("action", "node"),
        [
            *((WriteAction.CREATE, None), (WriteAction.MERGE, None), (WriteAction.APPEND, None)),
            *((WriteAction.SKIP, NEW), (WriteAction.ARCHIVE, NEXT)),
            *((WriteAction.CREATE, NEXT), (WriteAction.MERGE, NEW), (WriteAction.APPEND, NEW)),
            *(
                ("create", NEW),
                (None, NEW),
                (WriteAction.CREATE, "Tabs."),
                (WriteAction.SKIP, "Tabs."),
            ),
        ],
        ids=lambda each: ascii(each)[:20],
    )
    def test_no_other_plan_is_valid(self, action: Any, node: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match="Fix: "):
            WritePlan(action=action, uri=TABS, reason="because", node=node)

    @pytest.mark.parametrize("uri", [TABS + "s", "ctx://local/users/ana", "tabs", None])
    def test_it_is_for_the_place_of_its_node(self, uri: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match="Fix: "):
            WritePlan(action=WriteAction.CREATE, uri=uri, reason="because", node=NEW)

    def test_a_plan_to_skip_is_for_a_node_too(self) -> None:
        with pytest.raises(InvalidValueError, match=r"is a folder\. Fix: "):
            WritePlan(action=WriteAction.SKIP, uri="ctx://local/users/ana", reason="because")

    @pytest.mark.parametrize("wrong", [None, 3, "\ud800", "x" * 5_501])
    def test_its_reason_is_a_text(self, wrong: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match="Fix: "):
            WritePlan(action=WriteAction.SKIP, uri=TABS, reason=wrong)

    def test_the_actions_are_the_five_that_were_agreed(self) -> None:
        assert {each.value for each in WriteAction} == {
            "create",
            "merge",
            "append",
            "skip",
            "archive",
        }
