"""Which file holds which place. Derived: without it, every file is read once more."""

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cached_property
from sqlite3 import Connection
from typing import NamedTuple

from perdure.context.layouts.names import folded
from perdure.errors import AccessRefusedError
from perdure.files import Closing
from perdure.sqlite import DatabaseFile, DerivedFile, ReadOnlyFile, Tables

_VERSION = 3
_TABLES = Tables(
    name="the table of notes",
    version=_VERSION,
    statements=(
        """CREATE TABLE note (
            place TEXT PRIMARY KEY, path TEXT NOT NULL, folded TEXT NOT NULL,
            digest BLOB NOT NULL, archived INTEGER NOT NULL, unsure INTEGER NOT NULL,
            claim TEXT NOT NULL, aliases TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE named (
            name TEXT NOT NULL, place TEXT NOT NULL, PRIMARY KEY (name, place)) WITHOUT ROWID""",
        "CREATE INDEX named_place ON named (place)",
        "CREATE INDEX note_folded ON note (folded)",
        "CREATE INDEX note_archived ON note (place) WHERE archived",
        "CREATE INDEX note_unsure ON note (place) WHERE unsure",
        "CREATE INDEX note_claim ON note (claim) WHERE claim != ''",
        "CREATE TABLE state (complete INTEGER NOT NULL)",
        f"PRAGMA user_version = {_VERSION}",
    ),
    without="every note is then read once more",
)
_ROWS = "SELECT place, path, digest, archived, unsure, claim, aliases FROM note"
_PUT = "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ARCHIVED = "SELECT place FROM note WHERE archived AND place > ? AND place < ?"
_AMONG = f"{_ROWS} WHERE place IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own words
_BELOW = "SELECT place FROM note WHERE place > ? AND place < ? ORDER BY place"


NOT_READ = b"-"
"""Instead of a digest: the file is not a text, or may not be read."""


class Row(NamedTuple):
    place: str
    path: str
    digest: bytes = b""
    """The sha256 of the file as we wrote it; empty if others wrote it since, or `NOT_READ`."""
    archived: bool = False
    unsure: bool = False
    """Whether a writer may have ended before the file was as the row says."""
    claim: str = ""
    """The place that its id names, if another file with that id has it."""
    aliases: str = ""
    """Other names that a note in place says it has, one in each line."""

    @property
    def is_ours(self) -> bool:
        """Whether the file is as we wrote it, for all that is known."""
        return self.digest not in {b"", NOT_READ}

    @property
    def names(self) -> set[str]:
        """What a link may call it: the name of its file, or an alias."""
        stem = self.path.rpartition("/")[2].rpartition(".")[0]
        return {folded(each) for each in (stem, *self.aliases.splitlines())}


class Places(Closing):
    """The table. Threads and processes may share it; without a path it is in memory."""

    def __init__(self, path: str = "") -> None:
        self._file = DerivedFile(path, _TABLES)

    def close(self) -> None:
        self._file.close()
        self.__dict__.pop("_database", None)

    @cached_property
    def _database(self) -> DatabaseFile:
        return self._file.ask(lambda file: file)

    def _changing(self) -> AbstractContextManager[Connection]:
        return self._database.changing(outlasts_power=False)

    # ------------------------------------------------------------ reading
    def at(self, place: str) -> Row | None:
        return next(iter(self._asked(f"{_ROWS} WHERE place = ?", place)), None)

    def among(self, places: Iterable[str]) -> list[Row]:
        """Return the rows of those places that have one, in one question."""
        return self._asked(_AMONG, json.dumps(list(places)))

    def below(self, place: str) -> list[str]:
        """Return a place and all below it that have a row, each before those below it."""
        above = f"{place}/" if place else ""
        with self._database.reading() as db:
            found = [each for (each,) in db.execute(_BELOW, (above, f"{above}\U0010ffff"))]
        own = [place] if self.at(place) else []
        return own + sorted(found, key=lambda each: each.split("/"))

    def at_path(self, path: str) -> Row | None:
        """Return the row of a file; else that of one whose name differs only by case."""
        asked = f"{_ROWS} WHERE folded = ? ORDER BY path <> ? LIMIT 1"
        return next(iter(self._asked(asked, folded(path), path)), None)

    def rows(self) -> list[Row]:
        return self._asked(f"{_ROWS} ORDER BY place")

    def listed(self, place: str) -> tuple[bool, list[str], bool]:
        """Return whether any row is unsure, the first names below, and if any is archived there."""
        with self._database.reading() as db:
            unsure = db.execute("SELECT 1 FROM note WHERE unsure").fetchone()
            above = f"{place}/"
            archived = db.execute(_ARCHIVED, (above, f"{above}\U0010ffff")) if place else ()
            is_archived = any("/" not in found[len(above) :] for (found,) in archived)
            return unsure is not None, _children(db, place), is_archived

    def children(self, place: str) -> list[str]:
        """Return the first names below a place, in order."""
        with self._database.reading() as db:
            return _children(db, place)

    def named(self, name: str) -> list[str]:
        """Return the places of notes that have a name or an alias."""
        with self._database.reading() as db:
            found = db.execute("SELECT place FROM named WHERE name = ?", (folded(name),))
            return [place for (place,) in found]

    def has_below(self, place: str) -> bool:
        above = f"{place}/" if place else ""
        with self._database.reading() as db:
            return bool(db.execute(f"{_BELOW} LIMIT 1", (above, f"{above}\U0010ffff")).fetchone())

    def archived(self, place: str) -> list[str]:
        """Return the names of archived nodes directly below a place."""
        above = f"{place}/"
        with self._database.reading() as db:
            found = db.execute(_ARCHIVED, (above, f"{above}\U0010ffff"))
            names = [place.removeprefix(above) for (place,) in found]
        return [name for name in names if "/" not in name]

    def unsure(self, place: str) -> list[Row]:
        """Return the rows at a place and below that a writer may have left behind."""
        rows = self._asked(f"{_ROWS} WHERE unsure")  # hardly ever any
        return [row for row in rows if not place or f"{row.place}/".startswith(f"{place}/")]

    def claiming(self, place: str) -> list[Row]:
        """Return the rows of files whose id names a place that another file has."""
        return self._asked(f"{_ROWS} WHERE claim != '' AND claim = ?", place)

    def copies(self) -> list[Row]:
        """Return the rows of files whose id another file has."""
        return self._asked(f"{_ROWS} WHERE claim != '' AND place < 'a'")

    @property
    def is_complete(self) -> bool:
        """Whether every file was looked at once."""
        with self._database.reading() as db:
            return db.execute("SELECT 1 FROM state").fetchone() is not None

    def _asked(self, statement: str, *values: str) -> list[Row]:
        with self._database.reading() as db:
            return [
                Row(place, path, digest, bool(archived), bool(unsure), *more)
                for place, path, digest, archived, unsure, *more in db.execute(statement, values)
            ]

    # ------------------------------------------------------------ changing
    def change(
        self, rows: Iterable[Row], gone: Iterable[str] = (), *, complete: bool = False
    ) -> None:
        """Put rows and drop places in one transaction; it may be lost with the power."""
        put, drop = list(rows), list(gone)
        if not (put or drop or complete):
            return
        with self._changing() as db:
            db.executemany("DELETE FROM note WHERE place = ?", ((place,) for place in drop))
            db.executemany(_PUT, ((r.place, r.path, folded(r.path), *r[2:]) for r in put))
            changed = ((place,) for place in (*drop, *(r.place for r in put)))
            db.executemany("DELETE FROM named WHERE place = ?", changed)
            names = ((name, r.place) for r in put for name in r.names)
            db.executemany("INSERT OR IGNORE INTO named VALUES (?, ?)", names)
            if complete and not db.execute("SELECT 1 FROM state").fetchone():
                db.execute("INSERT INTO state VALUES (1)")

    def wipe(self) -> None:
        """Leave no byte of what was dropped."""
        self._database.wipe()

    def clear(self) -> None:
        with self._changing() as db:
            db.execute("DELETE FROM note")
            db.execute("DELETE FROM named")
            db.execute("DELETE FROM state")


class ReadOnlyPlaces(Places):
    """The table as others left it: nothing is done to its file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        if found := self.__dict__.pop("_database", None):
            found.close()

    @cached_property
    def _database(self) -> DatabaseFile:
        return ReadOnlyFile(self._path, _TABLES)

    def change(
        self, rows: Iterable[Row], gone: Iterable[str] = (), *, complete: bool = False
    ) -> None:
        """Change nothing; a row that is behind is followed by who may write."""

    def clear(self) -> None:
        raise AccessRefusedError(
            "the table of notes was opened to be read only. Fix: open it to be changed."
        )


def _children(db: Connection, place: str) -> list[str]:
    above = f"{place}/" if place else ""
    names: dict[str, None] = {}
    start: str | None = above
    while start is not None:
        rows = db.execute(_BELOW, (start, f"{above}\U0010ffff"))
        start = _taken(names, (found[len(above) :] for (found,) in rows))
        start = None if start is None else f"{above}{start}0"
    return sorted(names)


def _taken(names: dict[str, None], below: Iterable[str]) -> str | None:
    """Take first names; return one of which there are many, so that the rest can be skipped."""
    for found in below:
        name, slash, _ = found.partition("/")
        if slash and name in names:
            return name  # '0', which follows '/' in the order of characters, is after all of them
        names[name] = None
    return None
