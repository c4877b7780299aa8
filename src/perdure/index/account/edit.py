"""One transaction on an account's index."""

import json
import sqlite3
from collections.abc import Iterable

from perdure.index.account import schema
from perdure.index.account.changes import last_change, note
from perdure.index.account.rows import Names, Prepared, add
from perdure.index.stamp import stamp_of


class Edit:
    """What is taken away and added, until `finish` stamps it; whoever calls has a transaction."""

    def __init__(self, db: sqlite3.Connection, account: str) -> None:
        self._db = db
        self._account = account
        self._names = Names(db)
        self._last = last_change(db, account)
        self._added = 0
        self._gone: list[int] = []
        self._touched: set[int] = set()

    @property
    def cursor(self) -> int:
        """Where the index is before this."""
        return self._last.cursor

    def remove_ids(self, ids: Iterable[str]) -> None:
        self._remove(self._db.execute(schema.ROWS_OF_IDS, (json.dumps(list(ids)),)).fetchall())

    def remove_uris(self, uris: Iterable[str]) -> None:
        self._remove([row for uri in uris for row in self._rows_of(schema.ROWS_OF_URI, uri)])

    def remove_owner(self, owner_space: str) -> int:
        rows = self._rows_of(schema.ROWS_OF_OWNER, owner_space)
        self._remove(rows)
        return len(rows)

    def mark(self, uris: Iterable[str], unlogged: Iterable[str]) -> None:
        """Let of these URIs only some be marked as not what the log says."""
        if self._db.execute(schema.ANY_UNLOGGED).fetchone():
            known = [(name,) for name in map(self._names.find, uris) if name is not None]
            self._db.executemany(schema.DROP_UNLOGGED, known)
        marked = [(self._names.number(uri),) for uri in unlogged]
        self._db.executemany(schema.MARK_UNLOGGED, marked)

    def add(self, records: Iterable[Prepared]) -> None:
        """Add records, in place of those with the same ids; of one id the last counts."""
        fresh = {each.record.id: each for each in records}
        self.remove_ids(fresh)
        first = self._last.rows + self._added + 1
        add(self._db, self._names, fresh.values(), first)
        self._added += len(fresh)
        self._touched |= {self._names.number(each.record.uri) for each in fresh.values()}

    def finish(self, cursor: int | None = None) -> None:
        """Stamp what was touched, and write down that it was."""
        cursor = self._last.cursor if cursor is None else cursor
        if not self._touched and cursor == self._last.cursor:
            return
        for uri in self._touched:
            digests = dict(self._db.execute(schema.DIGESTS_OF_URI, (uri,)))
            if digests:
                self._db.execute(schema.PUT_STAMP, (uri, stamp_of(digests)))
            else:
                self._db.execute(schema.DROP_STAMP, (uri,))
        change = self._last.next(added=self._added, gone=self._gone, cursor=cursor)
        note(self._db, self._account, change)

    def _rows_of(self, query: str, value: str) -> list[tuple[int, int]]:
        name = self._names.find(value)
        return [] if name is None else self._db.execute(query, (name,)).fetchall()

    def _remove(self, rows: list[tuple[int, int]]) -> None:
        if not rows:
            return
        numbers = {"rows": json.dumps([row for row, _ in rows])}
        for statement in schema.REMOVE:
            self._db.execute(statement, numbers)
        self._gone += [row for row, _ in rows]
        self._touched |= {uri for _, uri in rows}
