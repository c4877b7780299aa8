"""A SQLite file of ours where it can't be written, or where something else is in its place."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from perdure.database import DatabaseFile, Tables
from perdure.errors import (
    AccessRefusedError,
    DamageError,
    PerdureError,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
)
from perdure.files import set_aside
from tests.disks import refusing

TABLES = Tables(
    name="the shelf",
    version=1,
    statements=("CREATE TABLE book (title)", "PRAGMA user_version = 1"),
    without="books are lost",
)
REFUSED = {
    errno.EROFS: AccessRefusedError,
    errno.EACCES: AccessRefusedError,
    errno.ENOSPC: StorageFullError,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Have a file with one book in it."""
    with closing(opened(tmp_path / "shelf.sqlite")) as file:
        add(file, "Emma")
    return tmp_path / "shelf.sqlite"


def opened(path: Path) -> DatabaseFile:
    return DatabaseFile(str(path), TABLES)


def add(file: DatabaseFile, title: str) -> None:
    with file.changing() as db:
        db.execute("INSERT INTO book VALUES (?)", (title,))


def titles(file: DatabaseFile) -> list[str]:
    with file.reading() as db:
        return [title for (title,) in db.execute("SELECT title FROM book")]


@pytest.mark.parametrize("number", REFUSED)
def test_what_can_not_be_written_is_read_and_refuses_changes(path: Path, number: int) -> None:
    with refusing(number), closing(opened(path)) as file:
        assert titles(file) == ["Emma"]
        with pytest.raises(REFUSED[number], match=r"shelf\.sqlite.*Fix: ") as refused:
            add(file, "Persuasion")
        assert titles(file) == ["Emma"]
        with pytest.raises(REFUSED[number]):
            file.wipe()

    assert isinstance(refused.value, PerdureError)


@pytest.mark.parametrize("number", REFUSED)
def test_without_a_file_it_is_empty_and_refuses_changes(tmp_path: Path, number: int) -> None:
    with refusing(number), closing(opened(tmp_path / "new" / "shelf.sqlite")) as file:
        assert titles(file) == []
        with pytest.raises(REFUSED[number]):
            add(file, "Emma")
        assert titles(file) == []

    assert not (tmp_path / "new").exists()


def test_once_it_can_be_written_again_it_is(path: Path) -> None:
    with closing(opened(path)) as file:
        pass
    with refusing(errno.ENOSPC):
        file = opened(path)
    with closing(file):
        add(file, "Persuasion")

        assert titles(file) == ["Emma", "Persuasion"]


def test_where_no_log_can_be_it_is_read_without_one(path: Path) -> None:
    path.with_name("shelf.sqlite-wal").mkdir()

    with closing(opened(path)) as file:
        assert titles(file) == ["Emma"]
        with pytest.raises(StorageFaultError, match=r"shelf\.sqlite.*Fix: "):
            add(file, "Persuasion")


@pytest.mark.parametrize(("version", "error"), [(2, StorageUnavailableError), (0, DamageError)])
def test_what_is_not_ours_to_read_is_refused_there_too(
    path: Path, version: int, error: type[PerdureError]
) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")

    with refusing(), pytest.raises(error, match=r"shelf\.sqlite.*Fix: "):
        opened(path)


def test_what_is_no_database_is_damage_there_too(path: Path) -> None:
    path.write_bytes(b"x" * 9_000)

    with refusing(), pytest.raises(DamageError, match=r"shelf\.sqlite.*books are lost"):
        opened(path)


def test_a_folder_in_its_place_is_damage_that_can_be_put_aside(path: Path) -> None:
    path.unlink()
    path.mkdir()
    with pytest.raises(DamageError, match=r"shelf\.sqlite' is damaged: it is a folder\. Fix: "):
        opened(path)

    set_aside(path, unless=Path.is_file)

    with closing(opened(path)) as file:
        assert titles(file) == []
    (aside,) = path.parent.glob("shelf.sqlite-aside-*")
    assert aside.is_dir()
