"""Where nothing changed, no text is read; and what changed is still found."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.artifacts.archive_transfer import ImportOutcome
from perdure.context.nodes import Nodes
from perdure.engine.upkeep import DifferenceKind
from perdure.errors import ArchiveError, PathIsFileError
from perdure.index.sqlite_index import SqliteIndex
from perdure.transfer import export
from tests.transfer.machines import Machine, fill

TABS = "ctx://local/users/ana/memories/preference/tabs"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with Machine(tmp_path / "here", "device-local").opened() as context:
        context.memory.save("Prefers tabs.", category="preference", slug="tabs")
        context.memory.save("Drinks tea.", category="preference", slug="tea")
        yield context


def counted(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    """Return a list that grows with each call."""
    calls: list[object] = []
    original: Callable[..., object] = getattr(owner, name)

    def call(*given: object, **named: object) -> object:
        calls.append(given)
        return original(*given, **named)

    patch.setattr(owner, name, call)
    return calls


class TestRepair:
    def test_what_was_examined_is_not_read_again(
        self, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert context.memory.repair().findings == ()
        loads = counted(monkeypatch, Nodes, "load")

        assert context.memory.repair().findings == ()
        assert not loads

        context.memory.save("Walks to work.", category="preference", slug="walking")
        loads.clear()
        context.memory.repair()
        assert len(loads) == 1

    @pytest.mark.parametrize("is_seen", [False, True])
    def test_a_file_that_is_no_text_stays_found(
        self, context: Context, tmp_path: Path, *, is_seen: bool
    ) -> None:
        context.memory.repair()
        (note,) = (tmp_path / "here").rglob("*abs.md")
        note.write_bytes(b"\xff\xfe")
        if is_seen:
            context.memory.recall("tabs")

        for _ in range(2):
            (finding,) = context.memory.repair().findings
            assert finding.uri == TABS

    def test_an_edit_by_hand_is_looked_at(
        self, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        context.memory.repair()
        (note,) = (tmp_path / "here").rglob("*abs.md")
        note.write_text(note.read_text() + "And spaces.\n")
        loads = counted(monkeypatch, Nodes, "load")

        context.memory.repair()
        assert loads


class TestQuickVerify:
    def test_it_says_what_it_did_not_compare(self, context: Context) -> None:
        proof = context.memory.index.verify(quick=True)

        assert proof.holds
        assert "what the records say" in proof.not_compared
        assert not context.memory.index.verify().not_compared

    def test_only_the_full_check_finds_a_record_that_is_gone(self, context: Context) -> None:
        context.memory.recall("tabs")
        context.indexes.configured.follower.index.replace("local", {TABS: []})

        assert context.memory.index.verify(quick=True).holds
        (difference,) = context.memory.index.verify().differences
        assert difference == (TABS, DifferenceKind.MISSING)

    def test_an_index_that_was_thrown_away_does_not_hold_unseen(self, context: Context) -> None:
        context.memory.recall("tabs")
        context.indexes.configured.follower.index.delete_account_data("local")

        assert context.memory.index.verify(quick=True).places == 3


class TestExport:
    def test_nothing_is_compared_that_was_not_touched(
        self, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "export"
        first = context.memory.export(folder)
        digests = counted(monkeypatch, export, "_file_digest")

        again = context.memory.export(folder)

        assert (again.manifest, again.written, again.removed) == (first.manifest, 0, 0)
        assert not digests

    @pytest.mark.parametrize("how", ["edited", "removed", "unfinished"])
    def test_what_was_touched_is_compared(self, context: Context, tmp_path: Path, how: str) -> None:
        folder = tmp_path / "export"
        context.memory.export(folder)
        note = folder / "notes/local/users/ana/memories/preference/tabs.md"
        if how == "edited":
            note.write_text("Another text.")
            with pytest.raises(PathIsFileError):
                context.memory.export(folder)
        elif how == "removed":
            note.unlink()
            assert context.memory.export(folder).written == 1
        else:
            (folder / ".unfinished.json").write_text("[]")
            context.memory.export(folder)
            assert not (folder / ".unfinished.json").exists()

    def test_a_copy_of_an_export_is_compared(
        self, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        context.memory.export(tmp_path / "export")
        shutil.copytree(tmp_path / "export", tmp_path / "copy")
        digests = counted(monkeypatch, export, "_file_digest")

        assert context.memory.export(tmp_path / "copy").written == 0
        assert digests


class TestImport:
    def test_what_was_taken_in_is_not_read_again(self, tmp_path: Path) -> None:
        here, there = (Machine(tmp_path / name, "device-local") for name in ("here", "there"))
        with here.opened() as context:
            fill(context)
            context.memory.export(tmp_path / "export", everything=True)
        there.import_folder(tmp_path / "export")
        (tmp_path / "export" / "README.md").write_text("Not what the manifest says.")

        assert there.import_folder(tmp_path / "export").how is ImportOutcome.KNOWN
        with pytest.raises(ArchiveError):
            Machine(tmp_path / "third", "device-local").import_folder(tmp_path / "export")


class TestCopies:
    def test_an_index_is_copied_while_others_read_it(self, tmp_path: Path) -> None:
        with Machine(tmp_path / "here", "device-local").opened() as context:
            context.memory.save("Prefers tabs.", category="preference", slug="tabs")
            state = IndexState(0, context.recorded.history.position())
            context.memory.save("Drinks tea.", category="preference", slug="tea")
            context.memory.recall("tea")
            (path,) = (tmp_path / "here").rglob("index/*/local.sqlite")
            with closing(sqlite3.connect(path, isolation_level=None)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM records").fetchone()
                context.memory.save("Walks to work.", category="preference", slug="walking")

                assert [hit.uri for hit in context.memory.recall("tabs", at=state).hits] == [TABS]
                assert not context.memory.recall("tea", at=state).hits

    def test_a_copy_holds_what_the_index_does(self, tmp_path: Path) -> None:
        with Machine(tmp_path / "here", "device-local").opened() as context:
            context.memory.save("Prefers tabs.", category="preference", slug="tabs")
            context.memory.recall("tabs")
            index = context.indexes.configured.follower.index
            assert isinstance(index, SqliteIndex)
            with index.duplicate("local", str(tmp_path / "copy")) as copy:
                assert copy.stamps("local") == index.stamps("local")
                assert copy.check("local") == []
