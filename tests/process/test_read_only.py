"""No call of the process seam changes anything, also while other processes write."""

import ast
import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import perdure
import perdure.process
from perdure.app.memory_reader import open_reader
from perdure.context.note_tree import ABOUT
from perdure.errors import AccessRefusedError, StorageUnavailableError
from perdure.index import sql
from perdure.process import offer_save_here, recall_here, state_path
from perdure.process.project_search import open_index
from perdure.sqlite import ReadOnlyDatabase, SqliteFile
from perdure.storage import Locator, StorageBackend
from perdure.storage.personal import Authorisation
from perdure.storage.read_only import DelegatingReader, ImmutableBackend
from perdure.testing.requirement import requirement
from tests.process.conftest import PROJECT, Here

NOTE = Locator("notes/today.md")
PACKAGE = Path(perdure.process.__file__).parent

HOLDING = """
import sqlite3, sys
for path in sys.argv[1:]:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE"); db.execute("PRAGMA user_version"); db.execute("ROLLBACK")
    globals()[path] = db
print("ready", flush=True)
sys.stdin.read()
"""
DYING = """
import os, sqlite3, sys
for path in sys.argv[1:]:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS left_behind (x)")
    db.execute("DROP TABLE left_behind")
    globals()[path] = db
os._exit(0)
"""


def snapshot(place: Path) -> dict[str, tuple[object, ...]]:
    """Return all there is: names, kinds, contents, and when they were last written."""
    gc.collect()  # what tests before left open lets go of its locks now, and not in between
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        payload = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, content)
        found[str(path)] = payload
    return found


def ask_everything(here: Here) -> None:
    for phase in ("work", "plan"):
        recall_here({**here.context, "phase": phase})
    recall_here(here.context, query="what did we choose")
    offer_save_here(here.context, {"kind": "decision", "slug": "x", "body": "y"})
    for which in ("plan", "progress"):
        state_path(here.context, which)
        state_path({**here.context, "plan": "foo"}, which)


def databases(here: Here) -> list[str]:
    return [str(path) for path in here.machine.home.rglob("*.sqlite")]


@contextmanager
def held_open(paths: list[str]) -> Iterator[None]:
    """Let another process have the databases open, with their logs."""
    command = (sys.executable, "-c", HOLDING, *paths)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.communicate()


@pytest.fixture
def full(here: Here) -> Here:
    here.save_all(
        ("We chose SQLite.", "decision", {"project": PROJECT}),
        ("Never push to main.", "rule", {"always_load": True}),
    )
    return here


class TestNothingIsWritten:
    @requirement("002-writes-nothing")
    def test_where_nothing_was_ever_remembered(self, here: Here) -> None:
        before = snapshot(here.machine.place)

        ask_everything(here)

        assert snapshot(here.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_something_was(self, full: Here) -> None:
        before = snapshot(full.machine.place)

        ask_everything(full)

        assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_there_is_no_index(self, full: Here) -> None:
        for path in full.machine.home.glob("histories/*"):
            path.rename(full.machine.place / "away")
        before = snapshot(full.machine.place)

        ask_everything(full)

        assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_others_have_the_databases_open(self, full: Here) -> None:
        with held_open(databases(full)):
            before = snapshot(full.machine.place)
            assert any(name.endswith("-wal") for name in before)

            ask_everything(full)

            assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_a_process_died_over_the_databases(self, full: Here) -> None:
        subprocess.run((sys.executable, "-c", DYING, *databases(full)), check=True)
        before = snapshot(full.machine.place)
        assert any(name.endswith("-wal") for name in before)

        ask_everything(full)

        assert "We chose SQLite." in recall_here(full.context)
        assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_only_a_log_is_left(self, full: Here) -> None:
        subprocess.run((sys.executable, "-c", DYING, *databases(full)), check=True)
        for path in full.machine.home.rglob("*-shm"):
            path.unlink()
        before = snapshot(full.machine.place)

        ask_everything(full)

        assert "We chose SQLite." in recall_here(full.context)
        assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_where_a_note_was_edited_by_hand(self, full: Here) -> None:
        files = [file for file in full.machine.store.rglob("*.md") if file.name != ABOUT]
        assert files
        for file in files:
            file.write_text(file.read_text() + "More.\n")
        before = snapshot(full.machine.place)

        ask_everything(full)

        assert snapshot(full.machine.place) == before

    @requirement("002-writes-nothing")
    def test_by_the_shim(self, full: Here) -> None:
        before = snapshot(full.machine.place)

        full.run("recall-here")
        full.run("recall-here", "--query", "what did we choose")
        full.run("state-path", "plan")
        full.run("offer-save-here", "--kind", "decision", "--slug", "x")

        assert snapshot(full.machine.place) == before


class TestBites:
    """The snapshots above see what a careless seam would do."""

    def test_a_database_that_is_opened_as_usual(
        self, full: Here, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = snapshot(full.machine.place)
        monkeypatch.setattr("perdure.sqlite.ReadOnlyDatabase", SqliteFile)

        recall_here(full.context)

        assert snapshot(full.machine.place) != before

    def test_a_database_whose_log_is_created(
        self, full: Here, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class MakesLogs(ReadOnlyDatabase):
            def _open(self) -> sqlite3.Connection:
                return self._connection_to(f"{self.path.as_uri()}?mode=ro", self._check)

        before = snapshot(full.machine.place)
        monkeypatch.setattr("perdure.sqlite.ReadOnlyDatabase", MakesLogs)

        recall_here(full.context)

        assert snapshot(full.machine.place) != before


class TestWrapper:
    @pytest.fixture
    def backend(self, here: Here) -> StorageBackend:
        return open_reader(os.environ).backend

    @requirement("002-writes-nothing")
    def test_every_verb_that_writes_is_refused(self, backend: StorageBackend, here: Here) -> None:
        leave = Authorisation.__new__(Authorisation)
        before = snapshot(here.machine.place)

        for act in (
            lambda: backend.write(NOTE, "x"),
            lambda: backend.remove(NOTE),
            lambda: backend.write_all({NOTE: "x"}),
            lambda: backend.write_unsynced({NOTE: "x"}),
            lambda: backend.mkdir(NOTE),
            lambda: backend.write_personal(NOTE, "x", authorisation=leave),
        ):
            with pytest.raises(AccessRefusedError, match="opened read-only"):
                act()
        assert snapshot(here.machine.place) == before

    def test_it_defines_every_public_verb_itself(self) -> None:
        """One that the contract gains is not passed through unseen."""
        public = {name for name in vars(StorageBackend) if not name.startswith("_")}
        left = {"from_options", "conflict_strategy", "derived_maintenance", "is_past"}
        left |= {"defers_sync", "write_unsynced", "sync"}  # they are `write_all`, and nothing
        left |= {"write_personal"}  # which is `_write_personal`

        assert (public - left) | {"_write_personal"} <= vars(DelegatingReader).keys() | vars(
            ImmutableBackend
        ).keys()

    @pytest.mark.usefixtures("agfs")
    def test_it_reads_what_there_is(self, here: Here, backend: StorageBackend) -> None:
        inner = here.machine.backend()
        inner.write(NOTE, "x")

        assert backend.read(NOTE) == "x"
        assert backend.read_all(NOTE.parent, [NOTE.name]) == {NOTE.name: "x"}
        assert backend.list(NOTE.parent) == [NOTE]
        assert [here for here, stamps in backend.scan() if stamps] == [NOTE.parent]
        assert backend.exists(NOTE)
        assert backend.info(NOTE) == inner.info(NOTE)
        assert backend.resolve("a", "b") == Locator("a/b")
        assert backend.capabilities == inner.capabilities
        assert backend.whereabouts == inner.whereabouts
        assert list(backend.findings(NOTE.parent)) == []
        assert list(backend.earlier(NOTE)) == []


class TestDatabases:
    def test_one_that_is_read_only_can_not_be_changed(self, full: Here) -> None:
        index, _, _ = open_index(open_reader(os.environ))
        try:
            with pytest.raises(AccessRefusedError, match="opened read-only"):
                index.delete_account_data("local")
        finally:
            index.close()

    def test_where_there_is_none_it_is_empty(self, tmp_path: Path) -> None:
        file = ReadOnlyDatabase(str(tmp_path / "none.sqlite"), sql.TABLES)
        with file.connection() as db:
            assert db.execute("SELECT count(*) FROM texts").fetchone() == (0,)
        file.close()
        assert list(tmp_path.iterdir()) == []

    def test_one_that_changes_while_it_is_read_is_reported(self, full: Here) -> None:
        (path,) = full.machine.home.rglob("index/*/local.sqlite")
        file = ReadOnlyDatabase(str(path), sql.TABLES)
        seen = [file.is_consistent]

        full.save("Another.", project=PROJECT)

        assert [*seen, file.is_consistent] == [True, False]
        file.close()

    def test_a_log_that_only_a_writer_can_take_in_is_reported(self, full: Here) -> None:
        (path,) = full.machine.home.rglob("index/*/local.sqlite")
        subprocess.run((sys.executable, "-c", DYING, str(path)), check=True)
        path.with_name(f"{path.name}-shm").unlink()

        with pytest.raises(StorageUnavailableError, match="only a writer can apply"):
            ReadOnlyDatabase(str(path), sql.TABLES)


WRITERS = {
    "perdure.context.tenancy",
    "perdure.context.nodes",
    "perdure.engine.indexing.outbox_store",
    "perdure.artifacts.artifact_store",
    "perdure.engine.memory",
    "perdure.engine.indexing.index_worker",
    "perdure.harness.state_writer",
    "perdure.storage.batch",
    "perdure.storage.text_history",
    "perdure.storage.committer",
    "perdure.storage.mutex",
    "perdure.storage.recorded",
}
"""The modules that can change stored texts."""

ASKED = (
    ("recall-here",),
    ("recall-here", "--query", "what did we choose"),
    ("state-path", "plan"),
    ("offer-save-here", "--kind", "decision", "--slug", "x"),
)
LOOKING = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from perdure.process.__main__ import main
sys.exit(main())
"""


def loaded(here: Here, *arguments: str) -> set[str]:
    """Run the shim; return all modules that it loads."""
    done = subprocess.run(
        (sys.executable, "-c", LOOKING, *arguments),
        env=here.machine.environ,
        cwd=here.machine.root,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.splitlines()[-1].split())


@requirement("002-imports-no-write-path")
@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_nothing_that_writes_is_even_loaded(full: Here, arguments: tuple[str, ...]) -> None:
    assert not loaded(full, *arguments) & WRITERS


def test_all_that_must_not_be_loaded_is_there() -> None:
    """A module that was renamed would be missed by nobody."""
    for name in WRITERS:
        __import__(name)


def imported(module: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("perdure"):
            yield from ((str(node.module), alias.name) for alias in node.names)


@requirement("002-public-readers-only")
@pytest.mark.parametrize("module", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_built_on_public_names_alone(module: Path) -> None:
    for source, name in imported(module):
        assert not name.startswith("_")
        assert not any(part.startswith("_") for part in source.split("."))
        assert source not in WRITERS


@requirement("002-three-functions")
def test_it_offers_three_functions_and_nothing_else() -> None:
    assert sorted(perdure.process.__all__) == ["offer_save_here", "recall_here", "state_path"]
    assert all(callable(getattr(perdure.process, name)) for name in perdure.process.__all__)
