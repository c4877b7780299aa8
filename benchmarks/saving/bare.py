"""What it takes to keep a text on this disk at all: peers that promise nothing but that."""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path


def write(folder: str, name: str, data: bytes, *, synced: bool) -> None:
    """Write a file that is whole or not there; if synced, it is on the disk when this returns."""
    temporary, target = f"{folder}/{name}.tmp", f"{folder}/{name}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(file, data)
    if synced:
        os.fsync(file)
    os.close(file)
    os.rename(temporary, target)  # noqa: PTH104 - as bare as it gets


def sync(folder: str) -> None:
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


class Files:
    """One file for each text: the file synced, renamed, and its folder synced."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = str(folder)
        self._written = 0

    def write(self, text: str) -> None:
        self._written += 1
        write(self._folder, f"n{self._written:07}.md", text.encode(), synced=True)
        sync(self._folder)


class Rows:
    """One row of SQLite for each text, in a commit of its own, synced fully or not at all."""

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        self._connection.execute("CREATE TABLE texts (text TEXT)")

    def write(self, text: str) -> None:
        self.write_all([text])

    def write_all(self, texts: Iterable[str]) -> None:
        """Write many texts in one commit."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO texts VALUES (?)", [(text,) for text in texts])
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Same:
    """All that a save puts on the disk, bare: the same file, and as many commits and syncs.

    That is an entry of a log, synced; the note, and how far files follow the log; an event; and a
    change of an index, synced.
    """

    def __init__(self, folder: Path, note: Path) -> None:
        """Take the size of the file from a note that is there."""
        folder.mkdir()
        self._folder = str(folder)
        self._size = note.stat().st_size
        self._events = Rows(folder / "events.sqlite", synced=False)
        self._index = Rows(folder / "index.sqlite")
        self._log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._applied = os.open(folder / "applied", os.O_WRONLY | os.O_CREAT, 0o666)
        self._written = 0

    def write(self, text: str) -> None:
        self._written += 1
        data = text.encode()
        os.write(self._log, data)
        os.fdatasync(self._log)
        note = data[: self._size].ljust(self._size)
        write(self._folder, f"n{self._written:07}.md", note, synced=False)
        os.pwrite(self._applied, b"%016d" % self._written, 0)
        self._events.write(text)
        self._index.write(text)

    def close(self) -> None:
        self._events.close()
        self._index.close()
        os.close(self._log)
        os.close(self._applied)
