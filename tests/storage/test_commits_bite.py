"""Each way to break a commit is found by the check that is there for it."""

from collections.abc import Callable
from typing import Any

import pytest

from perdure.errors import StorageFullError
from perdure.storage.committer import Committer
from perdure.storage.redo import find_stale
from tests.storage.transactions import (
    SCENARIOS,
    Scenario,
    check_any_order,
    check_committed,
    check_failures,
    check_hand_edits,
    check_kills,
    check_kills_while_redoing,
    check_overtaken,
    check_power_cuts,
    check_views,
)

pytestmark = pytest.mark.search

Patch = pytest.MonkeyPatch


def nothing(*_: object, **__: object) -> None:
    """Do it not at all."""


# ---------------------------------------------------------------- redo
def never_redo(patch: Patch) -> None:
    patch.setattr(Committer, "_redo", nothing)


def record_the_files_instead_of_a_redo(patch: Patch) -> None:
    patch.setattr(Committer, "_redo", lambda self, _: self._record_files(self.known_keys()))


def redo_over_an_edit(patch: Patch) -> None:
    patch.setattr("perdure.storage.redo.StaleFile.is_rewritten", property(lambda _: True))


def forget_removals(patch: Patch) -> None:
    def forgetful(*args: Any) -> object:  # noqa: ANN401
        found = find_stale(*args)
        return None if found is not None and found.text is None else found

    patch.setattr("perdure.storage.committer.find_stale", forgetful)


def leave_directories(patch: Patch) -> None:
    patch.setattr("perdure.storage.committer.remove_empty_directories", nothing)


def move_the_mark_first(patch: Patch) -> None:
    write = Committer._write

    def early(self: Committer, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self.history.lock.settle(self.history.position())
        write(self, *args, **kwargs)

    patch.setattr(Committer, "_write", early)


# ---------------------------------------------------------------- failing
def let_failures_stand(patch: Patch) -> None:
    patch.setattr(Committer, "_abort", nothing)


def give_back_only_in_the_files(patch: Patch) -> None:
    abort = Committer._abort

    def forget(self: Committer) -> None:
        with patch.context() as inner:
            inner.setattr(self.history, "record", nothing)
            abort(self)

    patch.setattr(Committer, "_abort", forget)


# ---------------------------------------------------------------- reading
def tell_what_is_there(patch: Patch) -> None:
    patch.setattr(Committer, "committed", Committer._read)


FULL = StorageFullError("full")
CHECKS: dict[str, Callable[[Scenario], None]] = {
    "kills": check_kills,
    "kills while redoing": check_kills_while_redoing,
    "failures": lambda scenario: check_failures(scenario, FULL),
    "hand edits": check_hand_edits,
    "any order": check_any_order,
    "overtaken": check_overtaken,
    "power cuts": check_power_cuts,
    "committed": check_committed,
    "views": lambda scenario: check_views(scenario, FULL),
}

BROKEN: list[tuple[Callable[[Patch], None], str, str]] = [
    (never_redo, "kills", "move"),
    (never_redo, "any order", "update"),
    (never_redo, "kills while redoing", "update"),
    (record_the_files_instead_of_a_redo, "kills", "update"),
    (record_the_files_instead_of_a_redo, "power cuts", "update"),
    (redo_over_an_edit, "hand edits", "update"),
    (forget_removals, "kills", "delete"),
    (leave_directories, "failures", "create"),
    (move_the_mark_first, "kills", "update"),
    (let_failures_stand, "failures", "create"),
    (let_failures_stand, "failures", "update"),
    (give_back_only_in_the_files, "failures", "update"),
    (tell_what_is_there, "committed", "update"),
]


@pytest.mark.parametrize(
    ("how", "check", "scenario"),
    BROKEN,
    ids=lambda value: getattr(value, "__name__", value),
)
def test_it_is_found(
    how: Callable[[Patch], None], check: str, scenario: str, monkeypatch: Patch
) -> None:
    how(monkeypatch)
    with pytest.raises(AssertionError):
        CHECKS[check](SCENARIOS[scenario])
