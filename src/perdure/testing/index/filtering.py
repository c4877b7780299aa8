"""What filters let through: all of it, and nothing else."""

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.model.values import JSON
from perdure.testing.index.base import (
    EAST,
    EVERYONE,
    NORTH,
    IndexBase,
    found_by_any,
    near,
    record,
    said,
    uri_of,
)
from perdure.testing.requirement import requirement

FILED = ("context_type", "category", "session_id", "project", "parent_uri")
MARCH = "2026-03-01T00:00:00+00:00"
NOT_UNDERSTOOD: tuple[dict[str, JSON], ...] = (
    {"colour": "red"},
    {"valid_from": MARCH},
    {"Category": "x"},
    {"category": None},
    {"category": True},
    {"category": {"in": ["x"]}},
    {"category": ["x", ["y"]]},
    {"category": ["x", None]},
    {"level": True},
    {"level": "1"},
    {"level": 3},
    {"valid_at": "yesterday"},
    {"valid_at": "2026-03-01T00:00:00"},
    {"valid_at": 5},
    {"owner_space": []},
    {"owner_space": None},
    {"account_id": ["acme"]},
    {"account_id": ""},
)
NOT_TOLD: tuple[dict[str, JSON], ...] = (
    {"colour": "red"},
    {"category": None},
    {"category": ["x", "y"]},
    {"session_id": 5},
    {"valid_from": "2026-03-01"},
    {"valid_until": ""},
)


def found(index: KeptIndex, **filters: JSON) -> list[str]:
    """Return what all searches find alike, in the order of ids."""
    by_vector, by_text, below = found_by_any(index, "tea", EVERYONE | filters, 100)
    assert sorted(by_vector) == sorted(by_text) == sorted(below)
    return sorted(by_vector)


def put_filed(index: KeptIndex, **filed: dict[str, JSON]) -> None:
    index.upsert([record(id_, text="tea", filters=each) for id_, each in filed.items()])


class FilterTests(IndexBase):
    @requirement("003-index-search-filters")
    def test_only_what_is_filed_under_a_value_is_found(self, index: KeptIndex) -> None:
        for name in FILED:
            put_filed(index, a={name: "x"}, b={name: "X"}, c={name: ""}, d={}, e={name: "x"})

            assert found(index, **{name: "x"}) == ["a", "e"], name
            assert found(index, **{name: ["X", "", "y"]}) == ["b", "c"], name
            assert found(index, **{name: "y"}) == [], name
            assert found(index, **{name: []}) == [], name

    @requirement("003-index-search-filters")
    def test_uri_and_level_are_filters_too(self, index: KeptIndex) -> None:
        index.upsert(
            [
                record(f"{slug}{level}", uri_of(slug), "tea", level)
                for slug in ("one", "two")
                for level in (0, 1, 2)
            ]
        )

        assert near(index, level=1) == said(index, "tea", level=1) == ["one1", "two1"]
        assert near(index, level=[0, 2], uri=uri_of("two")) == ["two0", "two2"]
        assert said(index, "tea", level=[0, 2], uri=uri_of("two")) == ["two0", "two2"]
        assert near(index, level=[]) == said(index, "tea", uri=[]) == []

    def test_all_filters_apply_at_once(self, index: KeptIndex) -> None:
        put_filed(
            index,
            a={"category": "x", "session_id": "s"},
            b={"category": "x", "session_id": "t"},
            c={"category": "y", "session_id": "s"},
        )

        assert found(index, category="x", session_id="s") == ["a"]
        assert found(index, category=["x", "y"], session_id="s") == ["a", "c"]
        assert found(index, category="x", session_id=[]) == []

    @requirement("003-index-search-filters")
    def test_the_best_of_what_is_let_through_are_found_whatever_else_there_is(
        self, index: KeptIndex
    ) -> None:
        others = [
            record(f"o{number}", text="tea tea tea", filters={"category": "other"})
            for number in range(30)
        ]
        mine = [
            record(id_, text="some tea", vector=(1.0, 0.5, 0.0), filters={"category": "mine"})
            for id_ in ("b", "a", "c")
        ]
        index.upsert([*others, *mine])

        assert found_by_any(index, "tea", EVERYONE | {"category": "mine"}, 2) == [["a", "b"]] * 3

    @requirement("003-index-search-filters")
    def test_nobody_finds_what_another_owner_has(self, index: KeptIndex) -> None:
        index.upsert([record("ana", uri_of("x", "ana"), "tea"), record("bob", uri_of("x", "bob"))])
        index.upsert([record("agent", "ctx://acme/agents/ana/skills/x", "tea")])

        assert near(index, owner_space="user:ana") == ["ana"]
        assert said(index, "tea", "text", owner_space="user:ana") == ["ana"]
        assert near(index, owner_space=["user:bob", "user:eve"]) == ["bob"]
        assert near(index, owner_space="user:eve") == []

    def test_what_holds_at_a_time_is_found_and_what_says_nothing_always_does(
        self, index: KeptIndex
    ) -> None:
        put_filed(
            index,
            always={},
            since={"valid_from": MARCH},
            until={"valid_until": MARCH},
            within={"valid_from": "2026-02-01T01:00:00+01:00", "valid_until": MARCH},
            never={"valid_from": MARCH, "valid_until": MARCH},
        )

        assert found(index, valid_at="2026-01-31T23:59:59.999999Z") == ["always", "until"]
        assert found(index, valid_at="2026-02-01T00:00:00Z") == ["always", "until", "within"]
        assert found(index, valid_at=MARCH) == ["always", "since"]
        assert found(index, valid_at="2026-03-01") == ["always", "since"]
        assert found(index, valid_at="2026-02-28") == ["always", "until", "within"]
        assert found(index, valid_at="2026-01-31") == ["always", "until"]
        assert found(index, valid_at="2026-03-01T01:00:00+02:00") == ["always", "until", "within"]
        assert found(index, valid_at=[MARCH, "2026-01-01T00:00:00Z"]) == [
            "always",
            "since",
            "until",
        ]
        assert found(index, valid_at=[]) == []
        assert len(found(index)) == 5

    def test_filters_that_can_not_be_understood_are_refused(self, index: KeptIndex) -> None:
        for filters in NOT_UNDERSTOOD:
            refused(index, EVERYONE | filters)

    def test_there_is_no_search_without_account_and_owner(self, index: KeptIndex) -> None:
        for name in EVERYONE:
            refused(index, {key: value for key, value in EVERYONE.items() if key != name})

    def test_a_record_that_no_search_could_tell_is_refused(self, index: KeptIndex) -> None:
        for filed in NOT_TOLD:
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.upsert([record("one", vector=NORTH, filters=filed)])


def refused(index: KeptIndex, filters: dict[str, JSON]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_by_vector(EAST, filters, 9)
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_by_text(["tea"], filters, 9)
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_children(uri_of(), EAST, filters, 9)
