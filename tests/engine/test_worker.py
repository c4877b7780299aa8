"""The worker: every event reaches the index, whatever happens in between."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import perdure
from perdure.app import Context
from perdure.context.events import MAX_RETRY
from perdure.context.reader import StoredNode
from perdure.engine import upkeep
from perdure.engine.indexing.follower import IndexUpdate
from perdure.engine.indexing.index_worker import WorkCounts, Worker
from perdure.engine.indexing.indexer import IndexBatch
from perdure.errors import ConcurrentModificationError, EmbeddingError, NodeNotFoundError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model import ContextNode, EventStatus, EventType, OutboxEvent, RelationEdge, Uri
from perdure.testing.requirement import requirement
from tests.engine.remembering import ANA, of, opened, save_all, uris
from tests.support.hints import texts_of

pytestmark = pytest.mark.usefixtures("agfs")

FOLDER = "ctx://local/users/ana/memories/preference"


class Moving(HashingEmbedder):
    """Poisoned by one text, and out of order on some days."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.calls = 0

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        if self.down or any("poison" in text for text in texts):
            raise EmbeddingError("it can't be embedded. Fix: none.")
        return super().embed_texts(texts)


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def embedder() -> Moving:
    return Moving()


@pytest.fixture
def context(tmp_path: Path, embedder: Moving) -> Iterator[Context]:
    with opened(tmp_path, embedder=embedder) as context:
        yield context


def worker(context: Context, clock: Clock | None = None) -> Worker:
    follower = context.indexes.current("local").follower
    return Worker(context.outbox, follower, clock=clock or Clock())


def write(context: Context, *slugs: str) -> None:
    nodes = [ContextNode(uri=f"{FOLDER}/{slug}", content=f"{slug} text") for slug in slugs]
    context.nodes.write_nodes(nodes, ANA)


def indexed(context: Context) -> set[str]:
    stamps = context.indexes.current("local").follower.index.stamps("local")
    return {uri.removeprefix(f"{FOLDER}/") for uri in stamps if uri.startswith(f"{FOLDER}/")}


def test_events_are_done_and_gone(context: Context) -> None:
    write(context, "one", "two")

    kinds = [event.event_type for _, event in context.outbox.list_pending("local")]
    assert kinds == [EventType.UPSERT_NODE] * 2 + [EventType.UPSERT_DIRECTORY]

    worker(context).drain("local")

    assert context.outbox.list_unfinished("local") == []
    assert indexed(context) == {"one", "two"}


@pytest.mark.timeout(60)
def test_it_ends_where_files_lie_that_no_log_tells_of(context: Context) -> None:
    root = Path(context.recorded.identity) / "accounts/local/users/ana/memories/preference"
    (root / "one").mkdir(parents=True)
    (root / "one/content.md").write_text("one text")
    assert context.recorded.history.position() == 0

    worker(context).drain("local")
    write(context, "two")
    worker(context).drain("local")

    assert indexed(context) >= {"two"}


def test_all_texts_of_a_round_are_embedded_together(context: Context, embedder: Moving) -> None:
    write(context, *(f"n{number}" for number in range(40)))

    worker(context).work("local")

    assert embedder.calls == 1


@requirement("003-outbox-archive-leaves-search")
def test_every_kind_of_event_reaches_the_index(context: Context) -> None:
    write(context, "kept", "gone", "away", "old")
    worker(context).drain("local")
    context.nodes.delete_node(f"{FOLDER}/gone", ANA)
    context.nodes.archive_node(f"{FOLDER}/away", ANA)
    context.nodes.move_node(f"{FOLDER}/old", f"{FOLDER}/new", ANA)
    edge = RelationEdge(f"{FOLDER}/kept", f"{FOLDER}/new", "leads_to", 0.9)
    context.relations.upsert_edges([edge], ANA)
    kinds = {event.event_type for _, event in context.outbox.list_pending("local")}
    assert kinds >= {EventType.DELETE_NODE, EventType.ARCHIVE_NODE, EventType.MOVE_NODE}

    worker(context).drain("local")

    assert indexed(context) == {"kept", "new"}
    assert context.outbox.list_unfinished("local") == []


def test_an_event_that_nobody_registered_is_not_missed(context: Context) -> None:
    write(context, "one")

    worker(context).work("local")

    assert indexed(context) == {"one"}


def test_a_poisoned_text_goes_to_the_dead_and_the_rest_goes_on(context: Context) -> None:
    write(context, "one", "poison", "two")
    clock = Clock()

    rounds = []
    for _ in range(MAX_RETRY + 1):
        rounds.append(worker(context, clock).work("local"))
        clock.now += timedelta(hours=1)
        context.outbox._clock = clock

    assert rounds[0].done == 2
    assert [each.failed for each in rounds] == [1] * MAX_RETRY + [0]
    assert rounds[-1].dead == 1
    ((_, dead),) = context.outbox.list_dead("local")
    assert dead.status is EventStatus.DEAD
    assert "can't be embedded" in dead.last_error
    assert indexed(context) == {"one", "poison", "two"}  # words still find it
    assert of(context).recall("poison").index_lag == 1


def test_after_an_outage_all_vectors_are_computed(context: Context, embedder: Moving) -> None:
    embedder.down = True
    save_all(of(context))
    result = of(context).recall("tabs")
    assert result.hits[0].snippet.startswith("Prefers tabs")
    assert any("new vectors can't be computed" in note for note in texts_of(result))
    with pytest.raises(EmbeddingError):
        upkeep.verify_index(context.indexes.configured.follower, "local")

    embedder.down = False
    worker(context).drain("local")

    assert context.outbox.list_unfinished("local") == []
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    assert texts_of(of(context).recall("tabs")) == ()


def test_what_was_edited_during_an_outage_is_embedded_after_it(
    context: Context, embedder: Moving, tmp_path: Path
) -> None:
    save_all(of(context))
    of(context).recall("tabs")
    embedder.down = True
    (content,) = tmp_path.rglob("indentation/content.md")
    content.write_text("Prefers tabs, by hand.\n")
    assert of(context).recall("tabs").index_lag > 0

    embedder.down = False
    context.outbox._clock = lambda: datetime.now(UTC) + timedelta(hours=1)
    worker(context).drain("local")

    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_an_index_is_not_deleted_while_no_other_can_be_built(
    context: Context, embedder: Moving
) -> None:
    save_all(of(context))
    embedder.down = True
    with pytest.raises(EmbeddingError):
        context.indexes.configured.follower.rebuild("local")

    embedder.down = False
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


@requirement("003-outbox-release-always")
def test_leases_are_let_go_of_whatever_happens(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(context, "one")
    worker(context).drain("local")
    context.outbox.register_write(ContextNode(uri=f"{FOLDER}/one", content="one text"), ANA)
    working = worker(context)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(working._follower, "catch_up", fail)
    with pytest.raises(KeyboardInterrupt):
        working.work("local")

    ((_, event),) = context.outbox.list_pending("local")
    assert event.status is EventStatus.PENDING


def test_what_is_done_is_let_go_of_with_that(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(context, "one")
    worker(context).drain("local")
    context.outbox.register_write(ContextNode(uri=f"{FOLDER}/one", content="one text"), ANA)

    def again(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(context.outbox, "release", again)

    assert worker(context).drain("local").done == 1
    assert context.outbox.list_unfinished("local") == []


def test_a_long_queue_is_listed_once(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.engine.indexing.index_worker.BATCH", 3)
    slugs = [f"n{number}" for number in range(10)]
    write(context, *slugs)
    worker(context).drain("local")
    nodes = [ContextNode(uri=f"{FOLDER}/{slug}", content=f"{slug} text") for slug in slugs]
    context.outbox.register_writes(nodes, ANA)
    found: list[int] = []
    list_due = context.outbox.list_due

    def counted(account_id: str) -> list[tuple[str, OutboxEvent]]:
        pending = list_due(account_id)
        found.append(len(pending))
        return pending

    monkeypatch.setattr(context.outbox, "list_due", counted)

    assert worker(context).drain("local").done == 10
    assert found == [10]


def test_who_finds_only_what_no_log_tells_of_comes_to_an_end(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    working, rounds = worker(context), iter(range(3))

    def index_again(_: str, **__: object) -> IndexUpdate:
        next(rounds)
        return IndexUpdate(0, frozenset({Uri.parse(f"{FOLDER}/by-hand")}))

    monkeypatch.setattr(working._follower, "catch_up", index_again)

    assert working.drain("local") == WorkCounts()


def test_what_a_dead_worker_leased_is_done_by_the_next(context: Context) -> None:
    write(context, "one")
    uri, event = context.outbox.list_pending("local")[0]
    assert context.outbox.try_acquire(event, uri, "dead", 1)

    worker(context).work("local")
    assert indexed(context) == {"one"}  # from the log
    context.outbox._clock = lambda: datetime.now(UTC) + timedelta(hours=1)
    worker(context).work("local")

    assert context.outbox.list_unfinished("local") == []


def test_two_who_index_at_once_do_not_undo_each_other(context: Context) -> None:
    follower = context.indexes.current("local").follower
    write(context, "one")
    worker(context).drain("local")
    write(context, "two")
    cursor, index = follower.index.cursor("local"), follower.index
    batch = follower.indexer.batch([follower.log.changed("local", cursor)[0]])
    follower.catch_up("local")

    with pytest.raises(ConcurrentModificationError):
        index.replace("local", batch.records, cursor=cursor, expect=cursor)

    assert indexed(context) == {"one", "two"}


_WORK = """
import os, sys
from pathlib import Path
from perdure.index import sqlite_index
from perdure.engine.indexing.outbox_store import OutboxStore
from tests.engine.remembering import opened
from perdure.engine.indexing.index_worker import Worker

step, seen = int(sys.argv[2]), 0

def dying(owner, name):
    verb = getattr(owner, name)
    def run(*args, **kwargs):
        global seen
        seen += 1
        if seen == step:
            os.kill(os.getpid(), 9)
        result = verb(*args, **kwargs)
        seen += 1
        if seen == step:
            os.kill(os.getpid(), 9)
        return result
    setattr(owner, name, run)

dying(sqlite_index.SqliteIndex, "replace")
for name in ("try_acquire", "mark_done", "release"):
    dying(OutboxStore, name)
with opened(Path(sys.argv[1])) as context:
    Worker(context.outbox, context.indexes.current("local").follower).drain("local")
print(seen)
"""


@pytest.mark.search
def test_a_worker_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = 0
    for step in range(1, 60):
        home = tmp_path / str(step)
        home.mkdir()
        with opened(home) as context:
            write(context, "one", "two")
            node = ContextNode(uri=f"{FOLDER}/one", content="one text")
            context.outbox.register_write(node, ANA)
        done = subprocess.run(
            [sys.executable, "-c", _WORK, str(home), str(step)],
            env=environ,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        with opened(home) as context:
            context.outbox._clock = lambda: datetime.now(UTC) + timedelta(hours=1)
            Worker(context.outbox, context.indexes.current("local").follower).drain("local")
            assert indexed(context) == {"one", "two"}
            assert context.outbox.list_unfinished("local") == []
            assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
            assert len(uris(of(context), "one text")) == 2
        ended += done.returncode == 0
        if ended:
            break

    assert ended == 1
    assert step > 8


def test_statistics_add_up() -> None:
    assert WorkCounts(1, 2, 3, 4) + WorkCounts(10, 20, 30, 40) == WorkCounts(11, 22, 33, 44)


def test_a_node_that_is_written_between_two_looks_is_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with perdure.open(home=tmp_path / "home") as memory:
        place = Uri.parse(memory.save("Prefers tea.", category="preference", slug="tea"))
        indexer = memory._services.indexes.current(place.account).follower.indexer
        healthy, looks = indexer.reader.active, iter([True, False])

        def active(at: Uri, _: object = None) -> StoredNode:
            if next(looks):  # its file is written right after this
                raise NodeNotFoundError("nothing is there yet. Fix: look again.")
            return healthy(at)

        monkeypatch.setattr(indexer.reader, "active", active)

        assert indexer.batch([place]).records[str(place)]


class SlowLock:
    """A lock that signals when a thread waits for it."""

    def __init__(self) -> None:
        self.lock, self.asked = threading.Lock(), threading.Event()
        self.release = self.lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as a lock has it
        is_ours = self.lock.acquire(blocking=False)
        self.asked.set()
        return is_ours or (blocking and self.lock.acquire(blocking, timeout))


def test_who_waits_while_others_index_makes_no_records_again(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(context, "a")
    worker(context).drain("local")
    follower = context.indexes.current("local").follower
    before = follower.index.cursor("local")
    write(context, "b")
    batches: list[list[str]] = []
    make = follower.indexer.batch

    def noting(places: Sequence[Uri], *rest: object) -> IndexBatch:
        batches.append([str(place) for place in places])
        return make(places, *rest)  # type: ignore[arg-type] # as it takes them

    monkeypatch.setattr(follower.indexer, "batch", noting)
    slow_lock = SlowLock()
    monkeypatch.setattr(follower, "_lock", slow_lock)
    waiting = threading.Thread(target=follower.catch_up, args=("local",), kwargs={"since": before})
    with slow_lock.lock:
        waiting.start()
        assert slow_lock.asked.wait(60)
        follower._catch_up("local", (), {}, before)
    waiting.join()

    assert sum(f"{FOLDER}/b" in each for each in batches) == 1
