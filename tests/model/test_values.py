import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import model
from perdure.errors import InvalidValueError
from perdure.model import (
    CandidateMemory,
    ContextNode,
    EventType,
    IndexRecord,
    Level,
    OutboxEvent,
    RelationEdge,
    RequestContext,
    Role,
    SeedHit,
    WriteAction,
    WritePlan,
)
from perdure.model.values import (
    CUT,
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    bounded,
    count,
    encodable,
    fraction,
    frozen,
    plain,
    shown,
    utc_time,
)
from perdure.testing.requirement import requirement
from perdure.testing.suite import examples


class Odd:
    def __repr__(self) -> str:
        return "Odd()"


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TABS = "ctx://local/users/ana/memories/preference/tabs"
SPACES = "ctx://local/users/ana/memories/preference/spaces"
NESTED: Mapping[str, JSON] = {"tags": ["a", {"deep": [1, 2.5, None, True]}], "\u00e9": "\u6f22"}
NODE = ContextNode(
    uri=TABS,
    content="Tabs.",
    metadata=NESTED,
    relations=(RelationEdge(TABS, SPACES, "contradicts", 0.5),),
    created_at=NOON,
    basis="f01551220aa",
)

EXAMPLES: dict[str, Any] = {
    "RequestContext": RequestContext(
        "local", "ana", "coder", "s", "t", Role.ADMIN, frozenset({"user:bo"})
    ),
    "ContextNode": NODE,
    "RelationEdge": NODE.relations[0],
    "CandidateMemory": CandidateMemory(
        category="event",
        slug="x",
        content="It rained.",
        owner_space="user:ana",
        when=NOON,
        who=("Ana",),
        metadata=NESTED,
    ),
    "WritePlan": WritePlan(action=WriteAction.CREATE, uri=TABS, reason="it is new", node=NODE),
    "IndexRecord": IndexRecord(
        id="1",
        uri=TABS,
        level=Level.ABSTRACT,
        text="Tabs.",
        vector=(0.5, 0.5),
        filters={"account_id": "local", "owner_space": "user:ana", "more": ["x"]},
        payload=NESTED,
    ),
    "OutboxEvent": OutboxEvent(
        event_id="1",
        event_type=EventType.UPSERT_NODE,
        uri=TABS,
        account_id="local",
        payload=NESTED,
        created_at=NOON,
    ),
    "SeedHit": SeedHit(id="1", uri=TABS, level=Level.CONTENT, score=-1.5, payload=NESTED),
}
"""One of each value that the interfaces exchange."""

ENTRIES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), ENTRIES, max_size=4)


class TestEveryValue:
    @requirement("003-values-shared")
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_it_is_offered_frozen_and_equal_to_its_like(self, name: str) -> None:
        value = EXAMPLES[name]
        field = dataclasses.fields(value)[0].name

        assert type(value) is getattr(model, name)
        assert name in model.__all__
        assert dataclasses.replace(value) == value
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "other")
        with pytest.raises((AttributeError, TypeError)):
            value.something_new = 1

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_it_can_be_copied_pickled_and_hashed(self, name: str) -> None:
        value = EXAMPLES[name]
        twins = [
            copy.copy(value),
            copy.deepcopy(value),
            *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, 6)),  # noqa: S301 - our own
        ]

        for twin in twins:
            assert twin == value
            assert hash(twin) == hash(value)
            assert repr(twin) == repr(value)

    @pytest.mark.parametrize("name", ["CandidateMemory", "ContextNode", "OutboxEvent", "SeedHit"])
    def test_a_twin_is_as_frozen_as_the_first(self, name: str) -> None:
        value = EXAMPLES[name]
        field = "metadata" if hasattr(value, "metadata") else "payload"

        for twin in (value, copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301 - our own
            with pytest.raises(TypeError):
                getattr(twin, field)["new"] = 1
            with pytest.raises(TypeError):
                getattr(twin, field)["tags"][1]["deep"] = 1

    def test_it_can_be_taken_apart(self) -> None:
        assert dataclasses.asdict(NODE)["metadata"] == NODE.metadata


class TestBounded:
    @pytest.mark.parametrize("limit", [MAX_ABSTRACT, MAX_OVERVIEW, MAX_CONTENT])
    def test_a_text_may_be_as_long_as_its_limit(self, limit: int) -> None:
        assert bounded("x" * limit, limit, "text") == "x" * limit

    @pytest.mark.parametrize("limit", [MAX_ABSTRACT, MAX_OVERVIEW, MAX_CONTENT])
    @pytest.mark.parametrize("letter", ["x", "\u00e9", " "])
    def test_up_to_ten_per_cent_more_is_cut_and_marked(self, limit: int, letter: str) -> None:
        for length in (limit + 1, limit + limit // 10):
            cut = bounded(letter * length, limit, "text")
            assert cut == letter.strip() * (limit - len(CUT)) + CUT
            assert bounded(cut, limit, "text") == cut

    @pytest.mark.parametrize("limit", [MAX_ABSTRACT, MAX_OVERVIEW, MAX_CONTENT])
    def test_more_than_that_is_refused(self, limit: int) -> None:
        with pytest.raises(InvalidValueError, match=f"the limit is {limit:,}. Fix: "):
            bounded("x" * (limit + limit // 10 + 1), limit, "text")

    def test_the_limits_are_those_that_were_agreed(self) -> None:
        assert (MAX_ABSTRACT, MAX_OVERVIEW, MAX_CONTENT) == (200, 5_000, 100_000)

    @pytest.mark.parametrize("wrong", [None, 3, b"x", ["x"]])
    def test_what_is_no_text_is_refused(self, wrong: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match="Fix: give it as text"):
            bounded(wrong, 9, "text")
        with pytest.raises(InvalidValueError, match="Fix: give it as text"):
            encodable(wrong, "text")

    @pytest.mark.parametrize("wrong", ["\ud800", "a\udfff", "\ud83d\ude00"])
    def test_half_a_character_is_refused(self, wrong: str) -> None:
        with pytest.raises(InvalidValueError, match="half a character"):
            bounded(wrong, 9, "text")
        with pytest.raises(InvalidValueError, match="half a character"):
            encodable(wrong, "text")


class TestNumbers:
    @pytest.mark.parametrize("number", [0, 1, 0.0, 1.0, 0.5, 5e-324])
    def test_a_share_is_from_nought_to_one(self, number: float) -> None:
        assert fraction(number, "weight") == number
        assert type(fraction(number, "weight")) is float

    @pytest.mark.parametrize(
        "wrong",
        [
            *(-0.1, 1.1, math.nan, math.inf, -math.inf, math.nextafter(1, 2), 2, -1, 10**5000),
            *(True, False, None, "0.5", 1j, [0.5]),
        ],
        ids=shown,
    )
    def test_no_other_share_can_be(self, wrong: object) -> None:
        with pytest.raises(InvalidValueError, match="Fix: give a number from 0 to 1"):
            fraction(wrong, "weight")

    @pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None, 2**63, 10**5000], ids=shown)
    def test_a_count_is_a_whole_number_from_its_least_on(self, wrong: object) -> None:
        assert count(1, "version", least=1) == 1
        assert count(2**63 - 1, "version") == 2**63 - 1
        with pytest.raises(InvalidValueError, match="Fix: give a whole number from 1 on"):
            count(wrong, "version", least=1)


class _Nowhere(tzinfo):
    """A zone that does not say how far it is from UTC."""

    def utcoffset(self, _when: datetime | None) -> timedelta | None:
        return None

    dst = utcoffset

    def tzname(self, _when: datetime | None) -> str:
        return "nowhere"


class TestMoment:
    def test_a_time_is_shown_in_utc(self) -> None:
        east = NOON.astimezone(timezone(timedelta(hours=9)))

        assert utc_time(east, "time") == NOON
        assert utc_time(east, "time").tzinfo is UTC
        assert utc_time(NOON, "time") is NOON

    @pytest.mark.parametrize(
        "wrong",
        [
            *(None, "2026-03-02", 0, NOON.date(), NOON.replace(tzinfo=None)),
            NOON.replace(tzinfo=_Nowhere()),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=9))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
        ],
        ids=shown,
    )
    def test_one_that_could_be_any_or_none_is_refused(self, wrong: object) -> None:
        with pytest.raises(InvalidValueError, match="Fix: give a datetime with a zone"):
            utc_time(wrong, "time")


class TestFrozen:
    def test_later_changes_of_what_was_given_do_not_show(self) -> None:
        inner: list[JSON] = ["a"]
        deep: dict[str, JSON] = {"b": inner}
        given_: dict[str, JSON] = {"a": deep, "list": inner}

        result = frozen(given_, "metadata")
        inner.append("more")
        deep["c"] = 1
        given_["d"] = 2

        assert plain(result) == {"a": {"b": ["a"]}, "list": ["a"]}

    def test_a_view_of_something_that_changes_is_copied_too(self) -> None:
        behind: dict[str, JSON] = {"a": 1}

        result = frozen(MappingProxyType(behind), "metadata")
        behind["a"] = 2

        assert result == {"a": 1}

    @pytest.mark.parametrize("verb", ["update", "pop", "clear", "setdefault", "popitem", "__ior__"])
    def test_every_verb_that_would_change_it_is_refused(self, verb: str) -> None:
        result = frozen(NESTED, "metadata")

        with pytest.raises(TypeError, match=r"Fix: create another mapping\."):
            getattr(result, verb)({"new": 1})
        assert result == frozen(NESTED, "metadata")

    def test_nothing_in_it_can_be_set_or_deleted(self) -> None:
        result: Any = frozen(NESTED, "metadata")

        for part in (result, result["tags"], result["tags"][1], result["tags"][1]["deep"]):
            key = 0 if isinstance(part, tuple) else next(iter(part))
            with pytest.raises(TypeError):
                part[key] = 1
            with pytest.raises(TypeError):
                del part[key]
        for name in ("_entries", "new"):
            with pytest.raises(AttributeError):
                setattr(result, name, {})

    def test_it_reads_like_any_mapping(self) -> None:
        result = frozen({"a": 1, "b": {"c": 2}}, "metadata")

        assert (result["a"], result.get("x"), "b" in result, "x" in result) == (
            1,
            None,
            True,
            False,
        )
        assert (list(result), len(result), {**result}) == (["a", "b"], 2, {"a": 1, "b": {"c": 2}})
        assert repr(result) == "{'a': 1, 'b': {'c': 2}}"
        with pytest.raises(KeyError):
            result["x"]

    def test_it_equals_what_says_the_same(self) -> None:
        result = frozen({"a": 1, "b": {"c": 2}}, "metadata")

        assert result == frozen({"b": {"c": 2}, "a": 1}, "metadata")
        assert hash(result) == hash(frozen({"b": {"c": 2}, "a": 1}, "metadata"))
        assert result == {"a": 1, "b": {"c": 2}} == result
        assert result != {"a": 1, "b": {"c": 3}}
        assert result != frozen({"a": 1}, "metadata")
        assert result != object()

    def test_what_is_frozen_is_not_copied_again(self) -> None:
        result = frozen(NESTED, "metadata")

        assert frozen(result, "metadata") is result
        assert frozen({}, "metadata") is frozen({}, "payload")

    @settings(deadline=None, max_examples=examples(100))
    @given(OBJECTS)
    def test_it_says_the_same_in_json(self, value: dict[str, JSON]) -> None:
        result = frozen(value, "metadata")
        encoded = json.dumps(plain(result))

        assert json.loads(encoded) == value
        assert frozen(json.loads(encoded), "metadata") == result
        assert pickle.loads(pickle.dumps(result)) == result == copy.deepcopy(result)  # noqa: S301 - our own

    @pytest.mark.parametrize(
        "wrong",
        [
            *(math.nan, math.inf, b"x", {1, 2}, Odd(), NOON, 1j, range(3)),
            *(2**64, -(2**63) - 1, 10**5000, "\ud800", {"\ud800": 1}, {1: 2}, {None: 1}),
        ],
        ids=shown,
    )
    def test_what_json_can_not_say_is_refused_however_deep(self, wrong: Any) -> None:  # noqa: ANN401 - anything
        for value in ({"a": wrong}, {"a": [wrong]}, {"a": {"b": wrong}}):
            with pytest.raises(InvalidValueError, match=r"metadata.*Fix: ") as caught:
                frozen(value, "metadata")
            assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("wrong", [None, 3, "a", [("a", 1)], {1: 2}])
    def test_only_a_mapping_with_names_is_frozen(self, wrong: Any) -> None:  # noqa: ANN401 - anything
        with pytest.raises(InvalidValueError, match="Fix: "):
            frozen(wrong, "metadata")

    def test_what_holds_itself_is_refused_as_too_deep(self) -> None:
        endless: dict[str, Any] = {}
        endless["again"] = [endless]

        with pytest.raises(InvalidValueError, match="nested too deep"):
            frozen(endless, "metadata")

    def test_it_may_be_nested_thirty_two_levels_deep(self) -> None:
        deep: JSON = "end"
        for _ in range(32):
            deep = [deep]

        assert plain(frozen({"a": deep}, "metadata")) == {"a": deep}
        with pytest.raises(InvalidValueError, match="at most 32 levels"):
            frozen({"a": frozen({"b": deep}, "metadata")}, "metadata")

    def test_a_value_of_a_class_of_its_own_becomes_what_json_says(self) -> None:
        class Colour(str, Enum):  # noqa: UP042 - whose `str` is another text
            RED = "red"

        class Size(IntEnum):
            BIG = 3

        class Degrees(float):
            pass

        result = frozen({Colour.RED: [Colour.RED, Size.BIG, Degrees(2.5)]}, "metadata")

        assert repr(result) == "{'red': ('red', 3, 2.5)}"


class TestShown:
    def test_a_message_tells_any_value_on_one_short_line(self) -> None:
        assert shown("a\nb") == r"'a\nb'"
        assert shown(None) == "'None'"
        assert shown("x" * 10**6) == f"'{'x' * 77}...'"
        assert shown(10**5000) == "'a long int'"
        assert shown("\ud800\u202e") == r"'\ud800\u202e'"
