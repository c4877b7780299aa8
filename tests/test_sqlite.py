"""A SQLite file of ours where it can't be written, or where something else is in its place."""

import errno
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from perdure.errors import (
    AccessRefusedError,
    DamageError,
    PerdureError,
    StorageError,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
)
from perdure.files import set_aside
from perdure.sqlite import (
    DerivedDatabase,
    ReadOnlyDatabase,
    Schema,
    SqliteFile,
    open_read_only,
    read_snapshot,
)
from tests.disks import refusing

TABLES = Schema(
    name="the shelf",
    version=1,
    statements=("CREATE TABLE book (title)", "PRAGMA user_version = 1"),
    loss="books are lost",
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


def opened(path: Path) -> SqliteFile:
    return SqliteFile(str(path), TABLES)


def add(file: SqliteFile, title: str) -> None:
    with file.transaction() as db:
        db.execute("INSERT INTO book VALUES (?)", (title,))


def titles(file: SqliteFile) -> list[str]:
    with file.connection() as db:
        return [title for (title,) in db.execute("SELECT title FROM book")]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
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


@pytest.mark.parametrize("number", REFUSED)
def test_a_file_without_tables_is_empty_too(tmp_path: Path, number: int) -> None:
    path = tmp_path / "shelf.sqlite"
    with closing(sqlite3.connect(path)) as db:  # as it is left if the disk is full just then
        db.execute("PRAGMA journal_mode = WAL")

    with refusing(number), closing(opened(path)) as file:
        assert titles(file) == []
    with closing(opened(path)) as file:
        add(file, "Emma")


def test_a_full_disk_refuses_a_change_wholly(path: Path) -> None:
    with closing(opened(path)) as file:
        with file.connection() as db:
            db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StorageFullError, match=r"shelf\.sqlite.*Fix: "):
            add(file, "Persuasion" * 1_000)

        assert titles(file) == ["Emma"]


def test_opening_does_not_look_like_a_write(path: Path) -> None:
    before = path.stat().st_mtime_ns

    with closing(opened(path)) as file:
        assert titles(file) == ["Emma"]

    assert path.stat().st_mtime_ns == before


def test_once_it_can_be_written_again_it_is(path: Path) -> None:
    with refusing(errno.EROFS):
        file = opened(path)
        assert titles(file) == ["Emma"]
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


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    (path / "of another program").mkdir(parents=True)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def flipped(path: Path, at: int, bits: int = 0xFF) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.write_bytes(bytes(data))


def with_schema_that_is_not_text(path: Path) -> None:
    flipped(path, path.read_bytes().index(b"CREATE TABLE book") + 9, 0x80)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "empty": partial(Path.write_bytes, data=b""),
    "truncated": truncated,
    "of its head": partial(flipped, at=3),
    "of its version": partial(flipped, at=63),
    "of a page": partial(flipped, at=4096),
    "of its schema": with_schema_that_is_not_text,
    "replaced by a folder": replaced_by_a_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", [SqliteFile, ReadOnlyDatabase])
def test_damage_is_a_typed_error_with_a_fix(
    path: Path, damage: str, kind: type[SqliteFile]
) -> None:
    DAMAGES[damage](path)

    reported = ""
    try:
        with closing(kind(str(path), TABLES)) as file:
            found = titles(file)
    except PerdureError as error:
        found, reported = [], str(error)

    assert found == []
    assert not reported or ("shelf.sqlite" in reported and "Fix: " in reported)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_derived_file_is_rebuilt_however_it_was_damaged(path: Path, damage: str) -> None:
    file = DerivedDatabase(str(path), TABLES)
    assert file.run(titles) == ["Emma"]
    file.close()
    DAMAGES[damage](path)

    assert file.run(titles) == []
    file.run(lambda opened: add(opened, "Persuasion"))
    file.close()

    with closing(opened(path)) as again:
        assert titles(again) == ["Persuasion"]


@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"truncated", "of its version"}))
def test_a_file_of_others_that_is_damaged_is_a_storage_error(path: Path, damage: str) -> None:
    DAMAGES[damage](path)

    with pytest.raises(StorageError, match="Fix: "):
        of_others(path)


def of_others(path: Path) -> list[tuple[str]]:
    with open_read_only(path) as database:
        return database.execute("SELECT title FROM book").fetchall()


def test_a_file_of_others_is_read_and_never_changed(path: Path) -> None:
    before = path.read_bytes()

    assert of_others(path) == [("Emma",)]
    with pytest.raises(StorageError, match="Fix: "), open_read_only(path) as database:
        database.execute("DELETE FROM book")
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_look_at_what_is_damaged_finds_nothing(path: Path, damage: str) -> None:
    DAMAGES[damage](path)

    assert not read_snapshot(
        path, TABLES, lambda db: db.execute("SELECT title FROM book").fetchall()
    )
