"""The tables of an account's index.

Whatever is filed under is a number in `records`, with its text in `names`: so a row that has to be
looked at to filter is small, and 0 stands for what a record does not say. A row is never changed,
and its number never used again; what takes its place is a new row.

An id that begins with its URI is kept without it, and any other one behind a `=`. Payloads, but for
those of notes, are compressed, with what most of them say and the text of their record as the
dictionary: 90 bytes instead of 310. Names are found by a checksum, which takes a sixth of an index
of the texts.
"""

# ruff: noqa: S608 - the statements are put together from constants of this module only

import json
import sqlite3
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.index.words import TOKENIZER
from perdure.sqlite import Schema, read_snapshot

if TYPE_CHECKING:
    from perdure.model.values import JSON


FORMAT = 9
"""Changes when the same node would give other records."""
LEXICAL = "lexical"
"""Begins the name of an index of words, without vectors."""


VERSION = 8
FILED = (
    "level",
    "uri",
    "below",
    "owner_space",
    "context_type",
    "category",
    "session_id",
    "project",
    "parent_uri",
    "since",
    "until",
)
"""The columns of `records` after the number of the row."""
KINDS = {"abstracts": (0, 0), "overviews": (1, 1), "passages": (2, 2)}
"""What is compared with its like only, when words are counted; and of which levels it is."""
_COLUMNS = ", ".join(f"{column} INTEGER NOT NULL" for column in FILED)
_ROWS = "IN (SELECT value FROM json_each(:rows))"
_OTHER = "id >= '=' AND id < '>'"
_ID = "iif(substr(id, 1, 1) = '=', substr(id, 2), value || id)"
"""The id of a record, where the name of its URI is at hand."""


def _searched(kind: str) -> tuple[str, str]:
    """Return how to make what FTS5 searches, and the view that it looks its texts up in."""
    view = (
        f"CREATE VIEW {kind}_said AS SELECT row, text, context FROM texts "
        f"JOIN records USING (row) WHERE level IN {KINDS[kind]}"
    )
    table = (
        f"CREATE VIRTUAL TABLE {kind} USING fts5(text, context, "
        f"content='{kind}_said', content_rowid='row', tokenize='{TOKENIZER}')"
    )
    return view, table


# A lease without a worker is one of `mark_processing`. `position` is that of an event of the log;
# `ready_at` follows from the rest: from then on the event can be worked on, if ever.
EVENTS = (
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        event_id TEXT NOT NULL UNIQUE,
        account TEXT NOT NULL,
        owner TEXT NOT NULL,
        uri TEXT NOT NULL,
        type TEXT NOT NULL,
        payload TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        position INTEGER,
        state INTEGER NOT NULL DEFAULT 0,
        retry_count INTEGER NOT NULL DEFAULT 0,
        next_retry_at INTEGER,
        last_error TEXT NOT NULL DEFAULT '',
        worker TEXT,
        lease_end INTEGER,
        ready_at INTEGER GENERATED ALWAYS AS (
            CASE state WHEN 0 THEN coalesce(lease_end, next_retry_at, 0) END) VIRTUAL)""",
    "CREATE INDEX events_waiting ON events (account, ready_at)",
)
"""The table of events that were claimed or failed, for `failures.py`."""
_STATEMENTS = (
    f"CREATE TABLE records (row INTEGER PRIMARY KEY, {_COLUMNS})",
    "CREATE INDEX records_of ON records (uri)",
    "CREATE INDEX records_owned ON records (owner_space)",
    """CREATE TABLE texts (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        text TEXT NOT NULL,
        context TEXT NOT NULL,
        payload BLOB NOT NULL,
        valid_from TEXT,
        valid_until TEXT,
        digest BLOB NOT NULL)""",
    f"CREATE INDEX texts_of ON texts (id) WHERE {_OTHER}",
    # What is shown unasked is found without a look at all else, the newest first.
    """CREATE TABLE notes (
        row INTEGER PRIMARY KEY,
        noted TEXT NOT NULL,
        always INTEGER NOT NULL,
        updated TEXT NOT NULL)""",
    "CREATE INDEX notes_of ON notes (noted, always, updated)",
    "CREATE INDEX notes_newest ON notes (updated)",
    # What a note names is found by the name: files, programs, failures; and so is what a node
    # links to, with `LINK` in place of a project.
    """CREATE TABLE named (
        name TEXT NOT NULL,
        noted TEXT NOT NULL,
        row INTEGER NOT NULL,
        PRIMARY KEY (name, noted, row)) WITHOUT ROWID""",
    "CREATE INDEX named_by ON named (row)",
    "CREATE TABLE vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "CREATE TABLE names (name INTEGER PRIMARY KEY, sum INTEGER NOT NULL, value TEXT NOT NULL)",
    "CREATE INDEX names_of ON names (sum)",
    "CREATE TABLE stamps (uri INTEGER PRIMARY KEY, stamp BLOB NOT NULL)",
    # Where 0 stands, nobody can tell any more which they are.
    "CREATE TABLE unlogged (uri INTEGER PRIMARY KEY)",
    # One row for each transaction. The last one is how things stand: how many rows there ever
    # were, and the cursor. The others tell who has a copy of the vectors which rows went since.
    """CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        token INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        gone TEXT NOT NULL,
        seal BLOB NOT NULL)""",
    *(view for kind in KINDS for view in _searched(kind)),
    *EVENTS,
    f"PRAGMA user_version = {VERSION}",
)

TABLES = Schema(
    name="the index",
    version=VERSION,
    statements=_STATEMENTS,
    loss="`perdure index rebuild` makes it again",
)

# ---------------------------------------------------------------- changes
ADD_RECORD = f"INSERT INTO records VALUES (?{', ?' * len(FILED)})"
ADD_TEXT = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
ADD_VECTOR = "INSERT INTO vectors VALUES (?, ?)"
ADD_NOTE = "INSERT INTO notes VALUES (?, ?, ?, ?)"
ADD_NAMED = "INSERT OR IGNORE INTO named VALUES (?, ?, ?)"
ADD_WORDS = "INSERT INTO {} (rowid, text, context) VALUES (?, ?, ?)"
ADD_NAME = "INSERT INTO names (name, sum, value) VALUES (?, ?, ?)"
LAST_NAME = "SELECT max(name) FROM names"
PUT_STAMP = "INSERT OR REPLACE INTO stamps VALUES (?, ?)"
DROP_STAMP = "DELETE FROM stamps WHERE uri = ?"
ADD_CHANGE = "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)"
DROP_CHANGES = "DELETE FROM changes WHERE seq <= ?"
REMOVE = (
    *(  # FTS5 must be told the text that it is to forget
        f"INSERT INTO {kind} ({kind}, rowid, text, context) "
        f"SELECT 'delete', row, text, context FROM {kind}_said WHERE row {_ROWS}"
        for kind in KINDS
    ),
    f"DELETE FROM records WHERE row {_ROWS}",
    f"DELETE FROM texts WHERE row {_ROWS}",
    f"DELETE FROM vectors WHERE row {_ROWS}",
    f"DELETE FROM notes WHERE row {_ROWS}",
    f"DELETE FROM named WHERE row {_ROWS}",
)
REMOVE_ALL = (
    *(f"INSERT INTO {kind} ({kind}) VALUES ('delete-all')" for kind in KINDS),
    "DELETE FROM records",
    "DELETE FROM texts",
    "DELETE FROM vectors",
    "DELETE FROM notes",
    "DELETE FROM named",
    "DELETE FROM names",
    "DELETE FROM stamps",
    "DELETE FROM unlogged",
    "DELETE FROM changes",
    "DELETE FROM events",
)
DROP_UNUSED_NAMES = (
    "DELETE FROM names WHERE name NOT IN ("
    + " UNION ALL ".join(f"SELECT {column} FROM records" for column in FILED[1:9])
    + " UNION ALL SELECT uri FROM unlogged)"
)
MARK_UNLOGGED = "INSERT OR IGNORE INTO unlogged VALUES (?)"
DROP_UNLOGGED = "DELETE FROM unlogged WHERE uri = ?"
_OF_NO_RECORD = "uri NOT IN (SELECT uri FROM records)"
FORGET_UNLOGGED = (  # whose a place is of which there is no record, nobody knows
    f"INSERT OR IGNORE INTO unlogged SELECT 0 FROM unlogged WHERE {_OF_NO_RECORD}",
    f"DELETE FROM unlogged WHERE uri != 0 AND {_OF_NO_RECORD}",
)
MERGE_WORDS = tuple(f"INSERT INTO {kind} ({kind}) VALUES ('optimize')" for kind in KINDS)

# ---------------------------------------------------------------- questions
LAST_CHANGE = "SELECT seq, token, rows, cursor, gone, seal FROM changes ORDER BY seq DESC LIMIT 1"
CHANGES_FROM = (
    "SELECT seq, token, rows, cursor, gone, seal FROM changes WHERE seq >= ? ORDER BY seq"
)
CHANGE_AT = "SELECT token FROM changes WHERE seq = ?"
NAME_OF = "SELECT name FROM names WHERE sum = ? AND value = ?"
NAMES_OF = (
    "SELECT name, value FROM names WHERE sum IN (SELECT value FROM json_each(?)) "
    "AND value IN (SELECT value FROM json_each(?))"
)
SUMS = "SELECT sum, value FROM names"
COUNT = "SELECT count(*) FROM records"
COUNT_STAMPS = "SELECT count(*) FROM stamps"
COUNT_PASSAGES = "SELECT count(*) FROM records WHERE level = 2"
PASSAGES_WITH = "SELECT count(*) FROM passages WHERE passages MATCH ?"
OWNER_AFTER = "SELECT min(owner_space) FROM records WHERE owner_space > ?"
NAME = "SELECT value FROM names WHERE name = ?"
UNLOGGED = "SELECT uri, value FROM unlogged LEFT JOIN names ON name = uri"
ANY_UNLOGGED = "SELECT 1 FROM unlogged LIMIT 1"
STAMPS = "SELECT value, lower(hex(stamp)) FROM stamps JOIN names ON name = uri"
STAMPS_WITH_OVERVIEW = (  # of what has passages too, nothing is a folder
    f"{STAMPS} WHERE uri IN (SELECT uri FROM records WHERE level = 1 "
    "EXCEPT SELECT uri FROM records WHERE level = 2)"
)
ROWS_OF_OWNER = "SELECT row, uri FROM records WHERE owner_space = ?"
ROWS_OF_URIS = "SELECT row, uri FROM records WHERE uri IN (SELECT value FROM json_each(?))"
IDS_OF_URIS = (
    "SELECT row, uri, id FROM records JOIN texts USING (row) "
    "WHERE uri IN (SELECT value FROM json_each(?))"
)
ROWS_OF_OTHERS = (
    "SELECT row, uri FROM texts JOIN records USING (row) "
    f"WHERE {_OTHER} AND id IN (SELECT value FROM json_each(?))"
)
DIGESTS_OF_URIS = (
    f"SELECT uri, {_ID}, digest FROM records JOIN texts USING (row) JOIN names ON name = uri "
    "WHERE uri IN (SELECT each.value FROM json_each(?) AS each)"
)
HITS_OF = (
    f"SELECT row, {_ID} AS id, value, level, text, payload FROM texts "
    "JOIN records USING (row) JOIN names ON name = uri"
)
HITS = f"{HITS_OF} WHERE row {_ROWS}"
THERE = f"SELECT row FROM records WHERE row {_ROWS} AND {{}}"
URIS = (
    f"SELECT row, {_ID}, value FROM texts JOIN records USING (row) JOIN names ON name = uri "
    f"WHERE row {_ROWS}"
)
FIRST_BY_ID = f"{URIS} ORDER BY {_ID} LIMIT :most"
_URI = "(SELECT value FROM names WHERE name = uri)"
_NAMED = ", ".join(f"(SELECT value FROM names WHERE name = {column})" for column in FILED[1:9])
WHOLE = (
    f"SELECT row, {_ID.replace('value', _URI)}, text, context, payload, valid_from, valid_until, "
    f"digest, level, {_NAMED}, "
    "since, until, vector FROM texts JOIN records USING (row) LEFT JOIN vectors USING (row)"
)
WHOLE_OF = f"{WHOLE} WHERE row {_ROWS}"
WHOLE_BY_OWNER = f"{WHOLE} WHERE owner_space = ? ORDER BY row"
ID_OF_WHOLE, URI_OF_WHOLE = 1, 9
"""Where id and URI stand in it."""
VECTORS = (
    f"SELECT row, {', '.join(FILED)}, vector FROM vectors JOIN records USING (row) "
    "WHERE row > ? AND length(vector) = ? ORDER BY row"
)

NOTES = (
    "SELECT value, text, payload FROM notes JOIN texts USING (row) JOIN records USING (row) "
    "JOIN names ON name = uri WHERE noted = ? AND always = ? ORDER BY updated DESC LIMIT ?"
)

LINK = "[["
"""In place of a project: the name is what a link says."""
NAMING = (
    "row IN (SELECT row FROM named WHERE name IN (SELECT value FROM json_each(:names)) "
    f"AND noted != '{LINK}')"
)
LEADING = (
    "SELECT DISTINCT value FROM names JOIN records ON names.name = uri JOIN named USING (row) "
    f"WHERE named.name IN (SELECT value FROM json_each(?)) AND noted = '{LINK}' ORDER BY value"
)
NOTED_NAMING = (
    "SELECT text, payload FROM texts WHERE row IN (SELECT row FROM named "
    "WHERE name IN (SELECT value FROM json_each(?)) "
    "AND noted IN (SELECT value FROM json_each(?))) LIMIT ?"
)
_NEWEST = "ORDER BY updated DESC, 2"
_BRIEF = "json_remove(payload, '$.entry', '$.key', '$.lines', '$.names', '$.near', '$.sha256')"
"""A payload without the half that no briefing shows, which Python need not read."""
NOTED = (  # the newest by their index, and those as new as the last: 600 of 10,000 in 4 ms, not 27
    f"{HITS_OF.replace('payload', _BRIEF)} JOIN notes USING (row) WHERE {{0}} "
    "AND updated >= (SELECT min(updated) FROM (SELECT updated FROM notes "
    "JOIN records USING (row) WHERE {0} ORDER BY updated DESC "
    f"LIMIT :most)) {_NEWEST} LIMIT :most"
)

BEST_BY_WORDS = (
    "SELECT rowid, bm25({kind}, 1.0, :weight) AS score FROM {kind} WHERE {kind} MATCH :words "
    "ORDER BY score LIMIT :most"
)
BEST_BY_WORDS_OF = (
    "SELECT row, bm25({kind}, 1.0, :weight) AS score FROM {kind} CROSS JOIN records "
    "ON records.row = {kind}.rowid WHERE {kind} MATCH :words AND {condition} "
    "ORDER BY score LIMIT :most"
)
"""As the other, but only of those to which a condition applies."""
BEST_BY_WORDS_AMONG = BEST_BY_WORDS.replace("ORDER", "AND +rowid IN ({condition}) ORDER")
ROWS_OF_LEVEL = "SELECT row FROM records WHERE {} AND level = ?"
LOOK = f"{HITS_OF} WHERE row {_ROWS} AND {{}}"

# ---------------------------------------------------------------- checks
CHECK_FILE = "PRAGMA integrity_check(1)"
CHECK_WORDS = tuple(
    f"INSERT INTO {kind} ({kind}, rank) VALUES ('integrity-check', 1)" for kind in KINDS
)
TABLES_MADE = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
SETTINGS_OF_WORDS = " UNION ALL ".join(f"SELECT k, v FROM {kind}_config" for kind in KINDS)
NOTES_KEPT = "SELECT row, noted, always, updated FROM notes ORDER BY row"
NOTES_TOLD = "SELECT row, text, payload FROM texts ORDER BY row"
NAMED_KEPT = "SELECT name, noted, row FROM named ORDER BY row, name"
FAILED = "SELECT DISTINCT uri FROM events WHERE state != 2 LIMIT ?"
LAST_ROW = "SELECT max(row) FROM records"


_COMMON = (
    b'"noted":"","always":true,"entry":"","names":[],"category":"preference","project":"",'
    b'"folder":true,"session_id":"","message":0,"role":"user","role":"assistant",'
    b'{"title":"","cid":"bafkrei","version":1,"date":"2026-01-01T00:00:00.000000+00:00",'
    b'"updated_at":"2026-01-01T00:00:00.000000+00:00","lines":[1,1],"passage":0,'
    b'"near":[-1,-1,-1],"length":24}'
)
_MOST_OF_TEXT = 2048
_LONGEST = 1 << 24
_WINDOW = -12


def _dictionary(text: str) -> bytes:
    return text[:_MOST_OF_TEXT].encode() + _COMMON


def packed(payload: str, text: str) -> bytes:
    """Return a payload as it is kept beside a text."""
    shrink = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, 5, zdict=_dictionary(text))
    return shrink.compress(payload.encode()) + shrink.flush()


def unpacked(data: bytes | str, text: str) -> str:
    """Return the payload that is kept beside a text; `ValueError` if it is not what was kept."""
    if isinstance(data, str):  # of a note, which SQLite reads
        return data
    try:
        grow = zlib.decompressobj(_WINDOW, zdict=_dictionary(text))
        payload = grow.decompress(data, _LONGEST)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"a payload can't be unpacked ({error})") from error
    if not grow.eof or grow.unused_data:
        raise ValueError("a payload is cut off")
    return payload.decode()


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
            rows = db.execute(NOTES, (of, int(always), most))
            return [Note(uri, json.loads(unpacked(packed, text))) for uri, text, packed in rows]

        db.execute("BEGIN")
        last = db.execute(LAST_CHANGE).fetchone()
        own = newest(project, always=True) if project else []
        always = [*own, *newest("", always=True)]
        of_project = newest(project, always=False) if project else []
        db.execute("ROLLBACK")
        return Notes(last[_CURSOR] if last else 0, always, of_project)

    return read_snapshot(path, TABLES, read)


def read_failed(path: Path, most: int) -> tuple[int, list[str]] | None:
    """Return how far an index is, and so many URIs that it failed to take in; None if unknown."""

    def read(db: sqlite3.Connection) -> tuple[int, list[str]]:
        db.execute("BEGIN")
        last = db.execute(LAST_CHANGE).fetchone()
        failed = [uri for (uri,) in db.execute(FAILED, (most,))]
        db.execute("ROLLBACK")
        return last[_CURSOR] if last else 0, failed

    return read_snapshot(path, TABLES, read)


def read_naming(
    path: Path, projects: Sequence[str], names: Collection[str], most: int
) -> "list[dict[str, JSON]] | None":
    """Return the payloads of notes that name something; None if they can't be had."""

    def read(db: sqlite3.Connection) -> "list[dict[str, JSON]]":
        asked = (json.dumps(sorted(names)), json.dumps(list(projects)), most)
        rows = db.execute(NOTED_NAMING, asked)
        return [json.loads(unpacked(payload, text)) for text, payload in rows]

    return read_snapshot(path, TABLES, read)
