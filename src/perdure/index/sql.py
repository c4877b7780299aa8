"""The tables of an account's index, all SQL that uses them, and words as FTS5 has them.

`records` has filters as numbers, whose texts are in `names`, so that rows are small; 0 stands for a
filter that a record does not have. A row never changes, and its number is never used again.

An id that starts with the record's URI is stored without it, any other after a `=`. Payloads,
except those of notes, are compressed with a dictionary of common keys and the record's text: 90
bytes instead of 310. Names are found by a checksum, whose index has a sixth of the size.

`events` has the outbox events that were claimed or failed: leases, retries and dead letters.
Pending events are in the log; a row is written when an event is claimed, fails, or is done before
the index has passed it, and for an event without a commit. Times are microseconds.
"""

import json
import math
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from perdure.sqlite import Schema, read_snapshot

if TYPE_CHECKING:
    from perdure.model.values import JSON

# ruff: noqa: S608 - the statements are composed of constants of this module

FORMAT = 9
"""Increased when the same node gets other records."""
LEXICAL = "lexical"
"""The start of the name of an index without vectors."""
VERSION = 8
TOKENIZER = "porter unicode61 remove_diacritics 2"
_LEAST_IDF = 1e-6
RECORD_COLUMNS = (
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
"""The tables of words, with the levels of their records; each has its own word statistics."""
_COLUMNS = ", ".join(f"{column} INTEGER NOT NULL" for column in RECORD_COLUMNS)
_ROWS = "IN (SELECT value FROM json_each(:rows))"
_OTHER = "id >= '=' AND id < '>'"
_ID = "iif(substr(id, 1, 1) = '=', substr(id, 2), value || id)"
"""The id of a record, in a query that joins `names` on its URI."""


def _words_of(kind: str) -> tuple[str, str]:
    """Return the statements for a view of texts, and for the FTS5 table that reads it."""
    view = (
        f"CREATE VIEW {kind}_said AS SELECT row, text, context FROM texts "
        f"JOIN records USING (row) WHERE level IN {KINDS[kind]}"
    )
    table = (
        f"CREATE VIRTUAL TABLE {kind} USING fts5(text, context, "
        f"content='{kind}_said', content_rowid='row', tokenize='{TOKENIZER}')"
    )
    return view, table


# A lease without a worker is from `mark_processing`. `position` is set for an event of the log.
# `ready_at` is when the event can be claimed; NULL is never.
EVENT_TABLE = (
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
    # Records for briefings are found without reading others, newest first.
    """CREATE TABLE notes (
        row INTEGER PRIMARY KEY,
        noted TEXT NOT NULL,
        always INTEGER NOT NULL,
        updated TEXT NOT NULL)""",
    "CREATE INDEX notes_of ON notes (noted, always, updated)",
    "CREATE INDEX notes_newest ON notes (updated)",
    # What a note names (files, programs, failures) is found by name; so are the links of a node,
    # with `LINK` in place of the project.
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
    # A row with 0: which URIs are unlogged is no longer known.
    "CREATE TABLE unlogged (uri INTEGER PRIMARY KEY)",
    # One row per transaction. The newest has the number of rows ever added, and the cursor; the
    # others tell a process with cached vectors which rows were removed since.
    """CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        token INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        gone TEXT NOT NULL,
        seal BLOB NOT NULL)""",
    *(statement for kind in KINDS for statement in _words_of(kind)),
    *EVENT_TABLE,
    f"PRAGMA user_version = {VERSION}",
)

TABLES = Schema(
    name="the index",
    version=VERSION,
    statements=_STATEMENTS,
    loss="`perdure index rebuild` builds it again",
)

# ---------------------------------------------------------------- changes
ADD_RECORD = f"INSERT INTO records VALUES (?{', ?' * len(RECORD_COLUMNS)})"
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
_OF_RECORDS = ("records", "texts", "vectors", "notes", "named")
REMOVE = (
    *(  # FTS5 needs the text that it removes
        f"INSERT INTO {kind} ({kind}, rowid, text, context) "
        f"SELECT 'delete', row, text, context FROM {kind}_said WHERE row {_ROWS}"
        for kind in KINDS
    ),
    *(f"DELETE FROM {table} WHERE row {_ROWS}" for table in _OF_RECORDS),
)
REMOVE_ALL = (
    *(f"INSERT INTO {kind} ({kind}) VALUES ('delete-all')" for kind in KINDS),
    *(f"DELETE FROM {table}" for table in (*_OF_RECORDS, "names", "stamps", "unlogged")),
    *("DELETE FROM changes", "DELETE FROM events"),
)
DROP_UNUSED_NAMES = (
    "DELETE FROM names WHERE name NOT IN ("
    + " UNION ALL ".join(f"SELECT {column} FROM records" for column in RECORD_COLUMNS[1:9])
    + " UNION ALL SELECT uri FROM unlogged)"
)
MARK_UNLOGGED = "INSERT OR IGNORE INTO unlogged VALUES (?)"
DROP_UNLOGGED = "DELETE FROM unlogged WHERE uri = ?"
_OF_NO_RECORD = "uri NOT IN (SELECT uri FROM records)"
FORGET_UNLOGGED = (  # the owner of a URI without records is not known
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
STAMPS_WITH_OVERVIEW = (  # a folder has no passages
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
ROWS_MATCHING = f"SELECT row FROM records WHERE row {_ROWS} AND {{}}"
URIS = (
    f"SELECT row, {_ID}, value FROM texts JOIN records USING (row) JOIN names ON name = uri "
    f"WHERE row {_ROWS}"
)
FIRST_BY_ID = f"{URIS} ORDER BY {_ID} LIMIT :most"
_URI = "(SELECT value FROM names WHERE name = uri)"
_NAMED = ", ".join(
    f"(SELECT value FROM names WHERE name = {column})" for column in RECORD_COLUMNS[1:9]
)
STORED_RECORDS = (
    f"SELECT row, {_ID.replace('value', _URI)}, text, context, payload, valid_from, valid_until, "
    f"digest, level, {_NAMED}, "
    "since, until, vector FROM texts JOIN records USING (row) LEFT JOIN vectors USING (row)"
)
STORED_RECORDS_OF_ROWS = f"{STORED_RECORDS} WHERE row {_ROWS}"
STORED_RECORDS_OF_OWNER = f"{STORED_RECORDS} WHERE owner_space = ? ORDER BY row"
ID_COLUMN, URI_COLUMN = 1, 9
"""The positions of id and URI in a row of `STORED_RECORDS`."""
VECTORS = (
    f"SELECT row, {', '.join(RECORD_COLUMNS)}, vector FROM vectors JOIN records USING (row) "
    "WHERE row > ? AND length(vector) = ? ORDER BY row"
)

NOTES = (
    "SELECT value, text, payload FROM notes JOIN texts USING (row) JOIN records USING (row) "
    "JOIN names ON name = uri WHERE noted = ? AND always = ? ORDER BY updated DESC LIMIT ?"
)

LINK = "[["
"""Stands for a project in `named`: the name is the target of a link."""
NAMING = (
    "row IN (SELECT row FROM named WHERE name IN (SELECT value FROM json_each(:names)) "
    f"AND noted != '{LINK}')"
)
LINKING_URIS = (
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
"""A payload without the keys that no briefing shows."""
# The newest by their index, with those as new as the last: 600 of 10,000 in 4 ms, not 27.
BRIEFING_HITS = (
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
BEST_BY_WORDS_AMONG = BEST_BY_WORDS.replace("ORDER", "AND +rowid IN ({condition}) ORDER")
ROWS_OF_LEVEL = "SELECT row FROM records WHERE {} AND level = ?"
HITS_MATCHING = f"{HITS_OF} WHERE row {_ROWS} AND {{}}"

# ---------------------------------------------------------------- checks
CHECK_FILE = "PRAGMA integrity_check(1)"
CHECK_WORDS = tuple(
    f"INSERT INTO {kind} ({kind}, rank) VALUES ('integrity-check', 1)" for kind in KINDS
)
SCHEMA_ROWS = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
SETTINGS_OF_WORDS = " UNION ALL ".join(f"SELECT k, v FROM {kind}_config" for kind in KINDS)
NOTE_ROWS = "SELECT row, noted, always, updated FROM notes ORDER BY row"
PAYLOADS = "SELECT row, text, payload FROM texts ORDER BY row"
NAMED_ROWS = "SELECT name, noted, row FROM named ORDER BY row, name"
FAILED_URIS = "SELECT DISTINCT uri FROM events WHERE state != 2 LIMIT ?"
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


def pack_payload(payload: str, text: str) -> bytes:
    """Compress a payload for storage beside its text."""
    shrink = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, 5, zdict=_dictionary(text))
    return shrink.compress(payload.encode()) + shrink.flush()


def unpack_payload(data: bytes | str, text: str) -> str:
    """Return the payload that is stored beside a text; `ValueError` if it is damaged."""
    if isinstance(data, str):  # of a note, plain because SQLite queries it
        return data
    try:
        grow = zlib.decompressobj(_WINDOW, zdict=_dictionary(text))
        payload = grow.decompress(data, _LONGEST)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"a payload can't be unpacked ({error})") from error
    if not grow.eof or grow.unused_data:
        raise ValueError("a payload is truncated")
    return payload.decode()


SHOWN_FILES = (".meta.json", "content.md")
"""The files of a node that its entry in a briefing depends on."""
_CURSOR = 3
"""The position of the cursor in `LAST_CHANGE`."""


class BriefingRecord(NamedTuple):
    """A record for briefings."""

    uri: str
    payload: "dict[str, JSON]"

    @property
    def snippet(self) -> str:
        """The text to show, if it was prepared when the record was indexed."""
        entry = self.payload.get("entry")
        return entry if isinstance(entry, str) else ""


class BriefingRecords(NamedTuple):
    cursor: int
    """The log position up to which they are current; 0 if the index was never complete."""
    always: list[BriefingRecord]
    of_project: list[BriefingRecord]


def read_briefing_records(path: Path, project: str, most: int) -> BriefingRecords | None:
    """Return the newest records for briefings of a project; None if the file can't be read."""

    def read(db: sqlite3.Connection) -> BriefingRecords:
        def newest(of: str, *, always: bool) -> list[BriefingRecord]:
            rows = db.execute(NOTES, (of, int(always), most))
            return [
                BriefingRecord(uri, json.loads(unpack_payload(packed, text)))
                for uri, text, packed in rows
            ]

        db.execute("BEGIN")
        last = db.execute(LAST_CHANGE).fetchone()
        own = newest(project, always=True) if project else []
        always = [*own, *newest("", always=True)]
        of_project = newest(project, always=False) if project else []
        db.execute("ROLLBACK")
        return BriefingRecords(last[_CURSOR] if last else 0, always, of_project)

    return read_snapshot(path, TABLES, read)


def read_failed_uris(path: Path, most: int) -> tuple[int, list[str]] | None:
    """Return the cursor, and URIs that could not be indexed; None if the file can't be read."""

    def read(db: sqlite3.Connection) -> tuple[int, list[str]]:
        db.execute("BEGIN")
        last = db.execute(LAST_CHANGE).fetchone()
        failed = [uri for (uri,) in db.execute(FAILED_URIS, (most,))]
        db.execute("ROLLBACK")
        return last[_CURSOR] if last else 0, failed

    return read_snapshot(path, TABLES, read)


def read_payloads_naming(
    path: Path, projects: Sequence[str], names: Collection[str], most: int
) -> "list[dict[str, JSON]] | None":
    """Return the payloads of notes that have one of the names; None if the file can't be read."""

    def read(db: sqlite3.Connection) -> "list[dict[str, JSON]]":
        values = (json.dumps(sorted(names)), json.dumps(list(projects)), most)
        rows = db.execute(NOTED_NAMING, values)
        return [json.loads(unpack_payload(payload, text)) for text, payload in rows]

    return read_snapshot(path, TABLES, read)


# ---------------------------------------------------------------- events

Answer = TypeVar("Answer")
DEAD, DONE = 1, 2
"""Values of `state`; 0 is pending or leased."""
LOG_EVENT_PREFIX = "log-"
"""The start of the id of an event of the log; the commit follows, with leading zeros."""

_EVENT = (
    "event_id, type, uri, account, owner, payload, created_at, "
    f"CASE WHEN state = {DEAD} THEN 'dead' WHEN lease_end > :now THEN 'processing' "
    "ELSE 'pending' END, retry_count, next_retry_at, last_error"
)
# An event of the log that the index has passed is done, unless it failed.
_OPEN = (
    f"account = :account AND state != {DONE} AND (position IS NULL OR position > :cursor "
    f"OR retry_count OR state = {DEAD})"
)
ADD_EVENT = (
    "INSERT OR IGNORE INTO events "
    "(event_id, type, uri, account, owner, payload, created_at, position) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
PENDING_EVENTS = f"SELECT {_EVENT} FROM events WHERE {_OPEN} AND ready_at <= :now ORDER BY seq"
UNFINISHED_EVENTS = f"SELECT {_EVENT} FROM events WHERE {_OPEN} ORDER BY seq"
DEAD_EVENTS = (
    f"SELECT {_EVENT} FROM events WHERE account = :account AND state = {DEAD} ORDER BY seq"
)
ANY_EVENT = "SELECT 1 FROM events LIMIT 1"
_AHEAD = f"event_id > :passed AND event_id < '{LOG_EVENT_PREFIX}~'"
"""Events of commits that the index has not passed; their ids are in the order of the log."""
CLAIMED_EVENTS = f"SELECT event_id FROM events WHERE +account = :account AND {_AHEAD}"

_THIS = " WHERE event_id = :id AND account = :account"
_MINE = f"{_THIS} AND (:worker IS NULL OR coalesce(lease_end, 0) <= :now OR worker = :worker)"
_END_LEASE = "worker = NULL, lease_end = NULL"

EVENT_HELD_BY_ANOTHER = (
    f"SELECT 1 FROM events{_THIS} AND state = 0 AND lease_end > :now AND worker IS NOT :worker"
)
ACQUIRE_EVENT = (
    f"UPDATE events SET worker = :worker, lease_end = :end{_THIS} "
    "AND (ready_at <= :now OR (state = 0 AND lease_end > :now AND worker = :worker))"
)
EXTEND_LEASE = (
    f"UPDATE events SET lease_end = :end{_THIS} "
    "AND state = 0 AND lease_end > :now AND worker = :worker"
)
MARK_PROCESSING = f"UPDATE events SET worker = NULL, lease_end = :end{_THIS} AND ready_at <= :now"
RELEASE_EVENT = f"UPDATE events SET {_END_LEASE}{_MINE}"
FINISH_EVENT = f"UPDATE events SET state = {DONE}, {_END_LEASE}{_MINE}"
DROP_DONE_EVENTS = (
    f"DELETE FROM events WHERE account = :account AND ready_at IS NULL AND state = {DONE} "
    f"AND NOT ({_AHEAD})"
)
BURY_EVENT = f"UPDATE events SET state = {DEAD}, {_END_LEASE}{_MINE}"
RETRY_EVENT = (
    f"UPDATE events SET retry_count = retry_count + 1, next_retry_at = :later, "
    f"last_error = :error, {_END_LEASE}{_MINE} AND state = 0"
)
_DEAD_OF = f" WHERE account = :account AND state = {DEAD}"
REQUEUE_DEAD = (
    f"UPDATE events SET state = 0, retry_count = 0, next_retry_at = NULL, last_error = '', "
    f"position = NULL{_DEAD_OF}"
)
PURGE_DEAD = f"UPDATE events SET state = {DONE}{_DEAD_OF}"
ONE_EVENT = " AND event_id = :id"
DELETE_EVENTS = "DELETE FROM events WHERE account = :account"
DELETE_EVENTS_OF_OWNER = f"{DELETE_EVENTS} AND owner = :owner"
DELETE_EVENTS_NAMING = (
    f"{DELETE_EVENTS} AND (uri = :uri OR instr(payload, :uri) OR instr(last_error, :uri))"
)


class EventTable(Protocol):
    """A database with the table `events` of each account."""

    def read_events(
        self, account_id: str, question: Callable[[sqlite3.Connection], Answer], absent: Answer
    ) -> Answer:
        """Return what `question` returns; `absent` if the account has no database."""

    def change_events(
        self,
        account_id: str,
        action: Callable[[sqlite3.Connection], Answer],
        *,
        outlasts_power: bool = False,
    ) -> Answer:
        """Run `action` in one transaction."""

    def wipe_events(self, account_id: str) -> None:
        """Leave no byte of deleted events in the file."""


# ---------------------------------------------------------------- words
def idf(records: int, hits: int) -> float:
    """Return the inverse document frequency of a word, as FTS5 computes it."""
    rare = math.log((records - hits + 0.5) / (hits + 0.5))
    return rare if rare > 0 else _LEAST_IDF


def match_expression(words: Sequence[str]) -> str:
    """Return an FTS5 expression that matches any of the words, each as a phrase."""
    quoted = (word.replace("\0", " ").replace('"', '""') for word in words)
    return " OR ".join(f'"{word}"' for word in quoted)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the stemmed tokens of a text, as FTS5 splits it."""
    db, lock = _tokenizer()
    with lock:
        db.execute("DELETE FROM texts")
        db.execute("INSERT INTO texts (rowid, text) VALUES (1, ?)", (text,))
        return tuple(term for (term,) in db.execute("SELECT term FROM tokens ORDER BY offset"))


@cache
def _tokenizer() -> tuple[sqlite3.Connection, threading.Lock]:
    """Return a database in memory that splits one text at a time, and its lock."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
    db.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(texts, instance)")
    return db, threading.Lock()
