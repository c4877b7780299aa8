"""The file of an outbox: who may read it, what happens to it, and how it is shared."""

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from perdure.context.events import utc_now
from perdure.errors import (
    AccessDeniedError,
    AccessRefusedError,
    ClosedError,
    DamageError,
    LockTimeout,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
)
from perdure.index import sql
from perdure.model import ContextNode, RequestContext, Role
from perdure.sqlite import SqliteFile
from perdure.testing.requirement import requirement
from tests.support.context import index_outbox
from tests.support.context.index_outbox import TABLES, VERSION, SqliteOutbox
from tests.support.context.outbox.base import (
    ACCOUNT,
    ANA,
    BOB,
    HandClock,
    bury,
    memory,
    pending,
    uri_of,
    written,
)

PRIVATE = "a-text-that-must-go"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "outbox.db"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def outbox(path: Path, clock: HandClock) -> Iterator[SqliteOutbox]:
    with SqliteOutbox(str(path), clock=clock) as outbox:
        yield outbox


def impatient(path: Path, seconds: float = 0.05) -> SqliteOutbox:
    outbox = SqliteOutbox(str(path))
    outbox._file.close()
    outbox._file = SqliteFile(str(path), TABLES, seconds)
    return outbox


# ---------------------------------------------------------------- permissions


def test_the_file_and_its_folder_are_their_owner_s_alone(outbox: SqliteOutbox, path: Path) -> None:
    written(outbox)

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"outbox.db": 0o600, "outbox.db-wal": 0o600, "outbox.db-shm": 0o600}


def test_a_folder_that_is_there_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    SqliteOutbox(str(path)).close()

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755


def test_a_folder_that_can_not_be_created_is_reported_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailableError, match=r"outbox\.db.*Fix: "):
        SqliteOutbox(str(tmp_path / "file" / "outbox.db"))


def test_a_path_of_special_meaning_to_sqlite_is_a_file_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SqliteOutbox(":memory:").close()

    assert (tmp_path / ":memory:").is_file()


# ---------------------------------------------------------------- closing


def test_a_closed_outbox_refuses_every_verb(outbox: SqliteOutbox) -> None:
    event = written(outbox)
    outbox.close()
    outbox.close()
    verbs: tuple[Callable[[], object], ...] = (
        lambda: outbox.register_write(memory(), ANA),
        lambda: outbox.list_pending(ACCOUNT),
        lambda: outbox.try_acquire(event, event.uri, "w1"),
        lambda: outbox.mark_done(event, event.uri),
        lambda: outbox.purge(ACCOUNT),
        lambda: outbox.delete_account_data(ACCOUNT),
    )
    for verb in verbs:
        with pytest.raises(ClosedError, match=r"outbox\.db.*Fix: "):
            verb()


# ---------------------------------------------------------------- damage


def test_a_file_that_is_no_database_is_refused_with_its_fix(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be taken for one. " * 100)
    with pytest.raises(DamageError, match=r"outbox\.db.*move it away; the index follows the log"):
        SqliteOutbox(str(path))

    assert path.read_bytes().startswith(b"not a database")


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text)")
    with pytest.raises(DamageError, match="tables of another program"):
        SqliteOutbox(str(path))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]


def test_overwritten_pages_are_reported_as_damage(outbox: SqliteOutbox, path: Path) -> None:
    outbox.register_writes([memory(f"n{number}") for number in range(200)], ANA)
    outbox.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    with pytest.raises(DamageError, match=r"Fix: stop what uses it, and move it away"):
        pending(SqliteOutbox(str(path)))


@pytest.mark.parametrize(
    "spoil",
    [
        "payload = '{'",
        "payload = '[]'",
        "type = 'unheard of'",
        "uri = 'ctx://other/users/x'",
        "created_at = 9000000000000000000",
        "created_at = 'yesterday'",
    ],
)
def test_events_of_which_one_can_not_be_understood_are_forgotten(
    outbox: SqliteOutbox, path: Path, spoil: str
) -> None:
    written(outbox)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE events SET {spoil}")  # noqa: S608 - a constant above

    assert outbox.list_pending(ACCOUNT) == []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute("SELECT count(*) FROM events").fetchall() == [(0,)]


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    SqliteOutbox(str(path)).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StorageUnavailableError, match=r"has schema 2.*Fix: use the newer"):
        SqliteOutbox(str(path))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)


def test_a_file_that_was_moved_away_takes_no_more_events(outbox: SqliteOutbox, path: Path) -> None:
    path.rename(path.with_suffix(".away"))
    with pytest.raises(StorageUnavailableError, match=r"was moved.*Fix: "):
        written(outbox)


def test_a_disk_that_can_share_no_log_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda _path, *rest, **more: connect(":memory:", *rest, **more),
    )
    with pytest.raises(StorageFaultError, match="Fix: put it on a disk of this machine"):
        SqliteOutbox(str(path))


def test_all_tables_are_created_or_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = TABLES.statements
    spoiled = TABLES._replace(statements=(first, "no statement"))
    monkeypatch.setattr(index_outbox, "TABLES", spoiled)
    with pytest.raises(DamageError):
        SqliteOutbox(str(path))
    monkeypatch.undo()

    with SqliteOutbox(str(path)) as outbox:
        assert pending(outbox) == []


def test_a_file_that_can_not_be_written_is_reported(outbox: SqliteOutbox) -> None:
    with outbox._file.connection() as db:
        db.execute("PRAGMA query_only = ON")
    with pytest.raises(AccessRefusedError, match="Fix: give its file and folder back"):
        written(outbox)


def test_another_fault_of_the_disk_is_reported(outbox: SqliteOutbox) -> None:
    with outbox._file.connection() as db:
        db.set_progress_handler(lambda: 1, 1)
    with pytest.raises(StorageFaultError, match="Fix: check its disk"):
        outbox.list_pending(ACCOUNT)
    with outbox._file.connection() as db:
        db.set_progress_handler(None, 1)


def test_a_full_disk_is_reported_and_nothing_is_half_registered(outbox: SqliteOutbox) -> None:
    written(outbox)
    with outbox._file.connection() as db:
        db.execute("PRAGMA max_page_count = 10")
    with pytest.raises(StorageFullError, match="Fix: free some"):
        outbox.register_writes([memory(f"n{number}") for number in range(500)], ANA)

    assert len(pending(outbox)) == 1


# ---------------------------------------------------------------- others at the same file


def test_a_busy_file_is_reported_after_a_while_and_nothing_is_changed(path: Path) -> None:
    with closing(impatient(path)) as outbox:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LockTimeout, match=r"outbox\.db.*another process.*Fix: "):
                written(outbox)
            other.execute("ROLLBACK")

        assert pending(outbox) == []
        written(outbox)


def test_a_thread_that_holds_the_file_is_reported_after_a_while(path: Path) -> None:
    with closing(impatient(path)) as outbox, outbox._file.connection():
        found: list[str] = []

        def ask() -> None:
            with pytest.raises(LockTimeout, match="another thread"):
                outbox.list_pending(ACCOUNT)
            found.append("told")

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert found == ["told"]


def test_a_reader_of_deleted_bytes_is_reported(path: Path) -> None:
    with closing(impatient(path)) as outbox, closing(sqlite3.connect(path)) as reader:
        written(outbox)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchall()
        with pytest.raises(LockTimeout, match=r"deleted.*Fix: delete again"):
            outbox.delete_account_data(ACCOUNT)
        assert pending(outbox) == []
        reader.execute("COMMIT")

        assert outbox.delete_account_data(ACCOUNT) == 0


def test_an_interrupted_change_blocks_nothing(outbox: SqliteOutbox) -> None:
    event = written(outbox)

    def interrupted() -> None:
        with outbox._file.transaction() as db:
            db.execute("DELETE FROM events")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    other = written(outbox)

    assert pending(outbox) == [event.event_id, other.event_id]


# ---------------------------------------------------------------- forks


def fork(action: Callable[[], object]) -> int:
    """Run `action` in a fork of this process; return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are not touched
        child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_both_sides_of_a_fork_can_go_on_and_lose_nothing(outbox: SqliteOutbox, path: Path) -> None:
    written(outbox, "before")

    def go_on() -> None:
        for number in range(20):
            written(outbox, f"child-{number}")

    assert exit_code(fork(go_on)) == 0
    written(outbox, "after")

    assert len(pending(outbox)) == 22
    outbox.close()
    with SqliteOutbox(str(path)) as again:
        assert len(pending(again)) == 22


def test_a_child_s_writes_outlast_the_parent_that_closes_first(
    outbox: SqliteOutbox, path: Path
) -> None:
    """Without closing before the fork, the parent would remove the log that the child writes to."""
    written(outbox, "before")
    read_end, write_end = os.pipe()

    def wait_and_write() -> None:
        os.close(write_end)
        written(outbox, "first")
        os.read(read_end, 1)
        written(outbox, "second")

    child = fork(wait_and_write)
    os.close(read_end)
    outbox.close()
    os.close(write_end)

    assert exit_code(child) == 0
    with SqliteOutbox(str(path)) as again:
        assert len(pending(again)) == 3


def test_a_fork_waits_for_the_threads_that_are_at_the_file(outbox: SqliteOutbox) -> None:
    stop = threading.Event()

    def keep_on() -> None:
        while not stop.is_set():
            written(outbox)

    threads = [threading.Thread(target=keep_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        codes = [exit_code(fork(lambda: written(outbox))) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    assert codes == [0] * 5


def test_a_fork_without_the_hooks_of_python_is_refused(outbox: SqliteOutbox) -> None:
    outbox._file._pid += 1
    with pytest.raises(StorageUnavailableError, match="forked without"):
        written(outbox)
    outbox._file._pid -= 1


# ---------------------------------------------------------------- kill -9

WORKER = """
import sys, time
from tests.support.context.index_outbox import SqliteOutbox
from perdure.model import ContextNode, RequestContext
outbox = SqliteOutbox(sys.argv[1])
ctx = RequestContext("acme", "ana")
for number in range(1000000):
    uri = f"ctx://acme/users/ana/memories/preference/k{number}"
    event = outbox.register_write(ContextNode(uri=uri), ctx)
    print("registered", event.event_id, flush=True)
    assert outbox.try_acquire(event, event.uri, "killed", 60)
    if number % 2:
        outbox.mark_done(event, event.uri, worker_id="killed")
        print("done", event.event_id, flush=True)
"""


@requirement("003-outbox-durable")
def test_a_worker_killed_between_acquire_and_done_loses_nothing(path: Path) -> None:
    for lock in range(3):
        worker = subprocess.Popen(
            (sys.executable, "-c", WORKER, str(path)), stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None
        lines = [worker.stdout.readline() for _ in range(40 + lock)]
        worker.send_signal(signal.SIGKILL)
        lines += worker.stdout.read().splitlines()
        worker.stdout.close()
        assert worker.wait() == -signal.SIGKILL

        told = [line.split() for line in lines if len(line.split()) == 2]
        registered = {id_ for what, id_ in told if what == "registered"}
        done = {id_ for what, id_ in told if what == "done"}
        now = HandClock(utc_now())
        with SqliteOutbox(str(path), clock=now) as outbox:
            left = {event.event_id for _, event in outbox.list_unfinished(ACCOUNT)}
            assert len(left & done) == 0
            # The last one may have been finished before it could be said.
            assert len(registered - done - left) <= 1
            now.go_on(61)
            assert set(pending(outbox)) == left
            for _, event in outbox.list_pending(ACCOUNT):
                assert outbox.try_acquire(event, event.uri, "next")
                outbox.mark_done(event, event.uri, worker_id="next")


# ---------------------------------------------------------------- nothing is left


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def busy_life(outbox: SqliteOutbox) -> None:
    """Let events of two users grow, fail and go, so that SQLite moves rows between its pages."""
    chance = random.Random(1)
    nodes = [
        memory(
            f"n{number}",
            ANA if number % 3 == 0 else BOB,
            overview=(PRIVATE if number % 3 == 0 else "another's ") * chance.randint(1, 60),
        )
        for number in range(600)
    ]
    events = outbox.register_writes(nodes, RequestContext(ACCOUNT, "root", role=Role.ADMIN))
    mine, others = events[::3], events[1::3]
    with outbox._file.transaction() as db:  # as `increment_retry`, but without a sync for each
        for event in chance.sample(events, 400):
            error = "error " * chance.randint(1, 150)
            values = (error, event.event_id)
            db.execute("UPDATE events SET last_error = ? WHERE event_id = ?", values)
    for event in chance.sample(others, 100):
        outbox.mark_done(event, event.uri)
    bury(outbox, mine[0], PRIVATE)
    outbox.try_acquire(mine[1], mine[1].uri, PRIVATE)


def test_what_is_deleted_of_an_account_is_in_no_file(outbox: SqliteOutbox, path: Path) -> None:
    busy_life(outbox)
    kept = written(outbox, ctx=RequestContext("kept", "eve"))
    assert PRIVATE.encode() in everything_in(path.parent)
    outbox.delete_account_data(ACCOUNT)

    left = everything_in(path.parent)
    assert PRIVATE.encode() not in left
    assert b"ctx://acme" not in left
    assert pending(outbox, "kept") == [kept.event_id]


def test_what_is_deleted_of_an_owner_is_in_no_file(outbox: SqliteOutbox, path: Path) -> None:
    busy_life(outbox)
    outbox.delete_by_owner_space(ACCOUNT, "user:ana")

    left = everything_in(path.parent)
    assert PRIVATE.encode() not in left
    assert b"users/ana" not in left
    assert b"another's" in left


# ---------------------------------------------------------------- speed


def plan_of(outbox: SqliteOutbox, query: str) -> str:
    with outbox._file.connection() as db:
        values = {"account": ACCOUNT, "now": 0, "cursor": 0}
        rows = db.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    return "; ".join(row[3] for row in rows)


def test_what_can_not_be_worked_on_is_not_looked_at_to_list_what_can(
    outbox: SqliteOutbox,
) -> None:
    plan = plan_of(outbox, sql.PENDING_EVENTS)

    assert "USING INDEX events_waiting (account=? AND ready_at<?)" in plan
    assert "SCAN" not in plan


def test_one_event_is_found_by_its_id(outbox: SqliteOutbox) -> None:
    values = dict.fromkeys(("id", "account", "worker", "now", "end"))
    with outbox._file.connection() as db:
        for statement in (sql.ACQUIRE_EVENT, sql.EXTEND_LEASE, sql.FINISH_EVENT, sql.RELEASE_EVENT):
            ((_, _, _, step),) = db.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            assert "(event_id=?)" in step


def test_a_hundred_thousand_dead_and_leased_events_do_not_slow_the_list_down(
    outbox: SqliteOutbox, clock: HandClock
) -> None:
    event = written(outbox)
    dead_or_leased = (
        "INSERT INTO events (event_id, type, uri, account, owner, payload, created_at, state, "
        "lease_end) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
        "SELECT 'x' || i, 'delete', 'ctx://acme/users/ana', 'acme', 'user:ana', '{}', 0, i % 2, "
        "CASE WHEN i % 2 THEN NULL ELSE 9000000000000000 END FROM n"
    )
    with outbox._file.transaction() as db:
        db.execute(dead_or_leased)
    looked_at = 0

    def count() -> int:
        nonlocal looked_at
        looked_at += 1
        return 0

    with outbox._file.connection() as db:
        db.set_progress_handler(count, 100)
    assert pending(outbox) == [event.event_id]
    assert looked_at < 10


# ---------------------------------------------------------------- siblings


def test_a_sibling_from_another_folder_is_refused(path: Path) -> None:
    def stray(_node: ContextNode, _ctx: RequestContext) -> list[tuple[str, str]]:
        return [(uri_of(ctx=BOB), "Bob's.")]

    with SqliteOutbox(str(path), siblings=stray) as outbox:
        with pytest.raises(ValueError, match=r"not in the folder.*Fix: "):
            outbox.register_directory(memory(), ANA)
        with pytest.raises(AccessDeniedError):
            outbox.register_directory(memory(), BOB)
        assert pending(outbox) == []


def test_without_siblings_a_directory_event_tells_of_the_node_alone(outbox: SqliteOutbox) -> None:
    event = outbox.register_directory(memory(abstract="Tabs."), ANA)

    assert event.payload["siblings"] == ({"uri": uri_of(), "abstract": "Tabs."},)


def test_a_node_is_not_moved_to_where_it_is(outbox: SqliteOutbox) -> None:
    with pytest.raises(ValueError, match="was not moved"):
        outbox.register_move(uri_of(), memory(), ANA)


# ---------------------------------------------------------------- of one account alone
ELSEWHERE = RequestContext("elsewhere", "ana")


def test_only_the_events_of_an_account_are_counted(outbox: SqliteOutbox) -> None:
    written(outbox)
    written(outbox, ctx=ELSEWHERE)
    bury(outbox, written(outbox, "coffee"))

    assert outbox.count(ACCOUNT)[:2] == (2, 1)
    assert outbox.count("elsewhere")[:2] == (1, 0)
    assert outbox.count("nowhere") == (0, 0, None)


def test_only_the_events_of_places_in_an_account_are_forgotten(outbox: SqliteOutbox) -> None:
    written(outbox)
    kept = written(outbox, "coffee")
    others = written(outbox, ctx=ELSEWHERE)

    gone = outbox.forget_places(ACCOUNT, [uri_of(), uri_of(ctx=ELSEWHERE)])

    assert gone == 1
    assert pending(outbox) == [kept.event_id]
    assert pending(outbox, "elsewhere") == [others.event_id]
