"""Each way to break a commit is found by the check that is there for it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perdure.errors import StorageFullError
from perdure.storage import undo
from perdure.storage.fence import Fence
from perdure.storage.history import History
from perdure.storage.joint import Joint, last_replaced
from perdure.storage.undo import Replaced
from tests.storage.transacting import (
    SCENARIOS,
    Scenario,
    check_any_order,
    check_committed,
    check_failures,
    check_hand_edits,
    check_kills,
    check_kills_while_undoing,
    check_overtaken,
    check_power_cuts,
    check_views,
)

pytestmark = pytest.mark.search

Patch = pytest.MonkeyPatch


def nothing(*_: object, **__: object) -> None:
    """Do it not at all."""


# ---------------------------------------------------------------- undoing
def undo_nothing(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint.put_back", nothing)


def undo_though_all_is_written(patch: Patch) -> None:
    patch.setattr(undo, "has_landed", lambda *_: False)


def undo_in_the_order_of_writing(patch: Patch) -> None:
    put_back = undo.put_back

    def forwards(inner: Any, replaced: Sequence[Replaced], text_of: Any) -> None:  # noqa: ANN401
        put_back(inner, replaced[::-1], text_of)

    patch.setattr("perdure.storage.joint.put_back", forwards)


def undo_what_somebody_else_wrote(patch: Patch) -> None:
    patch.setattr(undo, "is_of", lambda cid, text: text not in (None, "") and cid is not None)


def leave_directories(patch: Patch) -> None:
    patch.setattr(undo, "_remove_empty", nothing)


def undo_only_after_exceptions(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint.last_replaced", lambda *_: [])


# ---------------------------------------------------------------- history
def move_the_mark_first(patch: Patch) -> None:
    record = Joint._write

    def write(self: Joint, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self.history.fence.settle(self.history.position())
        record(self, *args, **kwargs)

    patch.setattr(Joint, "_write", write)


def leave_the_mark_to_the_cache(patch: Patch) -> None:
    patch.setattr(Fence, "settle_durably", Fence.settle)


def forget_what_others_wrote_before(patch: Patch) -> None:
    def forgetful(history: History, settled: int) -> list[Replaced]:
        return [
            text._replace(before=history.store.catalogue.content(text.locator.key, settled))
            for text in last_replaced(history, settled)
        ]

    patch.setattr("perdure.storage.joint.last_replaced", forgetful)


def take_a_second_attempt_for_another_commit(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint._beginning", lambda last: last[0].position - 1)


def answer_before_undoing(patch: Patch) -> None:
    put_back = undo.put_back

    def answer(self: Joint) -> None:
        mark = self._mark()
        if mark is not None and self.history.store.catalogue.last_named() > mark:
            unfinished = last_replaced(self.history, mark)
            self._answer([text.locator for text in unfinished], mark, {})
            put_back(self.inner, unfinished, self._text)
            self._answer([text.locator for text in unfinished], mark, {})
            self.history.fence.settle_durably(self.history.position())

    patch.setattr(Joint, "_settle_leftovers", answer)


# ---------------------------------------------------------------- reading
def tell_what_is_there(patch: Patch) -> None:
    patch.setattr(Joint, "committed", Joint._read)


FULL = StorageFullError("full")
CHECKS: dict[str, Callable[[Scenario], None]] = {
    "kills": check_kills,
    "kills while undoing": check_kills_while_undoing,
    "failures": lambda scenario: check_failures(scenario, FULL),
    "hand edits": check_hand_edits,
    "any order": check_any_order,
    "overtaken": check_overtaken,
    "power cuts": check_power_cuts,
    "committed": check_committed,
    "views": lambda scenario: check_views(scenario, FULL),
}

BROKEN: list[tuple[Callable[[Patch], None], str, str]] = [
    (undo_nothing, "kills", "move"),
    (undo_nothing, "failures", "create"),
    (undo_nothing, "any order", "update"),
    (undo_nothing, "views", "update"),
    (undo_though_all_is_written, "kills", "update"),
    (undo_in_the_order_of_writing, "kills while undoing", "update"),
    (undo_what_somebody_else_wrote, "hand edits", "update"),
    (leave_directories, "kills", "create"),
    (undo_only_after_exceptions, "kills", "move"),
    (move_the_mark_first, "kills", "update"),
    (leave_the_mark_to_the_cache, "power cuts", "update"),
    (forget_what_others_wrote_before, "overtaken", "update"),
    (take_a_second_attempt_for_another_commit, "overtaken", "update"),
    (answer_before_undoing, "views", "update"),
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
