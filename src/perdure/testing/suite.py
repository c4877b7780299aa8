"""Contract suites: an implementation's test class inherits one and defines its hooks."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., object])

_GATE = "gate"
_USUAL_EXAMPLES = 100
_FEWEST_EXAMPLES = 5


def examples(usual: int) -> int:
    """Return how many examples Hypothesis tries: `usual`, scaled by the loaded profile.

    A profile with 10 examples makes all suites ten times as fast, one with 1000 ten times as
    thorough.
    """
    scaled = usual * settings().max_examples // _USUAL_EXAMPLES
    return max(min(usual, _FEWEST_EXAMPLES), scaled)


def when(promise: str) -> Callable[[Test], Test]:
    """Run the test only for implementations that make this promise."""

    def mark(test: Test) -> Test:
        test.__dict__[_GATE] = promise
        return test

    return mark


class Suite:
    """Base of the contract suites. A subclass defines the `hooks`; it can't replace a test.

    A class that runs defines what its implementation `promises`. This enables the tests marked with
    `when`; a test of each suite compares the promises with those that the implementation declares.
    """

    hooks: ClassVar[frozenset[str]]
    """The names that a subclass may define."""
    known_promises: ClassVar[frozenset[str]]
    promises: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "promises" not in vars(cls):
            _refuse_replacements(cls)
            return
        unknown = cls.promises - cls.known_promises
        if unknown:
            raise TypeError(
                f"{cls.__qualname__} promises {sorted(unknown)}, which the suite does not know. "
                f"Fix: use some of {sorted(cls.known_promises)}."
            )
        _refuse_replacements(cls)
        for name, test in gated_tests(cls).items():
            switched_on = getattr(test, _GATE) in cls.promises
            setattr(cls, name, test if switched_on else None)  # pytest passes over None


def _refuse_replacements(suite: type[Suite]) -> None:
    """Refuse a class, or a mixin of it, that replaces a name of a suite."""
    fixed: set[str] = set()
    bases = [base for base in reversed(suite.__mro__) if base is not object]
    hooks: frozenset[str] = next(
        (vars(base)["hooks"] for base in bases if "hooks" in vars(base)), frozenset()
    )
    for base in bases:
        is_suite = issubclass(base, Suite)
        if base is suite or not is_suite:
            replaced = {name for name in vars(base) if name in fixed and name not in hooks}
            if replaced:
                raise TypeError(
                    f"{suite.__qualname__} replaces {', '.join(sorted(replaced))}, which is part "
                    "of the contract. Fix: give your own another name."
                )
        if is_suite:
            fixed |= {name for name in vars(base) if not name.startswith("__")}


def gated_tests(suite: type[Suite]) -> dict[str, Callable[..., object]]:
    """Return the tests that depend on a promise."""
    return {
        name: test
        for base in suite.__mro__
        for name, test in vars(base).items()
        if hasattr(test, _GATE)
    }


def names_of_tests(suite: type[Suite]) -> list[str]:
    """Return the names of a suite's enabled tests."""
    return sorted(
        name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))
    )
