"""Counts of the sessions in which each line was shown, and in which it was used.

A line that is shown often and never used is left out of briefings; recall still finds it. A small
database under the home has hashes only. Without it, nothing is left out.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.engine.emissions import EmittedLine, key_of
from perdure.sqlite import Schema, SqliteFile, read_snapshot

if TYPE_CHECKING:
    from perdure.engine.briefing import BriefingItem

_FILE = "uses.sqlite"
LEAST_SESSIONS = 12
"""A line that was shown in this many sessions and never used is left out. A line that is used in
one of ten sessions is left out by chance in 28 % of cases; it comes back when it is used."""
GRACE = timedelta(days=30)
"""A line that was stated or confirmed within this time is not left out."""
_SESSION_DAYS = 60
"""Days for which the sessions that were counted are stored."""
_COUNT_DAYS = 730
_DAY_SECONDS = 86_400
_TABLES = Schema(
    "the counts of what was used",
    1,
    (
        """CREATE TABLE seen (
            session TEXT, node TEXT, key TEXT, used INTEGER, day INTEGER,
            PRIMARY KEY (session, node, key)) WITHOUT ROWID""",
        "CREATE INDEX seen_days ON seen (day)",
        """CREATE TABLE counts (
            node TEXT, key TEXT, shown INTEGER, used INTEGER, day INTEGER,
            PRIMARY KEY (node, key)) WITHOUT ROWID""",
        "CREATE INDEX unused ON counts (shown) WHERE used = 0",
        "PRAGMA user_version = 1",
    ),
    "counting begins again",
)
_SEEN = "SELECT used FROM seen WHERE session = ? AND node = ? AND key = ?"
_SEE = "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)"
_COUNT = """INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    shown = shown + excluded.shown, used = used + excluded.used, day = excluded.day"""

Name = tuple[str, str]


def name_of(item: EmittedLine) -> Name:
    node = f"{item.uri}#{item.message}".encode(errors="replace")
    return sha256(node).hexdigest()[:16], item.key


def count_uses(
    home: Path, session: str, shown: Iterable[EmittedLine], used: Iterable[EmittedLine]
) -> None:
    """Count the lines that a session was shown and used; each counts once per session."""
    names, day = set(map(name_of, used)), int(time.time() // _DAY_SECONDS)
    rows = [(*name, int(name in names)) for name in dict.fromkeys(map(name_of, shown))]
    session_key = key_of(session)
    with (
        closing(SqliteFile(str(home / "hooks" / _FILE), _TABLES)) as file,
        file.transaction(durable=False) as db,
    ):
        for node, key, is_used in rows:
            known = db.execute(_SEEN, (session_key, node, key)).fetchone()
            was_used = known[0] if known else 0
            more = (node, key, int(not known), int(is_used > was_used), day)
            db.execute(_COUNT, more)
            db.execute(_SEE, (session_key, node, key, max(is_used, was_used), day))
        db.execute("DELETE FROM seen WHERE day < ?", (day - _SESSION_DAYS,))
        db.execute("DELETE FROM counts WHERE day < ?", (day - _COUNT_DAYS,))


def unused_in(home: Path) -> "Callable[[BriefingItem], bool]":
    """Return a function that tells whether to leave out an item, because it is never used.

    Pinned and recent items stay.
    """
    names, now = _unused(home), datetime.now(UTC)

    def is_unused(item: "BriefingItem") -> bool:
        if not names or item.pinned:
            return False
        is_recent = item.confirmed is not None and now - item.confirmed < GRACE
        return not is_recent and name_of(emitted(item)) in names

    return is_unused


def sessions_unused(home: Path, lines: "Iterable[BriefingItem]") -> int:
    """Return the most sessions that an unused one of these lines was shown in; 0 without one."""
    names, is_unused = _unused(home), unused_in(home)
    found = (names.get(name_of(emitted(each)), 0) for each in lines if is_unused(each))
    return max(found, default=0)


def used_in(home: Path, session: str) -> int:
    """Return how many lines a session has used, as far as its messages are archived."""
    path = home / "hooks" / _FILE
    asked = "SELECT count(*) FROM seen WHERE session = ? AND used"
    if not path.exists():
        return 0
    found = read_snapshot(
        path, _TABLES, lambda db: db.execute(asked, (key_of(session),)).fetchone()
    )
    return int(found[0]) if found else 0


def emitted(item: "BriefingItem") -> EmittedLine:
    return EmittedLine(item.uri, item.message, key_of(item.text))


def _unused(home: Path) -> dict[Name, int]:
    path = home / "hooks" / _FILE
    asked = "SELECT node, key, shown FROM counts WHERE used = 0 AND shown >= ?"
    if not path.exists():  # the usual case
        return {}
    found = read_snapshot(path, _TABLES, lambda db: db.execute(asked, (LEAST_SESSIONS,)).fetchall())
    return {(str(node), str(key)): int(shown) for node, key, shown in found or ()}
