"""Searching by vector."""

import math
from itertools import product
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.model import Level, SeedHit
from perdure.testing.index.base import (
    EAST,
    EVERYONE,
    NORTH,
    WEST,
    IndexBase,
    below,
    ids,
    near,
    put,
    record,
    uri_of,
)
from perdure.testing.requirement import requirement


class VectorTests(IndexBase):
    @requirement("003-index-search-hits")
    def test_a_hit_says_what_the_record_does(self, index: KeptIndex) -> None:
        payload = {"title": "Tabs", "lines": [1, 2.5, None], "more": {"is": True}}
        one = record("one", text="a text", level=1, payload=payload)
        index.upsert([one])

        hit = SeedHit(
            id="one",
            uri=uri_of(),
            level=Level.OVERVIEW,
            score=1.0,
            text="a text",
            payload=one.payload,
        )
        assert index.search_by_vector(EAST, EVERYONE, 9) == [hit]

    @requirement("003-index-search-mixed-levels")
    def test_hits_of_all_levels_are_found_together(self, index: KeptIndex) -> None:
        for level in Level:
            put(index, f"L{level}", level=level)

        levels = [hit.level for hit in index.search_by_vector(EAST, EVERYONE, 9)]
        assert levels == [Level.ABSTRACT, Level.OVERVIEW, Level.CONTENT]

    def test_the_nearest_are_first_however_long_they_are(self, index: KeptIndex) -> None:
        vectors = {"far": (5, 100, 0), "near": (90, 10, 0), "there": (1, 0, 0), "away": (-3, 0, 0)}
        index.upsert([record(id_, vector=vector) for id_, vector in vectors.items()])

        hits = index.search_by_vector(EAST, EVERYONE, 9)
        assert ids(hits) == ["there", "near", "far", "away"]
        cosines = [1.0, 90 / math.sqrt(8200), 5 / math.sqrt(10_025), -1.0]
        assert [hit.score for hit in hits] == cosines

    @requirement("003-index-search-top-k")
    def test_no_more_are_returned_than_asked_for(self, index: KeptIndex) -> None:
        vectors = {"a": NORTH, "b": EAST, "c": WEST}
        index.upsert([record(id_, vector=vector) for id_, vector in vectors.items()])

        assert near(index, 2) == ["b", "a"]
        assert near(index, 1) == ["b"]
        assert near(index, 0) == []

    def test_equal_scores_are_in_the_order_of_their_ids(self, index: KeptIndex) -> None:
        put(index, "b", "é", "a", "B", "10", "9")

        assert near(index) == ["10", "9", "B", "a", "b", "é"]

    def test_ids_decide_which_of_equal_scores_are_left_out(self, index: KeptIndex) -> None:
        put(index, "c", "e", "d", vector=NORTH)
        put(index, "f", "b", vector=WEST)
        put(index, "z")

        assert near(index, 3) == ["z", "c", "d"]
        assert near(index, 5) == ["z", "c", "d", "e", "b"]

    def test_vectors_of_another_length_are_not_found(self, index: KeptIndex) -> None:
        put(index, "none", vector=())
        put(index, "zero", vector=(0.0, 0.0, 0.0))
        put(index, "short", vector=(1.0, 0.0))
        put(index, "long", vector=(1.0, 0.0, 0.0, 0.0))
        put(index, "fit")

        assert near(index) == ["fit"]
        assert ids(index.search_by_vector((1.0, 0.0), EVERYONE, 9)) == ["short"]

    def test_a_query_without_a_direction_finds_nothing(self, index: KeptIndex) -> None:
        put(index, "one")

        assert index.search_by_vector((0.0, 0.0, 0.0), EVERYONE, 9) == []
        assert index.search_by_vector((), EVERYONE, 9) == []

    def test_a_search_that_can_not_be_is_refused(self, index: KeptIndex) -> None:
        vectors: list[Any] = [(math.nan, 0.0), (math.inf, 0.0), ("a", "b"), None]
        counts: list[Any] = [-1, 1.5, True, None]
        for vector, top_k in [*product(vectors, [9]), *product([EAST], counts)]:
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_vector(vector, EVERYONE, top_k)
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_children(uri_of(), vector, EVERYONE, top_k)


class ChildrenTests(IndexBase):
    @requirement("003-index-children-immediate", "003-index-children-mandatory")
    def test_below_a_folder_are_the_abstracts_and_overviews_of_what_is_in_it(
        self, index: KeptIndex
    ) -> None:
        folder = "ctx://acme/users/ana/memories/preference"
        for level in (0, 1, 2):
            put(index, f"tabs-{level}", uri=uri_of("tabs"), level=level)
            put(index, f"folder-{level}", uri=folder, level=level)
            put(index, f"other-{level}", uri=uri_of("tabs", "bob"), level=level)
        put(index, "alike", uri="ctx://acme/users/ana/memories/preferences/tabs", level=0)

        assert below(index, folder) == ["folder-2", "tabs-0", "tabs-1"]
        assert below(index, "ctx://acme/users/ana/memories") == ["folder-0", "folder-1"]
        assert below(index, "ctx://acme/users/ana") == []

    def test_below_a_node_are_its_passages(self, index: KeptIndex) -> None:
        for level in (0, 1, 2):
            put(index, f"tabs-{level}", uri=uri_of("tabs"), level=level)
            put(index, f"tabs2-{level}", uri=uri_of("tabs2"), level=level)

        assert below(index, uri_of("tabs")) == ["tabs-2"]

    def test_deep_below_is_not_directly_below(self, index: KeptIndex) -> None:
        put(index, "account", uri="ctx://acme", level=0, filters={"owner_space": "user:ana"})
        put(index, "top", uri="ctx://acme/resources/docs", level=0)
        put(index, "deep", uri="ctx://acme/resources/docs/guides/first", level=0)
        put(index, "guides", uri="ctx://acme/resources/docs/guides", level=0)

        assert below(index, "ctx://acme/resources/docs") == ["guides"]
        assert below(index, "ctx://acme/resources/docs/guides") == ["deep"]
        assert below(index, "ctx://acme") == []

    def test_children_are_the_best_that_the_filters_let_through(self, index: KeptIndex) -> None:
        put(index, "d", "c", vector=NORTH)
        put(index, "z", vector=(1.0, 0.1, 0.0))
        put(index, "b", "a", filters={"category": "other"})

        assert below(index, uri_of(), 2, category=["none"]) == []
        assert below(index, uri_of(), 2, category="other") == ["a", "b"]
        assert below(index, uri_of(), 4) == ["a", "b", "z", "c"]

    def test_a_parent_is_a_place(self, index: KeptIndex) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.search_children("no place", EAST, EVERYONE, 9)
