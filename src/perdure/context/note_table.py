"""The table of which file holds which place. It is derived, by reading every file once."""

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cached_property
from sqlite3 import Connection
from typing import NamedTuple
from zlib import crc32

from perdure.context.note_names import folded
from perdure.errors import AccessRefusedError
from perdure.files import Closeable
from perdure.sqlite import DerivedDatabase, ReadOnlyDatabase, Schema, SqliteFile

_VERSION = 4
_TABLES = Schema(
    name="the table of notes",
    version=_VERSION,
    statements=(
        "CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        # `folded` and `stem` are checksums of the path and of its name, as links compare them.
        """CREATE TABLE note (
            id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name TEXT NOT NULL,
            path TEXT NOT NULL, folded INTEGER NOT NULL, stem INTEGER NOT NULL,
            digest BLOB NOT NULL, archived INTEGER NOT NULL, unsure INTEGER NOT NULL,
            claim TEXT NOT NULL, aliases TEXT NOT NULL, UNIQUE (folder, name))""",
        """CREATE TABLE alias (
            name TEXT NOT NULL, place TEXT NOT NULL, PRIMARY KEY (name, place)) WITHOUT ROWID""",
        "CREATE INDEX alias_place ON alias (place)",
        "CREATE INDEX note_folded ON note (folded)",
        "CREATE INDEX note_stem ON note (stem)",
        "CREATE INDEX note_archived ON note (folder) WHERE archived",
        "CREATE INDEX note_unsure ON note (folder) WHERE unsure",
        "CREATE INDEX note_claim ON note (claim) WHERE claim != ''",
        "CREATE TABLE state (complete INTEGER NOT NULL)",
        f"PRAGMA user_version = {_VERSION}",
    ),
    loss="every note is then read once more",
)
_COLUMNS = "folder.name, note.name, note.path, digest, archived, unsure, claim, aliases"
_JOINED = "note JOIN folder ON folder.id = note.folder"
_ROWS = f"SELECT {_COLUMNS} FROM {_JOINED}"  # noqa: S608 - our own words, as below
_AMONG = f"""SELECT {_COLUMNS} FROM json_each(?) AS asked
    CROSS JOIN folder ON folder.name = json_extract(asked.value, '$[0]')
    CROSS JOIN note ON note.folder = folder.id AND note.name = json_extract(asked.value, '$[1]')
    """  # noqa: S608
_PUT = """INSERT INTO note
    VALUES (NULL, (SELECT id FROM folder WHERE name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (folder, name) DO UPDATE SET path = excluded.path, folded = excluded.folded,
    stem = excluded.stem, digest = excluded.digest, archived = excluded.archived,
    unsure = excluded.unsure, claim = excluded.claim, aliases = excluded.aliases"""
_DROP = "DELETE FROM note WHERE folder = (SELECT id FROM folder WHERE name = ?) AND name = ?"
_ARCHIVED = f"SELECT note.name FROM {_JOINED} WHERE archived AND folder.name = ? ORDER BY 1"  # noqa: S608
_BELOW = f"""SELECT folder.name, note.name FROM {_JOINED}
    WHERE folder.name = ? OR (folder.name >= ? AND folder.name < ?)"""  # noqa: S608
_FOLDERS = """SELECT name FROM folder WHERE name >= ? AND name < ?
    AND EXISTS (SELECT 1 FROM note WHERE note.folder = folder.id)"""


NOT_READ = b"-"
"""In place of a digest: the file is not text, or may not be read."""


class NoteRow(NamedTuple):
    place: str
    path: str
    digest: bytes = b""
    """The sha256 of the file as Perdure wrote it; empty if others wrote it since, or `NOT_READ`."""
    archived: bool = False
    unsure: bool = False
    """Whether a writer may have ended before the file agreed with the row."""
    claim: str = ""
    """The place that its id names, if another file with that id holds it."""
    aliases: str = ""
    """The aliases of a note in place, one in each line."""

    @property
    def is_ours(self) -> bool:
        """Whether the file is as Perdure wrote it, as far as is known."""
        return self.digest not in {b"", NOT_READ}

    @property
    def names(self) -> set[str]:
        """The names that a link may have for it: of its file, and its aliases."""
        return {self.stem, *map(folded, self.aliases.splitlines())}

    @property
    def stem(self) -> str:
        return folded(self.path.rpartition("/")[2].rpartition(".")[0])


class NoteTable(Closeable):
    """The rows of all notes. Threads and processes may share it; without a path it is in memory."""

    def __init__(self, path: str = "") -> None:
        self._file = DerivedDatabase(path, _TABLES)

    def close(self) -> None:
        self._file.close()
        self.__dict__.pop("_database", None)

    @cached_property
    def _database(self) -> SqliteFile:
        return self._file.run(lambda file: file)

    def _changing(self) -> AbstractContextManager[Connection]:
        return self._database.transaction(durable=False)

    # ------------------------------------------------------------ reading
    def at(self, place: str) -> NoteRow | None:
        query = f"{_ROWS} WHERE folder.name = ? AND note.name = ?"
        return next(iter(self._select(query, *place.rpartition("/")[::2])), None)

    def among(self, places: Iterable[str]) -> list[NoteRow]:
        """Return the rows of those places that have one, by one query."""
        return self._select(
            _AMONG, json.dumps([each.rpartition("/")[::2] for each in dict.fromkeys(places)])
        )

    def below(self, place: str) -> list[str]:
        """Return the places at and below one that have a row, each before those below it."""
        with self._database.connection() as db:
            found = [_joined(*each) for each in db.execute(_BELOW, (place, *_inside(place)))]
        own = [place] if self.at(place) else []
        return own + sorted(found, key=lambda each: each.split("/"))

    def at_path(self, path: str) -> NoteRow | None:
        """Return the row of a file; else that of one whose path differs only by case."""
        name = folded(path)
        found = self._select(f"{_ROWS} WHERE folded = ?", crc32(name.encode()))
        found = [row for row in found if folded(row.path) == name]
        return min(found, key=lambda row: row.path != path, default=None)

    def rows(self) -> list[NoteRow]:
        return sorted(self._select(_ROWS))

    def listed(self, place: str) -> tuple[bool, list[str], bool]:
        """Return whether any row is unsure, the names directly below, and if one is archived."""
        with self._database.connection() as db:
            unsure = db.execute("SELECT 1 FROM note WHERE unsure").fetchone()
            archived = db.execute(_ARCHIVED, (place,)).fetchone()
            return unsure is not None, _children(db, place), bool(place and archived)

    def children(self, place: str) -> list[str]:
        """Return the names directly below a place, sorted."""
        with self._database.connection() as db:
            return _children(db, place)

    def named(self, name: str) -> list[str]:
        """Return the places of notes that have a name or an alias."""
        name = folded(name)
        found = self._select(f"{_ROWS} WHERE stem = ?", crc32(name.encode()))
        with self._database.connection() as db:
            aliases = db.execute("SELECT place FROM alias WHERE name = ?", (name,)).fetchall()
        return sorted({row.place for row in found if row.stem == name} | {a for (a,) in aliases})

    def has_below(self, place: str) -> bool:
        with self._database.connection() as db:
            query = f"{_BELOW} LIMIT 1"
            return db.execute(query, (place, *_inside(place))).fetchone() is not None

    def archived(self, place: str) -> list[str]:
        """Return the names of archived nodes directly below a place."""
        with self._database.connection() as db:
            return [name for (name,) in db.execute(_ARCHIVED, (place,))]

    def unsure(self, place: str) -> list[NoteRow]:
        """Return the unsure rows at a place and below."""
        rows = self._select(f"{_ROWS} WHERE unsure")  # nearly always none
        return [row for row in rows if not place or f"{row.place}/".startswith(f"{place}/")]

    def claiming(self, place: str) -> list[NoteRow]:
        """Return the rows of files whose id names a place that another file holds."""
        return self._select(f"{_ROWS} WHERE claim != '' AND claim = ?", place)

    def copies(self) -> list[NoteRow]:
        """Return the rows of files whose id another file has."""
        return self._select(f"{_ROWS} WHERE claim != '' AND folder.name < 'a'")

    @property
    def is_complete(self) -> bool:
        """Whether every file was read once."""
        with self._database.connection() as db:
            return db.execute("SELECT 1 FROM state").fetchone() is not None

    def _select(self, statement: str, *values: str | int) -> list[NoteRow]:
        with self._database.connection() as db:
            return [
                NoteRow(_joined(folder, name), path, digest, bool(archived), bool(unsure), *more)
                for folder, name, path, digest, archived, unsure, *more in db.execute(
                    statement, values
                )
            ]

    # ------------------------------------------------------------ changing
    def change(
        self, rows: Iterable[NoteRow], gone: Iterable[str] = (), *, complete: bool = False
    ) -> None:
        """Put rows and drop places in one transaction, which need not survive a power cut."""
        put, drop = list(rows), list(gone)
        if not (put or drop or complete):
            return
        with self._changing() as db:
            db.executemany(_DROP, (place.rpartition("/")[::2] for place in drop))
            folders = {(row.place.rpartition("/")[0],) for row in put}
            db.executemany("INSERT OR IGNORE INTO folder (name) VALUES (?)", folders)
            db.executemany(_PUT, map(_values, put))
            changed = ((place,) for place in (*drop, *(row.place for row in put)))
            db.executemany("DELETE FROM alias WHERE place = ?", changed)
            aliases = ((name, r.place) for r in put if r.aliases for name in r.names)
            db.executemany("INSERT OR IGNORE INTO alias VALUES (?, ?)", aliases)
            if drop:
                db.execute("DELETE FROM folder WHERE id NOT IN (SELECT folder FROM note)")
            if complete and not db.execute("SELECT 1 FROM state").fetchone():
                db.execute("INSERT INTO state VALUES (1)")

    def wipe(self) -> None:
        """Overwrite what was dropped, so that no byte of it is left."""
        self._database.wipe()

    def clear(self) -> None:
        with self._changing() as db:
            db.execute("DELETE FROM note")
            db.execute("DELETE FROM folder")
            db.execute("DELETE FROM alias")
            db.execute("DELETE FROM state")


class ReadOnlyNoteTable(NoteTable):
    """The table as other processes left it; its file is not changed."""

    def __init__(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        if found := self.__dict__.pop("_database", None):
            found.close()

    @cached_property
    def _database(self) -> SqliteFile:
        return ReadOnlyDatabase(self._path, _TABLES)

    def change(
        self, rows: Iterable[NoteRow], gone: Iterable[str] = (), *, complete: bool = False
    ) -> None:
        """Do nothing; a process that may write updates rows that are behind."""

    def clear(self) -> None:
        raise AccessRefusedError(
            "the table of notes was opened read-only. Fix: open it for writing."
        )


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _inside(place: str) -> tuple[str, str]:
    """Return the range of the folders below a place; in ASCII, 0 follows the slash."""
    return (f"{place}/", f"{place}0") if place else ("", "\U0010ffff")


def _values(row: NoteRow) -> tuple[object, ...]:
    sums = (crc32(name.encode()) for name in (folded(row.path), row.stem))
    return (*row.place.rpartition("/")[::2], row.path, *sums, *row[2:])


def _children(db: Connection, place: str) -> list[str]:
    above = f"{place}/" if place else ""
    query = f"SELECT note.name FROM {_JOINED} WHERE folder.name = ?"  # noqa: S608 - our own words
    names = {name for (name,) in db.execute(query, (place,))}
    folders = db.execute(_FOLDERS, _inside(place))
    names |= {name[len(above) :].partition("/")[0] for (name,) in folders if name}
    return sorted(names)
