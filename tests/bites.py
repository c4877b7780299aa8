"""What all proofs that a suite bites have in common."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings

Errors = type[BaseException] | tuple[type[BaseException], ...]

FAILED: Errors = (AssertionError, pytest.fail.Exception)


@dataclass(frozen=True, slots=True)
class Bite:
    broken: Any
    """An implementation, or what breaks one."""
    caught_by: str
    shown_as: Errors = FAILED
    """What the test raises; another error than the one that the contract asks for shows itself."""


@pytest.fixture(autouse=True)
def repeatable_search() -> Iterator[None]:
    """Let Hypothesis try the same sequences each time, and stop at the first that fails."""
    before = settings.get_current_profile_name()
    settings.register_profile(
        "repeatable",
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
    )
    settings.load_profile("repeatable")
    yield
    settings.load_profile(before)


def run_with_each_parameter(test: Callable[..., None]) -> None:
    """Run a test as pytest would, with each of the parameters that it is marked with."""
    for given in _parameters(test):
        test(**given)


def _parameters(test: Callable[..., None]) -> Iterator[dict[str, object]]:
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        yield {}
    for mark in marks:
        names, values = mark.args
        for value in values:
            yield {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
