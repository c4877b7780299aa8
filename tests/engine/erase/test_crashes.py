"""Whoever is killed while something is erased: it is as it was, or the next one ends it."""

import shutil
import sys
import threading
from pathlib import Path

import pytest

from perdure.artifacts import CID
from perdure.errors import (
    ConcurrentModificationError,
    ContextError,
    NodeNotFoundError,
    StorageFullError,
)
from perdure.storage.changes import Changes, Conditions
from perdure.storage.device_local import FolderBackend
from tests.engine.erase.homes import (
    ODD,
    SECRET,
    check_receipt,
    leaks,
    receipts,
    root,
    save_secret,
)
from tests.engine.killing import killed
from tests.engine.remembering import opened

pytestmark = pytest.mark.search


def erase(home: Path, uri: str, killed_after: int) -> int:
    """Erase in another process that may be killed; return how many calls it made."""

    def action() -> None:
        with opened(home, semantic=False) as context:
            root(context).forget(uri, erase=True)

    return killed(action, killed_after)


def check(home: Path, uri: str) -> bool:
    """Open a memory in which a process was killed; say whether the erasure was done."""
    with opened(home, semantic=False) as context:
        memory = root(context)
        assert not list(home.rglob("erasing/*.json"))
        assert context.recorded.history.store.verify().ok
        assert memory.recall("tabs").hits
        found = receipts(home)
        if not found:
            assert memory.read(uri).content.startswith(SECRET)
            assert len(memory.history(uri)) == 2
            return False
        (path,) = found
        assert check_receipt(context, path) == []
        with pytest.raises(NodeNotFoundError):
            memory.read(uri)
        assert memory.recall("kumquat wizard").hits == ()
    assert leaks(home) == {}
    return True


@pytest.mark.timeout(300)
def test_killed_after_any_call_it_is_as_it_was_or_the_next_one_ends_it(tmp_path: Path) -> None:
    home, whole = tmp_path / "home", tmp_path / "whole"
    with opened(home, semantic=False) as context:
        uri = save_secret(context)
        messages = [{"role": "user", "content": f"Note this. {SECRET}"}]
        root(context).commit_session(messages, session_id="s1", extract=False)
    shutil.copytree(home, whole)
    calls = erase(home, uri, 0)
    assert check(home, uri)
    assert calls > 40
    outcomes = []
    for after in range(1, calls + 1, 5):
        shutil.rmtree(home)
        shutil.copytree(whole, home)  # a memory knows its history by where it is
        erase(home, uri, after)
        outcomes.append(check(home, uri))

    assert outcomes == sorted(outcomes)
    assert outcomes[-1]


def test_a_save_after_the_removal_is_not_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, semantic=False) as context:
        uri = save_secret(context)
        memory = root(context)
        with monkeypatch.context() as patch:
            patch.setattr(type(context.recorded), "erase", _fail)
            with pytest.raises(KeyboardInterrupt):
                memory.forget(uri, erase=True)
        with pytest.raises(NodeNotFoundError):
            memory.read(uri)
        memory.save("A quince is here now.", category="preference", slug="odd")
        assert leaks(tmp_path)
    with opened(tmp_path, semantic=False) as context:
        assert root(context).read(uri).content == "A quince is here now."
        assert leaks(tmp_path) == {}
        assert check_receipt(context, receipts(tmp_path)[0]) == []


def test_an_unfinished_erasure_is_reported_and_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, semantic=False) as context:
        uri = save_secret(context)
        with monkeypatch.context() as patch:
            patch.setattr(type(context.recorded), "erase", _fail)
            with pytest.raises(KeyboardInterrupt):
                root(context).forget(uri, erase=True)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
        with opened(tmp_path, semantic=False) as context:
            assert root(context).recall("tabs").hits
            assert "is not finished" in context.warnings()
            assert context.warnings() == ""
            assert receipts(tmp_path) == []
    with opened(tmp_path, semantic=False) as context:
        assert root(context).recall("tabs").hits
        assert context.warnings() == ""
        assert leaks(tmp_path) == {}


def test_what_was_given_back_after_an_error_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is younger than its removal, and yet it is not somebody's new text."""
    with opened(tmp_path, semantic=False) as context:
        uri = save_secret(context)
        memory = root(context)
        with monkeypatch.context() as patch:
            patch.setattr(FolderBackend, "write_unsynced", _full)
            with pytest.raises(StorageFullError):
                memory.forget(uri, erase=True)
        assert memory.read(uri).content.startswith(SECRET)
    with opened(tmp_path, semantic=False) as context:
        assert root(context).recall("tabs").hits
        with pytest.raises(NodeNotFoundError):
            root(context).read(uri)
        assert check_receipt(context, receipts(tmp_path)[0]) == []
    assert leaks(tmp_path) == {}


_write_unsynced = FolderBackend.write_unsynced


def _full(self: FolderBackend, changes: Changes, *, expect: Conditions = None) -> None:
    if None in changes.values():
        raise StorageFullError("no space is left. Fix: make room.")
    _write_unsynced(self, changes, expect=expect)


def _fail(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_writer_of_the_same_node_comes_before_or_after(tmp_path: Path) -> None:
    texts = [f"{SECRET} Number {number}." for number in range(40)]
    with opened(tmp_path, semantic=False) as context:
        save_secret(context)
    going = threading.Event()

    def write() -> None:
        with opened(tmp_path, semantic=False) as context:
            for text in texts:
                try:
                    root(context).save(text, category="preference", slug="odd")
                except (ContextError, ConcurrentModificationError):  # the node went meanwhile
                    continue
                going.set()

    writer = threading.Thread(target=write)
    writer.start()
    going.wait()
    paths = []
    with opened(tmp_path, semantic=False) as context:
        while writer.is_alive():
            done = root(context).forget(ODD, erase=True)
            paths += [done.erased.path] if done.erased else []
        writer.join()
        root(context).forget(ODD, erase=True)

        assert leaks(tmp_path) == {}
        assert context.recorded.history.store.verify().ok
        assert paths
        for path in receipts(tmp_path):
            assert check_receipt(context, path) == []
        assert not context.recorded.history.store.has_bytes(CID.of(texts[-1].encode()))
