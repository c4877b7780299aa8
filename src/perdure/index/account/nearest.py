"""The nearest vectors of an account, and the matrix that they are found in. Needs numpy.

A copy beside the database, mapped into memory, saves a new process from reading them row by row.
Nothing depends on it: one that is not whole, or not of this database, is passed over.
"""

import os
import secrets
import sqlite3
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from perdure.index.account.file import UNFINISHED, AccountFile, copy_of, remove_unfinished
from perdure.index.account.matrix import COLUMNS, Matrix, gone_in, read_rows
from perdure.index.account.rows import Change, Scored, Wanted, best, changes_from, last_change

_MAGIC = b"perdure vectors 1\n".ljust(24, b"\0")
_HEAD = struct.Struct("<24sqqqqqI4x")
_NUMBER = 8
_CHECKSUM = 8
"""Bytes at the end of the head."""
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
        matrix = load(copy_of(file.path, dimension), dimension)
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
        save(copy_of(file.path, dimension), copy)
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
        elif (fresh := load(path, copy.dimension)) is not None:
            file.matrices[copy.dimension] = fresh


def _is_worth_it(matrix: Matrix) -> bool:
    return len(matrix) >= WORTH_A_COPY and matrix.behind > len(matrix) // _BEHIND


def load(path: Path, dimension: int) -> Matrix | None:
    """Map the copy; None if there is none, or a bit of it is not as it was written."""
    try:
        data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return None
    head, body = data[: _HEAD.size], data[_HEAD.size :]
    if len(head) < _HEAD.size:
        return None
    magic, width, count, seq, token, rows, crc = _HEAD.unpack(head.tobytes())
    split = count * len(COLUMNS) * _NUMBER
    is_ours = (magic, width) == (_MAGIC, dimension) and len(body) == split + count * dimension
    if not is_ours or _crc(head.tobytes(), body) != crc:
        return None
    columns = body[:split].view("<i8").reshape(len(COLUMNS), count)
    vectors = body[split:].view(np.int8).reshape(count, dimension).view(np.ndarray)
    return Matrix(dimension, Change(seq, token, rows), columns.astype(np.int64), vectors)


def save(path: Path, matrix: Matrix) -> None:
    """Write a compact matrix wholly, then put it in its place; the power may undo that."""
    body, change = matrix.encode(), matrix.change
    values = (matrix.dimension, len(matrix), change.seq, change.token, change.rows)
    head = _HEAD.pack(_MAGIC, *values, 0)
    crc = _crc(head, np.frombuffer(body, np.uint8))
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(_MAGIC, *values, crc))
            file.write(body)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _crc(head: bytes, body: NDArray[np.uint8]) -> int:
    return int(crc32c(body)) ^ int(crc32c(head[: _HEAD.size - _CHECKSUM]))
