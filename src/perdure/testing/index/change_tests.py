"""Tests of changes: records, nodes with a cursor, and tenants."""

import unicodedata

import pytest

from perdure.dataclass import replace
from perdure.errors import ConcurrentModificationError, InvalidValueError
from perdure.index.contract import NodeIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord
from perdure.testing.index.fixtures import (
    ACCOUNT,
    EAST,
    EVERYONE,
    NORTH,
    IndexBase,
    ids,
    matching,
    near,
    put,
    record,
    texts_of,
    uri_of,
)
from perdure.testing.requirement import requirement

ONE, TWO, THREE = uri_of("one"), uri_of("two"), uri_of("three")


def passages(uri: str, count: int, text: str = "tea") -> list[IndexRecord]:
    return [record(f"{uri}#{number}", uri, text) for number in range(count)]


ALIKE = (
    "a",
    "A",
    "a|b",
    "a/b",
    "a%2Fb",
    "ab",
    "a_b",
    "a%",
    "a ",
    "1",
    "01",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
)
"""Ids that a careless comparison confuses."""


def found_in(index: NodeIndex, account: str) -> list[list[str]]:
    """Return what all searches find of Ana in an account."""
    filters = {"account_id": account, "owner_space": "user:ana"}
    node = uri_of(account=account)
    return [
        ids(index.search_by_vector(EAST, filters, 99)),
        ids(index.search_by_text(["tea"], filters, 99)),
        ids(index.search_children(node, EAST, filters, 99)),
    ]


def put_in(index: NodeIndex, account: str, *ids_: str) -> None:
    """Put records with the same ids as in other accounts."""
    index.upsert([record(id_, uri_of(account=account), "tea") for id_ in ids_])


class IndexChangeTests(IndexBase):
    @requirement("003-index-upsert-adds")
    def test_an_upserted_record_is_found(self, index: NodeIndex) -> None:
        index.upsert([record("one", text="some tea")])

        assert near(index) == ["one"]
        assert matching(index, "tea") == ["one"]

    @requirement("003-index-upsert-idempotent")
    def test_a_record_replaces_the_one_with_its_id(self, index: NodeIndex) -> None:
        index.upsert([record("one", text="some tea")])
        index.upsert([record("one", text="some coffee", vector=NORTH)])

        assert matching(index, "tea") == []
        assert matching(index, "coffee") == ["one"]
        (hit,) = index.search_by_vector(
            NORTH, {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9
        )
        assert (hit.id, hit.score) == ("one", 1.0)

    def test_upsert_is_idempotent(self, index: NodeIndex) -> None:
        records = [record("one", text="some tea"), record("two", text="tea and tea and more")]
        index.upsert(records)
        before = index.search_by_text(
            ["tea"], {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9
        )
        index.upsert(records)
        after = index.search_by_text(["tea"], {"account_id": ACCOUNT, "owner_space": "user:ana"}, 9)

        assert after == before
        assert len(near(index)) == 2

    def test_of_records_with_one_id_the_last_counts(self, index: NodeIndex) -> None:
        index.upsert([record("one", text="first"), record("one", text="last")])

        assert texts_of(index, ["one"]) == {"one": "last"}
        assert near(index) == ["one"]

    def test_a_record_that_comes_to_another_uri_leaves_nothing_behind(
        self, index: NodeIndex
    ) -> None:
        index.upsert([record("one", uri_of("old"))])
        index.upsert([record("one", uri_of("new"))])

        assert list(index.stamps(ACCOUNT)) == [uri_of("new")]
        assert near(index, uri=uri_of("old")) == []

    def test_if_one_record_is_refused_none_is_put(self, index: NodeIndex) -> None:
        wrong = record("two", filters={"colour": "red"})
        with pytest.raises(InvalidValueError, match=r"colour.*Fix: "):
            index.upsert([record("one"), wrong])

        assert near(index) == []

    @requirement("003-index-delete")
    def test_deleted_records_are_found_no_more_and_all_others_are(self, index: NodeIndex) -> None:
        put(index, "one", "one-more", "two", text="some tea")
        index.delete(["one", "two"])

        assert near(index) == ["one-more"]
        assert matching(index, "tea") == ["one-more"]

    @requirement("003-index-delete-absent")
    def test_deleting_absent_ids_does_nothing(self, index: NodeIndex) -> None:
        put(index, "one", "two")
        index.delete(["nobody's", "two", "two"])
        index.delete([])

        assert near(index) == ["one"]

    def test_ids_are_compared_exactly(self, index: NodeIndex) -> None:
        alike = ["a", "A", "a ", "á", "a\u0301", "a%", "1", "01", "a/b", "a'b"]
        put(index, *alike)
        index.delete(alike[:1])

        assert near(index) == sorted(alike[1:])

    def test_replacing_a_node_removes_its_earlier_records(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 4), TWO: passages(TWO, 2)})
        index.replace(ACCOUNT, {ONE: passages(ONE, 2, "coffee")})

        assert near(index) == [f"{ONE}#0", f"{ONE}#1", f"{TWO}#0", f"{TWO}#1"]
        assert matching(index, "coffee") == [f"{ONE}#0", f"{ONE}#1"]
        assert matching(index, "tea") == [f"{TWO}#0", f"{TWO}#1"]

    def test_a_removed_node_has_no_records(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 4), TWO: passages(TWO, 1)})
        index.replace(ACCOUNT, {ONE: [], THREE: []})

        assert near(index) == [f"{TWO}#0"]
        assert list(index.stamps(ACCOUNT)) == [TWO]

    def test_the_cursor_is_the_last_that_was_set(self, index: NodeIndex) -> None:
        assert index.cursor(ACCOUNT) == 0
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5)
        index.replace(ACCOUNT, {TWO: passages(TWO, 1)})
        index.upsert([record("x")])
        index.replace("other", {}, cursor=9)
        assert index.cursor(ACCOUNT) == 5
        index.replace(ACCOUNT, {}, cursor=3)

        assert (index.cursor(ACCOUNT), index.cursor("other"), index.cursor("nobody")) == (3, 9, 0)

    def test_an_unexpected_cursor_changes_nothing(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5, expect=0)
        for expected in (0, 4, 6):
            with pytest.raises(ConcurrentModificationError, match="Fix: "):
                index.replace(ACCOUNT, {ONE: [], TWO: passages(TWO, 1)}, cursor=7, expect=expected)
        assert near(index) == [f"{ONE}#0"]
        assert index.cursor(ACCOUNT) == 5
        index.replace(ACCOUNT, {ONE: passages(ONE, 2)}, cursor=6, expect=5)

        assert (len(near(index)), index.cursor(ACCOUNT)) == (2, 6)

    def test_invalid_nodes_and_cursors_change_nothing(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5)
        elsewhere = uri_of("one", account="other")
        wrong: list[dict[str, list[IndexRecord]]] = [
            {ONE: [], TWO: passages(ONE, 1)},
            {ONE: [], elsewhere: passages(elsewhere, 1)},
            {ONE: [], elsewhere: []},
            {ONE: [record("x", ONE, filters={"colour": "red"})]},
            {ONE: [], "no place": []},
        ]
        for nodes in wrong:
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.replace(ACCOUNT, nodes, cursor=6)
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.replace(ACCOUNT, {ONE: []}, cursor=-1)
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.replace(ACCOUNT, {ONE: []}, cursor=6, unlogged=[TWO])

        assert near(index) == [f"{ONE}#0"]
        assert index.cursor(ACCOUNT) == 5

    def test_what_is_unlogged_stays_so_until_it_is_replaced(self, index: NodeIndex) -> None:
        assert index.unlogged(ACCOUNT) == frozenset()
        index.replace(
            ACCOUNT, {ONE: passages(ONE, 1), TWO: [], THREE: []}, cursor=5, unlogged=[ONE, TWO]
        )
        index.replace("other", {}, cursor=9)
        index.upsert(passages(ONE, 2))
        assert index.unlogged(ACCOUNT) == frozenset({ONE, TWO})
        assert index.unlogged("other") == frozenset()
        index.replace(ACCOUNT, {ONE: passages(ONE, 1), THREE: []}, cursor=6, unlogged={THREE})
        assert index.unlogged(ACCOUNT) == frozenset({TWO, THREE})
        index.replace(ACCOUNT, {TWO: [], THREE: passages(THREE, 1)})

        assert index.unlogged(ACCOUNT) == frozenset()

    def test_an_unexpected_cursor_marks_nothing(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5, unlogged=[ONE])
        with pytest.raises(ConcurrentModificationError):
            index.replace(ACCOUNT, {ONE: [], TWO: []}, cursor=7, expect=6, unlogged=[TWO])

        assert index.unlogged(ACCOUNT) == frozenset({ONE})

    def test_a_deleted_owner_is_named_no_more_by_what_is_unlogged(self, index: NodeIndex) -> None:
        bobs = uri_of("one", "bob")
        nodes = {ONE: passages(ONE, 1), bobs: passages(bobs, 1)}
        index.replace(ACCOUNT, nodes, unlogged=[ONE])
        index.delete_by_owner_space(ACCOUNT, "user:bob")
        assert index.unlogged(ACCOUNT) == frozenset({ONE})
        index.replace(ACCOUNT, nodes, unlogged=[bobs])
        index.delete_by_owner_space(ACCOUNT, "user:bob")
        assert index.unlogged(ACCOUNT) is None
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)})
        assert index.unlogged(ACCOUNT) is None
        index.delete_account_data(ACCOUNT)

        assert index.unlogged(ACCOUNT) == frozenset()

    def test_records_are_read_as_they_were_put(self, index: NodeIndex) -> None:
        filters = {
            "context_type": "memory",
            "category": "",
            "session_id": "s",
            "parent_uri": ONE,
            "valid_from": "2026-03-01T00:00:00Z",
            "valid_until": "2026-03-01T01:00:00+01:00",
        }
        payload = {"é": [1, 1.0, None, {"a": True}], "large": 2**63, "": "\0"}
        full = record("full", ONE, "a\0b\r\né", 1, context="who", filters=filters, payload=payload)
        bare = record("bare", TWO, "", vector=())
        index.upsert([full, bare, record("else", uri_of(account="other"))])

        assert index.read(ACCOUNT, ["full", "bare", "else", "none"]) == {"full": full, "bare": bare}
        assert index.read("nobody", ["full"]) == {}

    def test_briefing_hits_are_newest_first_and_filtered(self, index: NodeIndex) -> None:
        for number, id_ in enumerate(("b", "a", "c")):
            put(index, id_, payload={"noted": "", "always": 2, "updated_at": f"2026-0{number + 1}"})
        put(index, "plain")

        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert [hit.id for hit in index.briefing_hits(scope, 2)] == ["c", "a"]
        assert index.briefing_hits({**scope, "owner_space": "user:nobody"}, 5) == []

    def test_briefing_hits_are_found_by_name(self, index: NodeIndex) -> None:
        for id_, names in (("a", ["npm", "bun"]), ("b", ["git"]), ("c", [])):
            put(index, id_, payload={"noted": "", "updated_at": "2026-01", "names": names})
        put(index, "plain", payload={"names": ["npm"]})

        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert [hit.id for hit in index.briefing_hits(scope, 5, ["npm", "git"])] == ["a", "b"]
        assert index.briefing_hits(scope, 5, ["yarn"]) == index.briefing_hits(scope, 5, []) == []
        assert index.briefing_hits({**scope, "owner_space": "user:nobody"}, 5, ["npm"]) == []
        index.delete(["a"])
        assert index.briefing_hits(scope, 5, ["npm"]) == []

    def test_records_are_found_by_the_names_they_link_to(self, index: NodeIndex) -> None:
        put(index, "a1", "a2", uri=ONE, payload={"links": ["tea", "milk"], "names": ["npm"]})
        put(index, "b", uri=TWO, payload={"links": ["tea"], "noted": "", "names": ["git"]})

        assert index.uris_linking_to(ACCOUNT, ["tea"]) == sorted([ONE, TWO])
        assert index.uris_linking_to(ACCOUNT, ["milk", "npm", "git"]) == [ONE]
        assert index.uris_linking_to(ACCOUNT, []) == index.uris_linking_to("nobody", ["tea"]) == []
        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert index.briefing_hits(scope, 5, ["tea"]) == []
        index.replace(ACCOUNT, {ONE: []})
        assert index.uris_linking_to(ACCOUNT, ["tea"]) == [TWO]

    def test_hits_by_id_are_filtered_and_have_no_score(self, index: NodeIndex) -> None:
        put(index, "b", "a", "c", payload={"n": 1})
        put(index, "other", uri=uri_of("one", "bob"), vector=())
        (found, *_) = index.search_by_vector(EAST, EVERYONE, 1)
        asked = ["other", "b", "a", "none", "a"]

        looked = index.hits_by_id(asked, EVERYONE)
        assert looked[0] == replace(found, score=0.0)
        assert [hit.id for hit in looked] == ["a", "b", "other"]
        assert [
            hit.id for hit in index.hits_by_id(asked, {**EVERYONE, "owner_space": "user:bob"})
        ] == ["other"]
        assert index.hits_by_id(asked, {**EVERYONE, "category": "x"}) == []
        assert index.hits_by_id([], EVERYONE) == []
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.hits_by_id(asked, {"account_id": ACCOUNT})

    def test_vectors_are_read_as_whole_numbers_of_their_direction(self, index: NodeIndex) -> None:
        index.upsert([record("half", vector=(0.5, 0.25, -0.5)), record("whole", vector=(3, 0, -4))])

        vectors = {id_: each.vector for id_, each in index.read(ACCOUNT, ["half", "whole"]).items()}
        assert vectors == {"half": (127.0, 64.0, -127.0), "whole": (3.0, 0.0, -4.0)}

    def test_each_uri_has_the_stamp_of_what_was_put(self, index: NodeIndex) -> None:
        one = [
            record("b", ONE, "tea", context="who", payload={"n": 1.0}, vector=(0.1, 0.2, 0.3)),
            record("a", ONE, "coffee", 0, filters={"valid_from": "2026-03-01T00:00:00Z"}),
        ]
        index.replace(ACCOUNT, {ONE: one, TWO: passages(TWO, 3)})
        assert index.stamps(ACCOUNT) == {ONE: stamp(one), TWO: stamp(passages(TWO, 3))}
        index.upsert([record("c", ONE, "milk")])
        index.delete([f"{TWO}#1", f"{TWO}#2", "nobody's"])

        assert index.stamps(ACCOUNT) == {
            ONE: stamp([*one, record("c", ONE, "milk")]),
            TWO: stamp(passages(TWO, 1)),
        }
        assert index.stamps("nobody") == {}

    def test_stamps_depend_on_what_is_there_and_not_on_how_it_came(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 3)})
        index.replace(ACCOUNT, {ONE: passages(ONE, 5, "coffee")})
        index.upsert(passages(ONE, 3)[::-1])
        index.delete([f"{ONE}#3", f"{ONE}#4"])

        assert index.stamps(ACCOUNT) == {ONE: stamp(passages(ONE, 3))}

    def test_a_check_of_what_was_put_finds_nothing(self, index: NodeIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 3), TWO: passages(TWO, 1)}, cursor=5)
        put(index, "x", vector=NORTH)
        index.delete([f"{ONE}#0"])

        assert index.check(ACCOUNT) == []
        assert index.check("nobody") == []
        assert len(index.search_by_vector(EAST, EVERYONE, 9)) == 4

    @requirement("003-index-tenant-filter")
    def test_each_account_finds_its_own_records_only(self, index: NodeIndex) -> None:
        for number, account in enumerate(ALIKE):
            put_in(index, account, "same", f"own-{number}")

        for number, account in enumerate(ALIKE):
            assert found_in(index, account) == [[f"own-{number}", "same"]] * 3
        assert found_in(index, "nobody") == [[]] * 3

    def test_one_upsert_can_be_of_several_accounts(self, index: NodeIndex) -> None:
        index.upsert([record("a", text="tea"), record("b", uri_of(account="other"), "tea")])

        assert found_in(index, ACCOUNT) == [["a"]] * 3
        assert found_in(index, "other") == [["b"]] * 3

    def test_what_is_below_a_place_is_found_in_its_own_account_only(self, index: NodeIndex) -> None:
        put_in(index, "other", "theirs")

        assert index.search_children(uri_of(account="other"), EAST, EVERYONE, 9) == []

    @requirement("003-index-delete-account")
    def test_an_account_is_deleted_wholly_and_alone(self, index: NodeIndex) -> None:
        for account in ALIKE:
            put_in(index, account, "one", "two")
            index.replace(account, {}, cursor=7)
        for account in ALIKE[:6]:
            assert index.delete_account_data(account) == 2
            assert index.delete_account_data(account) == 0

        for account in ALIKE[:6]:
            assert found_in(index, account) == [[]] * 3
            assert (index.cursor(account), index.stamps(account)) == (0, {})
            assert index.read(account, ["one"]) == {}
            assert index.owner_spaces(account) == frozenset()
        for account in ALIKE[6:]:
            assert found_in(index, account) == [["one", "two"]] * 3
            assert index.cursor(account) == 7

    def test_a_deleted_account_can_be_filled_again(self, index: NodeIndex) -> None:
        put_in(index, ACCOUNT, "one", "two")
        near(index)
        index.delete_account_data(ACCOUNT)
        put_in(index, ACCOUNT, "two")

        assert found_in(index, ACCOUNT) == [["two"]] * 3

    @requirement("003-index-delete-owner-space")
    def test_what_one_owner_has_is_deleted_wholly_and_alone(self, index: NodeIndex) -> None:
        for owner in ("ana", "bob", "an"):
            put(index, f"{owner}-1", f"{owner}-2", uri=uri_of("x", owner), text="tea")
        put(index, "agent", uri="ctx://acme/agents/ana/skills/x", text="tea")
        put_in(index, "other", "elsewhere")
        index.replace(ACCOUNT, {}, cursor=7)

        assert index.delete_by_owner_space(ACCOUNT, "user:ana") == 2
        assert index.delete_by_owner_space(ACCOUNT, "user:ana") == 0
        assert index.delete_by_owner_space("nobody", "user:ana") == 0
        everyone = ["user:ana", "user:bob", "user:an", "agent:ana"]
        left = ["agent", "an-1", "an-2", "bob-1", "bob-2"]
        assert near(index, owner_space=everyone) == left
        assert sorted(matching(index, "tea", owner_space=everyone)) == left
        assert found_in(index, "other") == [["elsewhere"]] * 3
        assert index.cursor(ACCOUNT) == 7
        assert uri_of("x", "ana") not in index.stamps(ACCOUNT)

    @requirement("003-index-owner-space-format")
    def test_an_owner_is_a_user_or_an_agent(self, index: NodeIndex) -> None:
        put(index, "shared", uri="ctx://acme/resources/x")
        for owner in ("ana", "users:ana", "user:", "account:acme", "", "User:ana"):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.delete_by_owner_space(ACCOUNT, owner)

        assert near(index) == ["shared"]

    def test_owner_spaces_are_those_with_records(self, index: NodeIndex) -> None:
        assert index.owner_spaces(ACCOUNT) == frozenset()
        put(index, "one", "two", uri=uri_of("x", "ana"))
        put(index, "three", uri=uri_of("x", "bob"))
        put(index, "four", uri="ctx://acme/resources/x")
        put_in(index, "other", "five")
        index.delete(["three"])

        assert index.owner_spaces(ACCOUNT) == frozenset({"user:ana", "account:acme"})
