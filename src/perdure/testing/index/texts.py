"""Searching by words."""

import math

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.testing.index.base import (
    ACCOUNT,
    EVERYONE,
    IndexBase,
    ids,
    put,
    record,
    said,
    uri_of,
)


def put_texts(index: KeptIndex, **texts: str) -> None:
    index.upsert([record(id_, text=text) for id_, text in texts.items()])


class TextTests(IndexBase):
    def test_one_of_the_words_is_enough(self, index: KeptIndex) -> None:
        put_texts(index, a="green tea", b="black coffee", c="cold milk")

        assert sorted(said(index, "tea", "coffee", "unheard-of")) == ["a", "b"]
        assert said(index, "unheard-of") == []
        assert said(index) == []

    def test_words_are_compared_by_stem_without_case_and_accents(self, index: KeptIndex) -> None:
        put_texts(index, a="She was RUNNING", b="cafés", c="runner up")

        assert said(index, "Runs") == ["a"]
        assert said(index, "Cafe") == ["b"]

    def test_nothing_in_a_word_is_syntax(self, index: KeptIndex) -> None:
        put_texts(index, a="alpha", b="alphabet", c="not here", d="say near it")

        for word in ('"', "(", ")", "*", "-", "+", "^", ":", '""', "'", "{a}", "a AND", "\\"):
            assert said(index, word, "alphabet") == ["b"], word
        assert said(index, "alph*") == []
        assert said(index, "NOT") == ["c"]
        assert said(index, "NEAR") == ["d"]
        assert said(index, "text:alpha") == []
        assert said(index, 'alpha" OR "alphabet') == []

    def test_words_without_letters_match_nothing(self, index: KeptIndex) -> None:
        put_texts(index, a="alpha", b="...")

        assert said(index, "...", "", "\0", " ") == []

    def test_a_word_of_several_parts_is_found_where_they_follow_each_other(
        self, index: KeptIndex
    ) -> None:
        put_texts(index, a="a tea-pot", b="tea in a pot", c="pot tea")

        assert said(index, "tea-pot") == ["a"]
        assert said(index, "tea\0pot") == ["a"]

    def test_rare_words_and_frequent_mention_and_short_texts_count_more(
        self, index: KeptIndex
    ) -> None:
        noise = {f"n{number}": f"common filler {number}" for number in range(5)}
        put_texts(index, rare="rare words here", often="tea tea milk", once="tea milk milk")
        put_texts(index, long="sugar " + "and more " * 9, short="sugar and more", **noise)

        assert said(index, "common", "rare")[0] == "rare"
        assert said(index, "tea") == ["often", "once"]
        assert said(index, "sugar") == ["short", "long"]

    def test_scores_are_those_of_bm25(self, index: KeptIndex) -> None:
        put_texts(index, a="tea tea milk", b="milk", c="water", d="water and wine and bread")

        (hit,) = index.search_by_text(["tea", "wine", "none"], EVERYONE, 1)
        (milk, *_) = index.search_by_text(["milk"], EVERYONE, 9)
        average = 10 / 4
        share = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / average))
        assert hit.id == "a"
        assert math.isclose(hit.score, math.log(3.5 / 1.5) * share, abs_tol=1e-9)
        assert math.isclose(milk.score, 1e-6 * 2.2 / (1 + 1.2 * (0.25 + 0.3)), abs_tol=1e-9)

    def test_the_ceiling_is_what_a_passage_of_usual_length_gets_for_all_words(
        self, index: KeptIndex
    ) -> None:
        put_texts(index, a="green tea-pot", b="some other thing", c="some more words")
        (hit,) = index.search_by_text(["green", "tea-pot"], EVERYONE, 9)

        assert math.isclose(index.ceiling(ACCOUNT, ["Greens", "tea-pot", "..."]), hit.score)
        assert math.isclose(index.ceiling(ACCOUNT, ["some"]), 1e-6)
        assert math.isclose(index.ceiling(ACCOUNT, ["none", "none"]), 2 * math.log(3.5 / 0.5))
        assert index.ceiling(ACCOUNT, []) == index.ceiling("nobody", ["tea"]) == 0

    def test_a_record_is_found_by_its_context_as_much_as_is_said(self, index: KeptIndex) -> None:
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
        assert said(index, "tea") == ids(found[1.0])
        assert found[0.0][1].score == 0
        assert found[1.0][0].score == found[1.0][1].score < found[2.0][0].score

    def test_equal_texts_are_in_the_order_of_their_ids_also_at_the_end(
        self, index: KeptIndex
    ) -> None:
        put(index, *(f"{number % 7}-{number}" for number in range(40)), text="some tea")
        put(index, "z", text="tea tea")
        ordered = ["z", *sorted(f"{number % 7}-{number}" for number in range(40))]

        for top_k in (1, 2, 7, 40, 41, 99):
            assert said(index, "tea", top_k=top_k) == ordered[:top_k]
        assert said(index, "tea", top_k=0) == []

    def test_scores_depend_on_what_is_there_and_not_on_how_it_came(self, index: KeptIndex) -> None:
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

    def test_each_level_is_compared_with_its_like(self, index: KeptIndex) -> None:
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
        assert said(index, "tea", level=2) == ["a"]
        assert said(index, "tea", level=[0, 2]) == ["a", "abstract"]
        assert said(index, "tea", level=0) == ["abstract"]

    def test_a_match_is_a_search_told_by_uri(self, index: KeptIndex) -> None:
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

    def test_scores_depend_on_nothing_of_other_accounts(self, index: KeptIndex) -> None:
        put_texts(index, a="green tea", b="black coffee", c="cold milk", d="water")
        before = index.search_by_text(["tea"], EVERYONE, 9)
        elsewhere = uri_of(account="other")
        index.upsert([record(f"o{number}", elsewhere, "tea " * number) for number in range(5)])

        assert index.search_by_text(["tea"], EVERYONE, 9) == before

    def test_a_search_for_text_that_can_not_be_is_refused(self, index: KeptIndex) -> None:
        for weight in (-1.0, math.nan, math.inf):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_text(["a"], EVERYONE, 9, context_weight=weight)
        for words in ("tea", ["\ud800"], [1]):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.search_by_text(words, EVERYONE, 9)  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.search_by_text(["a"], EVERYONE, -1)
