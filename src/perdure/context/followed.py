"""Which nodes may lead to a place, kept in a database that follows the history.

It is derived: whoever removes the file loses nothing but the time to make it again. It is made
from the log alone, so no writer has to keep it in step, and a crash leaves it behind and never
wrong.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress

from perdure.context import links
from perdure.context.files import CONTENT, META, RELATIONS, parse_relations
from perdure.errors import (
    AbsentError,
    InvalidValueError,
    NotTextError,
)
from perdure.model import Uri
from perdure.sqlite import DatabaseFile, DerivedFile, Tables
from perdure.storage import Locator
from perdure.storage.history import Event, History

_VERSION = 3
_TABLES = Tables(
    name="the database of links",
    version=_VERSION,
    statements=(
        """CREATE TABLE followed (
            history BLOB NOT NULL, position INTEGER NOT NULL, UNIQUE (history, position))""",
        """CREATE TABLE link (
            account TEXT NOT NULL, name TEXT NOT NULL, folder TEXT NOT NULL, part TEXT NOT NULL)""",
        "CREATE INDEX link_by_name ON link (account, name, folder)",
        "CREATE INDEX link_by_folder ON link (folder, part)",
        f"PRAGMA user_version = {_VERSION}",
    ),
    without="it is made anew from the history",
)
_LEADING = "SELECT DISTINCT folder FROM link WHERE account = ? AND name = ? ORDER BY folder"


class FollowedLinks:
    """The links of all nodes by the names that they say, as of the newest version of each."""

    def __init__(self, history: History, path: str) -> None:
        self._history = history
        self._file = DerivedFile(path, _TABLES, _check)

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        names = {links.name_of(place), *map(links.name_in, called)}

        def look(file: DatabaseFile) -> set[str]:
            self._follow(file)
            with file.reading() as database:
                rows = (database.execute(_LEADING, (place.account, name)) for name in names)
                return {folder for found in rows for (folder,) in found}

        places = map(Uri.of_key, sorted(self._file.ask(look)))
        return [found for found in places if found is not None]

    # ------------------------------------------------------------ forgetting
    def delete_account_data(self, account_id: str) -> int:
        return self._delete("account = ?", account_id)

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        folder = Uri(account_id, (f"{kind}s", owner)).key
        return self._delete("folder >= ? AND folder < ?", f"{folder}/", f"{folder}0")

    def _delete(self, which: str, *values: str) -> int:
        def remove(file: DatabaseFile) -> int:
            with file.changing(outlasts_power=False) as database:
                removed = database.execute(f"DELETE FROM link WHERE {which}", values).rowcount  # noqa: S608 - our own words
            if removed:
                file.wipe()
            return removed

        return self._file.ask(remove)

    def scrub(self) -> None:
        """Take in what the history has since, and leave no byte of what was removed before."""

        def take_in(file: DatabaseFile) -> None:
            self._follow(file)
            file.wipe()

        self._file.ask(take_in)

    def close(self) -> None:
        self._file.close()

    # ------------------------------------------------------------ following
    def _follow(self, file: DatabaseFile) -> None:
        now = self._history.position()
        with file.reading() as database:
            if self._position(database) == now:
                return
        with file.changing(outlasts_power=False) as database:
            after = self._position(database)
            if after is None or after > now:  # of another history, or of one that was lost
                database.execute("DELETE FROM link")
                after = 0
            for event in self._history.changes(after=after):
                self._take(database, event)
            database.execute("DELETE FROM followed")
            database.execute(
                "INSERT INTO followed VALUES (?, ?)", (self._history.store.history, now)
            )

    def _position(self, database: sqlite3.Connection) -> int | None:
        """Return how far it has followed this history; None if it followed another."""
        row = database.execute("SELECT history, position FROM followed").fetchone()
        return int(row[1]) if row and row[0] == self._history.store.history else None

    def _take(self, database: sqlite3.Connection, event: Event) -> None:
        folder, _, part = event.key.rpartition("/")
        if part not in {CONTENT, RELATIONS}:
            return
        place = Uri.of_key(folder)
        names = None if place is None else self._names(event, place)
        if place is None or names is None:
            return
        database.execute("DELETE FROM link WHERE folder = ? AND part = ?", (folder, part))
        database.executemany(
            "INSERT INTO link VALUES (?, ?, ?, ?)",
            [(place.account, name, folder, part) for name in sorted(names)],
        )

    def _names(self, event: Event, place: Uri) -> set[str] | None:
        """Return the names that a text says; None if it was broken, and the node is as before."""
        if event.unbound:
            meta = Locator(event.key).parent.child(META).key
            is_node = self._history.store.catalogue.content(meta, event.commit) is not None
            return None if is_node else set()
        with suppress(AbsentError, NotTextError, InvalidValueError):
            text = self._history.text(event)
            if event.key.endswith(RELATIONS):
                return links.names_of_edges(parse_relations(text, str(place)))
            return set(map(links.name_in, links.targets(text)))
        return None


def _check(file: DatabaseFile) -> None:
    with file.reading() as database:
        if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise file.damage("its pages contradict each other")
