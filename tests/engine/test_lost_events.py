"""The log has every change, so no event need be kept of what is indexed at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.engine.indexing.index_worker import Worker
from perdure.errors import StorageFullError
from perdure.index.sqlite_index import SqliteIndex
from perdure.storage.committer import Committer
from tests.engine.remembering import ANA, of, opened, uris

TEA = "ctx://local/users/ana/memories/preference/tea"


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Index nothing, as if the power went after each commit."""
    with monkeypatch.context() as patch:
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
        monkeypatch.setattr(Worker, "drain", lambda *_, **__: None)
        of(context).delete(TEA)
    monkeypatch.undo()
    with opened(tmp_path, semantic=False) as context:
        result = of(context).recall("tea")
        assert (result.hits, result.index_lag) == ((), 0)


def test_a_save_leaves_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = "an event was written"
    monkeypatch.setattr(SqliteIndex, "change_events", lambda *_, **__: pytest.fail(failed))
    with opened(tmp_path) as context:
        of(context).save("Likes green tea.", category="preference", slug="tea")
        of(context).save("Likes white tea.", category="preference", slug="tea")
        assert uris(of(context), "white tea") == [TEA]


def test_a_save_that_could_not_be_indexed_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageFullError("no space is left. Fix: make room.")

    with opened(tmp_path, semantic=False) as context:
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "drain", fail)
            of(context).save("Likes green tea.", category="preference", slug="tea")
        assert [uri for uri, _ in context.outbox.list_pending("local")] == [TEA]
        assert uris(of(context), "tea") == [TEA]
        assert context.outbox.list_unfinished("local") == []


@pytest.mark.parametrize("layout", ["notes", "agfs"])
def test_a_save_that_another_process_indexed_before_its_files_were_there_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """The log is synced, then files are written; whoever follows the log in between is early."""
    environ = {"HOME": str(tmp_path), "USER": "ana", "PERDURE_LAYOUT": layout}
    with open_context(environ) as context, open_context(environ) as another:
        of(context).save("Likes green tea.", category="preference", slug="tea")
        assert uris(of(another), "green") == [TEA]
        write_files = Committer._write_files

        def late(self: Committer, *args: object, **options: object) -> object:
            of(another).settle()
            following = another.indexes.current("local").follower
            assert following.index.cursor("local") == another.recorded.history.position()
            return write_files(self, *args, **options)  # type: ignore[arg-type] # as it was given

        with monkeypatch.context() as patch:
            patch.setattr(Committer, "_write_files", late)
            of(context).save("Likes white tea.", category="preference", slug="tea")

        assert uris(of(another), "white") == [TEA]
        assert uris(of(context), "green") == []
        assert not another.indexes.current("local").follower.index.unlogged("local")


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_recall_looks_again_at_what_was_indexed_too_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_forgotten: bool
) -> None:
    """Also if it was forgotten which places these are, as after an owner was."""
    with opened(tmp_path, semantic=False) as context:
        memory = of(context)
        memory.save("Likes green tea.", category="preference", slug="tea")
        write_files = Committer._write_files

        def late(self: Committer, *args: object, **options: object) -> object:
            memory.settle()
            return write_files(self, *args, **options)  # type: ignore[arg-type] # as it was given

        after = memory.read(TEA).revised(content="Likes white tea.")
        with monkeypatch.context() as patch:
            patch.setattr(Committer, "_write_files", late)
            context.nodes.write_node(after, ANA)

        assert context.outbox.list_unfinished("local") == []
        if is_forgotten:
            index = context.indexes.current("local").follower.index
            monkeypatch.setattr(type(index), "unlogged", lambda *_: None)
        assert uris(memory, "white") == [TEA]


def test_what_a_killed_writer_left_to_be_written_is_indexed_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, semantic=False) as context:
        memory = of(context)
        memory.save("Likes green tea.", category="preference", slug="tea")

        def killed(*_: object, **__: object) -> None:
            memory.settle()  # another process follows the log
            raise SystemExit

        with monkeypatch.context() as patch:
            patch.setattr(Committer, "_write_files", killed)
            patch.setattr(Committer, "_undo", lambda *_: None, raising=False)
            with pytest.raises(SystemExit):
                memory.save("Likes white tea.", category="preference", slug="tea")
    with opened(tmp_path, semantic=False) as context:
        of(context).save("Likes coffee.", category="preference", slug="coffee")
        found = of(context).recall("tea").hits
        assert [hit.uri for hit in found] == [TEA]
        assert of(context).read(TEA).content in {"Likes white tea.", "Likes green tea."}
        assert found[0].snippet == of(context).read(TEA).content
