"""Tie a test to the requirements of the specification that it checks."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def requirement(*ids: str) -> Callable[[Test], Test]:
    """Mark a test as checking the requirements `ids`.

    Sets an attribute instead of a pytest marker: suites also run in other projects, where strict
    markers would reject ours.
    """

    def mark(test: Test) -> Test:
        test.__dict__["requirements"] = (*requirements_of(test), *ids)
        return test

    return mark


def requirements_of(test: object) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(test, "requirements", ())
    return found
