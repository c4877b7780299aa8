"""Each step of an erasure that is left out is noticed by a test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.artifacts.artifact_store import ArtifactStore
from perdure.engine import erase, erasure_plan, trace
from perdure.engine.erasure_plan import DerivedFiles
from perdure.engine.indexing.indexes import Indexes
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.engine.trace import Lineage
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import Uri
from tests.bites import FAILED
from tests.engine.erase import test_anything, test_crashes, test_erase
from tests.engine.erase.homes import leaks
from tests.engine.remembering import opened

pytestmark = pytest.mark.search


def _nothing(*_args: object, **_kwargs: object) -> None:
    return None


def _no_events(*_args: object, **_kwargs: object) -> int:
    return 0


def _forgets_only_the_past(self: Indexes, account_id: str) -> None:
    del account_id
    self._close_past_states()


def _keeps_undone(events: Any, erasure: str) -> dict[str, int]:  # noqa: ANN401 - as given
    return {e.key: e.position for e in events if e.circumstances.more.get("erasure") == erasure}


Test = Callable[..., None]
BYTES = test_erase.test_no_byte_of_it_is_left_and_all_else_is_as_it_was
BITES: dict[str, tuple[object, str, object, Test]] = {
    "indexes are not scrubbed": (SqliteIndex, "scrub", _nothing, BYTES),
    "past indexes stay": (Indexes, "scrub", _forgets_only_the_past, BYTES),
    "events stay": (
        OutboxStore,
        "forget_places",
        _no_events,
        test_erase.test_events_that_failed_and_tell_of_it_go_too,
    ),
    "vectors stay": (
        DerivedFiles,
        "_memos",
        lambda *_: [],
        test_erase.test_the_vectors_and_indexes_of_other_models_go_too,
    ),
    "history stays": (
        ArtifactStore,
        "erase",
        _nothing,
        test_erase.test_what_is_archived_or_deleted_can_be_erased,
    ),
}


@pytest.mark.parametrize("what", BITES)
def test_a_step_that_is_left_out_is_noticed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, name, broken, test = BITES[what]
    monkeypatch.setattr(target, name, broken)

    with pytest.raises(FAILED):
        _run(test, tmp_path)


def _run(test: Test, home: Path) -> None:
    if "context" not in test.__code__.co_varnames[: test.__code__.co_argcount]:
        test(home=home)
        return
    with opened(home) as context:
        test(context=context, home=home)


def test_who_takes_what_was_undone_for_removed_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "removed_by", _keeps_undone)
    monkeypatch.setattr(erase, "removed_by", _keeps_undone)

    with pytest.raises(FAILED):
        test_crashes.test_what_was_given_back_after_an_error_is_removed_by_the_next_one(
            tmp_path, monkeypatch
        )


def test_who_leaves_no_note_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "begin_task", _nothing)

    with pytest.raises(FAILED):
        test_crashes.test_a_save_after_the_removal_is_not_erased(tmp_path, monkeypatch)


def test_links_are_scrubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that a text leads to are bytes of it, too."""
    for is_broken in (False, True):
        home = tmp_path / f"{is_broken}"
        with monkeypatch.context() as patch, opened(home, semantic=False) as context:
            if is_broken:
                patch.setattr(SqliteIndex, "scrub", _nothing)
            memory = context.memory
            uri = memory.save("See [[Brontosaurus]].", category="event", slug="seen")
            context.indexes.leading_to(Uri.parse(uri))
            memory.forget(uri, erase=True)
            left = leaks(home, ["rontosaurus"])
        assert bool(left) == is_broken


WHO: dict[str, tuple[object, str, object]] = {
    "edits by hand are not looked for": (erase, "record_external_edits", _nothing),
    "receipts are not read": (erasure_plan, "erased_versions", lambda *_: set()),
    "texts live nowhere": (Lineage, "homes", lambda _: {}),
    "erased texts count": (trace, "_not_erased", lambda pairs, *_: iter(pairs)),
}


@pytest.mark.parametrize("what", WHO)
def test_who_is_wrong_about_who_has_what_is_noticed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*WHO[what])

    with pytest.raises(FAILED):
        test_anything.test_after_any_actions_what_is_erased_is_gone_or_listed(tmp_path)
