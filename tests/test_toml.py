"""Edits of TOML change one value, and nothing else."""

import tomllib

import pytest

from perdure.errors import InvalidValueError
from perdure.toml import parse, with_value, without

MINE = '''\
# mine
model = 'o3'  # here

[a.b] # there
x = [
  1, # one
]
[[rules]]
text = """
[a.b]
y = 2
"""
'''

CHANGED = {
    ("model",): ["model = 'o3'  # here"],
    ("a", "b", "x"): ["x = [", "  1, # one", "]"],
}


@pytest.mark.parametrize("place", [("model",), ("a", "b", "x"), ("a", "new"), ("z", "y", "x")])
def test_one_value_changes_and_every_other_line_stays(place: tuple[str, ...]) -> None:
    wanted = table = tomllib.loads(MINE)
    for name in place[:-1]:
        table = table.setdefault(name, {})
    table[place[-1]] = "new"

    edited = with_value(MINE, place, "new")

    assert tomllib.loads(edited) == wanted
    lost = [line for line in MINE.splitlines() if line not in edited.splitlines()]
    assert lost == {
        ("model",): ["model = 'o3'  # here"],
        ("a", "b", "x"): ["x = [", "  1, # one", "]"],
    }.get(place, [])


@pytest.mark.parametrize("place", [("z",), ("z", "y"), ("a", "c", "d"), ("model", "x")])
def test_what_is_not_there_is_removed_without_a_change(place: tuple[str, ...]) -> None:
    assert without(MINE, place) == MINE


def test_a_table_that_becomes_empty_goes_with_its_last_value() -> None:
    assert parse(without("[a.b]\nx = 1\n[c]\n", ("a", "b", "x"))) == {"c": {}}


@pytest.mark.parametrize("text", ["a = 1\n", "a = [1]\n", "[[a]]\nb = 1\n", "a.b = 1\n"])
def test_what_has_no_room_for_a_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="safely"):
        with_value(text, ("a", "b", "c"), 1)


@pytest.mark.parametrize("text", ["a = ", "\x00", "[" * 5_000, "a = " + "9" * 5_000])
def test_what_is_not_toml_is_refused(text: str) -> None:
    for edit in (parse, lambda each: with_value(each, ("a",), 1), lambda each: without(each, "a")):
        with pytest.raises(InvalidValueError):
            edit(text)


@pytest.mark.parametrize("value", ['"]\n[llm]\n', "\x7f\u2028", "'''", "é\\u0041"])
def test_a_value_can_say_nothing_but_itself(value: str) -> None:
    assert parse(with_value(MINE, ("a", "v"), value))["a"]["v"] == value
