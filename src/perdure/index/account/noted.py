"""The notes that are shown unasked, as an account's file has them. Nothing is done to the file."""

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.database import look
from perdure.index.account import schema

if TYPE_CHECKING:
    from perdure.model.values import JSON

SHOWN_FILES = (".meta.json", "content.md")
"""The files of a node that decide how it is shown."""
_CURSOR = 3
"""Where it stands in a change."""


class Note(NamedTuple):
    """A note, with what it takes to show it."""

    uri: str
    told: "dict[str, JSON]"

    @property
    def snippet(self) -> str:
        """The note as it may be shown, if it was kept ready."""
        entry = self.told.get("entry")
        return entry if isinstance(entry, str) else ""


class Notes(NamedTuple):
    cursor: int
    """Up to where in the log they are right; 0 if the index was never finished."""
    always: list[Note]
    of_project: list[Note]


def read_notes(path: Path, project: str, most: int) -> Notes | None:
    """Return the newest notes for a project, of each kind so many; None if they can't be had."""

    def read(db: sqlite3.Connection) -> Notes:
        def newest(of: str, *, always: bool) -> list[Note]:
            rows = db.execute(schema.NOTES, (of, int(always), most))
            return [Note(uri, json.loads(payload)) for uri, payload in rows]

        db.execute("BEGIN")
        last = db.execute(schema.LAST_CHANGE).fetchone()
        always = [*newest(project, always=True), *newest("", always=True)]
        of_project = newest(project, always=False)
        db.execute("ROLLBACK")
        return Notes(last[_CURSOR] if last else 0, always, of_project)

    return look(path, schema.TABLES, read)
