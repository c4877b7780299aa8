"""The log has every change, so an event that a power cut takes away makes no difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.context.outbox.sqlite import SqliteOutbox
from perdure.engine.worker import Worker
from tests.engine.remembering import of, opened, uris

TEA = "ctx://local/users/ana/memories/preference/tea"


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Lose every event, and index nothing, as if the power went after each commit."""
    with monkeypatch.context() as patch:
        patch.setattr(SqliteOutbox, "_add", lambda *_: None)
        patch.setattr(Worker, "drain", lambda *_, **__: None)
        yield patch


def test_a_save_whose_event_was_lost_is_found(tmp_path: Path, losing: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, semantic=False) as context:
        of(context).save("Likes green tea.", category="preference", slug="tea")
    losing.undo()
    with opened(tmp_path, semantic=False) as context:
        assert uris(of(context), "tea") == [TEA]


def test_a_removal_whose_event_was_lost_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, semantic=False) as context:
        of(context).save("Likes green tea.", category="preference", slug="tea")
        monkeypatch.setattr(SqliteOutbox, "_add", lambda *_: None)
        monkeypatch.setattr(Worker, "drain", lambda *_, **__: None)
        of(context).delete(TEA)
    monkeypatch.undo()
    with opened(tmp_path, semantic=False) as context:
        result = of(context).recall("tea")
        assert (result.hits, result.index_lag) == ((), 0)
