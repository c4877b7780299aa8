"""Tests of searches by vector and by words, and of filters."""

import math
from itertools import product
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import NodeIndex
from perdure.model import Level, SeedHit
from perdure.model.values import JSON
from perdure.testing.index.fixtures import (
    ACCOUNT,
    EAST,
    EVERYONE,
    NORTH,
    WEST,
    IndexBase,
    below,
    found_by_any,
    ids,
    matching,
    near,
    put,
    record,
    uri_of,
)
from perdure.testing.requirement import requirement


def put_texts(index: NodeIndex, **texts: str) -> None:
    index.upsert([record(id_, text=text) for id_, text in texts.items()])


FILED = ("context_type", "category", "session_id", "project", "parent_uri")
MARCH = "2026-03-01T00:00:00+00:00"
INVALID_FILTERS: tuple[dict[str, JSON], ...] = (
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
INVALID_RECORD_FILTERS: tuple[dict[str, JSON], ...] = (
    {"colour": "red"},
    {"category": None},
    {"category": ["x", "y"]},
    {"session_id": 5},
    {"valid_from": "2026-03-01"},
    {"valid_until": ""},
)


def found(index: NodeIndex, **filters: JSON) -> list[str]:
    """Return what all searches find, by id; they must agree."""
    by_vector, by_text, below = found_by_any(index, "tea", EVERYONE | filters, 100)
    assert sorted(by_vector) == sorted(by_text) == sorted(below)
    return sorted(by_vector)


def put_filed(index: NodeIndex, **filed: dict[str, JSON]) -> None:
    index.upsert([record(id_, text="tea", filters=each) for id_, each in filed.items()])


def refused(index: NodeIndex, filters: dict[str, JSON]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_by_vector(EAST, filters, 9)
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_by_text(["tea"], filters, 9)
    with pytest.raises(InvalidValueError, match="Fix: "):
        index.search_children(uri_of(), EAST, filters, 9)


class IndexSearchTests(IndexBase):
    @requirement("003-index-search-hits")
    def test_a_hit_has_the_fields_of_its_record(self, index: NodeIndex) -> None:
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
    def test_hits_of_all_levels_are_found_together(self, index: NodeIndex) -> None:
        for level in Level:
            put(index, f"L{level}", level=level)

        levels = [hit.level for hit in index.search_by_vector(EAST, EVERYONE, 9)]
        assert levels == [Level.ABSTRACT, Level.OVERVIEW, Level.CONTENT]

    def test_the_nearest_are_first_however_long_they_are(self, index: NodeIndex) -> None:
        vectors = {"far": (5, 100, 0), "near": (90, 10, 0), "there": (1, 0, 0), "away": (-3, 0, 0)}
        index.upsert([record(id_, vector=vector) for id_, vector in vectors.items()])

        hits = index.search_by_vector(EAST, EVERYONE, 9)
        assert ids(hits) == ["there", "near", "far", "away"]
        cosines = [1.0, 90 / math.sqrt(8200), 5 / math.sqrt(10_025), -1.0]
        assert [hit.score for hit in hits] == cosines

    @requirement("003-index-search-top-k")
    def test_no_more_are_returned_than_asked_for(self, index: NodeIndex) -> None:
        vectors = {"a": NORTH, "b": EAST, "c": WEST}
        index.upsert([record(id_, vector=vector) for id_, vector in vectors.items()])

        assert near(index, 2) == ["b", "a"]
        assert near(index, 1) == ["b"]
        assert near(index, 0) == []

    def test_equal_scores_are_in_the_order_of_their_ids(self, index: NodeIndex) -> None:
        put(index, "b", "é", "a", "B", "10", "9")

        assert near(index) == ["10", "9", "B", "a", "b", "é"]

    def test_ids_decide_which_of_equal_scores_are_left_out(self, index: NodeIndex) -> None:
        put(index, "c", "e", "d", vector=NORTH)
        put(index, "f", "b", vector=WEST)
        put(index, "z")

        assert near(index, 3) == ["z", "c", "d"]
        assert near(index, 5) == ["z", "c", "d", "e", "b"]

    def test_vectors_of_another_length_are_not_found(self, index: NodeIndex) -> None:
        put(index, "none", vector=())
        put(index, "zero", vector=(0.0, 0.0, 0.0))
        put(index, "short", vector=(1.0, 0.0))
        put(index, "long", vector=(1.0, 0.0, 0.0, 0.0))
        put(index, "fit")

        assert near(index) == ["fit"]
        assert ids(index.search_by_vector((1.0, 0.0), EVERYONE, 9)) == ["short"]

    def test_a_query_without_a_direction_finds_nothing(self, index: NodeIndex) -> None:
        put(index, "one")

        assert index.search_by_vector((0.0, 0.0, 0.0), EVERYONE, 9) == []
        assert index.search_by_vector((), EVERYONE, 9) == []

    def test_an_invalid_search_is_refused(self, index: NodeIndex) -> None:
        vectors: list[Any] = [(math.nan, 0.0), (math.inf, 0.0), ("a", "b"), None]
        counts: list[Any] = [-1, 1.5, True, None]
        for vector, top_k in [*product(vectors, [9]), *product([EAST], counts)]:
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_vector(vector, EVERYONE, top_k)
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_children(uri_of(), vector, EVERYONE, top_k)

    @requirement("003-index-children-immediate", "003-index-children-mandatory")
    def test_below_a_folder_are_the_abstracts_and_overviews_of_what_is_in_it(
        self, index: NodeIndex
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

    def test_below_a_node_are_its_passages(self, index: NodeIndex) -> None:
        for level in (0, 1, 2):
            put(index, f"tabs-{level}", uri=uri_of("tabs"), level=level)
            put(index, f"tabs2-{level}", uri=uri_of("tabs2"), level=level)

        assert below(index, uri_of("tabs")) == ["tabs-2"]

    def test_deep_below_is_not_directly_below(self, index: NodeIndex) -> None:
        put(index, "account", uri="ctx://acme", level=0, filters={"owner_space": "user:ana"})
        put(index, "top", uri="ctx://acme/resources/docs", level=0)
        put(index, "deep", uri="ctx://acme/resources/docs/guides/first", level=0)
        put(index, "guides", uri="ctx://acme/resources/docs/guides", level=0)

        assert below(index, "ctx://acme/resources/docs") == ["guides"]
        assert below(index, "ctx://acme/resources/docs/guides") == ["deep"]
        assert below(index, "ctx://acme") == []

    def test_children_are_the_best_that_the_filters_let_through(self, index: NodeIndex) -> None:
        put(index, "d", "c", vector=NORTH)
        put(index, "z", vector=(1.0, 0.1, 0.0))
        put(index, "b", "a", filters={"category": "other"})

        assert below(index, uri_of(), 2, category=["none"]) == []
        assert below(index, uri_of(), 2, category="other") == ["a", "b"]
        assert below(index, uri_of(), 4) == ["a", "b", "z", "c"]

    def test_a_parent_is_a_place(self, index: NodeIndex) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.search_children("no place", EAST, EVERYONE, 9)

    def test_one_of_the_words_is_enough(self, index: NodeIndex) -> None:
        put_texts(index, a="green tea", b="black coffee", c="cold milk")

        assert sorted(matching(index, "tea", "coffee", "unheard-of")) == ["a", "b"]
        assert matching(index, "unheard-of") == []
        assert matching(index) == []

    def test_words_are_compared_by_stem_without_case_and_accents(self, index: NodeIndex) -> None:
        put_texts(index, a="She was RUNNING", b="cafés", c="runner up")

        assert matching(index, "Runs") == ["a"]
        assert matching(index, "Cafe") == ["b"]

    def test_nothing_in_a_word_is_syntax(self, index: NodeIndex) -> None:
        put_texts(index, a="alpha", b="alphabet", c="not here", d="say near it")

        for word in ('"', "(", ")", "*", "-", "+", "^", ":", '""', "'", "{a}", "a AND", "\\"):
            assert matching(index, word, "alphabet") == ["b"], word
        assert matching(index, "alph*") == []
        assert matching(index, "NOT") == ["c"]
        assert matching(index, "NEAR") == ["d"]
        assert matching(index, "text:alpha") == []
        assert matching(index, 'alpha" OR "alphabet') == []

    def test_words_without_letters_match_nothing(self, index: NodeIndex) -> None:
        put_texts(index, a="alpha", b="...")

        assert matching(index, "...", "", "\0", " ") == []

    def test_a_compound_word_matches_where_its_tokens_are_adjacent(self, index: NodeIndex) -> None:
        put_texts(index, a="a tea-pot", b="tea in a pot", c="pot tea")

        assert matching(index, "tea-pot") == ["a"]
        assert matching(index, "tea\0pot") == ["a"]

    def test_rare_words_and_frequent_mention_and_short_texts_count_more(
        self, index: NodeIndex
    ) -> None:
        noise = {f"n{number}": f"common filler {number}" for number in range(5)}
        put_texts(index, rare="rare words here", often="tea tea milk", once="tea milk milk")
        put_texts(index, long="sugar " + "and more " * 9, short="sugar and more", **noise)

        assert matching(index, "common", "rare")[0] == "rare"
        assert matching(index, "tea") == ["often", "once"]
        assert matching(index, "sugar") == ["short", "long"]

    def test_scores_are_those_of_bm25(self, index: NodeIndex) -> None:
        put_texts(index, a="tea tea milk", b="milk", c="water", d="water and wine and bread")

        (hit,) = index.search_by_text(["tea", "wine", "none"], EVERYONE, 1)
        (milk, *_) = index.search_by_text(["milk"], EVERYONE, 9)
        average = 10 / 4
        share = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / average))
        assert hit.id == "a"
        assert math.isclose(hit.score, math.log(3.5 / 1.5) * share, abs_tol=1e-9)
        assert math.isclose(milk.score, 1e-6 * 2.2 / (1 + 1.2 * (0.25 + 0.3)), abs_tol=1e-9)

    def test_the_ceiling_is_what_a_passage_of_usual_length_gets_for_all_words(
        self, index: NodeIndex
    ) -> None:
        put_texts(index, a="green tea-pot", b="some other thing", c="some more words")
        (hit,) = index.search_by_text(["green", "tea-pot"], EVERYONE, 9)

        assert math.isclose(index.ceiling(ACCOUNT, ["Greens", "tea-pot", "..."]), hit.score)
        assert math.isclose(index.ceiling(ACCOUNT, ["some"]), 1e-6)
        assert math.isclose(index.ceiling(ACCOUNT, ["none", "none"]), 2 * math.log(3.5 / 0.5))
        assert index.ceiling(ACCOUNT, []) == index.ceiling("nobody", ["tea"]) == 0

    def test_a_word_in_the_context_counts_with_its_weight(self, index: NodeIndex) -> None:
        index.upsert(
            [
                record("context", text="it is hot", context="tea"),
                record("text", text="it is tea", context="hot"),
                *(record(f"n{number}", text="nothing of it") for number in range(5)),
            ]
        )
        found = {
            weight: index.search_by_text(["tea"], EVERYONE, 9, context_weight=weight)
            for weight in (0.0, 0.5, 1.0, 2.0)
        }

        assert {weight: ids(hits) for weight, hits in found.items()} == {
            0.0: ["text", "context"],
            0.5: ["text", "context"],
            1.0: ["context", "text"],
            2.0: ["context", "text"],
        }
        assert matching(index, "tea") == ids(found[1.0])
        assert found[0.0][1].score == 0
        assert found[1.0][0].score == found[1.0][1].score < found[2.0][0].score

    def test_equal_texts_are_in_the_order_of_their_ids_also_at_the_end(
        self, index: NodeIndex
    ) -> None:
        put(index, *(f"{number % 7}-{number}" for number in range(40)), text="some tea")
        put(index, "z", text="tea tea")
        ordered = ["z", *sorted(f"{number % 7}-{number}" for number in range(40))]

        for top_k in (1, 2, 7, 40, 41, 99):
            assert matching(index, "tea", top_k=top_k) == ordered[:top_k]
        assert matching(index, "tea", top_k=0) == []

    def test_scores_depend_on_what_is_there_and_not_on_how_it_came(self, index: NodeIndex) -> None:
        texts = {
            f"r{number}": "tea " * (number % 3) + "milk " * (number % 4) for number in range(9)
        }
        put_texts(index, **texts)
        before = index.search_by_text(["tea", "milk"], EVERYONE, 9)
        index.delete([f"r{number}" for number in (0, 5, 7)])
        put_texts(index, new="tea and more tea", r1="coffee")
        put_texts(index, **dict(reversed(texts.items())))
        index.delete(["new"])

        assert index.search_by_text(["tea", "milk"], EVERYONE, 9) == before

    def test_each_level_is_compared_with_its_like(self, index: NodeIndex) -> None:
        put_texts(index, a="green tea", b="black coffee", c="cold milk and more")
        put(index, "abstract", level=0, text="tea")
        before = index.search_by_text(["tea"], EVERYONE, 9)
        ceiling = index.ceiling(ACCOUNT, ["tea"])
        put(index, *(f"x{n}" for n in range(9)), level=1, text="tea " * 9, uri=uri_of("more"))
        by_id = {hit.id: hit for hit in index.search_by_text(["tea"], EVERYONE, 99)}

        assert len(by_id) == 11
        assert by_id["a"] in before
        assert by_id["abstract"] in before
        assert index.ceiling(ACCOUNT, ["tea"]) == ceiling
        assert matching(index, "tea", level=2) == ["a"]
        assert matching(index, "tea", level=[0, 2]) == ["a", "abstract"]
        assert matching(index, "tea", level=0) == ["abstract"]

    def test_a_match_has_the_uris_and_best_scores_of_a_search(self, index: NodeIndex) -> None:
        put(index, "a", text="green tea and much more of it", uri=uri_of("one"))
        put(index, "b", text="green tea", uri=uri_of("one"))
        put(index, "c", text="tea and tea", uri=uri_of("two"))
        put(index, "d", level=1, text="tea " * 5, uri=uri_of("two"))
        put(index, "e", "f", "g", text="coffee", uri=uri_of("three"))
        expected: dict[str, float] = {}
        for hit in index.search_by_text(["tea", "green"], EVERYONE, 3):
            expected.setdefault(hit.uri, hit.score)

        assert index.match(["tea", "green"], EVERYONE, 3) == expected
        assert list(index.match(["tea", "green"], EVERYONE, 3)) == list(expected)
        assert index.match(["tea"], {**EVERYONE, "level": 1}, 9).keys() == {uri_of("two")}
        assert index.match([], EVERYONE, 9) == index.match(["tea"], EVERYONE, 0) == {}

    def test_scores_depend_on_nothing_of_other_accounts(self, index: NodeIndex) -> None:
        put_texts(index, a="green tea", b="black coffee", c="cold milk", d="water")
        before = index.search_by_text(["tea"], EVERYONE, 9)
        elsewhere = uri_of(account="other")
        index.upsert([record(f"o{number}", elsewhere, "tea " * number) for number in range(5)])

        assert index.search_by_text(["tea"], EVERYONE, 9) == before

    def test_an_invalid_search_for_text_is_refused(self, index: NodeIndex) -> None:
        for weight in (-1.0, math.nan, math.inf):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_text(["a"], EVERYONE, 9, context_weight=weight)
        for words in ("tea", ["\ud800"], [1]):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_text(words, EVERYONE, 9)  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.search_by_text(["a"], EVERYONE, -1)

    @requirement("003-index-search-filters")
    def test_only_what_is_filed_under_a_value_is_found(self, index: NodeIndex) -> None:
        for name in FILED:
            put_filed(index, a={name: "x"}, b={name: "X"}, c={name: ""}, d={}, e={name: "x"})

            assert found(index, **{name: "x"}) == ["a", "e"], name
            assert found(index, **{name: ["X", "", "y"]}) == ["b", "c"], name
            assert found(index, **{name: "y"}) == [], name
            assert found(index, **{name: []}) == [], name

    @requirement("003-index-search-filters")
    def test_uri_and_level_are_filters_too(self, index: NodeIndex) -> None:
        index.upsert(
            [
                record(f"{slug}{level}", uri_of(slug), "tea", level)
                for slug in ("one", "two")
                for level in (0, 1, 2)
            ]
        )

        assert near(index, level=1) == matching(index, "tea", level=1) == ["one1", "two1"]
        assert near(index, level=[0, 2], uri=uri_of("two")) == ["two0", "two2"]
        assert matching(index, "tea", level=[0, 2], uri=uri_of("two")) == ["two0", "two2"]
        assert near(index, level=[]) == matching(index, "tea", uri=[]) == []

    def test_all_filters_apply_at_once(self, index: NodeIndex) -> None:
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
        self, index: NodeIndex
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
    def test_a_search_finds_no_records_of_other_owners(self, index: NodeIndex) -> None:
        index.upsert([record("ana", uri_of("x", "ana"), "tea"), record("bob", uri_of("x", "bob"))])
        index.upsert([record("agent", "ctx://acme/agents/ana/skills/x", "tea")])

        assert near(index, owner_space="user:ana") == ["ana"]
        assert matching(index, "tea", "text", owner_space="user:ana") == ["ana"]
        assert near(index, owner_space=["user:bob", "user:eve"]) == ["bob"]
        assert near(index, owner_space="user:eve") == []

    def test_what_holds_at_a_time_is_found_and_what_says_nothing_always_does(
        self, index: NodeIndex
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

    def test_invalid_filters_are_refused(self, index: NodeIndex) -> None:
        for filters in INVALID_FILTERS:
            refused(index, EVERYONE | filters)

    def test_a_search_needs_account_and_owner(self, index: NodeIndex) -> None:
        for name in EVERYONE:
            refused(index, {key: value for key, value in EVERYONE.items() if key != name})

    def test_a_record_with_invalid_filters_is_refused(self, index: NodeIndex) -> None:
        for filed in INVALID_RECORD_FILTERS:
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.upsert([record("one", vector=NORTH, filters=filed)])
