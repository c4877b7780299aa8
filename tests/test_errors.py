import builtins
import copy
import inspect
import pickle
import re

import pytest

from perdure import errors
from perdure.errors import (
    AbsentError,
    CapabilityMismatchError,
    InvalidLocatorError,
    OptionError,
    PerdureError,
    ProtocolError,
    StorageSelectionError,
)
from perdure.testing.requirement import requirement

DEFINED = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__
}


def drawn(tree: str) -> dict[str, tuple[str, ...]]:
    """Return the tree of a docstring: the name of each exception to those of its bases."""
    bases: dict[str, tuple[str, ...]] = {}
    above: dict[int, str] = {}
    for line in tree.splitlines():
        match = re.match(r"[ │├└─]{4,}(\w+)(?: +(\w+))?", line)
        if match is None:
            continue
        depth = match.start(1)
        parents = [name for at, name in sorted(above.items()) if at < depth][-1:]
        above[depth] = match[1]
        above = {at: name for at, name in above.items() if at <= depth}
        builtin = [match[2]] if match[2] and hasattr(builtins, match[2]) else []
        bases[match[1]] = (*parents, *builtin)
    return bases


def make(kind: type[PerdureError]) -> PerdureError:
    if issubclass(kind, OptionError):
        return kind("path", "'path' is wrong. Fix: mend it.")
    return kind("it is wrong. Fix: mend it.")


def test_everything_defined_is_an_error_of_perdure() -> None:
    assert [name for name, kind in DEFINED.items() if not issubclass(kind, PerdureError)] == []
    assert PerdureError.__bases__ == (Exception,)


def test_the_tree_that_is_drawn_is_the_one_that_is_defined() -> None:
    defined = {
        name: tuple(base.__name__ for base in kind.__bases__ if base is not Exception)
        for name, kind in DEFINED.items()
    }

    assert drawn(errors.__doc__ or "") == defined
    assert len(defined) > 20


def test_a_drawing_is_read_by_its_indents() -> None:
    assert drawn("    A\n    ├── B     ValueError   x\n    │   └── C\n    └── D     not one") == {
        "A": (),
        "B": ("A", "ValueError"),
        "C": ("B",),
        "D": ("A",),
    }


@pytest.mark.parametrize("kind", DEFINED.values())
def test_each_can_be_caught_as_the_builtin_that_its_name_promises(
    kind: type[PerdureError],
) -> None:
    for name in drawn(errors.__doc__ or "")[kind.__name__]:
        base = getattr(builtins, name, None) or DEFINED[name]
        with pytest.raises(base):
            raise make(kind)


@pytest.mark.parametrize("kind", DEFINED.values())
def test_each_crosses_processes_whole(kind: type[PerdureError]) -> None:
    error = make(kind)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", DEFINED.values())
def test_each_says_just_what_it_was_given(kind: type[PerdureError]) -> None:
    assert str(make(kind)).endswith("wrong. Fix: mend it.")
    assert "\n" not in str(make(kind))


def test_a_refused_option_names_itself() -> None:
    error = OptionError("path", "'path' is wrong")

    assert error.option == "path"
    assert str(error) == "'path' is wrong"


@requirement("000-invalid-locator-is-value-error", "000-invalid-locator-is-not-absence")
def test_a_bad_key_and_an_absent_text_are_different_errors() -> None:
    assert issubclass(InvalidLocatorError, ValueError)
    assert not issubclass(InvalidLocatorError, FileNotFoundError)
    assert issubclass(AbsentError, FileNotFoundError)
    assert not issubclass(AbsentError, InvalidLocatorError | ValueError)


@requirement("000-protocol-error-is-value-error", "001-capability-mismatch-is-selection-error")
def test_a_bad_registration_is_no_refusal_of_selection() -> None:
    assert issubclass(ProtocolError, ValueError)
    assert not issubclass(ProtocolError, StorageSelectionError)
    assert issubclass(CapabilityMismatchError, StorageSelectionError)
