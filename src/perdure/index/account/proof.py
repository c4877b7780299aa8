"""Whether an account's file is what was written."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache

from perdure.index.account import schema
from perdure.index.account.changes import changes_from, last_change
from perdure.index.account.copies import remove_copies
from perdure.index.account.file import AccountFile
from perdure.index.account.rows import Row, noted_in, read
from perdure.index.stamp import stamp_of


def damaged_uris(file: AccountFile) -> list[str]:
    """Look at every byte; return the URIs whose records are not what their stamp says.

    The copies of the vectors are not looked at, but made again when they are needed.
    """
    with file.changing(outlasts_power=False) as db:
        file.matrices.clear()
        remove_copies(file.path)
        _check_tables(file, db)
        _check_log(file, db)
        _check_notes(file, db)
        return sorted(_differing(file, db))


def _check_tables(file: AccountFile, db: sqlite3.Connection) -> None:
    """Refuse tables that are not as we make them, or can't be read, or not be searched."""
    if _made(db) != _expected():
        raise file.damage("its tables are not as they were made")
    found = db.execute(schema.CHECK_FILE).fetchone()
    if found != ("ok",):
        raise file.damage(f"SQLite finds {str(found)[:200]!a}")
    for statement in schema.CHECK_WORDS:
        db.execute(statement)


def _made(db: sqlite3.Connection) -> list[Row]:
    return [*db.execute(schema.TABLES_MADE), *db.execute(schema.SETTINGS_OF_WORDS)]


@cache
def _expected() -> list[Row]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in schema.TABLES.statements:
            db.execute(statement)
        return _made(db)


def _check_log(file: AccountFile, db: sqlite3.Connection) -> None:
    changes_from(db, file.account, 0)
    last = last_change(db, file.account)
    ((row,),) = db.execute(schema.LAST_ROW)
    if (row or 0) > last.rows:
        raise file.damage(f"there is a row {row}, but only {last.rows} were ever made")


def _check_notes(file: AccountFile, db: sqlite3.Connection) -> None:
    """Refuse if what is shown unasked is not found as the records say."""
    told = []
    for row, payload in db.execute(schema.NOTES_TOLD):
        with suppress(ValueError, TypeError, LookupError):  # then its digest tells
            if (noted := noted_in(json.loads(payload))) is not None:
                told.append((row, *noted))
    if told != db.execute(schema.NOTES_KEPT).fetchall():
        raise file.damage("its notes are not those of its records")


def _differing(file: AccountFile, db: sqlite3.Connection) -> Iterator[str]:
    """Return where records and stamps differ. A record that can't be read has no digest."""
    digests: dict[str, dict[str, bytes]] = {}
    for row in db.execute(schema.WHOLE):
        uri, id_ = row[schema.URI_OF_WHOLE], row[schema.ID_OF_WHOLE]
        if not isinstance(uri, str):
            raise file.damage("a record is of no URI")
        digests.setdefault(uri, {})[str(id_)] = _digest(file.account, row)
    stamps = dict(db.execute(schema.STAMPS))
    for uri in digests.keys() | stamps.keys():
        if stamp_of(digests.get(uri, {})) != stamps.get(uri):
            yield uri


def _digest(account: str, row: Row) -> bytes:
    with suppress(ValueError, TypeError, LookupError, OverflowError):
        found = read(account, row)
        if found.is_true:
            return found.digest
    return b""
