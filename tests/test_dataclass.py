# ruff: noqa: ANN401, B023, PLW1641 - any class is compared, at once, with what it says of itself
"""A dataclass of ours is what the standard library would make of the class."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from functools import cached_property
from typing import Any, ClassVar

import pytest

from perdure import dataclass as ours


def created(of: Any) -> list[Any]:
    """Make the same classes, by the standard library or by us."""

    @of.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        first: int
        second: str = ""

    @of.dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        seen: list[int] = of.field(default_factory=list, compare=False, repr=False)
        origin: ClassVar[int] = 0

    @of.dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = ""

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.strip())

    @of.dataclass(slots=True)
    class Counter:
        count: int = 0

    @of.dataclass(frozen=True, slots=True, kw_only=True)
    class Keyed:
        key: str
        value: str = "v"

    @of.dataclass(frozen=True)
    class Cached:
        text: str

        @cached_property
        def long(self) -> str:
            return self.text * 2

    @of.dataclass(frozen=True, slots=True, eq=False)
    class Same:
        one: int

    @of.dataclass(frozen=True, slots=True)
    class Empty:
        pass

    @of.dataclass(frozen=True, slots=True)
    class Own:
        text: str

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    return [Point, Named, Counter, Keyed, Cached, Same, Empty, Own, Ordered]


THEIRS, OURS = created(dataclasses), created(ours)
PAIRS = [pytest.param(*pair, id=pair[0].__name__) for pair in zip(THEIRS, OURS, strict=True)]
ARGUMENTS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "Point": [((1,), {}), ((1, 2), {}), ((), {"x": 1, "y": 0}), ((), {}), ((1,), {"z": 1})],
    "Named": [((1, 2, [3], " n "), {}), ((1,), {"name": "m"}), ((1,), {"x": 2})],
    "Counter": [((), {}), ((5,), {}), ((5, 6), {})],
    "Keyed": [((), {"key": "k"}), (("k",), {}), ((), {"value": "w"})],
    "Cached": [(("ab",), {}), ((), {})],
    "Same": [((1,), {})],
    "Empty": [((), {}), ((1,), {})],
    "Ordered": [((1,), {}), ((1, "b"), {}), ((2, "a"), {})],
    "Own": [(("a",), {}), (("b",), {})],
}


def attempted(act: Any) -> Any:
    """Return what an act gives, or the type of what it raises."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - it is compared
        return type(error)


@pytest.mark.parametrize(("theirs", "mine"), PAIRS)
def test_values_are_alike(theirs: Any, mine: Any) -> None:
    for one, two in ((one, two) for one in _values(theirs) for two in _values(theirs)):
        left, right = (_counterpart(value, theirs, mine) for value in (one, two))
        assert repr(left) == repr(one)
        assert (left == right) == (one == two) or theirs.__name__ == "Same"
        for verb in ("__lt__", "__le__", "__gt__", "__ge__"):
            expected = attempted(lambda verb=verb: getattr(one, verb)(two))
            assert attempted(lambda verb=verb: getattr(left, verb)(right)) == expected
        assert isinstance(attempted(lambda: hash(left)), type(attempted(lambda: hash(one))))
        if theirs.__hash__:
            assert (hash(left) == hash(right)) == (
                hash(one) == hash(two)
            ) or theirs.__eq__ is object.__eq__


def _values(cls: Any) -> list[Any]:
    every = (attempted(lambda a=a, k=k: cls(*a, **k)) for a, k in ARGUMENTS[cls.__name__])
    return [each for each in every if isinstance(each, cls)]


def _counterpart(value: Any, theirs: Any, mine: Any) -> Any:
    return mine(**{each.name: getattr(value, each.name) for each in dataclasses.fields(theirs)})


@pytest.mark.parametrize(("theirs", "mine"), PAIRS)
def test_calls_are_taken_and_refused_alike(theirs: Any, mine: Any) -> None:
    for arguments, named in ARGUMENTS[theirs.__name__]:
        expected, seen = (attempted(lambda c=c: c(*arguments, **named)) for c in (theirs, mine))
        assert (seen is expected) == isinstance(expected, type)
    assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
    assert mine.__match_args__ == theirs.__match_args__
    assert hasattr(mine, "__slots__") == hasattr(theirs, "__slots__")
    assert mine.__doc__ == theirs.__doc__ or mine.__doc__ is None


@pytest.mark.parametrize(("theirs", "mine"), PAIRS)
def test_the_standard_functions_take_them(theirs: Any, mine: Any) -> None:
    assert dataclasses.is_dataclass(mine)
    for one in _values(theirs):
        value = _counterpart(one, theirs, mine)
        assert dataclasses.asdict(value) == dataclasses.asdict(one)
        assert repr(dataclasses.replace(value)) == repr(ours.replace(value)) == repr(value)
        names = [each.name for each in dataclasses.fields(one)]
        assert [each.name for each in dataclasses.fields(value)] == names
        assert [each.name for each in ours.fields(value)] == names


def test_replacing_checks_as_making_does() -> None:
    _, named, *_ = OURS

    assert ours.replace(named(1), name=" n ").name == "n"
    with pytest.raises(TypeError):
        ours.replace(named(1), nothing=1)


def test_a_frozen_value_can_not_be_changed() -> None:
    point, _, counter, *_ = OURS
    value, counted = point(1), counter()
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.x
    counted.count += 1

    assert (value.x, counted.count) == (1, 1)


def test_each_value_has_a_list_of_its_own() -> None:
    point = OURS[0]

    assert point(1).seen is not point(1).seen


@ours.dataclass(frozen=True, slots=True)
class Kept:
    text: str
    more: tuple[int, ...] = (1,)


def test_a_value_can_be_copied_and_pickled() -> None:
    stored = Kept("a")

    assert pickle.loads(pickle.dumps(stored)) == stored == copy.deepcopy(stored)  # noqa: S301 - our own


def test_a_value_can_be_matched_by_place() -> None:
    match Kept("a"):
        case Kept(text, (number,)):
            assert (text, number) == ("a", 1)


def test_a_class_in_use_loads_neither_dataclasses_nor_inspect() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"  # what counts lines loads some itself
        "from perdure.dataclass import *\n"
        "@dataclass(frozen=True, slots=True)\nclass A:\n x: int = 1\n"
        "assert replace(A(), x=2) != A() and hash(A()) and repr(A())\n"
        "assert not {'dataclasses', 'inspect'} & (set(sys.modules) - before)"
    )
    subprocess.run((sys.executable, "-c", code), check=True, timeout=60)
