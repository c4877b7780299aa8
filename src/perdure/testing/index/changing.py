"""Putting records, and taking them away."""

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.testing.index.base import (
    ACCOUNT,
    NORTH,
    IndexBase,
    near,
    put,
    record,
    said,
    texts_of,
    uri_of,
)
from perdure.testing.requirement import requirement


class ChangeTests(IndexBase):
    @requirement("003-index-upsert-adds")
    def test_an_upserted_record_is_found(self, index: KeptIndex) -> None:
        index.upsert([record("one", text="some tea")])

        assert near(index) == ["one"]
        assert said(index, "tea") == ["one"]

    @requirement("003-index-upsert-idempotent")
    def test_a_record_takes_the_place_of_the_one_with_its_id(self, index: KeptIndex) -> None:
        index.upsert([record("one", text="some tea")])
        index.upsert([record("one", text="some coffee", vector=NORTH)])

        assert said(index, "tea") == []
        assert said(index, "coffee") == ["one"]
        (hit,) = index.search_by_vector(
            NORTH, {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9
        )
        assert (hit.id, hit.score) == ("one", 1.0)

    def test_to_upsert_twice_is_as_once(self, index: KeptIndex) -> None:
        records = [record("one", text="some tea"), record("two", text="tea and tea and more")]
        index.upsert(records)
        before = index.search_by_text(
            ["tea"], {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9
        )
        index.upsert(records)
        after = index.search_by_text(["tea"], {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9)

        assert after == before
        assert len(near(index)) == 2

    def test_of_records_with_one_id_the_last_counts(self, index: KeptIndex) -> None:
        index.upsert([record("one", text="first"), record("one", text="last")])

        assert texts_of(index, ["one"]) == {"one": "last"}
        assert near(index) == ["one"]

    def test_a_record_that_comes_to_another_uri_leaves_nothing_behind(
        self, index: KeptIndex
    ) -> None:
        index.upsert([record("one", uri_of("old"))])
        index.upsert([record("one", uri_of("new"))])

        assert list(index.stamps(ACCOUNT)) == [uri_of("new")]
        assert near(index, uri=uri_of("old")) == []

    def test_if_one_record_is_refused_none_is_put(self, index: KeptIndex) -> None:
        wrong = record("two", filters={"colour": "red"})
        with pytest.raises(InvalidValueError, match=r"colour.*Fix: "):
            index.upsert([record("one"), wrong])

        assert near(index) == []

    @requirement("003-index-delete")
    def test_deleted_records_are_found_no_more_and_all_others_are(self, index: KeptIndex) -> None:
        put(index, "one", "one-more", "two", text="some tea")
        index.delete(["one", "two"])

        assert near(index) == ["one-more"]
        assert said(index, "tea") == ["one-more"]

    @requirement("003-index-delete-absent")
    def test_ids_that_are_not_there_do_not_matter_to_delete(self, index: KeptIndex) -> None:
        put(index, "one", "two")
        index.delete(["nobody's", "two", "two"])
        index.delete([])

        assert near(index) == ["one"]

    def test_ids_are_told_apart_exactly(self, index: KeptIndex) -> None:
        alike = ["a", "A", "a ", "á", "a\u0301", "a%", "1", "01", "a/b", "a'b"]
        put(index, *alike)
        index.delete(alike[:1])

        assert near(index) == sorted(alike[1:])
