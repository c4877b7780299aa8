"""Keeping an index in step with nodes, and proving it."""

import pytest

from perdure.dataclass import replace
from perdure.errors import ConcurrentModificationError, InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord
from perdure.testing.index.base import (
    ACCOUNT,
    EAST,
    EVERYONE,
    NORTH,
    IndexBase,
    near,
    put,
    record,
    said,
    uri_of,
)

ONE, TWO, THREE = uri_of("one"), uri_of("two"), uri_of("three")


def passages(uri: str, count: int, text: str = "tea") -> list[IndexRecord]:
    return [record(f"{uri}#{number}", uri, text) for number in range(count)]


class KeepTests(IndexBase):
    def test_what_replaces_a_node_is_all_that_is_left_of_it(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 4), TWO: passages(TWO, 2)})
        index.replace(ACCOUNT, {ONE: passages(ONE, 2, "coffee")})

        assert near(index) == [f"{ONE}#0", f"{ONE}#1", f"{TWO}#0", f"{TWO}#1"]
        assert said(index, "coffee") == [f"{ONE}#0", f"{ONE}#1"]
        assert said(index, "tea") == [f"{TWO}#0", f"{TWO}#1"]

    def test_of_a_node_that_is_gone_nothing_is_left(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 4), TWO: passages(TWO, 1)})
        index.replace(ACCOUNT, {ONE: [], THREE: []})

        assert near(index) == [f"{TWO}#0"]
        assert list(index.stamps(ACCOUNT)) == [TWO]

    def test_the_cursor_is_the_last_that_was_told(self, index: KeptIndex) -> None:
        assert index.cursor(ACCOUNT) == 0
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5)
        index.replace(ACCOUNT, {TWO: passages(TWO, 1)})
        index.upsert([record("x")])
        index.replace("other", {}, cursor=9)
        assert index.cursor(ACCOUNT) == 5
        index.replace(ACCOUNT, {}, cursor=3)

        assert (index.cursor(ACCOUNT), index.cursor("other"), index.cursor("nobody")) == (3, 9, 0)

    def test_who_expects_another_cursor_changes_nothing(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5, expect=0)
        for expected in (0, 4, 6):
            with pytest.raises(ConcurrentModificationError, match="Fix: "):
                index.replace(ACCOUNT, {ONE: [], TWO: passages(TWO, 1)}, cursor=7, expect=expected)
        assert near(index) == [f"{ONE}#0"]
        assert index.cursor(ACCOUNT) == 5
        index.replace(ACCOUNT, {ONE: passages(ONE, 2)}, cursor=6, expect=5)

        assert (len(near(index)), index.cursor(ACCOUNT)) == (2, 6)

    def test_nodes_and_cursors_that_can_not_be_change_nothing(self, index: KeptIndex) -> None:
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

    def test_what_is_unlogged_stays_so_until_it_is_replaced(self, index: KeptIndex) -> None:
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

    def test_who_expects_another_cursor_marks_nothing(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 1)}, cursor=5, unlogged=[ONE])
        with pytest.raises(ConcurrentModificationError):
            index.replace(ACCOUNT, {ONE: [], TWO: []}, cursor=7, expect=6, unlogged=[TWO])

        assert index.unlogged(ACCOUNT) == frozenset({ONE})

    def test_a_deleted_owner_is_named_no_more_by_what_is_unlogged(self, index: KeptIndex) -> None:
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

    def test_records_are_read_as_they_were_put(self, index: KeptIndex) -> None:
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

    def test_what_is_noted_is_found_newest_first_and_filtered(self, index: KeptIndex) -> None:
        for number, id_ in enumerate(("b", "a", "c")):
            put(index, id_, payload={"noted": "", "always": 2, "updated_at": f"2026-0{number + 1}"})
        put(index, "plain")

        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert [hit.id for hit in index.noted(scope, 2)] == ["c", "a"]
        assert index.noted({**scope, "owner_space": "user:nobody"}, 5) == []

    def test_what_is_noted_is_found_by_what_it_names(self, index: KeptIndex) -> None:
        for id_, names in (("a", ["npm", "bun"]), ("b", ["git"]), ("c", [])):
            put(index, id_, payload={"noted": "", "updated_at": "2026-01", "names": names})
        put(index, "plain", payload={"names": ["npm"]})

        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert [hit.id for hit in index.noted(scope, 5, ["npm", "git"])] == ["a", "b"]
        assert index.noted(scope, 5, ["yarn"]) == index.noted(scope, 5, []) == []
        assert index.noted({**scope, "owner_space": "user:nobody"}, 5, ["npm"]) == []
        index.delete(["a"])
        assert index.noted(scope, 5, ["npm"]) == []

    def test_what_leads_somewhere_is_found_by_the_names_it_links_to(self, index: KeptIndex) -> None:
        put(index, "a1", "a2", uri=ONE, payload={"links": ["tea", "milk"], "names": ["npm"]})
        put(index, "b", uri=TWO, payload={"links": ["tea"], "noted": "", "names": ["git"]})

        assert index.leading_to(ACCOUNT, ["tea"]) == sorted([ONE, TWO])
        assert index.leading_to(ACCOUNT, ["milk", "npm", "git"]) == [ONE]
        assert index.leading_to(ACCOUNT, []) == index.leading_to("nobody", ["tea"]) == []
        scope = {"account_id": ACCOUNT, "owner_space": "user:ana"}
        assert index.noted(scope, 5, ["tea"]) == []
        index.replace(ACCOUNT, {ONE: []})
        assert index.leading_to(ACCOUNT, ["tea"]) == [TWO]

    def test_a_look_at_records_is_as_a_search_that_scores_nothing(self, index: KeptIndex) -> None:
        put(index, "b", "a", "c", payload={"n": 1})
        put(index, "other", uri=uri_of("one", "bob"), vector=())
        (found, *_) = index.search_by_vector(EAST, EVERYONE, 1)
        asked = ["other", "b", "a", "none", "a"]

        looked = index.look(asked, EVERYONE)
        assert looked[0] == replace(found, score=0.0)
        assert [hit.id for hit in looked] == ["a", "b", "other"]
        assert [hit.id for hit in index.look(asked, {**EVERYONE, "owner_space": "user:bob"})] == [
            "other"
        ]
        assert index.look(asked, {**EVERYONE, "category": "x"}) == []
        assert index.look([], EVERYONE) == []
        with pytest.raises(InvalidValueError, match="Fix: "):
            index.look(asked, {"account_id": ACCOUNT})

    def test_vectors_are_read_as_whole_numbers_of_their_direction(self, index: KeptIndex) -> None:
        index.upsert([record("half", vector=(0.5, 0.25, -0.5)), record("whole", vector=(3, 0, -4))])

        vectors = {id_: each.vector for id_, each in index.read(ACCOUNT, ["half", "whole"]).items()}
        assert vectors == {"half": (127.0, 64.0, -127.0), "whole": (3.0, 0.0, -4.0)}

    def test_each_uri_has_the_stamp_of_what_was_put(self, index: KeptIndex) -> None:
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

    def test_stamps_depend_on_what_is_there_and_not_on_how_it_came(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 3)})
        index.replace(ACCOUNT, {ONE: passages(ONE, 5, "coffee")})
        index.upsert(passages(ONE, 3)[::-1])
        index.delete([f"{ONE}#3", f"{ONE}#4"])

        assert index.stamps(ACCOUNT) == {ONE: stamp(passages(ONE, 3))}

    def test_a_check_of_what_was_put_finds_nothing(self, index: KeptIndex) -> None:
        index.replace(ACCOUNT, {ONE: passages(ONE, 3), TWO: passages(TWO, 1)}, cursor=5)
        put(index, "x", vector=NORTH)
        index.delete([f"{ONE}#0"])

        assert index.check(ACCOUNT) == []
        assert index.check("nobody") == []
        assert len(index.search_by_vector(EAST, EVERYONE, 9)) == 4
