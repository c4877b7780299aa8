"""The outbox of a memory: events come out of the log, and only failures are written down."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.app import Context
from perdure.artifacts.recent_names import MARK, names_since
from perdure.engine.indexing.index_worker import Worker
from perdure.errors import DamageError
from perdure.model import ContextNode, EventStatus, EventType, Uri
from perdure.model.values import JSON
from perdure.testing.requirement import requirement
from tests.engine.remembering import ANA, of, opened, uris

FOLDER = "ctx://local/users/ana/memories/preference"
TEA, SOUP = f"{FOLDER}/tea", f"{FOLDER}/soup"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path) as context:
        context.nodes.write_node(ContextNode(uri=f"{FOLDER}/first", content="First."), ANA)
        of(context).settle()
        yield context


def write(context: Context, uri: str, content: str, version: int = 1) -> None:
    node = ContextNode(uri=uri, content=content, abstract=content, version=version)
    context.nodes.write_node(node, ANA)


def test_an_event_has_the_content_of_its_commit(context: Context) -> None:
    write(context, TEA, "Green.")
    write(context, TEA, "White.", 2)
    pending = [event for uri, event in context.outbox.list_pending("local") if uri == TEA]

    assert [event.payload["abstract"] for event in pending] == ["Green.", "White."]
    assert [event.payload["version"] for event in pending] == [1, 2]
    assert pending == [e for uri, e in context.outbox.list_pending("local") if uri == TEA]


def test_an_event_of_the_log_is_leased_by_one_and_gone_when_it_is_done(context: Context) -> None:
    write(context, TEA, "Green.")
    outbox, (uri, event) = context.outbox, context.outbox.list_pending("local")[0]

    assert outbox.try_acquire(event, uri, "one")
    assert not outbox.try_acquire(event, uri, "two")
    assert TEA not in dict(outbox.list_pending("local"))
    assert dict(outbox.list_unfinished("local"))[TEA].status is EventStatus.PROCESSING
    outbox._clock = lambda: datetime.now(UTC) + timedelta(hours=1)
    assert outbox.try_acquire(event, uri, "two")  # the first one died
    outbox.mark_done(event, uri, worker_id="two")
    assert TEA not in dict(outbox.list_unfinished("local"))
    assert not outbox.try_acquire(event, uri, "one")
    of(context).settle()
    assert outbox.list_unfinished("local") == []
    assert uris(of(context), "green") == [TEA]


@requirement("003-outbox-directory-self-contained", "003-outbox-register-directory")
def test_a_directory_event_is_all_that_the_indexer_needs(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(context, TEA, "Green.")
    event = dict(context.outbox.list_pending("local"))[FOLDER]
    assert event.event_type is EventType.UPSERT_DIRECTORY
    later = datetime.now(UTC) + timedelta(minutes=1)
    context.outbox.increment_retry(event, FOLDER, later, error="no model")
    of(context).settle()
    following = context.indexes.current("local").follower
    before = following.index.stamps("local")[FOLDER]
    summaries, asked = following.indexer._summaries, list[str]()
    payload = summaries.payload

    def looked(folder: Uri, *more: Any) -> dict[str, JSON] | None:  # noqa: ANN401 - as given
        asked.append(str(folder))
        return payload(folder, *more)

    monkeypatch.setattr(summaries, "payload", looked)
    following.index.replace("local", {FOLDER: []})
    context.outbox._clock = lambda: later

    assert Worker(context.outbox, following).drain("local").done == 1
    assert FOLDER not in asked
    assert following.index.stamps("local")[FOLDER] == before
    assert context.outbox.list_unfinished("local") == []


def test_a_table_that_can_not_be_understood_is_emptied(context: Context, tmp_path: Path) -> None:
    context.outbox.register_write(ContextNode(uri=TEA, content="Tea."), ANA)
    (path,) = tmp_path.rglob("index/*/local.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE events SET type = 'unheard of'")

    assert context.outbox.list_unfinished("local") == []
    assert of(context).recall("first").index_lag == 0


def test_an_index_whose_table_is_gone_is_built_again(context: Context, tmp_path: Path) -> None:
    (path,) = tmp_path.rglob("index/*/local.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TABLE events")

    with pytest.raises(DamageError, match="Fix: "):
        context.outbox.list_unfinished("local")
    assert uris(of(context), "first") == [f"{FOLDER}/first"]
    assert context.outbox.list_unfinished("local") == []


def test_names_past_a_cursor_are_found_without_the_store(context: Context) -> None:
    folder = Path(context.recorded.history.store.disk.whereabouts)
    cursor = context.recorded.history.position()
    assert names_since(folder, cursor, 5) == []
    write(context, SOUP, "Soup.")

    assert {name.rpartition("/")[0] for name in names_since(folder, cursor, 9) or ()} == {
        "accounts/local/users/ana/memories/preference/soup"
    }
    assert len(names_since(folder, 0, 1) or ()) == 1
    (folder / MARK).write_bytes(b"cut")
    assert names_since(folder, cursor, 5) is None
