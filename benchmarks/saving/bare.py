"""What it takes to keep a text on this disk at all: peers that promise nothing but that."""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from perdure.context.files import FILES


def write_synced(folder: str, name: str, data: bytes) -> None:
    """Write a file that is whole or not there, and on the disk when this returns."""
    temporary, target = f"{folder}/{name}.tmp", f"{folder}/{name}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(file, data)
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
        write_synced(self._folder, f"n{self._written:07}.md", text.encode())
        sync(self._folder)


class Rows:
    """One row of SQLite for each text, in a commit of its own, synced as far as it can be."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
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
    """All that a save puts on the disk, bare: the same files, and as many commits.

    That is a folder with the files of a node, an entry of a log, the mark of how far files follow
    it, an event, and a change of an index.
    """

    def __init__(self, folder: Path, model: Path) -> None:
        """Take the sizes of files from a node that is there."""
        folder.mkdir()
        self._folder = str(folder)
        self._sizes = {name: (model / name).stat().st_size for name in FILES}
        self._events, self._index = Rows(folder / "events.sqlite"), Rows(folder / "index.sqlite")
        self._log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._mark = os.open(folder / "mark", os.O_WRONLY | os.O_CREAT, 0o666)
        self._written = 0

    def write(self, text: str) -> None:
        self._written += 1
        data = text.encode()
        os.write(self._log, data)
        os.fdatasync(self._log)
        self._write_files(f"{self._folder}/n{self._written:07}", data)
        os.pwrite(self._mark, b"%016d" % self._written, 0)
        os.fdatasync(self._mark)
        self._events.write(text)
        self._index.write(text)

    def _write_files(self, folder: str, data: bytes) -> None:
        os.mkdir(folder)  # noqa: PTH102 - as bare as it gets
        for name, size in self._sizes.items():
            write_synced(folder, name, data[:size].ljust(size))
        sync(folder)
        sync(self._folder)

    def close(self) -> None:
        self._events.close()
        self._index.close()
        os.close(self._log)
        os.close(self._mark)
