"""The names bound after a position, read from mark and catalogue without opening the store."""

import sqlite3
import struct
from pathlib import Path

from perdure.sqlite import Schema, read_snapshot

CATALOGUE = "catalogue.sqlite"
MARK = "mark"
VERSION = 5
"""The version of the catalogue's tables."""
_POSITION = struct.Struct("<4xIQ")
_LOOKED_AT = Schema("the catalogue", VERSION, (), "it is built again from the log")
_SINCE = (
    "SELECT DISTINCT folders.name || binds.name FROM binds CROSS JOIN folders ON id = folder "
    "WHERE position > ? ORDER BY position LIMIT ?"
)


def names_since(folder: Path, position: int, most: int) -> list[str] | None:
    """Return names that were bound after a position; None if that is not known.

    Returns at most the first `most`.
    """
    end = _acknowledged(folder / MARK)
    if end is not None and end <= position:
        return []

    def read(db: sqlite3.Connection) -> list[str] | None:
        ((cursor,),) = db.execute("SELECT cursor FROM facts")
        if end is None or cursor < end:
            return None
        return [name for (name,) in db.execute(_SINCE, (position, most))]

    path = folder / CATALOGUE
    return read_snapshot(path, _LOOKED_AT, read) if path.exists() else None


def _acknowledged(mark: Path) -> int | None:
    """Return how far the log was acknowledged; 0 without a log, None if it is not known."""
    try:
        data = mark.read_bytes()
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    if len(data) < _POSITION.size:
        return None
    position: int = _POSITION.unpack_from(data)[1]
    return position
