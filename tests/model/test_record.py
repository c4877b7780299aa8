import math
from decimal import Decimal
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.model import IndexRecord, Level, SeedHit
from perdure.model.node import check_filters

TABS = "ctx://local/users/ana/memories/preference/tabs"
MESSAGE = "ctx://local/sessions/s/1"
OWN = {"account_id": "local", "owner_space": "user:ana"}


def record(**fields: Any) -> IndexRecord:  # noqa: ANN401 - the fields' own types
    return IndexRecord(**{"id": "1", "uri": TABS, "level": 0, "text": "", "filters": OWN, **fields})


def hit(**fields: Any) -> SeedHit:  # noqa: ANN401 - the fields' own types
    return SeedHit(**{"id": "1", "uri": TABS, "level": 0, "score": 0.5, **fields})


class TestFilters:
    @pytest.mark.parametrize(
        "filters", [OWN, {**OWN, "category": "event"}, {**OWN, "owner_space": ["user:a", "user:b"]}]
    )
    def test_they_say_in_whose_memory_to_look(self, filters: dict[str, Any]) -> None:
        assert check_filters(filters)["account_id"] == "local"

    @pytest.mark.parametrize("name", ["account_id", "owner_space"])
    @pytest.mark.parametrize("wrong", ["", None, 0, 3, True, [], [""], [None], ["user:a", ""], {}])
    def test_without_an_account_or_an_owner_they_are_refused(
        self, name: str, wrong: object
    ) -> None:
        assert check_filters(OWN) == OWN
        for filters in ({**OWN, name: wrong}, {key: OWN[key] for key in OWN if key != name}):
            with pytest.raises(InvalidValueError, match=f"the filters lack {name}. Fix: "):
                check_filters(filters)  # type: ignore[arg-type]

    def test_an_account_is_one(self) -> None:
        with pytest.raises(InvalidValueError, match="the filters lack account_id"):
            check_filters({**OWN, "account_id": ["local", "other"]})

    def test_they_can_not_be_changed_afterwards(self) -> None:
        filters: dict[str, Any] = {**OWN}
        stored: Any = record(filters=filters).filters
        filters["account_id"] = "other"

        assert stored == OWN
        with pytest.raises(TypeError):
            stored["account_id"] = "other"


class TestIndexRecord:
    @pytest.mark.parametrize("level", [0, 1, 2, *Level], ids=repr)
    def test_its_level_is_one_of_three(self, level: int) -> None:
        assert record(level=level).level is Level(level)
        assert hit(level=level).level is Level(level)

    @pytest.mark.parametrize("wrong", [-1, 3, True, False, 1.0, "1", None, [0]])
    def test_no_other_level_can_be(self, wrong: object) -> None:
        for build in (record, hit):
            with pytest.raises(InvalidValueError, match="Fix: use 0, 1 or 2"):
                build(level=wrong)

    def test_its_vector_is_a_tuple_of_floats(self) -> None:
        numbers = [1, 0.5, Decimal("0.25")]

        stored = record(vector=numbers).vector
        numbers.append(2)

        assert stored == (1.0, 0.5, 0.25)
        assert set(map(type, stored)) == {float}

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"vector": [math.nan]}, {"vector": [math.inf]}, {"vector": [0.5, True]}),
            *({"vector": "123"}, {"vector": ["1"]}, {"vector": None}, {"vector": [10**400]}),
            *({"id": ""}, {"id": None}, {"id": 3}, {"id": "\ud800"}),
            *({"text": None}, {"text": "\ud800"}, {"payload": None}, {"payload": {"a": b""}}),
            *({"uri": "tabs"}, {"uri": None}, {"filters": None}, {"filters": {}}),
            *({"filters": {**OWN, "account_id": "other"}}, {"uri": TABS.replace("local", "other")}),
            *({"filters": {**OWN, "owner_space": "user:bo"}}, {"uri": TABS.replace("ana", "bo")}),
            *(
                {"filters": {**OWN, "owner_space": ["user:ana"]}},
                {"uri": "ctx://local/resources/x"},
            ),
            {"uri": MESSAGE, "filters": {**OWN, "owner_space": "account:local"}},
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            record(**wrong)

    def test_it_is_filed_under_the_owner_that_a_session_has(self) -> None:
        assert record(uri=MESSAGE).filters["owner_space"] == "user:ana"


class TestSeedHit:
    def test_its_score_is_any_finite_number(self) -> None:
        assert hit(score=-3).score == -3.0
        assert type(hit(score=-3).score) is float

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"score": math.nan}, {"score": -math.inf}, {"score": True}, {"score": "1"}),
            *({"score": None}, {"id": ""}, {"id": 3}, {"text": b""}, {"uri": "tabs"}),
            {"payload": {"a": math.nan}},
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            hit(**wrong)
