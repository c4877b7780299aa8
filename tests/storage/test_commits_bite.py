"""Each way to break a commit is found by the check that is there for it."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from perdure.errors import StorageFullError
from perdure.storage import rollback, undo
from perdure.storage.fence import Fence
from perdure.storage.history import History
from perdure.storage.joint import Joint
from perdure.storage.rollback import Rollback, RollbackFile
from perdure.storage.undo import Replaced
from perdure.storage.unfinished import last_replaced
from perdure.storage.wrappers import journaled
from perdure.storage.wrappers.journaled import Journaled
from tests.storage.transacting import (
    KINDS,
    SCENARIOS,
    Open,
    Scenario,
    check_any_order,
    check_committed,
    check_damaged_notes,
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
    patch.setattr(journaled, "put_back", nothing)


def undo_though_all_is_written(patch: Patch) -> None:
    patch.setattr(undo, "has_landed", lambda *_: False)


def undo_in_the_order_of_writing(patch: Patch) -> None:
    put_back = undo.put_back

    def forwards(inner: Any, replaced: Sequence[Replaced], text_of: Any) -> None:  # noqa: ANN401
        put_back(inner, replaced[::-1], text_of)

    patch.setattr("perdure.storage.joint.put_back", forwards)
    patch.setattr(journaled, "put_back", forwards)


def undo_what_somebody_else_wrote(patch: Patch) -> None:
    patch.setattr(undo, "is_of", lambda cid, text: text not in (None, "") and cid is not None)


def leave_directories(patch: Patch) -> None:
    patch.setattr(undo, "_remove_empty", nothing)


def undo_only_after_exceptions(patch: Patch) -> None:
    patch.setattr("perdure.storage.joint.last_replaced", lambda *_: [])
    patch.setattr(Journaled, "settle", nothing)


# ---------------------------------------------------------------- with a history
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
    patch.setattr("perdure.storage.unfinished._beginning", lambda last: last[0].position - 1)


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


# ---------------------------------------------------------------- without one
def note_without_sync(patch: Patch) -> None:
    write = RollbackFile._write

    def unsynced(self: RollbackFile, number: int, said: bytes) -> None:
        if not said:
            write(self, number, said)
            return
        file, _ = self._opened()
        file.write(0, [rollback._head(number, said), said])

    patch.setattr(RollbackFile, "_write", unsynced)


def clear_without_sync(patch: Patch) -> None:
    def unsynced(self: RollbackFile) -> None:
        file, _ = self._opened()
        file.write(0, [rollback._head(self.read().number, b"")])

    patch.setattr(RollbackFile, "clear", unsynced)


def clear_first(patch: Patch) -> None:
    write = Journaled._write

    def cleared(self: Journaled, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self._file.clear()
        write(self, *args, **kwargs)

    patch.setattr(Journaled, "_write", cleared)


def clear_never(patch: Patch) -> None:
    patch.setattr(RollbackFile, "clear", nothing)


def trust_a_torn_note(patch: Patch) -> None:
    def trusted(data: bytes) -> Rollback:
        _, number, _, _ = rollback._HEAD.unpack_from(data)
        with suppress(ValueError):
            return rollback._noted(number, json.loads(data[rollback._HEAD.size :]))
        return Rollback(number)

    patch.setattr(rollback, "_decoded", trusted)


# ---------------------------------------------------------------- reading
def tell_what_is_there(patch: Patch) -> None:
    patch.setattr(Joint, "committed", Joint._read)
    patch.setattr(Journaled, "committed", Journaled._text_at)


FULL = StorageFullError("full")
CHECKS: dict[str, Callable[[Open, Scenario], None]] = {
    "kills": check_kills,
    "kills while undoing": check_kills_while_undoing,
    "failures": lambda opening, scenario: check_failures(opening, scenario, FULL),
    "hand edits": check_hand_edits,
    "any order": check_any_order,
    "overtaken": check_overtaken,
    "power cuts": check_power_cuts,
    "committed": check_committed,
    "damaged notes": check_damaged_notes,
    "views": lambda _, scenario: check_views(scenario, FULL),
}

BROKEN: list[tuple[Callable[[Patch], None], str, str, str]] = [
    (undo_nothing, "kills", "recorded", "move"),
    (undo_nothing, "kills", "journaled", "move"),
    (undo_nothing, "failures", "recorded", "create"),
    (undo_nothing, "failures", "journaled", "create"),
    (undo_nothing, "any order", "recorded", "update"),
    (undo_nothing, "views", "recorded", "update"),
    (undo_though_all_is_written, "kills", "recorded", "update"),
    (undo_though_all_is_written, "kills", "journaled", "update"),
    (undo_in_the_order_of_writing, "kills while undoing", "recorded", "update"),
    (undo_in_the_order_of_writing, "kills while undoing", "journaled", "update"),
    (undo_what_somebody_else_wrote, "hand edits", "recorded", "update"),
    (undo_what_somebody_else_wrote, "hand edits", "journaled", "update"),
    (leave_directories, "kills", "recorded", "create"),
    (undo_only_after_exceptions, "kills", "recorded", "move"),
    (undo_only_after_exceptions, "kills", "journaled", "move"),
    (move_the_mark_first, "kills", "recorded", "update"),
    (leave_the_mark_to_the_cache, "power cuts", "recorded", "update"),
    (forget_what_others_wrote_before, "overtaken", "recorded", "update"),
    (take_a_second_attempt_for_another_commit, "overtaken", "recorded", "update"),
    (answer_before_undoing, "views", "recorded", "update"),
    (note_without_sync, "power cuts", "journaled", "update"),
    (clear_without_sync, "power cuts", "journaled", "update"),
    (clear_first, "kills", "journaled", "update"),
    (clear_never, "hand edits", "journaled", "update"),
    (trust_a_torn_note, "damaged notes", "journaled", "update"),
    (tell_what_is_there, "committed", "recorded", "update"),
    (tell_what_is_there, "committed", "journaled", "update"),
]


@pytest.mark.parametrize(
    ("how", "check", "kind", "scenario"),
    BROKEN,
    ids=lambda value: getattr(value, "__name__", value),
)
def test_it_is_found(
    how: Callable[[Patch], None], check: str, kind: str, scenario: str, monkeypatch: Patch
) -> None:
    how(monkeypatch)
    with pytest.raises(AssertionError):
        CHECKS[check](KINDS[kind], SCENARIOS[scenario])
