"""Which schemas can be asked with, and what fits them."""

from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.llm.contract import check_schema, find_fault, is_closed

FITS: tuple[tuple[dict[str, Any], Any], ...] = (
    ({}, None),
    ({"type": "integer"}, 1.0),
    ({"type": "number"}, 1),
    ({"type": ["string", "null"]}, None),
    ({"enum": ["a", "b"]}, "b"),
    ({"items": {"type": "null"}}, [None]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
    ({"type": "object", "properties": {"a": {"type": "null"}}}, {"b": 1}),
)
MISFITS: tuple[tuple[dict[str, Any], Any, str], ...] = (
    ({"type": "integer"}, 1.5, "$"),
    ({"type": "integer"}, True, "$"),
    ({"type": "number"}, False, "$"),
    ({"type": "boolean"}, 1, "$"),
    ({"enum": ["a"]}, "b", "$"),
    ({"items": {"items": {"type": "null"}}}, [[None], [None, 0]], "$[1][1]"),
    ({"required": ["a"]}, {}, "$"),
    ({"properties": {"a": {"properties": {"b": {"type": "null"}}}}}, {"a": {"b": 1}}, "$.a.b"),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, "$"),
    ({"additionalProperties": {"type": "integer"}}, {"a": "b"}, "$.a"),
)
REFUSED: dict[str, Any] = {
    "words that are not checked": {"pattern": "a"},
    "a reference": {"$ref": "#"},
    "a type that is none": {"type": "text"},
    "no types": {"type": []},
    "a list that is none": {"required": "a"},
    "names that are none": {"required": [1]},
    "nothing to choose from": {"enum": []},
    "a choice of numbers": {"enum": [1]},
    "bounds": {"minimum": 1},
    "properties that are none": {"properties": ["a"]},
    "no schema": {"items": 1},
    "a schema that is none, deep inside": {"items": {"items": {"not": {}}}},
}


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_what_fits_has_no_fault(schema: dict[str, Any], value: Any) -> None:  # noqa: ANN401 - JSON
    check_schema({"type": "object", "properties": {"it": schema}}, "it")

    assert find_fault(value, schema) is None


@pytest.mark.parametrize(("schema", "value", "place"), MISFITS)
def test_a_fault_is_reported_with_its_place(
    schema: dict[str, Any],
    value: Any,  # noqa: ANN401 - JSON
    place: str,
) -> None:
    check_schema({"type": "object", "properties": {"it": schema}}, "it")

    found = find_fault(value, schema)

    assert found is not None
    assert found[0] == place


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_an_unsupported_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        check_schema({"type": "object", "properties": {"it": schema}}, "it")


def test_a_schema_that_is_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(40):
        deep = {"type": "object", "properties": {"a": deep}}

    with pytest.raises(InvalidValueError, match="too deep"):
        check_schema(deep, "it")


def test_a_schema_is_closed_if_each_object_in_it_lists_all_that_it_has() -> None:
    inner = {"type": "object", "properties": {}, "additionalProperties": False}
    outer: dict[str, Any] = {"type": "object", "properties": {"a": inner}, "required": ["a"]}

    assert is_closed({**outer, "additionalProperties": False})
    assert not is_closed(outer)
    assert not is_closed({**outer, "additionalProperties": False, "required": []})
    assert not is_closed(
        {**outer, "additionalProperties": False, "properties": {"a": {"type": "object"}}}
    )
