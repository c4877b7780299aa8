from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import AccessDeniedError, InvalidValueError
from perdure.model import RequestContext, Role, Uri, check_owner_space
from perdure.model.request import owner_space_at
from perdure.testing.suite import examples

SHOWN = frozenset({"user:shown", "agent:shown"})
NO, SEE, CHANGE = "no", "see", "change"

MEMBERS = {
    "ctx://home/users/ana/memories/profile": CHANGE,
    "ctx://home/users/ana": CHANGE,
    "ctx://home/agents/coder/skills/x": CHANGE,
    "ctx://home/users/shown/memories/event/x": CHANGE,
    "ctx://home/agents/shown": CHANGE,
    "ctx://home/users/bo/memories/profile": NO,
    "ctx://home/users/bo": NO,
    "ctx://home/users/Ana": NO,
    "ctx://home/users/coder": NO,
    "ctx://home/agents/ana/skills/x": NO,
    "ctx://home/resources/x": SEE,
    "ctx://home/resources": SEE,
    "ctx://home": SEE,
    "ctx://home/users": SEE,
    "ctx://home/agents": SEE,
    "ctx://home/sessions": SEE,
    "ctx://home/sessions/s": CHANGE,
    "ctx://home/sessions/s/1": CHANGE,
}
"""How far a member comes. A session's owner is not in its name: whoever reads it asks for it."""

ELSEWHERE = [uri.replace("ctx://home", "ctx://away") for uri in MEMBERS]


def request(role: Role = Role.MEMBER, **fields: Any) -> RequestContext:  # noqa: ANN401 - the fields' own types
    asked = {"agent_id": "coder", "visible_owner_spaces": SHOWN, **fields}
    return RequestContext("home", "ana", role=role, **asked)


def reach(ctx: RequestContext, uri: str) -> str:
    place = Uri.parse(uri)
    if not ctx.may_see(place):
        assert not ctx.may_change(place)
        return NO
    return CHANGE if ctx.may_change(place) else SEE


class TestReach:
    @pytest.mark.parametrize(("uri", "far"), MEMBERS.items())
    def test_a_member_reaches_its_own_what_it_was_shown_and_what_all_share(
        self, uri: str, far: str
    ) -> None:
        assert reach(request(), uri) == far

    @pytest.mark.parametrize("uri", MEMBERS)
    @pytest.mark.parametrize("role", [Role.ADMIN, Role.ROOT])
    def test_who_governs_an_account_reaches_all_of_it(self, role: Role, uri: str) -> None:
        assert reach(request(role), uri) == CHANGE

    @pytest.mark.parametrize("uri", ELSEWHERE)
    @pytest.mark.parametrize("role", Role)
    def test_nobody_reaches_another_account(self, role: Role, uri: str) -> None:
        assert reach(request(role), uri) == NO

    def test_without_being_shown_a_member_reaches_its_own_only(self) -> None:
        alone = request(visible_owner_spaces=frozenset())

        assert alone.owner_spaces == {"user:ana", "agent:coder"}
        assert reach(alone, "ctx://home/users/shown") == NO

    def test_an_account_that_looks_alike_is_another(self) -> None:
        for account in ("Home", "home.", "home%20", "%C2%A0home"):
            assert reach(request(Role.ROOT), f"ctx://{account}/resources/x") == NO

    @settings(deadline=None, max_examples=examples(100))
    @given(
        st.sampled_from(Role),
        st.sampled_from(sorted(MEMBERS) + ELSEWHERE),
        st.frozensets(st.sampled_from(("user:bo", "user:shown", "agent:ana")), max_size=3),
    )
    def test_being_shown_more_never_reaches_less_nor_beyond_the_account(
        self, role: Role, uri: str, more: frozenset[str]
    ) -> None:
        far = [NO, SEE, CHANGE]
        less, wide = request(role), request(role, visible_owner_spaces=SHOWN | more)

        assert far.index(reach(less, uri)) <= far.index(reach(wide, uri))
        assert uri.startswith("ctx://home") or reach(wide, uri) == NO

    @pytest.mark.parametrize(
        ("space", "roles"),
        [
            ("user:ana", set(Role)),
            ("agent:coder", set(Role)),
            ("user:shown", set(Role)),
            ("account:home", set(Role)),
            ("user:bo", {Role.ADMIN, Role.ROOT}),
            ("agent:ana", {Role.ADMIN, Role.ROOT}),
            ("", {Role.ADMIN, Role.ROOT}),
            ("account:away", set()),
        ],
    )
    def test_an_owner_space_is_reached_by(self, space: str, roles: set[Role]) -> None:
        assert {role for role in Role if request(role).reaches(space)} == roles

    def test_only_a_member_does_not_govern(self) -> None:
        assert [role for role in Role if request(role).governs] == [Role.ROOT, Role.ADMIN]

    def test_by_default_one_is_a_member_who_was_shown_nothing(self) -> None:
        ctx = RequestContext("home", "ana")

        assert (ctx.role, ctx.agent_id, ctx.session_id) == (Role.MEMBER, "default", "")
        assert ctx.visible_owner_spaces == frozenset()


class TestRefusal:
    def test_it_names_who_asked_and_for_what_and_how_to_mend_it(self) -> None:
        refusal = request().refuse(Uri.parse("ctx://home/users/bo"))

        assert isinstance(refusal, AccessDeniedError)
        assert "'ctx://home/users/bo' is out of reach for user 'ana'" in str(refusal)
        assert "Fix: " in str(refusal)

    def test_it_is_short_and_in_ascii_whatever_was_asked_for(self) -> None:
        refusal = str(request().refuse("\u202e" * 5000))

        assert refusal.isascii()
        assert len(refusal) < 1600


class TestRequestContext:
    def test_visible_spaces_are_copied_into_a_set(self) -> None:
        spaces = ["user:bo", "user:bo"]

        ctx = request(visible_owner_spaces=spaces)
        spaces.append("user:eve")

        assert ctx.visible_owner_spaces == frozenset({"user:bo"})

    @pytest.mark.parametrize("field", ["account_id", "user_id", "agent_id", "session_id"])
    @pytest.mark.parametrize("wrong", [None, 3, b"a", "\ud800", "x" * 10_000, 0])
    def test_an_id_is_one_that_a_folder_can_have(self, field: str, wrong: object) -> None:
        ids: dict[str, Any] = {"account_id": "home", "user_id": "ana", field: wrong}

        with pytest.raises(InvalidValueError, match="Fix: "):
            RequestContext(**ids)

    @pytest.mark.parametrize("field", ["account_id", "user_id", "agent_id"])
    def test_only_a_session_may_be_none(self, field: str) -> None:
        ids: dict[str, Any] = {"account_id": "home", "user_id": "ana", field: ""}

        with pytest.raises(InvalidValueError, match="Fix: "):
            RequestContext(**ids)

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"role": "root"}, {"role": None}, {"trace_id": None}, {"trace_id": "\ud800"}),
            *({"trace_id": "x" * 221}, {"visible_owner_spaces": None}, {"visible_owner_spaces": 3}),
            *({"visible_owner_spaces": "user:bo"}, {"visible_owner_spaces": ["bo"]}),
            *({"visible_owner_spaces": [None]}, {"visible_owner_spaces": ["account:home"]}),
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            RequestContext("home", "ana", **wrong)


class TestOwnerSpace:
    @pytest.mark.parametrize("space", ["user:a", "agent:a", "user:a:b", "user:\n", "agent:user:a"])
    def test_it_is_a_users_or_an_agents(self, space: str) -> None:
        assert check_owner_space(space) == space

    @pytest.mark.parametrize(
        "wrong",
        [
            *("", "user", "user:", "agent:", ":a", "User:a", " user:a", "account:a", "group:a"),
            *("user:\ud800", "user:" + "x" * 201, None, 3, b"user:a", ["user:a"]),
        ],
    )
    def test_no_other_can_be(self, wrong: object) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            check_owner_space(wrong)

    @pytest.mark.parametrize(
        ("uri", "given_space", "whose"),
        [
            ("ctx://home/users/ana", "", "user:ana"),
            ("ctx://home/users/ana", "user:ana", "user:ana"),
            ("ctx://home/resources/x", "account:home", "account:home"),
            ("ctx://home/sessions/s", "agent:coder", "agent:coder"),
            ("ctx://home/sessions/s", "", ""),
        ],
    )
    def test_the_owner_of_a_place_is_in_its_uri_or_is_given(
        self, uri: str, given_space: str, whose: str
    ) -> None:
        assert owner_space_at(Uri.parse(uri), given_space) == whose

    @pytest.mark.parametrize("wrong", ["user:bo", "agent:ana", None, "ana"])
    def test_a_place_never_has_another_owner(self, wrong: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match=r"belongs to 'user:ana'.*Fix: "):
            owner_space_at(Uri.parse("ctx://home/users/ana"), wrong)
