"""The log of an account's index: how things stand, and what went since somebody last looked."""

import json
import secrets
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from perdure.errors import DamageError
from perdure.index.account import schema

KEPT = 1024
"""Transactions that are remembered. Who has not looked for longer must look at everything."""
MUCH = 100_000
"""Characters that tell which rows went: then it is as well to look at everything."""
_TOKEN_BITS = 62


class Change(NamedTuple):
    """A transaction. Two that have the same token are the same, and so is all before them."""

    seq: int = 0
    token: int = 0
    rows: int = 0
    """How many rows there ever were; their numbers are from 1 to this."""
    cursor: int = 0
    gone: str = "[]"
    """The numbers of the rows that it took away, as JSON."""

    def next(self, *, added: int, gone: Sequence[int], cursor: int) -> "Change":
        """Return the one that follows."""
        return Change(
            self.seq + 1,
            secrets.randbits(_TOKEN_BITS),
            self.rows + added,
            cursor,
            json.dumps(gone, separators=(",", ":")),
        )

    def is_same(self, other: "Change") -> bool:
        return (self.seq, self.token) == (other.seq, other.token)

    def seal(self, account: str) -> bytes:
        """Return a digest: another account's file, or one with a bit flipped, has another."""
        said = (account, self.seq, self.token, self.rows, self.cursor, self.gone)
        return sha256(json.dumps(said).encode()).digest()[:16]


def last_change(db: sqlite3.Connection, account: str) -> Change:
    """Return how things stand; `DamageError` if it is not what was written for this account."""
    row = db.execute(schema.LAST_CHANGE).fetchone()
    return Change() if row is None else _sealed(row, account)


def changes_from(db: sqlite3.Connection, account: str, seq: int) -> list[Change]:
    return [_sealed(row, account) for row in db.execute(schema.CHANGES_FROM, (seq,))]


def note(db: sqlite3.Connection, account: str, change: Change) -> None:
    """Write down a transaction, and forget those that nobody needs to be told of any more."""
    is_much = len(change.gone) > MUCH
    db.execute(schema.DROP_CHANGES, (change.seq - (1 if is_much else KEPT),))
    values = (change.seq, change.token, change.rows, change.cursor, change.gone)
    db.execute(schema.ADD_CHANGE, (*values, change.seal(account)))


def _sealed(row: tuple[Any, ...], account: str) -> Change:
    *values, seal = row
    change = Change(*values)
    if change.seal(account) != seal:
        raise DamageError(
            f"the index of account {account[:80]!a} is damaged: its log is not what was written "
            "for it. Fix: `perdure index rebuild` makes it again."
        )
    return change
