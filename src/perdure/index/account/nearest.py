"""The nearest vectors of an account, and the matrix that they are found in. Needs numpy."""

import sqlite3
from contextlib import suppress

from perdure.index.account import mapped
from perdure.index.account.changes import Change, changes_from, last_change
from perdure.index.account.copies import copy_of, remove_unfinished
from perdure.index.account.file import AccountFile
from perdure.index.account.matrix import Matrix, gone_in, read_rows
from perdure.index.account.rows import Scored, best
from perdure.index.account.wanted import Wanted

WORTH_A_COPY = 2_000
"""Fewer vectors than this are read as fast from their rows."""
_BEHIND = 8
"""A copy is made anew when one row in so many came or went since."""


def nearest(
    file: AccountFile, db: sqlite3.Connection, query: bytes, wanted: Wanted, most: int
) -> Scored:
    """Return the rows of the nearest vectors, with their scores."""
    matrix = _up_to_date(file, db, len(query))
    rows, scores = matrix.nearest(query, wanted, most)
    return best(db, list(zip(rows.tolist(), scores.tolist(), strict=True)), most)


# ---------------------------------------------------------------- in step with the file
def _up_to_date(file: AccountFile, db: sqlite3.Connection, dimension: int) -> Matrix:
    last = last_change(db, file.account)
    matrix = file.matrices.get(dimension)
    if matrix is None or not _follow(file, db, matrix, last):
        matrix = mapped.load(copy_of(file.path, dimension), dimension)
        if matrix is None or not _follow(file, db, matrix, last):
            columns, vectors = read_rows(db, dimension, 0)
            matrix = Matrix(dimension, last, columns, vectors)
            matrix.behind = len(vectors)
    file.matrices[dimension] = matrix
    return matrix


def _follow(file: AccountFile, db: sqlite3.Connection, matrix: Matrix, last: Change) -> bool:
    """Bring a matrix up to date; return whether that can be done from where it is."""
    mine = matrix.change
    if mine.is_same(last):
        return True
    changes = changes_from(db, file.account, mine.seq)
    if not changes or not mine.is_same(changes[0]):
        return False
    columns, vectors = read_rows(db, matrix.dimension, mine.rows)
    matrix.follow(columns, vectors, gone_in(changes[1:]), last)
    return True


# ---------------------------------------------------------------- the copy
def keep_copy(file: AccountFile, dimension: int) -> None:
    """Write a copy of the vectors, if they are many and there is none, or one far behind."""
    with file.reading():
        matrix = file.matrices.get(dimension)
        if matrix is None or not _is_worth_it(matrix):
            return
        matrix.behind = 0
        copy = matrix.compact()
    with suppress(OSError):  # a copy that can't be written is one that is not there
        remove_unfinished(file.path)
        mapped.save(copy_of(file.path, dimension), copy)
        _confirm(file, copy)


def _confirm(file: AccountFile, copy: Matrix) -> None:
    """Go on with the copy; remove it if all that it knows of was deleted meanwhile.

    Whoever deletes an owner does so first, and removes the copies then; so here it is the other
    way round.
    """
    path = copy_of(file.path, copy.dimension)
    with file.reading() as db:
        known = changes_from(db, file.account, copy.change.seq)
        if not known or not copy.change.is_same(known[0]):
            path.unlink(missing_ok=True)
        elif (fresh := mapped.load(path, copy.dimension)) is not None:
            file.matrices[copy.dimension] = fresh


def _is_worth_it(matrix: Matrix) -> bool:
    return len(matrix) >= WORTH_A_COPY and matrix.behind > len(matrix) // _BEHIND
