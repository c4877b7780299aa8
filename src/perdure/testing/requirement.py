"""Tie a test to the sentence of the specification that it holds."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def requirement(*ids: str) -> Callable[[Test], Test]:
    """Mark a test as holding the requirements `ids`.

    An attribute and not a pytest marker: suites run in other people's projects too, whose strict
    markers would refuse ours.
    """

    def mark(test: Test) -> Test:
        test.__dict__["requirements"] = (*requirements_of(test), *ids)
        return test

    return mark


def requirements_of(test: object) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(test, "requirements", ())
    return found
