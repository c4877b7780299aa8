"""The part of JSON Schema that we ask models with, and whether an answer fits.

    type            object, array, string, integer, number, boolean, null, or a list of them
    enum, const     JSON values
    properties, required, additionalProperties (true, false, or a schema)
    items, minItems, maxItems
    minLength, maxLength
    minimum, maximum, exclusiveMinimum, exclusiveMaximum
    anyOf
    title, description, default, examples: they say nothing about what fits

Any other word is refused: an answer that was not looked at in full is not called right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, TypeGuard

from perdure.errors import InvalidValueError
from perdure.model.values import JSON, shown

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_FITS: dict[str, Callable[[float, float], bool]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength")
_UNCHECKED = ("additionalProperties", "const", "default", "description", "examples")
_DEEPEST = 32

Schema = Mapping[str, Any]
Fault = tuple[str, str]


# ---------------------------------------------------------------- schemas
def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _are_types(value: object) -> bool:
    names = value if _is_list(value) else [value]
    return bool(names) and all(isinstance(each, str) and each in _TYPES for each in names)


_WORDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "type": (f"one of {', '.join(_TYPES)}, or a list of them", _are_types),
    "properties": ("an object of schemas", lambda value: isinstance(value, Mapping)),
    "required": (
        "a list of names",
        lambda value: _is_list(value) and all(isinstance(each, str) for each in value),
    ),
    **dict.fromkeys(
        ("enum", "anyOf"),
        ("a list with something in it", lambda value: _is_list(value) and bool(value)),
    ),
    **dict.fromkeys(
        _COUNTS, ("a whole number from 0 on", lambda value: type(value) is int and value >= 0)
    ),
    **dict.fromkeys(_FITS, ("a number", lambda value: type(value) in {int, float})),
    **dict.fromkeys((*_UNCHECKED, "items", "title"), ("", lambda _: True)),
}
"""What each word must be, and whether it is."""


def check_schema(schema: object, what: str) -> None:
    """Refuse a schema that is not of an object, or says what we can't check."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidValueError(
            f'{what} is no schema of an object. Fix: give one with "type": "object".'
        )
    _check(schema, what, _DEEPEST)


def _check(schema: object, where: str, depth: int) -> None:
    if not depth:
        raise InvalidValueError(f"{where} is nested too deep. Fix: {_DEEPEST} levels are the most.")
    if not isinstance(schema, Mapping):
        raise InvalidValueError(f"{where} is {shown(schema)}. Fix: make it a schema, an object.")
    for word, value in schema.items():
        if word not in _WORDS:
            raise InvalidValueError(
                f"{where} says {shown(word)}, which answers are not checked for. "
                f"Fix: use {', '.join(sorted(_WORDS))}."
            )
        expected, is_so = _WORDS[word]
        if not is_so(value):
            raise InvalidValueError(f"{where}.{word} is not {expected}. Fix: make it so.")
    for name, inner in _schemas_in(schema):
        _check(inner, f"{where}.{name}", depth - 1)


def _schemas_in(schema: Schema) -> Iterator[tuple[str, object]]:
    yield from schema.get("properties", {}).items()
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield "additionalProperties", schema["additionalProperties"]
    if "items" in schema:
        yield "items", schema["items"]
    for at, each in enumerate(schema.get("anyOf", ())):
        yield f"anyOf[{at}]", each


def is_closed(schema: Schema) -> bool:
    """Whether each object has exactly the properties that it lists, as strict services ask."""
    names = set(schema.get("properties", {}))
    if "object" in _types(schema) and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names
    ):
        return False
    return all(isinstance(each, Mapping) and is_closed(each) for _, each in _schemas_in(schema))


# ---------------------------------------------------------------- answers
def fault_in(value: JSON, schema: Schema) -> Fault | None:
    """Return where a value does not fit a schema that was checked; None if it does."""
    return next(_faults(value, schema, "$"), None)


def _faults(value: Any, schema: Schema, at: str) -> Iterator[Fault]:  # noqa: ANN401 - JSON
    if "type" in schema and not any(_is_a(value, name) for name in _types(schema)):
        yield at, f"it is no {' or '.join(_types(schema))}"
        return
    yield from _faults_of_choice(value, schema, at)
    if isinstance(value, dict):
        yield from _faults_of_object(value, schema, at)
    elif isinstance(value, list):
        yield from _faults_of_length(len(value), schema, at, "Items")
        for place, each in enumerate(value if "items" in schema else ()):
            yield from _faults(each, schema["items"], f"{at}[{place}]")
    elif isinstance(value, str):
        yield from _faults_of_length(len(value), schema, at, "Length")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        for word, fits in _FITS.items():
            if word in schema and not fits(value, schema[word]):
                yield at, f"it is {shown(value)}, and {word} is {schema[word]}"


def _faults_of_choice(value: Any, schema: Schema, at: str) -> Iterator[Fault]:  # noqa: ANN401 - JSON
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        yield at, "it is none of the values that it may be"
    if "const" in schema and not _same(value, schema["const"]):
        yield at, "it is not the value that it must be"
    if "anyOf" in schema and all(fault_in(value, each) for each in schema["anyOf"]):
        yield at, "it fits no alternative"


def _faults_of_object(value: dict[str, Any], schema: Schema, at: str) -> Iterator[Fault]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield at, f"it lacks {shown(name)}"
    for name, each in value.items():
        inner = properties.get(name, others)
        if inner is False:
            yield at, f"it has {shown(name)}, which it may not"
        elif inner is not True:
            yield from _faults(each, inner, f"{at}.{name}")


def _faults_of_length(length: int, schema: Schema, at: str, word: str) -> Iterator[Fault]:
    least, most = schema.get(f"min{word}", 0), schema.get(f"max{word}", length)
    if not least <= length <= most:
        yield at, f"it has {length} {'items' if word == 'Items' else 'characters'}"


def _types(schema: Schema) -> tuple[str, ...]:
    told = schema.get("type", ())
    return (told,) if isinstance(told, str) else tuple(told)


def _is_a(value: object, name: str) -> bool:
    """Whether a value is of a type; 1.0 is a whole number, as the standard has it."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether two values are one in JSON, where true is no 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, Sequence) and not isinstance(other, str):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)
