"""A contract as tests: whoever implements it subclasses, says how to make one, and passes."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

_GATE = "gate"


def when(promise: str) -> Callable[[Test], Test]:
    """Run the test only for implementations that make this promise."""

    def mark(test: Test) -> Test:
        test.__dict__[_GATE] = promise
        return test

    return mark


class Suite:
    """Base of the contract suites. A subclass adds to a suite; it can't replace a test.

    A class that is meant to run says what its implementation `promises`. This switches on the tests
    that are marked by `when`, and each suite has a test that compares it with what the
    implementation says of itself.
    """

    promises: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in vars(cls):
            if name.startswith("test_") and any(name in vars(base) for base in cls.__mro__[1:]):
                raise TypeError(
                    f"{cls.__qualname__} replaces {name}, which is part of the contract. "
                    "Fix: give your own test another name."
                )
        if "promises" in vars(cls):
            for name, test in gated_tests(cls).items():
                switched_on = getattr(test, _GATE) in cls.promises
                setattr(cls, name, test if switched_on else None)  # pytest passes over None


def gated_tests(suite: type[Suite]) -> dict[str, Callable[..., object]]:
    """Return the tests that depend on a promise."""
    return {
        name: test
        for base in suite.__mro__
        for name, test in vars(base).items()
        if hasattr(test, _GATE)
    }


def test_names(suite: type[Suite]) -> list[str]:
    """Return the tests of a suite that are switched on."""
    return sorted(
        name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))
    )
