"""Accounts and owners: nothing of one is reached through another."""

import unicodedata

import pytest

from perdure.errors import InvalidValueError
from perdure.index.contract import KeptIndex
from perdure.testing.index.base import (
    ACCOUNT,
    EAST,
    EVERYONE,
    IndexBase,
    ids,
    near,
    put,
    record,
    said,
    uri_of,
)
from perdure.testing.requirement import requirement

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
"""Ids that something careless takes for one another."""


def found_in(index: KeptIndex, account: str) -> list[list[str]]:
    """Return what all searches find of Ana's in an account."""
    filters = {"account_id": account, "owner_space": "user:ana"}
    node = uri_of(account=account)
    return [
        ids(index.search_by_vector(EAST, filters, 99)),
        ids(index.search_by_text(["tea"], filters, 99)),
        ids(index.search_children(node, EAST, filters, 99)),
    ]


def put_in(index: KeptIndex, account: str, *ids_: str) -> None:
    """Put records whose ids all accounts share."""
    index.upsert([record(id_, uri_of(account=account), "tea") for id_ in ids_])


class TenantTests(IndexBase):
    @requirement("003-index-tenant-filter")
    def test_each_account_finds_its_own_records_only(self, index: KeptIndex) -> None:
        for number, account in enumerate(ALIKE):
            put_in(index, account, "same", f"own-{number}")

        for number, account in enumerate(ALIKE):
            assert found_in(index, account) == [[f"own-{number}", "same"]] * 3
        assert found_in(index, "nobody") == [[]] * 3

    def test_one_upsert_can_be_of_several_accounts(self, index: KeptIndex) -> None:
        index.upsert([record("a", text="tea"), record("b", uri_of(account="other"), "tea")])

        assert found_in(index, ACCOUNT) == [["a"]] * 3
        assert found_in(index, "other") == [["b"]] * 3

    def test_what_is_below_a_place_is_found_in_its_own_account_only(self, index: KeptIndex) -> None:
        put_in(index, "other", "theirs")

        assert index.search_children(uri_of(account="other"), EAST, EVERYONE, 9) == []

    @requirement("003-index-delete-account")
    def test_an_account_is_deleted_wholly_and_alone(self, index: KeptIndex) -> None:
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

    def test_a_deleted_account_can_be_filled_again(self, index: KeptIndex) -> None:
        put_in(index, ACCOUNT, "one", "two")
        near(index)
        index.delete_account_data(ACCOUNT)
        put_in(index, ACCOUNT, "two")

        assert found_in(index, ACCOUNT) == [["two"]] * 3

    @requirement("003-index-delete-owner-space")
    def test_what_one_owner_has_is_deleted_wholly_and_alone(self, index: KeptIndex) -> None:
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
        assert sorted(said(index, "tea", owner_space=everyone)) == left
        assert found_in(index, "other") == [["elsewhere"]] * 3
        assert index.cursor(ACCOUNT) == 7
        assert uri_of("x", "ana") not in index.stamps(ACCOUNT)

    @requirement("003-index-owner-space-format")
    def test_an_owner_is_a_user_or_an_agent(self, index: KeptIndex) -> None:
        put(index, "shared", uri="ctx://acme/resources/x")
        for owner in ("ana", "users:ana", "user:", "account:acme", "", "User:ana"):
            with pytest.raises(InvalidValueError, match="Fix: "):
                index.delete_by_owner_space(ACCOUNT, owner)

        assert near(index) == ["shared"]

    def test_the_owners_are_those_who_have_records(self, index: KeptIndex) -> None:
        assert index.owner_spaces(ACCOUNT) == frozenset()
        put(index, "one", "two", uri=uri_of("x", "ana"))
        put(index, "three", uri=uri_of("x", "bob"))
        put(index, "four", uri="ctx://acme/resources/x")
        put_in(index, "other", "five")
        index.delete(["three"])

        assert index.owner_spaces(ACCOUNT) == frozenset({"user:ana", "account:acme"})
