"""A power cut takes any number of the index's newest transactions, and the log makes them again."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.engine.remembering import ADMIN, of, opened, uris

SLUGS = [f"tea{number}" for number in range(4)]
FOUND = sorted(f"ctx://local/users/ana/memories/preference/{slug}" for slug in SLUGS)
_HEADER = 32
_FRAME_HEADER = 24


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the copy of a home whose process is still running, so that no log was taken in."""
    running = tmp_path / "running"
    with opened(running, semantic=False) as context:
        memory = of(context)
        for slug in SLUGS:
            memory.save(f"Likes green tea, {slug}.", category="preference", slug=slug)
        memory.save("Likes coffee.", category="preference", slug="coffee")
        memory.delete("ctx://local/users/ana/memories/preference/coffee")
        shutil.copytree(running, tmp_path / "after")
    return tmp_path / "after"


def log_of(home: Path) -> Path:
    (log,) = home.rglob("index/*/local.sqlite-wal")
    return log


def commits_in(log: Path) -> list[int]:
    """Return where the transactions of a write-ahead log of SQLite end."""
    data = log.read_bytes()
    page = int.from_bytes(data[8:12])
    ends = range(_HEADER + _FRAME_HEADER + page, len(data) + 1, _FRAME_HEADER + page)
    return [end for end in ends if int.from_bytes(data[end - page - 20 : end - page - 16])]


def test_whatever_is_left_of_the_log_of_the_index_all_saves_are_found(
    home: Path, tmp_path: Path
) -> None:
    ends = commits_in(log_of(home))
    assert len(ends) > len(SLUGS)
    cursors = set()
    for number, end in enumerate((0, *ends)):
        cut = tmp_path / f"cut{number}"
        shutil.copytree(home, cut)
        log = log_of(cut)
        with log.open("r+b") as file:
            file.truncate(end)
        log.with_name("local.sqlite-shm").unlink(missing_ok=True)
        with sqlite3.connect(log.with_name("local.sqlite")) as db:
            (row,) = db.execute("SELECT max(cursor) FROM changes").fetchall() if end else [(0,)]
        cursors.add(row[0] or 0)
        with opened(cut, semantic=False) as context:
            assert sorted(uris(of(context), "green tea")) == FOUND
            assert uris(of(context), "coffee") == []
            assert of(context, ADMIN).index.verify().holds
    assert len(cursors) > len(SLUGS)


def test_the_index_of_a_save_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[str] = []
    connect = sqlite3.connect

    def traced(*args: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)  # type: ignore[call-overload] # as it was given
        if str(args[0]).endswith("local.sqlite"):
            connection.set_trace_callback(levels.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    with opened(tmp_path, semantic=False) as context:
        of(context).save("Likes green tea.", category="preference", slug="tea")

    begins = levels.index("BEGIN IMMEDIATE", levels.index("PRAGMA synchronous = 1"))
    assert "PRAGMA synchronous = 2" not in levels[begins:]
